//! Recalibrated draws against exact theory: wrong draws of Gaussian and nearly Gaussian posteriors get the right moments, and draws of others
//! are left as they are.

#![allow(clippy::unwrap_used)]

use super::normals;
use mpibayes::metrics::recalibration::{Recalibration, Refusal, recalibrate};
use ndarray::{Array1, Array2, Axis, Zip};
use ndarray_linalg::{Eigh, InverseC, UPLO};
use std::convert::Infallible;

const D: usize = 6;
const DRAWS: usize = 2000;

/// Recalibrates draws by a function for the score of each.
fn recalibrated(draws: &Array2<f64>, score: impl Fn(&[f64]) -> Vec<f64>) -> Result<Recalibration, Refusal> {
    let scores = |draws: &Array2<f64>| {
        let scores = draws.rows().into_iter().flat_map(|draw| score(&draw.to_vec())).collect();
        Ok::<_, Infallible>(Array2::from_shape_vec(draws.dim(), scores).unwrap())
    };
    recalibrate(draws.view(), scores).unwrap()
}

fn covariance(draws: &Array2<f64>) -> Array2<f64> {
    let centered = draws - &draws.mean_axis(Axis(0)).unwrap();
    centered.t().dot(&centered) / (draws.nrows() as f64 - 1.0)
}

/// A Gaussian with strong correlations: its mean, its covariance, its precision.
fn gaussian() -> (Array1<f64>, Array2<f64>, Array2<f64>) {
    let mixing = normals(D, D, 7) + Array2::<f64>::eye(D);
    let covariance = mixing.dot(&mixing.t()) + Array2::<f64>::eye(D) * 0.05;
    let precision = covariance.invc().unwrap();
    (Array1::linspace(-3.0, 5.0, D), covariance, precision)
}

#[test]
fn draws_of_a_gaussian_get_its_mean_and_covariance() {
    let (mean, wanted, precision) = gaussian();
    // Uncorrelated, too narrow and far off.
    let draws = normals(DRAWS, D, 1) * 0.3 + 2.0;
    let score = |draw: &[f64]| (-precision.dot(&(Array1::from(draw.to_vec()) - &mean))).to_vec();
    let found = recalibrated(&draws, score).unwrap();
    let moved = found.map.apply(draws.view());
    assert_eq!(found.rounds, 1, "the regression is exact");
    Zip::from(&moved.mean_axis(Axis(0)).unwrap()).and(&mean).for_each(|moved, mean| assert!((moved - mean).abs() < 1e-8));
    Zip::from(&covariance(&moved))
        .and(&wanted)
        .for_each(|moved, wanted| assert!((moved - wanted).abs() < 1e-8, "{moved} {wanted}"));
    // The map moves draws least: in units of their standard deviations it is symmetric and positive definite.
    let scale = covariance(&draws).diag().mapv(f64::sqrt);
    let matrix = &found.map.matrix * &scale / scale.view().insert_axis(Axis(1));
    Zip::from(&matrix).and(&matrix.t()).for_each(|one, other| assert!((one - other).abs() < 1e-8));
    assert!(matrix.eigh(UPLO::Lower).unwrap().0.iter().all(|value| *value > 0.0));
}

/// Draws of the logarithm of a Gamma variable with this shape and mean 1, whose score is k − k eˣ, in each of two coordinates.
fn log_gamma(shape: usize, seed: u64) -> Array2<f64> {
    let squares = normals(DRAWS, 4 * shape, seed).mapv(|x| x * x);
    let of = |half: usize| {
        let chosen = squares.slice(ndarray::s![.., half * 2 * shape..(half + 1) * 2 * shape]);
        chosen.sum_axis(Axis(1)).mapv(|sum| (sum / (2 * shape) as f64).ln())
    };
    ndarray::stack(Axis(1), &[of(0).view(), of(1).view()]).unwrap()
}

fn log_gamma_score(shape: usize) -> impl Fn(&[f64]) -> Vec<f64> {
    let shape = shape as f64;
    move |draw| draw.iter().map(|x| shape - shape * x.exp()).collect()
}

