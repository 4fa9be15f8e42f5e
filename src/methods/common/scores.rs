//! The score of a shard's posterior along a chain: of minibatches, plain or with a control variate.

use crate::cluster::{AgentId, Context, Raw, Result};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use crate::random::Who;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

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

/// ∇log p0(θ) + scale · N_s ḡ_s(θ) on the shard of an agent, with ḡ_s the mean score of a minibatch.
pub struct Scores<F: Real> {
    agent: AgentId,
    problem: Problem<F>,
    estimator: Estimator,
    local: LocalLoss<F>,
    score: Array2<F>,
    /// The chain, and the fixed point below it.
    both: Array2<F>,
}

impl<F: Real> Scores<F> {
    /// On the shard of an agent, with minibatches of so many rows, fresh for every update and without replacement.
    ///
    /// # Errors
    /// Where the shard cannot be read, or its rows are none for the model.
    pub fn open(problem: &Problem<F>, agent: AgentId, batch: usize, estimator: Estimator) -> Result<Self> {
        let dim = problem.model.dim();
        Ok(Self {
            agent,
            estimator,
            local: problem.open(agent, batch)?,
            problem: problem.clone(),
            score: Array2::zeros((2, dim)),
            both: Array2::zeros((2, dim)),
        })
    }

    /// N_s, rows of the shard.
    pub fn rows(&self) -> usize {
        self.local.rows()
    }

    /// Takes the fixed point of the control variate, if it is time and there is none; whether it did.
    ///
    /// # Errors
    /// Where the shard cannot be read.
    pub fn arrive(&mut self, control: &mut ControlPoint<F>, round: u64, theta: &[F], cx: &Context) -> Result<bool> {
        let Estimator::ControlVariate(from) = self.estimator else { return Ok(false) };
        if round < from || !control.point.0.is_empty() {
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
    /// Where θ has another length than the model's.
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
        let ControlPoint { point, score: whole } = control;
        let state = ArrayView2::from_shape((1, dim), theta)?;
        if point.0.is_empty() {
            let mut score = self.score.slice_mut(ndarray::s![..1, ..]);
            self.local.prior_score(state, score.view_mut());
            self.local.add_score_for(who, state, update, scale, score, cx);
        } else {
            if let Some(both) = self.both.as_slice_mut() {
                both[..dim].copy_from_slice(theta);
                both[dim..].copy_from_slice(&point.0);
            }
            self.score.fill(F::zero());
            self.local.add_score_for(who, self.both.view(), update, scale, self.score.view_mut(), cx);
            let (mut here, there) = self.score.view_mut().split_at(ndarray::Axis(0), 1);
            ndarray::Zip::from(here.row_mut(0)).and(there.row(0)).for_each(|here, &there| *here -= there);
            for (here, &whole) in here.iter_mut().zip(&whole.0) {
                *here += F::of(scale) * whole;
            }
            let mut prior = there;
            self.local.prior_score(state, prior.view_mut());
            here += &prior;
        }
        let score = self.score.as_slice().ok_or("a score that is not contiguous")?;
        Ok(&score[..dim])
    }
}
