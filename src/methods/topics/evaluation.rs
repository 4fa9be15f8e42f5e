//! Evaluation of topic models: perplexity of held-out documents, which are spread over the agents, by document completion.

use super::problem::TopicProblem;
use crate::cluster::record::METRICS;
use crate::cluster::{AgentId, Body, BoxError, Context, Result};
use crate::lda::{Completion, CompletionScore, DocumentGibbs, HeldOut, Priors, Sweeps, WordTable};
use crate::methods::common::with_evaluation::{EvaluatedRound, Evaluator, LocalEvaluator};
use crate::number::Number;
use crate::random::{Purpose, Who};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What an array of topics holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicArray {
    /// φ up to a factor for each topic (W × K).
    Phi,
    /// The counts n_kw (W × K), followed by the values of the priors, [`Priors`]: φ_kw = (n_kw + β)/(n_k + W β).
    Counts,
}

/// What the posterior of a method for topics consists of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicPosterior {
    /// What an array of topics holds.
    pub array: TopicArray,
    /// The round with the first draw.
    pub draws_from: u64,
    /// Whether φ of a draw is followed by α of each topic.
    pub has_alphas: bool,
}

/// Gibbs sweeps over each held-out document.
pub const EVALUATION_SWEEPS: Sweeps = Sweeps { burn_in: 20, kept: 30 };

/// Limits on the arrays of a round and on the held-out documents of an agent: the address of a random stream has room for this many.
pub(super) const MAX_ARRAYS: u32 = 1 << 12;
const MAX_DOCUMENTS: usize = 1 << 28;

/// Opens an agent's slice of the held-out documents, on the rank that hosts it.
pub type OpenHeldOut = Arc<dyn Fn(AgentId) -> Result<HeldOut, BoxError> + Send + Sync>;

/// Perplexity of held-out documents, every `every` rounds and after the last.
///
/// A posterior is either any number of φ (W × K), each topic up to a factor, under the priors of the problem; or topic-word counts (W × K)
/// followed by their priors.
#[derive(Clone)]
pub struct TopicEvaluation {
    /// Rounds between evaluations.
    pub every: u64,
    /// The problem.
    pub problem: TopicProblem,
    /// The held-out documents.
    pub held_out: OpenHeldOut,
    /// Gibbs sweeps over each of them.
    pub sweeps: Sweeps,
    /// What the posterior holds. From its first draw on, predictions are averaged over all evaluated arrays; before, over those of one
    /// round.
    pub posterior: TopicPosterior,
}

/// An agent's contribution to an evaluation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompletedDocuments {
    averaged: CompletionScore,
    /// Predictions of single arrays, summed over those of this round.
    single: CompletionScore,
    /// Number of arrays that are averaged over.
    draws: u64,
}

/// Predictions averaged over the evaluations so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Average {
    completion: Completion,
    /// Whether they are predictions of draws; those of earlier states are discarded.
    has_begun: bool,
}

impl<N: Number> Evaluator<N> for TopicEvaluation {
    type Local = LocalCompletion;

    fn every(&self) -> u64 {
        self.every.max(1)
    }

    fn needs_agents(&self) -> bool {
        true
    }

    fn open(&self, agent: AgentId) -> Result<LocalCompletion> {
        let TopicProblem { vocabulary, topics, alpha, .. } = self.problem;
        let held_out = (self.held_out)(agent)?;
        if self.sweeps.kept == 0 {
            return Err("held-out documents need at least one kept sweep, sweeps.kept is 0".into());
        }
        Ok(LocalCompletion {
            agent,
            held_out,
            gibbs: DocumentGibbs::new(topics as usize, alpha),
            table: WordTable::new(vocabulary, topics as usize),
            settings: self.clone(),
        })
    }

    fn finish(&self, evaluated: EvaluatedRound, agents: Vec<CompletedDocuments>, _: Body<N>, cx: &mut Context) -> Result<()> {
        let (mut averaged, mut single) = (CompletionScore::default(), CompletionScore::default());
        for agent in &agents {
            averaged.merge(agent.averaged);
            single.merge(agent.single);
        }
        let draws = agents.first().map_or(0, |agent| agent.draws);
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

impl<N: Number> LocalEvaluator<N> for LocalCompletion {
    type State = Average;
    type Contribution = CompletedDocuments;

    fn evaluate(
        &mut self,
        average: &mut Average,
        round: u64,
        arrays: &[N],
        cx: &Context,
    ) -> Result<(CompletedDocuments, Body<N>)> {
        let TopicEvaluation { problem, sweeps, posterior: TopicPosterior { array, draws_from, .. }, .. } = &self.settings;
        let (size, topics) = (problem.size(), problem.topics as usize);
        let (arrays, smoothing) = match array {
            TopicArray::Phi => (arrays, 0.0),
            TopicArray::Counts => {
                let (counts, Priors { alpha, beta }) = problem.split_priors(arrays)?;
                self.gibbs.set_alpha(alpha.mean());
                self.table.set_relative_alpha(alpha.relative(topics));
                (counts, beta)
            }
        };
        if arrays.is_empty() || !arrays.len().is_multiple_of(size) {
            return Err(format!("{} values are not a multiple of {size}, the size of an array of topics", arrays.len()).into());
        }
        if arrays.len() / size > MAX_ARRAYS as usize || self.held_out.scored.len() > MAX_DOCUMENTS {
            let (arrays, documents) = (arrays.len() / size, self.held_out.scored.len());
            return Err(format!(
                "{arrays} arrays of topics and {documents} held-out documents of an agent: at most {MAX_ARRAYS} and {MAX_DOCUMENTS} can be evaluated"
            )
            .into());
        }
        let Average { completion, has_begun } = average;
        if !*has_begun {
            *completion = Completion::default();
        }
        *has_begun = round >= *draws_from;
        let mut single = CompletionScore::default();
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
            // Unique up to 2^24 rounds.
            let address = round << 40 | number << 28;
            let stream = |document: u64| cx.stream(Who::Agent(self.agent), address | document, Purpose::Completion);
            single.merge(completion.add(&self.held_out, &mut self.gibbs, &mut self.table, *sweeps, phi, stream));
        }
        Ok((CompletedDocuments { averaged: completion.score(&self.held_out), single, draws: completion.draws() }, Body::empty()))
    }
}
