//! EC-SGLD: chains of stochastic gradient Langevin dynamics with elastic coupling to a center variable.
//!
//! This file has the settings. The engine is [`coupled`](super::coupled); the update is
//! [`transitions::sgld`](crate::methods::transitions::sgld).

use crate::kernels::langevin::StepSize;
use crate::methods::chains::coupled::settings::{
    check_steps, coupled_method, found_coupling, found_lengths, given_rounds, length_of, needs_of, notes_of, strength, unstable,
};
use crate::methods::chains::coupled::stability::{Steps, asynchronous_is_stable};
use crate::methods::chains::coupled::{CenterDynamics, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::methods::chains::ec_sghmc::EcSghmcSettings;
use crate::methods::common::settings::{Length, MethodSettings, ResourceEstimate, Sharing, Table, TableMethod};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sgld::Sgld;
use crate::methods::tuning::{
    DrawCount, Found, LangevinSteps, Lengths, NoiseNeeds, Step, TuningNeeds, VisitShare, check_ess, check_noise_share, idle_keys,
    langevin_steps,
};
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `ec_sgld`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EcSgldSettings {
    /// Steps of each chain. Every agent runs a chain on all data. Default: as many as `ess` needs with `step = "auto"`, otherwise 10,000.
    pub steps: Option<u64>,
    /// Steps between exchanges with the center (s).
    pub period: u64,
    /// Rows in a minibatch, drawn anew for every step; a minimum with `step = "auto"`.
    pub batch: usize,
    /// Variance of the noise of a step, whose drift is half of it times the score. `"auto"` finds it as for `sghmc`.
    pub step: Step,
    /// Effective sample size of all chains together, for which `step = "auto"` finds steps, burn-in and thinning. Models without a full
    /// matrix of curvature or with more than 2,000 parameters get a tenth of it, because their draws take more updates.
    pub ess: f64,
    /// Share of the variance of a step's noise that is not added, because the noise of minibatches and the finite step already contribute
    /// it; 0 if unknown. `step = "auto"` sets it.
    pub gradient_noise: f64,
    /// Strength of the springs between chains and center (κ); with `step = "auto"` in coordinates in which the posterior is close to a
    /// standard normal distribution.
    pub coupling: f64,
    /// How the coupling changes: `"constant"` (draws are then not from the posterior), `{ anneal = { from = 500, over = 500 } }`, or
    /// `{ cyclic = { coupled = 100, free = 400, settle = 100 } }`. By default it is annealed to 0 in the second half of burn-in.
    pub coupling_schedule: Option<CouplingSchedule>,
    /// Whether each chain exchanges with the center on its own time; `false` waits for the slowest at every exchange.
    pub asynchronous: bool,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that period on corrects the score of a minibatch by
    /// the score at a fixed point. No effect where `step = "auto"` finds a step.
    pub gradient: Estimator,
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// Steps of each chain before its first draw. Default: ten relaxation times with `step = "auto"`, otherwise 2000.
    pub burn_in: Option<u64>,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws. Default: the relaxation time, in which autocorrelations fall to 1/e, with
    /// `step = "auto"`, otherwise 10.
    pub thin: Option<u64>,
}

impl Default for EcSgldSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, period, batch, step, ess, gradient_noise, coupling, burn_in, thin, .. } =
            EcSghmcSettings::default();
        let gradient = Estimator::default();
        let (asynchronous, same_start) = (false, false);
        Self {
            steps,
            period,
            batch,
            step,
            ess,
            gradient_noise,
            coupling,
            coupling_schedule: None,
            asynchronous,
            gradient,
            same_start,
            burn_in,
            thin,
        }
    }
}

impl EcSgldSettings {
    fn strength(&self) -> CouplingStrength {
        strength(self.coupling, self.coupling_schedule, self.burn_in())
    }

    /// Steps of each chain.
    pub fn steps(&self) -> u64 {
        self.steps.unwrap_or(10_000)
    }

    fn burn_in(&self) -> u64 {
        self.burn_in.unwrap_or(2000)
    }

    fn thin(&self) -> u64 {
        self.thin.unwrap_or(10)
    }

    fn step(&self) -> f64 {
        self.step.size_or(1e-5)
    }

