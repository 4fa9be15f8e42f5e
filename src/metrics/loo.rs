//! Leave-one-out cross-validation by Pareto-smoothed importance sampling (PSIS-LOO; Vehtari, Gelman & Gabry 2017; Vehtari et al. 2024).
//!
//! A draw has the weight 1/p(y_i | θ) for the posterior without row i. The largest weights are replaced by quantiles of a generalized Pareto
//! distribution that is fitted to them, whose shape k says whether the estimate can be trusted.

use crate::number::log_sum_exp;
use ndarray::{ArrayView1, ArrayView2, Axis};

/// The log predictive density of each row: of training rows given all other training rows, by leave-one-out cross-validation, or
/// of test rows given all training rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowDensities {
    /// log p(y_i | all other training rows) or, for a test row, log p(y_i | all training rows).
    pub pointwise: Vec<f64>,
    /// The shape of the Pareto distribution for each training row; empty for test rows, for which nothing is estimated by
    /// importance sampling.
    pub pareto_k: Vec<f64>,
    /// A larger shape is too large for this many draws.
    pub k_limit: f64,
}

/// The sum over rows of a quantity, with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Total {
    /// The sum.
    pub value: f64,
    /// Its standard error over rows.
    pub standard_error: f64,
}

impl Total {
    /// The total of one value for each row.
    pub fn of(values: &[f64]) -> Self {
        let rows = values.len() as f64;
        let mean = values.iter().sum::<f64>() / rows;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / rows;
        Self { value: mean * rows, standard_error: (rows * variance).sqrt() }
    }
}

impl RowDensities {
    /// Leave-one-out cross-validation of training rows, from their log-likelihoods (draws × rows). `efficiency` is the effective
    /// sample size divided by the number of draws.
    pub fn leave_one_out(log_likelihood: ArrayView2<f64>, efficiency: f64) -> Self {
        let draws = log_likelihood.nrows() as f64;
        let rows = log_likelihood.axis_iter(Axis(1)).map(|row| leave_out(row, efficiency));
        let (pointwise, pareto_k) = rows.unzip();
        Self { pointwise, pareto_k, k_limit: (1.0 - 1.0 / draws.log10()).min(0.7) }
    }

    /// Densities of test rows, which the posterior does not know, from their log-likelihoods (draws × rows): the logarithm of the
    /// density averaged over draws.
    pub fn of_test_rows(log_likelihood: ArrayView2<f64>) -> Self {
        let draws = log_likelihood.nrows() as f64;
        let mean = |row: ArrayView1<f64>| log_sum_exp(row.iter().copied()) - draws.ln();
        Self { pointwise: log_likelihood.axis_iter(Axis(1)).map(mean).collect(), pareto_k: Vec::new(), k_limit: f64::INFINITY }
    }

    /// The sum over rows.
    pub fn total(&self) -> Total {
        Total::of(&self.pointwise)
    }

    /// For how many rows the estimate cannot be trusted.
    pub fn unreliable(&self) -> usize {
        // An undefined shape counts too.
        self.pareto_k.iter().filter(|k| k.is_nan() || **k > self.k_limit).count()
    }
}

/// log p(y_i | all other rows), and the shape k.
fn leave_out(log_likelihood: ArrayView1<f64>, efficiency: f64) -> (f64, f64) {
    let mut log_weights: Vec<f64> = log_likelihood.iter().map(|value| -value).collect();
    let k = smooth(&mut log_weights, efficiency);
    let total = log_sum_exp(log_weights.iter().copied());
    let weighted = log_weights.iter().zip(log_likelihood).map(|(weight, value)| weight + value);
    (log_sum_exp(weighted) - total, k)
}

/// Smooths the largest weights; returns the shape k.
fn smooth(log_weights: &mut [f64], efficiency: f64) -> f64 {
    let draws = log_weights.len() as f64;
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    log_weights.iter_mut().for_each(|weight| *weight -= top);
    let mut order: Vec<usize> = (0..log_weights.len()).collect();
    order.sort_by(|&a, &b| log_weights[a].total_cmp(&log_weights[b]));
    let tail = (0.2 * draws).min(3.0 * (draws / efficiency.max(f64::MIN_POSITIVE)).sqrt()).ceil() as usize;
    if tail < 5 || tail >= log_weights.len() {
        return f64::INFINITY;
    }
    let (below, largest) = order.split_at(order.len() - tail);
    let Some(&last) = below.last() else { return f64::INFINITY };
    let cutoff = log_weights[last].max(f64::MIN_POSITIVE.ln());
    // Weights that are equal to the cutoff do not belong to the tail.
    let largest = &largest[largest.iter().take_while(|&&draw| log_weights[draw] <= cutoff).count()..];
    let tail = largest.len();
    if tail < 5 {
        return f64::INFINITY;
    }
    let excess: Vec<f64> = largest.iter().map(|&draw| log_weights[draw].exp() - cutoff.exp()).collect();
    let (k, sigma) = fit_pareto(&excess);
    if k.is_finite() {
        for (rank, &draw) in (0..).zip(largest) {
            let share = (f64::from(rank) + 0.5) / tail as f64;
            let quantile = if k == 0.0 { -sigma * (-share).ln_1p() } else { sigma * (-k * (-share).ln_1p()).exp_m1() / k };
            // No smoothed weight exceeds the largest one.
            log_weights[draw] = (quantile + cutoff.exp()).ln().min(0.0);
        }
    }
    k
}

