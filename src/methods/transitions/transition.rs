//! The interface of transition kernels: one update of a chain on one agent's shard, for chains that travel and chains that are coupled.

use crate::cluster::{AgentId, Context, Result, Serializable};
use crate::kernels::hamiltonian::ElasticForce;
use crate::number::Real;
use crate::random::Stream;

/// How chains are updated; the value is a validated configuration.
pub trait Transition: Clone + Send + Sync + 'static {
    /// The floating-point type of chains.
    type Number: Real;
    /// The transition on the shard of an agent.
    type Local: LocalTransition<Self::Number>;

    /// d, the length of a draw.
    fn dim(&self) -> usize;

    /// The length of a chain's state: the parameters come first, then auxiliary variables such as velocities.
    fn state_len(&self) -> usize {
        self.dim()
    }

    /// Appends the draw that belongs to a chain's state: by default its first d values.
    fn keep(&self, chain: &[Self::Number], kept: &mut Vec<Self::Number>) {
        kept.extend_from_slice(&chain[..self.dim()]);
    }

    /// Writes the initial state of a chain; what is random in it comes from the stream.
    fn draw_initial(&self, chain: u64, stream: &mut Stream, state: &mut [Self::Number]);

    /// ε_t, the step size of a chain's update t; also the weight of the state after this update in posterior expectations.
    fn step(&self, update: u64) -> f64;

    /// The variance of the noise in update t, if it is the same for all coordinates and all states. With it, the variance that is lost by
    /// averaging chains can be restored.
    fn noise(&self, _update: u64) -> Option<f64> {
        None
    }

    /// The transition on an agent's shard, on the rank that hosts the agent.
    ///
    /// # Errors
    /// If the shard cannot be read or does not fit the model.
    fn open(&self, agent: AgentId) -> Result<Self::Local>;
}

/// A transition that sees one shard.
pub trait LocalTransition<N>: Send {
    /// What a resumed run needs in addition to the chains.
    type State: Serializable + Default;

    /// N_s, rows of the shard.
    fn rows(&self) -> usize;

    /// Called when a chain arrives in a round. Returns whether that took work beside the updates, such as a pass over the shard, so that the time
    /// of this visit does not measure the speed of updates.
    ///
    /// # Errors
    /// Anything that ends the job.
    fn arrive(&mut self, state: &mut Self::State, round: u64, chain: &[N], cx: &Context) -> Result<bool>;

    /// Makes an update of a chain.
    ///
    /// # Errors
    /// Anything that ends the job.
    fn update(&mut self, state: &mut Self::State, chain: &mut [N], update: Update<N>, cx: &Context) -> Result<()>;
}

/// The parameters of an update.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a, N> {
    /// The chain.
    pub chain: u32,
    /// t, the number of the chain's update.
    pub number: u64,
    /// The factor of the shard's score. For chains that travel it is 1/q_s, with q_s the share of updates that are made on this shard, or what
    /// stands for it; for coupled chains it is 1.
    pub scale: f64,
    /// An elastic force in addition to the score.
    pub pull: Option<ElasticForce<'a, N>>,
}
