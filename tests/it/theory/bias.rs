//! The measured bias of draws against exact theory: exact, too wide, too narrow and shifted draws of posteriors whose scores are known.
//!
//! A run without bias is reported as biased with probability at most 1 %: of 200 runs, more than 8 with probability below 4e-4.

#![allow(clippy::unwrap_used)]

use mpibayes::metrics::bias::{Bias, DrawnFrom, Moments, Verdict, draws_wanted};
use mpibayes::metrics::convergence::{Estimate, estimates, particle_estimates};
use ndarray::{Array1, Array2, Array3, Axis};
use ndarray_linalg::{Cholesky, Inverse, InverseC, UPLO};

use super::normals;

const D: usize = 6;
/// So many that only the least number of scores is computed.
const MANY_ROWS: usize = 1_000_000;

/// A Gaussian posterior with strong correlations.
struct Gaussian {
    mean: Array1<f64>,
    covariance: Array2<f64>,
    precision: Array2<f64>,
}

impl Gaussian {
    fn new() -> Self {
        let mixing = normals(D, D, 7) + Array2::<f64>::eye(D);
        let covariance = mixing.dot(&mixing.t()) + Array2::<f64>::eye(D) * 0.05;
        let precision = covariance.invc().unwrap();
        Self { mean: Array1::linspace(-3.0, 5.0, D), covariance, precision }
    }

    fn draws(&self, count: usize, seed: u64) -> Array2<f64> {
        normals(count, D, seed).dot(&self.covariance.cholesky(UPLO::Lower).unwrap().t()) + &self.mean
    }

    fn scores(&self, draws: &Array2<f64>) -> Array2<f64> {
        -(draws - &self.mean).dot(&self.precision)
    }

    fn sds(&self) -> Array1<f64> {
        self.covariance.diag().mapv(f64::sqrt)
    }
}

/// The bias of draws, as four chains, by the scores at `scored` of them.
fn bias(draws: &Array2<f64>, scored: usize, scores: impl Fn(&Array2<f64>) -> Array2<f64>) -> Bias {
    let (count, parameters) = draws.dim();
    let chains = Array3::from_shape_vec((4, count / 4, parameters), draws.iter().copied().collect()).unwrap();
    let rows: Vec<usize> = (0..scored).map(|place| place * count / scored).collect();
    let chosen = draws.select(Axis(0), &rows);
    Bias::of(chosen.view(), scores(&chosen).view(), &moments(estimates(chains.view()), count), DrawnFrom::Posterior)
}

fn moments(estimates: Vec<Estimate>, total: usize) -> Vec<Moments> {
    estimates.iter().map(|estimate| Moments::of(estimate, total)).collect()
}

fn measured(posterior: &Gaussian, draws: &Array2<f64>) -> Bias {
    bias(draws, draws_wanted(D, MANY_ROWS), |draws| posterior.scores(draws))
}

/// Draws around the posterior's mean, `factor` times as wide.
fn scaled(posterior: &Gaussian, seed: u64, factor: f64) -> Array2<f64> {
    (posterior.draws(800, seed) - &posterior.mean) * factor + &posterior.mean
}

/// The regression is exact for a Gaussian: it knows the ratio of these draws' own moments to the posterior's.
#[test]
fn ratios_and_shifts_of_a_gaussian_are_exact() {
    let posterior = Gaussian::new();
    let draws = normals(800, D, 1) * 0.3 + 2.0;
    let found = measured(&posterior, &draws);
    let sds = posterior.sds();
    for j in 0..D {
        let (ratio, shift) = (draws.column(j).std(1.0) / sds[j], (draws.column(j).mean().unwrap() - posterior.mean[j]) / sds[j]);
        let bias = found.parameters[j];
        assert!((bias.sd_ratio / ratio - 1.0).abs() < 1e-8, "{j}: {bias:?}, not {ratio}");
        assert!((bias.shift - shift).abs() < 1e-8 * shift.abs().max(1.0), "{j}: {bias:?}, not {shift}");
    }
    assert!(found.nonlinearity < 1e-12);
}

