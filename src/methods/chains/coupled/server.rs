//! The server of coupled chains: moves the center, and exchanges with the chains.
//!
//! Chains are asked in groups: all of them, or each by itself. When a group reports, its contribution replaces its last one; the center
//! moves for the group's share of the time, and the group continues.

use super::center::{Center, CenterDynamics};
use super::plan::{CoupledChains, CoupledTransition, Coupling, CouplingPlan};
use super::task::{Period, Task};
use crate::cluster::record::HISTORY;
use crate::cluster::{AgentId, Context, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::kernels::reduce::squared_norm;
use crate::methods::common::staleness::Staleness;
use crate::methods::common::thinning::{draws, has_row, is_due};
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use crate::random::{Purpose, Who};
use num_traits::Zero;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The column of the history for the distance between coupled chains: the root mean square of a parameter about the mean of the chains.
pub const SPREAD: &str = "spread_of_chains";

/// Periods of a group that may be in flight while chains are not coupled.
pub(super) const MAX_PERIODS_IN_FLIGHT: u64 = 2;

/// The server's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// The center; `None` before the first exchange, and for couplings without a center.
    center: Option<Center<F>>,
    /// The last contribution of each group, summed over its chains; empty for groups that take part in no further exchange.
    contributions: Vec<Raw<F>>,
    /// With several groups, the sum of all contributions.
    total: Raw<F>,
    /// The number of exchanges so far.
    exchanges: u64,
    /// The number of groups that have begun.
    begun: u32,
    /// Periods of each group that were requested.
    posted: Vec<u64>,
    /// Periods of each group that are done.
    done: Vec<u64>,
    /// The number of the last exchange of each group.
    last_exchange: Vec<u64>,
    /// Σ |θ_i|² over the chains of each group, when last measured.
    squares: Vec<f64>,
    /// Staleness of the center at the end of a period: exchanges of other groups since the group received it.
    staleness: Staleness,
    /// Staleness of the contributions of other groups when the center moves.
    center_staleness: Staleness,
    /// The positions of all chains when they were last sent (K × d).
    positions: Raw<F>,
}

/// Moves the center.
pub struct CoupledServer<T: CoupledTransition> {
    asynchronous: bool,
    agents: u32,
    plan: CouplingPlan,
    /// Continuous time of a step.
    step_time: f64,
    noisy: bool,
    dim: usize,
    /// Periods between evaluations; 0 for none.
    evaluate_every: u64,
    state: ServerState<T::Number>,
}

impl<T: CoupledTransition> CoupledServer<T> {
    pub(super) fn new(method: &CoupledChains<T>, saved: Option<ServerState<T::Number>>) -> Self {
        let CoupledChains { agents, transition, plan, asynchronous } = method;
        let groups = if *asynchronous { *agents as usize } else { 1 };
        let fresh = || ServerState {
            center: None,
            contributions: vec![Raw(Vec::new()); groups],
            total: Raw(Vec::new()),
            exchanges: 0,
            begun: 0,
            posted: vec![0; groups],
            done: vec![0; groups],
            last_exchange: vec![0; groups],
            squares: vec![0.0; groups],
            staleness: Staleness::default(),
            center_staleness: Staleness::default(),
            positions: Raw(Vec::new()),
        };
        Self {
            asynchronous: *asynchronous,
            agents: *agents,
            plan: plan.clone(),
            step_time: transition.time(),
            noisy: transition.noisy(),
            dim: transition.dim(),
            evaluate_every: 0,
            state: saved.unwrap_or_else(fresh),
        }
    }

    fn groups(&self) -> usize {
        self.state.done.len()
    }

    fn members(&self, group: usize) -> Range<AgentId> {
        if self.asynchronous { group as AgentId..group as AgentId + 1 } else { 0..self.agents }
    }

    /// Whether positions are needed at the end of a period.
    fn needs_positions(&self, period: u64) -> bool {
        !self.result_is_center() && self.evaluate_every > 0 && is_due(period + 1, self.evaluate_every, self.plan.periods())
    }

