//! The state machine of one rank: takes packets and results of work, returns packets and work; without threads or MPI.
//!
//! It reads the clock only to measure times.

mod saving;
mod sums;

use super::body::Body;
use super::bundle::{Bundle, is_large};
use super::checkpoint::Checkpoint;
use super::codec::Raw;
use super::coordinator::Coordinator;
use super::erased::{Erased, ErasedAgent};
use super::fault::{Action, Activity, Fault};
use super::layout::{AgentId, Layout, Rank};
use super::members::Promise;
use super::options::DrawStore;
use super::packet::{AgentBytes, AgentTime, Head, Packet, Posted, Reduction, Report, SavedTransfer, Traffic};
use super::packing::{Hosts, wire_bytes};
use super::record::Record;
use super::request::{RequestId, Route};
use super::states::{SavedState, StateStore};
use super::sums::{Assembly, Summation};
use super::timeline::Timeline;
use super::tree;
use super::usage::RankUsage;
use super::work::{Completed, Work};
use crate::number::Number;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// A rank: its agents, the sums that it adds, the transfers that wait here, and on rank 0 the coordinator.
pub(super) struct Node<N: Number> {
    method: Erased<N>,
    rank: Rank,
    layout: Layout,
    coordinator: Option<Coordinator<N>>,
    agents: BTreeMap<AgentId, Hosted<N>>,
    /// Whether the start packet has arrived: if it is large, others overtake it.
    started: bool,
    /// The agents that this rank hosts.
    own_agents: Vec<AgentId>,
    bundles: BTreeMap<RequestId, Bundle<N>>,
    sums: BTreeMap<RequestId, Summation<N>>,
    assemblies: BTreeMap<RequestId, Assembly<N>>,
    transfers: BTreeMap<RequestId, Transfer<N>>,
    /// While a checkpoint is under way, the transfers to wait for, and those whose bodies this rank saves.
    quiescing: Option<Quiescing>,
    records: Vec<Record>,
    traffic: Traffic,
    /// Computing time of this rank's agents since the last checkpoint.
    spent: BTreeMap<AgentId, AgentTime>,
    /// Worker threads for agents.
    threads: usize,
    /// Seconds of saving on this rank since the run began.
    pub seconds_saving: f64,
    /// What this rank has done since the last checkpoint; the driver adds the seconds of messages and of waiting.
    pub usage: RankUsage,
    /// Where spans of saving are noted.
    pub timeline: Option<Arc<Timeline>>,
    /// Seconds of monitoring on this rank since the job began, as if all its workers shared the work.
    monitoring: f64,
    /// Stores the draws of this rank's agents.
    pub store: Option<Arc<dyn DrawStore>>,
    /// Stores the states of this rank's agents.
    pub states: Option<Arc<dyn StateStore>>,
    /// Whether ranks share hosts, if sums go as packed messages where that is faster than all-reduce.
    hosts: Option<Hosts>,
    pub stopped: bool,
    pub out: VecDeque<(Rank, Packet<N>)>,
    pub work: VecDeque<Work<N>>,
    /// If the driver broadcasts requests: those to broadcast, on rank 0; empty on other ranks.
    pub broadcasts: Option<VecDeque<Packet<N>>>,
    /// Contributions to sums that the driver adds by all-reduce.
    pub reductions: Vec<Reduction<N>>,
}

/// An agent on this rank.
struct Hosted<N: Number> {
    /// None until it is created, and while a worker runs it.
    agent: Option<Box<dyn ErasedAgent<N>>>,
    /// When the request arrived whose task it performs.
    task_arrived: Option<Instant>,
    next_sequence: u64,
    agenda: BTreeMap<u64, Entry<N>>,
}

struct Entry<N: Number> {
    request: Arc<Posted>,
    arrived: Instant,
    body: Body<N>,
    transfer: Option<Promise>,
}

/// What a rank waits for before a checkpoint, and which bodies it saves.
struct Quiescing {
    expected: Vec<(AgentId, RequestId)>,
    saved_here: BTreeSet<RequestId>,
    /// Whether states are wanted.
    wants_states: bool,
}

/// The states of a rank.
#[derive(Default)]
struct Saved {
    agents: Vec<(AgentId, SavedState)>,
    transfers: Vec<SavedTransfer>,
}

/// A body that waits for the agents it was promised to.
struct Transfer<N> {
    body: Body<N>,
    to: Vec<AgentId>,
}

