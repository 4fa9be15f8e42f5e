//! Partitioned variational inference: a Gaussian that is a product of Gaussian factors, one for each agent's data (Bui, Nguyen, Swaroop &
//! Turner, arXiv 1811.11206; Kassab & Simeone, arXiv 2009.06419, section 4).
//!
//! q = N(m, Λ⁻¹) has the natural parameters η = (h = Λm, Λ), which add up over factors: η = Σ_k η_k. The server keeps the sum and sends
//! it; agent k keeps its own η_k and answers with what changed of it, so that one agent at a time, some, and all are the same thing.
//!
//! A visit approximates agent k's own log-factor ℓ_k = −L_k/α + (log p0)/K by the fixed-point iteration of its local free energy (Bui et
//! al., Property 4): with q = cavity · t_k and damping ρ,
//!
//! η_k ← (1 − ρ) η_k + ρ (E_q[∇ℓ_k] + Λ_k m, Λ_k), Λ_k = −E_q[∇²ℓ_k] = −E_q[∇ℓ_k(θ) (θ − m)ᵀ] Λ,
//!
//! the last by partial integration (Price), so that gradients are all that is asked of a model; in more than two dimensions from the
//! model's own curvature, where it tells the whole of it. Diagonal covariances keep the diagonal of
//! Λ_k. Σ_k of the fixed points is the fixed point of the global free energy: `gvi`, where all agents take one step at a time, is its
//! damped iteration on all data, however they are shared out.
//!
//! Every agent has its share of the prior in its factor, so that any p0 with an approximation will do; factors begin with shares of a
//! Gaussian that is fitted to p0 in the same way, which of a Gaussian p0 is p0 itself.
//!
//! A factor may have negative precision, as that of the right one of two modes does: only their product has to be proper. A step that
//! would shrink the product's precision below a tenth, were all that take part in the round to do the same, is shortened.

mod client;
mod gaussian;
mod nodes;
mod prior;
mod server;
pub(crate) mod settings;

pub use gaussian::{Covariance, Gaussian, Natural};
pub use nodes::{Cubature, Nodes};
pub use settings::PviSettings;

use crate::cluster::Result;
use crate::number::Real;

/// Partitioned variational inference, as a strategy of [`Federated`](crate::methods::common::federated::Federated).
#[derive(Clone, Debug, PartialEq)]
pub struct Pvi {
    /// L, the steps of a visit.
    pub iterations: u64,
    /// ρ, the share of the new in a step.
    pub damping: f64,
    /// What is kept of the covariance.
    pub covariance: Covariance,
    /// Over how many points expectations are taken; see [`Cubature::new`].
    pub nodes: Option<usize>,
    /// Rows in a minibatch; all by default.
    pub batch: Option<usize>,
    /// N, how many draws of q stand for it.
    pub particles: usize,
    /// The most agents that take part in a round.
    pub together: u32,
}

impl Pvi {
    fn natural(&self, dim: usize) -> Natural {
        Natural { covariance: self.covariance, dim }
    }

    fn cubature(&self, dim: usize) -> Result<Cubature> {
        Cubature::new(dim, self.nodes, self.covariance)
    }
}

fn double<F: Real>(numbers: &[F]) -> Vec<f64> {
    numbers.iter().map(|number| number.f64()).collect()
}
