//! EASGD, elastic averaging SGD: workers that descend on all data, and average with a center variable.
//!
//! This file has the settings. The engine is [`coupled`](crate::methods::chains::coupled); the update is
//! [`transitions::sgd`](crate::methods::transitions::sgd).

use crate::methods::chains::coupled::settings::{check_centers, coupled_method, needs_of};
use crate::methods::chains::coupled::{Coupling, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::methods::chains::ec_sghmc::EcSghmcSettings;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Sharing, Table, TableMethod, at_least_one};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sgd::Sgd;
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `easgd`: elastic averaging SGD, without momentum and with it (EAMSGD).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EasgdSettings {
    /// Steps of each worker. Every agent is a worker on all data. The method descends to a mode and is no sampler.
    pub steps: u64,
    /// Steps between exchanges with the center (s).
    pub period: u64,
    /// Rows in a minibatch, drawn anew for every step.
    pub batch: usize,
    /// Step size (η) in units of the whole potential; step · rows is what others call the learning rate.
    pub step: f64,
    /// Momentum (μ): 0 for EASGD; EAMSGD uses 0.99.
    pub momentum: f64,
    /// Whether momentum is Nesterov's: gradients are taken ahead, at θ + μ v.
    pub nesterov: bool,
    /// Fraction of the distance to the mean of the workers by which the center moves at an exchange (β).
    pub rate: f64,
    /// Whether each worker exchanges with the center on its own time; `false` waits for the slowest at every exchange.
    pub asynchronous: bool,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that period on corrects the score of a minibatch by
    /// the score at a fixed point.
    pub gradient: Estimator,
    /// Whether all workers start at the same state.
    pub same_start: bool,
    /// Steps before the first center that is kept.
    pub burn_in: u64,
    /// Keep the center of every `thin`-th exchange after burn-in, and predict by their average; 0 keeps the last center alone.
    pub thin: u64,
}

impl Default for EasgdSettings {
    fn default() -> Self {
        let chains = EcSghmcSettings::default();
        let (steps, EcSghmcSettings { period, batch, .. }) = (chains.steps(), chains);
        let (nesterov, asynchronous, same_start) = (true, false, true);
        let gradient = Estimator::default();
        let (step, momentum, rate) = (1e-6, 0.0, 0.9);
        Self { steps, period, batch, step, momentum, nesterov, rate, asynchronous, gradient, same_start, burn_in: 0, thin: 0 }
    }
}

impl EasgdSettings {
    /// The plan of its workers.
    pub fn plan(&self, agents: u32) -> CouplingPlan {
        let Self { steps, period, burn_in, thin, same_start, .. } = *self;
        let coupling = Coupling::Average { rate: self.rate / f64::from(agents) };
        let strength = CouplingStrength { full: 1.0, schedule: CouplingSchedule::Constant };
        CouplingPlan { steps, period, burn_in, thin, same_start, strength, coupling, extrapolate: false, sleep_ms: Vec::new() }
    }

    /// The transition of its workers.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sgd<F> {
        let Self { batch, gradient, step, momentum, nesterov, .. } = *self;
        Sgd { problem, batch, gradient, step, momentum, nesterov }
    }
}

impl MethodSettings for EasgdSettings {
    type Data = Table;

    const NAME: &'static str = "easgd";

    const SAMPLES: bool = false;

    const SHARING: Sharing = Sharing::Replicated;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        needs_of(agents, parameters, self.steps, self.period, self.batch, 5)
    }

    fn check(&self) -> Result<(), KeyError> {
        let Self { steps, period, batch, burn_in, thin, .. } = *self;
        at_least_one(&[("steps", steps), ("period", period), ("batch", batch as u64)])?;
        check_centers(steps, period, burn_in, thin)?;
        in_range("step", self.step, self.step.is_finite() && self.step > 0.0, "above 0")?;
        in_range("momentum", self.momentum, (0.0..1.0).contains(&self.momentum), "at least 0 and below 1")?;
        in_range("rate", self.rate, self.rate > 0.0 && self.rate < 1.0, "above 0 and below 1")
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let (agents, plan) = (problem.agents, self.plan(problem.agents));
        let transition = self.transition(problem);
        coupled_method(self.asynchronous, agents, transition, plan)
    }
}
