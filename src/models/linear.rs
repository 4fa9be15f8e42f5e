//! Bayesian linear regression with known noise variance; its posterior is known in closed form.
//!
//! y ~ N(xᵀw + b, σ²), w and b ~ N(0, 1/λ). Regression targets are standardized, so σ² is a fraction of their variance.

use super::error::positive;
use super::layout::{flat, flat_mut};
use super::linear_predictor::{BLAS_ROWS, LinearPredictor, generalized_linear_model};
use super::{
    Batch, BuiltModel, CurvatureSupport, DataSchema, Model, ModelError, ModelSettings, Output, Part, Scratch, require_data,
};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::{Key, KeyError, keys};
use ndarray::linalg::{general_mat_mul, general_mat_vec_mul};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2, s};
use ndarray_linalg::{FactorizeC, InverseC, SolveC, UPLO};

/// The settings of the model `linear`.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LinearSettings {
    /// Whether the model has an intercept: a column of ones beside the features.
    pub intercept: bool,
    /// Variance σ² of the noise. Targets are standardized to variance 1, so this is the fraction of their variance that the
    /// features do not explain.
    pub noise_variance: f64,
    /// Precision λ of the prior N(0, 1/λ) of each weight and of the intercept.
    pub prior_precision: f64,
}

impl Default for LinearSettings {
    fn default() -> Self {
        Self { intercept: true, noise_variance: 1.0, prior_precision: 1.0 }
    }
}

impl LinearSettings {
    /// The model for data with this many features.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not numbers.
    pub fn build(&self, features: usize, output: Output) -> Result<Linear, ModelError> {
        if output != Output::Number {
            return Err(ModelError::Target {
                needed: "numbers as targets: it is a linear regression; import with --task regression",
            });
        }
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        Ok(Linear {
            predictor: LinearPredictor { features, intercept: self.intercept, further: 0 },
            noise_variance: positive("noise_variance", self.noise_variance)?,
            prior_precision: positive("prior_precision", self.prior_precision)?,
        })
    }
}

impl ModelSettings for LinearSettings {
    const NAME: &'static str = "linear";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn build_model<F: Real>(&self, data: Option<DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        let DataSchema { features, output } = require_data(data)?;
        Ok(BuiltModel::for_data(self.build(features, output)?))
    }
}

/// Bayesian linear regression; targets are numbers.
#[derive(Clone, Debug)]
pub struct Linear {
    predictor: LinearPredictor,
    noise_variance: f64,
    prior_precision: f64,
}

impl Linear {
    /// Mean and covariance of the exact posterior p ∝ p0 exp(−Σ ℓ/α) given these rows, a Gaussian.
    ///
    /// # Errors
    /// If the temperature is not positive, or squares of the data overflow.
    pub fn posterior<F: Real>(&self, batch: Batch<F>, temperature: f64) -> Result<(Array1<f64>, Array2<f64>), ModelError> {
        let scale = 1.0 / (self.noise_variance * positive("temperature", temperature)?);
        let (d, features) = (self.predictor.dim(), self.predictor.features);
        let mut precision = Array2::eye(d) * self.prior_precision;
        let mut moment = Array1::zeros(d);
        for Batch { x, y } in batch.blocks(BLAS_ROWS) {
            // The last column, of the intercept, stays 1.
            let mut rows = Array2::<f64>::ones((x.nrows(), d));
            rows.slice_mut(s![.., ..features]).zip_mut_with(&x, |to, from| *to = from.f64());
            general_mat_mul(scale, &rows.t(), &rows, 1.0, &mut precision);
            general_mat_vec_mul(scale, &rows.t(), &y.mapv(|y| y.f64()), 1.0, &mut moment);
        }
        let singular = || ModelError::NotPositiveDefinite { what: "the precision of the posterior" };
        // The Cholesky factor of an infinite matrix is infinite, without an error.
        if !precision.iter().chain(&moment).all(|value| value.is_finite()) {
            return Err(singular());
        }
        let factor = precision.factorizec(UPLO::Lower).map_err(|_| singular())?;
        let mean = factor.solvec(&moment).map_err(|_| singular())?;
        Ok((mean, factor.invc().map_err(|_| singular())?))
    }

    /// −log of the noise's density at 0.
    fn log_normalizer(&self) -> f64 {
        0.5 * (2.0 * std::f64::consts::PI * self.noise_variance).ln()
    }

    fn score_weight<F: Real>(&self, weight: F) -> F {
        F::of(weight.f64() / self.noise_variance)
    }

    fn predictors_to_means<F: Real>(_: &mut [F]) {}

    fn predictors_to_curvatures<F: Real>(&self, predictors: &mut [F]) {
        predictors.fill(F::of(1.0 / self.noise_variance));
    }
}

impl<F: Real> Model<F> for Linear {
    generalized_linear_model!(F);

    fn parts(&self) -> Vec<Part> {
        self.predictor.parts()
    }

    fn output(&self) -> Output {
        Output::Number
    }

    /// Draws θ from the prior.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let (theta, deviation) = (flat_mut(theta), F::of(self.prior_precision.powf(-0.5)));
        stream.normals(theta);
        theta.iter_mut().for_each(|weight| *weight *= deviation);
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.predictor.dim()).zip(out) {
            let square: f64 = theta.iter().map(|w| w.f64() * w.f64()).sum();
            *out = -0.5 * self.prior_precision * square;
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let precision = F::of(self.prior_precision);
        flat_mut(score).iter_mut().zip(flat(theta)).for_each(|(score, &weight)| *score = -precision * weight);
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        self.predictor.predict(theta, batch, scratch, |block| {
            for (means, &row) in block.values.chunks_exact(block.lanes).zip(block.rows) {
                let y = batch.y[row];
                for (out, &mean) in out[block.particles.clone()].iter_mut().zip(means) {
                    *out += (y - mean).f64().powi(2);
                }
            }
        });
        let offset = batch.x.nrows() as f64 * self.log_normalizer();
        out.iter_mut().for_each(|out| *out = 0.5 * *out / self.noise_variance + offset);
    }

    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mut mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    ) {
        mean.fill(0.0);
        density.fill(0.0);
        let (weight, log_normalizer) = (1.0 / theta.nrows() as f64, self.log_normalizer());
        self.predictor.predict(theta, batch, scratch, |block| {
            for (i, means) in (block.first..).zip(block.values.chunks_exact(block.lanes)) {
                let y = batch.y[i].f64();
                for &particle_mean in &means[..block.particles.len()] {
                    let particle_mean = particle_mean.f64();
                    mean[[i, 0]] += weight * particle_mean;
                    density[i] += weight * (-0.5 * (y - particle_mean).powi(2) / self.noise_variance - log_normalizer).exp();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
