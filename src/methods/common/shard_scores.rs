//! The score of one shard at particles: estimated on minibatches, with a control variate where the mode of the posterior is known.
//!
//! With the shard's score at the mode, a minibatch only has to estimate how the score changes from there to the particles, which varies far
//! less between rows than the score itself.

use crate::cluster::{AgentId, Context, Result};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

/// The score of an agent's shard.
pub struct ShardScores<F: Real> {
    /// The loss of the shard.
    pub loss: LocalLoss<F>,
    batch: usize,
    /// Whether the mode is known: it is z = 0 of a whitened model.
    knows_mode: bool,
    /// −∇L_k/α at the mode; computed when it is first needed.
    at_mode: Option<Array2<F>>,
}

impl<F: Real> ShardScores<F> {
    /// Opens the shard of an agent, for minibatches of this size.
    ///
    /// # Errors
    /// If the shard cannot be read or does not fit the model.
    pub fn open(problem: &Problem<F>, agent: AgentId, batch: usize) -> Result<Self> {
        let knows_mode = problem.model.whitening().is_some();
        Ok(Self { loss: problem.open(agent, batch)?, batch, knows_mode, at_mode: None })
    }

    /// Sets the size of minibatches.
    pub fn set_batch(&mut self, batch: usize) {
        self.batch = batch;
        self.loss.set_batch(batch);
    }

    /// Adds the score −∇L̂_k/α at the particles (N × d) to `score`, on the minibatch of [`LocalLoss::add_score`].
    pub fn add_score(&mut self, theta: ArrayView2<F>, step: u64, mut score: ArrayViewMut2<F>, cx: &Context) {
        if !self.knows_mode || self.batch >= self.loss.rows() {
            self.loss.add_score(theta, step, score, cx);
            return;
        }
        // The particles, then the mode.
        let particles = theta.nrows();
        let mut points = Array2::zeros((particles + 1, theta.ncols()));
        points.slice_mut(s![..particles, ..]).assign(&theta);
        let mut scores = Array2::zeros(points.raw_dim());
        self.loss.add_score(points.view(), step, scores.view_mut(), cx);
        let (of_particles, of_mode) = scores.view().split_at(Axis(0), particles);
        score += &of_particles;
        score -= &of_mode;
        score += self.at_mode(theta.ncols(), cx);
    }

    /// −∇L_k/α at the mode, for all rows.
    pub fn at_mode(&mut self, dim: usize, cx: &Context) -> &Array2<F> {
        let Self { loss, batch, at_mode, .. } = self;
        at_mode.get_or_insert_with(|| {
            let mode = Array2::zeros((1, dim));
            let mut score = mode.clone();
            loss.set_batch(usize::MAX);
            loss.add_score(mode.view(), 0, score.view_mut(), cx);
            loss.set_batch(*batch);
            score
        })
    }
}
