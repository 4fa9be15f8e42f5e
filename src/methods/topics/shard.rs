//! The tokens of one agent and their topics: what AD-LDA and Async-LDA sweep over.

use super::problem::TopicProblem;
use super::sweeps::{OptimizePriors, SweepBy, SweepSettings};
use crate::cluster::record::HISTORY;
use crate::cluster::{AgentId, Context, Result};
use crate::lda::{PriorStatistics, Priors, Tokens, TopicCounts, WordSweep, dense_sweep, draw_topics_sequentially};
use crate::methods::common::thinning::draws;
use crate::random::{Purpose, Who};
use serde::{Deserialize, Serialize};

/// What an agent tells of its part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// Its tokens.
    pub tokens: u64,
    /// What priors are estimated from, before sweeps at which that is due.
    pub evidence: Option<PriorEvidence>,
}

/// What an agent tells of the priors: of α by its documents, and of β by its share of the topics.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PriorEvidence {
    of_documents: PriorStatistics,
    of_topics: PriorStatistics,
}

impl PriorEvidence {
    /// Better priors by what all agents tell. PriorStatistics is of integers: its sum is the same in any order.
    pub fn improve<'a>(all: impl IntoIterator<Item = &'a Self>, problem: &TopicProblem, priors: Priors) -> Priors {
        let mut sum = Self::default();
        for told in all {
            sum.of_documents.merge(&told.of_documents);
            sum.of_topics.merge(&told.of_topics);
        }
        // What nobody has told of stays.
        Priors {
            alpha: sum.of_documents.update_prior(priors.alpha, problem.topics as usize),
            beta: sum.of_topics.update_prior(priors.beta, problem.vocabulary as usize),
        }
    }
}

/// Counts (W × K) and the priors behind them apart.
///
/// # Errors
/// Where there are not so many numbers.
pub(super) fn parted<'a>(array: &'a [i32], problem: &TopicProblem) -> Result<(&'a [i32], Priors)> {
    match array.split_last_chunk() {
        Some((counts, words)) if counts.len() == problem.size() => Ok((counts, Priors::from_words(*words))),
        _ => Err(format!("{} counts came, not {}", array.len(), problem.size() + Priors::WORDS).into()),
    }
}

/// Writes a row of the history: with the priors, where they change.
pub(super) fn log_history(settings: &SweepSettings, sweep: u64, priors: Priors, columns: &[(&str, f64)], cx: &mut Context) {
    let changing = settings.optimize != OptimizePriors::None;
    let priors = [("alpha", priors.alpha), ("beta", priors.beta)];
    cx.log_row(HISTORY, sweep, columns.iter().copied().chain(priors.into_iter().filter(|_| changing)));
}

/// The tokens of an agent.
pub(super) struct Shard {
    id: AgentId,
    problem: TopicProblem,
    tokens: Tokens,
    /// What sweeps word by word need.
    by_word: Option<WordSweep>,
}

