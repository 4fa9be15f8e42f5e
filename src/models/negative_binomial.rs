//! Negative binomial regression: counts with a larger variance than in Poisson regression.
//!
//! y has mean μ = e^η and variance μ + a μ²; log a, the dispersion, is a parameter. With φ = 1/a,
//! p(y) = Γ(y + φ)/(Γ(φ) y!) (φ/(φ + μ))^φ (μ/(φ + μ))^y.

use super::error::positive;
use super::poisson::{draw_count, log_factorial};
use super::regression::family::Family;
use super::regression::log_scale::{ScalePrior, scale_from_log};
use super::regression::logistic_function::{sigmoid, softplus};
use super::regression::model::Regression;
use super::regression::prior::Prior;
use super::regression::settings::{check_count, needs_counts, regression_settings};
use super::{DataSchema, Output, Part};
use crate::random::Stream;
use crate::settings::KeyError;
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::{digamma, ln_gamma};

regression_settings! {
    /// The settings of the model `negative_binomial`.
    NegativeBinomialSettings = "negative_binomial", prior: Prior::Normal(1.0),
    /// Typical dispersion a, where the variance of a target with mean μ is μ + a μ²: the scale of its prior, Student's t distribution with 3 degrees of freedom, above 0.
    dispersion_scale: f64 = 1.0,
}

impl NegativeBinomialSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not counts.
    pub fn build(&self, data: &DataSchema) -> Result<Regression<NegativeBinomial>, KeyError> {
        needs_counts(data)?;
        let scale_prior = ScalePrior { typical: positive("dispersion_scale", self.dispersion_scale)? };
        self.shared()?.regression(data, NegativeBinomial { scale_prior })
    }
}

/// Counts whose variance exceeds their mean.
#[derive(Clone, Debug)]
pub struct NegativeBinomial {
    scale_prior: ScalePrior,
}

/// Up to this count, quotients of Gamma functions are products.
const FEW: f64 = 32.0;
/// From this φ on, Stirling's series gives their logarithms to the last digit.
const LARGE: f64 = 1e4;
/// If few counts are larger than this, the information about the dispersion is a sum over all counts.
const SUMMED: f64 = 300.0;

/// The numbers 0, 1, ... below a count.
fn below(y: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(0.0), |k| Some(k + 1.0)).take_while(move |&k| k < y)
}

/// log(Γ(y + φ)/(Γ(φ) φ^y)), without the cancellation of large logarithms where φ is large.
fn log_rising(y: f64, phi: f64) -> f64 {
    if y <= FEW {
        below(y).map(|k| (k / phi).ln_1p()).sum()
    } else if phi >= LARGE {
        (phi + y - 0.5) * (y / phi).ln_1p() - y + (1.0 / (phi + y) - 1.0 / phi) / 12.0
    } else {
        ln_gamma(y + phi) - ln_gamma(phi) - y * phi.ln()
    }
}

/// The derivative of log(Γ(y + φ)/Γ(φ)) by φ.
fn rising_score(y: f64, phi: f64) -> f64 {
    if y <= FEW {
        below(y).map(|k| 1.0 / (phi + k)).sum()
    } else if phi >= LARGE {
        (y / phi).ln_1p() + 0.5 * y / (phi * (phi + y)) - (1.0 / (phi + y).powi(2) - 1.0 / (phi * phi)) / 12.0
    } else {
        digamma(y + phi) - digamma(phi)
    }
}

/// Minus the second derivative of log(Γ(y + φ)/Γ(φ)) by φ, for large y: the difference of two trigamma functions.
fn rising_curvature(y: f64, phi: f64) -> f64 {
    let trigamma = |mut x: f64| {
        let mut sum = 0.0;
        while x < 10.0 {
            sum += 1.0 / (x * x);
            x += 1.0;
        }
        let square = 1.0 / (x * x);
        sum + 1.0 / x + 0.5 * square + square / x * (1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0))
    };
    trigamma(phi) - trigamma(y + phi)
}

/// What a row's distribution needs of η and φ, with t = log(μ/φ).
struct Odds {
    /// log(1 + μ/φ).
    log_total: f64,
    /// μ/(φ + μ).
    share: f64,
    /// φ/(φ + μ).
    rest: f64,
}

impl Odds {
    fn new(eta: f64, phi: f64) -> Self {
        let t = eta - phi.ln();
        Self { log_total: softplus(t), share: sigmoid(t), rest: sigmoid(-t) }
    }
}

impl NegativeBinomial {
    /// ∂ log p(y)/∂ log a.
    fn dispersion_score(phi: f64, odds: &Odds, y: f64) -> f64 {
        -phi * (rising_score(y, phi) - odds.log_total + odds.share) + y * odds.rest
    }

