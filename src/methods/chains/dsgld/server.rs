//! The server of D-SGLD: posts visits up to `max_rounds_in_flight` rounds ahead and sets the number of updates in each visit.
//!
//! Chains travel directly between agents unless `through_server` is set.

use super::averaging::groups;
use super::expectations::EXPECTATIONS;
use super::reports::ReportingRounds;
use super::schedule::{Schedule, agent_of};
use super::settings::DsgldSettings;
use super::task::{Dsgld, GroupVisit, Report, Task, Visit, Visited};
use super::updates_per_visit::UpdatesPerVisit;
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

/// About the largest number of rows in the table `load`, for any number of rounds.
const MAX_LOAD_ROWS: u64 = 20_000;

/// Posts visits and sets the number of updates in each.
pub struct DsgldServer<T: Transition> {
    agents: u32,
    dim: usize,
    settings: DsgldSettings,
    /// Rounds between evaluations; 0 for none.
    evaluate_every: u64,
    agent_times: AgentTimes,
    state: ServerState<T::Number>,
}

/// Busy and blocked times of the agents. They are for information only and not part of the state, so a resumed run starts them at 0.
/// Time spent at checkpoints counts as blocked.
struct AgentTimes {
    /// The time of the last row of the history, or of the first response in this job.
    last_row: Option<f64>,
    /// Busy seconds of each agent since then.
    busy: Vec<f64>,
    /// Busy and blocked seconds of each agent until then.
    totals: Vec<(f64, f64)>,
}

/// The state of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// N_s, the rows of each agent; empty until the agents have reported.
    rows: Vec<u64>,
    rounds_posted: u64,
    rounds_done: u64,
    /// Outstanding responses of each round in flight, the oldest round first.
    outstanding: VecDeque<usize>,
    /// Posted updates of each chain.
    updates_posted: Vec<u64>,
    /// The slot of each chain in the next round.
    slots: Vec<u32>,
    updates_per_visit: UpdatesPerVisit,
    /// Updates done by each agent.
    updates_done: Vec<u64>,
    /// The step size in the visit reported last.
    step_size: f64,
    /// The latest states of evaluated rounds, the newest last (N × d).
    window: Raw<F>,
    /// The states of the oldest round in flight that were reported so far.
    states_of_round: Raw<F>,
    /// Whether the agents' sums of states, after the last round, are still to be received.
    awaits_sums: bool,
    /// With `through_server`: the sum of the states of each group after its last visit, at the index of its first chain.
    group_sums: Vec<Raw<F>>,
}

impl<T: Transition> DsgldServer<T> {
    pub(super) fn new(method: &Dsgld<T>, saved: Option<ServerState<T::Number>>) -> Result<Self> {
        let (agents, settings) = (method.agents, method.settings.clone());
        let updates_per_visit = settings.updates_per_visit(agents)?;
        let fresh = || ServerState {
            rows: Vec::new(),
            rounds_posted: 0,
            rounds_done: 0,
            outstanding: VecDeque::new(),
            updates_posted: vec![0; settings.chains as usize],
            slots: Vec::new(),
            updates_per_visit,
            updates_done: vec![0; agents as usize],
            step_size: f64::NAN,
            window: Raw(Vec::new()),
            states_of_round: Raw(Vec::new()),
            awaits_sums: true,
            group_sums: vec![Raw(Vec::new()); settings.chains as usize],
        };
        let state = saved.unwrap_or_else(fresh);
        let agent_times =
            AgentTimes { last_row: None, busy: vec![0.0; agents as usize], totals: vec![(0.0, 0.0); agents as usize] };
        Ok(Self { agents, dim: method.transition.dim(), settings, evaluate_every: 0, agent_times, state })
    }

    fn reporting_rounds(&self) -> ReportingRounds {
        let DsgldSettings { chains, schedule, .. } = self.settings;
        let rounds_per_turn = u64::from(schedule.rounds_per_turn(chains, self.agents));
        ReportingRounds { rounds: self.settings.rounds(), evaluate_every: self.evaluate_every, rounds_per_turn }
    }

