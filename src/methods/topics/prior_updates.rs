//! Estimates of α and β during a run, from the topics of all tokens.

use super::problem::TopicProblem;
use crate::cluster::record::HISTORY;
use crate::cluster::{AgentId, Context};
use crate::lda::{Alpha, PriorStatistics, Priors};
use crate::methods::common::settings::at_least_one;
use crate::settings::KeyError;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The priors that are estimated during the run, by maximum likelihood given the topics of all tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptimizePriors {
    /// None: both stay fixed.
    #[default]
    None,
    /// α.
    Alpha,
    /// α and β.
    Both,
    /// α of each topic, and β.
    Asymmetric,
}

/// When priors are estimated, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PriorUpdates {
    pub optimize: OptimizePriors,
    /// Sweeps between estimates.
    pub every: u64,
    /// Sweeps before the first estimate.
    pub after: u64,
}

impl PriorUpdates {
    /// Checks the keys `optimize_every` and `optimize_after` of a run with this many sweeps.
    pub fn check(self, rounds: u64) -> Result<(), KeyError> {
        at_least_one(&[("optimize_every", self.every)])?;
        if self.is_active() && self.after >= rounds {
            let sentence = format!("= {} leaves no estimate: the run has {rounds} sweeps", self.after);
            return Err(KeyError::invalid("optimize_after", sentence));
        }
        Ok(())
    }

    fn is_active(self) -> bool {
        self.optimize != OptimizePriors::None
    }

    /// Whether priors are estimated after `swept` sweeps.
    pub fn is_due(self, swept: u64) -> bool {
        let since = swept.checked_sub(self.after);
        self.is_active() && swept > 0 && since.is_some_and(|since| since.is_multiple_of(self.every))
    }

    /// What an agent contributes to an estimate: the statistics of its documents, given by the spans of their tokens and the topics of these,
    /// and for β those of a range of topics. `counts` are those of all agents (W × K).
    pub fn statistics<T: Copy + Into<u32>>(
        self,
        spans: impl Iterator<Item = Range<usize>>,
        assigned: &[T],
        counts: &[i32],
        agent: AgentId,
        problem: &TopicProblem,
    ) -> AgentPriorStatistics {
        let alpha = match self.optimize {
            OptimizePriors::Asymmetric => PriorStatistics::for_asymmetric_alpha(spans, assigned, problem.topics as usize),
            _ => PriorStatistics::for_symmetric_alpha(spans, assigned, problem.topics as usize),
        };
        let first_topic = |agent: u32| (u64::from(problem.topics) * u64::from(agent) / u64::from(problem.agents)) as usize;
        let topic_range = match self.optimize {
            OptimizePriors::Both | OptimizePriors::Asymmetric => first_topic(agent)..first_topic(agent + 1),
            OptimizePriors::Alpha | OptimizePriors::None => 0..0,
        };
        let beta = PriorStatistics::for_beta(counts, problem.topics as usize, topic_range);
        AgentPriorStatistics { alpha, beta }
    }

    /// Writes a row of the history, with the mean of α_k and with β if they are estimated.
    pub fn log_history(self, sweep: u64, priors: &Priors, columns: &[(&str, f64)], cx: &mut Context) {
        let priors = [("alpha", priors.alpha.mean()), ("beta", priors.beta)];
        cx.log_row(HISTORY, sweep, columns.iter().copied().chain(priors.into_iter().filter(|_| self.is_active())));
    }
}

/// Statistics of one agent for the estimate of the priors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentPriorStatistics {
    /// For α, from the documents of the agent.
    alpha: PriorStatistics,
    /// For β, from the topics assigned to the agent.
    beta: PriorStatistics,
}

impl AgentPriorStatistics {
    /// Updates the priors from the statistics of all agents. These are integers, so their sum does not depend on the order.
    pub fn update_priors<'a>(all_agents: impl IntoIterator<Item = &'a Self>, problem: &TopicProblem, priors: &Priors) -> Priors {
        let mut sum = Self::default();
        for statistics in all_agents {
            sum.alpha.merge(&statistics.alpha);
            sum.beta.merge(&statistics.beta);
        }
        let topics = problem.topics as usize;
        let pseudo_counts = if sum.beta.is_empty() { PriorStatistics::default() } else { problem.seed_words.statistics() };
        // A prior without statistics does not change.
        Priors {
            alpha: match (&priors.alpha, sum.alpha.is_of_each_topic()) {
                (Alpha::Symmetric(alpha), false) => Alpha::Symmetric(sum.alpha.update_prior(*alpha, topics)),
                _ => sum.alpha.update_alphas(&priors.alpha, topics),
            },
            beta: sum.beta.update_prior_beyond(&pseudo_counts, priors.beta, problem.vocabulary as usize),
        }
    }
}
