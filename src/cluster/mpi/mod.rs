//! The MPI driver, for `mpirun` and `srun`: one rank of the engine per process; the main thread makes all MPI calls of a run, and does work
//! that takes less time than waking a worker.
//!
//! Median times of collectives relative to point-to-point messages (below 1, collectives are faster), from three runs of
//! `cargo bench --bench messages`: 2 ranks on a quiet machine with two cores, Open MPI 4.1.4. More ranks or machines were not timed.
//!
//! | | 8 B | 4 KB | 5 MB | default |
//! | --- | --- | --- | --- | --- |
//! | a request to all by a broadcast posted in advance | 1.6 | 1.3 | 0.8–0.9 | point-to-point |
//! | a sum of `i32` to all by `MPI_Iallreduce` | 0.9 | 0.9 | 0.9 | all-reduce, unless packed messages are much shorter |
//!
//! Sums of floating-point numbers are point-to-point by default, because only then are their bits the same on any number of ranks.

mod collectives;
mod comm;
mod frame;
mod ping;
mod wait;
mod watchdog;
mod wire;
mod world;

pub use ping::{MessageCosts, measure_network};
pub use watchdog::{LastBeat, Silence};
pub use world::{World, WorldError};

use super::checkpoint::Checkpoint;
use super::context::Clock;
use super::erased::{AnyMethod, Erased, erase_shared};
use super::fault::{self, Action, Activity, EXIT_CODE, Fault, guard};
use super::layout::Layout;
use super::method::Method;
use super::nap::Meanwhile;
use super::node::Node;
use super::options::{IntegerSums, JobOptions, RequestDelivery, Sums};
use super::packet::{Head, Packet};
use super::packing::Hosts;
use super::run::{Outcome, Recorder, serve_recorder};
use super::short_work::ShortWork;
use super::timeline::{Doing, SHORTEST_WAIT};
use super::work::{Completed, WorkerContext};
use super::workers::Workers;
use crate::cluster::body::Body;
use crate::number::{ByNumber, Number};
use collectives::{Broadcasts, Reductions};
use std::collections::VecDeque;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use wait::Backoff;
use wire::Wire;

/// How long a failing rank waits for rank 0 to print the fault and end the job.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// The launcher of MPICH forwards what was printed a moment later, and not at all when the job has been aborted.
const TIME_TO_FORWARD: Duration = Duration::from_millis(100);

