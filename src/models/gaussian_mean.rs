//! The mean of a Gaussian with known variances; its posterior is known in closed form.
//!
//! Rows x ~ N(θ, Σ) with diagonal Σ, θ ~ N(m, I/λ) or a flat prior; d is the number of features. The targets of the dataset are ignored.

use super::batch::{MAX_BLOCK_ROWS, Rows};
use super::error::{finite, not_negative, positive};
use super::{
    Batch, BuiltModel, CurvatureSupport, DataSchema, Model, ModelError, ModelSettings, Output, Part, Scratch, require_data,
};
use crate::layout::{flat, flat_mut};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::{Key, KeyError, keys};
use crate::vector::{self, vectorized};
use ndarray::{Array1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

/// One number for all features, or a list with one number per feature.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged, expecting = "must be a number, or a list with one number per feature")]
pub enum PerFeature {
    /// The same number for all features: `1.0`.
    Same(f64),
    /// One number per feature, in column order: `[1.0, 2.0]`.
    Each(Vec<f64>),
}

impl PerFeature {
    /// One number per feature, each checked by `check`. `list` names a list of the wrong length in the error.
    fn values(
        &self,
        (setting, list): (&'static str, &'static str),
        features: usize,
        check: impl Fn(&'static str, f64) -> Result<f64, ModelError>,
    ) -> Result<Vec<f64>, ModelError> {
        match self {
            Self::Same(value) => Ok(vec![check(setting, *value)?; features]),
            Self::Each(values) if values.len() == features => values.iter().map(|value| check(setting, *value)).collect(),
            Self::Each(values) => Err(ModelError::Size { what: list, found: values.len(), expected: features }),
        }
    }
}

/// The settings of the model `gaussian_mean`.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct GaussianMeanSettings {
    /// Variance of each feature around its mean (the diagonal of Σ): one number for all features, or a list with one per feature.
    pub variance: PerFeature,
    /// Mean m of the prior: one number for all features, or a list with one per feature.
    pub prior_mean: PerFeature,
    /// Precision λ of the prior N(m, I/λ). 0 is a flat prior; initial values are then drawn from N(m, I).
    pub prior_precision: f64,
}

impl Default for GaussianMeanSettings {
    fn default() -> Self {
        Self { variance: PerFeature::Same(1.0), prior_mean: PerFeature::Same(0.0), prior_precision: 0.0 }
    }
}

impl GaussianMeanSettings {
    /// The model for data with this many features.
    ///
    /// # Errors
    /// If a setting is out of its range, the length of a list is not the number of features, or there are no features.
    pub fn build(&self, features: usize) -> Result<GaussianMean, ModelError> {
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        let variance = ("variance", "`variance` (a list has one number per feature)");
        let prior_mean = ("prior_mean", "`prior_mean` (a list has one number per feature)");
        Ok(GaussianMean {
            variance: self.variance.values(variance, features, positive)?,
            prior_mean: self.prior_mean.values(prior_mean, features, finite)?,
            prior_precision: not_negative("prior_precision", self.prior_precision)?,
        })
    }
}

impl ModelSettings for GaussianMeanSettings {
    const NAME: &'static str = "gaussian_mean";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        let data = require_data(data)?;
        data.refuse_extra_columns("the mean of a Gaussian")?;
        Ok(BuiltModel::for_data(self.build(data.features)?))
    }
}

/// The mean of a Gaussian; targets are ignored.
#[derive(Clone, Debug)]
pub struct GaussianMean {
    variance: Vec<f64>,
    prior_mean: Vec<f64>,
    prior_precision: f64,
}

impl GaussianMean {
    /// d.
    fn features(&self) -> usize {
        self.variance.len()
    }

