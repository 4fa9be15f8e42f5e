//! The state machine of one rank: takes packets and results of work, returns packets and work; without threads, clocks or MPI.

use super::body::Body;
use super::checkpoint::Checkpoint;
use super::codec::Raw;
use super::coordinator::{Coordinator, total_packets};
use super::erased::{Erased, ErasedAgent};
use super::fault::{Action, Activity, Fault, guard};
use super::layout::{AgentId, Layout, Rank};
use super::options::DrawStore;
use super::packet::{
    AgentBytes, AgentTime, Head, Member, Packet, Posted, Promise, Reduction, RequestId, SavedBody, SavedTransfer, Traffic,
    children,
};
use super::packing::{is_large_and_sparse, wire_bytes};
use super::placement::host;
use super::record::Record;
use super::request::{EncodedReport, Route};
use super::states::{NotSaved, SavedState, StateStore, WriteState, in_memory};
use super::sums::{Adder, Assembly, adding_ranks, bounds};
use super::timeline::{Doing, Timeline};
use super::usage::{RankUsage, peak_memory};
use super::work::{Completed, Work};
use crate::number::Number;
use std::cell::RefCell;
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
    adders: BTreeMap<RequestId, Adder<N>>,
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
    pub saved_seconds: f64,
    /// What this rank has done since the last checkpoint; the driver adds the seconds of messages and of waiting.
    pub usage: RankUsage,
    /// Where spans of saving are noted.
    pub timeline: Option<Arc<Timeline>>,
    /// Seconds of monitoring on this rank, during which all its workers are busy.
    monitoring: f64,
    /// Stores the draws of this rank's agents.
    pub store: Option<Arc<dyn DrawStore>>,
    /// Stores the states of this rank's agents.
    pub states: Option<Arc<dyn StateStore>>,
    /// Whether large sparse sums are not added by all-reduce.
    leaves_out_zeros: bool,
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
    /// None while a worker creates or runs it.
    agent: Option<Box<dyn ErasedAgent<N>>>,
    next_sequence: u64,
    agenda: BTreeMap<u64, Entry<N>>,
}