impl Shard {
    pub fn open(problem: &TopicProblem, id: AgentId, by: SweepBy) -> Result<Self> {
        let documents = problem.open(id)?;
        countable(documents.tokens())?;
        let tokens = Tokens::from_documents(&documents);
        drop(documents);
        let topics = problem.topics as usize;
        let by_word = match by {
            SweepBy::Word => {
                WordSweep::fits(&tokens, topics)?;
                Some(WordSweep::new(&tokens, topics))
            }
            SweepBy::Document => None,
        };
        Ok(Self { id, problem: problem.clone(), tokens, by_word })
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> u64 {
        self.tokens.len() as u64
    }

    /// What its documents tell of α, and its share of the topics in the counts of all tokens (W × K) of β.
    pub fn evidence(&self, topics: &[u32], counts: &[i32], optimize: OptimizePriors) -> PriorEvidence {
        let all = self.problem.topics as usize;
        let edge = |agent: u32| (u64::from(self.problem.topics) * u64::from(agent) / u64::from(self.problem.agents)) as usize;
        let share = match optimize {
            OptimizePriors::Both => edge(self.id)..edge(self.id + 1),
            OptimizePriors::Alpha | OptimizePriors::None => 0..0,
        };
        PriorEvidence {
            of_documents: PriorStatistics::of_documents(&self.tokens, topics, all),
            of_topics: PriorStatistics::of_topics(counts, all, share),
        }
    }

    /// Draws a topic for each token; gives them and their counts (W × K).
    ///
    /// The first agent draws those of a third of all documents one after the other, as far as it has so many, and the others follow these
    /// in the first sweeps. Two agents that did so would each have topics of their own.
    pub fn draw(&self, cx: &Context) -> (Vec<u32>, Vec<i32>) {
        let TopicProblem { agents, vocabulary, topics, alpha, beta, .. } = self.problem;
        let stream = |number: u64| cx.stream(Who::Agent(self.id), number, Purpose::Initial);
        let mut drawn = self.tokens.draw_topics(topics, stream);
        let none = || TopicCounts::new(vocabulary, topics as usize);
        if self.id == 0 {
            let documents = self.tokens.documents();
            let first = (documents.saturating_mul(agents as usize) / 3).min(documents);
            draw_topics_sequentially(&self.tokens, first, &mut drawn, &mut none(), alpha, beta, |document| {
                stream(1 << 63 | document)
            });
        }
        let mut counts = none();
        counts.count(self.tokens.words(), &drawn);
        (drawn, counts.into_counts())
    }

    /// The sweep with this number over all tokens, with the counts of all agents' tokens and their priors (W × K + 4) as they were told;
    /// gives what it has changed of the counts, and tells of those before it.
    pub fn sweep(
        &mut self,
        topics: &mut [u32],
        array: &[i32],
        sweep: u64,
        settings: &SweepSettings,
        cx: &Context,
    ) -> Result<(Told, Vec<i32>)> {
        let (counts, Priors { alpha, beta }) = parted(array, &self.problem)?;
        if topics.len() != self.tokens.len() || topics.iter().any(|&topic| topic >= self.problem.topics) {
            return Err(format!("the saved topics are not those of these {} tokens", self.tokens.len()).into());
        }
        let evidence = settings.is_due(sweep).then(|| self.evidence(topics, counts, settings.optimize));
        let mut here = TopicCounts::from_counts(counts.to_vec(), self.problem.topics as usize);
        let stream = |number: u64| cx.stream(Who::Agent(self.id), sweep << 32 | number, Purpose::Topics);
        match &mut self.by_word {
            Some(by_word) => by_word.sweep(topics, &mut here, alpha, beta, |word| stream(u64::from(word))),
            None => dense_sweep(&self.tokens, topics, &mut here, alpha, beta, stream),
        }
        let mut changed = here.into_counts();
        changed.iter_mut().zip(counts).for_each(|(changed, before)| *changed -= before);
        Ok((Told { tokens: self.tokens(), evidence }, changed))
    }
}

/// Keeps φ (W × K), the mean of the topics given counts and β (W × K + 4), where a draw is due after so many sweeps.
pub(super) fn keep_draw(
    problem: &TopicProblem,
    array: &[i32],
    swept: u64,
    settings: &SweepSettings,
    cx: &mut Context,
) -> Result<()> {
    let SweepSettings { burn_in, thin, .. } = *settings;
    let before = draws(swept.saturating_sub(1), burn_in, thin);
    if draws(swept, burn_in, thin) > before {
        let (counts, priors) = parted(array, problem)?;
        let phi = TopicCounts::from_counts(counts.to_vec(), problem.topics as usize).phi::<f32>(priors.beta);
        cx.record("posterior", 0, before, phi.len(), &phi);
    }
    Ok(())
}

/// Whether so many tokens can be counted.
///
/// # Errors
/// Says how many can.
pub(super) fn countable(tokens: u64) -> Result<()> {
    match i32::try_from(tokens) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{tokens} tokens: at most {} can be counted", i32::MAX).into()),
    }
}

/// Whether counts are those of so many tokens, none of them below 0.
///
/// # Errors
/// Says what they are.
pub(super) fn conserved(counts: &[i32], tokens: u64) -> Result<()> {
    let all: i64 = counts.iter().map(|&count| i64::from(count)).sum();
    match counts.iter().any(|&count| count < 0) {
        false if i64::try_from(tokens) == Ok(all) => Ok(()),
        below => {
            Err(format!("{all} tokens are counted of {tokens}{}", if below { ", and fewer than none of some" } else { "" })
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lost_counts_are_told() {
        assert!(conserved(&[3, 0, 4], 7).is_ok() && countable(i32::MAX as u64).is_ok());
        let message = |counts: &[i32], tokens| conserved(counts, tokens).unwrap_err().to_string();
        assert_eq!(message(&[3, 0, 4], 8), "7 tokens are counted of 8");
        assert_eq!(message(&[8, -1, 0], 7), "7 tokens are counted of 7, and fewer than none of some");
        assert!(countable(1 << 31).unwrap_err().to_string().contains("at most 2147483647"));
    }
}