    /// Means and variances of the coordinates of θ under the exact posterior p ∝ p0 exp(−Σ ℓ/α) given these rows (rows × d). The
    /// coordinates are independent Gaussians.
    ///
    /// # Errors
    /// If the temperature is not positive, or the prior is flat and there are no rows.
    ///
    /// # Panics
    /// If the rows have another number of features.
    pub fn posterior<F: Real>(&self, x: ArrayView2<F>, temperature: f64) -> Result<(Array1<f64>, Array1<f64>), ModelError> {
        let temperature = positive("temperature", temperature)?;
        assert_eq!(x.ncols(), self.features(), "wrong number of features");
        if x.nrows() == 0 && self.prior_precision == 0.0 {
            return Err(ModelError::NotPositiveDefinite { what: "the precision of the posterior" });
        }
        let (mut mean, mut variance) = (Array1::zeros(x.ncols()), Array1::zeros(x.ncols()));
        for (j, column) in x.columns().into_iter().enumerate() {
            let scale = 1.0 / (self.variance[j] * temperature);
            variance[j] = 1.0 / (self.prior_precision + scale * x.nrows() as f64);
            let sum: f64 = column.iter().map(|x| x.f64()).sum();
            mean[j] = variance[j] * (self.prior_precision * self.prior_mean[j] + scale * sum);
        }
        Ok((mean, variance))
    }

    /// Writes Σ_i (x_i − center) over the rows to `sums`; `partial` is a buffer of the same length. Adding the sums of blocks loses less
    /// in single precision than one long sum.
    fn differences<F: Real>(rows: Rows<F>, center: &[F], sums: &mut [F], partial: &mut [F]) {
        let x = flat(rows.batch.x);
        sums.fill(F::zero());
        rows.for_each_block(MAX_BLOCK_ROWS, |_, rows| {
            partial.fill(F::zero());
            add_differences(x, rows, center, partial);
            sums.iter_mut().zip(partial.iter()).for_each(|(sum, partial)| *sum += *partial);
        });
    }

    /// All particles share the sum of the rows, relative to the first particle.
    fn add_score_over<F: Real>(
        &self,
        rows: Rows<F>,
        theta: ArrayView2<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let d = self.features();
        assert_eq!((theta.ncols(), rows.batch.x.ncols()), (d, d), "wrong number of parameters or features");
        let (theta, count) = (flat(theta), F::of(rows.count() as f64));
        let Some(center) = theta.get(..d) else { return };
        let mut memory = scratch.take(2 * d);
        let (sums, partial) = memory.split_at_mut(d);
        Self::differences(rows, center, sums, partial);
        let scales = partial;
        scales.iter_mut().zip(&self.variance).for_each(|(scale, variance)| *scale = F::of(weight.f64() / variance));
        for (theta, score) in theta.chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for j in 0..d {
                score[j] += scales[j] * (sums[j] + count * (center[j] - theta[j]));
            }
        }
        scratch.put(memory);
    }

    /// −log of a row's density at its mean.
    fn log_normalizer(&self) -> f64 {
        0.5 * self.variance.iter().map(|variance| (2.0 * std::f64::consts::PI * variance).ln()).sum::<f64>()
    }
}