    /// Whether the history gets a row after a period.
    fn has_history_row(&self, period: u64) -> bool {
        has_row(period + 1, self.plan.periods())
    }

    /// Whether the spread of the chains is measured at the end of a period; contributions must be positions then.
    fn is_measured(&self, period: u64) -> bool {
        // Asynchronous chains are measured at every exchange, or squares and sums would belong to different times.
        (self.asynchronous || self.has_history_row(period))
            && self.plan.is_coupled(period + 1)
            && self.plan.coupling != Coupling::Friction
    }

    /// Posts all periods of a group that do not need another response first.
    fn post_ready(&mut self, group: usize, out: &mut Outbox<CoupledChains<T>>, cx: &Context) {
        loop {
            let ServerState { posted, done, .. } = &self.state;
            let (number, in_flight) = (posted[group], posted[group] - done[group]);
            let must_wait = in_flight > 0 && self.plan.is_coupled(number);
            if number == self.plan.periods() || in_flight == MAX_PERIODS_IN_FLIGHT || must_wait {
                return;
            }
            self.post(group, number, out, cx);
        }
    }

    fn post(&mut self, group: usize, number: u64, out: &mut Outbox<CoupledChains<T>>, cx: &Context) {
        let (first, steps) = self.plan.steps_of(number);
        let sends_position = self.needs_positions(number);
        let sent = self.plan.is_coupled(number).then(|| self.exchange(group, first, steps, cx));
        self.state.posted[group] += 1;
        let period = Period { number, steps, sends_position, reports_square: self.is_measured(number) };
        let request = out.request(self.members(group), Task::Run(period));
        if let Some(sent) = sent {
            request.with(sent);
        }
        if !self.asynchronous && !sends_position {
            request.sum();
        }
    }

    /// The number of chains whose contributions count.
    fn active(&self) -> u32 {
        let active = (0..self.groups()).filter(|&group| !self.state.contributions[group].0.is_empty());
        active.map(|group| self.members(group).len() as u32).sum()
    }

    /// An exchange with a group before these steps: moves the center, and returns what the group receives.
    fn exchange(&mut self, group: usize, first: u64, steps: u64, cx: &Context) -> Vec<T::Number> {
        let kappa = self.plan.coupling_of(first, steps);
        let chains = f64::from(self.active());
        let members = self.members(group).len() as f64;
        let time = self.step_time * steps as f64 * (members / chains);
        let (noisy, extrapolate) = (self.noisy, self.plan.extrapolate);
        let state = &mut self.state;
        state.exchanges += 1;
        state.last_exchange[group] = state.exchanges;
        for other in (0..state.contributions.len()).filter(|&other| other != group && !state.contributions[other].0.is_empty()) {
            state.center_staleness.count(state.exchanges - state.last_exchange[other]);
        }
        let weight = T::Number::of(1.0 / chains);
        let sum = if state.contributions.len() == 1 { &state.contributions[0].0 } else { &state.total.0 };
        let mean = || sum.iter().map(|&sum| weight * sum).collect::<Vec<_>>();
        let (dynamics, mass_if_kicked) = match self.plan.coupling {
            Coupling::Friction => return mean(),
            Coupling::Average { rate } => {
                let center = state.center.get_or_insert_with(|| Center::at(mean(), CenterDynamics::FirstOrder));
                let sent = center.position.0.clone();
                let (rate, members) = (T::Number::of(rate), T::Number::of(members));
                let moves = center.position.0.iter_mut().zip(&state.contributions[group].0);
                moves.for_each(|(c, &sum)| *c += rate * (sum - members * *c));
                return sent;
            }
            Coupling::Elastic(dynamics) => (dynamics, None),
            Coupling::Mean { mass, friction } => (CenterDynamics::SecondOrder { mass, friction }, Some(mass)),
        };
        // After free steps of all chains the center starts at their mean again.
        if first > 0 && !self.plan.strength.is_active(first - 1, 1) && chains == members {
            state.center = None;
        }
        let center = state.center.get_or_insert_with(|| Center::at(mean(), dynamics));
        let mut noise = cx.stream(Who::Server, state.exchanges, Purpose::Noise);
        let Some(mass) = mass_if_kicked else {
            let before = extrapolate.then(|| [center.position.0.as_slice(), &center.velocity.0].concat());
            center.flow(&dynamics.flow(kappa * chains, time, noisy), sum, weight, &mut noise);
            return before.unwrap_or_else(|| center.position.0.clone());
        };
        let (kick, back) = (T::Number::of(kappa * time), T::Number::of(-chains / mass));
        let kicks: Vec<_> = center.position.0.iter().zip(sum).map(|(&c, &sum)| kick * (c - weight * sum)).collect();
        center.velocity.0.iter_mut().zip(&kicks).for_each(|(u, &kick)| *u += back * kick);
        center.flow(&dynamics.flow(0.0, time, noisy), sum, weight, &mut noise);
        kicks
    }

