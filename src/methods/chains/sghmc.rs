//! SGHMC: independent chains of stochastic gradient Hamiltonian Monte Carlo, one for each agent.

use crate::kernels::hamiltonian::{Scheme, SghmcDynamics};
use crate::methods::chains::coupled::settings::{check_dynamics, check_steps, needs_of};
use crate::methods::chains::coupled::{CoupledChains, Coupling, CouplingPlan, CouplingStrength};
use crate::methods::chains::ec_sghmc::EcSghmcSettings;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Sharing, Table, TableMethod};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sghmc::{Preconditioner, Sghmc};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct SghmcSettings {
    /// Steps of each chain. Every agent runs a chain on all data.
    pub steps: u64,
    /// Rows in a minibatch, drawn anew for every step.
    pub batch: usize,
    /// Step size (ε); its square is what others call the learning rate.
    pub step: f64,
    /// Rate at which velocities decay (V); step · friction is what others call momentum decay.
    pub friction: f64,
    /// Integrator: `"middle"`, exact for Gaussian posteriors at every stable step size, or `"semi_implicit"`, as in the papers.
    pub scheme: Scheme,
    /// Half of step · the variance of the scores of minibatches (B̂), by which the added noise is reduced; 0 if unknown.
    pub gradient_noise: f64,
    /// `{ burn_in = 1000, decay = 0.99, floor = 1.0 }` adapts masses to the size of the scores in the first `burn_in` steps. Off by default.
    pub preconditioner: Option<Preconditioner>,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that period on corrects the score of a minibatch by
    /// the score at a fixed point.
    pub gradient: Estimator,
    /// Steps between two reports to the server: the rounds of evaluation.
    pub period: u64,
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// Steps of each chain before its first draw.
    pub burn_in: u64,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws.
    pub thin: u64,
}

impl Default for SghmcSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, batch, step, friction, gradient_noise, burn_in, thin, period, .. } =
            EcSghmcSettings::default();
        let gradient = Estimator::default();
        let (scheme, preconditioner, same_start) = (Scheme::default(), None, false);
        Self { steps, batch, step, friction, scheme, gradient_noise, preconditioner, gradient, period, same_start, burn_in, thin }
    }
}

impl SghmcSettings {
    fn dynamics(&self) -> SghmcDynamics {
        let Self { scheme, step, friction, gradient_noise, .. } = *self;
        SghmcDynamics { scheme, step, friction, gradient_noise, noise: true }
    }
}

impl MethodSettings for SghmcSettings {
    type Data = Table;

    const NAME: &'static str = "sghmc";

    const SHARING: Sharing = Sharing::Replicated;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let needs = needs_of(agents, parameters, self.steps, self.period, self.batch, 5);
        ResourceEstimate { values_per_round: None, ..needs }
    }

    fn check(&self) -> Result<(), KeyError> {
        check_steps(self.steps, self.period, self.batch, CouplingStrength::NONE, self.burn_in, self.thin)?;
        check_dynamics(self.dynamics(), self.preconditioner, self.burn_in, self.thin)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { steps, period, burn_in, thin, same_start, batch, gradient, preconditioner, .. } = *self;
        let agents = problem.agents;
        let transition = Sghmc { problem, batch, gradient, dynamics: self.dynamics(), preconditioner };
        let (strength, coupling) = (CouplingStrength::NONE, Coupling::Friction);
        let plan = CouplingPlan {
            steps,
            period,
            burn_in,
            thin,
            same_start,
            strength,
            coupling,
            extrapolate: false,
            sleep_ms: Vec::new(),
        };
        TableMethod::chains(CoupledChains { agents, transition, plan, asynchronous: false })
    }
}