#[test]
fn exact_draws_raise_no_alarm_and_wrong_ones_do() {
    let posterior = Gaussian::new();
    let count = |verdict: Verdict, draws: &dyn Fn(u64) -> Array2<f64>, runs: u64| {
        (0..runs).filter(|seed| measured(&posterior, &draws(1000 + seed)).verdict == verdict).count()
    };
    let exact = |seed| posterior.draws(800, seed);
    let alarms = (0..200)
        .map(|seed| measured(&posterior, &exact(1000 + seed)).verdict)
        .filter(|verdict| matches!(verdict, Verdict::Wide | Verdict::Narrow | Verdict::Shifted | Verdict::Unknown));
    let alarms = alarms.count();
    assert!(alarms <= 8, "{alarms} false alarms");
    assert!(count(Verdict::Right, &exact, 50) >= 45);
    // The negative controls: each is found in every run.
    assert_eq!(count(Verdict::Wide, &|seed| scaled(&posterior, seed, 1.25), 20), 20);
    assert_eq!(count(Verdict::Narrow, &|seed| scaled(&posterior, seed, 0.8), 20), 20);
    let shifted = |seed| {
        let mut draws = exact(seed);
        let by = 0.5 * posterior.sds()[2];
        draws.column_mut(2).mapv_inplace(|value| value + by);
        draws
    };
    assert_eq!(count(Verdict::Shifted, &shifted, 20), 20);
    // Less than 5 % too wide is tolerated.
    assert_eq!(count(Verdict::Wide, &|seed| scaled(&posterior, seed, 1.02), 20), 0);
}

/// The best normal approximation of mixed log-gamma variables has smaller variances than they have.
///
/// The logarithm of a Gamma(k) variable has the variance ψ'(k), and its normal approximation log k − 1/(2k) ± k^(-1/2).
#[test]
fn the_best_normal_approximation_is_too_narrow() {
    let shapes = [2.0_f64, 6.0];
    let trigammas = [0.644_934_066_848_226, 0.181_322_955_737_116];
    let mixing = ndarray::array![[1.0, 0.4], [-0.3, 0.8]];
    let unmixing = mixing.inv().unwrap();
    let mut logs = normals(4000, 2, 11);
    for (mut column, shape) in logs.columns_mut().into_iter().zip(shapes) {
        column.mapv_inplace(|z| shape.ln() - 0.5 / shape + z / shape.sqrt());
    }
    let draws = logs.dot(&mixing.t());
    let shapes = Array1::from_iter(shapes);
    let scores = (&shapes - &logs.mapv(f64::exp)).dot(&unmixing);
    let found = |from| Bias::of(draws.view(), scores.view(), &moments(particle_estimates(draws.view()), 4000), from);
    let bias = found(DrawnFrom::FittedNormal);
    for (j, bias) in bias.parameters.iter().enumerate() {
        let variance: f64 = (0..2).map(|l| mixing[[j, l]].powi(2) * trigammas[l]).sum();
        let expected = draws.column(j).std(1.0) / variance.sqrt();
        assert!((bias.sd_ratio / expected).ln().abs() < 3.5 * bias.sd_ratio_error + 0.02, "{j}: {bias:?}, not {expected}");
    }
    assert!(!matches!(bias.verdict, Verdict::Right | Verdict::Wide), "{bias:?}");
    // The control: for draws that were taken for those of the posterior, the regression finds the approximation itself.
    assert!(found(DrawnFrom::Posterior).parameters.iter().all(|bias| (bias.sd_ratio - 1.0).abs() < 0.1));
    // Particles may be as narrow as that.
    assert_eq!(found(DrawnFrom::Particles).verdict, Verdict::Unknown);
}

/// Mean-field variational inference gives every coordinate its conditional standard deviation, which is too small.
#[test]
fn mean_field_draws_are_too_narrow() {
    let posterior = Gaussian::new();
    let sds = posterior.precision.diag().mapv(|precision| precision.powf(-0.5));
    let draws = normals(800, D, 3) * &sds + &posterior.mean;
    let found = measured(&posterior, &draws);
    assert_eq!(found.verdict, Verdict::Narrow, "{found:?}");
    let worst = found.parameters[found.worst.unwrap()].sd_ratio;
    let expected = sds.iter().zip(&posterior.sds()).map(|(q, p)| q / p).fold(f64::INFINITY, f64::min);
    assert!((worst / expected - 1.0).abs() < 0.1, "{worst}, not {expected}");
}