    /// Replaces the contribution of a group; it is empty if the group has no further exchange.
    fn set_contribution(&mut self, group: usize, contribution: Vec<T::Number>) {
        let groups = self.groups() as u64;
        let state = &mut self.state;
        if contribution.is_empty() {
            state.squares[group] = 0.0;
        }
        let old = std::mem::replace(&mut state.contributions[group].0, contribution);
        if groups == 1 {
            return;
        }
        let new = &state.contributions[group].0;
        if new.len() == old.len() && !state.exchanges.is_multiple_of(groups) {
            state.total.0.iter_mut().zip(new.iter().zip(&old)).for_each(|(total, (&new, &old))| *total += new - old);
            return;
        }
        // The sum is computed anew once in a while, because rounding errors add up.
        state.total.0.clear();
        state.contributions.iter().for_each(|contribution| add_to(&mut state.total.0, &contribution.0));
    }

    /// The contributions in a response, summed over its chains. Positions are stored if they were requested.
    fn unpack(&mut self, response: Response<CoupledChains<T>>, period: Option<u64>) -> Result<Vec<T::Number>> {
        if !response.sum.is_empty() {
            return Ok(response.sum.into_vec());
        }
        let contributes = self.plan.is_coupled(period.map_or(0, |period| period + 1));
        let sends_position = period.is_some_and(|period| self.needs_positions(period));
        let dim = self.dim;
        let mut sum: Vec<T::Number> = Vec::new();
        for reported in response.reports {
            let body = &*reported.body;
            let (contribution, position) = body.split_at(if contributes { dim.min(body.len()) } else { 0 });
            let position = if position.is_empty() { contribution } else { position };
            if sends_position {
                let positions = &mut self.state.positions.0;
                positions.resize(self.agents as usize * dim, T::Number::zero());
                let row = positions.get_mut(reported.from as usize * dim..).and_then(|rest| rest.get_mut(..dim));
                let row = row.filter(|_| position.len() == dim).ok_or("an agent sent a position of the wrong length")?;
                row.copy_from_slice(position);
            }
            add_to(&mut sum, contribution);
        }
        Ok(sum)
    }

    /// Whether the result is the center instead of the chains.
    fn result_is_center(&self) -> bool {
        self.plan.result_is_center(self.noisy)
    }

    /// Records the center after a period, if it is the result. Burn-in and thinning then count whole periods; without thinning, the last
    /// center is kept.
    fn record_center(&self, period: u64, cx: &mut Context) {
        let CouplingPlan { burn_in, thin, .. } = self.plan;
        let (first, steps) = self.plan.steps_of(period);
        let [before, after] =
            [first, first + steps].map(|steps| draws(steps / self.plan.period, burn_in / self.plan.period, thin));
        let is_kept = after > before || thin == 0 && period + 1 == self.plan.periods();
        if let Some(center) = self.state.center.as_ref().filter(|_| self.result_is_center() && is_kept) {
            cx.record("posterior", 0, before, self.dim, &center.position.0);
        }
    }

