//! What agents infer: a model, a temperature, and the shard of data that each of them alone can see.

use crate::cluster::{AgentId, BoxError, Context};
use crate::data::Shard;
use crate::models::{Batch, Model, Scratch};
use crate::number::Real;
use crate::random::{Minibatch, Purpose, Who};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use std::sync::Arc;

/// Opens the shard of an agent, on the rank that hosts it.
pub type OpenShard<F> = Arc<dyn Fn(AgentId) -> Result<Shard<F>, BoxError> + Send + Sync>;

/// The generalized posterior p(θ) ∝ p0(θ) exp(−Σ_k L_k(θ)/α) that K agents share.
#[derive(Clone)]
pub struct Problem<F> {
    /// Prior and loss.
    pub model: Arc<dyn Model<F>>,
    /// K, the number of agents.
    pub agents: u32,
    /// α: 1 for Bayes' rule; above it the data count less.
    pub temperature: f64,
    /// The rows behind L_k.
    pub shard: OpenShard<F>,
}

impl<F: Real> Problem<F> {
    /// N initial particles (N × d), the same wherever they are drawn.
    pub fn initial_particles(&self, particles: usize, cx: &Context) -> Array2<F> {
        let mut theta = Array2::zeros((particles, self.model.dim()));
        for (n, row) in (0..).zip(theta.rows_mut()) {
            self.model.draw_initial(&mut cx.stream(Who::Run, n, Purpose::Initial), row);
        }
        theta
    }

    /// The loss of an agent's shard with minibatches of this size.
    ///
    /// # Errors
    /// Where the shard cannot be read, or its rows are none for the model.
    pub fn open(&self, agent: AgentId, batch: usize) -> Result<LocalLoss<F>, BoxError> {
        let shard = (self.shard)(agent)?;
        let mut scratch = Scratch::new();
        shard.check(self.model.as_ref(), &mut scratch)?;
        Ok(LocalLoss {
            agent,
            model: self.model.clone(),
            temperature: self.temperature,
            minibatch: Minibatch::new(shard.rows(), batch),
            shard,
            scratch,
        })
    }
}

/// L_k/α of one agent, estimated on minibatches, with the prior beside it.
pub struct LocalLoss<F> {
    agent: AgentId,
    model: Arc<dyn Model<F>>,
    temperature: f64,
    minibatch: Minibatch,
    shard: Shard<F>,
    scratch: Scratch<F>,
}

impl<F: Real> LocalLoss<F> {
    /// N_k, the rows of the shard.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }

    /// Adds the diagonal of the Gauss-Newton matrix of L_k/α at the particles (N × d), over all rows of the shard, to `curvature`.
    pub fn add_curvature(&mut self, theta: ArrayView2<F>, mut curvature: ArrayViewMut2<F>) {
        let weight = F::of(1.0 / self.temperature);
        let (model, scratch) = (&self.model, &mut self.scratch);
        self.shard.blocks(scratch, |_, batch, scratch| {
            model.add_curvature(theta, batch, weight, curvature.view_mut(), scratch);
        });
    }

    /// ∇log p0 at the particles (N × d); overwrites `score`.
    pub fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        self.model.prior_score(theta, score);
    }

    /// Subtracts ∇L̂_k/α at the particles (N × d) from `score`; the minibatch, the same for all particles, belongs to (agent, step).
    pub fn add_score(&mut self, theta: ArrayView2<F>, step: u64, score: ArrayViewMut2<F>, cx: &Context) {
        self.add_score_for(Who::Agent(self.agent), theta, step, 1.0, score, cx);
    }

    /// Subtracts `scale` · ∇L̂_k/α; the minibatch belongs to (`who`, step).
    pub fn add_score_for(
        &mut self,
        who: Who,
        theta: ArrayView2<F>,
        step: u64,
        scale: f64,
        mut score: ArrayViewMut2<F>,
        cx: &Context,
    ) {
        let rows = self.minibatch.draw(&mut cx.stream(who, step, Purpose::Minibatch));
        if rows.is_empty() {
            return;
        }
        let weight = F::of(scale * self.shard.rows() as f64 / (rows.len() as f64 * self.temperature));
        let all = rows.len() == self.shard.rows();
        let (model, scratch) = (&self.model, &mut self.scratch);
        if let Some(batch) = self.shard.dense() {
            if all {
                model.add_score(theta, batch, weight, score, scratch);
            } else {
                model.add_score_of(rows, theta, batch, weight, score, scratch);
            }
            return;
        }
        let add = |_, batch: Batch<F>, scratch: &mut Scratch<F>| model.add_score(theta, batch, weight, score.view_mut(), scratch);
        if all {
            self.shard.blocks(scratch, add);
        } else {
            self.shard.blocks_of(rows, scratch, add);
        }
    }
}
