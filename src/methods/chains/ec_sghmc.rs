//! EC-SGHMC: chains of stochastic gradient Hamiltonian Monte Carlo with elastic coupling to a center variable.

use crate::kernels::hamiltonian::{Scheme, SghmcDynamics};
use crate::methods::chains::coupled::settings::{
    check_centers, check_dynamics, check_steps, coupled_method, needs_of, notes_of, strength, unstable,
};
use crate::methods::chains::coupled::stability::{Steps, asynchronous_is_stable, extrapolation_is_stable, kicks_are_stable};
use crate::methods::chains::coupled::{CenterDynamics, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::methods::common::settings::{
    MethodSettings, ResourceEstimate, Sharing, Table, TableMethod, check_sleep, one_for_each_agent,
};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sghmc::{Preconditioner, Sghmc};
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `ec_sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EcSghmcSettings {
    /// Steps of each chain. Every agent runs a chain on all data.
    pub steps: u64,
    /// Steps between exchanges with the center (s).
    pub period: u64,
    /// Rows in a minibatch, drawn anew for every step.
    pub batch: usize,
    /// Step size (ε); its square is what others call the learning rate.
    pub step: f64,
    /// Rate at which velocities decay (V); step · friction is what others call momentum decay.
    pub friction: f64,
    /// Strength of the springs between chains and center (κ).
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
    /// Half of step · the variance of the scores of minibatches (B̂), by which the added noise is reduced; 0 if unknown.
    pub gradient_noise: f64,
    /// `{ burn_in = 1000, decay = 0.99, floor = 1.0 }` adapts masses to the size of the scores in the first `burn_in` steps. Off by default.
    pub preconditioner: Option<Preconditioner>,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that period on corrects the score of a minibatch by
    /// the score at a fixed point.
    pub gradient: Estimator,
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// Steps of each chain before its first draw.
    pub burn_in: u64,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws.
    pub thin: u64,
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
            steps: 10_000,
            period: 8,
            batch: 100,
            step: 1e-3,
            friction: 50.0,
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
            burn_in: 2000,
            thin: 10,
            sleep_ms: Vec::new(),
        }
    }
}

impl EcSghmcSettings {
    fn dynamics(&self) -> SghmcDynamics {
        let Self { scheme, step, friction, gradient_noise, noise, .. } = *self;
        SghmcDynamics { scheme, step, friction, gradient_noise, noise }
    }

    fn strength(&self) -> CouplingStrength {
        strength(self.coupling, self.coupling_schedule, self.burn_in)
    }

    /// The dynamics at the smallest mass that the preconditioner allows: those of mass 1 with a longer step.
    fn stiffest_dynamics(&self) -> SghmcDynamics {
        let lightest = self.preconditioner.map_or(1.0, |preconditioner| preconditioner.floor.recip());
        SghmcDynamics { step: self.step * lightest.sqrt(), friction: self.friction / lightest.sqrt(), ..self.dynamics() }
    }

    /// The plan of its chains.
    pub fn plan(&self) -> CouplingPlan {
        let mass = self.center_mass;
        let friction = self.center_friction.unwrap_or(self.friction * mass);
        CouplingPlan {
            steps: self.steps,
            period: self.period,
            burn_in: self.burn_in,
            thin: self.thin,
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
        let (kappa, period) = (self.coupling, self.period.min(self.steps));
        if kappa == 0.0 {
            return Ok(());
        }
        let steps = Steps::SecondOrder(self.stiffest_dynamics());
        match self.plan().coupling {
            Coupling::Elastic(center) if self.asynchronous && !asynchronous_is_stable(steps, kappa, agents, center, period) => {
                unstable(kappa, period, self.step, "asynchronous = true")
            }
            Coupling::Elastic(center) if self.extrapolate && !extrapolation_is_stable(steps, kappa, agents, center, period) => {
                unstable(kappa, period, self.step, "extrapolate = true")
            }
            Coupling::Mean { mass, friction } if !kicks_are_stable(steps, kappa, agents, mass, friction, period) => {
                unstable(kappa, period, self.step, "variant = \"mean\"")
            }
            _ => Ok(()),
        }
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        needs_of(agents, parameters, self.steps, self.period, self.batch, 6)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        notes_of(self.strength(), self.variant != Variant::Elastic, agents)
    }

    fn check(&self) -> Result<(), KeyError> {
        let Self { steps, period, batch, burn_in, thin, .. } = *self;
        check_steps(steps, period, batch, self.strength(), burn_in, thin)?;
        check_dynamics(self.dynamics(), self.preconditioner, burn_in, thin)?;
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

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let (agents, plan) = (problem.agents, self.plan());
        let transition = self.transition(problem);
        coupled_method(self.asynchronous, agents, transition, plan)
    }
}