impl<N: Number> Node<N> {
    /// A rank that waits for its start packet.
    pub fn new(method: Erased<N>, rank: Rank, layout: Layout, threads: usize) -> Self {
        Self {
            method,
            rank,
            layout,
            coordinator: None,
            agents: BTreeMap::new(),
            started: false,
            own_agents: layout.hosted(rank).collect(),
            bundles: BTreeMap::new(),
            sums: BTreeMap::new(),
            assemblies: BTreeMap::new(),
            transfers: BTreeMap::new(),
            quiescing: None,
            records: Vec::new(),
            traffic: Traffic::default(),
            spent: BTreeMap::new(),
            threads,
            seconds_saving: 0.0,
            usage: RankUsage::default(),
            timeline: None,
            monitoring: 0.0,
            store: None,
            states: None,
            hosts: None,
            stopped: false,
            out: VecDeque::new(),
            work: VecDeque::new(),
            broadcasts: None,
            reductions: Vec::new(),
        }
    }

    /// Starts the server on this rank, which must be rank 0.
    ///
    /// # Errors
    /// If the checkpoint is not one of this method with this number of agents.
    pub fn host_server(&mut self, saved: Option<Checkpoint>) -> Result<(), Fault> {
        let (coordinator, out, work) = Coordinator::new(self.method.clone(), self.layout, self.states.as_deref(), saved)?;
        self.coordinator = Some(coordinator);
        self.out.extend(out);
        self.work.push_back(work);
        Ok(())
    }