    /// The plan of its chains.
    pub fn plan(&self) -> CouplingPlan {
        let Self { period, same_start, .. } = *self;
        let (steps, burn_in, thin) = (self.steps(), self.burn_in(), self.thin());
        let coupling = Coupling::Elastic(CenterDynamics::FirstOrder);
        let (strength, extrapolate, sleep_ms) = (self.strength(), false, Vec::new());
        CouplingPlan { steps, period, burn_in, thin, same_start, strength, coupling, extrapolate, sleep_ms }
    }

    /// The transition of its chains.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sgld<F> {
        Sgld {
            problem,
            batch: self.batch,
            step: StepSize::Constant(self.step()),
            gradient: self.gradient,
            gradient_noise: self.gradient_noise,
        }
    }
}

impl MethodSettings for EcSgldSettings {
    type Data = Table;

    const NAME: &'static str = "ec_sgld";

    const SHARING: Sharing = Sharing::Replicated;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let draws = self.strength().draws(self.steps(), self.burn_in(), self.thin());
        ResourceEstimate { draws: Some(draws), ..needs_of(agents, parameters, self.steps(), self.period, self.batch, 5) }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        let mut notes = notes_of(self.strength(), false, agents);
        notes.extend(idle_keys(self.tuning().is_some(), self.gradient, self.gradient_noise));
        notes
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        let (kappa, period) = (self.coupling, self.period.min(self.steps()));
        let steps = Steps::FirstOrder(0.5 * self.step());
        if self.asynchronous && kappa > 0.0 && !asynchronous_is_stable(steps, kappa, agents, CenterDynamics::FirstOrder, period) {
            return unstable(kappa, period, self.step(), "asynchronous = true");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), KeyError> {
        let are_found = self.tuning().is_some() && [self.steps, self.burn_in, self.thin].contains(&None);
        let thin = if are_found { 0 } else { self.thin() };
        check_steps(self.steps(), self.period, self.batch, self.strength(), self.burn_in(), thin)?;
        check_ess(self.ess)?;
        let step = self.step();
        in_range("step", step, step.is_finite() && step > 0.0, "above 0")?;
        check_noise_share(self.gradient_noise)?;
        let stiff = 0.5 * step * self.coupling;
        if stiff >= 2.0 {
            let sentence = format!("= {} is unstable: step · coupling/2 = {stiff:.3} must be below 2", self.coupling);
            return Err(KeyError::invalid("coupling", sentence));
        }
        Ok(())
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        (self.step == Step::Auto).then_some(TuningNeeds {
            noise: Some(NoiseNeeds { batch: self.batch, share: VisitShare::ByRows, chains: None }),
            rounds: given_rounds(self.steps, self.period),
            draws: DrawCount::of_chains(self.ess, self.steps, self.burn_in, self.thin),
        })
    }

    fn tuned(&self, found: Found, agents: u32) -> Self {
        let Found::Noise(measured) = found else { return self.clone() };
        let LangevinSteps { batch, step, supplied, relaxation } = langevin_steps(measured, self.batch, 1.0);
        let given = (self.burn_in, self.thin);
        let Lengths { burn_in, thin, updates } =
            found_lengths(relaxation, measured.draws(self.ess), agents, given, (self.steps, self.coupling_schedule));
        let found = Self {
            steps: self.steps.or(Some(updates)),
            batch,
            step: Step::Size(step),
            gradient_noise: supplied,
            gradient: Estimator::Plain,
            burn_in: Some(burn_in),
            thin: Some(thin),
            ..self.clone()
        };
        // Between exchanges, springs may not pull chains beyond the center.
        let is_unstable = |coupling| Self { coupling, ..found.clone() }.check_agents(agents).is_err();
        let coupling = found_coupling(self.coupling, |coupling| 0.5 * step * (coupling + measured.curvature), is_unstable);
        Self { coupling, ..found }
    }

    fn length(&self, _agents: u32) -> Option<Length> {
        length_of(self.steps(), self.asynchronous)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let (agents, plan) = (problem.agents, self.plan());
        let transition = self.transition(problem);
        coupled_method(self.asynchronous, agents, transition, plan)
    }
}
