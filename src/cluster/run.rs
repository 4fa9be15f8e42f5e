//! Carrying a method to its end: what a driver is told, what it tells, and the part of its loop that all drivers share.

use super::checkpoint::Checkpoint;
use super::context::Clock;
use super::fault::{Doing, Fault, What, guard};
use super::method::{Method, Progress};
use super::node::Node;
use super::packet::Traffic;
use super::record::{Draws, Record};
use crate::number::Number;
use crate::random::Seed;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What every driver needs to know of a run.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// What the method is called in messages and checkpoints, where that is not its own name.
    pub name: Option<&'static str>,
    /// The root of all random numbers.
    pub seed: Seed,
    /// Worker threads on each rank.
    pub threads: usize,
    /// Whether rank 0 keeps free of agents.
    pub dedicated: bool,
    /// What goes by MPI's collectives; only the MPI driver looks at it.
    pub collectives: Collectives,
    /// Where draws of agents are put on their own ranks; without it they travel to the recorder. A simulation has none.
    pub store: Option<Arc<dyn DrawStore>>,
}

impl JobOptions {
    /// One thread on each rank, agents on all of them, collectives as by default.
    pub fn new(seed: Seed) -> Self {
        Self { name: None, seed, threads: 1, dedicated: false, collectives: Collectives::default(), store: None }
    }

    /// What this method is called in the run.
    pub fn name_of<M: Method>(&self) -> &'static str {
        self.name.unwrap_or(M::NAME)
    }
}

/// Takes the draws of agents on the rank where they are made. Whoever keeps the run collects them whenever it is at rest. Draws of a
/// server do not go there: a chain must be drawn by agents alone, or by the server alone.
pub trait DrawStore: std::fmt::Debug + Send + Sync {
    /// Takes draws of an agent that lives here; called from its thread.
    ///
    /// # Errors
    /// Anything that keeps them from being kept; ends the job.
    fn put(&self, draws: Vec<Draws>) -> super::method::Result<()>;

    /// The run comes to rest: what was put since the last time must be there for the recorder. How much that is, in the store's own
    /// measure, such as bytes: the recorder is told.
    ///
    /// # Errors
    /// Anything that keeps it from being there; ends the job.
    fn flush(&self) -> super::method::Result<u64>;
}

/// How much each rank has stored since the last rest.
pub type StoredByRank = std::collections::BTreeMap<super::layout::Rank, u64>;

/// What goes by MPI's collectives rather than point-to-point. Results are the same bits either way, but for `float_sums`. The
/// defaults are what was faster where bits allow it; see [`mpi`](super::mpi).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Collectives {
    /// Requests that concern every rank.
    pub requests: RequestDelivery,
    /// Sums of integers with members on every rank that hosts agents.
    pub integer_sums: Sums,
    /// The same for floating-point numbers: bits then depend on the number of ranks.
    pub float_sums: Sums,
}

impl Default for Collectives {
    fn default() -> Self {
        Self { requests: RequestDelivery::PointToPoint, integer_sums: Sums::Allreduce, float_sums: Sums::PointToPoint }
    }
}

/// How a request reaches all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestDelivery {
    /// Along a tree of ranks.
    PointToPoint,
    /// By a broadcast that every rank has posted beforehand.
    Broadcast,
}

/// How a sum is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sums {
    /// In slices, each by one rank in agent order.
    PointToPoint,
    /// On each rank first, then by `MPI_Iallreduce`.
    Allreduce,
}

/// Who looks after a run on rank 0: keeps what is written down, saves checkpoints, shows progress.
pub trait Recorder {
    /// Takes what was written down since the last call.
    ///
    /// # Errors
    /// Anything that keeps it from being kept; ends the job.
    fn write(&mut self, records: Vec<Record>) -> super::method::Result<()>;

    /// Whether the run shall come to rest now, to be saved; by default never.
    fn wants_checkpoint(&mut self, _status: Status) -> bool {
        false
    }

    /// The run is at rest; also called when it is over. By default nothing is saved, and the run goes on. `checkpoint.records` and
    /// `checkpoint.drawn` are empty: they are the recorder's to fill.
    ///
    /// # Errors
    /// Anything that keeps the run from being saved; ends the job.
    fn on_checkpoint(&mut self, _checkpoint: Checkpoint) -> super::method::Result<AfterCheckpoint> {
        Ok(AfterCheckpoint::Continue)
    }
}

/// Keeps nothing.
impl Recorder for () {
    fn write(&mut self, _records: Vec<Record>) -> super::method::Result<()> {
        Ok(())
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// In units of the method.
    pub progress: Progress,
    /// Responses that the server has received.
    pub responses: u64,
    /// Seconds since the run began.
    pub seconds: f64,
}

/// What to do with a run at rest that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCheckpoint {
    /// Go on with it.
    Continue,
    /// End the job; the checkpoint can be resumed.
    Stop,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether the run is over, rather than saved and stopped.
    pub finished: bool,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Messages and bytes between ranks, by purpose.
    pub traffic: Traffic,
}

/// How long a waiting driver may go without asking the recorder.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The part of every driver's loop on rank 0: hands over what was written, brings the run to rest, ends it.
pub(super) fn look_after<N: Number>(
    node: &mut Node<N>,
    recorder: &mut dyn Recorder,
    clock: &Clock,
) -> Result<Option<Outcome>, Fault> {
    let method = node.method();
    let Some(hub) = node.hub() else { return Ok(None) };
    // A recorder is other people's code on the thread that carries messages: its panic must not unwind through MPI.
    let doing = Doing { method, rank: 0, agent: None, what: What::Keeping };
    clock.leave_out(hub.left_out());
    if !hub.records.is_empty() {
        let records = std::mem::take(&mut hub.records);
        guard(doing, || recorder.write(records))?;
    }
    let status = Status { progress: hub.progress, responses: hub.responses, seconds: clock.seconds() };
    if let Some(checkpoint) = hub.at_rest(clock.seconds())? {
        let (finished, seconds, traffic) = (checkpoint.finished, checkpoint.seconds, checkpoint.traffic.clone());
        let then = guard(doing, || recorder.on_checkpoint(checkpoint))?;
        if finished || then == AfterCheckpoint::Stop {
            node.stop();
            return Ok(Some(Outcome { finished, seconds, traffic }));
        }
        node.go_on()?;
    } else if guard(doing, || Ok(recorder.wants_checkpoint(status)))? {
        hub.rest();
    }
    Ok(None)
}
