//! The time that a run will take on a number of ranks: a part of it is carried out here, on virtual ranks.

use super::error::JobError;
use super::ranks::{Ranks, VirtualRanks};
use super::start::start;
use crate::cluster::Progress;
use crate::cluster::simulate::{Load, Network};
use crate::config::{Registry, Run};
use crate::results::{self, Reporting, RunFolder};
use crossbeam_channel::RecvTimeoutError;
use std::cell::RefCell;
use std::time::Duration;

/// The network that is assumed if nothing else is known: messages take ten microseconds, and a rank sends and receives a gigabyte per second.
pub const LATENCY: f64 = 10e-6;
/// See [`LATENCY`].
pub const BANDWIDTH: f64 = 1e9;
/// Seconds that a rank takes to send or to receive a message besides these: measured by `cargo bench --bench messages`.
pub const MESSAGE_OVERHEAD: f64 = 2e-6;

/// What a part of a run has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Seconds of the whole run on the ranks; none if not a single round was finished.
    pub seconds: Option<f64>,
    /// How many agents work at the same time, on average; NaN if not a single round was finished.
    pub busy_agents: f64,
    /// The most that a rank sends and receives for one request.
    pub load: Load,
    /// Rounds that were carried out.
    pub done: u64,
    /// Rounds of the whole run.
    pub total: u64,
    /// Bytes of the last checkpoint; 0 if none was written, or the run has finished, which deletes it.
    pub checkpoint: u64,
}

/// Carries out the run on virtual ranks for about this long, in a folder that is deleted afterwards.
///
/// # Errors
/// Anything that is wrong with the run or its data.
pub fn forecast(run: &Run, registry: &Registry, network: Network, threads: usize, limit: Duration) -> Result<Forecast, JobError> {
    let mut run = run.clone();
    match &mut run {
        Run::Table(run) => {
            run.cluster.threads = threads;
            // What is computed once, after the last round, must not be extrapolated.
            (run.evaluate.bias, run.evaluate.pointwise) = (false, false);
        }
        Run::Corpus(run) => run.cluster.threads = threads,
    }
    let place = tempfile::tempdir().map_err(JobError::TemporaryFolder)?;
    // The timer ends when the sender is dropped.
    let (until_end, end) = crossbeam_channel::bounded::<()>(0);
    let timer = std::thread::spawn(move || {
        let is_late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if is_late {
            results::ask_to_stop();
        }
        is_late
    });
    let virtual_ranks = VirtualRanks { network, parts: RefCell::default() };
    let mut folder = RunFolder::new(place.path(), Duration::MAX, Reporting::Quiet);
    let outcome = start(&run, registry, &Ranks::Virtual(&virtual_ranks), &mut folder);
    drop(until_end);
    if timer.join().unwrap_or(false) {
        results::withdraw_request();
    }
    outcome?;
    let Progress { done, total } = folder.progress();
    let checkpoint = std::fs::metadata(folder.checkpoint()).map_or(0, |file| file.len());
    let parts = virtual_ranks.parts.into_inner();
    let measured: Vec<f64> = parts.iter().map(|part| part.seconds).collect();
    // Without a round, the last part is a preparation.
    let (load, busy_agents) = match parts.last() {
        Some(rounds) if done > 0 => (rounds.load, folder.seconds_of_agents() / rounds.seconds),
        _ => (Load::default(), f64::NAN),
    };
    let seconds = extrapolate(&measured, !folder.was_stopped(), done, total);
    Ok(Forecast { seconds, busy_agents, load, done, total, checkpoint })
}

/// Seconds of a whole run. What was measured last are the rounds that were done; what came before is preparation.
fn extrapolate(measured: &[f64], has_finished: bool, done: u64, total: u64) -> Option<f64> {
    let sum: f64 = measured.iter().sum();
    if has_finished {
        return Some(sum);
    }
    let last = measured.last().filter(|_| done > 0)?;
    Some(sum + last * (total.saturating_sub(done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rounds_are_extrapolated() {
        // Three seconds of preparation, then 10 of 100 rounds in two seconds.
        assert_eq!(extrapolate(&[1.0, 2.0, 2.0], false, 10, 100), Some(23.0));
        assert_eq!(extrapolate(&[1.0, 2.0, 2.0], true, 100, 100), Some(5.0));
        assert_eq!(extrapolate(&[1.0], false, 0, 0), None);
    }
}
