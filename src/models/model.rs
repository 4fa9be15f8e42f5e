//! The trait that a statistical model implements: prior and loss with their gradients, and the posterior predictive.

use super::batch::Batch;
use super::scratch::Scratch;
use super::whitening::Whitening;
use crate::number::Real;
use crate::random::Stream;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

/// A named part of the parameter vector θ.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// Its name in result files, such as `weights_1` or `log_precision`.
    pub name: String,
    /// Its shape, row-major; empty for a scalar.
    pub shape: Vec<usize>,
    /// For each axis of the shape, the names along it, such as those of the features; none if they are counted from 0.
    pub labels: Vec<Vec<String>>,
}

impl Part {
    /// A part with this name and shape.
    pub fn new(name: impl Into<String>, shape: &[usize]) -> Self {
        Self { name: name.into(), shape: shape.to_vec(), labels: vec![Vec::new(); shape.len()] }
    }

    /// The same part with names along an axis, if there is one for each place.
    #[must_use]
    pub fn labelled(mut self, axis: usize, labels: &[String]) -> Self {
        if self.shape.get(axis) == Some(&labels.len()) {
            self.labels[axis] = labels.to_vec();
        }
        self
    }

    /// The number of scalar parameters.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// The name of the element at a row-major position, such as `weights_1[0,3]` or `weights[age]`; the name of the part itself for a scalar.
    pub fn element_name(&self, mut position: usize) -> String {
        if self.shape.is_empty() {
            return self.name.clone();
        }
        let mut indices: Vec<String> = Vec::new();
        for (&side, labels) in self.shape.iter().zip(&self.labels).rev() {
            let index = position % side.max(1);
            indices.push(labels.get(index).cloned().unwrap_or_else(|| index.to_string()));
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
    /// A real number with a predictive density.
    Number,
    /// A count 0, 1, ... with a predictive probability.
    Count,
    /// Nothing: the model is a density without targets.
    Nothing,
}

/// Which curvatures of its loss a model provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurvatureSupport {
    /// None.
    None,
    /// The diagonals of Gauss-Newton matrices: [`Model::add_curvature`].
    Diagonal,
    /// The diagonals and the full matrices: also [`Model::add_full_curvature`].
    Full,
}

/// A model: a prior density over θ ∈ R^d and a loss per row of data, for the generalized posterior
/// p(θ) ∝ p0(θ) exp(−Σ_i ℓ_i(θ)/α).
///
/// All functions are batched over particles: `theta` is N × d, one particle per row, row-major and contiguous.
/// The caller handles the temperature α and the scaling of minibatches: it passes `weight` = N_k/(|B| α).
pub trait Model<F: Real>: Send + Sync {
    /// d, the number of parameters.
    fn dim(&self) -> usize;

    /// The named parts of θ in order; their sizes add up to d.
    fn parts(&self) -> Vec<Part>;

    /// What the model predicts.
    fn output(&self) -> Output;

    /// Checks that the rows hold valid values, such as group indices in range or nonnegative counts. Every agent calls it with its own
    /// training and test rows before the run begins.
    ///
    /// # Errors
    /// A message that says which values are invalid and which are allowed.
    fn check(&self, _batch: Batch<F>) -> Result<(), String> {
        Ok(())
    }

    /// Writes an initial θ: a draw from the prior, or the customary initialization where prior draws are unsuitable (networks).
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>);

    /// The number of values in the buffers that a thread needs for a gradient, beside parameters and rows, if they are many.
    fn buffered_values(&self) -> usize {
        0
    }

    /// Whether other parameters give the same distribution of targets, as in networks, whose units can be exchanged: chains then need not
    /// agree about parameters, but about what they predict.
    fn has_symmetries(&self) -> bool {
        false
    }

    /// The parameters that are logarithms of scales, each with the parameters that are standard normal a priori and are multiplied by the
    /// scale, as in hierarchical models. Their joint mode lies far from most of the posterior, so the search for a mode integrates the
    /// standard normal parameters out.
    fn log_scales(&self) -> Vec<(usize, Vec<usize>)> {
        Vec::new()
    }

