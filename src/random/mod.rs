//! Addressed random numbers: every draw belongs to (seed, who, step, purpose), never to a rank or a thread.

mod minibatch;
mod normals;
mod philox;
mod stream;

pub use minibatch::Minibatch;
pub use stream::Stream;

/// The seed of a run: the root of all its random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Seed(pub u64);

/// Whose random numbers they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The run as a whole: initial particles, partitions of the data.
    Run,
    /// The server.
    Server,
    /// An agent, by its number.
    Agent(u32),
    /// A chain or particle set that travels, by its number.
    Chain(u32),
}

/// What the random numbers are for. The discriminants are part of the promise that a seed gives the same bits: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Initial values of parameters.
    Initial = 1,
    /// Which rows a minibatch holds.
    Minibatch = 2,
    /// Noise that a transition adds.
    Noise = 3,
    /// Which agent owns which rows.
    Partition = 4,
    /// Who is asked next.
    Schedule = 5,
    /// Data made up for examples and tests.
    Synthetic = 6,
    /// Noise that chains share which were averaged.
    Coupling = 7,
    /// Whether something is planned anew.
    Planning = 8,
    /// Where expectations are taken.
    Nodes = 9,
    /// Which tokens of a document are to be predicted.
    HeldOut = 10,
    /// Topics of tokens.
    Topics = 11,
    /// Topics of tokens that may be seen of a document whose others are to be predicted.
    Completion = 12,
}

impl Seed {
    /// The stream at an address. Streams at different addresses are independent; making one costs nanoseconds.
    pub fn stream(self, who: Who, step: u64, purpose: Purpose) -> Stream {
        Stream::at(self, who, step, purpose)
    }
}
