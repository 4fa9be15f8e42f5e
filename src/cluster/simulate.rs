//! The simulation driver: runs a method on a virtual cluster with a discrete-event clock, deterministically.

use super::checkpoint::Checkpoint;
use super::codec::{CodecError, decode};
use super::context::Clock;
use super::erased::{AnyMethod, Erased, erase_shared};
use super::fault::{self, Action, Activity, Fault};
use super::hand_off::seconds_of_hand_off;
use super::layout::{AgentId, Layout, Rank};
use super::method::{Method, Order};
use super::nap::{Meanwhile, Naps};
use super::node::Node;
use super::options::JobOptions;
use super::packet::Packet;
use super::packing::wire_bytes;
use super::request::RequestId;
use super::run::{Outcome, Recorder, serve_recorder};
use super::short_work::SHORT;
use super::usage::Flow;
use super::work::{Completed, Work, WorkerContext};
use crate::number::{ByNumber, Number};
use crate::random::Seed;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A virtual cluster; times in seconds.
pub struct Cluster<M: Method> {
    /// Number of ranks.
    pub ranks: u32,
    /// Duration of a task; `None` for its measured duration, which makes the simulation nondeterministic.
    pub task: Option<Cost<M>>,
    /// Duration of an agent's work after the report of a task; `None` for 0.
    pub after_report: Option<Cost<M>>,
    /// Time from sending to arrival of the first byte.
    pub latency: f64,
    /// Bytes per second of each rank's link, in each direction.
    pub bandwidth: f64,
}

/// This many pairs of ranks and requests are counted at a time.
const MAX_COUNTED: usize = 1 << 20;

/// Seconds that a task of an agent takes.
pub type Cost<M> = Box<dyn Fn(AgentId, &<M as Method>::Task) -> f64>;

/// The ranks and the network of a virtual cluster.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Number of ranks.
    pub ranks: u32,
    /// Time from sending to arrival of the first byte, in seconds.
    pub latency: f64,
    /// Bytes per second of each rank's link, in each direction.
    pub bandwidth: f64,
    /// Seconds that a rank itself spends on sending or receiving a message. If they are not 0, ranks also nap while they wait, and notice messages
    /// late.
    pub message_overhead: f64,
}

/// The most that a rank has to do with messages for one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// What it sends.
    pub sent: Flow,
    /// What it receives.
    pub received: Flow,
}

impl Load {
    fn most(self, other: Self) -> Self {
        Self { sent: self.sent.most(other.sent), received: self.received.most(other.received) }
    }
}

/// Counts what each rank sends and receives for each request.
#[derive(Default)]
struct Census {
    /// The last requests.
    recent: BTreeMap<(RequestId, Rank), Load>,
    /// The most of any rank for any request.
    most: Load,
}

impl Census {
    fn count(&mut self, request: RequestId, from: Rank, to: Rank, bytes: u64) {
        let sent = self.recent.entry((request, from)).or_default();
        sent.sent.count(bytes);
        let sent = *sent;
        let received = self.recent.entry((request, to)).or_default();
        received.received.count(bytes);
        self.most = self.most.most(sent).most(*received);
        while self.recent.len() > MAX_COUNTED {
            self.recent.pop_first();
        }
    }
}

/// A virtual cluster without the types of its method.
struct ErasedCluster<'a> {
    network: Network,
    /// Whether the server and the work after reports take as long as they take on this machine, and messages are counted.
    is_measured: bool,
    /// Seconds in which work is handed to a sleeping thread and its result is heard of.
    hand_off: f64,
    task: Option<ErasedCost<'a>>,
    after_report: Option<ErasedCost<'a>>,
}

impl ErasedCluster<'_> {
    /// Seconds until a sleeping thread begins with a work of this length, or until its result is handled. The drivers do short work at once.
    fn waking(&self, order: Order, seconds: f64) -> f64 {
        if order == Order::Posted && seconds < SHORT { 0.0 } else { self.hand_off / 2.0 }
    }
}

/// A [`Cost`] of a task as bytes.
type ErasedCost<'a> = Box<dyn Fn(AgentId, &[u8]) -> Result<f64, CodecError> + 'a>;

/// An event of the simulation.
enum Event<N: Number> {
    Arrive(Rank, Packet<N>),
    /// The rank has noticed the packet and read it.
    Take(Rank, Packet<N>),
    Completed(Rank, Completed<N>),
    /// A core of this rank becomes free.
    Free(Rank),
}

/// Events by time; simultaneous events in the order in which they were scheduled.
struct Agenda<N: Number> {
    heap: BinaryHeap<Reverse<Scheduled<N>>>,
    scheduled: u64,
}

/// An event with its time and number.
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
    fn schedule(&mut self, time: f64, event: Event<N>) {
        self.scheduled += 1;
        self.heap.push(Reverse(Scheduled { time, number: self.scheduled, event }));
    }

    fn next(&mut self) -> Option<(f64, Event<N>)> {
        self.heap.pop().map(|Reverse(next)| (next.time, next.event))
    }
}