impl<F: Real> Model<F> for GaussianMean {
    fn dim(&self) -> usize {
        self.features()
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("mean", &[self.features()])]
    }

    fn output(&self) -> Output {
        Output::Nothing
    }

    /// Draws θ from the prior, or from N(prior mean, I) if the prior is flat.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let deviation = if self.prior_precision > 0.0 { self.prior_precision.powf(-0.5) } else { 1.0 };
        let theta = flat_mut(theta);
        stream.normals(theta);
        for (theta, mean) in theta.iter_mut().zip(&self.prior_mean) {
            *theta = F::of(mean + deviation * theta.f64());
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.features()).zip(out) {
            let square: f64 = theta.iter().zip(&self.prior_mean).map(|(theta, mean)| (theta.f64() - mean).powi(2)).sum();
            *out = -0.5 * self.prior_precision * square;
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let d = self.features();
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for ((score, theta), mean) in score.iter_mut().zip(theta).zip(&self.prior_mean) {
                *score = F::of(self.prior_precision * (mean - theta.f64()));
            }
        }
    }

    /// Uses the means of the features and the squared deviations from them, which all particles share.
    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
        let (d, count) = (self.features(), batch.x.nrows() as f64);
        assert_eq!((theta.ncols(), batch.x.ncols()), (d, d), "wrong number of parameters or features");
        let rows = || flat(batch.x).chunks_exact(d);
        let mut means = vec![0.0; d];
        for row in rows() {
            means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x.f64());
        }
        means.iter_mut().for_each(|mean| *mean /= count.max(1.0));
        let mut squares = vec![0.0; d];
        for row in rows() {
            for ((square, x), mean) in squares.iter_mut().zip(row).zip(&means) {
                *square += (x.f64() - mean).powi(2);
            }
        }
        let offset = count * self.log_normalizer();
        for (theta, out) in flat(theta).chunks_exact(d).zip(out) {
            let term = |j: usize| (squares[j] + count * (theta[j].f64() - means[j]).powi(2)) / self.variance[j];
            *out = offset + 0.5 * (0..d).map(term).sum::<f64>();
        }
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.add_score_over(Rows { batch, selected: None }, theta, weight, score, scratch);
    }

    fn add_minibatch_score(
        &self,
        rows: &[usize],
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.add_score_over(Rows { batch, selected: Some(rows) }, theta, weight, score, scratch);
    }

    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::Full
    }

    fn add_curvature(&self, _: ArrayView2<F>, batch: Batch<F>, weight: F, mut curvature: ArrayViewMut2<F>, _: &mut Scratch<F>) {
        let rows = batch.x.nrows() as f64;
        for mut curvature in curvature.rows_mut() {
            for (curvature, variance) in curvature.iter_mut().zip(&self.variance) {
                *curvature += weight * F::of(rows / variance);
            }
        }
    }

    fn add_full_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        _: &mut Scratch<F>,
    ) {
        let rows = (batch.x.nrows() * theta.nrows()) as f64;
        for (curvature, variance) in curvature.diag_mut().into_iter().zip(&self.variance) {
            *curvature += weight * F::of(rows / variance);
        }
    }

    /// `mean` has no columns; `density` is N(x; θ_n, Σ), averaged over the particles.
    fn predict(&self, theta: ArrayView2<F>, batch: Batch<F>, _: ArrayViewMut2<f64>, density: &mut [f64], _: &mut Scratch<F>) {
        let (d, weight, log_normalizer) = (self.features(), 1.0 / theta.nrows() as f64, self.log_normalizer());
        let theta = flat(theta);
        for (row, density) in flat(batch.x).chunks_exact(d).zip(density) {
            let distance = |theta: &[F]| -> f64 {
                let terms = row.iter().zip(theta).zip(&self.variance);
                terms.map(|((x, theta), variance)| (x.f64() - theta.f64()).powi(2) / variance).sum()
            };
            *density = theta.chunks_exact(d).map(|theta| weight * (-0.5 * distance(theta) - log_normalizer).exp()).sum();
        }
    }
}

vectorized! {
    /// Adds Σ_i (x_i − center), with i in `rows`, to `sums`.
    fn add_differences<F: Real>(x: &[F], rows: &[usize], center: &[F], sums: &mut [F]) {
        // Random rows miss the cache, so they are prefetched this many rows ahead.
        const AHEAD: usize = 8;
        let d = center.len();
        let sums = &mut sums[..d];
        rows.iter().take(AHEAD).for_each(|row| vector::prefetch(x, row * d, d));
        for (i, &row) in rows.iter().enumerate() {
            if let Some(later) = rows.get(i + AHEAD) {
                vector::prefetch(x, later * d, d);
            }
            for ((sum, &x), &center) in sums.iter_mut().zip(&x[row * d..][..d]).zip(center) {
                *sum += x - center;
            }
        }
    }
}

#[cfg(test)]
mod tests;
