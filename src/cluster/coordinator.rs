//! Rank 0's half of the engine: open requests, their responses, promised transfers, and checkpoints.

use super::body::Body;
use super::checkpoint::{Checkpoint, HeldRequest};
use super::codec::Raw;
use super::erased::{Erased, ErasedServer};
use super::fault::{Action, Activity, Fault, guard};
use super::layout::{AgentId, Layout, Rank};
use super::method::{Order, Progress};
use super::packet::{AgentTime, Head, Member, Packet, Posted, RequestId, SavedTransfer, TimeSpent, Traffic};
use super::record::{Extents, Record, StoredByRank};
use super::request::{EncodedReport, EncodedRequest, EncodedResponse, ResponseOf, Route};
use super::work::Work;
use crate::number::Number;
use std::collections::{BTreeMap, VecDeque};
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
    open: BTreeMap<RequestId, Open<N>>,
    /// Completed requests whose responses are delivered in the order of arrival.
    complete: VecDeque<RequestId>,
    next_request: RequestId,
    /// For each agent, the number of requests sent to it.
    places: Vec<u64>,
    /// For each agent, the transfers that were promised to it and that no request has used yet.
    promised_transfers: Vec<VecDeque<RequestId>>,
    held: VecDeque<EncodedRequest<N>>,
    phase: Phase,
    gathered: Gathered,
    /// Seconds of the run that agents have spent on monitoring, according to the reports so far.
    monitoring: f64,
    /// Seconds that the run has waited while the server handled monitoring responses.
    server_monitoring: f64,
    pub progress: Progress,
    pub responses: u64,
    /// Records since the driver last took them.
    pub records: Vec<Record>,
    /// The amounts that ranks have stored since the last checkpoint.
    pub stored: StoredByRank,
    pub traffic: Traffic,
    pub spent: TimeSpent,
    /// If the driver sums by all-reduce: the ranks that take part, and the number of sums so far.
    pub reducing: Option<(Vec<Rank>, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// New requests are held until all open requests are complete.
    Draining,
    /// Waiting for the states of this many ranks.
    Gathering(u32),
    /// All states are there.
    Quiesced,
}

struct Open<N: Number> {
    members: Vec<AgentId>,
    monitoring: bool,
    reports: BTreeMap<AgentId, EncodedReport<N>>,
    wants_sum: bool,
    sum: Option<Body<N>>,
    /// When the last part arrived.
    complete: Option<Instant>,
}

impl<N: Number> Open<N> {
    fn is_complete(&self) -> bool {
        self.reports.len() == self.members.len() && (!self.wants_sum || self.sum.is_some())
    }
}

#[derive(Default)]
struct Gathered {
    agents: BTreeMap<AgentId, Raw<u8>>,
    transfers: BTreeMap<RequestId, SavedTransfer>,
}

type Packets<N> = Vec<(Rank, Packet<N>)>;

