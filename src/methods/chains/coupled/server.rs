//! The server half: the center, and what chains are told of it at their exchanges.
//!
//! Chains are asked in groups: all of them, or each by itself. A group that comes back has given its share; the center moves for its
//! part of the time, and the group goes on.

use super::center::Center;
use super::{CenterDynamics, Coupled, Coupling, CouplingPlan, Elastic, Period, SPREAD, Task};
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

/// Periods of a group that are under way at a time where chains are free.
const AHEAD: u64 = 2;

/// The server's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// The center; none before the chains have begun, or where there is none.
    center: Option<Center<F>>,
    /// What each group gave for its last exchange, summed over its chains; and where there are several, the sum over those that are not
    /// over.
    shares: Vec<Raw<F>>,
    total: Raw<F>,
    /// Exchanges so far.
    exchanges: u64,
    /// How many groups have begun.
    begun: u32,
    /// Periods of each group.
    posted: Vec<u64>,
    done: Vec<u64>,
    /// Exchanges at the time of each group's last.
    told: Vec<u64>,
    /// Of each group Σ |θ_i|² over its chains when that was last measured.
    squares: Vec<f64>,
    /// How often what a group was told was of this age when its period ended, in exchanges of others; and how often what another group
    /// had given was when the center moved.
    staleness: Staleness,
    center_staleness: Staleness,
    /// The positions of all chains when they were last shown (K × d).
    seen: Raw<F>,
}

/// The half that moves the center.
pub struct ElasticServer<T: Coupled> {
    asynchronous: bool,
    agents: u32,
    plan: CouplingPlan,
    time: f64,
    noisy: bool,
    dim: usize,
    /// Periods between positions that somebody wants to see; 0 for never.
    watched: u64,
    state: ServerState<T::Number>,
}

impl<T: Coupled> ElasticServer<T> {
    pub(super) fn new(method: &Elastic<T>, saved: Option<ServerState<T::Number>>) -> Self {
        let Elastic { agents, transition, plan, asynchronous } = method;
        let groups = if *asynchronous { *agents as usize } else { 1 };
        let fresh = || ServerState {
            center: None,
            shares: vec![Raw(Vec::new()); groups],
            total: Raw(Vec::new()),
            exchanges: 0,
            begun: 0,
            posted: vec![0; groups],
            done: vec![0; groups],
            told: vec![0; groups],
            squares: vec![0.0; groups],
            staleness: Staleness::default(),
            center_staleness: Staleness::default(),
            seen: Raw(Vec::new()),
        };
        Self {
            asynchronous: *asynchronous,
            agents: *agents,
            plan: plan.clone(),
            time: transition.time(),
            noisy: transition.noisy(),
            dim: transition.dim(),
            watched: 0,
            state: saved.unwrap_or_else(fresh),
        }
    }

    fn groups(&self) -> usize {
        self.state.done.len()
    }

    fn members(&self, group: usize) -> Range<AgentId> {
        if self.asynchronous { group as AgentId..group as AgentId + 1 } else { 0..self.agents }
    }

    /// Whether somebody wants to see positions at the end of a period.
    fn is_shown(&self, period: u64) -> bool {
        !self.shows_center() && self.watched > 0 && is_due(period + 1, self.watched, self.plan.periods())
    }

    /// Whether a row of the history is written behind a period.
    fn has_history_row(&self, period: u64) -> bool {
        has_row(period + 1, self.plan.periods())
    }

    /// Whether shares are positions behind a period, and its row tells how far apart they are.
    fn is_measured(&self, period: u64) -> bool {
        // On their own time chains are measured whenever they meet the center, or squares and sums would be of different times.
        (self.asynchronous || self.has_history_row(period))
            && self.plan.acts(period + 1)
            && self.plan.coupling != Coupling::Friction
    }

    /// Posts what a group can do without another response.
    fn go_on(&mut self, group: usize, out: &mut Outbox<Elastic<T>>, cx: &Context) {
        loop {
            let ServerState { posted, done, .. } = &self.state;
            let (number, under_way) = (posted[group], posted[group] - done[group]);
            let waits = under_way > 0 && self.plan.acts(number);
            if number == self.plan.periods() || under_way == AHEAD || waits {
                return;
            }
            self.post(group, number, out, cx);
        }
    }

    fn post(&mut self, group: usize, number: u64, out: &mut Outbox<Elastic<T>>, cx: &Context) {
        let (first, steps) = self.plan.stretch(number);
        let (acts, shown) = (self.plan.acts(number), self.is_shown(number));
        let told = acts.then(|| self.exchange(group, first, steps, cx));
        self.state.posted[group] += 1;
        let request =
            out.request(self.members(group), Task::Run(Period { number, steps, shown, measured: self.is_measured(number) }));
        if let Some(told) = told {
            request.with(told);
        }
        if !self.asynchronous && !shown {
            request.sum();
        }
    }

