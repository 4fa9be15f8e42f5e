//! The configurational temperature of draws: a measure of their spread for any number of parameters.
//!
//! For a density p that vanishes at infinity, with score s = ∇log p, −E_p[θ_j s_j] = 1 for every parameter (Stein's identity, in mechanics the
//! virial theorem), also if the density has many modes. The mean of −θ_j s_j over the parameters of a variable is its configurational temperature
//! (Wenzel et al. 2020, "How good is the Bayes posterior in deep neural networks really?"): it is 1 for draws from the posterior, c² for draws from
//! a normal distribution that is wider by the factor c, and some other number for chains that are still on their way.
//!
//! Any constant may be subtracted from θ_j. If the posterior lies far from 0, a mean of other draws makes the noise much smaller, and is as good as
//! a constant if it is independent of the draw. We take the mean over all other chains; of one chain, whose neighbors depend on each other, that
//! over its other half. It does not suit parameters with many modes, between which such a mean lies.
//!
//! Variables with few parameters are not judged: −θ s is then far from a normal distribution, and its mean over a few draws too.

use ndarray::{Array1, ArrayView2, Axis};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The highest probability that one of the temperatures of a run without bias is reported as wrong.
const FALSE_ALARMS: f64 = 0.01;
/// Temperatures between 1 over this and this are tolerated: standard deviations are then right within 5 %.
pub const TOLERATED_TEMPERATURE: f64 = 1.1;
/// Variables with fewer parameters are not judged.
const MIN_PARAMETERS: usize = 30;
/// Larger estimates of the correlation between neighbors in a chain count as this one.
const MAX_CORRELATION: f64 = 0.9;

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
    /// Half the width of a confidence interval; infinite if it is not judged. The intervals of all judged variables hold together with
    /// probability 1 − [`FALSE_ALARMS`].
    #[serde(skip)]
    margin: f64,
}

impl Temperature {
    /// Whether it is surely too far from 1.
    pub fn is_wrong(&self) -> bool {
        self.is_judged()
            && (self.temperature.is_nan()
                || self.temperature - self.margin > TOLERATED_TEMPERATURE
                || self.temperature + self.margin < TOLERATED_TEMPERATURE.recip())
    }

    /// Whether it has enough parameters.
    pub fn is_judged(&self) -> bool {
        has_enough(self.parameters)
    }

    /// Whether it is surely close to 1.
    pub fn is_right(&self) -> bool {
        self.temperature + self.margin < TOLERATED_TEMPERATURE && self.temperature - self.margin > TOLERATED_TEMPERATURE.recip()
    }
}

/// −θ·s over the parameters of each variable, divided by their number, for each draw (draws × variables). `sizes` has the numbers of parameters of
/// the variables in order. With `is_centered`, each draw is taken relative to the mean of the other chains, or of the other half if there is
/// one chain.
pub fn temperatures_by_draw(
    draws: ArrayView2<f64>,
    scores: ArrayView2<f64>,
    chains: &[usize],
    sizes: &[usize],
    is_centered: bool,
) -> Vec<f64> {
    let mut found = Vec::with_capacity(draws.nrows() * sizes.len());
    let has_other_chains = chains.iter().any(|chain| *chain != chains[0]);
    let half = |index: usize| 2 * index / draws.nrows();
    let groups: Vec<usize> = if has_other_chains { chains.to_vec() } else { (0..draws.nrows()).map(half).collect() };
    let mean_of_others = |group: usize| {
        let others: Vec<usize> = (0..draws.nrows()).filter(|&other| groups[other] != group).collect();
        draws.select(Axis(0), &others).mean_axis(Axis(0))
    };
    let mut center = Array1::zeros(draws.ncols());
    for (index, (draw, score)) in draws.rows().into_iter().zip(scores.rows()).enumerate() {
        if is_centered && (index == 0 || groups[index] != groups[index - 1]) {
            center = mean_of_others(groups[index]).unwrap_or(center);
        }
        let mut first = 0;
        for &size in sizes {
            let products = (first..first + size).map(|j| (center[j] - draw[j]) * score[j]);
            found.push(products.sum::<f64>() / size as f64);
            first += size;
        }
    }
    found
}

/// Whether the temperature of a variable with this many parameters is judged.
fn has_enough(parameters: usize) -> bool {
    parameters >= MIN_PARAMETERS
}

/// The temperatures of variables with these names and numbers of parameters, from those of single draws. The draws of a chain follow each other.
pub fn temperatures(variables: &[(String, usize)], by_draw: ArrayView2<f64>, chains: &[usize]) -> Vec<Temperature> {
    let judged = variables.iter().filter(|(_, parameters)| has_enough(*parameters)).count();
    let level = 1.0 - FALSE_ALARMS / (2.0 * judged.max(1) as f64);
    let of = |((variable, parameters), values): (&(String, usize), Vec<f64>)| {
        let (error, margin) = error_and_margin(&values, chains, level);
        let margin = if has_enough(*parameters) { margin } else { f64::INFINITY };
        let temperature = values.iter().sum::<f64>() / values.len() as f64;
        Temperature { variable: variable.clone(), parameters: *parameters, temperature, error, margin }
    };
    variables.iter().zip(by_draw.columns().into_iter().map(|column| column.to_vec())).map(of).collect()
}

