//! The Gamma hyperprior of logistic regression: density, score and initial draws have the same distribution of the log-precision.

#![allow(clippy::unwrap_used)]

use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::regression::prior::Prior;
use mpibayes::models::{DataSchema, Model, Output};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2};

/// The marginal distribution of v under the prior. log p0 is quadratic in w, so that its values at 0 and at unit vectors give the integral
/// over w exactly. Returns E e^v, the distribution function on a grid, and the largest difference between the score of v, averaged over w
/// given v, and the slope of the log-marginal.
fn marginal(
    density: impl Fn(&Array2<f64>) -> Vec<f64>,
    score: impl Fn(&Array2<f64>) -> Array2<f64>,
) -> (f64, Vec<[f64; 2]>, f64) {
    const WEIGHTS: usize = 3;
    let log_marginal = |v: f64| {
        // A particle at 0, and one at each unit vector.
        let theta =
            Array2::from_shape_fn(
                (1 + WEIGHTS, 1 + WEIGHTS),
                |(n, i)| {
                    if i == WEIGHTS { v } else { f64::from(u8::from(n == i + 1)) }
                },
            );
        let (log, score) = (density(&theta), score(&theta));
        let precisions = log[1..].iter().map(|at| 2.0 * (log[0] - at));
        let integral: f64 = precisions.clone().map(|precision| 0.5 * (2.0 * std::f64::consts::PI / precision).ln()).sum();
        let slopes = precisions.enumerate().map(|(i, precision)| (score[(i + 1, WEIGHTS)] - score[(0, WEIGHTS)]) / precision);
        (log[0] + integral, score[(0, WEIGHTS)] + slopes.sum::<f64>())
    };
    let step = 1e-3;
    let grid: Vec<(f64, (f64, f64))> = (-20_000..5_000).map(|i| f64::from(i) * step).map(|v| (v, log_marginal(v))).collect();
    let top = grid.iter().map(|(_, (log, _))| *log).fold(f64::NEG_INFINITY, f64::max);
    let mass = |log: f64| (log - top).exp();
    let total: f64 = grid.iter().map(|(_, (log, _))| mass(*log)).sum();
    let mean = grid.iter().map(|(v, (log, _))| v.exp() * mass(*log)).sum::<f64>() / total;
    let mut below = 0.0;
    let shares = grid.iter().map(|(v, (log, _))| {
        below += mass(*log) / total;
        // Up to the middle between this point and the next.
        [v + 0.5 * step, below]
    });
    let shares = shares.collect();
    let slopes = grid.windows(3).map(|at| {
        let slope = (at[2].1.0 - at[0].1.0) / (2.0 * step);
        (at[1].1.1 - slope).abs() * mass(at[1].1.0)
    });
    (mean, shares, slopes.fold(0.0, f64::max))
}

/// The Kolmogorov-Smirnov statistic √n D of draws against a distribution function on a grid.
fn kolmogorov(draws: &mut [f64], shares: &[[f64; 2]]) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let off = shares.iter().map(|[v, share]| (draws.partition_point(|draw| draw < v) as f64 / n - share).abs());
    n.sqrt() * off.fold(0.0, f64::max)
}

/// Without data v is the logarithm of a Gamma variable with shape a and rate b, e^v has the mean a/b, and initial draws have the distribution
/// of density and score. The Kolmogorov-Smirnov statistic √n D exceeds 2.5 with probability 2 exp(−2 · 2.5²) = 8e-6.
#[test]
fn density_score_and_draws_agree_on_the_log_precision() {
    let settings = LogisticSettings {
        prior: Prior::SampledPrecision { shape: 1.7, rate: 2.5 },
        intercept: false,
        ..LogisticSettings::default()
    };
    let model = settings.build(&DataSchema::new(3, Output::Classes(2))).unwrap();
    let density = |theta: &Array2<f64>| {
        let mut out = vec![0.0; theta.nrows()];
        model.log_prior(theta.view(), &mut out);
        out
    };
    let score = |theta: &Array2<f64>| {
        let mut score = Array2::zeros(theta.dim());
        model.prior_score(theta.view(), score.view_mut());
        score
    };
    let mut stream = Seed(61).stream(Who::Run, 0, Purpose::Initial);
    let mut theta = Array1::<f64>::zeros(4);
    let mut draws: Vec<f64> = (0..20_000)
        .map(|_| {
            model.draw_initial(&mut stream, theta.view_mut());
            theta[3]
        })
        .collect();
    let (mean, shares, slope) = marginal(density, score);
    // The trapezoidal rule errs by rounding and by the mass outside of the grid, which is e^(−34).
    assert!((mean - 1.7 / 2.5).abs() < 1e-10, "{mean}");
    // A difference quotient at a distance of 1e-3, with third derivatives of about 10.
    assert!(slope < 1e-5, "{slope}");
    let distance = kolmogorov(&mut draws, &shares);
    assert!(distance < 2.5, "{distance}");
    // The control: the density of ξ taken for that of v, without the Jacobian e^v, has a − 1 in place of a.
    let without = |theta: &Array2<f64>| density(theta).iter().zip(theta.column(3)).map(|(log, v)| log - v).collect();
    let (mean, shares, slope) = marginal(without, score);
    let distance = kolmogorov(&mut draws, &shares);
    assert!((mean - 0.7 / 2.5).abs() < 1e-4 && slope > 0.9 && distance > 25.0, "{mean} {slope} {distance}");
}