/// Runs a method on all ranks of the job until it ends or the recorder stops it. Every rank calls this; the checkpoint, the recorder and
/// the outcome matter on rank 0 only. A failure on any rank ends the process with one message and exit code [`EXIT_CODE`].
pub fn run<M: Method>(
    world: &World,
    method: Arc<M>,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Option<Outcome> {
    run_any(world, erase_shared(method, M::NAME), options, saved, recorder)
}

/// The same for a method whose types are erased.
pub fn run_any(
    world: &World,
    method: AnyMethod,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Option<Outcome> {
    match method {
        ByNumber::F32(method) => run_typed(world, method, options, saved, recorder),
        ByNumber::F64(method) => run_typed(world, method, options, saved, recorder),
        ByNumber::I32(method) => run_typed(world, method, options, saved, recorder),
    }
}

fn run_typed<N: Number>(
    world: &World,
    method: Erased<N>,
    options: JobOptions,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Option<Outcome> {
    let rank = world.rank();
    let layout =
        Layout { ranks: world.size(), agents: method.agents(), dedicated: options.dedicated, placement: method.placement() };
    world.barrier();
    let mut transport = Transport::new(world, &options, layout);
    let mut node = Node::new(method.clone(), rank, layout, options.threads);
    node.store.clone_from(&options.store);
    node.states.clone_from(&options.states);
    // Agents on all ranks read the clock.
    let before = world.broadcast_bytes(saved.as_ref().map(|saved| saved.seconds.to_le_bytes().to_vec()));
    let clock = Clock::wall(before.try_into().map_or(0.0, f64::from_le_bytes));
    let hosted = if rank == 0 { node.host_server(saved) } else { Ok(()) };
    node.broadcasts = transport.broadcasts.is_some().then(VecDeque::new);
    if transport.reduces {
        let hosts = if world.is_on_one_host() { Hosts::One } else { Hosts::Several };
        node.use_allreduce((N::EXACT && options.collectives.integer_sums == IntegerSums::Auto).then_some(hosts));
    }
    node.timeline.clone_from(&options.timeline);
    let worker = WorkerContext {
        method,
        seed: options.seed,
        rank,
        clock: clock.clone(),
        store: options.store,
        states: options.states,
        timeline: options.timeline,
        thread: 0,
    };
    let mut short_work = ShortWork::new(worker.clone());
    let is_main_at_work = short_work.is_under_way();
    let workers = match Workers::start(worker, options.threads) {
        Ok(workers) => workers,
        Err(cause) => abort_job(world, &mut transport.wire, Fault::of_driver(node.method(), rank, cause)),
    };
    let report = workers.report.clone();
    // SAFETY: returns the ID of the calling thread. (The standard library's handle is gone when exit handlers run.)
    let main = unsafe { libc::pthread_self() };
    fault::install(Box::new(move |fault| {
        // SAFETY: as above.
        let is_main = unsafe { libc::pthread_self() } == main;
        if is_main || fault::is_helper() && is_main_at_work.load(Ordering::Relaxed) {
            // The main thread cannot end the job, as it does what is failing; the launcher does when this process ends with an error.
            print(&fault);
        } else {
            // The main thread ends the job; this thread keeps the process alive until then.
            drop(report.send(Completed::Failed(fault)));
            std::thread::sleep(2 * ABORT_GRACE);
        }
    }));
    // A panic of the engine itself must not unwind past here: that would finalize MPI, which waits for the other ranks forever.
    let activity = Activity { method: node.method(), rank, agent: None, action: Action::Communicating };
    let result = guard(activity, || {
        Ok(hosted.and_then(|()| event_loop(&mut node, &mut transport, &workers, &mut short_work, &clock, recorder)))
    });
    match result.map_err(Fault::by_driver).flatten() {
        Ok(outcome) => outcome,
        Err(fault) => abort_job(world, &mut transport.wire, fault),
    }
}

/// All communication of a rank: messages, broadcasts, all-reduce.
struct Transport<N: Number> {
    wire: Wire<N>,
    broadcasts: Option<Broadcasts<N>>,
    /// Whether sums use all-reduce on all ranks; this rank takes part if it hosts agents.
    reduces: bool,
    reductions: Option<Reductions<N>>,
}

impl<N: Number> Transport<N> {
    fn new(world: &World, options: &JobOptions, layout: Layout) -> Self {
        let hosting = layout.hosting();
        let allreduce = match N::EXACT {
            true => options.collectives.integer_sums != IntegerSums::PointToPoint,
            false => options.collectives.float_sums == Sums::Allreduce,
        };
        let reduces = allreduce && hosting.len() > 1 && collectives::datatype::<N>().is_some();
        let broadcasts = options.collectives.requests == RequestDelivery::Broadcast && layout.ranks > 1;
        Self {
            wire: Wire::new(world),
            broadcasts: broadcasts.then(|| Broadcasts::new(world)),
            reduces,
            reductions: if reduces { Reductions::new(world, hosting.contains(world.rank())) } else { None },
        }
    }

    /// Whether any communication is under way.
    fn is_moving(&self) -> bool {
        self.wire.is_moving()
            || self.broadcasts.as_ref().is_some_and(Broadcasts::is_moving)
            || self.reductions.as_ref().is_some_and(Reductions::is_moving)
    }

    /// Whether all communication is complete; ends the broadcasts.
    fn is_over(&mut self) -> Result<bool, String> {
        let broadcasts = self.broadcasts.as_mut().map_or(Ok(true), Broadcasts::end)?;
        Ok(broadcasts && self.wire.is_quiet() && self.reductions.as_ref().is_none_or(|reductions| !reductions.is_moving()))
    }
}

/// Advances collective communication; returns whether there was any.
fn progress_collectives<N: Number>(node: &mut Node<N>, transport: &mut Transport<N>) -> Result<bool, Fault> {
    let (rank, method) = (transport.wire.rank(), node.method());
    let fault = |cause| Fault::of_driver(method, rank, cause);
    let mut busy = false;
    if let Some(broadcasts) = &mut transport.broadcasts {
        for packet in node.broadcasts.iter_mut().flat_map(|waiting| waiting.drain(..)) {
            busy = true;
            broadcasts.send(packet).map_err(fault)?;
        }
        while let Some(packet) = broadcasts.receive().map_err(fault)? {
            busy = true;
            node.handle(packet)?;
        }
    }
    if let Some(reductions) = &mut transport.reductions {
        for contribution in node.reductions.drain(..) {
            busy = true;
            reductions.add(contribution);
        }
        while let Some((request, sum)) = reductions.finished(rank, method)? {
            busy = true;
            node.reduced(&request, sum)?;
        }
    }
    Ok(busy)
}

/// Makes the allocator keep the memory of large messages instead of returning it: mapping new pages costs more than the transfer.
/// Call once, at the start of `main`; has an effect with the GNU C library only.
pub fn tune_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets two numbers of the allocator; takes no pointers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, c_int::MAX);
    }
}