    /// The relative frequency of visits to each agent.
    fn visit_frequencies(&self) -> Vec<f64> {
        match self.settings.schedule {
            Schedule::Categorical => self.state.rows.iter().map(|&rows| rows as f64).collect(),
            Schedule::Permutation | Schedule::Cyclic | Schedule::Derangement | Schedule::Rotating => {
                vec![1.0; self.agents as usize]
            }
        }
    }

    /// The factor of the score of each agent's shard.
    fn scales(&self) -> Vec<f64> {
        if self.settings.correction {
            let fractions = self.state.updates_per_visit.update_fractions(&self.visit_frequencies());
            return fractions.into_iter().map(|fraction| 1.0 / fraction).collect();
        }
        let total = self.state.rows.iter().sum::<u64>() as f64;
        self.state.rows.iter().map(|&rows| total / rows.max(1) as f64).collect()
    }

    /// Posts the visits of the next round, if there is one.
    fn post_round(&mut self, out: &mut Outbox<Dsgld<T>>, cx: &mut Context) {
        let DsgldSettings { chains, schedule, through_server, .. } = self.settings;
        let reporting = self.reporting_rounds();
        let ReportingRounds { rounds, rounds_per_turn, .. } = reporting;
        let round = self.state.rounds_posted;
        if round == rounds {
            return;
        }
        if let Some(planned) = self.settings.plans.iter().find(|planned| planned.round == round) {
            self.state.updates_per_visit.set_planned(planned);
            self.log_updates_per_visit(cx);
        } else if round == 0 {
            self.log_updates_per_visit(cx);
        }
        let next_slots = schedule.next(&self.state.slots, round + 1, self.agents, &self.state.rows, cx);
        let current_slots = std::mem::replace(&mut self.state.slots, next_slots);
        let agents = self.agents;
        let agent_at = |slots: &[u32], chain: u32| agent_of(slots[chain as usize], agents);
        let scales = self.scales();
        let is_last = round.saturating_add(rounds_per_turn) >= rounds;
        let reports_state = reporting.contain(round);
        // For each chain, the size and the first chain of its group in its previous visit. The next visit starts at the mean of this group.
        let previous_round = round.checked_sub(rounds_per_turn);
        let previous_groups: Vec<(u32, u32)> = previous_round
            .map(|previous| groups(&self.settings.coupling, previous, chains))
            .unwrap_or_default()
            .into_iter()
            .flat_map(|group| group.clone().map(move |_| (group.end - group.start, group.start)))
            .collect();
        let previous_group = |chain: u32| previous_groups.get(chain as usize).copied().unwrap_or((0, chain));
        let mut visiting_groups = groups(&self.settings.coupling, round, chains);
        visiting_groups.retain(|group| schedule.has_turn(group.start, round, chains, agents));
        self.state.outstanding.push_back(visiting_groups.len());
        for group in visiting_groups {
            let visits: Vec<Visit> = group
                .clone()
                .map(|chain| {
                    let agent = agent_at(&current_slots, chain);
                    let updates = self.state.updates_per_visit.next_visit(chain, agent as usize);
                    let first_update = self.state.updates_posted[chain as usize];
                    self.state.updates_posted[chain as usize] += updates;
                    let (group_size, first_chain) = previous_group(chain);
                    Visit { agent, chain, first_update, updates, scale: scales[agent as usize], group_size, first_chain }
                })
                .collect();
            let members: Vec<AgentId> = visits.iter().map(|visit| visit.agent).collect();
            let is_group = members.len() > 1;
            let request = out.request(members, Task::Visit(GroupVisit { round, visits, is_last, reports_state }));
            match previous_group(group.start) {
                (0, _) => {}
                // With through_server groups can only be split: all chains of this group were in the same group before.
                (_, first_chain) if through_server => drop(request.with(self.state.group_sums[first_chain as usize].0.clone())),
                _ => drop(request.with_transfer()),
            }
            match through_server {
                _ if is_last => {}
                false => drop(request.sum_to(group.map(|chain| agent_at(&self.state.slots, chain)))),
                true if is_group => drop(request.sum()),
                true => {}
            }
        }
        self.state.rounds_posted += 1;
    }

