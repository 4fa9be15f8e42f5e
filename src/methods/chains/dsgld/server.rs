//! The server half: posts the visits of a few rounds ahead, plans trajectories, and sees no chain pass unless it asks to.

use super::coupling::groups;
use super::expectations::EXPECTATIONS;
use super::plan::Trajectories;
use super::schedule::{Schedule, agent_of};
use super::{Dsgld, DsgldSettings, Report, Stop, Task, Visit, Visited};
use crate::cluster::record::HISTORY;
use crate::cluster::{AgentId, Context, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::methods::common::thinning::{between_rows, has_row, is_due};
use crate::methods::common::with_evaluation::Posterior;
use crate::methods::transitions::transition::Transition;
use crate::number::{Number, Real};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// At most about so many rows of the table that tells the load of each agent, however many rounds there are.
const LOAD_ROWS: u64 = 20_000;

/// Posts visits.
pub struct DsgldServer<T: Transition> {
    agents: u32,
    dim: usize,
    settings: DsgldSettings,
    /// Rounds between those whose states are asked for; 0 for none.
    watched: u64,
    clock: Clock,
    state: ServerState<T::Number>,
}

/// Who worked how long: for information, and so no part of the state. A run that is resumed begins it anew. Time at rest, for
/// checkpoints, counts as waiting.
struct Clock {
    /// The second of the last row of the history, or at which this job began.
    since: Option<f64>,
    /// Seconds that each agent was busy since then.
    busy: Vec<f64>,
    /// Seconds that each agent was busy and blocked before.
    totals: Vec<(f64, f64)>,
}

/// Where the run is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// N_s; empty before the agents have told.
    rows: Vec<u64>,
    /// Rounds whose visits are posted, and whose visits are all made.
    posted: u64,
    done: u64,
    /// How many responses the rounds under way still want, the oldest first.
    left: VecDeque<usize>,
    /// Updates of each chain, as far as they are posted.
    updates: Vec<u64>,
    /// The slot of each chain in the next round.
    slots: Vec<u32>,
    plan: Trajectories,
    /// Updates that each agent has made.
    made: Vec<u64>,
    step: f64,
    /// States of the evaluated rounds, the latest last, N × d; of the round under way behind them.
    seen: Raw<F>,
    coming: Raw<F>,
    /// Whether the agents' sums of states are under way or still to come.
    summing: bool,
    /// Of each group, at the place of its first chain, what it left; where chains travel through the server.
    carried: Vec<Raw<F>>,
}

impl<T: Transition> DsgldServer<T> {
    pub(super) fn new(method: &Dsgld<T>, saved: Option<ServerState<T::Number>>) -> Result<Self> {
        let (agents, settings) = (method.agents, method.settings.clone());
        let plan = settings.trajectories(agents)?;
        let fresh = || ServerState {
            rows: Vec::new(),
            posted: 0,
            done: 0,
            left: VecDeque::new(),
            updates: vec![0; settings.chains as usize],
            slots: Vec::new(),
            plan,
            made: vec![0; agents as usize],
            step: f64::NAN,
            seen: Raw(Vec::new()),
            coming: Raw(Vec::new()),
            summing: true,
            carried: vec![Raw(Vec::new()); settings.chains as usize],
        };
        let state = saved.unwrap_or_else(fresh);
        let clock = Clock { since: None, busy: vec![0.0; agents as usize], totals: vec![(0.0, 0.0); agents as usize] };
        Ok(Self { agents, dim: method.transition.dim(), settings, watched: 0, clock, state })
    }

    /// How often each agent is visited, up to a factor.
    fn visits(&self) -> Vec<f64> {
        match self.settings.schedule {
            Schedule::Categorical => self.state.rows.iter().map(|&rows| rows as f64).collect(),
            Schedule::Permutation | Schedule::Cyclic | Schedule::Derangement | Schedule::Rotating => {
                vec![1.0; self.agents as usize]
            }
        }
    }

    /// What the score of each agent's shard is multiplied by.
    fn scales(&self) -> Vec<f64> {
        if self.settings.correction {
            return self.state.plan.shares(&self.visits()).into_iter().map(|share| 1.0 / share).collect();
        }
        let all = self.state.rows.iter().sum::<u64>() as f64;
        self.state.rows.iter().map(|&rows| all / rows.max(1) as f64).collect()
    }