/// Exchanges packets and work until the run is over.
fn event_loop<N: Number>(
    node: &mut Node<N>,
    transport: &mut Transport<N>,
    workers: &Workers<N>,
    short_work: &mut ShortWork<N>,
    clock: &Clock,
    recorder: &mut dyn Recorder,
) -> Result<Option<Outcome>, Fault> {
    let mut backoff = Backoff::new(transport.wire.size());
    let mut outcome = None;
    let (rank, method) = (transport.wire.rank(), node.method());
    let fault = |cause| Fault::of_driver(method, rank, cause);
    let mut since = Instant::now();
    let mut idle_since = None;
    loop {
        let saved_before = node.seconds_saving;
        let mut busy = false;
        while let Some((to, packet)) = node.out.pop_front() {
            busy = true;
            if to == rank {
                node.handle(packet)?;
            } else {
                transport.wire.send(to, packet).map_err(fault)?;
            }
        }
        let working = Instant::now();
        let done = short_work.run_or_submit(std::mem::take(&mut node.work), workers);
        let worked = working.elapsed().as_secs_f64();
        busy |= !done.is_empty();
        done.into_iter().try_for_each(|completed| node.complete(completed))?;
        busy |= progress_collectives(node, transport)?;
        while let Some(packet) = transport.wire.receive().map_err(fault)? {
            busy = true;
            node.handle(packet)?;
        }
        while let Ok(completed) = workers.results.try_recv() {
            busy = true;
            short_work.observe(&completed);
            node.complete(completed)?;
        }
        if outcome.is_none() {
            outcome = serve_recorder(node, recorder, clock)?;
            busy |= outcome.is_some();
        }
        if node.stopped && node.out.is_empty() && transport.is_over().map_err(fault)? {
            return Ok(outcome);
        }
        // Requests that the recorder has released must not wait for the end of a nap.
        let is_active = busy || !node.out.is_empty();
        let meanwhile = Meanwhile { sends: transport.is_moving(), computes: workers.agents_fill_threads() };
        let completed = if is_active { None } else { backoff.wait(&workers.results, meanwhile) };
        if is_active || completed.is_some() {
            backoff.reset();
        }
        let began = std::mem::replace(&mut since, Instant::now());
        let seconds = since.duration_since(began).as_secs_f64();
        node.usage.seconds += seconds;
        let is_idle = !is_active && completed.is_none() && workers.are_idle();
        if is_active || is_idle && transport.is_moving() {
            node.usage.messages += (seconds - worked - (node.seconds_saving - saved_before)).max(0.0);
        } else if is_idle {
            node.usage.idle += seconds;
        }
        note_idle(node, &mut idle_since, is_idle, began);
        if let Some(completed) = completed {
            short_work.observe(&completed);
            node.complete(completed)?;
        }
    }
}

/// Notes in the timeline for how long this rank was idle, when that is over. The pass of the loop that ends now began at `began`.
fn note_idle<N: Number>(node: &Node<N>, idle_since: &mut Option<Instant>, is_idle: bool, began: Instant) {
    let Some(timeline) = &node.timeline else { return };
    if is_idle {
        idle_since.get_or_insert(began);
    } else if let Some(since) = idle_since.take().filter(|since| began.duration_since(*since) >= SHORTEST_WAIT) {
        timeline.add_until(Doing::Idle, 0, None, None, (since, began));
    }
}

/// Ends the job: rank 0 prints the first fault and aborts; another rank sends the fault to rank 0 and waits a while for that.
fn abort_job<N: Number>(world: &World, wire: &mut Wire<N>, fault: Fault) -> ! {
    if world.rank() != 0 {
        let sent = wire.send(0, Packet { head: Head::Fail(fault.clone()), body: Body::empty() });
        let since = Instant::now();
        while sent.is_ok() && since.elapsed() < ABORT_GRACE {
            // Receiving also completes sends; incoming packets no longer matter.
            drop(wire.receive());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    print(&fault);
    world.abort(EXIT_CODE)
}

/// Prints a fault before the job ends.
fn print(fault: &Fault) {
    fault.print();
    std::thread::sleep(TIME_TO_FORWARD);
}
