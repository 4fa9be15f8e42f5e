//! The No-U-Turn Sampler on the data of all agents: Hamiltonian Monte Carlo without bias from minibatches or step sizes, as a reference for
//! other methods.
//!
//! The server moves the chains; agents return the loss of their rows and its gradient at the positions of all chains, once for each
//! leapfrog step. Each request advances all chains by a leapfrog step; they may be at different places of their trajectories.

mod adaptation;
mod chain;
mod server;
mod settings;
mod trajectory;

pub use chain::Adaptation;
pub use server::{HmcServer, SAMPLE_STATS, SAMPLE_STATS_GROUP};
pub use settings::HmcSettings;
pub use trajectory::MAX_DOUBLINGS;

use crate::cluster::{Agent, AgentId, Body, Context, Method, Result, SerializesAs, ServerState};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use ndarray::{Array2, ArrayView2};

/// The No-U-Turn Sampler.
#[derive(Clone)]
pub struct Hmc<F> {
    /// The model and the agents' data.
    pub problem: Problem<F>,
    /// The number of chains.
    pub chains: u32,
    /// Draws of each chain.
    pub draws: u64,
    /// How chains adapt step sizes and variances.
    pub adaptation: Adaptation,
}

impl<F: Real> Method for Hmc<F> {
    const NAME: &'static str = "hmc";
    type Number = F;
    type Task = ();
    /// The losses at all positions, in double precision also where scores are not.
    type Report = Vec<f64>;
    type Server = HmcServer<F>;
    type Agent = HmcAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<Self>>) -> Result<HmcServer<F>> {
        Ok(HmcServer::new(self.clone(), saved))
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<HmcAgent<F>> {
        Ok(HmcAgent { loss: self.problem.open(id, usize::MAX)?, dim: self.problem.model.dim() })
    }
}

/// Computes the loss of an agent's rows and its gradient.
pub struct HmcAgent<F> {
    loss: LocalLoss<F>,
    dim: usize,
}

impl<F: Real> Agent<Hmc<F>> for HmcAgent<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, _task: &(), body: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)> {
        let positions = ArrayView2::from_shape((body.len() / self.dim, self.dim), &body)?;
        let (mut losses, mut scores) = (vec![0.0; positions.nrows()], Array2::zeros(positions.dim()));
        self.loss.loss(positions, 0, &mut losses, cx);
        self.loss.add_score(positions, 0, scores.view_mut(), cx);
        Ok((losses, scores.into_raw_vec_and_offset().0.into()))
    }
}