    /// Chains whose shares count.
    fn active(&self) -> u32 {
        let there = (0..self.groups()).filter(|&group| !self.state.shares[group].0.is_empty());
        there.map(|group| self.members(group).len() as u32).sum()
    }

    /// An exchange with a group before these steps: the center moves, and what the group is told.
    fn exchange(&mut self, group: usize, first: u64, steps: u64, cx: &Context) -> Vec<T::Number> {
        let kappa = self.plan.coupling_in(first, steps);
        let chains = f64::from(self.active());
        let members = self.members(group).len() as f64;
        let time = self.time * steps as f64 * (members / chains);
        let (noisy, extrapolate) = (self.noisy, self.plan.extrapolate);
        let state = &mut self.state;
        state.exchanges += 1;
        state.told[group] = state.exchanges;
        for other in (0..state.shares.len()).filter(|&other| other != group && !state.shares[other].0.is_empty()) {
            state.center_staleness.count(state.exchanges - state.told[other]);
        }
        let share = T::Number::of(1.0 / chains);
        let sum = if state.shares.len() == 1 { &state.shares[0].0 } else { &state.total.0 };
        let mean = || sum.iter().map(|&sum| share * sum).collect::<Vec<_>>();
        let (dynamics, kicks) = match self.plan.coupling {
            Coupling::Friction => return mean(),
            Coupling::Average { rate } => {
                let center = state.center.get_or_insert_with(|| Center::at(mean(), CenterDynamics::FirstOrder));
                let told = center.position.0.clone();
                let (rate, members) = (T::Number::of(rate), T::Number::of(members));
                let moves = center.position.0.iter_mut().zip(&state.shares[group].0);
                moves.for_each(|(c, &share)| *c += rate * (share - members * *c));
                return told;
            }
            Coupling::Elastic(dynamics) => (dynamics, None),
            Coupling::Mean { mass, friction } => (CenterDynamics::SecondOrder { mass, friction }, Some(mass)),
        };
        // Where all chains were free before, the center begins again among them.
        if first > 0 && !self.plan.strength.acts(first - 1, 1) && chains == members {
            state.center = None;
        }
        let center = state.center.get_or_insert_with(|| Center::at(mean(), dynamics));
        let mut noise = cx.stream(Who::Server, state.exchanges, Purpose::Noise);
        let Some(mass) = kicks else {
            let before = extrapolate.then(|| [center.position.0.as_slice(), &center.velocity.0].concat());
            center.flow(&dynamics.flow(kappa * chains, time, noisy), sum, share, &mut noise);
            return before.unwrap_or_else(|| center.position.0.clone());
        };
        let (kick, back) = (T::Number::of(kappa * time), T::Number::of(-chains / mass));
        let kicks: Vec<_> = center.position.0.iter().zip(sum).map(|(&c, &sum)| kick * (c - share * sum)).collect();
        center.velocity.0.iter_mut().zip(&kicks).for_each(|(u, &kick)| *u += back * kick);
        center.flow(&dynamics.flow(0.0, time, noisy), sum, share, &mut noise);
        kicks
    }

    /// Takes what a group gives for its next exchange; nothing from one that needs none.
    fn take(&mut self, group: usize, share: Vec<T::Number>) {
        let groups = self.groups() as u64;
        let state = &mut self.state;
        if share.is_empty() {
            state.squares[group] = 0.0;
        }
        let old = std::mem::replace(&mut state.shares[group].0, share);
        if groups == 1 {
            return;
        }
        let new = &state.shares[group].0;
        if new.len() == old.len() && !state.exchanges.is_multiple_of(groups) {
            state.total.0.iter_mut().zip(new.iter().zip(&old)).for_each(|(total, (&new, &old))| *total += new - old);
            return;
        }
        // From the beginning once in a while, or rounding would add up.
        let total = &mut state.total.0;
        total.clear();
        for share in &state.shares {
            if total.is_empty() {
                total.extend_from_slice(&share.0);
            } else {
                total.iter_mut().zip(&share.0).for_each(|(total, &share)| *total += share);
            }
        }
    }

