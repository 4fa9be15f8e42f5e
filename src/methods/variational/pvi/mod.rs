//! Partitioned variational inference (PVI): q is a product of Gaussian approximate likelihood factors, one for each agent's data (Bui,
//! Nguyen, Swaroop & Turner, arXiv 1811.11206; Kassab & Simeone, arXiv 2009.06419, section 4).
//!
//! q = N(m, Λ⁻¹) has the natural parameters η = (h = Λm, Λ), which add up over factors: η = Σ_k η_k. The server keeps the sum and sends
//! it; agent k keeps its own η_k and sends the change of it. Rounds of one agent, some agents and all agents are therefore the same.
//!
//! In a round, agent k approximates its own log-factor ℓ_k = −L_k/α + (log p0)/K by the fixed-point iteration of its local free energy
//! (Bui et al., Property 4): with q = cavity distribution · t_k and damping ρ,
//!
//! η_k ← (1 − ρ) η_k + ρ (E_q[∇ℓ_k] + Λ_k m, Λ_k), Λ_k = −E_q[∇²ℓ_k] = −E_q[∇ℓ_k(θ) (θ − m)ᵀ] Λ.
//!
//! The last equality is Price's theorem: it needs gradients only. In more than two dimensions, Λ_k comes from the model's own curvature
//! if the model provides the whole matrix. Diagonal covariances keep the diagonal of Λ_k. The sum of the fixed points is the fixed point
//! of the global free energy: `gvi`, where all agents take one step in each round, is the damped iteration on all data, however rows
//! are assigned to agents.
//!
//! Every factor contains the K-th part of the log prior, so any prior can be approximated. Factors start as
//! Gaussians around the mode of the posterior, which are those of the Laplace approximation, or, where the mode is not known, as the K-th
//! root of a Gaussian that is fitted to p0 in the same way; if p0 is Gaussian, the fit is p0 itself.
//!
//! A factor may have negative precision, as the factor of one of two modes does: only the product must be proper. A step is shortened
//! if it would shrink the precision of the product below a tenth when all agents of the round take the same step.

mod agent;
mod covariance;
mod gaussian;
mod nodes;
mod server;
pub(crate) mod settings;
mod start;

pub use agent::PviAgent;
pub use covariance::Covariance;
pub use gaussian::{Gaussian, Natural};
pub use nodes::{Cubature, Nodes};
pub use settings::PviSettings;

use crate::cluster::{AgentId, Method, Raw, Result, ServerState};
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::rounds::RoundServer;
use crate::number::Real;

/// Partitioned variational inference.
#[derive(Clone)]
pub struct Pvi<F> {
    /// The model and the agents' data.
    pub problem: Problem<F>,
    /// I, the number of rounds.
    pub rounds: u64,
    /// Which agents take part in a round.
    pub schedule: Participation,
    /// L, an agent's steps in a round.
    pub iterations: u64,
    /// ρ, the weight of the new natural parameters in a step.
    pub damping: f64,
    /// Full or diagonal covariance.
    pub covariance: Covariance,
    /// Points of the cubature of expectations; see [`Cubature::new`].
    pub nodes: Option<usize>,
    /// Rows in a minibatch; `None` for all rows.
    pub batch: Option<usize>,
    /// N, the number of draws from q that represent it.
    pub particles: usize,
}

impl<F: Real> Pvi<F> {
    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn natural(&self) -> Natural {
        Natural { covariance: self.covariance, dim: self.dim() }
    }

    fn cubature(&self) -> Result<Cubature> {
        Cubature::new(self.dim(), self.nodes, self.covariance)
    }
}

impl<F: Real> Method for Pvi<F> {
    const NAME: &'static str = "pvi";
    type Number = F;
    /// The round, which counts from 1. The body holds the natural parameters of q; the report's holds the change of the factor.
    type Task = u64;
    /// The mean damping of the round's steps, below the requested one if steps were shortened.
    type Report = [f64; 1];
    type Server = RoundServer<Self>;
    type Agent = PviAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<Self>>) -> Result<RoundServer<Self>> {
        Ok(RoundServer::new(self, &self.problem, self.rounds, saved))
    }

    fn agent(&self, id: AgentId, saved: Option<Raw<F>>) -> Result<PviAgent<F>> {
        PviAgent::new(self.clone(), id, saved.unwrap_or_default())
    }
}

fn double<F: Real>(values: &[F]) -> Vec<f64> {
    values.iter().map(|value| value.f64()).collect()
}