    /// Posts the visits of the next round, if there is one.
    fn post(&mut self, out: &mut Outbox<Dsgld<T>>, cx: &mut Context) {
        let DsgldSettings { chains, rounds, schedule, through_server, .. } = self.settings;
        let round = self.state.posted;
        if round == rounds {
            return;
        }
        if let Some(planned) = self.settings.plans.iter().find(|planned| planned.round == round) {
            self.state.plan.follow(planned);
            self.note_plan(cx);
        } else if round == 0 {
            self.note_plan(cx);
        }
        let next = schedule.next(&self.state.slots, round + 1, self.agents, &self.state.rows, cx);
        let here = std::mem::replace(&mut self.state.slots, next);
        let agents = self.agents;
        let at = |slots: &[u32], chain: u32| agent_of(slots[chain as usize], agents);
        let scales = self.scales();
        // Until a chain moves again, is its state asked for?
        let again = round.saturating_add(u64::from(schedule.every(chains, agents)));
        let is_last = again >= rounds;
        let shown = self.watched > 0 && (is_last || again / self.watched > round / self.watched);
        // Of each chain the group of its move before, whose mean it brings along: how many it had, and the first.
        let before = round.checked_sub(u64::from(schedule.every(chains, agents)));
        let before = before.map(|before| groups(&self.settings.coupling, before, chains)).unwrap_or_default();
        let brought: Vec<(u32, u32)> =
            before.into_iter().flat_map(|group| group.clone().map(move |_| (group.end - group.start, group.start))).collect();
        let brought = |chain: u32| brought.get(chain as usize).copied().unwrap_or((0, chain));
        let mut parts = groups(&self.settings.coupling, round, chains);
        parts.retain(|part| schedule.moves(part.start, round, chains, agents));
        self.state.left.push_back(parts.len());
        for part in parts {
            let stops: Vec<Stop> = part
                .clone()
                .map(|chain| {
                    let agent = at(&here, chain) as usize;
                    let updates = self.state.plan.next(chain, agent);
                    let first = self.state.updates[chain as usize];
                    self.state.updates[chain as usize] += updates;
                    let (shared, leader) = brought(chain);
                    Stop { agent: at(&here, chain), chain, first, updates, scale: scales[agent], shared, leader }
                })
                .collect();
            let holders: Vec<AgentId> = stops.iter().map(|stop| stop.agent).collect();
            let is_group = holders.len() > 1;
            let request = out.request(holders, Task::Visit(Visit { round, stops, is_last, shown }));
            match brought(part.start) {
                (0, _) => {}
                // Through the server groups are only split: all chains of this one bring the same.
                (_, leader) if through_server => drop(request.with(self.state.carried[leader as usize].0.clone())),
                _ => drop(request.with_transfer()),
            }
            match through_server {
                _ if is_last => {}
                false => drop(request.sum_to(part.map(|chain| at(&self.state.slots, chain)))),
                true if is_group => drop(request.sum()),
                true => {}
            }
        }
        self.state.posted += 1;
    }

    /// Takes the report of a visit.
    fn visited(&mut self, from: AgentId, seconds: f64, visited: Visited<T::Number>) {
        let agent = from as usize;
        self.clock.busy[agent] += seconds;
        self.state.made[agent] += visited.updates;
        self.state.step = visited.step;
        // Only a run that plans by them is to depend on seconds.
        if self.settings.balance.is_some() && !visited.fixed {
            self.state.plan.measured(agent, seconds, visited.updates);
        }
        self.state.coming.0.extend(visited.state.0);
    }

    /// A round is over: its states, its history, the plan for those that come.
    fn finish(&mut self, cx: &mut Context) {
        let state = &mut self.state;
        state.done += 1;
        let round = state.done;
        if !state.coming.0.is_empty() {
            state.seen.0.append(&mut state.coming.0);
            let most = self.settings.evaluation_window.saturating_mul(self.dim);
            let old = state.seen.0.len().saturating_sub(most);
            state.seen.0.drain(..old);
        }
        if let Some(balance) = self.settings.balance
            && self.settings.plans.is_empty()
            && state.posted < balance.until.min(self.settings.rounds)
            && cx.stream(Who::Server, round, Purpose::Planning).random::<f64>() < balance.decay.powf(round as f64)
            && state.plan.adapt(balance.threshold)
        {
            self.note_plan(cx);
        }
        if has_row(round, self.settings.rounds) {
            self.log_history(cx);
        }
    }

    /// Writes down the trajectories from the round on that is posted next.
    fn note_plan(&self, cx: &mut Context) {
        for (agent, updates) in self.state.plan.mean().iter().enumerate() {
            cx.log_row("plans", self.state.posted, [("agent_number", agent as f64), ("updates", *updates)]);
        }
    }

    /// Takes what agents have summed up: first their sums of states, then the squares about the mean.
    fn expected(&mut self, response: Response<Dsgld<T>>, out: &mut Outbox<Dsgld<T>>, cx: &mut Context) -> Result<()> {
        let weights = response.reports.into_iter().map(|reported| match reported.report {
            Report::Expected(weight) => Ok(weight),
            Report::Rows(_) | Report::Visited(_) => Err("a visit after the last"),
        });
        let weight = weights.sum::<Result<f64, _>>()?;
        if weight <= 0.0 {
            return Err("no update came after the burn-in: there is nothing to expect".into());
        }
        let mut sum = response.sum.into_vec();
        sum.iter_mut().for_each(|sum| *sum = T::Number::of(sum.f64() / weight));
        let [mean, sd] = EXPECTATIONS;
        if std::mem::replace(&mut self.state.summing, false) {
            cx.record(mean, 0, 0, self.dim, &sum);
            out.request(0..self.agents, Task::Squares).with(sum).sum();
        } else {
            sum.iter_mut().for_each(|variance| *variance = T::Number::of(variance.f64().sqrt()));
            cx.record(sd, 0, 0, self.dim, &sum);
        }
        Ok(())
    }

