//! Stochastic gradient Langevin dynamics as a transition: scores of minibatches, plain or with a control variate, and Langevin steps.

use super::problem::{LocalLoss, Problem};
use super::transition::{LocalTransition, Transition, Update};
use crate::cluster::{AgentId, Context, Raw, Result};
use crate::kernels::langevin::{StepSize, langevin_step};
use crate::number::Real;
use crate::random::{Purpose, Stream, Who};
use ndarray::{Array2, ArrayView2, ArrayViewMut1};
use serde::{Deserialize, Serialize};

/// θ ← θ + (ε_t/2) {∇log p0(θ) + scale · N_s ḡ_s(θ)} + N(0, ε_t I) (Welling & Teh 2011; Ahn, Shahbaba & Welling 2014, eq. 1 and
/// Prop. 3.1).
#[derive(Clone)]
pub struct Sgld<F> {
    /// What is inferred.
    pub problem: Problem<F>,
    /// Rows in a minibatch, fresh for every update and without replacement.
    pub batch: usize,
    /// ε_t.
    pub step: StepSize,
    /// How minibatches become scores.
    pub gradient: Estimator,
}

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

impl<F: Real> Transition for Sgld<F> {
    type Number = F;
    type Local = LocalSgld<F>;

    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn draw_initial(&self, stream: &mut Stream, chain: &mut [F]) {
        self.problem.model.draw_initial(stream, ArrayViewMut1::from(chain));
    }

    fn step(&self, update: u64) -> f64 {
        self.step.at(update)
    }

    fn noise(&self, update: u64) -> Option<f64> {
        Some(self.step.at(update))
    }

    fn open(&self, agent: AgentId) -> Result<LocalSgld<F>> {
        let dim = self.dim();
        Ok(LocalSgld {
            agent,
            local: self.problem.open(agent, self.batch)?,
            score: Array2::zeros((2, dim)),
            both: Array2::zeros((2, dim)),
            settings: self.clone(),
        })
    }
}

/// SGLD on one shard.
pub struct LocalSgld<F: Real> {
    agent: AgentId,
    settings: Sgld<F>,
    local: LocalLoss<F>,
    score: Array2<F>,
    /// The chain, and the fixed point below it.
    both: Array2<F>,
}

/// The fixed point of the control variate and the shard's score there; empty as long as there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ControlPoint<F: Real> {
    point: Raw<F>,
    score: Raw<F>,
}

impl<F: Real> Default for ControlPoint<F> {
    fn default() -> Self {
        Self { point: Raw(Vec::new()), score: Raw(Vec::new()) }
    }
}

impl<F: Real> LocalSgld<F> {
    /// The score at the chain's state, into row 0 of `score`.
    fn estimate(&mut self, control: &ControlPoint<F>, theta: &[F], update: Update, cx: &Context) -> Result<()> {
        let (who, dim) = (Who::Chain(update.chain), theta.len());
        let ControlPoint { point, score: whole } = control;
        if point.0.is_empty() {
            let theta = ArrayView2::from_shape((1, dim), theta)?;
            let mut score = self.score.slice_mut(ndarray::s![..1, ..]);
            self.local.prior_score(theta, score.view_mut());
            self.local.add_score_for(who, theta, update.number, update.scale, score, cx);
            return Ok(());
        }
        let scale = F::of(update.scale);
        if let Some(both) = self.both.as_slice_mut() {
            both[..dim].copy_from_slice(theta);
            both[dim..].copy_from_slice(&point.0);
        }
        self.score.fill(F::zero());
        self.local.add_score_for(who, self.both.view(), update.number, update.scale, self.score.view_mut(), cx);
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
}

impl<F: Real> LocalTransition<F> for LocalSgld<F> {
    type State = ControlPoint<F>;

    fn rows(&self) -> usize {
        self.local.rows()
    }

    /// Takes the fixed point of the control variate, if it is time and there is none.
    fn arrive(&mut self, control: &mut ControlPoint<F>, round: u64, theta: &[F], cx: &Context) -> Result<bool> {
        let Estimator::ControlVariate(from) = self.settings.gradient else { return Ok(false) };
        if round < from || !control.point.0.is_empty() {
            return Ok(false);
        }
        let mut score = Array2::zeros((1, theta.len()));
        let point = ArrayView2::from_shape((1, theta.len()), theta)?;
        self.settings.problem.open(self.agent, usize::MAX)?.add_score(point, 0, score.view_mut(), cx);
        *control = ControlPoint { point: Raw(theta.to_vec()), score: Raw(score.into_raw_vec_and_offset().0) };
        Ok(true)
    }

    fn update(&mut self, control: &mut ControlPoint<F>, theta: &mut [F], update: Update, cx: &Context) -> Result<()> {
        self.estimate(control, theta, update, cx)?;
        let score = self.score.as_slice().ok_or("a score that is not contiguous")?;
        let mut noise = cx.stream(Who::Chain(update.chain), update.number, Purpose::Noise);
        langevin_step(theta, &score[..theta.len()], self.settings.step.at(update.number), &mut noise);
        Ok(())
    }
}
