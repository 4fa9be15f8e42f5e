//! What coupled chains are made of: a transition, a kind of coupling, and a plan of steps, periods and draws.

use super::center::CenterDynamics;
use super::strength::{CouplingSchedule, CouplingStrength};
use crate::methods::transitions::sgd::Sgd;
use crate::methods::transitions::sghmc::Sghmc;
use crate::methods::transitions::sgld::Sgld;
use crate::methods::transitions::transition::Transition;
use crate::number::Real;
use std::ops::Range;

/// Transitions that can be coupled.
pub trait CoupledTransition: Transition {
    /// The continuous time that an update simulates.
    fn time(&self) -> f64;

    /// Whether noise is added. Without it the center gets none either.
    fn noisy(&self) -> bool;

    /// The range of the velocities in a chain's state, if it has velocities of mass 1.
    fn velocities(&self) -> Option<Range<usize>>;
}

impl<F: Real> CoupledTransition for Sghmc<F> {
    fn time(&self) -> f64 {
        self.dynamics.step
    }

    fn noisy(&self) -> bool {
        self.dynamics.noise
    }

    fn velocities(&self) -> Option<Range<usize>> {
        self.preconditioner.is_none().then(|| self.dim()..2 * self.dim())
    }
}

impl<F: Real> CoupledTransition for Sgld<F> {
    /// Half of the step size: noise of variance ε belongs to the time ε/2.
    fn time(&self) -> f64 {
        0.5 * self.step.at(0)
    }

    fn noisy(&self) -> bool {
        true
    }

    fn velocities(&self) -> Option<Range<usize>> {
        None
    }
}

impl<F: Real> CoupledTransition for Sgd<F> {
    fn time(&self) -> f64 {
        self.step
    }

    fn noisy(&self) -> bool {
        false
    }

    fn velocities(&self) -> Option<Range<usize>> {
        None
    }
}

/// How chains are coupled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coupling {
    /// Each chain to the center by a spring.
    Elastic(CenterDynamics),
    /// The center to the mean of the chains: H = Σ_i H_i + ½ M_c uᵀu + (κK/2) ‖c − θ̄‖². The mean gets a kick at every exchange.
    Mean {
        /// M_c.
        mass: f64,
        /// C.
        friction: f64,
    },
    /// Velocities to their mean, by friction and its noise, which keeps the chains independent. At every exchange
    /// v_i − v̄ ← e^(−κT) (v_i − v̄) + (1 − e^(−2κT))^½ (ξ_i − ξ̄), with T the time of its steps. There is no center.
    Friction,
    /// By exchanges alone: θ_i ← θ_i − a (θ_i − c) and c ← c + a Σ (θ_i − c), which conserve Σ_i θ_i + c (Zhang, Choromanska & LeCun 2015,
    /// "Deep learning with elastic averaging SGD"). An optimizer: the result is the center.
    Average {
        /// a.
        rate: f64,
    },
}

/// How long chains run, what is kept of them, and how they are coupled.
#[derive(Clone, Debug, PartialEq)]
pub struct CouplingPlan {
    /// Steps of each chain.
    pub steps: u64,
    /// s, steps between exchanges.
    pub period: u64,
    /// Steps before the first draw.
    pub burn_in: u64,
    /// Every `thin`-th step after burn-in that may be a draw is kept; 0 keeps none.
    pub thin: u64,
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// κ.
    pub strength: CouplingStrength,
    /// How chains are coupled.
    pub coupling: Coupling,
    /// Whether chains extrapolate the center with its velocity between exchanges.
    pub extrapolate: bool,
    /// Milliseconds that each agent sleeps per step, to imitate slow machines.
    pub sleep_ms: Vec<f64>,
}

impl CouplingPlan {
    /// The number of periods.
    pub(super) fn periods(&self) -> u64 {
        self.steps.div_ceil(self.period)
    }

    /// The first step of a period, and its number of steps.
    pub(super) fn steps_of(&self, period: u64) -> (u64, u64) {
        let first = period * self.period;
        (first, self.period.min(self.steps - first))
    }

    /// Whether chains are coupled in a period; false after the last.
    pub(super) fn is_coupled(&self, period: u64) -> bool {
        let (first, steps) = if period < self.periods() { self.steps_of(period) } else { return false };
        self.strength.is_active(first, steps)
    }

    /// κ of a coupled period; while κ falls, its value at the first step.
    pub(super) fn coupling_of(&self, first: u64, steps: u64) -> f64 {
        match self.strength.schedule {
            CouplingSchedule::Cyclic { .. } if self.strength.is_active(first, steps) => self.strength.full,
            CouplingSchedule::Cyclic { .. } | CouplingSchedule::Constant | CouplingSchedule::Anneal { .. } => {
                self.strength.at(first)
            }
        }
    }

    /// Whether the result is the center instead of the chains: chains without noise descend to a mode and stay coupled to the center.
    pub(in crate::methods) fn result_is_center(&self, noisy: bool) -> bool {
        match self.coupling {
            Coupling::Average { .. } => true,
            Coupling::Elastic(_) => !noisy && self.strength.full > 0.0 && self.strength.schedule == CouplingSchedule::Constant,
            Coupling::Mean { .. } | Coupling::Friction => false,
        }
    }

    /// ρ, the factor by which the friction of a coupled period reduces a difference of velocities.
    pub(super) fn friction_factor(&self, first: u64, steps: u64, time: f64) -> f64 {
        (-self.coupling_of(first, steps) * time * steps as f64).exp()
    }
}

/// K chains, each at its own agent.
#[derive(Clone)]
pub struct CoupledChains<T> {
    /// K.
    pub agents: u32,
    /// How chains are updated.
    pub transition: T,
    /// How long they run and how they are coupled.
    pub plan: CouplingPlan,
    /// Whether each chain exchanges with the center on its own time.
    pub asynchronous: bool,
}