    /// The expected square of that score: of small counts by a sum over all of them, of large ones approximately.
    fn dispersion_information(&self, phi: f64, eta: f64) -> f64 {
        let (mean, odds) = (eta.exp(), Odds::new(eta, phi));
        if mean + 10.0 * (mean + mean * mean / phi).sqrt() + 20.0 <= SUMMED {
            // A large count is less probable than the one before it by the factor 1/(1 + φ/μ): the sum ends where e^-18 of it is left.
            let most = mean + 10.0 * mean.sqrt() + 20.0 + 18.0 / (phi / mean).ln_1p();
            let each = |y: f64| (-self.loss(&phi, eta, y)).exp() * Self::dispersion_score(phi, &odds, y).powi(2);
            return below(most).map(each).sum();
        }
        // φ² (ψ'(φ) − E ψ'(y + φ)) − φ μ/(φ + μ). For small φ, counts of 0 keep the probability (1 + μ/φ)^−φ even where μ is large; the
        // expectation over all others is near the value at their mean. For larger φ, the relative variance of y + φ, which is μ/(φ(φ + μ)),
        // makes E 1/(y + φ) larger by this share.
        let zero = (-phi * odds.log_total).exp();
        let others = 1.0 - zero;
        let spread = if phi < 2.0 { 0.0 } else { odds.share / (phi * (phi + mean)) };
        (phi * phi * others * (rising_curvature(mean / others, phi) - spread) - phi * odds.share).max(0.0)
    }
}

impl Family for NegativeBinomial {
    /// φ.
    type Prepared = f64;

    fn output(&self) -> Output {
        Output::Count
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("log_dispersion", &[])]
    }

    fn check(&self, y: f64) -> Result<(), String> {
        check_count(y)
    }

    fn scale_prior(&self) -> Option<ScalePrior> {
        Some(self.scale_prior)
    }

    fn prepare(&self, psi: &[f64]) -> f64 {
        psi.first().map_or(1.0, |&log| 1.0 / scale_from_log(log))
    }

    fn loss(&self, &phi: &f64, eta: f64, y: f64) -> f64 {
        (phi + y) * Odds::new(eta, phi).log_total - y * eta - log_rising(y, phi) + log_factorial(y)
    }

    fn score(&self, &phi: &f64, eta: f64, y: f64, psi: &mut [f64]) -> f64 {
        let odds = Odds::new(eta, phi);
        psi.iter_mut().for_each(|score| *score += Self::dispersion_score(phi, &odds, y));
        y * odds.rest - phi * odds.share
    }

    /// The dispersion is orthogonal to the mean.
    fn add_information(&self, &phi: &f64, eta: f64, _: f64, weight: f64, information: &mut [f64]) {
        information[0] += weight * phi * Odds::new(eta, phi).share;
        if let [.., own] = information {
            *own += weight * self.dispersion_information(phi, eta);
        }
    }

    /// A Poisson count whose mean has a Gamma distribution.
    fn draw(&self, &phi: &f64, eta: f64, stream: &mut Stream) -> f64 {
        // A mean that is 0 in floating point has no Gamma distribution.
        let mean = Gamma::new(phi, eta.exp() / phi).map_or(0.0, |means| means.sample(stream));
        draw_count(mean, stream)
    }

    fn predict(&self, phi: &f64, eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        mean[0] += weight * eta.exp();
        (-self.loss(phi, eta, y)).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Large counts, whose information is approximate: against the sum over all counts that matter.
    #[test]
    fn information_about_the_dispersion_of_large_counts_is_close() {
        let model = NegativeBinomial { scale_prior: ScalePrior { typical: 1.0 } };
        for (phi, mean) in [(0.1_f64, 1000.0_f64), (1.0, 300.0), (2.0, 300.0), (30.0, 300.0), (100.0, 1000.0)] {
            let (eta, odds) = (mean.ln(), Odds::new(mean.ln(), phi));
            let most = mean + 40.0 * (mean + mean * mean / phi).sqrt();
            let each = |y: f64| (-model.loss(&phi, eta, y)).exp() * NegativeBinomial::dispersion_score(phi, &odds, y).powi(2);
            let exact: f64 = below(most).map(each).sum();
            let found = model.dispersion_information(phi, eta);
            assert!((found / exact - 1.0).abs() < 0.03, "φ = {phi}, μ = {mean}: {found} {exact}");
            // The control: without the counts of 0 and the variance of counts.
            let rough = phi * phi * rising_curvature(mean, phi) - phi * odds.share;
            assert_eq!(
                (rough / exact - 1.0).abs() > 0.1,
                [0.1, 30.0, 100.0].contains(&phi),
                "φ = {phi}, μ = {mean}: {rough} {exact}"
            );
        }
    }
}
