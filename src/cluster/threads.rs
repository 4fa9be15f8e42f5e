//! The driver without MPI: server and agents in one process, agents on worker threads.

use super::checkpoint::Checkpoint;
use super::context::Clock;
use super::erased::{AnyMethod, Erased, erased};
use super::fault::{self, Fault};
use super::job::WorkerContext;
use super::layout::Layout;
use super::method::Method;
use super::node::Node;
use super::run::{JobOptions, LOOK_EVERY, Outcome, Recorder, look_after};
use super::workers::Workers;
use crate::number::{Number, Picked};
use crossbeam_channel::RecvTimeoutError;
use std::sync::Arc;

/// Runs a method to its end, or until its recorder stops it, in this process.
///
/// # Errors
/// The first failure of the server or an agent.
pub fn run<M: Method>(
    method: Arc<M>,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    carry_any(erased(method, &options), options, saved, recorder)
}

fn carry_any(
    method: AnyMethod,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    match method {
        Picked::F32(method) => carry(method, options, saved, recorder),
        Picked::F64(method) => carry(method, options, saved, recorder),
        Picked::I32(method) => carry(method, options, saved, recorder),
    }
}

fn carry<N: Number>(
    method: Erased<N>,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    fault::install(Box::new(|fault| fault.say()));
    let layout = Layout { ranks: 1, agents: method.agents(), dedicated: false, placement: method.placement() };
    let clock = Clock::wall(saved.as_ref().map_or(0.0, |saved| saved.seconds));
    let mut node = Node::new(method.clone(), 0, layout, options.threads);
    node.store.clone_from(&options.store);
    node.lead(saved)?;
    let bench = WorkerContext { method, seed: options.seed, rank: 0, clock: clock.clone(), store: options.store };
    let workers = Workers::start(bench, options.threads);
    loop {
        while let Some((_, packet)) = node.out.pop_front() {
            node.handle(packet)?;
        }
        if let Some(outcome) = look_after(&mut node, recorder, &clock)? {
            return Ok(outcome);
        }
        node.jobs.drain(..).for_each(|job| workers.give(job));
        if node.out.is_empty() {
            match workers.results.recv_timeout(LOOK_EVERY) {
                Ok(done) => node.done(done)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}