    /// The method's name.
    pub fn method(&self) -> &'static str {
        self.method.name()
    }

    /// The coordinator; only on rank 0.
    pub fn coordinator(&mut self) -> Option<&mut Coordinator<N>> {
        self.coordinator.as_mut()
    }

    fn fault(&self, agent: Option<AgentId>, cause: impl Into<String>) -> Fault {
        self.activity(agent, Action::Communicating).fault(cause)
    }

    fn activity(&self, agent: Option<AgentId>, action: Action) -> Activity {
        Activity { method: self.method.name(), rank: self.rank, agent, action }
    }

    fn send(&mut self, to: Rank, packet: Packet<N>) {
        if to != self.rank {
            let draws = packet.head.draws();
            if draws > 0 {
                self.traffic.count("draws", draws);
            }
            let bytes = wire_bytes(&packet.body) as u64 + packet.head.states();
            self.traffic.count(packet.head.purpose(), bytes);
            self.usage.count_sent(to, bytes + draws, self.layout.ranks);
        }
        self.out.push_back((to, packet));
    }

    fn send_all(&mut self, packets: impl IntoIterator<Item = (Rank, Packet<N>)>) {
        for (to, packet) in packets {
            self.send(to, packet);
        }
    }

    /// Handles a packet.
    pub fn handle(&mut self, packet: Packet<N>) -> Result<(), Fault> {
        let Packet { head, body } = packet;
        match head {
            Head::Start { saved } => {
                self.started = true;
                let mut saved: BTreeMap<AgentId, SavedState> = saved.into_iter().collect();
                for id in self.own_agents.iter().copied() {
                    let hosted = self.agents.entry(id).or_insert_with(Hosted::absent);
                    hosted.agent = None;
                    self.work.push_back(Work::MakeAgent { id, saved: saved.remove(&id) });
                }
                // The request for states may have come first, and this rank may have no agents.
                self.try_quiesce()?;
            }
            Head::Request(request) => self.receive_request(request, body)?,
            Head::Reports { request, reports } => match &mut self.coordinator {
                Some(coordinator) => {
                    coordinator.receive_reports(request, reports, &body);
                    self.advance_server()?;
                }
                None => {
                    self.bundles.entry(request).or_default().add(reports, body);
                    self.pass_on_reports(request);
                    self.try_quiesce()?;
                }
            },
            Head::PartOfSum { request, part } => {
                let from = part.length_of.0;
                let received = self.sums.entry(request).or_default().receive(part, body);
                received.map_err(|cause| self.fault(Some(from), cause))?;
                self.advance_sum(request);
            }
            Head::Total { request, part, parts, to } => {
                self.forward_total(request, (part, parts), &to, &body);
                let assembly = self.assemblies.entry(request).or_insert_with(|| Assembly::new(parts));
                if let Some(body) = assembly.put(part, body) {
                    self.assemblies.remove(&request);
                    self.deliver(request, &to, body)?;
                }
            }
            Head::Quiesce { expected, saved_here, wants_states } => {
                self.quiescing = Some(Quiescing { expected, saved_here, wants_states });
                self.try_quiesce()?;
            }
            Head::Quiesced { rank, agents, transfers, records, traffic, spent, stored, failure, saving_seconds, usage } => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.ranks.entry(rank).or_default().usage.add(*usage);
                    coordinator.records.extend(records);
                    coordinator.stored.extend(stored);
                    coordinator.receive_states(agents, transfers, &traffic, spent, (failure, saving_seconds));
                }
            }
            Head::Stop => self.stopped = true,
            Head::Fail(fault) => return Err(fault),
        }
        Ok(())
    }

    /// From now on, the driver adds sums over all hosting ranks by all-reduce. Called on every rank; with `unless_packed`, reports say whether
    /// packed messages would be faster.
    pub fn use_allreduce(&mut self, unless_packed: Option<Hosts>) {
        self.hosts = unless_packed;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.allreduce = Some((self.layout.hosting(), 0));
        }
    }

    /// Forwards a request to the ranks below this one in the tree of its ranks.
    fn forward(&mut self, request: &Arc<Posted>, is_to_all: bool, below: &[Rank], body: &Body<N>) {
        if let (Some(broadcasts), true) = (&mut self.broadcasts, is_to_all) {
            if self.rank == 0 {
                self.traffic.count("tasks to all", (body.len() * size_of::<N>()) as u64);
                broadcasts.push_back(Packet { head: Head::Request(request.clone()), body: body.clone() });
            }
            return;
        }
        for &rank in below {
            self.send(rank, Packet { head: Head::Request(request.clone()), body: body.clone() });
        }
    }

    fn receive_request(&mut self, request: Arc<Posted>, body: Body<N>) -> Result<(), Fault> {
        let contributing = self.layout.ranks_of(&request.members.agents());
        let ranks = contributing.with(0);
        let below = tree::children(self.rank, &ranks, 0);
        self.forward(&request, ranks.len() == self.layout.ranks as usize, &below, &body);
        let members = request.members.among(&self.own_agents);
        let arrived = Instant::now();
        for member in &members {
            let entry = Entry { request: request.clone(), arrived, body: body.clone(), transfer: member.transfer };
            self.agents.entry(member.agent).or_insert_with(Hosted::absent).agenda.insert(member.sequence, entry);
        }
        // An agent that is the last holder of the body takes it without a copy.
        drop(body);
        if let Some(above) = tree::parent(self.rank, &ranks, 0) {
            self.bundles.entry(request.id).or_default().open(members.len() + below.len(), above);
            self.pass_on_reports(request.id);
        }
        if request.route != Route::Back && !members.is_empty() {
            let (place, places) = (self.layout.place_of(self.rank), self.layout.places(&contributing));
            self.sums.entry(request.id).or_default().open(request.clone(), place, places, members.len());
            self.advance_sum(request.id);
        }
        for member in members {
            self.advance_agent(member.agent);
        }
        Ok(())
    }

    /// Starts the agent's next task if agent, request and transfer are ready.
    fn advance_agent(&mut self, id: AgentId) {
        let Some(hosted) = self.agents.get_mut(&id) else { return };
        let transfers = &self.transfers;
        let ready = hosted.agent.is_some()
            && hosted
                .agenda
                .get(&hosted.next_sequence)
                .is_some_and(|entry| entry.transfer.is_none_or(|promise| transfers.contains_key(&promise.request)));
        if !ready {
            return;
        }
        let (Some(entry), Some(agent)) = (hosted.agenda.remove(&hosted.next_sequence), hosted.agent.take()) else { return };
        hosted.next_sequence += 1;
        let stayed = entry.transfer.is_some_and(|promise| promise.stays);
        hosted.task_arrived = Some(entry.arrived);
        let body = entry.transfer.map_or(entry.body, |promise| self.take_transfer(promise.request, id));
        self.work.push_back(Work::Perform { id, agent, request: entry.request, body, stayed });
    }

    fn take_transfer(&mut self, request: RequestId, id: AgentId) -> Body<N> {
        let Some(mut transfer) = self.transfers.remove(&request) else { return Body::empty() };
        transfer.to.retain(|&other| other != id);
        if transfer.to.is_empty() {
            return transfer.body;
        }
        let body = transfer.body.clone();
        self.transfers.insert(request, transfer);
        body
    }

    /// Sends the reports of a request to the rank above this one in the tree once all have arrived.
    fn pass_on_reports(&mut self, id: RequestId) {
        let Some(above) = self.bundles.get(&id).and_then(Bundle::ready) else { return };
        let Some((reports, body)) = self.bundles.remove(&id).map(Bundle::into_parts) else { return };
        // Rank 0 counts reports and needs no empty bundle.
        if above > 0 || !reports.is_empty() {
            self.send(above, Packet { head: Head::Reports { request: id, reports }, body });
        }
    }

    /// Takes a result of work.
    pub fn complete(&mut self, completed: Completed<N>) -> Result<(), Fault> {
        match completed {
            Completed::ServerMade { server, progress } => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.return_server(server, progress);
                }
                self.advance_server()
            }
            Completed::AgentMade { id, agent } => {
                self.return_agent(id, agent);
                self.try_quiesce()
            }
            Completed::Served { requests, progress, records } => {
                let mut out = Vec::new();
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.progress = progress;
                    coordinator.records.extend(records);
                    out = coordinator.add_requests(requests)?;
                }
                self.send_all(out);
                Ok(())
            }
            Completed::ServerReturned { server, progress, seconds, monitoring, records } => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.add_server_time(seconds, monitoring);
                    coordinator.records.extend(records);
                    coordinator.return_server(server, progress);
                }
                self.advance_server()
            }
            Completed::Performed { id, request, seconds, bytes, report, body, records } => {
                self.records.extend(records);
                self.performed(id, &request, seconds, bytes, report, body)
            }
            Completed::AgentReturned { id, agent, seconds, records } => {
                self.spent.entry(id).or_default().after_report += seconds;
                self.records.extend(records);
                self.return_agent(id, agent);
                self.try_quiesce()
            }
            Completed::Failed(fault) => Err(fault),
        }
    }

    fn return_agent(&mut self, id: AgentId, agent: Box<dyn ErasedAgent<N>>) {
        self.agents.entry(id).or_insert_with(Hosted::absent).agent = Some(agent);
        self.advance_agent(id);
    }

    fn performed(
        &mut self,
        id: AgentId,
        request: &Posted,
        seconds: f64,
        bytes: AgentBytes,
        report: Raw<u8>,
        body: Body<N>,
    ) -> Result<(), Fault> {
        let arrived = self.agents.get(&id).and_then(|hosted| hosted.task_arrived);
        let response_seconds = arrived.map_or(seconds, |arrived| arrived.elapsed().as_secs_f64());
        let spent = self.spent.entry(id).or_default();
        if request.monitoring {
            spent.monitoring += seconds;
            self.monitoring += seconds / self.threads.min(self.agents.len()).max(1) as f64;
        } else {
            spent.tasks += seconds;
        }
        let is_sum = request.route != Route::Back;
        let report = Report {
            from: id,
            seconds,
            response_seconds,
            monitoring_seconds: self.monitoring,
            bytes,
            report,
            records: std::mem::take(&mut self.records),
            values: if is_sum { 0 } else { body.len() },
            is_faster_packed: self.hosts.filter(|_| is_sum).map(|hosts| hosts.prefers_packed(&body)),
        };
        if !is_sum {
            self.send_report(request.id, report, body);
            return Ok(());
        }
        self.send_report(request.id, report, Body::empty());
        let contributed = self.sums.get_mut(&request.id).map_or(Ok(()), |sum| sum.contribute(id, body));
        contributed.map_err(|cause| self.fault(Some(id), cause))?;
        self.advance_sum(request.id);
        Ok(())
    }

    /// Sends a report with those of other agents, or directly to rank 0 if it is large.
    fn send_report(&mut self, request: RequestId, report: Report, body: Body<N>) {
        let passes_through_others = self.rank > 0 && !is_large(&report, &body);
        if passes_through_others {
            self.bundles.entry(request).or_default().add([report], body);
        } else {
            self.send(0, Packet { head: Head::Reports { request, reports: vec![report] }, body });
            if let Some(bundle) = self.bundles.get_mut(&request) {
                bundle.add([], Body::empty());
            }
        }
        self.pass_on_reports(request);
    }

    /// Starts the server's next call, or the next step towards a checkpoint.
    fn advance_server(&mut self) -> Result<(), Fault> {
        let Some(coordinator) = &mut self.coordinator else { return Ok(()) };
        let (work, out) = coordinator.next_work()?;
        self.work.extend(work);
        self.send_all(out);
        Ok(())
    }

    /// Ends the run on all ranks; only on rank 0.
    pub fn stop(&mut self) {
        for rank in (0..self.layout.ranks).rev() {
            self.send(rank, Packet { head: Head::Stop, body: Body::empty() });
        }
    }

    /// Resumes the run after a checkpoint; only on rank 0.
    pub fn resume(&mut self) -> Result<(), Fault> {
        let out = self.coordinator.as_mut().map(Coordinator::resume).transpose()?.unwrap_or_default();
        self.send_all(out);
        Ok(())
    }
}

impl<N: Number> Hosted<N> {
    fn absent() -> Self {
        Self { agent: None, task_arrived: None, next_sequence: 0, agenda: BTreeMap::new() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
