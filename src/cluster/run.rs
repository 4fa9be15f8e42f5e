//! The recorder of a run on rank 0, and the part of the event loop that all drivers share.

use super::checkpoint::Checkpoint;
use super::context::Clock;
use super::fault::{Action, Activity, Fault, Result, guard};
use super::method::Progress;
use super::node::Node;
use super::packet::Traffic;
use super::record::Record;
use super::timeline::Doing;
use crate::number::Number;
use std::time::{Duration, Instant};

/// Records a run on rank 0: stores rows and draws, saves checkpoints, shows progress.
pub trait Recorder {
    /// Takes the records since the last call.
    ///
    /// # Errors
    /// If they cannot be stored; ends the job.
    fn write(&mut self, records: Vec<Record>) -> Result<()>;

    /// Whether to take a checkpoint now; by default never.
    ///
    /// # Errors
    /// If the run can no longer be recorded; ends the job.
    fn wants_checkpoint(&mut self, _status: Status) -> Result<bool> {
        Ok(false)
    }

    /// Called with every checkpoint, and with a last one when the run is over. By default nothing is saved and the run continues.
    /// The recorder fills `checkpoint.records` and `checkpoint.recorded_draws`, which are empty.
    ///
    /// # Errors
    /// If the run cannot be saved; ends the job.
    fn on_checkpoint(&mut self, _checkpoint: Checkpoint) -> Result<AfterCheckpoint> {
        Ok(AfterCheckpoint::Continue)
    }
}

/// Records nothing.
impl Recorder for () {
    fn write(&mut self, _records: Vec<Record>) -> Result<()> {
        Ok(())
    }
}

/// The current state of a run.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// In units of the method.
    pub progress: Progress,
    /// Responses that the server has received.
    pub responses: u64,
    /// Seconds since the run began.
    pub seconds: f64,
    /// The longest time from a request to its response so far in this job.
    pub longest_response: f64,
}

/// What to do after a checkpoint of a run that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCheckpoint {
    /// Continue the run.
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

/// The longest time between two calls of a recorder while a driver waits.
pub(super) const RECORDER_INTERVAL: Duration = Duration::from_millis(100);

/// Less time for records is spent on memory, not on files.
const SHORTEST_SAVE: Duration = Duration::from_millis(1);

/// The part of every driver's loop on rank 0: hands records to the recorder, takes checkpoints, ends the run.
pub(super) fn serve_recorder<N: Number>(
    node: &mut Node<N>,
    recorder: &mut dyn Recorder,
    clock: &Clock,
) -> Result<Option<Outcome>, Fault> {
    let method = node.method();
    let Some(coordinator) = node.coordinator() else { return Ok(None) };
    // A recorder is foreign code on the thread that calls MPI: its panic must not unwind through MPI.
    let activity = Activity { method, rank: 0, agent: None, action: Action::Recording };
    clock.exclude(coordinator.excluded());
    if !coordinator.records.is_empty() {
        let records = std::mem::take(&mut coordinator.records);
        let since = Instant::now();
        guard(activity, || recorder.write(records))?;
        if since.elapsed() >= SHORTEST_SAVE {
            node.note_saving(Doing::Recording, since);
        }
    }
    let Some(coordinator) = node.coordinator() else { return Ok(None) };
    let status = Status {
        progress: coordinator.progress,
        responses: coordinator.responses,
        seconds: clock.seconds(),
        longest_response: coordinator.longest_response(),
    };
    if let Some(checkpoint) = coordinator.take_checkpoint(clock.seconds())? {
        let (finished, seconds, traffic) = (checkpoint.finished, checkpoint.seconds, checkpoint.traffic.clone());
        let since = Instant::now();
        let next = guard(activity, || recorder.on_checkpoint(checkpoint))?;
        node.note_saving(Doing::Recording, since);
        if finished || next == AfterCheckpoint::Stop {
            node.stop();
            return Ok(Some(Outcome { finished, seconds, traffic }));
        }
        node.resume()?;
    } else {
        let since = Instant::now();
        if guard(activity, || recorder.wants_checkpoint(status))? {
            coordinator.drain();
        }
        // It may have waited for a save.
        if since.elapsed() >= SHORTEST_SAVE {
            node.note_saving(Doing::Recording, since);
        }
    }
    Ok(None)
}
