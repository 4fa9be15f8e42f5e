//! SGHMC: independent chains of stochastic gradient Hamiltonian Monte Carlo, one for each agent.
//!
//! This file has the settings. The engine is [`coupled`](super::coupled), without coupling; the update is
//! [`transitions::sghmc`](crate::methods::transitions::sghmc).

use crate::kernels::hamiltonian::Scheme;
use crate::methods::chains::coupled::settings::{check_dynamics, check_steps, needs_of};
use crate::methods::chains::coupled::{CoupledChains, CouplingPlan, CouplingStrength};
use crate::methods::chains::ec_sghmc::{EcSghmcSettings, Variant};
use crate::methods::common::settings::{Length, MethodSettings, ResourceEstimate, Sharing, Table, TableMethod};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sghmc::Preconditioner;
use crate::methods::tuning::{Found, Step, TuningNeeds, check_ess};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct SghmcSettings {
    /// Steps of each chain. Every agent runs a chain on all data. Default: as many as `ess` needs with `step = "auto"`, otherwise 10,000.
    pub steps: Option<u64>,
    /// Rows in a minibatch, drawn anew for every step; a minimum with `step = "auto"`.
    pub batch: usize,
    /// Step size (ε); its square is what others call the learning rate. `"auto"` finds the mode of the posterior before the run, lets
    /// chains move in coordinates in which the posterior is close to a standard normal distribution, uses a control variate at the mode,
    /// and takes the largest step that changes no standard deviation by more than about 5 %. For models without a full matrix of curvature
    /// or with more than 2,000 parameters, chains start at points of high density that Adam and short chains find, with parameters scaled
    /// by the curvature there. With a preconditioner or `scheme = "semi_implicit"`, `"auto"` is 0.001.
    pub step: Step,
    /// Effective sample size of all chains together, for which `step = "auto"` finds steps, burn-in and thinning. Models without a full
    /// matrix of curvature or with more than 2,000 parameters get a tenth of it, because their draws take more updates.
    pub ess: f64,
    /// Rate at which velocities decay (V); step · friction is what others call momentum decay. Default: 1.5 with `step = "auto"`, otherwise
    /// 50.
    pub friction: Option<f64>,
    /// Integrator: `"middle"`, exact for Gaussian posteriors at every stable step size, or `"semi_implicit"`, as in the papers.
    pub scheme: Scheme,
    /// Half of step · the variance of the scores of minibatches (B̂), by which the added noise is reduced; 0 if unknown. `step = "auto"`
    /// sets it.
    pub gradient_noise: f64,
    /// `{ burn_in = 1000, decay = 0.99, floor = 1.0 }` adapts masses to the size of the scores in the first `burn_in` steps. Off by default.
    pub preconditioner: Option<Preconditioner>,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that period on corrects the score of a minibatch by
    /// the score at a fixed point. No effect where `step = "auto"` finds a step.
    pub gradient: Estimator,
    /// Steps between two reports to the server: the rounds of evaluation.
    pub period: u64,
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// Steps of each chain before its first draw. Default: ten relaxation times with `step = "auto"`, otherwise 2000.
    pub burn_in: Option<u64>,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws. Default: the relaxation time, in which autocorrelations fall to 1/e, with
    /// `step = "auto"`, otherwise 10.
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
        let chains = self.uncoupled();
        let draws = CouplingStrength::NONE.draws(chains.steps(), chains.burn_in(), chains.thin());
        let needs = needs_of(agents, parameters, chains.steps(), self.period, self.batch, 5);
        ResourceEstimate { draws: Some(draws), values_per_round: Some(0), ..needs }
    }

    fn notes(&self, _agents: u32) -> Vec<String> {
        self.uncoupled().notes_on_step()
    }

    fn check(&self) -> Result<(), KeyError> {
        let chains = self.uncoupled();
        check_ess(self.ess)?;
        check_dynamics(chains.dynamics(), self.preconditioner, chains.burn_in(), chains.thin_to_check())?;
        check_steps(chains.steps(), self.period, self.batch, CouplingStrength::NONE, chains.burn_in(), chains.thin_to_check())
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        self.uncoupled().tuning()
    }

    fn tuned(&self, found: Found, agents: u32) -> Self {
        let EcSghmcSettings { steps, batch, step, friction, gradient_noise, gradient, burn_in, thin, .. } =
            self.uncoupled().tuned(found, agents);
        Self { steps, batch, step, friction, gradient_noise, gradient, burn_in, thin, ..self.clone() }
    }

    fn length(&self, agents: u32) -> Option<Length> {
        self.uncoupled().length(agents)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let chains = self.uncoupled();
        let (agents, transition) = (problem.agents, chains.transition(problem));
        let plan = CouplingPlan { strength: CouplingStrength::NONE, ..chains.plan() };
        TableMethod::chains(CoupledChains { agents, transition, plan, asynchronous: false })
    }
}
