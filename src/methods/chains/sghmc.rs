//! SGHMC: independent chains of stochastic gradient Hamiltonian Monte Carlo, one for each agent.

use crate::kernels::hamiltonian::Scheme;
use crate::methods::chains::coupled::settings::{check_dynamics, check_ess, check_steps, needs_of};
use crate::methods::chains::coupled::{CoupledChains, CouplingPlan, CouplingStrength};
use crate::methods::chains::ec_sghmc::{EcSghmcSettings, Variant};
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Sharing, Table, TableMethod};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sghmc::Preconditioner;
use crate::methods::tuning::{Measurement, Step, TuningNeeds};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct SghmcSettings {
    /// Steps of each chain. Every agent runs a chain on all data. Without this key as many as `ess` needs, or 10,000 where the step is not
    /// found automatically.
    pub steps: Option<u64>,
    /// Rows in a minibatch, drawn anew for every step; more where the step is found automatically and the noise of minibatches is large.
    pub batch: usize,
    /// Step size (ε); its square is what others call the learning rate. `"auto"` finds the mode of the posterior
    /// before the run, lets chains move in coordinates in which the posterior is close to a standard normal distribution, corrects the scores
    /// of minibatches by those at the mode, and takes the largest step that does not widen the draws; it is 0.001 for models
    /// without curvature, and with a preconditioner or `scheme = "semi_implicit"`.
    pub step: Step,
    /// Effective sample size of all chains together, for which `step = "auto"` finds steps, burn-in and thinning.
    pub ess: f64,
    /// Rate at which velocities decay (V); step · friction is what others call momentum decay. Without this key 1.5 with a step that is
    /// found automatically, 50 otherwise.
    pub friction: Option<f64>,
    /// Integrator: `"middle"`, exact for Gaussian posteriors at every stable step size, or `"semi_implicit"`, as in the papers.
    pub scheme: Scheme,
    /// Half of step · the variance of the scores of minibatches (B̂), by which the added noise is reduced; 0 if unknown. Measured where the
    /// step is found automatically.
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
    /// Steps of each chain before its first draw. Without this key ten relaxation times, or 2000 where the step is not found automatically.
    pub burn_in: Option<u64>,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws. Without this key the relaxation time, or 10 where the step is not found
    /// automatically.
    pub thin: Option<u64>,
}

impl Default for SghmcSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, batch, step, ess, friction, gradient_noise, burn_in, thin, period, .. } =
            EcSghmcSettings::default();
        let gradient = Estimator::default();
        let (scheme, preconditioner, same_start) = (Scheme::default(), None, false);
        Self {
            steps,
            batch,
            step,
            ess,
            friction,
            scheme,
            gradient_noise,
            preconditioner,
            gradient,
            period,
            same_start,
            burn_in,
            thin,
        }
    }
}

impl SghmcSettings {
    /// The same settings without coupling.
    fn uncoupled(&self) -> EcSghmcSettings {
        let Self { steps, batch, step, ess, friction, scheme, gradient_noise, preconditioner, gradient, period, .. } = *self;
        let Self { same_start, burn_in, thin, .. } = *self;
        EcSghmcSettings {
            steps,
            batch,
            step,
            ess,
            friction,
            scheme,
            gradient_noise,
            preconditioner,
            gradient,
            period,
            same_start,
            burn_in,
            thin,
            coupling: 0.0,
            variant: Variant::Friction,
            ..EcSghmcSettings::default()
        }
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
        let needs = needs_of(agents, parameters, self.uncoupled().steps(), self.period, self.batch, 5);
        ResourceEstimate { values_per_round: None, ..needs }
    }

    fn check(&self) -> Result<(), KeyError> {
        let chains = self.uncoupled();
        check_steps(chains.steps(), self.period, self.batch, CouplingStrength::NONE, chains.burn_in(), chains.thin())?;
        check_ess(self.ess)?;
        check_dynamics(chains.dynamics(), self.preconditioner, chains.burn_in(), chains.thin())
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        self.uncoupled().tuning()
    }

    fn tuned(&self, measured: &Measurement, agents: u32) -> Self {
        let EcSghmcSettings { steps, batch, step, friction, gradient_noise, burn_in, thin, .. } =
            self.uncoupled().tuned(measured, agents);
        Self { steps, batch, step, friction, gradient_noise, burn_in, thin, ..self.clone() }
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let chains = self.uncoupled();
        let (agents, transition) = (problem.agents, chains.transition(problem));
        let plan = CouplingPlan { strength: CouplingStrength::NONE, ..chains.plan() };
        TableMethod::chains(CoupledChains { agents, transition, plan, asynchronous: false })
    }
}
