//! Counter-based random numbers addressed by (seed, who, step, purpose), independent of ranks and threads.

mod minibatch;
mod normals;
mod philox;
mod stream;

pub use minibatch::Minibatch;
pub use stream::Stream;
pub(crate) use stream::mix;

/// The seed of a run: the root of all its random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Seed(pub u64);

/// The owner of a random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The whole run: initial particles, partitions of the data.
    Run,
    /// The server.
    Server,
    /// An agent, by its number.
    Agent(u32),
    /// A chain or a set of particles that moves between agents, by its number.
    Chain(u32),
}

/// The purpose of a random stream. Never renumber: a seed must keep giving the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Initial values of parameters.
    Initial = 1,
    /// Rows of minibatches.
    Minibatch = 2,
    /// Noise in a transition.
    Noise = 3,
    /// Assignment of rows to agents.
    Partition = 4,
    /// Order in which agents are visited.
    Schedule = 5,
    /// Synthetic data for examples and tests.
    Synthetic = 6,
    /// Noise shared by coupled chains.
    Coupling = 7,
    /// Whether a plan is computed again.
    Planning = 8,
    /// Nodes at which expectations are computed.
    Nodes = 9,
    /// Tokens of a document to be predicted.
    HeldOut = 10,
    /// Topics of tokens.
    Topics = 11,
    /// Topics of the observed tokens of a document whose other tokens are to be predicted.
    Completion = 12,
    /// The path of a trajectory of Hamiltonian Monte Carlo.
    Trajectory = 13,
    /// Targets that are drawn from a model.
    Predictive = 14,
}

impl Seed {
    /// The stream at an address. Streams at different addresses are independent; creating one takes nanoseconds.
    pub fn stream(self, who: Who, step: u64, purpose: Purpose) -> Stream {
        Stream::at(self, who, step, purpose)
    }
}