    /// Processes the report of a visit.
    fn finish_visit(&mut self, from: AgentId, seconds: f64, visited: Visited<T::Number>) {
        let agent = from as usize;
        self.agent_times.busy[agent] += seconds;
        self.state.updates_done[agent] += visited.updates;
        self.state.step_size = visited.step;
        // A run must not depend on measured times unless `balance` is set.
        if self.settings.balance.is_some() && !visited.did_other_work {
            self.state.updates_per_visit.add_measurement(agent, seconds, visited.updates);
        }
        self.state.states_of_round.0.extend(visited.state.0);
    }

    /// Ends a round: updates the evaluation window, adapts the updates per visit, and writes the history.
    fn finish_round(&mut self, cx: &mut Context) {
        let reporting = self.reporting_rounds();
        let state = &mut self.state;
        state.rounds_done += 1;
        let round = state.rounds_done;
        if !state.states_of_round.0.is_empty() {
            if reporting.first_since(self.settings.first_round_with_draws(self.agents) - 1, round - 1) {
                // The window still holds states of burn-in.
                state.window.0.clear();
            }
            state.window.0.append(&mut state.states_of_round.0);
            let length = self.settings.evaluation_window.saturating_mul(self.dim);
            let excess = state.window.0.len().saturating_sub(length);
            state.window.0.drain(..excess);
        }
        if let Some(balance) = self.settings.balance
            && self.settings.plans.is_empty()
            && state.rounds_posted < balance.until.min(self.settings.rounds())
            && cx.stream(Who::Server, round, Purpose::Planning).random::<f64>() < balance.decay.powf(round as f64)
            && state.updates_per_visit.adapt(balance.threshold)
        {
            self.log_updates_per_visit(cx);
        }
        if has_row(round, self.settings.rounds()) {
            self.log_history(cx);
        }
    }

    /// Writes a row for each agent to the table `plans`: its updates per visit from the next round that is posted.
    fn log_updates_per_visit(&self, cx: &mut Context) {
        for (agent, updates) in self.state.updates_per_visit.mean().iter().enumerate() {
            cx.log_row("plans", self.state.rounds_posted, [("agent_number", agent as f64), ("updates", *updates)]);
        }
    }

    /// Records posterior means from the agents' weighted sums of states, and then standard deviations from their squared deviations.
    fn combine_moments(&mut self, response: Response<Dsgld<T>>, out: &mut Outbox<Dsgld<T>>, cx: &mut Context) -> Result<()> {
        let weights = response.reports.into_iter().map(|reported| match reported.report {
            Report::Weight(weight) => Ok(weight),
            Report::Rows(_) | Report::Visited(_) => Err("an agent did not report its weight after the last round"),
        });
        let weight = weights.sum::<Result<f64, _>>()?;
        if weight <= 0.0 {
            return Err("no chain made an update after burn-in: set a smaller burn_in".into());
        }
        let mut sum = response.sum.into_vec();
        sum.iter_mut().for_each(|sum| *sum = T::Number::of(sum.f64() / weight));
        let [mean, sd] = EXPECTATIONS;
        if std::mem::replace(&mut self.state.awaits_sums, false) {
            cx.record(mean, 0, 0, self.dim, &sum);
            out.request(0..self.agents, Task::Squares).with(sum).sum();
        } else {
            sum.iter_mut().for_each(|variance| *variance = T::Number::of(variance.f64().sqrt()));
            cx.record(sd, 0, 0, self.dim, &sum);
        }
        Ok(())
    }