    /// Who worked and who waited since the last row of the history.
    fn log_history(&mut self, cx: &mut Context) {
        let (state, clock) = (&mut self.state, &mut self.clock);
        let round = state.done;
        let now = cx.seconds();
        let period = now - clock.since.replace(now).unwrap_or(now);
        let mut blocked = 0.0;
        for (total, busy) in clock.totals.iter_mut().zip(&mut clock.busy) {
            // Below 0 where rounds overlap: over the run it evens out.
            let waited = period - *busy;
            blocked += waited;
            *total = (total.0 + *busy, total.1 + waited);
            *busy = 0.0;
        }
        let share = if period > 0.0 { (blocked / (period * f64::from(self.agents))).max(0.0) } else { 0.0 };
        let longest = state.plan.mean().iter().copied().fold(0.0, f64::max);
        let shortest = state.plan.mean().iter().copied().fold(f64::INFINITY, f64::min);
        let updates: u64 = state.made.iter().sum();
        let columns = [
            ("seconds", now),
            ("updates", updates as f64),
            ("step_size", state.step),
            ("blocked_share", share),
            ("shortest_visit", shortest),
            ("longest_visit", longest),
        ];
        cx.log_row(HISTORY, round, columns);
        // With the rows of the history, or with some of them.
        let often = self.settings.rounds.div_ceil((LOAD_ROWS / u64::from(self.agents)).max(1));
        if is_due(round, often.next_multiple_of(between_rows(self.settings.rounds)), self.settings.rounds) {
            let (state, clock) = (&self.state, &self.clock);
            for (agent, (busy, blocked)) in (0..).zip(&clock.totals) {
                let of = agent as usize;
                let columns = [
                    ("agent_number", f64::from(agent)),
                    ("rows", state.rows[of] as f64),
                    ("trajectory", state.plan.mean()[of]),
                    ("updates", state.made[of] as f64),
                    ("busy_seconds", *busy),
                    ("blocked_seconds", blocked.max(0.0)),
                ];
                cx.log_row("load", round, columns);
            }
        }
    }
}

impl<T: Transition> Server<Dsgld<T>> for DsgldServer<T> {
    type State = ServerState<T::Number>;

    fn state(&self) -> impl SerializesAs<ServerState<T::Number>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Dsgld<T>>, _cx: &mut Context) -> Result<()> {
        out.request(0..self.agents, Task::Rows);
        Ok(())
    }

    fn receive(&mut self, response: Response<Dsgld<T>>, out: &mut Outbox<Dsgld<T>>, cx: &mut Context) -> Result<()> {
        self.clock.since.get_or_insert(cx.seconds());
        if self.state.rows.is_empty() {
            let rows = response.reports.into_iter().map(|reported| match reported.report {
                Report::Rows(rows) => Ok(rows),
                Report::Visited(_) | Report::Expected(_) => Err("a visit before the rows are known"),
            });
            self.state.rows = rows.collect::<Result<_, _>>()?;
            let DsgldSettings { schedule, chains, max_rounds_in_flight, through_server, .. } = self.settings;
            self.state.slots = schedule.first(chains, self.agents, &self.state.rows, cx);
            // What passes through the server has to be there first.
            let in_flight = if through_server { 1 } else { max_rounds_in_flight.min(self.settings.rounds) };
            self.state.plan.begin(chains, cx);
            (0..in_flight).for_each(|_| self.post(out, cx));
            return Ok(());
        }
        if self.state.done == self.settings.rounds {
            return self.expected(response, out, cx);
        }
        let mut carried = response.sum.into_vec();
        let mut first = u32::MAX;
        for reported in response.reports {
            let Report::Visited(visited) = reported.report else { return Err("rows are told once".into()) };
            first = first.min(visited.chain);
            if !reported.body.is_empty() {
                carried = reported.body.into_vec();
            }
            self.visited(reported.from, reported.seconds, visited);
        }
        if self.settings.through_server
            && let Some(place) = self.state.carried.get_mut(first as usize)
        {
            *place = Raw(carried);
        }
        let left = self.state.left.front_mut().ok_or("a response that no round waits for")?;
        *left -= 1;
        if *left == 0 {
            self.state.left.pop_front();
            self.finish(cx);
            self.post(out, cx);
            if self.state.done == self.settings.rounds && self.settings.expectations {
                out.request(0..self.agents, Task::Sum).sum();
            }
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done, total: self.settings.rounds }
    }
}

impl<T: Transition> Posterior<T::Number> for DsgldServer<T> {
    fn set_evaluation_interval(&mut self, every: u64) {
        self.watched = every;
    }

    fn posterior(&self) -> (u64, &[T::Number]) {
        (self.state.done, &self.state.seen.0)
    }
}
