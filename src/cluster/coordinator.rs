//! The coordinator on rank 0: sends the server's requests, collects their responses, and takes checkpoints.

use super::body::Body;
use super::checkpoint::{Checkpoint, HeldRequest};
use super::erased::{Erased, ErasedServer};
use super::fault::{Action, Activity, Fault, guard};
use super::layout::{AgentId, Layout, Rank};
use super::members::{Member, Members, Promise};
use super::method::{Order, Progress};
use super::packet::{AgentBytes, AgentTime, Head, Packet, Posted, Report, SavedTransfer, TimeSpent, Traffic};
use super::ranges::Ranges;
use super::record::{Extents, Record, StoredDraws};
use super::request::{EncodedReport, EncodedRequest, EncodedResponse, RequestId, ResponseOf, Route};
use super::states::{SavedState, StateStore};
use super::tree;
use super::usage::RankReport;
use super::work::Work;
use crate::number::Number;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// The server, its open requests, and the state of the next checkpoint.
pub(super) struct Coordinator<N: Number> {
    method: Erased<N>,
    layout: Layout,
    /// None while a worker runs it.
    server: Option<Box<dyn ErasedServer<N>>>,
    /// Whether the run is new and the server has not started yet.
    not_started: bool,
    open: BTreeMap<RequestId, OpenRequest<N>>,
    /// Complete requests whose responses the server receives in the order of arrival.
    arrival_queue: VecDeque<RequestId>,
    next_request: RequestId,
    /// Whether ranks store their states.
    stores_states: bool,
    /// For each agent, the sequence number of the next request to it.
    next_sequence: Vec<u64>,
    /// For each agent, the transfers that were promised to it and that no request has used yet.
    promised_transfers: Vec<VecDeque<Promise>>,
    /// Requests that the server has posted and that are not sent yet.
    held: VecDeque<EncodedRequest<N>>,
    phase: Phase,
    gathered: Gathered,
    /// Seconds that the slowest rank has spent on monitoring, according to the reports so far.
    agent_monitoring_seconds: f64,
    /// Seconds that the run has waited while the server handled monitoring responses.
    server_monitoring_seconds: f64,
    pub progress: Progress,
    pub responses: u64,
    /// Records since the driver last took them.
    pub records: Vec<Record>,
    /// The draws that ranks have stored and the recorder has perhaps not collected yet.
    pub stored: Vec<StoredDraws>,
    pub traffic: Traffic,
    pub spent: TimeSpent,
    /// Bytes that agents have received and sent, of the responses that the server has received.
    bytes: AgentBytes,
    /// What each rank has done in this job.
    pub ranks: BTreeMap<Rank, RankReport>,
    /// The longest time from a request to its response so far.
    longest_response: f64,
    /// If the driver sums by all-reduce: the ranks that take part, and the number of sums so far.
    pub allreduce: Option<(Ranges, u64)>,
    /// Whether packed messages were faster for the last contribution to a sum, so that the next sum is not added by all-reduce.
    pub next_sum_is_packed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// A checkpoint is due: new requests are held until no request is open.
    Draining,
    /// Waiting for the states of this many ranks.
    Gathering(u32),
    /// All ranks have sent their states.
    Quiesced,
}

/// A request whose response the server has not received.
struct OpenRequest<N: Number> {
    /// How many reports there will be.
    members: usize,
    monitoring: bool,
    bytes: AgentBytes,
    reports: BTreeMap<AgentId, EncodedReport<N>>,
    wants_sum: bool,
    sum: Option<Body<N>>,
    posted_at: Instant,
    /// When the last report or the sum arrived.
    completed_at: Option<Instant>,
}

impl<N: Number> OpenRequest<N> {
    fn is_complete(&self) -> bool {
        self.reports.len() == self.members && (!self.wants_sum || self.sum.is_some())
    }
}

/// What ranks have sent for the checkpoint.
#[derive(Default)]
struct Gathered {
    agents: BTreeMap<AgentId, SavedState>,
    transfers: BTreeMap<RequestId, SavedTransfer>,
    failure: Option<String>,
    /// The longest time that a rank took to save its states.
    saving_seconds: f64,
}

type Packets<N> = Vec<(Rank, Packet<N>)>;