impl<N: Number> Coordinator<N> {
    /// The coordinator of a new or resumed run, with the first packets and the server's first work.
    pub fn new(method: Erased<N>, layout: Layout, saved: Option<Checkpoint>) -> Result<(Self, Packets<N>, Work<N>), Fault> {
        let agents = layout.agents as usize;
        let mut coordinator = Self {
            method,
            layout,
            server: None,
            not_started: saved.is_none(),
            open: BTreeMap::new(),
            complete: VecDeque::new(),
            next_request: 0,
            places: vec![0; agents],
            promised_transfers: vec![VecDeque::new(); agents],
            held: VecDeque::new(),
            phase: Phase::Running,
            gathered: Gathered::default(),
            monitoring: 0.0,
            server_monitoring: 0.0,
            progress: Progress::default(),
            responses: 0,
            records: Vec::new(),
            stored: StoredByRank::new(),
            traffic: Traffic::default(),
            spent: TimeSpent::default(),
            reducing: None,
        };
        let creating = coordinator.activity(Action::Creating);
        let mut states = BTreeMap::new();
        let (mut server, mut transfers) = (None, Vec::new());
        if let Some(saved) = saved {
            saved.check(coordinator.method.name(), N::NAME).map_err(|cause| creating.fault(cause))?;
            coordinator.check_states(Action::Creating, &saved.agents)?;
            coordinator.next_request = saved.next_request;
            coordinator.promised_transfers = saved.promised_transfers.into_iter().map(VecDeque::from).collect();
            let held: Result<_, _> = saved.held.into_iter().map(HeldRequest::into_ask).collect();
            coordinator.held = held.map_err(|cause| creating.fault(cause))?;
            coordinator.progress = saved.progress;
            coordinator.responses = saved.responses;
            coordinator.records = saved.records;
            coordinator.traffic = saved.traffic;
            coordinator.spent = saved.spent;
            states = saved.agents.into_iter().collect();
            server = Some(saved.server);
            transfers = saved.transfers;
        }
        let mut out: Packets<N> = Vec::new();
        for rank in 0..layout.ranks {
            let saved = layout.hosted(rank).filter_map(|agent| Some((agent, states.remove(&agent)?))).collect();
            out.push((rank, Packet { head: Head::Start { saved }, body: Body::empty() }));
        }
        for transfer in transfers {
            let body = Body::from_bytes(&transfer.body.0).map_err(|cause| creating.fault(cause))?;
            out.extend(totals(&layout, transfer.request, 0, 1, &transfer.to, body));
        }
        Ok((coordinator, out, Work::MakeServer { saved: server }))
    }

    /// Refuses incomplete states: agents without one would silently start from the beginning.
    fn check_states(&self, action: Action, states: &[(AgentId, Raw<u8>)]) -> Result<(), Fault> {
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

    /// Takes the requests that the server posted.
    pub fn queue(&mut self, requests: Vec<EncodedRequest<N>>) -> Result<Packets<N>, Fault> {
        self.held.extend(requests);
        self.post_held()
    }

    /// Sends held requests, unless a checkpoint is under way.
    fn post_held(&mut self) -> Result<Packets<N>, Fault> {
        let mut out = Vec::new();
        if self.phase == Phase::Running {
            while let Some(request) = self.held.pop_front() {
                self.post(request, &mut out)?;
            }
        }
        Ok(out)
    }

    fn check(&self, what: &str, agents: &[AgentId]) -> Result<(), Fault> {
        if agents.is_empty() {
            return Err(self.fault(format!("a request has no {what}")));
        }
        if let Some(twice) = agents.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(self.fault(format!("agent {} is twice among the {what} of a request", twice[0])));
        }
        match agents.last() {
            Some(&last) if last >= self.layout.agents => Err(self.fault(format!(
                "agent {last} is among the {what} of a request, but there are only {} agents",
                self.layout.agents
            ))),
            _ => Ok(()),
        }
    }

    fn post(&mut self, request: EncodedRequest<N>, out: &mut Packets<N>) -> Result<(), Fault> {
        let id = self.next_request;
        self.next_request += 1;
        self.check("members", &request.to)?;
        if request.with_transfer && !request.body.is_empty() {
            return Err(self.fault("a request has a body and a transfer: remove `with` or `with_transfer`"));
        }
        let mut members = Vec::with_capacity(request.to.len());
        for &agent in &request.to {
            let transfer = if request.with_transfer {
                let transfer = self.promised_transfers[agent as usize].pop_front();
                Some(transfer.ok_or_else(|| {
                    self.fault(format!("a request uses a transfer to agent {agent}, but none was promised to it"))
                })?)
            } else {
                None
            };
            let place = self.places[agent as usize];
            self.places[agent as usize] += 1;
            members.push(Member { agent, place, transfer });
        }
        if let Route::SumTo(to) = &request.route {
            self.check("receivers", to)?;
            for &agent in to {
                self.promised_transfers[agent as usize].push_back(id);
            }
        }
        let wants_sum = request.route == Route::Sum;
        self.open.insert(
            id,
            Open {
                members: request.to.clone(),
                monitoring: request.monitoring,
                reports: BTreeMap::new(),
                wants_sum,
                sum: None,
                complete: None,
            },
        );
        let mut ranks = self.layout.ranks_of(&request.to);
        let reduction = match &mut self.reducing {
            Some((hosting, sums)) if request.route != Route::Back && *hosting == ranks => {
                *sums += 1;
                Some(*sums - 1)
            }
            _ => None,
        };
        if ranks[0] != 0 {
            ranks.insert(0, 0);
        }
        let posted =
            Posted { id, task: request.task, members, route: request.route, monitoring: request.monitoring, ranks, reduction };
        out.push((0, Packet { head: Head::Request(Arc::new(posted)), body: request.body }));
        Ok(())
    }

