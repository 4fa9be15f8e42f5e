//! One update of a chain on one agent's shard: what travelling and coupled chains are made of.

use crate::cluster::{AgentId, Context, Result, Serializable};
use crate::kernels::hamiltonian::ElasticForce;
use crate::number::Real;
use crate::random::Stream;

/// How chains are updated; the value is a validated configuration.
pub trait Transition: Clone + Send + Sync + 'static {
    /// What chains are made of.
    type Number: Real;
    /// The transition on the shard of an agent.
    type Local: LocalTransition<Self::Number>;

    /// d, numbers in a draw.
    fn dim(&self) -> usize;

    /// Numbers that travel with a chain: its draw comes first, then what the transition carries beside it.
    fn carried(&self) -> usize {
        self.dim()
    }

    /// Appends what a draw of a chain's state is: by default its first d numbers as they are.
    fn keep(&self, chain: &[Self::Number], kept: &mut Vec<Self::Number>) {
        kept.extend_from_slice(&chain[..self.dim()]);
    }

    /// A chain's first state, into `carried` numbers.
    fn draw_initial(&self, stream: &mut Stream, chain: &mut [Self::Number]);

    /// ε_t, the step size of a chain's update t: what a draw counts in expectations.
    fn step(&self, update: u64) -> f64;

    /// The variance of the noise that update t adds to every number that travels, where it is the same for all of them and whatever the
    /// state: what averaging chains takes away can then be given back.
    fn noise(&self, _update: u64) -> Option<f64> {
        None
    }

    /// The transition on an agent's shard, on the rank that hosts the agent.
    ///
    /// # Errors
    /// Where the shard cannot be read, or its rows are none for the model.
    fn open(&self, agent: AgentId) -> Result<Self::Local>;
}

/// A transition that sees one shard.
pub trait LocalTransition<N>: Send {
    /// What a resumed run needs of it beside the chains.
    type State: Serializable + Default;

    /// N_s, rows of the shard.
    fn rows(&self) -> usize;

    /// A chain has come, in this round; whether that took time that is none of its updates.
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

/// Which update is made.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a, N> {
    /// The chain.
    pub chain: u32,
    /// t, its count of updates.
    pub number: u64,
    /// What the score of the shard is multiplied by: 1/q_s.
    pub scale: f64,
    /// What draws the chain beside its posterior.
    pub pull: Option<ElasticForce<'a, N>>,
}