/// The variance of log x is ψ'(k) ≈ 1/k + 1/(2k²), its mean ψ(k) − ln k ≈ −1/(2k). The regression has an error where scores are not linear,
/// here of at most 5 % of the standard deviation.
#[test]
fn draws_of_a_nearly_gaussian_posterior_become_right() {
    let shape: usize = 50;
    let (mean, sd) = (-1.0 / (2.0 * shape as f64), (1.0 / shape as f64 + 0.5 / (shape * shape) as f64).sqrt());
    let exact = log_gamma(shape, 3);
    for (factor, shift) in [(1.6, 0.0), (0.6, 1.5 * sd), (2.5, -sd)] {
        let draws = (&exact - mean) * factor + (mean + shift);
        let found = recalibrated(&draws, log_gamma_score(shape)).unwrap();
        let moved = found.map.apply(draws.view());
        for draws in moved.columns() {
            let (off, ratio) = ((draws.sum() / DRAWS as f64 - mean) / sd, draws.std(1.0) / sd);
            assert!(off.abs() < 0.05 && (ratio - 1.0).abs() < 0.05, "{factor}: {off} {ratio}");
        }
        // The control: the draws as they were.
        let before = draws.column(0).std(1.0) / sd;
        assert!((before - 1.0).abs() > 0.3, "{before}");
    }
}

/// The logarithms of two Gamma variables, mixed: maps follow each other, and their product is what the draws were moved by.
#[test]
fn maps_that_follow_each_other_are_put_together() {
    let mixing = ndarray::array![[1.0, 0.9], [-0.4, 2.0]];
    let unmixing = ndarray::array![[2.0, -0.9], [0.4, 1.0]] / 2.36;
    let exact = log_gamma(30, 12).dot(&mixing.t());
    let score = |draw: &[f64]| {
        let own = log_gamma_score(30)(&unmixing.dot(&Array1::from(draw.to_vec())).to_vec());
        unmixing.t().dot(&Array1::from(own)).to_vec()
    };
    let draws = &exact * &ndarray::array![2.5, 0.6] + &ndarray::array![0.5, -0.2];
    let found = recalibrated(&draws, score).unwrap();
    assert!(found.rounds > 1, "{}", found.rounds);
    let moved = found.map.apply(draws.view());
    // The draws at which the result was checked lie halfway between those that it was made from.
    let places: Vec<usize> = (0..200).map(|place| (2 * place + 1) * DRAWS / 400).collect();
    Zip::from(&moved.select(Axis(0), &places))
        .and(&found.checked.draws)
        .for_each(|one, other| assert!((one - other).abs() < 1e-9));
    for (moved, exact) in moved.columns().into_iter().zip(exact.columns()) {
        let sd = exact.std(1.0);
        let (off, ratio) = ((moved.mean().unwrap() - exact.mean().unwrap()) / sd, moved.std(1.0) / sd);
        // Of 2000 exact draws, means and sds are off by .022 and .016 with probability 1/3.
        assert!(off.abs() < 0.1 && (ratio - 1.0).abs() < 0.1, "{off} {ratio}");
    }
}

/// Draws with the shape of a Gaussian in a direction in which the posterior is Student's t with 3 degrees of freedom, among nine Gaussian ones:
/// the regression would make them too narrow by a quarter, and the share of all scores hardly shows it.
#[test]
fn one_parameter_that_is_not_gaussian_is_enough_to_leave_draws_as_they_are() {
    let score = |draw: &[f64]| {
        let heavy = -4.0 * draw[0] / (3.0 + draw[0] * draw[0]);
        std::iter::once(heavy).chain(draw[1..].iter().map(|x| -x)).collect::<Vec<_>>()
    };
    let mut refused = 0;
    for seed in 0..10 {
        let mut draws = normals(DRAWS, 10, 100 + seed);
        draws.column_mut(0).mapv_inplace(|x| 1.2 * x);
        match recalibrated(&draws, score) {
            Err(Refusal::NonlinearParameter(share)) => {
                assert!(share > 0.1, "{share}");
                refused += 1;
            }
            other => assert!(matches!(other, Err(Refusal::NotConverged)), "{other:?}"),
        }
    }
    assert!(refused >= 8, "{refused}");
    // The control: ten Gaussian ones.
    assert!(recalibrated(&(normals(DRAWS, 10, 100) * 1.3), |draw| draw.iter().map(|x| -x).collect()).is_ok());
}