impl<N: Number> Coordinator<N> {
    /// The coordinator of a new or resumed run, with the first packets and the server's first work.
    ///
    /// # Errors
    /// If the checkpoint is not one of this method with this number of agents, or its sums cannot be read.
    pub fn new(
        method: Erased<N>,
        layout: Layout,
        states: Option<&dyn StateStore>,
        saved: Option<Checkpoint>,
    ) -> Result<(Self, Packets<N>, Work<N>), Fault> {
        let agents = layout.agents as usize;
        let mut coordinator = Self {
            method,
            layout,
            server: None,
            not_started: saved.is_none(),
            open: BTreeMap::new(),
            arrival_queue: VecDeque::new(),
            next_request: 0,
            stores_states: states.is_some(),
            next_sequence: vec![0; agents],
            promised_transfers: vec![VecDeque::new(); agents],
            held: VecDeque::new(),
            phase: Phase::Running,
            gathered: Gathered::default(),
            agent_monitoring_seconds: 0.0,
            server_monitoring_seconds: 0.0,
            progress: Progress::default(),
            responses: 0,
            records: Vec::new(),
            stored: Vec::new(),
            traffic: Traffic::default(),
            spent: TimeSpent::default(),
            bytes: AgentBytes::default(),
            ranks: BTreeMap::new(),
            longest_response: 0.0,
            allreduce: None,
            next_sum_is_packed: false,
        };
        let creating = coordinator.activity(Action::Creating);
        let mut saved_agents = BTreeMap::new();
        let (mut server, mut transfers) = (None, Vec::new());
        if let Some(saved) = saved {
            saved.check(coordinator.method.name(), N::NAME).map_err(|cause| creating.fault(cause))?;
            coordinator.check_states(Action::Creating, &saved.agents)?;
            coordinator.next_request = saved.next_request;
            coordinator.promised_transfers = saved.promised_transfers.into_iter().map(VecDeque::from).collect();
            let held: Result<_, _> = saved.held.into_iter().map(HeldRequest::into_request).collect();
            coordinator.held = held.map_err(|cause| creating.fault(cause))?;
            coordinator.progress = saved.progress;
            coordinator.responses = saved.responses;
            coordinator.records = saved.records;
            coordinator.traffic = saved.traffic;
            coordinator.spent = saved.spent;
            coordinator.bytes = saved.bytes;
            saved_agents = saved.agents.into_iter().collect();
            server = Some(saved.server);
            transfers = saved.transfers;
        }
        let mut out: Packets<N> = Vec::new();
        for rank in 0..layout.ranks {
            let saved = layout.hosted(rank).filter_map(|agent| Some((agent, saved_agents.remove(&agent)?))).collect();
            out.push((rank, Packet { head: Head::Start { saved }, body: Body::empty() }));
        }
        for transfer in transfers {
            let body = transfer.body.ok_or_else(|| creating.fault("the checkpoint lacks a sum"))?;
            if let Some(agent) = transfer.to.iter().find(|&&agent| agent >= layout.agents) {
                return Err(creating.fault(format!("the checkpoint has a sum for agent {agent}, which the run does not have")));
            }
            let body = body.load(states).map_err(|cause| creating.fault(cause.to_string()))?;
            out.push(total_packet(&layout, transfer.request, (0, 1), Ranges::new(transfer.to), body));
        }
        Ok((coordinator, out, Work::MakeServer { saved: server }))
    }

    /// Refuses incomplete states: agents without one would silently start from the beginning.
    fn check_states(&self, action: Action, states: &[(AgentId, SavedState)]) -> Result<(), Fault> {
        if states.iter().map(|&(agent, _)| agent).eq(0..self.layout.agents) {
            return Ok(());
        }
        let (states, agents) = (states.len(), self.layout.agents);
        Err(self.activity(action).fault(format!("the checkpoint holds the states of {states} agents, but the run has {agents}")))
    }

    fn activity(&self, action: Action) -> Activity {
        Activity { method: self.method.name(), rank: 0, agent: None, action }
    }

    fn fault(&self, cause: impl Into<String>) -> Fault {
        self.activity(Action::Posting).fault(cause)
    }

    /// Adds requests that the server has posted, and sends them unless a checkpoint is under way.
    pub fn add_requests(&mut self, requests: Vec<EncodedRequest<N>>) -> Result<Packets<N>, Fault> {
        self.held.extend(requests);
        self.send_held()
    }

