//! Log-densities with gradients, batched over particles: the trait that a model implements, and the models that come along.

mod error;
pub mod gaussian;
pub mod gaussian_mean;
mod kind;
mod layout;
pub mod linear;
mod linear_predictor;
pub mod logistic;
pub mod network;
mod rows;
mod scratch;
#[cfg(test)]
mod tests;
pub mod toy;

pub use error::ModelError;
pub use kind::{BuiltModel, DataSchema, ModelSettings, require_data};
pub use scratch::Scratch;

use crate::number::Real;
use crate::random::Stream;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

/// Log-precisions that are sampled along are held within ± this where they are exponentiated.
const LARGEST_LOG_PRECISION: f64 = 30.0;

/// e^v of a log-precision v.
fn precision(log: f64) -> f64 {
    log.clamp(-LARGEST_LOG_PRECISION, LARGEST_LOG_PRECISION).exp()
}

/// Rows of data: what a loss is evaluated on.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a, F> {
    /// Features, rows × features, row-major.
    pub x: ArrayView2<'a, F>,
    /// Targets, one per row: a number, or the index of a class (0, 1, ...) for classification.
    pub y: ArrayView1<'a, F>,
}

/// A named part of the parameter vector, in the order in which the parts are laid out.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// The field's name for it: `weights_1`, `log_precision`.
    pub name: String,
    /// Its shape, row-major; empty for a scalar.
    pub shape: Vec<usize>,
}

impl Part {
    /// A part with this name and shape.
    pub fn new(name: impl Into<String>, shape: &[usize]) -> Self {
        Self { name: name.into(), shape: shape.to_vec() }
    }

    /// How many numbers it holds.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// The name of one of its numbers, by its row-major position: `weights_1[0,3]`, or the part's own name if it is a scalar.
    pub fn element_name(&self, mut position: usize) -> String {
        if self.shape.is_empty() {
            return self.name.clone();
        }
        let mut indices: Vec<String> = Vec::new();
        for &side in self.shape.iter().rev() {
            indices.push((position % side.max(1)).to_string());
            position /= side.max(1);
        }
        indices.reverse();
        format!("{}[{}]", self.name, indices.join(","))
    }
}

/// What a model predicts for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Output {
    /// Probabilities of this many classes.
    Classes(usize),
    /// One number with a predictive density.
    Number,
    /// Nothing: a bare density, there is no data to predict.
    Nothing,
}

/// What a model tells of the curvature of its loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurvatureSupport {
    /// Nothing.
    None,
    /// The diagonals of Gauss-Newton matrices: [`Model::add_curvature`].
    Diagonal,
    /// These, and the whole matrices: [`Model::add_full_curvature`].
    Full,
}

/// A model: a prior density over θ ∈ R^d and a loss of rows of data, in generalized Bayes p(θ) ∝ p0(θ) exp(−Σ_i ℓ_i(θ)/α).
///
/// Everything is batched over particles: `theta` is N × d, row n is particle n, row-major and contiguous.
/// The temperature α and the scaling of minibatches are the caller's: it passes `weight` = N_k/(|B| α).
pub trait Model<F: Real>: Send + Sync {
    /// d, the number of parameters.
    fn dim(&self) -> usize;

    /// The named parts of θ, in order; their sizes add up to d.
    fn parts(&self) -> Vec<Part>;

    /// What it predicts.
    fn output(&self) -> Output;

    /// Whether these rows are what the model takes: an index that is one, a count that is none below 0. Every agent asks it of its
    /// own rows, training and test, before the run begins.
    ///
    /// # Errors
    /// A message that says which values do not fit, and what would.
    fn check(&self, _batch: Batch<F>) -> Result<(), String> {
        Ok(())
    }

    /// One initial θ: a draw from the prior, or the customary initialisation where sampling from the prior makes no sense (networks).
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>);

    /// log p0(θ_n) for each particle, up to a constant, into `out` (length N).
    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]);

    /// ∇log p0(θ_n) for each particle; overwrites `score` (N × d).
    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>);

    /// Σ_i ℓ_i(θ_n) over the batch for each particle, into `out` (length N).
    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>);

    /// score_n −= weight · Σ_i ∇ℓ_i(θ_n) over the batch, for each particle (N × d).
    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>);

    /// As [`Model::add_score`] over these rows of the batch, in this order; a minibatch. By default they are copied together first.
    fn add_minibatch_score(
        &self,
        rows: &[usize],
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        scratch.gather(batch, rows, |rows, scratch| self.add_score(theta, rows, weight, score, scratch));
    }

    /// What it tells of the curvature of its loss.
    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::None
    }

    /// curvature_n += weight · Σ_i diag G_i(θ_n) over the batch, for each particle (N × d), with G_i the generalised Gauss-Newton matrix
    /// of ℓ_i, or its expectation: at least 0, and 0 for parameters that the loss does not contain. Only of models that
    /// [tell it](Model::curvature_support).
    fn add_curvature(
        &self,
        _theta: ArrayView2<F>,
        _batch: Batch<F>,
        _weight: F,
        _curvature: ArrayViewMut2<F>,
        _scratch: &mut Scratch<F>,
    ) {
    }

    /// curvature += weight · Σ_n Σ_i G_i(θ_n) over the batch and all particles (d × d), the whole matrices. Only of models that
    /// [tell it](Model::curvature_support).
    fn add_full_curvature(
        &self,
        _theta: ArrayView2<F>,
        _batch: Batch<F>,
        _weight: F,
        _curvature: ArrayViewMut2<F>,
        _scratch: &mut Scratch<F>,
    ) {
    }

    /// The posterior predictive, averaged over the N particles: overwrites `mean` (rows × outputs: class probabilities, or the mean)
    /// and `density` (length rows: the averaged probability or density of the row's target).
    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    );
}