struct Entry<N: Number> {
    request: Arc<Posted>,
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
            adders: BTreeMap::new(),
            assemblies: BTreeMap::new(),
            transfers: BTreeMap::new(),
            quiescing: None,
            records: Vec::new(),
            traffic: Traffic::default(),
            spent: BTreeMap::new(),
            threads,
            saved_seconds: 0.0,
            usage: RankUsage::default(),
            timeline: None,
            monitoring: 0.0,
            store: None,
            states: None,
            leaves_out_zeros: false,
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
                for id in self.layout.hosted(self.rank) {
                    let hosted = self.agents.entry(id).or_insert_with(Hosted::absent);
                    hosted.agent = None;
                    self.work.push_back(Work::MakeAgent { id, saved: saved.remove(&id) });
                }
                // The request for states may have come first, and this rank may have no agents.
                self.try_quiesce()?;
            }
            Head::Request(request) => self.receive_request(request, body)?,
            Head::Report { request, from, seconds, monitoring, bytes, report, records, is_sparse } => {
                if let Some(coordinator) = &mut self.coordinator {
                    // For the next sum: all ranks must add a sum in the same way.
                    coordinator.sums_are_sparse = is_sparse.unwrap_or(coordinator.sums_are_sparse);
                    coordinator.records.extend(records);
                    coordinator.receive_report(request, EncodedReport { from, seconds, report, body }, monitoring, bytes);
                }
                self.advance_server()?;
            }
            Head::Slice { request, from, len } => self.add_contribution(request, from, len, body)?,
            Head::Total { request, part, parts, to } => {
                let assembly = self.assemblies.entry(request).or_insert_with(|| Assembly::new(parts));
                if let Some(body) = assembly.put(part, body) {
                    self.assemblies.remove(&request);
                    self.deliver(request, to, body)?;
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

    /// From now on, the driver adds sums over all hosting ranks by all-reduce; only has an effect on rank 0.
    pub fn use_allreduce(&mut self, unless_sparse: bool) {
        self.leaves_out_zeros = unless_sparse;
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.allreduce = Some((self.layout.hosting(), 0));
        }
    }

    /// Takes a sum that the driver has added by all-reduce.
    pub fn reduced(&mut self, request: &Posted, sum: Body<N>) -> Result<(), Fault> {
        if let Route::SumTo(to) = &request.route {
            let local: Vec<AgentId> = to.iter().copied().filter(|&agent| self.layout.rank_of(agent) == self.rank).collect();
            return if local.is_empty() { Ok(()) } else { self.deliver(request.id, local, sum) };
        }
        if self.layout.hosting().first() == Some(&self.rank) {
            self.send_all(total_packets(&self.layout, request.id, 0, 1, &[], sum));
        }
        Ok(())
    }

    /// Forwards a request to this rank's children in the tree.
    fn forward(&mut self, request: &Arc<Posted>, body: &Body<N>) {
        if let (Some(broadcasts), true) = (&mut self.broadcasts, request.ranks.len() == self.layout.ranks as usize) {
            if self.rank == 0 {
                self.traffic.count("tasks to all", (body.len() * size_of::<N>()) as u64);
                broadcasts.push_back(Packet { head: Head::Request(request.clone()), body: body.clone() });
            }
            return;
        }
        let at = request.ranks.iter().position(|&rank| rank == self.rank).unwrap_or(0);
        for child in children(at, request.ranks.len()) {
            let packet = Packet { head: Head::Request(request.clone()), body: body.clone() };
            self.send(request.ranks[child], packet);
        }
    }

    fn receive_request(&mut self, request: Arc<Posted>, body: Body<N>) -> Result<(), Fault> {
        self.forward(&request, &body);
        let mut local = 0;
        for member in &request.members {
            if self.layout.rank_of(member.agent) == self.rank {
                local += 1;
                let entry = Entry { request: request.clone(), body: body.clone(), transfer: member.transfer };
                self.agents.entry(member.agent).or_insert_with(Hosted::absent).agenda.insert(member.sequence, entry);
            }
        }
        if local > 0 && request.route != Route::Back {
            let adder = self.adders.entry(request.id).or_default();
            adder.request = Some(if request.reduction.is_some() {
                let (task, route, monitoring, ranks) =
                    (request.task.clone(), request.route.clone(), request.monitoring, request.ranks.clone());
                let is_local = |member: &&Member| self.layout.rank_of(member.agent) == self.rank;
                let members = request.members.iter().filter(is_local).copied().collect();
                Arc::new(Posted { id: request.id, task, members, route, monitoring, ranks, reduction: request.reduction })
            } else {
                request.clone()
            });
            adder.local_missing = local;
            self.fold(request.id)?;
        }
        drop(body);
        for member in &request.members {
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

    /// Delivers a whole sum to the server, or as a transfer to agents on this rank.
    fn deliver(&mut self, request: RequestId, to: Vec<AgentId>, body: Body<N>) -> Result<(), Fault> {
        if to.is_empty() {
            if let Some(coordinator) = &mut self.coordinator {
                coordinator.receive_sum(request, body);
            }
            return self.advance_server();
        }
        self.transfers.insert(request, Transfer { body, to: to.clone() });
        for id in to {
            self.advance_agent(id);
        }
        self.try_quiesce()
    }

    /// Takes a member's contribution to the slice that this rank adds.
    fn add_contribution(&mut self, request: RequestId, from: AgentId, len: u64, contribution: Body<N>) -> Result<(), Fault> {
        let added = self.adders.entry(request).or_default().add(from, len, contribution);
        added.map_err(|cause| self.fault(Some(from), cause))?;
        self.fold(request)
    }

    /// Adds the contributions that have arrived, and sends the total when it is complete.
    fn fold(&mut self, id: RequestId) -> Result<(), Fault> {
        let Some(adder) = self.adders.get_mut(&id) else { return Ok(()) };
        let folded = (adder.fold(), adder.request.clone(), adder.len);
        if let (Some(contribution), Some(request), Some(number)) =
            (&folded.0, &folded.1, folded.1.as_ref().and_then(|request| request.reduction))
        {
            self.traffic.count("sums of all", (contribution.len() * size_of::<N>()) as u64);
            self.reductions.push(Reduction { number, request: request.clone(), contribution: contribution.clone() });
        } else if let (Some(total), Some(request), Some((_, len))) = folded {
            let ranks = adding_ranks::<N>(&self.layout, &request.member_ids(), len as usize);
            let part = ranks.iter().position(|&rank| rank == self.rank).unwrap_or(0);
            let to = match &request.route {
                Route::SumTo(to) => to.as_slice(),
                Route::Back | Route::Sum => &[],
            };
            self.send_all(total_packets(&self.layout, id, part as u32, ranks.len() as u32, to, total));
        }
        if self.adders.get(&id).is_some_and(|adder| adder.finished && adder.local_missing == 0) {
            self.adders.remove(&id);
        }
        Ok(())
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
        let spent = self.spent.entry(id).or_default();
        if request.monitoring {
            spent.monitoring += seconds;
            self.monitoring += seconds / self.threads.min(self.agents.len()).max(1) as f64;
        } else {
            spent.tasks += seconds;
        }
        let (monitoring, records) = (self.monitoring, std::mem::take(&mut self.records));
        let is_sum = self.leaves_out_zeros && request.route != Route::Back;
        let is_sparse = is_sum.then(|| is_large_and_sparse(&body));
        let head = Head::Report { request: request.id, from: id, seconds, monitoring, bytes, report, records, is_sparse };
        if request.route == Route::Back {
            self.send(0, Packet { head, body });
            return Ok(());
        }
        self.send(0, Packet { head, body: Body::empty() });
        let len = body.len();
        if request.reduction.is_some() {
            if let Some(adder) = self.adders.get_mut(&request.id) {
                adder.local_missing -= 1;
            }
            return self.add_contribution(request.id, id, len as u64, body);
        }
        let ranks = adding_ranks::<N>(&self.layout, &request.member_ids(), len);
        let adds_here = ranks.contains(&self.rank);
        if let Some(adder) = self.adders.get_mut(&request.id) {
            adder.local_missing -= 1;
            adder.finished |= !adds_here;
        }
        for (part, &rank) in ranks.iter().enumerate() {
            let contribution = body.slice(bounds(part, ranks.len(), len));
            if rank != self.rank {
                let head = Head::Slice { request: request.id, from: id, len: len as u64 };
                self.send(rank, Packet { head, body: contribution });
            }
        }
        // The own slice comes last: when it is the only holder of its memory, contributions are added in place.
        let own = ranks.iter().position(|&rank| rank == self.rank).map(|part| bounds(part, ranks.len(), len));
        match own {
            Some(own) => {
                let contribution = body.slice(own);
                drop(body);
                self.add_contribution(request.id, id, len as u64, contribution)
            }
            None => self.fold(request.id),
        }
    }

    /// Starts the server's next call, or the next step towards a checkpoint.
    fn advance_server(&mut self) -> Result<(), Fault> {
        let Some(coordinator) = &mut self.coordinator else { return Ok(()) };
        let (work, out) = coordinator.next_work()?;
        self.work.extend(work);
        self.send_all(out);
        Ok(())
    }

    fn try_quiesce(&mut self) -> Result<(), Fault> {
        let (started, agents, transfers) = (self.started, &self.agents, &self.transfers);
        let is_quiet = |waiting: &mut Quiescing| {
            started
                && agents.values().all(|hosted| hosted.agent.is_some() && hosted.agenda.is_empty())
                && waiting.expected.iter().all(|(_, transfer)| transfers.contains_key(transfer))
        };
        let Some(Quiescing { saved_here, wants_states, .. }) = self.quiescing.take_if(is_quiet) else { return Ok(()) };
        let recording = self.activity(None, Action::Recording);
        let since = Instant::now();
        let stored = self.store.as_ref().map_or(Ok(Vec::new()), |store| guard(recording, || store.flush()))?;
        if self.store.is_some() {
            self.note_saving(Doing::Recording, since);
        }
        let since = Instant::now();
        let saved = if wants_states { self.save_states(&saved_here)? } else { Ok(Saved::default()) };
        let saving_seconds = since.elapsed().as_secs_f64();
        if wants_states {
            self.note_saving(Doing::SavingStates, since);
        }
        let (Saved { agents, transfers }, failure) = match saved {
            Ok(saved) => (saved, None),
            Err(cause) => (Saved::default(), Some(cause)),
        };
        let records = std::mem::take(&mut self.records);
        let traffic = std::mem::take(&mut self.traffic);
        let spent: Vec<(AgentId, AgentTime)> = std::mem::take(&mut self.spent).into_iter().collect();
        let usage = Box::new(RankUsage {
            host: host(),
            threads: self.threads,
            thread_seconds: spent.iter().map(|(_, spent)| spent.total()).sum(),
            peak_memory: peak_memory(),
            ..std::mem::take(&mut self.usage)
        });
        let rank = self.rank;
        let head = Head::Quiesced { rank, agents, transfers, records, traffic, spent, stored, failure, saving_seconds, usage };
        self.send(0, Packet { head, body: Body::empty() });
        Ok(())
    }

    /// Notes a time of saving that ends now.
    pub fn note_saving(&mut self, doing: Doing, since: Instant) {
        let seconds = since.elapsed().as_secs_f64();
        self.usage.saving += seconds;
        self.saved_seconds += seconds;
        if let Some(timeline) = &self.timeline {
            timeline.add(doing, 0, None, None, since);
        }
    }

    /// Saves the states of this rank's agents, and the transfers of these requests. The inner error is that of
    /// the store, with which the run goes on.
    fn save_states(&self, saved_here: &BTreeSet<RequestId>) -> Result<Result<Saved, String>, Fault> {
        let fault = &RefCell::new(None);
        let mut ids = Vec::with_capacity(self.agents.len());
        let mut states: Vec<WriteState> = Vec::with_capacity(self.agents.len());
        for (&id, hosted) in &self.agents {
            if let Some(agent) = &hosted.agent {
                let activity = self.activity(Some(id), Action::Saving);
                ids.push(id);
                states.push(Box::new(move |to| {
                    guard(activity, || agent.write_state(to)).map_err(|failed| {
                        let cause = failed.cause.clone();
                        fault.replace(Some(failed));
                        cause.into()
                    })
                }));
            }
        }
        let mut transfers = Vec::with_capacity(self.transfers.len());
        for (&request, transfer) in &self.transfers {
            let encoding = saved_here.contains(&request).then(|| {
                let (bytes, is_packed) = SavedBody::to_bytes(&transfer.body);
                states.push(Box::new(move |to| Ok(to.write_all(&bytes)?)));
                (transfer.body.len(), is_packed)
            });
            transfers.push((request, transfer.to.clone(), encoding));
        }
        let stored = match &self.states {
            Some(store) => guard(self.activity(None, Action::Saving), || Ok(store.save(states)))?,
            None => in_memory(states),
        };
        let mut stored = match stored {
            Ok(stored) => stored.into_iter(),
            Err(NotSaved::State(cause)) => {
                let of_agent = fault.take();
                return Err(of_agent.unwrap_or_else(|| self.activity(None, Action::Saving).fault(cause.to_string())));
            }
            Err(NotSaved::Store(cause)) => return Ok(Err(format!("rank {}: {cause}", self.rank))),
        };
        let agents = ids.into_iter().zip(&mut stored).collect();
        let mut saved_body = |(values, is_packed)| Some(SavedBody { values, is_packed, bytes: stored.next()? });
        let saved_transfer = |(request, to, encoding): (RequestId, Vec<AgentId>, Option<(usize, bool)>)| SavedTransfer {
            request,
            to,
            body: encoding.and_then(&mut saved_body),
        };
        Ok(Ok(Saved { agents, transfers: transfers.into_iter().map(saved_transfer).collect() }))
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
        Self { agent: None, next_sequence: 0, agenda: BTreeMap::new() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