    /// Sends held requests, unless a checkpoint is under way.
    fn send_held(&mut self) -> Result<Packets<N>, Fault> {
        let mut out = Vec::new();
        if self.phase == Phase::Running {
            while let Some(request) = self.held.pop_front() {
                self.send_request(request, &mut out)?;
            }
        }
        Ok(out)
    }

    fn check_agents(&self, role: &str, agents: &Ranges) -> Result<(), Fault> {
        if agents.is_empty() {
            return Err(self.fault(format!("a request has no {role}")));
        }
        if let Some(twice) = agents.repeated() {
            return Err(self.fault(format!("agent {twice} is twice among the {role} of a request")));
        }
        match agents.beyond(self.layout.agents) {
            Some(agent) => Err(self.fault(format!(
                "agent {agent} is among the {role} of a request, but there are only {} agents",
                self.layout.agents
            ))),
            None => Ok(()),
        }
    }

    fn send_request(&mut self, request: EncodedRequest<N>, out: &mut Packets<N>) -> Result<(), Fault> {
        let id = self.next_request;
        self.next_request += 1;
        self.check_agents("members", &request.to)?;
        if request.with_transfer && !request.body.is_empty() {
            return Err(self.fault("a request has a body and a transfer: remove `with` or `with_transfer`"));
        }
        let mut members = Vec::with_capacity(request.to.len());
        for agent in request.to.iter() {
            let transfer = if request.with_transfer {
                let transfer = self.promised_transfers[agent as usize].pop_front();
                Some(transfer.ok_or_else(|| {
                    self.fault(format!("a request uses a transfer to agent {agent}, but none was promised to it"))
                })?)
            } else {
                None
            };
            let sequence = self.next_sequence[agent as usize];
            self.next_sequence[agent as usize] += 1;
            members.push(Member { agent, sequence, transfer });
        }
        if let Route::SumTo(to) = &request.route {
            self.check_agents("receivers", to)?;
            let promise = Promise { request: id, stays: request.route.stays_at(&request.to) };
            for agent in to.iter() {
                self.promised_transfers[agent as usize].push_back(promise);
            }
        }
        let wants_sum = request.route == Route::Sum;
        self.open.insert(
            id,
            OpenRequest {
                members: request.to.len(),
                monitoring: request.monitoring,
                bytes: AgentBytes::default(),
                reports: BTreeMap::new(),
                wants_sum,
                sum: None,
                posted_at: Instant::now(),
                completed_at: None,
            },
        );
        let reduction = match &mut self.allreduce {
            Some((hosting, sums))
                if request.route != Route::Back && *hosting == self.layout.ranks_of(&request.to) && !self.next_sum_is_packed =>
            {
                *sums += 1;
                Some(*sums - 1)
            }
            _ => None,
        };
        let members = Members::new(members);
        let posted = Posted { id, task: request.task, members, route: request.route, monitoring: request.monitoring, reduction };
        out.push((0, Packet { head: Head::Request(Arc::new(posted)), body: request.body }));
        Ok(())
    }

    /// Adds the reports of members, whose bodies are one after another in `body`.
    pub fn receive_reports(&mut self, request: RequestId, reports: Vec<Report>, body: &Body<N>) {
        let mut at = 0;
        for report in reports {
            let end = at + report.values;
            self.receive_report(request, report, body.slice(at..end));
            at = end;
        }
    }

    fn receive_report(&mut self, request: RequestId, report: Report, body: Body<N>) {
        let Report { from, seconds, response_seconds, monitoring_seconds, bytes, report, records, is_faster_packed, .. } = report;
        self.records.extend(records);
        // For the next sum: all ranks must add a sum in the same way.
        self.next_sum_is_packed = is_faster_packed.unwrap_or(self.next_sum_is_packed);
        // All ranks perform a monitoring request at the same point of the run. It delays the run by the time of the slowest rank, not by
        // the sum over ranks.
        self.agent_monitoring_seconds = self.agent_monitoring_seconds.max(monitoring_seconds);
        if self.open.get(&request).is_some_and(|open| !open.monitoring) {
            self.ranks.entry(self.layout.rank_of(from)).or_default().response_times.add(response_seconds);
        }
        self.update_open(request, |open| {
            open.bytes.add(bytes);
            open.reports.insert(from, EncodedReport { from, seconds, report, body });
        });
    }

    /// Adds the sum of the reports' bodies.
    pub fn receive_sum(&mut self, request: RequestId, sum: Body<N>) {
        self.update_open(request, |open| open.sum = Some(sum));
    }

