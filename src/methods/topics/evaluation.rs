//! What topics are judged by: how well they complete documents that are held out, spread over the agents.

use super::problem::TopicProblem;
use crate::cluster::record::METRICS;
use crate::cluster::{AgentId, Body, BoxError, Context, Result};
use crate::lda::{Completed, Completion, DocumentGibbs, HeldOut, Priors, Sweeps, WordTable};
use crate::methods::common::kind::{Shown, TopicArray};
use crate::methods::common::with_evaluation::{Evaluated, Judge, LocalJudge};
use crate::number::Number;
use crate::random::{Purpose, Who};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How long documents are sampled that are held out.
pub const EVALUATION_SWEEPS: Sweeps = Sweeps { burn_in: 20, kept: 30 };

/// The most arrays of a round, and documents of an agent: each of them has random numbers of its own.
pub(super) const MOST_ARRAYS: u32 = 1 << 12;
const MOST_DOCUMENTS: usize = 1 << 28;

/// Opens an agent's slice of the documents that are held out, on the rank that hosts it.
pub type OpenHeldOut = Arc<dyn Fn(AgentId) -> Result<HeldOut, BoxError> + Send + Sync>;

/// What is measured of topics, every so many rounds and after the last.
///
/// A posterior is any number of φ (W × K) up to factors, with the priors of the problem; or counts (W × K) with their own behind them.
#[derive(Clone)]
pub struct TopicEvaluation {
    /// Rounds between evaluations.
    pub every: u64,
    /// The problem.
    pub problem: TopicProblem,
    /// The documents.
    pub held_out: OpenHeldOut,
    /// How long each of them is sampled.
    pub sweeps: Sweeps,
    /// What the posterior is. From its first draw on predictions are averaged over all arrays that are judged; before, over those of a
    /// round.
    pub shown: Shown,
}

/// An agent's share of an evaluation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Share {
    averaged: Completed,
    /// Summed over the arrays of this round, each by itself.
    single: Completed,
    /// Over how many arrays is averaged.
    draws: u64,
}

/// The predictions so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Average {
    completion: Completion,
    /// Whether they are those of draws: others are forgotten.
    has_begun: bool,
}

impl<N: Number> Judge<N> for TopicEvaluation {
    type Local = LocalCompletion;

    fn every(&self) -> u64 {
        self.every.max(1)
    }

    fn asks(&self) -> bool {
        true
    }

    fn open(&self, agent: AgentId) -> Result<LocalCompletion> {
        let TopicProblem { vocabulary, topics, alpha, .. } = self.problem;
        let held_out = (self.held_out)(agent)?;
        if self.sweeps.kept == 0 {
            return Err("documents that are held out are sampled in no sweep that counts".into());
        }
        Ok(LocalCompletion {
            agent,
            held_out,
            gibbs: DocumentGibbs::new(topics as usize, alpha),
            table: WordTable::new(vocabulary, topics as usize),
            settings: self.clone(),
        })
    }

    fn note(&self, evaluated: Evaluated, shares: Vec<Share>, _: Body<N>, cx: &mut Context) -> Result<()> {
        let (mut averaged, mut single) = (Completed::default(), Completed::default());
        for share in &shares {
            averaged.merge(share.averaged);
            single.merge(share.single);
        }
        let draws = shares.first().map_or(0, |share| share.draws);
        let columns = [
            ("seconds", evaluated.seconds),
            ("perplexity", averaged.perplexity()),
            ("draw_perplexity", single.perplexity()),
            ("averaged_draws", draws as f64),
        ];
        cx.log_row(METRICS, evaluated.round, columns);
        Ok(())
    }
}

/// Completes an agent's slice of the documents.
pub struct LocalCompletion {
    agent: AgentId,
    settings: TopicEvaluation,
    held_out: HeldOut,
    gibbs: DocumentGibbs<f32>,
    table: WordTable<f32>,
}

impl<N: Number> LocalJudge<N> for LocalCompletion {
    type State = Average;
    type Share = Share;

    fn judge(&mut self, average: &mut Average, round: u64, arrays: &[N], cx: &Context) -> Result<(Share, Body<N>)> {
        let TopicEvaluation { problem, sweeps, shown: Shown { array, draws_from }, .. } = &self.settings;
        let (size, topics) = (problem.size(), problem.topics as usize);
        let (arrays, smoothing) = match array {
            TopicArray::Phi => (arrays, 0.0),
            TopicArray::Counts => {
                let Some((arrays, words)) = arrays.split_last_chunk::<{ Priors::WORDS }>() else {
                    return Err(format!("{} numbers are no counts with their priors", arrays.len()).into());
                };
                // Counts are of i32, which f64 holds.
                let Priors { alpha, beta } = Priors::of_words(words.map(|word| word.f64() as i32));
                self.gibbs.set_alpha(alpha);
                (arrays, beta)
            }
        };
        if arrays.is_empty() || !arrays.len().is_multiple_of(size) {
            return Err(format!("{} numbers are no arrays of topics of {size} each", arrays.len()).into());
        }
        if arrays.len() / size > MOST_ARRAYS as usize || self.held_out.scored.len() > MOST_DOCUMENTS {
            let (arrays, documents) = (arrays.len() / size, self.held_out.scored.len());
            return Err(format!(
                "{arrays} arrays of topics and {documents} documents of an agent: at most {MOST_ARRAYS} and {MOST_DOCUMENTS} can be judged"
            )
            .into());
        }
        let Average { completion, has_begun } = average;
        if !*has_begun {
            *completion = Completion::default();
        }
        *has_begun = round >= *draws_from;
        let mut single = Completed::default();
        for (number, array) in (0_u64..).zip(arrays.chunks_exact(size)) {
            let mut totals = vec![smoothing * f64::from(problem.vocabulary); topics];
            for word in array.chunks_exact(topics) {
                totals.iter_mut().zip(word).for_each(|(total, x)| *total += x.f64());
            }
            let phi = |word: u32, out: &mut [f32]| {
                let from = word as usize * topics;
                for ((out, x), total) in out.iter_mut().zip(&array[from..from + topics]).zip(&totals) {
                    *out = ((x.f64() + smoothing) / total) as f32;
                }
            };
            // Rounds are told apart up to 2^24.
            let at = round << 40 | number << 28;
            let stream = |document: u64| cx.stream(Who::Agent(self.agent), at | document, Purpose::Completion);
            single.merge(completion.add(&self.held_out, &mut self.gibbs, &mut self.table, *sweeps, phi, stream));
        }
        Ok((Share { averaged: completion.completed(&self.held_out), single, draws: completion.draws() }, Body::empty()))
    }
}