/// Shape and scale of a generalized Pareto distribution for these ascending values (Zhang & Stephens 2009), with a weak prior that draws the
/// shape of small samples towards 0.5.
fn fit_pareto(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let points = 30 + n.sqrt().floor() as usize;
    let quartile = values[((n / 4.0 + 0.5).floor() as usize).max(1) - 1];
    let Some(&largest) = values.last() else { return (f64::INFINITY, f64::NAN) };
    if !(quartile > 0.0 && largest.is_finite()) {
        return (f64::INFINITY, f64::NAN);
    }
    let shape = |theta: f64| values.iter().map(|value| (-theta * value).ln_1p()).sum::<f64>() / n;
    let thetas: Vec<f64> =
        (1..=points).map(|j| 1.0 / largest + (1.0 - (points as f64 / (j as f64 - 0.5)).sqrt()) / (3.0 * quartile)).collect();
    let likelihoods: Vec<f64> = thetas
        .iter()
        .map(|&theta| {
            let k = shape(theta);
            n * ((-theta / k).ln() - k - 1.0)
        })
        .collect();
    let weight = |own: f64| 1.0 / likelihoods.iter().map(|other| (other - own).exp()).sum::<f64>();
    let theta: f64 = thetas.iter().zip(&likelihoods).map(|(theta, &own)| theta * weight(own)).sum();
    let k = shape(theta);
    let sigma = -k / theta;
    (k * n / (n + 10.0) + 5.0 / (n + 10.0), sigma)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use ndarray::{Array1, Array2};
    use rand_distr::{Distribution, StandardNormal};

    /// For y_i ~ N(μ, 1) with a flat prior, the density of y_i given the others is normal: N(mean of the others, 1 + 1/(n − 1)).
    #[test]
    fn a_normal_mean_has_the_exact_cross_validation() {
        let mut stream = Seed(8).stream(Who::Run, 0, Purpose::Synthetic);
        let mut normal = || -> f64 { StandardNormal.sample(&mut stream) };
        let (rows, draws) = (30, 4000);
        let y: Array1<f64> = (0..rows).map(|_| normal()).collect();
        let mean = y.sum() / rows as f64;
        let theta: Array1<f64> = (0..draws).map(|_| mean + normal() / (rows as f64).sqrt()).collect();
        let log = |theta: f64, y: f64, variance: f64| {
            -0.5 * ((y - theta).powi(2) / variance + (2.0 * std::f64::consts::PI * variance).ln())
        };
        let log_likelihood = Array2::from_shape_fn((draws, rows), |(draw, row)| log(theta[draw], y[row], 1.0));
        let found = RowDensities::leave_one_out(log_likelihood.view(), 1.0);
        for row in 0..rows {
            let others = (y.sum() - y[row]) / (rows - 1) as f64;
            let exact = log(others, y[row], 1.0 + 1.0 / (rows - 1) as f64);
            assert!((found.pointwise[row] - exact).abs() < 0.02, "{row}: {} {exact}", found.pointwise[row]);
        }
        assert_eq!(found.unreliable(), 0);
        // The control: the density at the posterior that knows the row is too large.
        let known: f64 = (0..rows).map(|row| log(mean, y[row], 1.0 + 1.0 / rows as f64)).sum();
        assert!(known - found.total().value > 0.5, "{known} {:?}", found.total());
    }

    /// Ratios with tails so heavy that their variance does not exist are recognized, and quantiles of known distributions have their shape.
    #[test]
    fn the_shape_of_a_tail_is_found() {
        for (shape, tolerance) in [(-0.2, 0.1), (0.0, 0.1), (0.5, 0.1), (0.9, 0.15)] {
            let quantile = |share: f64| if shape == 0.0 { -(-share).ln_1p() } else { ((1.0 - share).powf(-shape) - 1.0) / shape };
            let values: Vec<f64> = (0..500).map(|i| quantile((f64::from(i) + 0.5) / 500.0)).collect();
            let (k, sigma) = fit_pareto(&values);
            assert!((k - shape).abs() < tolerance && (sigma - 1.0).abs() < 0.15, "{shape}: {k} {sigma}");
        }
        let heavy = Array2::from_shape_fn((1000, 1), |(draw, _)| 2.0 * ((draw as f64 + 0.5) / 1000.0).ln());
        assert_eq!(RowDensities::leave_one_out(heavy.view(), 1.0).unreliable(), 1);
        let constant = Array2::from_elem((1000, 1), -1.0);
        let found = RowDensities::leave_one_out(constant.view(), 1.0);
        assert!((found.pointwise[0] + 1.0).abs() < 1e-12, "{found:?}");
    }
}
