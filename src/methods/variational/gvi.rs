//! Global Gaussian variational inference (GVI): partitioned variational inference in which all agents take one step at a time.

use super::pvi::settings::{BATCH, COVARIANCE, DAMPING, NODES, PARTICLES};
use super::pvi::{Covariance, Pvi, PviSettings};
use crate::methods::common::federated::Federated;
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one};
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// The settings of `gvi`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GviSettings {
    /// Steps.
    rounds: u64,
    /// ρ.
    damping: f64,
    /// What is kept of the covariance.
    covariance: Covariance,
    /// Over how many points expectations are taken.
    nodes: Option<usize>,
    /// Rows in a minibatch.
    batch: Option<usize>,
    /// N.
    particles: usize,
}

impl Default for GviSettings {
    fn default() -> Self {
        let PviSettings { damping, covariance, nodes, batch, particles, .. } = PviSettings::default();
        Self { rounds: 100, damping, covariance, nodes, batch, particles }
    }
}

impl GviSettings {
    fn method(&self, agents: u32) -> Pvi {
        let Self { damping, covariance, nodes, batch, particles, .. } = *self;
        Pvi { iterations: 1, damping, covariance, nodes, batch, particles, together: agents }
    }
}

impl MethodKind for GviSettings {
    const NAME: &'static str = "gvi";

    const DOCS: &'static [(&'static str, &'static str)] =
        &[("rounds", "rounds: a step of all agents together in each"), DAMPING, COVARIANCE, NODES, BATCH, PARTICLES];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        self.method(agents).needs(self.rounds, agents, parameters)
    }

    fn check(&self) -> Result<(), String> {
        at_least_one(&[("rounds", self.rounds)])?;
        self.method(1).check()
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let method = self.method(problem.agents);
        Federated::launch(problem, self.rounds, Participation::All, method, launcher)
    }
}
