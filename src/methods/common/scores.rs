//! Stochastic gradients for chains: the score of a shard's posterior on minibatches, plain or with a control variate.

use crate::cluster::{AgentId, Context, Raw, Result};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use crate::random::Who;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Estimator of the shard's score from a minibatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// The mean over the minibatch, scaled to the shard.
    #[default]
    Plain,
    /// From this round on, the shard's full score at a fixed point plus the minibatch's difference from that point. The point is the
    /// state of the first chain that arrives then (Baker et al. 2019, "Control variates for stochastic gradient MCMC").
    ControlVariate(u64),
}

/// The fixed point of the control variate and the shard's score there; empty until it is set.
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

/// ∇log p0(θ) + scale · N_s ḡ_s(θ) on the shard of an agent, with ḡ_s the mean score of a minibatch.
pub struct Scores<F: Real> {
    agent: AgentId,
    problem: Problem<F>,
    estimator: Estimator,
    local: LocalLoss<F>,
    score: Array2<F>,
    /// Two rows: the chain and the fixed point.
    points: Array2<F>,
    /// The score of all agents at the point 0 of a whitened model, which is then the fixed point.
    center_score: Option<Vec<F>>,
}

impl<F: Real> Scores<F> {
    /// Opens the shard of an agent. Minibatches of `batch` rows are drawn without replacement, anew for every update.
    ///
    /// # Errors
    /// If the shard cannot be read or does not fit the model.
    pub fn open(problem: &Problem<F>, agent: AgentId, batch: usize, estimator: Estimator) -> Result<Self> {
        let dim = problem.model.dim();
        Ok(Self {
            agent,
            estimator,
            local: problem.open(agent, batch)?,
            problem: problem.clone(),
            score: Array2::zeros((2, dim)),
            points: Array2::zeros((2, dim)),
            center_score: problem.model.whitening().map(|whitening| whitening.center_score().to_vec()),
        })
    }

    /// N_s, rows of the shard.
    pub fn rows(&self) -> usize {
        self.local.rows()
    }

    /// Sets the fixed point of the control variate, if it is due and not set yet; returns whether it did. A model with a known mode needs
    /// none.
    ///
    /// # Errors
    /// If the shard cannot be read.
    pub fn arrive(&mut self, control: &mut ControlPoint<F>, round: u64, theta: &[F], cx: &Context) -> Result<bool> {
        let Estimator::ControlVariate(from) = self.estimator else { return Ok(false) };
        if round < from || !control.point.0.is_empty() || self.center_score.is_some() {
            return Ok(false);
        }
        let mut score = Array2::zeros((1, theta.len()));
        let point = ArrayView2::from_shape((1, theta.len()), theta)?;
        self.problem.open(self.agent, usize::MAX)?.add_score(point, 0, score.view_mut(), cx);
        *control = ControlPoint { point: Raw(theta.to_vec()), score: Raw(score.into_raw_vec_and_offset().0) };
        Ok(true)
    }

    /// The score at θ for this update of a chain.
    ///
    /// # Errors
    /// If θ has the wrong length.
    pub fn at(
        &mut self,
        control: &ControlPoint<F>,
        theta: &[F],
        chain: u32,
        update: u64,
        scale: f64,
        cx: &Context,
    ) -> Result<&[F]> {
        let (who, dim) = (Who::Chain(chain), theta.len());
        let ControlPoint { point, score: full } = control;
        let state = ArrayView2::from_shape((1, dim), theta)?;
        if point.0.is_empty() && self.center_score.is_none() {
            let mut score = self.score.slice_mut(ndarray::s![..1, ..]);
            self.local.prior_score(state, score.view_mut());
            self.local.add_score_for(who, state, update, scale, score, cx);
        } else {
            if let Some(points) = self.points.as_slice_mut() {
                points[..dim].copy_from_slice(theta);
                if self.center_score.is_none() {
                    points[dim..].copy_from_slice(&point.0);
                }
            }
            self.score.fill(F::zero());
            self.local.add_score_for(who, self.points.view(), update, scale, self.score.view_mut(), cx);
            let (mut score, fixed) = self.score.view_mut().split_at(ndarray::Axis(0), 1);
            ndarray::Zip::from(score.row_mut(0)).and(fixed.row(0)).for_each(|score, &fixed| *score -= fixed);
            let (full, factor) = match &self.center_score {
                // That of all agents: the noise of shards cancels too.
                Some(center) => (center, F::one()),
                None => (&full.0, F::of(scale)),
            };
            for (score, &full) in score.iter_mut().zip(full) {
                *score += factor * full;
            }
            let mut prior = fixed;
            self.local.prior_score(state, prior.view_mut());
            score += &prior;
        }
        let score = self.score.as_slice().ok_or("the score is not contiguous")?;
        Ok(&score[..dim])
    }
}
