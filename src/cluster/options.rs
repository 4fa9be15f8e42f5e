//! The options of a job: seed, threads, use of MPI collectives, and where draws are stored.

use super::fault::Result;
use super::record::{DrawBlock, StoredDraws};
use super::states::StateStore;
use super::timeline::Timeline;
use crate::random::Seed;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What every driver needs to know about a run.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// The root of all random numbers.
    pub seed: Seed,
    /// Worker threads on each rank.
    pub threads: usize,
    /// Whether rank 0 hosts no agents.
    pub dedicated: bool,
    /// Use of MPI's collectives; other drivers ignore it.
    pub collectives: Collectives,
    /// Stores the draws of agents on their own ranks; without it they are sent to the recorder. Simulations ignore it.
    pub store: Option<Arc<dyn DrawStore>>,
    /// Stores the states of agents on their own ranks at a checkpoint; without it they are gathered on rank 0. Simulations ignore it.
    pub states: Option<Arc<dyn StateStore>>,
    /// Takes the spans of time of this process. Simulations ignore it.
    pub timeline: Option<Arc<Timeline>>,
}

impl JobOptions {
    /// One thread on each rank, agents on all ranks, default collectives, no stores.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            threads: 1,
            dedicated: false,
            collectives: Collectives::default(),
            store: None,
            states: None,
            timeline: None,
        }
    }

    /// The same for a method whose draws and states are not kept.
    pub fn without_stores(&self) -> Self {
        Self { store: None, states: None, ..self.clone() }
    }
}

/// Stores the draws of agents on the rank that made them; the recorder collects them at every checkpoint. Draws of a server are not
/// stored here: a chain must be drawn entirely by agents or entirely by the server.
pub trait DrawStore: std::fmt::Debug + Send + Sync {
    /// Takes draws of an agent on this rank; called from the agent's thread. Returns draws for which there is no room at present, of this or
    /// an earlier call: they are sent to the recorder.
    ///
    /// # Errors
    /// If they cannot be stored; ends the job.
    fn put(&self, draws: Vec<DrawBlock>) -> Result<Vec<DrawBlock>>;

    /// Makes everything that was put since the last call available to the recorder.
    ///
    /// # Errors
    /// If it cannot be made available; ends the job.
    fn flush(&self) -> Result<Flushed>;
}

/// What is in a store when it was flushed.
#[derive(Debug, Default)]
pub struct Flushed {
    /// All that the recorder has perhaps not collected yet.
    pub stored: Vec<StoredDraws>,
    /// Draws for which there is no room at present.
    pub unstored: Vec<DrawBlock>,
}

/// Which communication uses MPI's collectives rather than point-to-point messages. Only `float_sums` affects the bits of results. The
/// defaults are the faster choice wherever the bits allow it; see [`mpi`](super::mpi).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, documented::DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Collectives {
    /// Requests to agents on every rank.
    pub requests: RequestDelivery,
    /// Sums of integers with members on every rank that hosts agents.
    pub integer_sums: IntegerSums,
    /// The same for floating-point numbers; with `allreduce`, bits depend on the number of ranks.
    pub float_sums: Sums,
}

impl Default for Collectives {
    fn default() -> Self {
        Self { requests: RequestDelivery::PointToPoint, integer_sums: IntegerSums::Auto, float_sums: Sums::PointToPoint }
    }
}

/// How a request reaches all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestDelivery {
    /// Along a tree of ranks.
    PointToPoint,
    /// By a broadcast that every rank has posted in advance.
    Broadcast,
}

/// How a sum of integers is computed. The bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntegerSums {
    /// By all-reduce, but by messages, which leave out zeros, if that makes them much shorter: on one host only for large sums.
    Auto,
    /// By messages along trees of ranks.
    PointToPoint,
    /// On each rank first, then by `MPI_Iallreduce`.
    Allreduce,
}

/// How a sum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sums {
    /// By messages along trees of ranks, in an order that depends on the numbers of the agents alone.
    PointToPoint,
    /// On each rank first, then by `MPI_Iallreduce`.
    Allreduce,
}
