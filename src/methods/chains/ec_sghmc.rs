//! EC-SGHMC: chains of stochastic gradient Hamiltonian Monte Carlo with elastic coupling to a center variable.
//!
//! This file has the settings. The engine is [`coupled`](super::coupled); the update is
//! [`transitions::sghmc`](crate::methods::transitions::sghmc).

use crate::kernels::hamiltonian::{Scheme, SghmcDynamics};
use crate::methods::chains::coupled::settings::{
    check_centers, check_dynamics, check_steps, coupled_method, found_coupling, found_lengths, given_rounds, length_of, needs_of,
    notes_of, strength, unstable,
};
use crate::methods::chains::coupled::stability::{Steps, asynchronous_is_stable, extrapolation_is_stable, kicks_are_stable};
use crate::methods::chains::coupled::{CenterDynamics, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::methods::common::settings::{
    Length, MethodSettings, ResourceEstimate, Sharing, Table, TableMethod, check_sleep, one_for_each_agent,
};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sghmc::{Preconditioner, Sghmc};
use crate::methods::tuning::{
    DrawCount, Found, HamiltonianSteps, Lengths, NoiseNeeds, Step, TuningNeeds, VisitShare, check_ess, hamiltonian_steps,
    idle_keys,
};
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `ec_sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EcSghmcSettings {
    /// Steps of each chain. Every agent runs a chain on all data. Default: as many as `ess` needs with `step = "auto"`, otherwise 10,000.
    pub steps: Option<u64>,
    /// Steps between exchanges with the center (s).
    pub period: u64,
    /// Rows in a minibatch, drawn anew for every step; a minimum with `step = "auto"`.
    pub batch: usize,
    /// Step size (ε); its square is what others call the learning rate. `"auto"` finds it as for `sghmc`; it is 0.001 with `noise = false`, a
    /// preconditioner or `scheme = "semi_implicit"`.
    pub step: Step,
    /// Effective sample size of all chains together, for which `step = "auto"` finds steps, burn-in and thinning. Models without a full
    /// matrix of curvature or with more than 2,000 parameters get a tenth of it, because their draws take more updates.
    pub ess: f64,
    /// Rate at which velocities decay (V); step · friction is what others call momentum decay. Default: 1.5 with `step = "auto"`, otherwise
    /// 50.
    pub friction: Option<f64>,
    /// Strength of the springs between chains and center (κ); with `step = "auto"` in coordinates in which the posterior is close to a
    /// standard normal distribution.
    pub coupling: f64,
    /// How the coupling changes: `"constant"` (draws are then not from the posterior), `{ anneal = { from = 500, over = 500 } }`, or
    /// `{ cyclic = { coupled = 100, free = 400, settle = 100 } }`. By default it is annealed to 0 in the second half of burn-in.
    pub coupling_schedule: Option<CouplingSchedule>,
    /// What is coupled: `"elastic"` (each chain to the center), or without bias `"mean"` (the center to the mean of the chains) or
    /// `"friction"` (velocities only).
    pub variant: Variant,
    /// Mass of the center (M_c); the mass of a chain is 1. Chains drag the center along, so it should be light compared to all of them.
    pub center_mass: f64,
    /// Friction of the center (C); `friction * center_mass` by default.
    pub center_friction: Option<f64>,
    /// Whether chains extrapolate the center with its velocity between exchanges.
    pub extrapolate: bool,
    /// Whether each chain exchanges with the center on its own time; `false` waits for the slowest at every exchange.
    pub asynchronous: bool,
    /// `false` descends to a mode instead of sampling. With constant coupling the result is then the center, kept as by `easgd`.
    pub noise: bool,
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
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// Steps of each chain before its first draw. Default: ten relaxation times with `step = "auto"`, otherwise 2000.
    pub burn_in: Option<u64>,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws. Default: the relaxation time, in which autocorrelations fall to 1/e, with
    /// `step = "auto"`, otherwise 10.
    pub thin: Option<u64>,
    /// Milliseconds that each agent sleeps per step, to imitate slow machines in experiments; one number for each agent.
    pub sleep_ms: Vec<f64>,
}

/// What is coupled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// Each chain to the center.
    #[default]
    Elastic,
    /// The center to the mean of the chains.
    Mean,
    /// Velocities to their mean, by friction.
    Friction,
}

impl Default for EcSghmcSettings {
    fn default() -> Self {
        Self {
            steps: None,
            period: 8,
            batch: 100,
            step: Step::Auto,
            ess: 1000.0,
            friction: None,
            coupling: 1.0,
            coupling_schedule: None,
            variant: Variant::default(),
            center_mass: 1.0,
            center_friction: None,
            extrapolate: false,
            asynchronous: false,
            noise: true,
            scheme: Scheme::default(),
            gradient_noise: 0.0,
            preconditioner: None,
            gradient: Estimator::default(),
            same_start: false,
            burn_in: None,
            thin: None,
            sleep_ms: Vec::new(),
        }
    }
}

impl EcSghmcSettings {
    /// Steps of each chain.
    pub fn steps(&self) -> u64 {
        self.steps.unwrap_or(10_000)
    }

    /// Steps of each chain before its first draw.
    pub fn burn_in(&self) -> u64 {
        self.burn_in.unwrap_or(2000)
    }

    /// Steps between draws; 0 for no draws.
    pub fn thin(&self) -> u64 {
        self.thin.unwrap_or(10)
    }

    /// Steps between draws, or 0 as long as it is not known whether there will be draws, because lengths are found before the run.
    pub(super) fn thin_to_check(&self) -> u64 {
        let are_found = self.tuning().is_some() && [self.steps, self.burn_in, self.thin].contains(&None);
        if are_found { 0 } else { self.thin() }
    }

    fn step(&self) -> f64 {
        self.step.size_or(1e-3)
    }

    fn friction(&self) -> f64 {
        self.friction.unwrap_or(50.0)
    }

    /// Notes on what `step = "auto"` means beside other keys.
    pub(super) fn notes_on_step(&self) -> Vec<String> {
        let mut notes = idle_keys(self.tuning().is_some(), self.gradient, self.gradient_noise);
        if self.step == Step::Auto && self.tuning().is_none() {
            let reason = match (self.noise, self.preconditioner) {
                (false, _) => "noise = false",
                (true, Some(_)) => "preconditioner is set",
                (true, None) => "scheme = \"semi_implicit\"",
            };
            notes.push(format!("step = \"auto\" is {} here, because {reason}", self.step()));
        }
        notes
    }

    pub(super) fn dynamics(&self) -> SghmcDynamics {
        let Self { scheme, gradient_noise, noise, .. } = *self;
        SghmcDynamics { scheme, step: self.step(), friction: self.friction(), gradient_noise, noise }
    }

    fn strength(&self) -> CouplingStrength {
        strength(self.coupling, self.coupling_schedule, self.burn_in())
    }

    /// The dynamics at the smallest mass that the preconditioner allows: those of mass 1 with a longer step.
    fn stiffest_dynamics(&self) -> SghmcDynamics {
        let lightest = self.preconditioner.map_or(1.0, |preconditioner| preconditioner.floor.recip());
        SghmcDynamics { step: self.step() * lightest.sqrt(), friction: self.friction() / lightest.sqrt(), ..self.dynamics() }
    }

    /// The plan of its chains.
    pub fn plan(&self) -> CouplingPlan {
        let mass = self.center_mass;
        let friction = self.center_friction.unwrap_or(self.friction() * mass);
        CouplingPlan {
            steps: self.steps(),
            period: self.period,
            burn_in: self.burn_in(),
            thin: self.thin(),
            same_start: self.same_start,
            strength: self.strength(),
            coupling: match self.variant {
                Variant::Elastic => Coupling::Elastic(CenterDynamics::SecondOrder { mass, friction }),
                Variant::Mean => Coupling::Mean { mass, friction },
                Variant::Friction => Coupling::Friction,
            },
            extrapolate: self.extrapolate,
            sleep_ms: self.sleep_ms.clone(),
        }
    }

    /// The transition of its chains.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sghmc<F> {
        let Self { batch, gradient, preconditioner, .. } = *self;
        Sghmc { problem, batch, gradient, dynamics: self.dynamics(), preconditioner }
    }
}

impl MethodSettings for EcSghmcSettings {
    type Data = Table;

    const NAME: &'static str = "ec_sghmc";

    const SHARING: Sharing = Sharing::Replicated;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        if !self.sleep_ms.is_empty() && self.sleep_ms.len() != agents as usize {
            return Err(one_for_each_agent("sleep_ms", self.sleep_ms.len(), agents));
        }
        let (kappa, period) = (self.coupling, self.period.min(self.steps()));
        if kappa == 0.0 {
            return Ok(());
        }
        let steps = Steps::SecondOrder(self.stiffest_dynamics());
        match self.plan().coupling {
            Coupling::Elastic(center) if self.asynchronous && !asynchronous_is_stable(steps, kappa, agents, center, period) => {
                unstable(kappa, period, self.step(), "asynchronous = true")
            }
            Coupling::Elastic(center) if self.extrapolate && !extrapolation_is_stable(steps, kappa, agents, center, period) => {
                unstable(kappa, period, self.step(), "extrapolate = true")
            }
            Coupling::Mean { mass, friction } if !kicks_are_stable(steps, kappa, agents, mass, friction, period) => {
                unstable(kappa, period, self.step(), "variant = \"mean\"")
            }
            _ => Ok(()),
        }
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let draws = self.strength().draws(self.steps(), self.burn_in(), self.thin());
        ResourceEstimate { draws: Some(draws), ..needs_of(agents, parameters, self.steps(), self.period, self.batch, 6) }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        let mut notes = notes_of(self.strength(), self.variant != Variant::Elastic, agents);
        notes.extend(self.notes_on_step());
        notes
    }

    fn check(&self) -> Result<(), KeyError> {
        let Self { period, batch, .. } = *self;
        let (steps, burn_in, thin) = (self.steps(), self.burn_in(), self.thin_to_check());
        check_ess(self.ess)?;
        check_dynamics(self.dynamics(), self.preconditioner, burn_in, thin)?;
        check_steps(steps, period, batch, self.strength(), burn_in, thin)?;
        if self.plan().result_is_center(self.noise) {
            check_centers(steps, period, burn_in, thin)?;
        }
        for (name, number) in [("center_mass", Some(self.center_mass)), ("center_friction", self.center_friction)] {
            let number = number.unwrap_or(1.0);
            in_range(name, number, number.is_finite() && number > 0.0, "above 0")?;
        }
        check_sleep(&self.sleep_ms)?;
        if self.variant != Variant::Elastic {
            let elastic_only = "is possible with variant = \"elastic\" only";
            if self.preconditioner.is_some() {
                let sentence = format!("{elastic_only}: chains whose velocities are coupled must have the same masses");
                return Err(KeyError::invalid("preconditioner", sentence));
            }
            if self.asynchronous {
                return Err(KeyError::invalid("asynchronous", elastic_only));
            }
            if self.extrapolate {
                return Err(KeyError::invalid("extrapolate", elastic_only));
            }
        }
        if self.extrapolate && self.asynchronous {
            return Err(KeyError::invalid("extrapolate", "is not possible with asynchronous = true"));
        }
        if self.variant == Variant::Friction && self.scheme != Scheme::Middle {
            let sentence = "= \"semi_implicit\" gives biased velocities with variant = \"friction\". Set scheme = \"middle\"";
            return Err(KeyError::invalid("scheme", sentence));
        }
        // For a parameter that the data do not inform, only the spring acts.
        let dynamics = self.stiffest_dynamics();
        let (stiff, most) = (dynamics.step.powi(2) * self.coupling, dynamics.stability_limit());
        if self.variant == Variant::Elastic && stiff >= most {
            let masses = if self.preconditioner.is_some() { "/floor" } else { "" };
            let sentence =
                format!("= {} is unstable: step² coupling{masses} = {stiff:.3} must be below {most:.3}", self.coupling);
            return Err(KeyError::invalid("coupling", sentence));
        }
        Ok(())
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        let is_auto = self.step == Step::Auto && self.scheme == Scheme::Middle && self.preconditioner.is_none() && self.noise;
        is_auto.then_some(TuningNeeds {
            noise: Some(NoiseNeeds { batch: self.batch, share: VisitShare::ByRows, chains: None }),
            rounds: given_rounds(self.steps, self.period),
            draws: DrawCount::of_chains(self.ess, self.steps, self.burn_in, self.thin),
        })
    }

    fn tuned(&self, found: Found, agents: u32) -> Self {
        let Found::Noise(measured) = found else { return self.clone() };
        let HamiltonianSteps { batch, step, friction, gradient_noise, relaxation } =
            hamiltonian_steps(measured, self.batch, self.friction, 0.0);
        let given = (self.burn_in, self.thin);
        let Lengths { burn_in, thin, updates } =
            found_lengths(relaxation, measured.draws(self.ess), agents, given, (self.steps, self.coupling_schedule));
        let found = Self {
            steps: self.steps.or(Some(updates)),
            batch,
            step: Step::Size(step),
            friction: Some(friction),
            gradient_noise,
            gradient: Estimator::Plain,
            burn_in: Some(burn_in),
            thin: Some(thin),
            ..self.clone()
        };
        // Between exchanges, springs may not act for longer than they swing.
        let is_unstable = |coupling| Self { coupling, ..found.clone() }.check_agents(agents).is_err();
        let coupling = found_coupling(self.coupling, |coupling| step * step * (coupling + measured.curvature), is_unstable);
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