    /// The root mean square of a parameter about the mean of the chains.
    fn spread(&self) -> f64 {
        let chains = f64::from(self.active());
        let sum = if self.groups() == 1 { &self.state.contributions[0].0 } else { &self.state.total.0 };
        let squares = self.state.squares.iter().sum::<f64>() - squared_norm(sum) / chains;
        (squares.max(0.0) / ((chains - 1.0) * self.dim as f64)).sqrt()
    }

    fn log_history(&mut self, period: u64, cx: &mut Context) {
        let periods = self.plan.periods();
        let (first, steps) = self.plan.steps_of(period);
        if self.has_history_row(period) {
            let kappa = match self.plan.is_coupled(period) {
                _ if matches!(self.plan.coupling, Coupling::Average { .. }) => f64::NAN,
                true => self.plan.coupling_of(first, steps),
                false => 0.0,
            };
            let spread = if self.is_measured(period) { self.spread() } else { f64::NAN };
            let columns = [("seconds", cx.seconds()), ("steps", (first + steps) as f64), ("coupling", kappa), (SPREAD, spread)];
            cx.log_row(HISTORY, period + 1, columns);
        }
        if self.asynchronous && period + 1 == periods {
            let ServerState { staleness, center_staleness, .. } = &self.state;
            for (value, [periods, positions]) in Staleness::table([staleness, center_staleness]) {
                let columns =
                    [("exchanges_of_others", value as f64), ("periods", periods as f64), ("positions", positions as f64)];
                cx.log_row("staleness", value, columns);
            }
        }
    }
}

/// Adds values to a sum, which may be empty so far.
fn add_to<F: Real>(sum: &mut Vec<F>, values: &[F]) {
    if sum.is_empty() {
        sum.extend_from_slice(values);
    } else {
        sum.iter_mut().zip(values).for_each(|(sum, &value)| *sum += value);
    }
}

impl<T: CoupledTransition> Server<CoupledChains<T>> for CoupledServer<T> {
    type State = ServerState<T::Number>;

    fn state(&self) -> impl SerializesAs<ServerState<T::Number>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<CoupledChains<T>>, cx: &mut Context) -> Result<()> {
        for group in 0..self.groups() {
            if self.plan.is_coupled(0) {
                let request = out.request(self.members(group), Task::Begin);
                if !self.asynchronous {
                    request.sum();
                }
            } else {
                self.post_ready(group, out, cx);
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        response: Response<CoupledChains<T>>,
        out: &mut Outbox<CoupledChains<T>>,
        cx: &mut Context,
    ) -> Result<()> {
        let from = response.reports.first().ok_or("a response without reports")?.from;
        let group = if self.asynchronous { from as usize } else { 0 };
        let groups = self.groups();
        if self.plan.is_coupled(0) && (self.state.begun as usize) < groups {
            let contribution = self.unpack(response, None)?;
            self.set_contribution(group, contribution);
            self.state.begun += 1;
            if self.state.begun as usize == groups {
                (0..groups).for_each(|group| self.post_ready(group, out, cx));
            }
            return Ok(());
        }
        let period = self.state.done[group];
        if self.plan.is_coupled(period) {
            self.state.staleness.count(self.state.exchanges - self.state.last_exchange[group]);
        }
        if self.is_measured(period) {
            self.state.squares[group] = response.reports.iter().map(|reported| reported.report).sum();
        }
        let contribution = self.unpack(response, Some(period))?;
        self.set_contribution(group, contribution);
        let before = self.progress().done;
        self.state.done[group] += 1;
        if self.progress().done > before {
            self.record_center(before, cx);
            self.log_history(before, cx);
        }
        self.post_ready(group, out, cx);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done.iter().copied().min().unwrap_or(0), total: self.plan.periods() }
    }
}

impl<T: CoupledTransition> Posterior<T::Number> for CoupledServer<T> {
    fn set_evaluation_interval(&mut self, every: u64) {
        self.evaluate_every = every;
    }

    fn posterior(&self) -> (u64, &[T::Number]) {
        let center = self.state.center.as_ref().filter(|_| self.result_is_center());
        (self.progress().done, center.map_or(&self.state.positions.0, |center| &center.position.0))
    }
}
