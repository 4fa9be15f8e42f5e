//! The configurational temperature of draws: a measure of their spread for any number of parameters.
//!
//! For a density p with score s = ∇log p that vanishes at infinity, −E_p[θ_j s_j] = 1 for every parameter (Stein's identity, in mechanics the
//! virial theorem), also if the density has many modes. The mean of −θ_j s_j over the parameters of a variable is its configurational temperature
//! (Wenzel et al. 2020, "How good is the Bayes posterior in deep neural networks really?"): it is 1 for draws from the posterior, c² for draws from
//! a normal distribution that is wider by the factor c, and some other number for chains that are still on their way.
//!
//! Any constant may be subtracted from θ_j. Far from 0, the mean of all other draws makes the noise much smaller, and is as good as a
//! constant where draws are independent. It does not suit parameters with many modes, between which such a mean lies.

use ndarray::{ArrayView2, Axis};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// The probability that one of the temperatures of a run without bias is reported as wrong.
const FALSE_ALARMS: f64 = 0.01;
/// Temperatures as far from 1 as this factor are tolerated: standard deviations are then right within 5 %.
pub const TOLERATED_TEMPERATURE: f64 = 1.1;
/// Chains whose means say how far draws of one chain depend on each other.
const MIN_CHAINS: usize = 4;

/// The configurational temperature of a variable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Temperature {
    /// The variable.
    pub variable: String,
    /// The number of its parameters.
    pub parameters: usize,
    /// The temperature.
    pub temperature: f64,
    /// Its standard error.
    pub error: f64,
    /// By how much it may be off, at the level at which this holds for all variables together.
    #[serde(skip)]
    margin: f64,
}

impl Temperature {
    /// Whether it is surely too far from 1.
    pub fn is_wrong(&self) -> bool {
        self.temperature.is_nan()
            || self.temperature - self.margin > TOLERATED_TEMPERATURE
            || self.temperature + self.margin < TOLERATED_TEMPERATURE.recip()
    }

    /// Whether it is surely close to 1.
    pub fn is_right(&self) -> bool {
        self.temperature + self.margin < TOLERATED_TEMPERATURE && self.temperature - self.margin > TOLERATED_TEMPERATURE.recip()
    }
}

/// −θ·s over the parameters of each variable, divided by their number, for each draw (draws × variables). `sizes` has the numbers of parameters of
/// the variables in order. With `is_centered`, the mean of all other draws is subtracted from θ.
pub fn by_draw(draws: ArrayView2<f64>, scores: ArrayView2<f64>, sizes: &[usize], is_centered: bool) -> Vec<f64> {
    let count = draws.nrows() as f64;
    let sum = draws.sum_axis(Axis(0));
    let mut found = Vec::with_capacity(draws.nrows() * sizes.len());
    for (draw, score) in draws.rows().into_iter().zip(scores.rows()) {
        let center = |j: usize| if is_centered && count > 1.0 { (sum[j] - draw[j]) / (count - 1.0) } else { 0.0 };
        let mut first = 0;
        for &size in sizes {
            let products = (first..first + size).map(|j| (center(j) - draw[j]) * score[j]);
            found.push(products.sum::<f64>() / size as f64);
            first += size;
        }
    }
    found
}

