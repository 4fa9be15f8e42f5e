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

/// The server and everything that waits for it.
pub(super) struct Coordinator<N: Number> {
    method: Erased<N>,
    layout: Layout,
    /// Away while a worker serves with it.
    server: Option<Box<dyn ErasedServer<N>>>,
    /// Whether the first call of a fresh run is still to be made.
    fresh: bool,
    open: BTreeMap<RequestId, Open<N>>,
    /// Those that are answered in the order in which they became complete.
    complete: VecDeque<RequestId>,
    next_request: RequestId,
    /// For each agent, how many requests it has been sent.
    places: Vec<u64>,
    /// For each agent, the transfers that were promised to it and not yet handed.
    promised_transfers: Vec<VecDeque<RequestId>>,
    held: VecDeque<EncodedRequest<N>>,
    phase: Phase,
    gathered: Gathered,
    /// Seconds that asides have taken from the run, as far as reports have told.
    monitoring: f64,
    /// Seconds that the run has waited for the server's part in asides.
    server_monitoring: f64,
    pub progress: Progress,
    pub responses: u64,
    /// Written down since the driver last took it.
    pub records: Vec<Record>,
    /// Action ranks have told that they have stored since the last rest.
    pub stored: StoredByRank,
    pub traffic: Traffic,
    pub spent: TimeSpent,
    /// The ranks that add together, and how many sums they have been sent, where the driver does this.
    pub reducing: Option<(Vec<Rank>, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// New requests are held until the open ones are answered.
    Draining,
    /// Waiting for this many ranks to come to rest.
    Gathering(u32),
    Quiesced,
}

struct Open<N: Number> {
    members: Vec<AgentId>,
    monitoring: bool,
    reports: BTreeMap<AgentId, EncodedReport<N>>,
    wants_sum: bool,
    sum: Option<Body<N>>,
    /// Since when all is there.
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

type Sent<N> = Vec<(Rank, Packet<N>)>;

impl<N: Number> Coordinator<N> {
    /// The coordinator of a fresh run or of a resumed one, with the first packets and the server's first work.
    pub fn new(method: Erased<N>, layout: Layout, saved: Option<Checkpoint>) -> Result<(Self, Sent<N>, Work<N>), Fault> {
        let agents = layout.agents as usize;
        let mut coordinator = Self {
            method,
            layout,
            server: None,
            fresh: saved.is_none(),
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
        let mut out: Sent<N> = Vec::new();
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

    /// A checkpoint without all states would begin some agents afresh.
    fn check_states(&self, action: Action, states: &[(AgentId, Raw<u8>)]) -> Result<(), Fault> {
        if states.iter().map(|&(agent, _)| agent).eq(0..self.layout.agents) {
            return Ok(());
        }
        let (states, agents) = (states.len(), self.layout.agents);
        Err(self.activity(action).fault(format!("the checkpoint holds the states of {states} agents, and the run has {agents}")))
    }

    fn activity(&self, action: Action) -> Activity {
        Activity { method: self.method.name(), rank: 0, agent: None, action }
    }

    fn fault(&self, cause: impl Into<String>) -> Fault {
        self.activity(Action::Posting).fault(cause)
    }

    /// Takes what the server posted.
    pub fn queue(&mut self, requests: Vec<EncodedRequest<N>>) -> Result<Sent<N>, Fault> {
        self.held.extend(requests);
        self.post_held()
    }

    /// Sends held requests, unless the run is coming to rest.
    fn post_held(&mut self) -> Result<Sent<N>, Fault> {
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
            Some(&last) if last >= self.layout.agents => {
                Err(self
                    .fault(format!("agent {last} is among the {what} of a request, and there are {} agents", self.layout.agents)))
            }
            _ => Ok(()),
        }
    }

    fn post(&mut self, request: EncodedRequest<N>, out: &mut Sent<N>) -> Result<(), Fault> {
        let id = self.next_request;
        self.next_request += 1;
        self.check("members", &request.to)?;
        if request.with_transfer && !request.body.is_empty() {
            return Err(self.fault("a request has a body of its own and is handed a transfer as well"));
        }
        let mut members = Vec::with_capacity(request.to.len());
        for &agent in &request.to {
            let transfer = if request.with_transfer {
                let transfer = self.promised_transfers[agent as usize].pop_front();
                Some(transfer.ok_or_else(|| self.fault(format!("agent {agent} was handed nothing")))?)
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

    /// A member has reported; its rank has spent this much on asides so far.
    pub fn report(&mut self, request: RequestId, reported: EncodedReport<N>, monitoring: f64) {
        // Every rank does an aside between the same requests as the others, so that all that follows comes later by the time of one
        // rank, not by the sum over ranks.
        self.monitoring = self.monitoring.max(monitoring);
        self.arrived(request, |open| drop(open.reports.insert(reported.from, reported)));
    }

    /// A sum for the server is there.
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

    /// The server is made or has settled.
    pub fn return_server(&mut self, server: Box<dyn ErasedServer<N>>, progress: Progress) {
        self.progress = progress;
        self.server = Some(server);
    }

    /// A call of the server has taken this long.
    pub fn add_server_time(&mut self, seconds: f64, monitoring: bool) {
        if monitoring {
            self.spent.server_monitoring += seconds;
            self.server_monitoring += self.waited(seconds);
        } else {
            self.spent.server += seconds;
        }
    }

    /// How long of a call that ends now, for an monitoring, the run has waited for it: as long as another response was there, and all the
    /// time where none is to come.
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

    /// Seconds that the run's clock leaves out.
    pub fn excluded(&self) -> f64 {
        self.monitoring + self.server_monitoring
    }

    /// Action is to be done now: a call of the server, or the next step on the way to rest.
    pub fn next(&mut self) -> Result<(Option<Work<N>>, Sent<N>), Fault> {
        let Some(server) = self.server.take() else { return Ok((None, Vec::new())) };
        if std::mem::take(&mut self.fresh) {
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
            // With nothing held the run is over: the last rest sees everything settled and every transfer arrived.
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

    /// The next response for the server, and whether it is that to an aside.
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

    /// A rank has come to rest.
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
                    // Ranks rest in any order; a checkpoint's bytes do not depend on it.
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

    /// Asks the run to come to rest after the open requests.
    pub fn drain(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    /// The run at rest, once it is.
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

    /// Goes on after a rest.
    pub fn resume(&mut self) -> Result<Sent<N>, Fault> {
        self.phase = Phase::Running;
        self.post_held()
    }
}

/// The packets that run_typed one slice of a total to the ranks of its receivers, or to the server where there are none.
pub(super) fn totals<N: Number>(
    layout: &Layout,
    request: RequestId,
    part: u32,
    parts: u32,
    to: &[AgentId],
    body: Body<N>,
) -> Sent<N> {
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