    /// The shares in a response, summed over its chains; positions that were shown are kept.
    fn unpack(&mut self, response: Response<Elastic<T>>, period: Option<u64>) -> Result<Vec<T::Number>> {
        let next = period.map_or(0, |period| period + 1);
        let gives = self.plan.acts(next);
        let shown = period.is_some_and(|period| self.is_shown(period));
        if !response.sum.is_empty() {
            return Ok(response.sum.into_vec());
        }
        let dim = self.dim;
        let mut sum: Vec<T::Number> = Vec::new();
        for reported in response.reports {
            let body = &*reported.body;
            let (share, position) = body.split_at(if gives { dim.min(body.len()) } else { 0 });
            let position = if position.is_empty() { share } else { position };
            if shown {
                let seen = &mut self.state.seen.0;
                seen.resize(self.agents as usize * dim, T::Number::zero());
                let place = seen.get_mut(reported.from as usize * dim..).and_then(|rest| rest.get_mut(..dim));
                let place = place.filter(|_| position.len() == dim).ok_or("a position of another length")?;
                place.copy_from_slice(position);
            }
            if sum.is_empty() {
                sum.extend_from_slice(share);
            } else {
                sum.iter_mut().zip(share).for_each(|(sum, &share)| *sum += share);
            }
        }
        Ok(sum)
    }

    /// Whether the center is what comes out, not the chains.
    fn shows_center(&self) -> bool {
        self.plan.shows_center(self.noisy)
    }

    /// Keeps the center behind a period, if that is what comes out; burn-in and thinning then count periods' steps.
    fn keep_center(&self, period: u64, cx: &mut Context) {
        let CouplingPlan { burn_in, thin, .. } = self.plan;
        let (first, steps) = self.plan.stretch(period);
        let [before, after] =
            [first, first + steps].map(|steps| draws(steps / self.plan.period, burn_in / self.plan.period, thin));
        if let Some(center) = self.state.center.as_ref().filter(|_| self.shows_center() && after > before) {
            cx.record("posterior", 0, before, self.dim, &center.position.0);
        }
    }

    /// The root mean square of a parameter about the mean of the chains.
    fn spread(&self) -> f64 {
        let chains = f64::from(self.active());
        let sum = if self.groups() == 1 { &self.state.shares[0].0 } else { &self.state.total.0 };
        let apart = self.state.squares.iter().sum::<f64>() - squared_norm(sum) / chains;
        (apart.max(0.0) / ((chains - 1.0) * self.dim as f64)).sqrt()
    }

    fn log_history(&mut self, period: u64, cx: &mut Context) {
        let periods = self.plan.periods();
        let (first, steps) = self.plan.stretch(period);
        if self.has_history_row(period) {
            let kappa = match self.plan.acts(period) {
                _ if matches!(self.plan.coupling, Coupling::Average { .. }) => f64::NAN,
                true => self.plan.coupling_in(first, steps),
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

impl<T: Coupled> Server<Elastic<T>> for ElasticServer<T> {
    type State = ServerState<T::Number>;

    fn state(&self) -> impl SerializesAs<ServerState<T::Number>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Elastic<T>>, cx: &mut Context) -> Result<()> {
        for group in 0..self.groups() {
            if self.plan.acts(0) {
                let request = out.request(self.members(group), Task::Begin);
                if !self.asynchronous {
                    request.sum();
                }
            } else {
                self.go_on(group, out, cx);
            }
        }
        Ok(())
    }

    fn receive(&mut self, response: Response<Elastic<T>>, out: &mut Outbox<Elastic<T>>, cx: &mut Context) -> Result<()> {
        let from = response.reports.first().ok_or("a response of nobody")?.from;
        let group = if self.asynchronous { from as usize } else { 0 };
        let groups = self.groups();
        if self.plan.acts(0) && (self.state.begun as usize) < groups {
            let share = self.unpack(response, None)?;
            self.take(group, share);
            self.state.begun += 1;
            if self.state.begun as usize == groups {
                (0..groups).for_each(|group| self.go_on(group, out, cx));
            }
            return Ok(());
        }
        let period = self.state.done[group];
        if self.plan.acts(period) {
            self.state.staleness.count(self.state.exchanges - self.state.told[group]);
        }
        if self.is_measured(period) {
            self.state.squares[group] = response.reports.iter().map(|reported| reported.report).sum();
        }
        let share = self.unpack(response, Some(period))?;
        self.take(group, share);
        let before = self.progress().done;
        self.state.done[group] += 1;
        if self.progress().done > before {
            self.keep_center(before, cx);
            self.log_history(before, cx);
        }
        self.go_on(group, out, cx);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.done.iter().copied().min().unwrap_or(0), total: self.plan.periods() }
    }
}

impl<T: Coupled> Posterior<T::Number> for ElasticServer<T> {
    fn set_evaluation_interval(&mut self, every: u64) {
        self.watched = every;
    }

    fn posterior(&self) -> (u64, &[T::Number]) {
        let center = self.state.center.as_ref().filter(|_| self.shows_center());
        (self.progress().done, center.map_or(&self.state.seen.0, |center| &center.position.0))
    }
}
