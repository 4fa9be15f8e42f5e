//! The settings of collapsed Gibbs sweeps over the topics of all tokens: shared by AD-LDA and asynchronous LDA.

use super::prior_updates::{OptimizePriors, PriorUpdates};
use crate::methods::common::settings::{DocumentBytes, ResourceEstimate, at_least_one, no_draws};
use crate::methods::common::thinning::draws;
use crate::methods::topics::{TopicArray, TopicPosterior};
use crate::settings::KeyError;
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of collapsed Gibbs samplers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct SweepSettings {
    /// Sweeps over all tokens.
    pub rounds: u64,
    /// Sweeps before the first draw. Predictions are averaged from there on.
    pub burn_in: u64,
    /// Keep every `thin`-th sweep after burn-in as a draw: φ (W × K), the mean of the topics given the counts.
    pub thin: u64,
    /// Order of a sweep: `"word"`, at a cost that grows with the topics of a token's document, or `"document"`, the plain algorithm, at a
    /// cost that grows with all topics.
    pub sweep_by: SweepBy,
    /// Priors that are estimated from the topics of all tokens, starting at the values of the model: `"none"`, `"alpha"` or `"both"`.
    pub optimize: OptimizePriors,
    /// Sweeps between estimates.
    pub optimize_every: u64,
    /// Sweeps before the first estimate: from the random initial topics, alpha would be far too large.
    pub optimize_after: u64,
}

/// The order of a sweep over an agent's tokens; both have the same stationary distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepBy {
    /// Word by word, at a cost that grows with the topics of a token's document.
    #[default]
    Word,
    /// Document by document, the plain algorithm, at a cost that grows with all topics.
    Document,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self {
            rounds: 200,
            burn_in: 100,
            thin: 20,
            sweep_by: SweepBy::default(),
            optimize: OptimizePriors::default(),
            optimize_every: 10,
            optimize_after: 20,
        }
    }
}

/// Checks the numbers of sweeps, and when priors are estimated.
pub(super) fn check_sweeps(rounds: u64, burn_in: u64, thin: u64, updates: PriorUpdates) -> Result<(), KeyError> {
    at_least_one(&[("rounds", rounds), ("thin", thin)])?;
    updates.check(rounds)?;
    if burn_in.saturating_add(thin) > rounds {
        return Err(no_draws(burn_in, thin, rounds));
    }
    Ok(())
}

impl SweepSettings {
    pub(super) fn check(&self) -> Result<(), KeyError> {
        if self.optimize == OptimizePriors::Asymmetric {
            let sentence = "= \"asymmetric\" is for the method lda only. Choose one of: none, alpha, both";
            return Err(KeyError::invalid("optimize", sentence));
        }
        check_sweeps(self.rounds, self.burn_in, self.thin, self.prior_updates())
    }

    /// When priors are estimated.
    pub(super) fn prior_updates(&self) -> PriorUpdates {
        PriorUpdates { optimize: self.optimize, every: self.optimize_every, after: self.optimize_after }
    }

    pub(super) fn needs(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let parameters = parameters as u64;
        ResourceEstimate {
            longest_document: None,
            particles: None,
            rounds: Some(self.rounds),
            draws: Some(draws(self.rounds, self.burn_in, self.thin)),
            minibatch: None,
            // The counts of all agents, the agent's copy, and its changes.
            values_of_agent: Some(parameters.saturating_mul(3)),
            // One array of counts to each agent, and one from it.
            values_per_round: Some(parameters.saturating_mul(2).saturating_mul(u64::from(agents))),
            // Counts are i32 with any dtype.
            bytes_of_value: Some(4),
            document_bytes: match self.sweep_by {
                // Per token: word, topic, two indices, and room for a topic of its document.
                SweepBy::Word => DocumentBytes { document: 80, entry: 0, token: 20 },
                // Per token: word and topic.
                SweepBy::Document => DocumentBytes { document: 8, entry: 0, token: 8 },
            },
        }
    }

    /// The posterior: the counts of all tokens.
    pub(super) fn shown(&self) -> TopicPosterior {
        TopicPosterior { array: TopicArray::Counts, draws_from: self.burn_in.saturating_add(1), has_alphas: false }
    }
}
