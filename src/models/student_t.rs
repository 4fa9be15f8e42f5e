//! Robust linear regression: noise with Student's t distribution, so that a few outliers do not move the weights.
//!
//! y ~ t_ν(η, σ); log σ is a parameter, ν is given.

use super::error::positive;
use super::regression::family::Family;
use super::regression::log_scale::{ScalePrior, scale_from_log};
use super::regression::model::Regression;
use super::regression::prior::Prior;
use super::regression::settings::{needs_numbers, regression_settings};
use super::{DataSchema, Output, Part};
use crate::random::Stream;
use crate::settings::KeyError;
use rand_distr::Distribution;
use statrs::function::gamma::ln_gamma;

regression_settings! {
    /// The settings of the model `student_t`.
    StudentTSettings = "student_t", prior: Prior::Normal(1.0),
    /// Degrees of freedom ν of the noise: the smaller, the less an outlier counts.
    degrees_of_freedom: f64 = 4.0,
    /// Typical scale of the noise, as a fraction of the standard deviation of standardized targets: the scale of its prior, Student's t distribution with 3 degrees of freedom, above 0.
    noise_scale: f64 = 1.0,
}

impl StudentTSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not numbers.
    pub fn build(&self, data: &DataSchema) -> Result<Regression<StudentT>, KeyError> {
        needs_numbers(data)?;
        let df = positive("degrees_of_freedom", self.degrees_of_freedom)?;
        let log_normalizer = 0.5 * (df * std::f64::consts::PI).ln() + ln_gamma(0.5 * df) - ln_gamma(0.5 * (df + 1.0));
        let scale_prior = ScalePrior { typical: positive("noise_scale", self.noise_scale)? };
        self.shared()?.regression(data, StudentT { df, log_normalizer, scale_prior })
    }
}

/// Numbers with noise that has heavy tails.
#[derive(Clone, Debug)]
pub struct StudentT {
    /// ν.
    df: f64,
    log_normalizer: f64,
    scale_prior: ScalePrior,
}

impl Family for StudentT {
    /// σ.
    type Prepared = f64;

    fn output(&self) -> Output {
        Output::Number
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("log_noise", &[])]
    }

    fn scale_prior(&self) -> Option<ScalePrior> {
        Some(self.scale_prior)
    }

    fn prepare(&self, psi: &[f64]) -> f64 {
        psi.first().map_or(1.0, |&log| scale_from_log(log))
    }

    fn loss(&self, &sigma: &f64, eta: f64, y: f64) -> f64 {
        0.5 * (self.df + 1.0) * (((y - eta) / sigma).powi(2) / self.df).ln_1p() + sigma.ln() + self.log_normalizer
    }

    fn score(&self, &sigma: &f64, eta: f64, y: f64, psi: &mut [f64]) -> f64 {
        let residual = (y - eta) / sigma;
        let weighted = (self.df + 1.0) * residual / (self.df + residual * residual);
        psi.iter_mut().for_each(|by_log| *by_log += weighted * residual - 1.0);
        weighted / sigma
    }

    fn add_information(&self, &sigma: &f64, _: f64, _: f64, weight: f64, information: &mut [f64]) {
        information[0] += weight * (self.df + 1.0) / ((self.df + 3.0) * sigma * sigma);
        if let [.., own] = information {
            *own += weight * 2.0 * self.df / (self.df + 3.0);
        }
    }

    fn draw(&self, &sigma: &f64, eta: f64, stream: &mut Stream) -> f64 {
        rand_distr::StudentT::new(self.df).map_or(f64::NAN, |noise| eta + sigma * noise.sample(stream))
    }

    fn predict(&self, sigma: &f64, eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        mean[0] += weight * eta;
        (-self.loss(sigma, eta, y)).exp()
    }
}