/// The temperatures of variables with these names and numbers of parameters, from those of single draws of these chains.
pub fn temperatures(variables: &[(String, usize)], by_draw: ArrayView2<f64>, chains: &[usize]) -> Vec<Temperature> {
    let level = 1.0 - FALSE_ALARMS / (2.0 * variables.len().max(1) as f64);
    let of = |((variable, parameters), values): (&(String, usize), Vec<f64>)| {
        let chain_count = chains.iter().max().map_or(0, |last| last + 1);
        let of_chains: Vec<f64> = (0..chain_count)
            .filter_map(|chain| mean(values.iter().zip(chains).filter(|(_, of)| **of == chain).map(|(value, _)| *value)))
            .collect();
        // If draws of one chain depend on each other, chains differ more than independent draws.
        let (error, margin) = match of_chains.len() >= MIN_CHAINS && differ(&values, chains, &of_chains) {
            true => error_and_margin(&of_chains, level),
            false => error_and_margin(&values, level),
        };
        let temperature = mean(values.iter().copied()).unwrap_or(f64::NAN);
        Temperature { variable: variable.clone(), parameters: *parameters, temperature, error, margin }
    };
    variables.iter().zip(by_draw.columns().into_iter().map(|column| column.to_vec())).map(of).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Whether the means of chains differ more than those of independent draws would in all but a hundredth of all cases.
fn differ(values: &[f64], chains: &[usize], means: &[f64]) -> bool {
    let (count, groups) = (values.len() as f64, means.len() as f64);
    let within: f64 = values.iter().zip(chains).map(|(value, &chain)| (value - means.get(chain).unwrap_or(value)).powi(2)).sum();
    let center = means.iter().sum::<f64>() / groups;
    // Chains have about as many draws.
    let between = count / groups * means.iter().map(|mean| (mean - center).powi(2)).sum::<f64>();
    let ratio = (between / (groups - 1.0)) / (within / (count - groups));
    FisherSnedecor::new(groups - 1.0, count - groups).is_ok_and(|law| ratio.is_nan() || law.sf(ratio) < 0.01)
}

/// The standard error of the mean of independent values, and its margin at a level.
fn error_and_margin(values: &[f64], level: f64) -> (f64, f64) {
    let count = values.len() as f64;
    let center = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - center).powi(2)).sum::<f64>();
    let error = (square / (count * (count - 1.0))).sqrt();
    let quantile = StudentsT::new(0.0, 1.0, count - 1.0).map_or(f64::INFINITY, |law| law.inverse_cdf(level));
    (error, quantile * error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use ndarray::Array2;

    /// Draws from N(mean, width² / λ) for precisions λ from 1 to 10,000, in two variables, with the scores of N(mean, 1 / λ).
    fn found(seed: u64, draws: usize, width: f64, mean: f64, is_centered: bool) -> Vec<Temperature> {
        let sizes = [800, 200];
        let dim = sizes.iter().sum::<usize>();
        let precision = |j: usize| 10_f64.powf(4.0 * j as f64 / (dim - 1) as f64);
        let mut normals = vec![0.0; draws * dim];
        Seed(seed).stream(Who::Server, 0, Purpose::Noise).normals(&mut normals);
        let normals = Array2::from_shape_vec((draws, dim), normals).unwrap();
        let (mut theta, mut scores) = (normals.clone(), normals);
        for ((_, j), value) in theta.indexed_iter_mut() {
            *value = mean + width * *value / precision(j).sqrt();
        }
        for ((_, j), value) in scores.indexed_iter_mut() {
            *value *= -width * precision(j).sqrt();
        }
        let names: Vec<(String, usize)> = ["a", "b"].map(str::to_owned).into_iter().zip(sizes).collect();
        let values = Array2::from_shape_vec((draws, 2), by_draw(theta.view(), scores.view(), &sizes, is_centered)).unwrap();
        let chains: Vec<usize> = (0..draws).map(|draw| 4 * draw / draws).collect();
        temperatures(&names, values.view(), &chains)
    }

    #[test]
    fn right_draws_have_temperature_1_and_wider_or_narrower_ones_another() {
        // At a rate of 1 % for a run, more than 9 alarms among 300 runs have a probability of 0.1 %. Those that are tolerated make it smaller.
        let alarms = (0..300).filter(|&seed| found(seed, 20, 1.0, 0.0, seed % 2 == 0).iter().any(Temperature::is_wrong)).count();
        assert!(alarms <= 9, "{alarms}");
        let right = found(1, 20, 1.0, 0.0, false);
        // The standard error is √(2 / (draws · parameters)).
        assert!(
            (right[0].temperature - 1.0).abs() < 0.06 && (right[0].error / (2.0_f64 / 16_000.0).sqrt() - 1.0).abs() < 0.8,
            "{right:?}"
        );
        assert!(right[0].is_right(), "{right:?}");
        for (width, square) in [(1.2, 1.44), (0.8, 0.64)] {
            for found in found(2, 20, width, 0.0, true) {
                assert!((found.temperature - square).abs() < 4.0 * found.error && found.is_wrong(), "{found:?}");
            }
        }
    }

    #[test]
    fn far_from_0_the_mean_of_other_draws_makes_the_noise_smaller() {
        let [plain, centered] = [false, true].map(|is_centered| found(3, 40, 1.0, 5.0, is_centered));
        for (plain, centered) in plain.iter().zip(&centered) {
            assert!(centered.error < 0.1 * plain.error, "{plain:?} {centered:?}");
            assert!((centered.temperature - 1.0).abs() < 4.0 * centered.error, "{centered:?}");
        }
        assert!(centered.iter().all(Temperature::is_right) && !plain.iter().any(Temperature::is_right), "{plain:?}");
    }

    #[test]
    fn chains_that_differ_make_the_error_larger() {
        let values = Array2::from_shape_fn((20, 1), |(draw, _)| [0.5, 0.9, 1.1, 1.5][draw / 5]);
        let chains: Vec<usize> = (0..20).map(|draw| draw / 5).collect();
        let found = temperatures(&[("a".into(), 10)], values.view(), &chains).remove(0);
        let of_means = (0.25 + 0.01 + 0.01 + 0.25_f64).sqrt() / 12.0_f64.sqrt();
        assert!((found.error - of_means).abs() < 1e-12 && !found.is_wrong() && !found.is_right(), "{found:?}");
        let not_finite = temperatures(&[("a".into(), 10)], ArrayView2::from_shape((2, 1), &[f64::NAN, 1.0]).unwrap(), &[0, 0]);
        assert!(not_finite[0].is_wrong());
    }
}
