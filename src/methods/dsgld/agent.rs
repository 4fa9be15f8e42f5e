//! The agent half: moves the chain that visits its shard, and keeps the draws.

use super::{Dsgld, DsgldSettings, Report, Stop, Task, Visit, Visited};
use crate::cluster::{Agent, AgentId, Body, Context, Raw, Result};
use crate::kernels::langevin::langevin_step;
use crate::methods::problem::{LocalLoss, Problem};
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a minibatch becomes an estimate of the shard's score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Its mean, scaled to the shard.
    #[default]
    Plain,
    /// From this round on: the shard's whole score at a fixed point, plus the minibatch's difference from that point. The point is
    /// the state of the first chain that visits then (Baker et al. 2019, "Control variates for stochastic gradient MCMC").
    ControlVariate(u64),
}

/// Moves chains on one shard.
pub struct DsgldAgent<F: Real> {
    id: AgentId,
    problem: Problem<F>,
    settings: DsgldSettings,
    local: LocalLoss<F>,
    score: Array2<F>,
    /// The chain, and the fixed point below it.
    both: Array2<F>,
    state: AgentState<F>,
}

/// The fixed point of the control variate and the shard's score there; empty as long as there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct AgentState<F: Real> {
    point: Raw<F>,
    score: Raw<F>,
}

impl<F: Real> DsgldAgent<F> {
    pub(super) fn new(method: &Dsgld<F>, id: AgentId, saved: Option<AgentState<F>>) -> Result<Self> {
        let (problem, settings) = (method.problem.clone(), method.settings.clone());
        let dim = problem.model.dim();
        Ok(Self {
            id,
            local: problem.open(id, settings.batch)?,
            score: Array2::zeros((2, dim)),
            both: Array2::zeros((2, dim)),
            problem,
            settings,
            state: saved.unwrap_or(AgentState { point: Raw(Vec::new()), score: Raw(Vec::new()) }),
        })
    }

    /// The state in which a chain arrives.
    fn arrival(&self, stop: &Stop, body: Body<F>, cx: &Context) -> Result<Vec<F>> {
        let dim = self.problem.model.dim();
        if stop.shared == 0 {
            let mut theta = Array2::zeros((1, dim));
            let mut stream = cx.stream(Who::Run, u64::from(stop.chain), Purpose::Initial);
            self.problem.model.draw_initial(&mut stream, theta.row_mut(0));
            return Ok(theta.into_raw_vec_and_offset().0);
        }
        let mut theta = body.into_vec();
        if theta.len() != dim {
            return Err(format!("chain {} arrived with {} numbers, the model has {dim}", stop.chain, theta.len()).into());
        }
        if stop.shared > 1 {
            let share = F::of(1.0 / f64::from(stop.shared));
            theta.iter_mut().for_each(|value| *value *= share);
            if self.settings.noise_correction {
                // Averaging left the noise of the last update with variance ε/R.
                let lost = self.settings.step.at(stop.first.saturating_sub(1)) * (1.0 - 1.0 / f64::from(stop.shared));
                let mut stream = cx.stream(Who::Chain(stop.leader), stop.first, Purpose::Coupling);
                stream.add_normals(F::of(lost.sqrt()), &mut theta);
            }
        }
        Ok(theta)
    }

    /// Takes the fixed point of the control variate, if it is time and there is none; whether it has.
    fn fix(&mut self, round: u64, theta: &[F], cx: &Context) -> Result<bool> {
        let Estimator::ControlVariate(from) = self.settings.gradient else { return Ok(false) };
        if round < from || !self.state.point.0.is_empty() {
            return Ok(false);
        }
        let mut score = Array2::zeros((1, theta.len()));
        let point = ArrayView2::from_shape((1, theta.len()), theta)?;
        self.problem.open(self.id, usize::MAX)?.add_score(point, 0, score.view_mut(), cx);
        self.state = AgentState { point: Raw(theta.to_vec()), score: Raw(score.into_raw_vec_and_offset().0) };
        Ok(true)
    }

