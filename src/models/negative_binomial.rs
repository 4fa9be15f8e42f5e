//! Negative binomial regression: counts with a larger variance than in Poisson regression.
//!
//! y has mean μ = e^η and variance μ + a μ²; log a, the dispersion, is a parameter. With φ = 1/a,
//! p(y) = Γ(y + φ)/(Γ(φ) y!) (φ/(φ + μ))^φ (μ/(φ + μ))^y.

use super::error::positive;
use super::poisson::{draw_count, log_factorial};
use super::regression::family::Family;
use super::regression::model::Regression;
use super::regression::prior::{Prior, log_scale_density, log_scale_score, scale};
use super::regression::settings::{is_count, needs_counts, regression_settings};
use super::{BuiltModel, DataSchema, ModelSettings, Output, Part, require_data};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::{Key, KeyError, keys};
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::{digamma, ln_gamma};

regression_settings! {
    /// The settings of the model `negative_binomial`.
    NegativeBinomialSettings, prior: Prior::Normal(1.0),
    /// Typical dispersion a, where the variance of a target with mean μ is μ + a μ²; its prior also admits much larger ones.
    dispersion_scale: f64 = 1.0,
}

impl NegativeBinomialSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not counts.
    pub fn build(&self, data: &DataSchema) -> Result<Regression<NegativeBinomial>, KeyError> {
        needs_counts(data)?;
        let typical_dispersion = positive("dispersion_scale", self.dispersion_scale)?;
        self.shared().regression(data, NegativeBinomial { typical_dispersion })
    }
}

impl ModelSettings for NegativeBinomialSettings {
    const NAME: &'static str = "negative_binomial";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        Ok(BuiltModel::for_data(self.build(require_data(data)?)?))
    }
}

/// Counts whose variance exceeds their mean.
#[derive(Clone, Debug)]
pub struct NegativeBinomial {
    typical_dispersion: f64,
}

/// Up to this count, quotients of Gamma functions are products.
const FEW: f64 = 32.0;

/// log(Γ(y + φ)/(Γ(φ) φ^y)), without the cancellation of large logarithms where φ is large.
fn log_rising(y: f64, phi: f64) -> f64 {
    if y <= FEW {
        let mut sum = 0.0;
        let mut k = 0.0;
        while k < y {
            sum += (k / phi).ln_1p();
            k += 1.0;
        }
        return sum;
    }
    ln_gamma(y + phi) - ln_gamma(phi) - y * phi.ln()
}

/// The derivative of log(Γ(y + φ)/Γ(φ)) by φ.
fn rising_score(y: f64, phi: f64) -> f64 {
    if y <= FEW {
        let mut sum = 0.0;
        let mut k = 0.0;
        while k < y {
            sum += 1.0 / (phi + k);
            k += 1.0;
        }
        return sum;
    }
    digamma(y + phi) - digamma(phi)
}

impl NegativeBinomial {
    /// ∂ log p(y)/∂ log a.
    fn dispersion_score(phi: f64, mean: f64, y: f64) -> f64 {
        -phi * (rising_score(y, phi) - (mean / phi).ln_1p() + (mean - y) / (phi + mean))
    }
}

impl Family for NegativeBinomial {
    /// φ.
    type At = f64;

    fn output(&self) -> Output {
        Output::Count
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("log_dispersion", &[])]
    }

    fn check(&self, y: f64) -> Result<(), String> {
        is_count(y)
    }

    /// Draws a dispersion below the typical one.
    fn draw_initial(&self, stream: &mut Stream, psi: &mut [f64]) {
        stream.normals(psi);
        psi.iter_mut().for_each(|log| *log = self.typical_dispersion.ln() - 0.5 * log.abs());
    }

    fn log_prior(&self, psi: &[f64]) -> f64 {
        psi.iter().map(|&log| log_scale_density(log, self.typical_dispersion)).sum()
    }

    fn prior_score(&self, psi: &[f64], score: &mut [f64]) {
        score.iter_mut().zip(psi).for_each(|(score, &log)| *score = log_scale_score(log, self.typical_dispersion));
    }

    fn at(&self, psi: &[f64]) -> f64 {
        psi.first().map_or(1.0, |&log| 1.0 / scale(log))
    }

    fn loss(&self, &phi: &f64, eta: f64, y: f64) -> f64 {
        let mean = eta.exp();
        // (φ/(φ + μ))^φ (μ/(φ + μ))^y φ^y... in logarithms, with log(1 + μ/φ) for accuracy.
        (phi + y) * (mean / phi).ln_1p() - y * eta - log_rising(y, phi) + log_factorial(y)
    }

    fn score(&self, &phi: &f64, eta: f64, y: f64, psi: &mut [f64]) -> f64 {
        let mean = eta.exp();
        psi.iter_mut().for_each(|score| *score += Self::dispersion_score(phi, mean, y));
        (y - mean) * phi / (phi + mean)
    }

    /// The dispersion is orthogonal to the mean; the square of its own score stands for the expected one, which has no closed form.
    fn add_information(&self, &phi: &f64, eta: f64, y: f64, weight: f64, information: &mut [f64]) {
        let mean = eta.exp();
        information[0] += weight * mean * phi / (phi + mean);
        if let [.., own] = information {
            *own += weight * Self::dispersion_score(phi, mean, y).powi(2);
        }
    }

    /// A Poisson count whose mean has a Gamma distribution.
    fn draw(&self, &phi: &f64, eta: f64, stream: &mut Stream) -> f64 {
        Gamma::new(phi, eta.exp() / phi).map_or(f64::NAN, |means| draw_count(means.sample(stream), stream))
    }

    fn predict(&self, phi: &f64, eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        mean[0] += weight * eta.exp();
        (-self.loss(phi, eta, y)).exp()
    }
}
