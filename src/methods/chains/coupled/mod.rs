//! Chains that stay at their agents and see all data, alone or coupled elastically to a center variable at the server.
//!
//! H = Σ_i [U(θ_i) + ½ v_iᵀM v_i] + ½ M_c uᵀu + (κ/2) Σ_i ‖θ_i − c‖² (Springenberg, Klein, Falkner & Hutter 2016, "Asynchronous stochastic
//! gradient MCMC with elastic coupling"). Every s steps chain i sends θ_i; the center moves for the time of these steps with the chains
//! where they are, by the exact law of its linear dynamics, and the chain then makes s steps with the center where that is. Each of
//! both leaves the joint law as it is: with all chains at once (synchronously) s costs mixing, not correctness. The steps of the paper
//! use both a period late, which has a law of its own for each s, and resonances.
//!
//! The joint law is not what one chain shall have: with the center integrated out, π(θ_1..θ_K) ∝ Π_i p(θ_i) exp(−(κ/2) Σ_i ‖θ_i − θ̄‖²).
//! For a Gaussian p with precision Λ, Cov θ_i = Λ⁻¹/K + (K − 1)/K (Λ + κI)⁻¹, and Cov θ̄ = Λ⁻¹/K. What keeps p: κ that falls to 0
//! or comes and goes ([`CouplingSchedule`]), a force on the mean alone ([`Coupling::Mean`]), and coupled friction ([`Coupling::Friction`]).

mod agent;
mod center;
mod server;
pub(in crate::methods) mod settings;
pub(in crate::methods) mod stability;
mod strength;

pub use center::{CenterDynamics, Flow};
pub use strength::{CouplingSchedule, CouplingStrength};

use crate::cluster::{AgentId, Method, Order, Result};
use crate::methods::transitions::sgd::Sgd;
use crate::methods::transitions::sghmc::Sghmc;
use crate::methods::transitions::sgld::Sgld;
use crate::methods::transitions::transition::{LocalTransition, Transition};
use crate::number::Real;
use agent::{AgentState, ElasticAgent};
use serde::{Deserialize, Serialize};
use server::{ElasticServer, ServerState};
use std::ops::Range;

/// The column of the history that tells how far apart coupled chains are: the root mean square of a parameter about their mean.
pub const SPREAD: &str = "spread_of_chains";

/// Transitions that can be coupled.
pub trait Coupled: Transition {
    /// The continuous time of an update.
    fn time(&self) -> f64;

    /// Whether noise is added: without, the center has none either.
    fn noisy(&self) -> bool;

    /// Where velocities lie among the numbers that a chain carries, where it has any and their mass is 1.
    fn velocities(&self) -> Option<Range<usize>>;
}

impl<F: Real> Coupled for Sghmc<F> {
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

impl<F: Real> Coupled for Sgld<F> {
    /// Half of the step size: noise of variance ε is that of the time ε/2.
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

impl<F: Real> Coupled for Sgd<F> {
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
    /// Each to the center.
    Elastic(CenterDynamics),
    /// The center to the mean of the chains: H = Σ_i H_i + ½ M_c uᵀu + (κK/2) ‖c − θ̄‖², whose chains are independent. A kick at every
    /// exchange.
    Mean {
        /// M_c.
        mass: f64,
        /// C.
        friction: f64,
    },
    /// Velocities to their mean, by friction with its noise, which leaves the chains independent in law: at every exchange
    /// v_i − v̄ ← e^(−κT) (v_i − v̄) + (1 − e^(−2κT))^½ (ξ_i − ξ̄) with T the time of its steps. There is no center.
    Friction,
    /// By exchanges alone, θ_i ← θ_i − a (θ_i − c) and c ← c + a Σ (θ_i − c), which keep Σ_i θ_i + c (Zhang, Choromanska & LeCun 2015, "Deep
    /// learning with elastic averaging SGD"). It descends: the center is what comes out.
    Average {
        /// a.
        rate: f64,
    },
}

/// What chains do.
#[derive(Clone, Debug, PartialEq)]
pub struct CouplingPlan {
    /// Steps of each chain.
    pub steps: u64,
    /// s, steps between exchanges.
    pub period: u64,
    /// Steps before those that draws are taken of.
    pub burn_in: u64,
    /// Of the steps after those that may be draws every so-many-th is kept; 0 for none.
    pub thin: u64,
    /// Whether all chains begin in the same place.
    pub same_start: bool,
    /// κ.
    pub strength: CouplingStrength,
    /// How chains are coupled.
    pub coupling: Coupling,
    /// Whether chains follow the center's velocity between exchanges, from where it was at the last.
    pub extrapolate: bool,
    /// Milliseconds that each agent sleeps for a step: slow machines for experiments.
    pub sleep_ms: Vec<f64>,
}

impl CouplingPlan {
    /// How many periods there are.
    fn periods(&self) -> u64 {
        self.steps.div_ceil(self.period)
    }