    /// Whether scales of other parameters are parameters too.
    fn is_hierarchical(&self) -> bool {
        !self.log_scales().is_empty()
    }

    /// Writes the point at which a chain starts, if it is not to be an initial θ; returns whether it did.
    fn start(&self, _chain: u64, _position: &mut [F]) -> bool {
        false
    }

    /// Overwrites `out` (length N) with log p0(θ_n), up to a constant.
    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]);

    /// Overwrites `score` (N × d) with ∇log p0(θ_n).
    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>);

    /// Overwrites `out` (length N) with the loss Σ_i ℓ_i(θ_n) over the batch.
    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>);

    /// Subtracts `weight` · Σ_i ∇ℓ_i(θ_n) over the batch from `score` (N × d).
    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>);

    /// Does the same as [`Model::add_score`] for a minibatch: the rows of `batch` with the indices `rows`, in this order. The default
    /// copies them into a contiguous batch first.
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

    /// Which of the two curvature functions below the model implements.
    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::None
    }

    /// Adds `weight` · Σ_i diag G_i(θ_n) over the batch to `curvature` (N × d). G_i is the generalized Gauss-Newton matrix of ℓ_i or its
    /// expectation; its diagonal is at least 0, and 0 for parameters that the loss does not depend on.
    fn add_curvature(
        &self,
        _theta: ArrayView2<F>,
        _batch: Batch<F>,
        _weight: F,
        _curvature: ArrayViewMut2<F>,
        _scratch: &mut Scratch<F>,
    ) {
    }

    /// Adds `weight` · Σ_n Σ_i G_i(θ_n), over the batch and all particles, to `curvature` (d × d).
    fn add_full_curvature(
        &self,
        _theta: ArrayView2<F>,
        _batch: Batch<F>,
        _weight: F,
        _curvature: ArrayViewMut2<F>,
        _scratch: &mut Scratch<F>,
    ) {
    }

    /// The coordinates of a model in which z = 0 is the mode of the posterior; see [`Whitened`](super::Whitened).
    fn whitening(&self) -> Option<&Whitening<F>> {
        self.inside().map(|(_, whitening)| whitening)
    }

    /// The model that a [`Whitened`](super::Whitened) one is made of, and the coordinates in which z = 0 is the mode of the posterior.
    fn inside(&self) -> Option<(&dyn Model<F>, &Whitening<F>)> {
        None
    }

    /// Appends θ at a parameter vector of the model: the vector itself, unless the model has other coordinates.
    fn append_parameters(&self, position: &[F], parameters: &mut Vec<F>) {
        parameters.extend_from_slice(position);
    }

    /// Writes a target for each particle, drawn from the distribution of the target of the only row of the batch; returns whether the model
    /// can.
    fn draw_targets(
        &self,
        _theta: ArrayView2<F>,
        _row: Batch<F>,
        _stream: &mut Stream,
        _out: &mut [f64],
        _scratch: &mut Scratch<F>,
    ) -> bool {
        false
    }

    /// Whether a row is of a group that no training row has. What is expected of it then depends on the unknown effect of its group too.
    fn is_of_new_group(&self, _row: ArrayView1<F>) -> bool {
        false
    }

    /// Overwrites `out` (N × outputs) with the class probabilities or the mean of the only row of the batch for each particle, given the
    /// effect of the row's group. It is called for rows of new groups only, and draws that effect anew for each particle.
    fn draw_means(
        &self,
        _theta: ArrayView2<F>,
        _row: Batch<F>,
        _stream: &mut Stream,
        _out: ArrayViewMut2<f64>,
        _scratch: &mut Scratch<F>,
    ) {
    }

    /// The posterior predictive, averaged over the N particles. Overwrites `mean` (rows × outputs) with class probabilities or the mean,
    /// and `density` (length rows) with the averaged probability or density of each row's target.
    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    );
}
