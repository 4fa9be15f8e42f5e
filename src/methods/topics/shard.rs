//! Collapsed Gibbs sweeps over the tokens of one agent, for AD-LDA and asynchronous LDA.

use super::prior_updates::AgentPriorStatistics;
use super::problem::TopicProblem;
use super::sweeps::{SweepBy, SweepSettings};
use crate::cluster::{AgentId, Context, Result};
use crate::lda::{Priors, Tokens, TopicCounts, WordSweep, dense_sweep, draw_topics_sequentially};
use crate::methods::common::thinning::draw_after;
use crate::random::{Purpose, Who};
use serde::{Deserialize, Serialize};

/// The report of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepReport {
    /// The number of tokens of the agent.
    pub tokens: u64,
    /// Statistics for the estimate of the priors, if one is due.
    pub statistics: Option<AgentPriorStatistics>,
}

/// The tokens of an agent.
pub(super) struct Shard {
    id: AgentId,
    problem: TopicProblem,
    tokens: Tokens,
    /// For sweeps by word.
    word_sweep: Option<WordSweep>,
}

impl Shard {
    pub fn open(problem: &TopicProblem, id: AgentId, sweep_by: SweepBy) -> Result<Self> {
        if !problem.seed_words.is_empty() {
            return Err("seed words are for the method lda only".into());
        }
        let documents = problem.open(id)?;
        check_token_count(documents.tokens())?;
        let tokens = Tokens::from_documents(&documents);
        drop(documents);
        let topics = problem.topics as usize;
        let word_sweep = match sweep_by {
            SweepBy::Word => {
                WordSweep::check_size(&tokens, topics)?;
                Some(WordSweep::new(&tokens, topics))
            }
            SweepBy::Document => None,
        };
        Ok(Self { id, problem: problem.clone(), tokens, word_sweep })
    }

    /// The number of tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// Draws an initial topic for each token; returns the topics and their counts (W × K).
    ///
    /// The first agent draws topics sequentially, each given the ones before, for up to a third of all documents. All other topics are
    /// drawn uniformly and adapt in the first sweeps. If two agents drew sequentially, their topics would have nothing to do with each
    /// other.
    pub fn draw_initial_topics(&self, cx: &Context) -> (Vec<u32>, Vec<i32>) {
        let TopicProblem { agents, vocabulary, topics, alpha, beta, .. } = self.problem;
        let stream = |number: u64| cx.stream(Who::Agent(self.id), number, Purpose::Initial);
        let mut assigned = self.tokens.draw_topics(topics, stream);
        let zero_counts = || TopicCounts::new(vocabulary, topics as usize);
        if self.id == 0 {
            let documents = self.tokens.documents();
            let sequential = (documents.saturating_mul(agents as usize) / 3).min(documents);
            draw_topics_sequentially(&self.tokens, sequential, &mut assigned, &mut zero_counts(), alpha, beta, |document| {
                stream(1 << 63 | document)
            });
        }
        let mut counts = zero_counts();
        counts.add_tokens(self.tokens.words(), &assigned);
        (assigned, counts.into_counts())
    }

    /// Performs sweep number `sweep` over the tokens of this agent. `array` holds the counts of all agents and the priors
    /// before the sweep. Returns a report, whose statistics are also from before the sweep, and the changes of the counts (W × K).
    pub fn sweep(
        &mut self,
        topics: &mut [u32],
        array: &[i32],
        sweep: u64,
        settings: &SweepSettings,
        cx: &Context,
    ) -> Result<(SweepReport, Vec<i32>)> {
        let (counts, Priors { alpha, beta }) = self.problem.split_priors(array)?;
        let alpha = alpha.mean();
        if topics.len() != self.tokens.len() || topics.iter().any(|&topic| topic >= self.problem.topics) {
            return Err(format!("the saved topics do not fit the {} tokens of this agent", self.tokens.len()).into());
        }
        let updates = settings.prior_updates();
        let spans = self.tokens.spans();
        let statistics = updates.is_due(sweep).then(|| updates.statistics(spans, topics, counts, self.id, &self.problem));
        let mut swept = TopicCounts::from_counts(counts.to_vec(), self.problem.topics as usize);
        let stream = |number: u64| cx.stream(Who::Agent(self.id), sweep << 32 | number, Purpose::Topics);
        match &mut self.word_sweep {
            Some(word_sweep) => word_sweep.sweep(topics, &mut swept, alpha, beta, |word| stream(u64::from(word))),
            None => dense_sweep(&self.tokens, topics, &mut swept, alpha, beta, stream),
        }
        let mut changes = swept.into_counts();
        changes.iter_mut().zip(counts).for_each(|(change, before)| *change -= before);
        Ok((SweepReport { tokens: self.tokens(), statistics }, changes))
    }
}

/// If a draw is due after `sweeps` sweeps, records φ (W × K): its mean given the counts and β in `array`.
pub(super) fn record_draw(
    problem: &TopicProblem,
    array: &[i32],
    sweeps: u64,
    settings: &SweepSettings,
    cx: &mut Context,
) -> Result<()> {
    let SweepSettings { burn_in, thin, .. } = *settings;
    if let Some(number) = draw_after(sweeps, burn_in, thin) {
        let (counts, priors) = problem.split_priors(array)?;
        let phi = TopicCounts::from_counts(counts.to_vec(), problem.topics as usize).phi::<f32>(priors.beta);
        cx.record("posterior", 0, number, phi.len(), &phi);
    }
    Ok(())
}

/// Checks that counts of this many tokens fit into i32.
///
/// # Errors
/// If there are more than 2^31 − 1 tokens.
pub(super) fn check_token_count(tokens: u64) -> Result<()> {
    match i32::try_from(tokens) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{tokens} tokens: at most {} are supported", i32::MAX).into()),
    }
}

/// Checks that counts are not negative and sum to the number of tokens.
///
/// # Errors
/// If a count is negative or the sum differs.
pub(super) fn check_conserved(counts: &[i32], tokens: u64) -> Result<()> {
    let sum: i64 = counts.iter().map(|&count| i64::from(count)).sum();
    match counts.iter().any(|&count| count < 0) {
        false if i64::try_from(tokens) == Ok(sum) => Ok(()),
        negative => Err(format!(
            "topic-word counts sum to {sum} for {tokens} tokens{}",
            if negative { ", and some are negative" } else { "" }
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lost_and_negative_counts_are_errors() {
        assert!(check_conserved(&[3, 0, 4], 7).is_ok() && check_token_count(i32::MAX as u64).is_ok());
        let message = |counts: &[i32], tokens| check_conserved(counts, tokens).unwrap_err().to_string();
        assert_eq!(message(&[3, 0, 4], 8), "topic-word counts sum to 7 for 8 tokens");
        assert_eq!(message(&[8, -1, 0], 7), "topic-word counts sum to 7 for 7 tokens, and some are negative");
        assert!(check_token_count(1 << 31).unwrap_err().to_string().contains("at most 2147483647"));
    }
}
