//! Inference problem that agents share: a model, a temperature, and for each agent a shard of data that it alone can read.

use crate::cluster::{AgentId, BoxError, Context};
use crate::data::Shard;
use crate::models::{Batch, Model, Scratch};
use crate::number::Real;
use crate::random::{Minibatch, Purpose, Stream, Who};
use ndarray::{Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use std::sync::Arc;

/// Opens the shard of an agent on the rank that hosts it.
pub type OpenShard<F> = Arc<dyn Fn(AgentId) -> Result<Shard<F>, BoxError> + Send + Sync>;

/// The generalized posterior p(θ) ∝ p0(θ) exp(−Σ_k L_k(θ)/α) that K agents share.
#[derive(Clone)]
pub struct Problem<F> {
    /// The model: prior and loss.
    pub model: Arc<dyn Model<F>>,
    /// K, the number of agents.
    pub agents: u32,
    /// α: 1 for Bayes' rule, larger to give the data less weight.
    pub temperature: f64,
    /// Opens the rows of L_k.
    pub shard: OpenShard<F>,
}

impl<F: Real> Problem<F> {
    /// N initial particles (N × d), the same on all ranks.
    pub fn initial_particles(&self, particles: usize, cx: &Context) -> Array2<F> {
        let mut theta = Array2::zeros((particles, self.model.dim()));
        for (n, row) in (0..).zip(theta.rows_mut()) {
            self.model.draw_initial(&mut cx.stream(Who::Run, n, Purpose::Initial), row);
        }
        theta
    }

    /// Writes the point at which a chain starts: the one that the model has for it, or else a draw from the stream.
    pub fn start(&self, chain: u64, stream: &mut Stream, position: &mut [F]) {
        if !self.model.start(chain, position) {
            self.model.draw_initial(stream, ArrayViewMut1::from(position));
        }
    }

    /// The loss of an agent's shard with minibatches of this size.
    ///
    /// # Errors
    /// If the shard cannot be read, or its rows do not fit the model.
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

/// The loss L_k/α of one agent, estimated on minibatches, and the prior.
pub struct LocalLoss<F> {
    agent: AgentId,
    model: Arc<dyn Model<F>>,
    temperature: f64,
    minibatch: Minibatch,
    shard: Shard<F>,
    scratch: Scratch<F>,
}

impl<F: Real> LocalLoss<F> {
    /// N_k, the number of rows of the shard.
    pub fn rows(&self) -> usize {
        self.shard.rows()
    }

    /// Sets the size of minibatches.
    pub fn set_batch(&mut self, batch: usize) {
        self.minibatch = Minibatch::new(self.shard.rows(), batch);
    }

    /// Sets minibatches to this agent's share of one with `batch` of the `all` rows of all agents, and at least one row.
    pub fn set_share_of_batch(&mut self, batch: usize, all: usize) {
        let share = (batch as u128 * self.rows() as u128).div_ceil(all.max(1) as u128);
        self.set_batch(usize::try_from(share).unwrap_or(usize::MAX).max(1));
    }

    /// Adds the diagonal of the Gauss-Newton matrix of L̂_k/α at the particles (N × d) to `curvature`, on the same minibatch as
    /// [`Self::add_score`].
    pub fn add_curvature(&mut self, theta: ArrayView2<F>, step: u64, mut curvature: ArrayViewMut2<F>, cx: &Context) {
        self.on_minibatch(step, cx, |model, weight, batch, scratch| {
            model.add_curvature(theta, batch, F::of(weight), curvature.view_mut(), scratch);
        });
    }

    /// Adds the Gauss-Newton matrices of L̂_k/α at all particles (N × d) to `curvature` (d × d), on the same minibatch as
    /// [`Self::add_score`].
    pub fn add_full_curvature(&mut self, theta: ArrayView2<F>, step: u64, mut curvature: ArrayViewMut2<F>, cx: &Context) {
        let model = self.model.clone();
        let Some((inside, whitening)) = model.inside() else {
            self.on_minibatch(step, cx, |model, weight, batch, scratch| {
                model.add_full_curvature(theta, batch, F::of(weight), curvature.view_mut(), scratch);
            });
            return;
        };
        if self.rows() == 0 {
            return;
        }
        // Summed by θ, and brought into the coordinates once instead of for every block of rows.
        let (theta, mut sum) = (whitening.parameters(theta), Array2::zeros(curvature.raw_dim()));
        self.on_minibatch(step, cx, |_, weight, batch, scratch| {
            inside.add_full_curvature(theta.view(), batch, F::of(weight), sum.view_mut(), scratch);
        });
        whitening.add_curvature(sum.view(), curvature);
    }

    /// Calls `each` with the blocks of the minibatch of (agent, step) and the weight N_k/(|B| α) of its rows.
    fn on_minibatch(&mut self, step: u64, cx: &Context, mut each: impl FnMut(&dyn Model<F>, f64, Batch<F>, &mut Scratch<F>)) {
        let rows = self.minibatch.draw(&mut cx.stream(Who::Agent(self.agent), step, Purpose::Minibatch));
        if rows.is_empty() {
            return;
        }
        let weight = self.shard.rows() as f64 / (rows.len() as f64 * self.temperature);
        let model = self.model.as_ref();
        let each = |_, batch: Batch<F>, scratch: &mut Scratch<F>| each(model, weight, batch, scratch);
        if rows.len() == self.shard.rows() {
            self.shard.blocks(&mut self.scratch, each);
        } else {
            self.shard.blocks_of(rows, &mut self.scratch, each);
        }
    }

    /// Writes ∇log p0 at the particles (N × d) to `score`.
    pub fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        self.model.prior_score(theta, score);
    }

    /// Writes L̂_k/α at the particles (N × d) to `out` (length N), on the same minibatch as [`Self::add_score`].
    pub fn loss(&mut self, theta: ArrayView2<F>, step: u64, out: &mut [f64], cx: &Context) {
        out.fill(0.0);
        let mut block = vec![0.0; out.len()];
        self.on_minibatch(step, cx, |model, weight, batch, scratch| {
            model.loss(theta, batch, &mut block, scratch);
            out.iter_mut().zip(&block).for_each(|(out, loss)| *out += weight * loss);
        });
    }

    /// Writes log p0 at the particles (N × d), up to a constant, to `out` (length N).
    pub fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        self.model.log_prior(theta, out);
    }

    /// Subtracts ∇L̂_k/α at the particles (N × d) from `score`. The minibatch is the same for all particles and depends on (agent, step).
    pub fn add_score(&mut self, theta: ArrayView2<F>, step: u64, score: ArrayViewMut2<F>, cx: &Context) {
        self.add_score_for(Who::Agent(self.agent), theta, step, 1.0, score, cx);
    }

    /// Subtracts `scale` · ∇L̂_k/α from `score`. The minibatch depends on (`who`, step).
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
                model.add_minibatch_score(rows, theta, batch, weight, score, scratch);
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
