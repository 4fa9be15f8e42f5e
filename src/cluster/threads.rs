//! The driver without MPI: server and agents in one process, on worker threads or, for short work, on the thread that serves the recorder.

use super::checkpoint::Checkpoint;
use super::context::Clock;
use super::erased::{AnyMethod, Erased, erase_shared};
use super::fault::{self, Fault};
use super::layout::Layout;
use super::method::Method;
use super::node::Node;
use super::options::JobOptions;
use super::run::{Outcome, RECORDER_INTERVAL, Recorder, serve_recorder};
use super::short_work::ShortWork;
use super::work::WorkerContext;
use super::workers::Workers;
use crate::number::{ByNumber, Number};
use crossbeam_channel::RecvTimeoutError;
use std::sync::Arc;
use std::time::Instant;

/// Runs a method in this process until it ends or the recorder stops it.
///
/// # Errors
/// The first failure of the server or an agent.
pub fn run<M: Method>(
    method: Arc<M>,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    run_any(erase_shared(method, M::NAME), options, saved, recorder)
}

/// The same for a method whose types are erased.
pub fn run_any(
    method: AnyMethod,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    match method {
        ByNumber::F32(method) => run_typed(method, options, saved, recorder),
        ByNumber::F64(method) => run_typed(method, options, saved, recorder),
        ByNumber::I32(method) => run_typed(method, options, saved, recorder),
    }
}

fn run_typed<N: Number>(
    method: Erased<N>,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    fault::install(Box::new(|fault| fault.print()));
    let layout = Layout { ranks: 1, agents: method.agents(), dedicated: false, placement: method.placement() };
    let clock = Clock::wall(saved.as_ref().map_or(0.0, |saved| saved.seconds));
    let mut node = Node::new(method.clone(), 0, layout, options.threads);
    node.store.clone_from(&options.store);
    node.states.clone_from(&options.states);
    node.timeline.clone_from(&options.timeline);
    node.host_server(saved)?;
    let worker = WorkerContext {
        method,
        seed: options.seed,
        rank: 0,
        clock: clock.clone(),
        store: options.store,
        states: options.states,
        timeline: options.timeline,
        thread: 0,
    };
    let mut short_work = ShortWork::new(worker.clone());
    let workers = Workers::start(worker, options.threads).map_err(|cause| Fault::of_driver(node.method(), 0, cause))?;
    let mut began = Instant::now();
    loop {
        node.usage.seconds += began.elapsed().as_secs_f64();
        began = Instant::now();
        while let Some((_, packet)) = node.out.pop_front() {
            node.handle(packet)?;
        }
        if let Some(outcome) = serve_recorder(&mut node, recorder, &clock)? {
            return Ok(outcome);
        }
        while let Ok(completed) = workers.results.try_recv() {
            short_work.observe(&completed);
            node.complete(completed)?;
        }
        let done = short_work.run_or_submit(std::mem::take(&mut node.work), &workers);
        done.into_iter().try_for_each(|completed| node.complete(completed))?;
        if node.out.is_empty() && node.work.is_empty() {
            match workers.results.recv_timeout(RECORDER_INTERVAL) {
                Ok(completed) => {
                    short_work.observe(&completed);
                    node.complete(completed)?;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}
