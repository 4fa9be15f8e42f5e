//! Bayesian linear regression, whose posterior is known in closed form if the noise variance is given.
//!
//! y ~ N(η, σ²), where log σ is a parameter unless σ² is given. Regression targets are standardized, so σ² is a fraction of their variance.

use super::error::positive;
use super::regression::block::Block;
use super::regression::family::Family;
use super::regression::linear_predictor::BLAS_ROWS;
use super::regression::log_scale::{ScalePrior, scale_from_log};
use super::regression::model::Regression;
use super::regression::prior::Prior;
use super::regression::settings::{must_be_default, needs_numbers, regression_settings};
use super::{Batch, DataSchema, ModelError, Output, Part};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::KeyError;
use ndarray::linalg::{general_mat_mul, general_mat_vec_mul};
use ndarray::{Array1, Array2, ArrayView1, s};
use ndarray_linalg::{FactorizeC, InverseC, SolveC, UPLO};
use rand_distr::{Distribution, StandardNormal};

regression_settings! {
    /// The settings of the model `linear`.
    LinearSettings = "linear", prior: Prior::Normal(1.0),
    /// Variance σ² of the noise, as a fraction of the variance of standardized targets. Without it, log σ is a parameter.
    noise_variance: Option<f64> = None,
    /// Typical standard deviation of the noise where it is a parameter: the scale of its prior, Student's t distribution with 3 degrees of freedom, above 0.
    noise_scale: f64 = 1.0,
}

impl LinearSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not numbers.
    pub fn build(&self, data: &DataSchema) -> Result<Linear, KeyError> {
        needs_numbers(data)?;
        let known_variance = self.noise_variance.map(|variance| positive("noise_variance", variance)).transpose()?;
        if known_variance.is_some() {
            let reason = "has no effect beside `noise_variance`: remove one of the two";
            must_be_default("noise_scale", self.noise_scale, Self::default().noise_scale, reason)?;
        }
        let scale_prior = ScalePrior { typical: positive("noise_scale", self.noise_scale)? };
        self.shared()?.regression(data, Gaussian { known_variance, scale_prior })
    }
}

/// Bayesian linear regression; targets are numbers.
pub type Linear = Regression<Gaussian>;

/// Numbers with Gaussian noise.
#[derive(Clone, Debug)]
pub struct Gaussian {
    /// σ², unless log σ is a parameter.
    known_variance: Option<f64>,
    scale_prior: ScalePrior,
}

impl Linear {
    /// Mean and covariance of the exact posterior p ∝ p0 exp(−Σ ℓ/α) given these rows, a Gaussian.
    ///
    /// # Errors
    /// If the noise variance is a parameter, a prior is not normal, the data have an offset, weights or groups, the temperature is not
    /// positive, or squares of the data overflow.
    pub fn posterior<F: Real>(&self, batch: Batch<F>, temperature: f64) -> Result<(Array1<f64>, Array2<f64>), ModelError> {
        let (Some(variance), Some(precisions)) = (self.family().known_variance, self.normal_precisions()) else {
            return Err(ModelError::NoClosedForm);
        };
        let scale = 1.0 / (variance * positive("temperature", temperature)?);
        let (d, features) = (precisions.len(), batch.x.ncols());
        let mut precision = Array2::from_diag(&Array1::from(precisions));
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
}

impl Family for Gaussian {
    /// σ².
    type Prepared = f64;

    fn output(&self) -> Output {
        Output::Number
    }

    fn parts(&self) -> Vec<Part> {
        self.known_variance.is_none().then(|| Part::new("log_noise", &[])).into_iter().collect()
    }

    fn scale_prior(&self) -> Option<ScalePrior> {
        Some(self.scale_prior)
    }

    fn prepare(&self, psi: &[f64]) -> f64 {
        psi.first().map_or(self.known_variance.unwrap_or(1.0), |&log| scale_from_log(log).powi(2))
    }

    fn loss(&self, &variance: &f64, eta: f64, y: f64) -> f64 {
        0.5 * ((y - eta).powi(2) / variance + (2.0 * std::f64::consts::PI * variance).ln())
    }

    fn score(&self, &variance: &f64, eta: f64, y: f64, psi: &mut [f64]) -> f64 {
        psi.iter_mut().for_each(|by_log| *by_log += (y - eta).powi(2) / variance - 1.0);
        (y - eta) / variance
    }

    fn add_information(&self, &variance: &f64, _: f64, _: f64, weight: f64, information: &mut [f64]) {
        information[0] += weight / variance;
        information.iter_mut().skip(1).last().into_iter().for_each(|own| *own += 2.0 * weight);
    }

    fn predict(&self, variance: &f64, eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        mean[0] += weight * eta;
        (-self.loss(variance, eta, y)).exp()
    }

    fn draw(&self, &variance: &f64, eta: f64, stream: &mut Stream) -> f64 {
        let noise: f64 = StandardNormal.sample(stream);
        eta + variance.sqrt() * noise
    }

    fn scores<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, variances: &[f64], psi: &mut [f64]) {
        block.subtract_from(y);
        match self.known_variance {
            Some(variance) => {
                let precision = F::of(1.0 / variance);
                block.values.iter_mut().for_each(|residual| *residual *= precision);
            }
            None => block.for_each(|particle, _, residual| {
                let weighted = residual.f64() / variances[particle];
                psi[particle] += residual.f64() * weighted - 1.0;
                *residual = F::of(weighted);
            }),
        }
    }
}

#[cfg(test)]
mod tests;
