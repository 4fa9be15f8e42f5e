//! The coordinates in which a posterior is close to a standard normal distribution.

use crate::layout::{flat, flat_mut, matrix};
use crate::number::Real;
use crate::vector::vectorized;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2};

/// The coordinates z with θ = c + L z, where L is upper triangular, and what is known of the posterior at z = 0.
#[derive(Clone, Debug)]
pub struct Whitening<F> {
    /// c, the mode of the posterior.
    center: Vec<F>,
    /// L, row by row.
    rows: Vec<F>,
    /// L, column by column.
    columns: Vec<F>,
    /// The gradient by z of the tempered log-likelihood of all agents, at z = 0.
    center_score: Vec<F>,
}

impl<F: Real> Whitening<F> {
    /// The whitening with this c and L, where `score` is the gradient by θ of the tempered log-likelihood of all agents at c. What L has below
    /// its diagonal is left out.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn new(center: ArrayView1<f64>, factor: ArrayView2<f64>, score: ArrayView1<f64>) -> Self {
        let dim = center.len();
        assert!(factor.dim() == (dim, dim) && score.len() == dim, "a whitening needs one value for each parameter");
        let upper = Array2::from_shape_fn((dim, dim), |(i, j)| if j >= i { factor[[i, j]] } else { 0.0 });
        Self {
            center: center.iter().map(|&value| F::of(value)).collect(),
            center_score: upper.t().dot(&score).iter().map(|&value| F::of(value)).collect(),
            rows: upper.iter().map(|&value| F::of(value)).collect(),
            columns: upper.t().iter().map(|&value| F::of(value)).collect(),
        }
    }

    /// The gradient by z of the tempered log-likelihood of all agents, at z = 0.
    pub fn center_score(&self) -> &[F] {
        &self.center_score
    }

    /// Writes θ at z.
    pub(super) fn write_parameters(&self, z: &[F], theta: &mut [F]) {
        assert_eq!(z.len(), self.dim(), "z needs one value for each parameter");
        theta.copy_from_slice(&self.center);
        add_columns(&self.columns, z, theta);
    }

    /// d, the number of parameters.
    pub fn dim(&self) -> usize {
        self.center.len()
    }

    /// L S Lᵀ: the covariance of θ for a covariance S of z.
    pub fn covariance(&self, of_z: &Array2<f64>) -> Array2<f64> {
        let dim = self.dim();
        let factor = Array2::from_shape_fn((dim, dim), |(i, j)| self.rows[i * dim + j].f64());
        factor.dot(of_z).dot(&factor.t())
    }

    /// Adds Lᵀ s to `out`, which turns a gradient by θ into one by z.
    pub(super) fn add_gradient(&self, by_theta: &[F], out: &mut [F]) {
        add_rows(&self.rows, by_theta, out);
    }

    /// The θ of each row of `z`.
    pub fn parameters(&self, z: ArrayView2<F>) -> Array2<F> {
        let mut theta = Array2::zeros(z.raw_dim());
        for (z, theta) in flat(z).chunks_exact(self.dim()).zip(flat_mut(theta.view_mut()).chunks_exact_mut(self.dim())) {
            self.write_parameters(z, theta);
        }
        theta
    }

    /// Adds Lᵀ G L to `out`, which turns a curvature by θ into one by z.
    pub fn add_curvature(&self, by_theta: ArrayView2<F>, mut out: ArrayViewMut2<F>) {
        let factor = matrix(&self.rows, self.dim(), self.dim());
        general_mat_mul(F::one(), &factor.t(), &by_theta.dot(&factor), F::one(), &mut out);
    }
}

vectorized! {
    /// Adds Σ_j `factors`\[j\] · column j of an upper triangular matrix to `out`.
    fn add_columns<F: Real>(columns: &[F], factors: &[F], out: &mut [F]) {
        for (j, (column, &factor)) in columns.chunks_exact(factors.len()).zip(factors).enumerate() {
            out[..=j].iter_mut().zip(column).for_each(|(out, &value)| *out += factor * value);
        }
    }
}

vectorized! {
    /// Adds Σ_i `factors`\[i\] · row i of an upper triangular matrix to `out`.
    fn add_rows<F: Real>(rows: &[F], factors: &[F], out: &mut [F]) {
        for (i, (row, &factor)) in rows.chunks_exact(factors.len()).zip(factors).enumerate() {
            out[i..].iter_mut().zip(&row[i..]).for_each(|(out, &value)| *out += factor * value);
        }
    }
}