    /// Writes a row of the history, with the time that agents were blocked since the last row, and rows of the table `load`.
    fn log_history(&mut self, cx: &mut Context) {
        let (state, times) = (&mut self.state, &mut self.agent_times);
        let round = state.rounds_done;
        let now = cx.seconds();
        let period = now - times.last_row.replace(now).unwrap_or(now);
        let mut all_blocked = 0.0;
        for (total, busy) in times.totals.iter_mut().zip(&mut times.busy) {
            // Can be negative when rounds overlap; over the run these terms cancel.
            let blocked = period - *busy;
            all_blocked += blocked;
            *total = (total.0 + *busy, total.1 + blocked);
            *busy = 0.0;
        }
        let blocked_share = if period > 0.0 { (all_blocked / (period * f64::from(self.agents))).max(0.0) } else { 0.0 };
        let longest_visit = state.updates_per_visit.mean().iter().copied().fold(0.0, f64::max);
        let shortest_visit = state.updates_per_visit.mean().iter().copied().fold(f64::INFINITY, f64::min);
        let updates: u64 = state.updates_done.iter().sum();
        let columns = [
            ("seconds", now),
            ("updates", updates as f64),
            ("step_size", state.step_size),
            ("blocked_share", blocked_share),
            ("shortest_visit", shortest_visit),
            ("longest_visit", longest_visit),
        ];
        cx.log_row(HISTORY, round, columns);
        // Rounded up to a multiple of the interval of the history, because other rounds do not get here.
        let load_every = self.settings.rounds().div_ceil((MAX_LOAD_ROWS / u64::from(self.agents)).max(1));
        if is_due(round, load_every.next_multiple_of(between_rows(self.settings.rounds())), self.settings.rounds()) {
            let (state, times) = (&self.state, &self.agent_times);
            for (agent, (busy, blocked)) in (0..).zip(&times.totals) {
                let index = agent as usize;
                let columns = [
                    ("agent_number", f64::from(agent)),
                    ("rows", state.rows[index] as f64),
                    ("trajectory", state.updates_per_visit.mean()[index]),
                    ("updates", state.updates_done[index] as f64),
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
        self.agent_times.last_row.get_or_insert(cx.seconds());
        if self.state.rows.is_empty() {
            let rows = response.reports.into_iter().map(|reported| match reported.report {
                Report::Rows(rows) => Ok(rows),
                Report::Visited(_) | Report::Weight(_) => Err("an agent did not report its rows first"),
            });
            self.state.rows = rows.collect::<Result<_, _>>()?;
            let DsgldSettings { schedule, chains, max_rounds_in_flight, through_server, .. } = self.settings;
            self.state.slots = schedule.first(chains, self.agents, &self.state.rows, cx);
            // With through_server a round can only start when the last one has arrived.
            let in_flight = if through_server { 1 } else { max_rounds_in_flight.min(self.settings.rounds()) };
            self.state.updates_per_visit.draw_carries(chains, cx);
            (0..in_flight).for_each(|_| self.post_round(out, cx));
            return Ok(());
        }
        if self.state.rounds_done == self.settings.rounds() {
            return self.combine_moments(response, out, cx);
        }
        let mut group_sum = response.sum.into_vec();
        let mut first_chain = u32::MAX;
        for reported in response.reports {
            let Report::Visited(visited) = reported.report else { return Err("an agent did not report a visit".into()) };
            first_chain = first_chain.min(visited.chain);
            // The state of a chain that is alone in its group.
            if !reported.body.is_empty() {
                group_sum = reported.body.into_vec();
            }
            self.finish_visit(reported.from, reported.seconds, visited);
        }
        if self.settings.through_server
            && let Some(entry) = self.state.group_sums.get_mut(first_chain as usize)
        {
            *entry = Raw(group_sum);
        }
        let outstanding = self.state.outstanding.front_mut().ok_or("a response that no round expects")?;
        *outstanding -= 1;
        if *outstanding == 0 {
            self.state.outstanding.pop_front();
            self.finish_round(cx);
            self.post_round(out, cx);
            if self.state.rounds_done == self.settings.rounds() && self.settings.expectations {
                out.request(0..self.agents, Task::Sum).sum();
            }
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.rounds_done, total: self.settings.rounds() }
    }
}

impl<T: Transition> Posterior<T::Number> for DsgldServer<T> {
    fn set_evaluation_interval(&mut self, every: u64) {
        self.evaluate_every = every;
    }

    fn posterior(&self) -> (u64, &[T::Number]) {
        (self.state.rounds_done, &self.state.window.0)
    }
}
