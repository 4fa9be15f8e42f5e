//! Poisson regression: counts whose logarithmic mean is linear in the features.
//!
//! y ~ Poisson(e^η). With an exposure, the offset is its logarithm, and the rest of η is the logarithm of the rate.

use super::regression::block::Block;
use super::regression::family::Family;
use super::regression::model::Regression;
use super::regression::prior::Prior;
use super::regression::settings::{check_count, needs_counts, regression_settings};
use super::{DataSchema, Output};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::KeyError;
use crate::vector;
use ndarray::ArrayView1;
use rand_distr::Distribution;
use statrs::function::factorial::ln_factorial;
use std::sync::LazyLock;

regression_settings! {
    /// The settings of the model `poisson`.
    PoissonSettings = "poisson", prior: Prior::Normal(1.0),
}

impl PoissonSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not counts.
    pub fn build(&self, data: &DataSchema) -> Result<Regression<Poisson>, KeyError> {
        needs_counts(data)?;
        self.shared()?.regression(data, Poisson)
    }
}

/// Counts whose variance is their mean.
#[derive(Clone, Debug)]
pub struct Poisson;

impl Family for Poisson {
    type Prepared = ();

    fn output(&self) -> Output {
        Output::Count
    }

    fn check(&self, y: f64) -> Result<(), String> {
        check_count(y)
    }

    fn prepare(&self, _: &[f64]) {}

    fn loss(&self, (): &(), eta: f64, y: f64) -> f64 {
        eta.exp() - y * eta + log_factorial(y)
    }

    fn score(&self, (): &(), eta: f64, y: f64, _: &mut [f64]) -> f64 {
        y - eta.exp()
    }

    fn add_information(&self, (): &(), eta: f64, _: f64, weight: f64, information: &mut [f64]) {
        information[0] += weight * eta.exp();
    }

    fn predict(&self, (): &(), eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        mean[0] += weight * eta.exp();
        (-self.loss(&(), eta, y)).exp()
    }

    fn draw(&self, (): &(), eta: f64, stream: &mut Stream) -> f64 {
        draw_count(eta.exp(), stream)
    }

    fn scores<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, _: &[()], _: &mut [f64]) {
        vector::exp(block.values);
        block.subtract_from(y);
    }

    fn add_losses<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, _: &[()], out: &mut [f64]) {
        block.for_each(|particle, row, eta| {
            let y = y[row].f64();
            out[particle] += log_factorial(y) - y * eta.f64();
        });
        vector::exp(block.values);
        block.for_each(|particle, _, mean| out[particle] += mean.f64());
    }
}

/// A count with this mean: 0 for a mean of 0, and not a number if there is no distribution with this mean.
pub(super) fn draw_count(mean: f64, stream: &mut Stream) -> f64 {
    if mean == 0.0 { 0.0 } else { rand_distr::Poisson::new(mean).map_or(f64::NAN, |counts| counts.sample(stream)) }
}

/// log y!
pub(super) fn log_factorial(y: f64) -> f64 {
    static OF_SMALL_COUNTS: LazyLock<[f64; 171]> = LazyLock::new(|| std::array::from_fn(|y| ln_factorial(y as u64)));
    // Saturates far above all counts in data.
    let y = y as u64;
    usize::try_from(y).ok().and_then(|y| OF_SMALL_COUNTS.get(y)).copied().unwrap_or_else(|| ln_factorial(y))
}
