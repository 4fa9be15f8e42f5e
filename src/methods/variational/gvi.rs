//! Global Gaussian variational inference (GVI): partitioned variational inference in which all agents take one step at a time.
//!
//! This file has the settings. The engine is [`pvi`](super::pvi).

use super::pvi::{Covariance, PviSettings};
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod};
use crate::methods::tuning::TuningNeeds;
use crate::models::Model;
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `gvi`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct GviSettings {
    /// Rounds: in each, all agents take one step together.
    rounds: u64,
    /// Weight of the new factor in each step (ρ), above 0 and at most 1.
    damping: f64,
    /// Whether the mode of the posterior is found before the run, the approximation is made in coordinates in which the posterior is close to
    /// a standard normal distribution, and factors start from the Gaussian around the mode instead of the prior. It has no effect on models
    /// without a full matrix of curvature or with more than 2,000 parameters, or if no mode is found.
    whitened: bool,
    /// Covariance of the Gaussian: "full" or "diagonal".
    covariance: Covariance,
    /// Points over which expectations are averaged: per axis in one and two dimensions (default 80 and 40), in total in more
    /// dimensions, where they are random (default twice the number of parameters; with a diagonal covariance at most 200).
    nodes: Option<usize>,
    /// Rows in a minibatch of each agent. By default all rows are used.
    batch: Option<usize>,
    /// Number of draws from the Gaussian that make predictions and are kept in the result file.
    particles: usize,
}

impl Default for GviSettings {
    fn default() -> Self {
        let PviSettings { damping, whitened, covariance, nodes, batch, particles, .. } = PviSettings::default();
        Self { rounds: 100, damping, whitened, covariance, nodes, batch, particles }
    }
}

impl GviSettings {
    /// The same method as settings of PVI.
    fn pvi(&self) -> PviSettings {
        let Self { rounds, damping, whitened, covariance, nodes, batch, particles } = *self;
        PviSettings {
            rounds: Some(rounds),
            iterations: 1,
            damping,
            schedule: Participation::All,
            whitened,
            covariance,
            nodes,
            batch,
            particles,
        }
    }
}

impl MethodSettings for GviSettings {
    type Data = Table;

    const NAME: &'static str = "gvi";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        self.pvi().estimate(agents, parameters)
    }

    fn check(&self) -> Result<(), KeyError> {
        self.pvi().check()
    }

    fn check_model(&self, model: &dyn Model<f64>) -> Result<(), KeyError> {
        self.pvi().check_model(model)
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        self.pvi().tuning()
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::fitted_normal(self.pvi().pvi(problem))
    }
}