/// A virtual rank: its node, its free cores, and the times at which its links become free.
struct Machine<N: Number> {
    node: Node<N>,
    free_cores: usize,
    queue: VecDeque<Work<N>>,
    sends_until: f64,
    receives_until: f64,
    /// When it last did anything.
    active_at: f64,
}

/// Runs a method on a virtual cluster with `options.threads` cores per rank until it ends or the recorder stops it.
///
/// # Errors
/// The first failure of the server or an agent, or a deadlock of the method.
pub fn run<M: Method>(
    method: Arc<M>,
    options: JobOptions,
    cluster: &Cluster<M>,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Outcome, Fault> {
    let Cluster { ranks, latency, bandwidth, .. } = *cluster;
    let cluster = ErasedCluster {
        network: Network { ranks, latency, bandwidth, message_overhead: 0.0 },
        is_measured: false,
        hand_off: 0.0,
        task: cluster.task.as_ref().map(erased_cost::<M>),
        after_report: cluster.after_report.as_ref().map(erased_cost::<M>),
    };
    run_any(erase_shared(method, M::NAME), options, &cluster, saved, recorder).map(|measured| measured.outcome)
}

/// A run on a virtual cluster.
pub struct Measured {
    /// Its outcome.
    pub outcome: Outcome,
    /// The time on the virtual cluster, in seconds, which includes evaluations.
    pub seconds: f64,
    /// The most that a rank sends and receives for one request.
    pub load: Load,
}

/// Runs a method on a virtual cluster where all work takes as long as it takes on this machine, and messages as long as on the network.
///
/// # Errors
/// As [`run`].
pub fn run_measured(
    method: AnyMethod,
    options: JobOptions,
    network: Network,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Measured, Fault> {
    let cluster = ErasedCluster { network, is_measured: true, hand_off: seconds_of_hand_off(), task: None, after_report: None };
    run_any(method, options, &cluster, saved, recorder)
}

fn erased_cost<M: Method>(cost: &Cost<M>) -> ErasedCost<'_> {
    Box::new(move |agent, task| Ok(cost(agent, &decode("a task", task)?)))
}

fn run_any(
    method: AnyMethod,
    options: JobOptions,
    cluster: &ErasedCluster,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Measured, Fault> {
    match method {
        ByNumber::F32(method) => run_typed(method, options, cluster, saved, recorder),
        ByNumber::F64(method) => run_typed(method, options, cluster, saved, recorder),
        ByNumber::I32(method) => run_typed(method, options, cluster, saved, recorder),
    }
}

fn run_typed<N: Number>(
    method: Erased<N>,
    options: JobOptions,
    cluster: &ErasedCluster,
    saved: Option<Checkpoint>,
    recorder: &mut dyn Recorder,
) -> Result<Measured, Fault> {
    fault::install(Box::new(|fault| fault.print()));
    let layout = Layout {
        ranks: cluster.network.ranks,
        agents: method.agents(),
        dedicated: options.dedicated,
        placement: method.placement(),
    };
    let mut now = saved.as_ref().map_or(0.0, |saved| saved.seconds);
    let mut machines: Vec<Machine<N>> = (0..layout.ranks)
        .map(|rank| Machine {
            node: Node::new(method.clone(), rank, layout, options.threads),
            free_cores: options.threads.max(1),
            queue: VecDeque::new(),
            sends_until: now,
            receives_until: now,
            active_at: now,
        })
        .collect();
    machines[0].node.host_server(saved)?;
    let mut agenda = Agenda { heap: BinaryHeap::new(), scheduled: 0 };
    let clock = Clock::simulated(now);
    let mut census = Census::default();
    let naps = Naps::new(layout.ranks);
    let mut changed = 0;
    loop {
        let clock = clock.moved_to(now);
        if let Some(outcome) =
            dispatch(changed, now, &clock, &method, options.seed, cluster, &mut machines, &mut agenda, &mut census, recorder)?
        {
            return Ok(Measured { outcome, seconds: now, load: census.most });
        }
        let Some((time, event)) = agenda.next() else {
            let activity = Activity { method: method.name(), rank: 0, agent: None, action: Action::Communicating };
            return Err(activity.fault("deadlock: no message or task is under way, and the run is not over"));
        };
        now = time;
        changed = match event {
            Event::Arrive(rank, packet) if cluster.network.message_overhead > 0.0 => {
                let machine = &mut machines[rank as usize];
                // If it naps, the message comes in the middle of the nap, on average. To wake up takes half a hand-off.
                let waited = Duration::try_from_secs_f64(now - machine.active_at).unwrap_or_default();
                let woken = |nap: Duration| nap.as_secs_f64() + cluster.hand_off / 2.0;
                let meanwhile = Meanwhile { sends: false, computes: machine.free_cores == 0 };
                let nap = naps.next(waited, meanwhile).map_or(0.0, woken);
                machine.active_at = machine.active_at.max(now + nap / 2.0) + cluster.network.message_overhead;
                agenda.schedule(machine.active_at, Event::Take(rank, packet));
                continue;
            }
            Event::Arrive(rank, packet) | Event::Take(rank, packet) => {
                machines[rank as usize].node.handle(packet)?;
                rank
            }
            Event::Completed(rank, completed) => {
                machines[rank as usize].node.complete(completed)?;
                rank
            }
            Event::Free(rank) => {
                machines[rank as usize].free_cores += 1;
                rank
            }
        } as usize;
        let machine = &mut machines[changed];
        machine.active_at = machine.active_at.max(now);
    }
}

/// Sends the packets of a rank and starts the work for which it has free cores.
#[expect(clippy::too_many_arguments, reason = "the whole state of the simulation, used in one place")]
fn dispatch<N: Number>(
    rank: usize,
    now: f64,
    clock: &Clock,
    method: &Erased<N>,
    seed: Seed,
    cluster: &ErasedCluster,
    machines: &mut [Machine<N>],
    agenda: &mut Agenda<N>,
    census: &mut Census,
    recorder: &mut dyn Recorder,
) -> Result<Option<Outcome>, Fault> {
    loop {
        while let Some((to, packet)) = machines[rank].node.out.pop_front() {
            if to as usize == rank {
                machines[rank].node.handle(packet)?;
                continue;
            }
            let bytes = wire_bytes(&packet.body) as u64;
            if let Some(request) = packet.head.request().filter(|_| cluster.is_measured) {
                census.count(request, rank as Rank, to, bytes);
            }
            let seconds = bytes as f64 / cluster.network.bandwidth;
            let leaves = machines[rank].sends_until.max(now) + cluster.network.message_overhead;
            machines[rank].sends_until = leaves + seconds;
            let receiver = &mut machines[to as usize];
            let arrives = (leaves + cluster.network.latency).max(receiver.receives_until) + seconds;
            receiver.receives_until = arrives;
            agenda.schedule(arrives, Event::Arrive(to, packet));
        }
        if rank == 0
            && let Some(outcome) = serve_recorder(&mut machines[0].node, recorder, clock)?
        {
            return Ok(Some(outcome));
        }
        if machines[rank].node.out.is_empty() {
            break;
        }
    }
    let machine = &mut machines[rank];
    // Work that was queued before starts on a thread that has just finished other work, and need not wake up.
    let mut queued_before = machine.queue.len();
    machine.queue.extend(machine.node.work.drain(..));
    let worker = WorkerContext {
        method: method.clone(),
        seed,
        rank: rank as Rank,
        clock: clock.clone(),
        store: None,
        states: None,
        timeline: None,
        thread: 0,
    };
    // The creation of agents takes no time; tasks wait for a core.
    while let Some(place) = machine.queue.iter().position(|work| machine.free_cores > 0 || !matches!(work, Work::Perform { .. }))
    {
        let Some(work) = machine.queue.remove(place) else { break };
        let needs_waking = place >= queued_before;
        queued_before -= usize::from(!needs_waking);
        let declared = |cost: &Option<ErasedCost>| match (&work, cost) {
            (Work::Perform { id, request, .. }, Some(cost)) => {
                let activity =
                    Activity { method: method.name(), rank: rank as Rank, agent: Some(*id), action: Action::Communicating };
                cost(*id, &request.task.0).map(Some).map_err(|cause| activity.fault(cause.to_string()))
            }
            _ => Ok(None),
        };
        let (declared, after_report) = (declared(&cluster.task)?, declared(&cluster.after_report)?.unwrap_or(0.0));
        let is_task = matches!(work, Work::Perform { .. });
        let (mut end, mut waking) = (now, 0.0);
        work.run(&worker, |mut completed| {
            if let Completed::Performed { seconds, .. } = &mut completed {
                *seconds = declared.unwrap_or(*seconds);
                waking = cluster.waking(method.order(), *seconds);
                end += *seconds + if needs_waking { waking } else { 0.0 };
            }
            if let Completed::ServerReturned { seconds, .. } = &mut completed {
                *seconds = if cluster.is_measured { *seconds } else { 0.0 };
                waking = cluster.waking(method.order(), *seconds);
                end += *seconds + waking;
            }
            if let Completed::AgentReturned { seconds, .. } = &mut completed {
                *seconds = if cluster.is_measured { *seconds } else { after_report };
                end += *seconds;
            }
            agenda.schedule(end + waking, Event::Completed(rank as Rank, completed));
        });
        if is_task {
            machine.free_cores -= 1;
            agenda.schedule(end, Event::Free(rank as Rank));
        }
    }
    Ok(None)
}