    fn update_open(&mut self, request: RequestId, update: impl FnOnce(&mut OpenRequest<N>)) {
        let Some(open) = self.open.get_mut(&request) else { return };
        update(open);
        if open.is_complete() {
            open.completed_at = Some(Instant::now());
            self.longest_response = self.longest_response.max(open.posted_at.elapsed().as_secs_f64());
        }
        if open.is_complete() && (open.monitoring || self.method.order() == Order::Arrival) {
            self.arrival_queue.push_back(request);
        }
    }

    /// Takes back the server after a worker has created or run it.
    pub fn return_server(&mut self, server: Box<dyn ErasedServer<N>>, progress: Progress) {
        self.progress = progress;
        self.server = Some(server);
    }

    /// Adds the duration of a call of the server that has just ended.
    pub fn add_server_time(&mut self, seconds: f64, monitoring: bool) {
        if monitoring {
            self.spent.server_monitoring += seconds;
            self.server_monitoring_seconds += self.delay_of_run(seconds);
        } else {
            self.spent.server += seconds;
        }
    }

    /// How long the run was delayed by a monitoring call of the server, which took these seconds and ends now. If no other request is
    /// open, this is the whole call. Otherwise it is the part of the call during which another response was ready for the server.
    fn delay_of_run(&self, seconds: f64) -> f64 {
        let mut others = self.open.values().filter(|open| !open.monitoring).peekable();
        if others.peek().is_none() {
            return seconds;
        }
        let ready_since = match self.method.order() {
            Order::Posted => others.next().and_then(|open| open.completed_at),
            Order::Arrival => others.filter_map(|open| open.completed_at).min(),
        };
        ready_since.map_or(0.0, |since| since.elapsed().as_secs_f64().min(seconds))
    }

    /// The longest time from a request to its response so far in this job.
    pub fn longest_response(&self) -> f64 {
        self.longest_response
    }

    /// The seconds that the run's clock excludes.
    pub fn excluded(&self) -> f64 {
        self.agent_monitoring_seconds + self.server_monitoring_seconds
    }

    /// The next call of the server if there is one. Otherwise packets: held requests, or requests for the states of all ranks.
    pub fn next_work(&mut self) -> Result<(Option<Work<N>>, Packets<N>), Fault> {
        let Some(server) = self.server.take() else { return Ok((None, Vec::new())) };
        if std::mem::take(&mut self.not_started) {
            return Ok((Some(self.serve(server, None, false)), Vec::new()));
        }
        if let Some((response, monitoring)) = self.next_response() {
            self.responses += 1;
            return Ok((Some(self.serve(server, Some(response), monitoring)), Vec::new()));
        }
        self.server = Some(server);
        let mut out = self.send_held()?;
        let is_idle = self.open.is_empty() && matches!(self.phase, Phase::Running | Phase::Draining);
        if is_idle {
            // If no request is held, the run is over. It ends with a checkpoint, which waits until agents have finished the work that they do
            // after reporting, and until transfers have arrived.
            self.phase = Phase::Gathering(self.layout.ranks);
            let mut expected: BTreeMap<Rank, Vec<(AgentId, RequestId)>> = BTreeMap::new();
            for (agent, transfers) in (0..).zip(&self.promised_transfers) {
                expected
                    .entry(self.layout.rank_of(agent))
                    .or_default()
                    .extend(transfers.iter().map(|transfer| (agent, transfer.request)));
            }
            // When the run is over, stored states would never be read.
            let wants_states = !self.stores_states || !self.held.is_empty();
            // The lowest rank on which an agent waits for a transfer saves it.
            let mut assigned = BTreeSet::new();
            for rank in 0..self.layout.ranks {
                let expected = expected.remove(&rank).unwrap_or_default();
                let saved_here =
                    expected.iter().map(|(_, request)| *request).filter(|&request| assigned.insert(request)).collect();
                let head = Head::Quiesce { expected, saved_here, wants_states };
                out.push((rank, Packet { head, body: Body::empty() }));
            }
        }
        Ok((None, out))
    }

    fn serve(&self, server: Box<dyn ErasedServer<N>>, response: Option<EncodedResponse<N>>, monitoring: bool) -> Work<N> {
        Work::Serve { server, response, monitoring, excluded: self.excluded(), bytes: self.bytes }
    }