    /// The first step of a period, and its steps.
    fn stretch(&self, period: u64) -> (u64, u64) {
        let first = period * self.period;
        (first, self.period.min(self.steps - first))
    }

    /// Whether chains are coupled in a period; not behind the last.
    fn acts(&self, period: u64) -> bool {
        let (first, steps) = if period < self.periods() { self.stretch(period) } else { return false };
        self.strength.acts(first, steps)
    }

    /// κ of a period that is coupled: where it falls, that of its first step.
    fn coupling_in(&self, first: u64, steps: u64) -> f64 {
        match self.strength.schedule {
            CouplingSchedule::Cyclic { .. } if self.strength.acts(first, steps) => self.strength.full,
            CouplingSchedule::Cyclic { .. } | CouplingSchedule::Constant | CouplingSchedule::Anneal { .. } => {
                self.strength.at(first)
            }
        }
    }

    /// Whether the center is what comes out, not the chains: where these descend to a mode and stay coupled to it.
    pub(in crate::methods) fn shows_center(&self, noisy: bool) -> bool {
        match self.coupling {
            Coupling::Average { .. } => true,
            Coupling::Elastic(_) => !noisy && self.strength.full > 0.0 && self.strength.schedule == CouplingSchedule::Constant,
            Coupling::Mean { .. } | Coupling::Friction => false,
        }
    }

    /// What is left of a difference of velocities after the friction of a period (ρ), in which chains are coupled.
    fn left_by_friction(&self, first: u64, steps: u64, time: f64) -> f64 {
        (-self.coupling_in(first, steps) * time * steps as f64).exp()
    }
}

/// K chains, each at an agent of its own, all at once or each on its own time.
#[derive(Clone)]
pub struct Elastic<T> {
    /// K.
    pub agents: u32,
    /// How chains are updated.
    pub transition: T,
    /// What they do.
    pub plan: CouplingPlan,
    /// Whether each chain exchanges with the center on its own time.
    pub asynchronous: bool,
}

/// What an agent is asked to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Begin the chain, and tell what the first exchange needs.
    Begin,
    /// Make the steps of a period.
    Run(Period),
}

impl Task {
    /// How many updates an agent is asked for: what a simulated cluster needs to know.
    pub fn updates(&self) -> u64 {
        match self {
            Self::Begin => 0,
            Self::Run(period) => period.steps,
        }
    }
}

/// Some steps of a chain between two exchanges.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Period {
    /// Its number, from 0.
    number: u64,
    steps: u64,
    /// Whether the server wants to see the chain's position.
    shown: bool,
    /// Whether it wants to know how far from the origin the chain is.
    measured: bool,
}

impl<T: Coupled> Method for Elastic<T> {
    const NAME: &'static str = "elastic";
    type Number = T::Number;
    type Task = Task;
    /// |θ|², where it was wanted.
    type Report = f64;
    type Server = ElasticServer<T>;
    type Agent = ElasticAgent<T>;

    fn order(&self) -> Order {
        if self.asynchronous { Order::Arrival } else { Order::Posted }
    }

    fn agents(&self) -> u32 {
        self.agents
    }

    fn server(&self, saved: Option<ServerState<T::Number>>) -> Result<ElasticServer<T>> {
        Ok(ElasticServer::new(self, saved))
    }

    fn agent(&self, id: AgentId, saved: Option<AgentStateOf<T>>) -> Result<ElasticAgent<T>> {
        ElasticAgent::new(self.transition.clone(), self.plan.clone(), id, saved)
    }
}

/// The state of an agent with this transition.
type AgentStateOf<T> =
    AgentState<<T as Transition>::Number, <<T as Transition>::Local as LocalTransition<<T as Transition>::Number>>::State>;
