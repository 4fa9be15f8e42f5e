//! The driver on a virtual cluster: the real algorithm and the real packets on a discrete-event clock, deterministic.

use super::checkpoint::Checkpoint;
use super::codec::{CodecError, decode};
use super::context::Clock;
use super::erased::{AnyMethod, Erased, erased};
use super::fault::{self, Doing, Fault, What};
use super::job::{Done, Job, WorkerContext};
use super::layout::{Layout, Rank};
use super::method::{AgentId, Method};
use super::node::Node;
use super::packed::travelling;
use super::packet::Packet;
use super::run::{JobOptions, Outcome, Recorder, look_after};
use crate::number::{Number, Picked};
use crate::random::Seed;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A virtual cluster. Times in seconds.
pub struct Cluster<M: Method> {
    /// How many ranks.
    pub ranks: u32,
    /// How long a task takes an agent: declared, or `None` for the seconds that it really took (then no longer deterministic).
    pub task: Option<Cost<M>>,
    /// How long an agent's work behind the report of a task takes: declared, or `None` for no time at all.
    pub after_report: Option<Cost<M>>,
    /// From sending to arriving, for the first byte.
    pub latency: f64,
    /// Bytes per second of each rank's link, one way.
    pub bandwidth: f64,
}

/// The declared seconds of a task, or of the work behind it.
pub type Cost<M> = Box<dyn Fn(AgentId, &<M as Method>::Task) -> f64>;

/// A virtual cluster as the engine sees it.
struct Costs<'a> {
    ranks: u32,
    latency: f64,
    bandwidth: f64,
    task: Option<ErasedCost<'a>>,
    after_report: Option<ErasedCost<'a>>,
}

/// A [`Cost`] that reads the bytes of the task.
type ErasedCost<'a> = Box<dyn Fn(AgentId, &[u8]) -> Result<f64, CodecError> + 'a>;

/// What happens at a time.
enum Event<N: Number> {
    Arrive(Rank, Packet<N>),
    Done(Rank, Done<N>),
    /// A core of this rank is free again.
    Free(Rank),
}

/// Events by time; equal times in the order in which they were made.
struct Agenda<N: Number> {
    heap: BinaryHeap<Reverse<Scheduled<N>>>,
    made: u64,
}

/// An event, ordered by its time and number.
struct Scheduled<N: Number> {
    time: f64,
    number: u64,
    event: Event<N>,
}

impl<N: Number> Ord for Scheduled<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.time.total_cmp(&other.time).then(self.number.cmp(&other.number))
    }
}

impl<N: Number> PartialOrd for Scheduled<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N: Number> PartialEq for Scheduled<N> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<N: Number> Eq for Scheduled<N> {}

impl<N: Number> Agenda<N> {
    fn at(&mut self, time: f64, event: Event<N>) {
        self.made += 1;
        self.heap.push(Reverse(Scheduled { time, number: self.made, event }));
    }

    fn next(&mut self) -> Option<(f64, Event<N>)> {
        self.heap.pop().map(|Reverse(next)| (next.time, next.event))
    }
}

/// A virtual rank: its node, free cores, and when its links are free.
struct Machine<N: Number> {
    node: Node<N>,
    free_cores: usize,
    queue: VecDeque<Job<N>>,
    sends_until: f64,
    receives_until: f64,
}

/// Runs a method to its end, or until its recorder stops it, on a virtual cluster with `options.threads` cores a rank.
///
/// # Errors
/// The first failure of the server or an agent; a deadlock of the method.
pub fn run<M: Method>(
    method: Arc<M>,
    options: JobOptions,
    cluster: &Cluster<M>,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    let Cluster { ranks, latency, bandwidth, .. } = *cluster;
    let costs = Costs {
        ranks,
        latency,
        bandwidth,
        task: cluster.task.as_ref().map(erased_cost::<M>),
        after_report: cluster.after_report.as_ref().map(erased_cost::<M>),
    };
    carry_any(erased(method, &options), options, &costs, saved, recorder)
}

fn erased_cost<M: Method>(cost: &Cost<M>) -> ErasedCost<'_> {
    Box::new(move |agent, task| Ok(cost(agent, &decode("a task", task)?)))
}

fn carry_any(
    method: AnyMethod,
    options: JobOptions,
    cluster: &Costs,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    match method {
        Picked::F32(method) => carry(method, options, cluster, saved, recorder),
        Picked::F64(method) => carry(method, options, cluster, saved, recorder),
        Picked::I32(method) => carry(method, options, cluster, saved, recorder),
    }
}