    /// Takes a member's report; `monitoring` is the time that its rank has spent on monitoring so far.
    pub fn report(&mut self, request: RequestId, reported: EncodedReport<N>, monitoring: f64) {
        // All ranks perform a monitoring request at the same point of the run. It delays the run by the time of the slowest rank, not by
        // the sum over ranks.
        self.monitoring = self.monitoring.max(monitoring);
        self.arrived(request, |open| drop(open.reports.insert(reported.from, reported)));
    }

    /// Takes a sum for the server.
    pub fn sum(&mut self, request: RequestId, sum: Body<N>) {
        self.arrived(request, |open| open.sum = Some(sum));
    }

    fn arrived(&mut self, request: RequestId, take: impl FnOnce(&mut Open<N>)) {
        let Some(open) = self.open.get_mut(&request) else { return };
        take(open);
        if open.is_complete() {
            open.complete = Some(Instant::now());
        }
        if open.is_complete() && (open.monitoring || self.method.order() == Order::Arrival) {
            self.complete.push_back(request);
        }
    }

    /// Takes back the server after a worker has created or run it.
    pub fn return_server(&mut self, server: Box<dyn ErasedServer<N>>, progress: Progress) {
        self.progress = progress;
        self.server = Some(server);
    }

    /// Accounts for the duration of a call of the server.
    pub fn add_server_time(&mut self, seconds: f64, monitoring: bool) {
        if monitoring {
            self.spent.server_monitoring += seconds;
            self.server_monitoring += self.waited(seconds);
        } else {
            self.spent.server += seconds;
        }
    }

    /// The part of a monitoring call, which ends now, during which the run has waited for it: the time since another response was
    /// ready, or the whole call if no other request is open.
    fn waited(&self, seconds: f64) -> f64 {
        let mut others = self.open.values().filter(|open| !open.monitoring).peekable();
        if others.peek().is_none() {
            return seconds;
        }
        let ready = match self.method.order() {
            Order::Posted => others.next().and_then(|open| open.complete),
            Order::Arrival => others.filter_map(|open| open.complete).min(),
        };
        ready.map_or(0.0, |since| since.elapsed().as_secs_f64().min(seconds))
    }

    /// The seconds that the run's clock excludes.
    pub fn excluded(&self) -> f64 {
        self.monitoring + self.server_monitoring
    }

    /// The next call of the server, or the next step towards a checkpoint.
    pub fn next(&mut self) -> Result<(Option<Work<N>>, Packets<N>), Fault> {
        let Some(server) = self.server.take() else { return Ok((None, Vec::new())) };
        if std::mem::take(&mut self.not_started) {
            return Ok((Some(self.serve(server, None, false)), Vec::new()));
        }
        if let Some((response, monitoring)) = self.next_response() {
            self.responses += 1;
            return Ok((Some(self.serve(server, Some(response), monitoring)), Vec::new()));
        }
        self.server = Some(server);
        let mut out = self.post_held()?;
        let quiet = self.open.is_empty() && matches!(self.phase, Phase::Running | Phase::Draining);
        if quiet {
            // If no request is held, the run is over: the last checkpoint includes all work after reports and all transfers.
            self.phase = Phase::Gathering(self.layout.ranks);
            let mut expected: BTreeMap<Rank, Vec<(AgentId, RequestId)>> = BTreeMap::new();
            for (agent, transfers) in (0..).zip(&self.promised_transfers) {
                expected
                    .entry(self.layout.rank_of(agent))
                    .or_default()
                    .extend(transfers.iter().map(|&transfer| (agent, transfer)));
            }
            for rank in 0..self.layout.ranks {
                let head = Head::Quiesce { expected: expected.remove(&rank).unwrap_or_default() };
                out.push((rank, Packet { head, body: Body::empty() }));
            }
        }
        Ok((None, out))
    }