/// The standard error of the mean of values, and a margin around the mean: the truth lies beyond it with probability 1 − `level` on each side.
/// Neighbors in a chain may depend on each other: the number of independent values is estimated from their correlation.
fn error_and_margin(values: &[f64], chains: &[usize], level: f64) -> (f64, f64) {
    let count = values.len() as f64;
    let center = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - center).powi(2)).sum::<f64>();
    let neighbors =
        || values.windows(2).zip(chains.windows(2)).filter(|(_, chains)| chains[0] == chains[1]).map(|(pair, _)| pair);
    let (products, pairs) =
        neighbors().fold((0.0, 0.0), |(sum, pairs), pair| (sum + (pair[0] - center) * (pair[1] - center), pairs + 1.0));
    let correlation =
        if pairs > 0.0 && squares > 0.0 { (products / pairs / (squares / count)).clamp(0.0, MAX_CORRELATION) } else { 0.0 };
    let independent = count * (1.0 - correlation) / (1.0 + correlation);
    let error = (squares / (count - 1.0) / independent).sqrt();
    let quantile = StudentsT::new(0.0, 1.0, (independent - 1.0).max(1.0)).map_or(f64::INFINITY, |law| law.inverse_cdf(level));
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
        let chains: Vec<usize> = (0..draws).map(|draw| 4 * draw / draws).collect();
        let values = temperatures_by_draw(theta.view(), scores.view(), &chains, &sizes, is_centered);
        let values = Array2::from_shape_vec((draws, 2), values).unwrap();
        temperatures(&names, values.view(), &chains)
    }

    #[test]
    fn right_draws_have_temperature_1_and_wider_or_narrower_ones_another() {
        // With the tolerance, no run may be wrong.
        let runs: Vec<_> = (0..300).map(|seed| found(seed, 20, 1.0, 0.0, seed % 2 == 0)).collect();
        assert_eq!(runs.iter().filter(|run| run.iter().any(Temperature::is_wrong)).count(), 0);
        // Without it, 1 % of runs are off, and more than 9 of 300 with a probability of .1 %.
        let is_off = |one: &Temperature| (one.temperature - 1.0).abs() > one.margin;
        let off = runs.iter().filter(|run| run.iter().any(is_off)).count();
        assert!((1..=9).contains(&off), "{off}");
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
    fn neighbors_that_depend_on_each_other_make_the_error_larger() {
        // An autoregression with correlation .6, in four chains of ten: without a correction, a sixth of all runs would be off.
        let mut off = 0;
        for seed in 0..300 {
            let mut normals = vec![0.0; 40];
            Seed(seed).stream(Who::Server, 1, Purpose::Noise).normals(&mut normals);
            let chains: Vec<usize> = (0..40).map(|draw| draw / 10).collect();
            for draw in 0..40 {
                if draw % 10 > 0 {
                    normals[draw] = 0.6 * normals[draw - 1] + 0.8 * normals[draw];
                }
            }
            let values = Array2::from_shape_vec((40, 1), normals.iter().map(|value| 1.0 + value).collect()).unwrap();
            let found = temperatures(&[("a".into(), 100)], values.view(), &chains).remove(0);
            off += usize::from((found.temperature - 1.0).abs() > found.margin);
        }
        assert!(off <= 15, "{off}");
    }

    #[test]
    fn one_chain_whose_draws_depend_on_each_other_has_temperature_1() {
        // Autoregressions with correlation .6 around 5: relative to the mean of all other draws, the temperature would be .93.
        let (draws, dim) = (40, 1000);
        let mut normals = vec![0.0; draws * dim];
        Seed(1).stream(Who::Server, 2, Purpose::Noise).normals(&mut normals);
        for value in dim..draws * dim {
            normals[value] = 0.6 * normals[value - dim] + 0.8 * normals[value];
        }
        let normals = Array2::from_shape_vec((draws, dim), normals).unwrap();
        let (theta, scores) = (normals.mapv(|value| 5.0 + value), normals.mapv(|value| -value));
        let values = temperatures_by_draw(theta.view(), scores.view(), &vec![0; draws], &[dim], true);
        let mean = values.iter().sum::<f64>() / draws as f64;
        // The standard error is some .01.
        assert!((mean - 1.0).abs() < 0.04, "{mean}");
    }

    #[test]
    fn small_variables_are_not_judged_and_scores_that_are_not_finite_are_wrong() {
        let values = Array2::from_elem((20, 2), 4.0);
        let found = temperatures(&[("a".into(), 1), ("b".into(), 100)], values.view(), &[0; 20]);
        assert!(!found[0].is_wrong() && !found[0].is_right() && found[1].is_wrong(), "{found:?}");
        let not_finite = temperatures(&[("a".into(), 100)], ArrayView2::from_shape((2, 1), &[f64::NAN, 1.0]).unwrap(), &[0, 0]);
        assert!(not_finite[0].is_wrong());
    }
}
