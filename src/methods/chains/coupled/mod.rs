//! The engine of coupled chains: every agent runs a chain on all data, alone or coupled to a center variable at the server.
//!
//! H = Σ_i [U(θ_i) + ½ v_iᵀM v_i] + ½ M_c uᵀu + (κ/2) Σ_i ‖θ_i − c‖² (Springenberg, Klein, Falkner & Hutter 2016, "Asynchronous stochastic
//! gradient MCMC with elastic coupling"). Every s steps chain i sends θ_i. The center moves for the time of these steps with the chains
//! fixed, by the exact solution of its linear dynamics; then the chain makes s steps with the center fixed. Both parts leave the joint
//! distribution invariant: with synchronous chains a large s slows mixing but causes no bias. The scheme of the paper uses both values a
//! period late; its stationary distribution depends on s, and it has resonances.
//!
//! The marginal of a chain under the joint distribution is not the posterior p. With the center integrated out,
//! π(θ_1..θ_K) ∝ Π_i p(θ_i) exp(−(κ/2) Σ_i ‖θ_i − θ̄‖²). For a Gaussian p with precision Λ, Cov θ_i = Λ⁻¹/K + (K − 1)/K (Λ + κI)⁻¹, and
//! Cov θ̄ = Λ⁻¹/K. Three kinds of coupling leave p invariant: κ that falls to 0 or is switched on and off ([`CouplingSchedule`]), a force
//! on the mean alone ([`Coupling::Mean`]), and coupled friction ([`Coupling::Friction`]).

mod agent;
mod center;
mod plan;
mod server;
pub(in crate::methods) mod settings;
pub(in crate::methods) mod stability;
mod strength;
mod task;

pub use center::{CenterDynamics, Flow};
pub use plan::{CoupledChains, CoupledTransition, Coupling, CouplingPlan};
pub use server::SPREAD;
pub use strength::{CouplingSchedule, CouplingStrength};
pub use task::{Period, Task};

use crate::cluster::{AgentId, Method, Order, Result};
use agent::{AgentStateOf, CoupledAgent};
use server::{CoupledServer, ServerState};

impl<T: CoupledTransition> Method for CoupledChains<T> {
    const NAME: &'static str = "coupled_chains";
    type Number = T::Number;
    type Task = Task;
    /// |θ|², if the task asks for it.
    type Report = f64;
    type Server = CoupledServer<T>;
    type Agent = CoupledAgent<T>;

    fn order(&self) -> Order {
        if self.asynchronous { Order::Arrival } else { Order::Posted }
    }

    fn agents(&self) -> u32 {
        self.agents
    }

    fn server(&self, saved: Option<ServerState<T::Number>>) -> Result<CoupledServer<T>> {
        Ok(CoupledServer::new(self, saved))
    }

    fn agent(&self, id: AgentId, saved: Option<AgentStateOf<T>>) -> Result<CoupledAgent<T>> {
        CoupledAgent::new(self.transition.clone(), self.plan.clone(), id, saved)
    }
}