    fn serve(&self, server: Box<dyn ErasedServer<N>>, response: Option<EncodedResponse<N>>, monitoring: bool) -> Work<N> {
        Work::Serve { server, response, monitoring, excluded: self.excluded() }
    }

    /// The next response for the server, and whether it belongs to a monitoring request.
    fn next_response(&mut self) -> Option<(EncodedResponse<N>, bool)> {
        let in_turn = match self.method.order() {
            Order::Posted => self.open.iter().find(|(_, open)| !open.monitoring).filter(|(_, open)| open.is_complete()),
            Order::Arrival => None,
        };
        let request = in_turn.map(|(&request, _)| request).or_else(|| self.complete.pop_front())?;
        let open = self.open.remove(&request)?;
        let response = ResponseOf { reports: open.reports.into_values().collect(), sum: open.sum.unwrap_or_else(Body::empty) };
        Some((response, open.monitoring))
    }

    /// Takes the states of a rank.
    pub fn quiesced(
        &mut self,
        agents: Vec<(AgentId, Raw<u8>)>,
        transfers: Vec<SavedTransfer>,
        traffic: &Traffic,
        spent: Vec<(AgentId, AgentTime)>,
    ) {
        self.gathered.agents.extend(agents);
        for transfer in transfers {
            match self.gathered.transfers.get_mut(&transfer.request) {
                Some(same) => {
                    // The bytes of a checkpoint must not depend on the order in which ranks send their states.
                    same.to.extend(transfer.to);
                    same.to.sort_unstable();
                }
                None => {
                    self.gathered.transfers.insert(transfer.request, transfer);
                }
            }
        }
        self.traffic.add(traffic);
        spent.into_iter().for_each(|(agent, spent)| self.spent.agents.entry(agent).or_default().add(spent));
        if let Phase::Gathering(left) = self.phase {
            self.phase = if left == 1 { Phase::Quiesced } else { Phase::Gathering(left - 1) };
        }
    }

    /// Starts a checkpoint: it is taken when all open requests are complete.
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
        self.check_states(Action::Saving, &agents)?;
        Ok(Some(Checkpoint {
            method: self.method.name().into(),
            number: N::NAME.into(),
            finished: self.held.is_empty(),
            responses: self.responses,
            seconds,
            records: Vec::new(),
            drawn: Extents::default(),
            stored: std::mem::take(&mut self.stored),
            progress: self.progress,
            traffic: self.traffic.clone(),
            spent: self.spent.clone(),
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
        self.post_held()
    }
}

/// The packets that carry one slice of a total to the ranks of its receivers, or to the server if there are none.
pub(super) fn totals<N: Number>(
    layout: &Layout,
    request: RequestId,
    part: u32,
    parts: u32,
    to: &[AgentId],
    body: Body<N>,
) -> Packets<N> {
    if to.is_empty() {
        return vec![(0, Packet { head: Head::Total { request, part, parts, to: Vec::new() }, body })];
    }
    let ranks = layout.ranks_of(to);
    ranks
        .into_iter()
        .map(|rank| {
            let here = to.iter().copied().filter(|&agent| layout.rank_of(agent) == rank).collect();
            (rank, Packet { head: Head::Total { request, part, parts, to: here }, body: body.clone() })
        })
        .collect()
}