fn carry<N: Number>(
    method: Erased<N>,
    options: JobOptions,
    cluster: &Costs,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    fault::install(Box::new(|fault| fault.say()));
    let layout =
        Layout { ranks: cluster.ranks, agents: method.agents(), dedicated: options.dedicated, placement: method.placement() };
    let mut now = saved.as_ref().map_or(0.0, |saved| saved.seconds);
    let mut machines: Vec<Machine<N>> = (0..layout.ranks)
        .map(|rank| Machine {
            node: Node::new(method.clone(), rank, layout, options.threads),
            free_cores: options.threads.max(1),
            queue: VecDeque::new(),
            sends_until: now,
            receives_until: now,
        })
        .collect();
    machines[0].node.lead(saved)?;
    let mut agenda = Agenda { heap: BinaryHeap::new(), made: 0 };
    let clock = Clock::simulated(now);
    let mut touched = 0;
    loop {
        let clock = clock.moved_to(now);
        if let Some(outcome) =
            settle_down(touched, now, &clock, &method, options.seed, cluster, &mut machines, &mut agenda, recorder)?
        {
            return Ok(outcome);
        }
        let Some((time, event)) = agenda.next() else {
            let doing = Doing { method: method.name(), rank: 0, agent: None, what: What::Talking };
            return Err(doing.fault("a deadlock: nothing is under way, and the run is not over"));
        };
        now = time;
        touched = match event {
            Event::Arrive(rank, packet) => {
                machines[rank as usize].node.handle(packet)?;
                rank
            }
            Event::Done(rank, done) => {
                machines[rank as usize].node.done(done)?;
                rank
            }
            Event::Free(rank) => {
                machines[rank as usize].free_cores += 1;
                rank
            }
        } as usize;
    }
}

/// Sends what a rank has to send and starts what it can start, at this time.
#[expect(clippy::too_many_arguments, reason = "the whole state of the simulation, used in one place")]
fn settle_down<N: Number>(
    rank: usize,
    now: f64,
    clock: &Clock,
    method: &Erased<N>,
    seed: Seed,
    cluster: &Costs,
    machines: &mut [Machine<N>],
    agenda: &mut Agenda<N>,
    recorder: &mut dyn Recorder,
) -> Result<Option<Outcome>, Fault> {
    loop {
        while let Some((to, packet)) = machines[rank].node.out.pop_front() {
            if to as usize == rank {
                machines[rank].node.handle(packet)?;
                continue;
            }
            let transfer = travelling(&packet.body) as f64 / cluster.bandwidth;
            let leaves = machines[rank].sends_until.max(now);
            machines[rank].sends_until = leaves + transfer;
            let receiver = &mut machines[to as usize];
            let arrives = (leaves + cluster.latency).max(receiver.receives_until) + transfer;
            receiver.receives_until = arrives;
            agenda.at(arrives, Event::Arrive(to, packet));
        }
        if rank == 0
            && let Some(outcome) = look_after(&mut machines[0].node, recorder, clock)?
        {
            return Ok(Some(outcome));
        }
        if machines[rank].node.out.is_empty() {
            break;
        }
    }
    let machine = &mut machines[rank];
    machine.queue.extend(machine.node.jobs.drain(..));
    let bench = WorkerContext { method: method.clone(), seed, rank: rank as Rank, clock: clock.clone(), store: None };
    // The server and the making of agents cost nothing; tasks wait for a core.
    while let Some(place) = machine.queue.iter().position(|job| machine.free_cores > 0 || !matches!(job, Job::Perform { .. })) {
        let Some(job) = machine.queue.remove(place) else { break };
        let declared = |cost: &Option<ErasedCost>| match (&job, cost) {
            (Job::Perform { id, request, .. }, Some(cost)) => {
                let doing = Doing { method: method.name(), rank: rank as Rank, agent: Some(*id), what: What::Talking };
                cost(*id, &request.task.0).map(Some).map_err(|cause| doing.fault(cause.to_string()))
            }
            _ => Ok(None),
        };
        let (declared, settles) = (declared(&cluster.task)?, declared(&cluster.after_report)?.unwrap_or(0.0));
        let is_task = matches!(job, Job::Perform { .. });
        let mut end = now;
        job.run(&bench, |mut done| {
            if let Done::Performed { seconds, .. } = &mut done {
                *seconds = declared.unwrap_or(*seconds);
                end += *seconds;
            }
            if let Done::ServerSettled { seconds, .. } = &mut done {
                *seconds = 0.0;
            }
            if let Done::AgentSettled { seconds, .. } = &mut done {
                *seconds = settles;
                end += settles;
            }
            agenda.at(end, Event::Done(rank as Rank, done));
        });
        if is_task {
            machine.free_cores -= 1;
            agenda.at(end, Event::Free(rank as Rank));
        }
    }
    Ok(None)
}