/// Neal's funnel: x ~ N(0, e^v), v ~ N(0, 3²).
#[test]
fn a_funnel_has_no_right_verdict() {
    for seed in 0..20 {
        let mut draws = normals(800, 2, 50 + seed);
        for mut draw in draws.rows_mut() {
            draw[0] *= 3.0;
            draw[1] *= (0.5 * draw[0]).exp();
        }
        let scores = |draws: &Array2<f64>| {
            let mut scores = Array2::zeros(draws.dim());
            for (draw, mut score) in draws.rows().into_iter().zip(scores.rows_mut()) {
                let precision = (-draw[0]).exp();
                score[0] = -draw[0] / 9.0 - 0.5 + 0.5 * draw[1] * draw[1] * precision;
                score[1] = -draw[1] * precision;
            }
            scores
        };
        let found = bias(&draws, draws_wanted(2, MANY_ROWS), scores);
        assert_eq!(found.verdict, Verdict::Unknown, "{found:?}");
    }
}

/// Draws from one of two separate modes: the regression sees that mode only, as its documentation says.
#[test]
fn missing_modes_cannot_be_seen() {
    let draws = normals(800, 1, 9) + 10.0;
    let score = |x: f64| {
        let [left, right] = [-10.0, 10.0].map(|mode| (-0.5 * (x - mode) * (x - mode)).exp());
        -(left * (x + 10.0) + right * (x - 10.0)) / (left + right)
    };
    let found = bias(&draws, 40, |draws| draws.mapv(score));
    assert!(matches!(found.verdict, Verdict::Right | Verdict::Undecided), "{found:?}");
}

#[test]
fn too_few_draws_and_constant_draws_have_no_verdict() {
    let posterior = Gaussian::new();
    let draws = posterior.draws(800, 2);
    assert_eq!(bias(&draws, D + 1, |draws| posterior.scores(draws)).verdict, Verdict::Unknown);
    let constant = Array2::from_elem((800, D), 0.5);
    assert_eq!(measured(&posterior, &constant).verdict, Verdict::Unknown);
    let not_finite = Array2::from_elem((800, D), f64::NAN);
    assert_eq!(measured(&posterior, &not_finite).verdict, Verdict::Unknown);
}

/// Independent particles from the posterior, and chains whose draws are strongly correlated, raise no alarm either.
#[test]
fn few_independent_particles_and_slow_chains_raise_no_alarm() {
    let posterior = Gaussian::new();
    let is_alarm = |bias: Bias| matches!(bias.verdict, Verdict::Wide | Verdict::Narrow | Verdict::Shifted);
    let particles = |seed| {
        let draws = posterior.draws(100, seed);
        Bias::of(
            draws.view(),
            posterior.scores(&draws).view(),
            &moments(particle_estimates(draws.view()), 100),
            DrawnFrom::Posterior,
        )
    };
    // At most 1 % each: of 100, more than 6 with probability below 1e-4.
    assert!((0..100).filter(|&seed| is_alarm(particles(2000 + seed))).count() <= 6);
    // The control: particles that are too narrow by a third.
    let narrow = |seed| {
        let draws = (posterior.draws(100, seed) - &posterior.mean) * 0.65 + &posterior.mean;
        Bias::of(
            draws.view(),
            posterior.scores(&draws).view(),
            &moments(particle_estimates(draws.view()), 100),
            DrawnFrom::Posterior,
        )
    };
    assert!((0..20).all(|seed| is_alarm(narrow(3000 + seed))));
    let slow = |seed| {
        let noise = posterior.draws(800, seed);
        let mut draws = noise.clone();
        for draw in (0..800).filter(|draw| draw % 200 > 0) {
            let last = draws.row(draw - 1).to_owned() - &posterior.mean;
            let next = &last * 0.95 + &(&noise.row(draw) - &posterior.mean) * (1.0_f64 - 0.95 * 0.95).sqrt() + &posterior.mean;
            draws.row_mut(draw).assign(&next);
        }
        measured(&posterior, &draws)
    };
    assert!((0..100).filter(|&seed| is_alarm(slow(4000 + seed))).count() <= 6);
}