/// Moved by the regression alone, exact draws of these posteriors would be wrong by up to half a standard deviation and more.
#[test]
fn exact_draws_of_posteriors_that_are_not_gaussian_stay_as_they_are() {
    let skewed = log_gamma(1, 4);
    assert!(matches!(recalibrated(&skewed, log_gamma_score(1)), Err(Refusal::Nonlinear(share)) if share > 0.08), "log Gamma");

    // Student's t with 5 degrees of freedom: a normal number divided by the root of a χ²/5.
    let (normal, squares) = (normals(DRAWS, 1, 5), normals(DRAWS, 5, 6).mapv(|x| x * x).sum_axis(Axis(1)));
    let heavy = &normal / &squares.mapv(|sum| (sum / 5.0).sqrt()).insert_axis(Axis(1));
    let score = |draw: &[f64]| vec![-6.0 * draw[0] / (5.0 + draw[0] * draw[0])];
    assert!(matches!(recalibrated(&heavy, score), Err(Refusal::Nonlinear(share)) if share > 0.1), "Student's t");

    // A banana: x ~ N(0, 1), y ~ N(x², 0.5²).
    let mut curved = normals(DRAWS, 2, 8);
    curved.rows_mut().into_iter().for_each(|mut draw| draw[1] = draw[0] * draw[0] + 0.5 * draw[1]);
    let score = |draw: &[f64]| {
        let off = (draw[1] - draw[0] * draw[0]) / 0.25;
        vec![-draw[0] + 2.0 * draw[0] * off, -off]
    };
    assert!(matches!(recalibrated(&curved, score), Err(Refusal::Nonlinear(share)) if share > 0.3), "banana");

    // A hierarchy: v ~ N(0, 1), x ~ N(0, e^v) for five x.
    let mut hierarchy = normals(DRAWS, D, 9);
    for mut draw in hierarchy.rows_mut() {
        let scale = (0.5 * draw[0]).exp();
        draw.slice_mut(ndarray::s![1..]).mapv_inplace(|x| scale * x);
    }
    let score = |draw: &[f64]| {
        let precision = (-draw[0]).exp();
        let squares: f64 = draw[1..].iter().map(|x| x * x).sum();
        let first = -draw[0] - 2.5 + 0.5 * precision * squares;
        std::iter::once(first).chain(draw[1..].iter().map(|x| -precision * x)).collect()
    };
    assert!(matches!(recalibrated(&hierarchy, score), Err(Refusal::Nonlinear(share)) if share > 0.3), "hierarchy");

    // Two modes, three standard deviations from the middle, with weights .3 and .7.
    let mixture =
        normals(DRAWS, 1, 10) + Array2::from_shape_fn((DRAWS, 1), |(draw, _)| if draw < 3 * DRAWS / 10 { -3.0 } else { 3.0 });
    let score = |draw: &[f64]| {
        let [left, right] = [(0.3, -3.0), (0.7, 3.0)].map(|(weight, mode)| weight * (-0.5 * (draw[0] - mode).powi(2)).exp());
        vec![-(left * (draw[0] + 3.0) + right * (draw[0] - 3.0)) / (left + right)]
    };
    assert!(matches!(recalibrated(&mixture, score), Err(Refusal::Nonlinear(share)) if share > 0.3), "mixture");
}

#[test]
fn few_and_constant_draws_are_left_as_they_are() {
    let (mean, _, precision) = gaussian();
    let score = |draw: &[f64]| (-precision.dot(&(Array1::from(draw.to_vec()) - &mean))).to_vec();
    let few = recalibrated(&normals(33, D, 1), score).unwrap_err();
    assert_eq!(few, Refusal::TooFewDraws { draws: 33, needed: 34, parameters: D });
    // Draws at which the result is checked are others than those that it was made from.
    let enough = normals(34, D, 1);
    if let Ok(found) = recalibrated(&enough, score) {
        let moved = found.map.apply(enough.view());
        let odd = moved.select(Axis(0), &(0..17).map(|place| 2 * place + 1).collect::<Vec<_>>());
        Zip::from(&odd).and(&found.checked.draws).for_each(|one, other| assert!((one - other).abs() < 1e-9));
    }
    let mut flat = normals(DRAWS, D, 1);
    flat.column_mut(2).fill(0.5);
    assert_eq!(recalibrated(&flat, score).unwrap_err(), Refusal::NoGaussian);
    // The control.
    assert!(recalibrated(&normals(DRAWS, D, 1), score).is_ok());
}