    /// The score at the chain's state, into row 0 of `score`.
    fn estimate(&mut self, theta: &[F], stop: &Stop, update: u64, cx: &Context) -> Result<()> {
        let (who, dim) = (Who::Chain(stop.chain), theta.len());
        let AgentState { point, score: whole } = &self.state;
        if point.0.is_empty() {
            let theta = ArrayView2::from_shape((1, dim), theta)?;
            let mut score = self.score.slice_mut(ndarray::s![..1, ..]);
            self.local.prior_score(theta, score.view_mut());
            self.local.add_score_for(who, theta, update, stop.scale, score, cx);
            return Ok(());
        }
        let scale = F::of(stop.scale);
        if let Some(both) = self.both.as_slice_mut() {
            both[..dim].copy_from_slice(theta);
            both[dim..].copy_from_slice(&point.0);
        }
        self.score.fill(F::zero());
        self.local.add_score_for(who, self.both.view(), update, stop.scale, self.score.view_mut(), cx);
        let (mut here, there) = self.score.view_mut().split_at(ndarray::Axis(0), 1);
        ndarray::Zip::from(here.row_mut(0)).and(there.row(0)).for_each(|here, &there| *here -= there);
        for (here, &whole) in here.iter_mut().zip(&whole.0) {
            *here += scale * whole;
        }
        let mut prior = there;
        self.local.prior_score(ArrayView2::from_shape((1, dim), theta)?, prior.view_mut());
        here += &prior;
        Ok(())
    }

    fn visit(&mut self, visit: &Visit, body: Body<F>, cx: &mut Context) -> Result<(Visited<F>, Body<F>)> {
        let stop = *visit.stops.iter().find(|stop| stop.agent == self.id).ok_or("a visit without a chain")?;
        let mut theta = self.arrival(&stop, body, cx)?;
        let fixed = self.fix(visit.round, &theta, cx)?;
        let DsgldSettings { step, burn_in, thin, .. } = self.settings;
        let mut kept = Vec::new();
        for update in stop.first..stop.first + stop.updates {
            self.estimate(&theta, &stop, update, cx)?;
            let score = self.score.as_slice().ok_or("a score that is not contiguous")?;
            let mut noise = cx.stream(Who::Chain(stop.chain), update, Purpose::Noise);
            langevin_step(&mut theta, &score[..self.problem.model.dim()], step.at(update), &mut noise);
            if draws(update + 1, burn_in, thin) > draws(update, burn_in, thin) {
                kept.extend_from_slice(&theta);
            }
        }
        if !theta.iter().all(|value| value.is_finite()) {
            let what = format!("chain {} has diverged by update {}: take a smaller step", stop.chain, stop.first + stop.updates);
            return Err(what.into());
        }
        if !kept.is_empty() {
            cx.record("posterior", stop.chain, draws(stop.first, burn_in, thin), theta.len(), &kept);
        }
        if self.settings.log_visits {
            let columns = [
                ("chain", f64::from(stop.chain)),
                ("first", stop.first as f64),
                ("updates", stop.updates as f64),
                ("scale", stop.scale),
            ];
            cx.info("visits", visit.round + 1, columns);
        }
        if let Some(&sleep) = self.settings.sleep_ms.get(self.id as usize) {
            std::thread::sleep(Duration::from_secs_f64(1e-3 * sleep * stop.updates as f64));
        }
        let last = stop.first + stop.updates - 1;
        let state = Raw(if visit.shown { theta.clone() } else { Vec::new() });
        let visited = Visited { chain: stop.chain, updates: stop.updates, step: step.at(last), fixed, state };
        Ok((visited, if visit.is_last { Body::empty() } else { theta.into() }))
    }
}

/// How many draws are kept of the first `updates` updates of a chain.
fn draws(updates: u64, burn_in: u64, thin: u64) -> u64 {
    updates.saturating_sub(burn_in) / thin
}

impl<F: Real> Agent<Dsgld<F>> for DsgldAgent<F> {
    type State = AgentState<F>;

    fn state(&self) -> &AgentState<F> {
        &self.state
    }

    fn perform(&mut self, task: &Task, body: Body<F>, cx: &mut Context) -> Result<(Report<F>, Body<F>)> {
        match task {
            Task::Rows => Ok((Report::Rows(self.local.rows() as u64), Body::empty())),
            Task::Visit(visit) => {
                let (visited, body) = self.visit(visit, body, cx)?;
                Ok((Report::Visited(visited), body))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_so_many_th_update_after_the_burn_in_is_a_draw() {
        let kept: Vec<u64> = (0..20).filter(|&update| draws(update + 1, 5, 3) > draws(update, 5, 3)).collect();
        assert_eq!(kept, [7, 10, 13, 16, 19]);
        assert_eq!(draws(20, 0, 1), 20);
    }
}