    /// The next response for the server, and whether it belongs to a monitoring request.
    fn next_response(&mut self) -> Option<(EncodedResponse<N>, bool)> {
        let next_posted = match self.method.order() {
            Order::Posted => self.open.iter().find(|(_, open)| !open.monitoring).filter(|(_, open)| open.is_complete()),
            Order::Arrival => None,
        };
        let request = next_posted.map(|(&request, _)| request).or_else(|| self.arrival_queue.pop_front())?;
        let open = self.open.remove(&request)?;
        if !open.monitoring {
            self.bytes.add(open.bytes);
        }
        let response = ResponseOf { reports: open.reports.into_values().collect(), sum: open.sum.unwrap_or_else(Body::empty) };
        Some((response, open.monitoring))
    }

    /// Adds the states of a rank to the checkpoint.
    pub fn receive_states(
        &mut self,
        agents: Vec<(AgentId, SavedState)>,
        transfers: Vec<SavedTransfer>,
        traffic: &Traffic,
        spent: Vec<(AgentId, AgentTime)>,
        (failure, saving_seconds): (Option<String>, f64),
    ) {
        self.gathered.agents.extend(agents);
        self.gathered.failure = self.gathered.failure.take().or(failure);
        self.gathered.saving_seconds = self.gathered.saving_seconds.max(saving_seconds);
        for transfer in transfers {
            match self.gathered.transfers.get_mut(&transfer.request) {
                Some(known) => {
                    // The bytes of a checkpoint must not depend on the order in which ranks send their states.
                    known.to.extend(transfer.to);
                    known.to.sort_unstable();
                    known.body = known.body.take().or(transfer.body);
                }
                None => {
                    self.gathered.transfers.insert(transfer.request, transfer);
                }
            }
        }
        self.traffic.add(traffic);
        spent.into_iter().for_each(|(agent, spent)| self.spent.agents.entry(agent).or_default().add(spent));
        if let Phase::Gathering(missing) = self.phase {
            self.phase = if missing == 1 { Phase::Quiesced } else { Phase::Gathering(missing - 1) };
        }
    }

    /// Starts a checkpoint, which is taken when no request is open.
    pub fn drain(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    /// The checkpoint, if all states have arrived.
    pub fn take_checkpoint(&mut self, seconds: f64) -> Result<Option<Checkpoint>, Fault> {
        let (Phase::Quiesced, Some(server)) = (self.phase, &self.server) else { return Ok(None) };
        let server = guard(self.activity(Action::Saving), || server.state())?;
        let gathered = std::mem::take(&mut self.gathered);
        let agents: Vec<_> = gathered.agents.into_iter().collect();
        let finished = self.held.is_empty();
        let holds_states = gathered.failure.is_none() && !(finished && self.stores_states);
        if holds_states {
            self.check_states(Action::Saving, &agents)?;
        }
        Ok(Some(Checkpoint {
            method: self.method.name().into(),
            number: N::NAME.into(),
            finished,
            failure: gathered.failure,
            saving_seconds: gathered.saving_seconds,
            responses: self.responses,
            seconds,
            records: Vec::new(),
            recorded_draws: Extents::default(),
            stored: std::mem::take(&mut self.stored),
            ranks: self.ranks.clone(),
            progress: self.progress,
            traffic: self.traffic.clone(),
            spent: self.spent.clone(),
            bytes: self.bytes,
            next_request: self.next_request,
            server,
            agents,
            transfers: gathered.transfers.into_values().collect(),
            promised_transfers: self.promised_transfers.iter().map(|queue| queue.iter().copied().collect()).collect(),
            held: self.held.iter().map(HeldRequest::new).collect(),
        }))
    }

    /// Resumes the run after a checkpoint.
    pub fn resume(&mut self) -> Result<Packets<N>, Fault> {
        self.phase = Phase::Running;
        self.send_held()
    }
}

/// The packet with a part of a sum for the rank at the root of its receivers' tree, or for the server if there are no receivers.
pub(super) fn total_packet<N: Number>(
    layout: &Layout,
    request: RequestId,
    (part, parts): (u32, u32),
    to: Ranges,
    body: Body<N>,
) -> (Rank, Packet<N>) {
    let places = layout.places(&layout.ranks_of(&to));
    let rank = tree::root(&places, part).map_or(0, |place| layout.rank_at(place));
    (rank, Packet { head: Head::Total { request, part, parts, to }, body })
}
