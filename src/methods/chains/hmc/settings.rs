//! The settings of `hmc`.

use super::adaptation::Windows;
use super::{Adaptation, Hmc};
use crate::methods::common::problem::Problem;
use crate::methods::common::settings::{Length, MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};
use crate::methods::tuning::TuningNeeds;
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The target of the acceptance probability for most models.
const ACCEPTANCE: f64 = 0.8;
/// The target for models with effects of groups.
const HIERARCHICAL_ACCEPTANCE: f64 = 0.98;

/// The settings of `hmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct HmcSettings {
    /// Number of chains. Each leapfrog step of all chains together takes the losses and gradients of all rows once.
    pub chains: u32,
    /// Draws of each chain.
    pub draws: u64,
    /// Iterations of each chain before its first draw, in which it finds its step size and the scales of the parameters.
    pub burn_in: u64,
    /// Target of the mean acceptance probability. Larger values give smaller steps: try 0.95 or 0.995 if trajectories diverge. If not set, it
    /// is 0.8, and 0.98 for models with effects of groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<f64>,
}

impl Default for HmcSettings {
    fn default() -> Self {
        Self { chains: 4, draws: 1000, burn_in: 1000, acceptance: None }
    }
}

impl HmcSettings {
    fn iterations(&self) -> u64 {
        self.burn_in.saturating_add(self.draws)
    }

    /// The method with these settings.
    pub fn hmc<F: Real>(&self, problem: Problem<F>) -> Hmc<F> {
        let Self { chains, draws, burn_in, acceptance } = *self;
        // Scales that are sampled give the posterior a narrow neck, in which steps must be small.
        let acceptance = acceptance.unwrap_or(if problem.model.is_hierarchical() { HIERARCHICAL_ACCEPTANCE } else { ACCEPTANCE });
        let adaptation = Adaptation { burn_in, windows: Windows::new(burn_in), acceptance };
        Hmc { problem, chains, draws, adaptation }
    }
}

impl MethodSettings for HmcSettings {
    type Data = Table;

    const NAME: &'static str = "hmc";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn check(&self) -> Result<(), KeyError> {
        at_least_one(&[("chains", u64::from(self.chains)), ("draws", self.draws)])?;
        for (key, iterations) in [("draws", self.draws), ("burn_in", self.burn_in)] {
            in_range(key, iterations, iterations <= 1_000_000_000, "at most 1e9")?;
        }
        let acceptance = self.acceptance.unwrap_or(ACCEPTANCE);
        in_range("acceptance", acceptance, (0.5..1.0).contains(&acceptance), "at least 0.5 and below 1")
    }

    fn estimate(&self, _agents: u32, parameters: usize) -> ResourceEstimate {
        let positions = u64::from(self.chains).saturating_mul(parameters as u64);
        ResourceEstimate {
            particles: Some(u64::from(self.chains)),
            rounds: Some(self.iterations()),
            draws: Some(self.draws),
            // Positions and scores.
            values_of_agent: Some(positions.saturating_mul(2)),
            ..ResourceEstimate::default()
        }
    }

    fn notes(&self, _agents: u32) -> Vec<String> {
        let few = self.burn_in < 100;
        let note = || format!("burn_in = {} is short: chains may not find their step size and scales", self.burn_in);
        few.then(note).into_iter().collect()
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(true, self.iterations())
    }

    fn length(&self, _agents: u32) -> Option<Length> {
        Some(Length { key: "draws", value: self.draws, last_rounds: 1 })
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::chains(self.hmc(problem))
    }
}
