//! Tests of the Gaussian mean model against its closed-form posterior.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::models::tests as check;
use crate::models::tests::{normals, stream};
use ndarray::{Array2, Axis, array};

fn model(features: usize, prior_precision: f64) -> GaussianMean {
    let variance = PerFeature::Each((0..features).map(|j| 0.5 + j as f64 / 7.0).collect());
    let settings = GaussianMeanSettings { variance, prior_mean: PerFeature::Same(0.3), prior_precision };
    settings.build(features).unwrap()
}

#[test]
fn gradients_agree_with_central_differences() {
    for (case, (features, rows, n)) in
        [(1, 0, 3), (3, 1, 1), (2, 300, 1), (54, 131, 2), (100, 100, 1), (5, 1100, 40)].into_iter().enumerate()
    {
        for precision in [0.0, 1.7] {
            let model = model(features, precision);
            let x = normals(&mut stream(case as u64), rows, features) + 1.0;
            let y = Array1::zeros(rows);
            let batch = Batch { x: x.view(), y: y.view() };
            let theta = check::particles(&model, n, 3);
            for weight in [1.0, 17.5] {
                let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                assert!(prior < 1e-7 && loss < 1e-7, "{features} {rows} {n}: {prior} {loss}");
            }
            check::assert_particles_are_independent(&model, &theta, batch);
            check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
        }
    }
}

#[test]
fn targets_are_ignored() {
    let model = model(2, 0.0);
    let x = normals(&mut stream(1), 50, 2);
    let theta = array![[0.2, -0.4]];
    let of = |y: Array1<f64>| {
        let batch = Batch { x: x.view(), y: y.view() };
        let (mut score, mut loss) = (Array2::zeros((1, 2)), [0.0]);
        model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
        model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
        (score, loss, check::predict(&model, &theta, batch, 0))
    };
    assert_eq!(of(Array1::zeros(50)), of(Array1::from_elem(50, 7.0)));
}

/// The rows of a minibatch give the same bits in place and copied, on both sides of the block size.
#[test]
fn minibatches_in_place_equal_copied_batches() {
    for (n, rows, features) in [(1, 3, 2), (1, 100, 54), (5, 300, 3)] {
        let model = model(features, 0.0);
        let x = normals(&mut stream(31), 400, features);
        let theta = normals(&mut stream(33), n, features);
        let selected: Vec<usize> = (0..rows).map(|i| i * 7 % 400).collect();
        let (mut in_place, mut copied) = (Array2::zeros(theta.dim()), Array2::zeros(theta.dim()));
        let (mut scratch, y) = (Scratch::new(), Array1::zeros(400));
        let all = Batch { x: x.view(), y: y.view() };
        model.add_minibatch_score(&selected, theta.view(), all, 0.5, in_place.view_mut(), &mut scratch);
        let (x, y) = (x.select(Axis(0), &selected), y.select(Axis(0), &selected));
        model.add_score(theta.view(), Batch { x: x.view(), y: y.view() }, 0.5, copied.view_mut(), &mut scratch);
        assert_eq!(in_place, copied);
        assert!(copied.iter().all(|score| *score != 0.0));
    }
}

/// Far from the origin, single precision stays accurate because differences are summed, not positions.
#[test]
fn single_precision_is_accurate_far_from_the_origin() {
    let model = GaussianMeanSettings::default().build(1).unwrap();
    let x = (normals(&mut stream(4), 20_000, 1) + 1000.0).mapv(|x| x as f32);
    let y = Array1::zeros(20_000);
    let mut score = Array2::zeros((1, 1));
    let batch = Batch { x: x.view(), y: y.view() };
    model.add_score(array![[1000.0_f32]].view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
    let exact: f64 = x.iter().map(|x| f64::from(*x) - 1000.0).sum();
    // 157 blocks, each of sums below 40 or so: rounding by 2⁻²⁴ of that at each of 20,000 additions, at the very worst.
    assert!((f64::from(score[[0, 0]]) - exact).abs() < 20_000.0 * 40.0 * f64::powi(2.0, -24), "{score} {exact}");
    // Negative control: a plain sum of positions is less accurate.
    let plain = x.iter().sum::<f32>() - 2e7;
    assert!((f64::from(plain) - exact).abs() > 1.0, "{plain} {exact}");
}

#[test]
fn the_exact_posterior_agrees_with_a_grid() {
    for (precision, temperature) in [(0.0, 1.0), (1.7, 1.0), (1.7, 4.0)] {
        let model = model(1, precision);
        let x = normals(&mut stream(5), 30, 1) - 0.7;
        let y = Array1::zeros(30);
        let (mean, variance) = model.posterior(x.view(), temperature).unwrap();
        let batch = Batch { x: x.view(), y: y.view() };
        let (found_mean, found_variance) = check::moments_on_a_grid(&model, batch, temperature, -8.0..8.0);
        assert!((mean[0] - found_mean).abs() < 1e-10 && (variance[0] - found_variance).abs() < 1e-10);
        // Negative control: the posterior depends on the temperature.
        let (_, other) = model.posterior(x.view(), 2.0 * temperature).unwrap();
        assert!((other[0] - found_variance).abs() > 1e-3);
    }
}

/// The score at the posterior mean is 0, and its slope −1/variance, in every coordinate.
#[test]
fn the_exact_posterior_agrees_with_the_score() {
    let (model, temperature) = (model(7, 1.7), 2.5);
    let x = normals(&mut stream(6), 40, 7);
    let y = Array1::zeros(40);
    let (mean, variance) = model.posterior(x.view(), temperature).unwrap();
    let theta = ndarray::stack![Axis(0), mean, &mean + &variance];
    let mut score = Array2::zeros((2, 7));
    model.prior_score(theta.view(), score.view_mut());
    model.add_score(theta.view(), Batch { x: x.view(), y: y.view() }, 1.0 / temperature, score.view_mut(), &mut Scratch::new());
    assert!(score.row(0).iter().all(|score| score.abs() < 1e-12) && score.row(1).iter().all(|score| (score + 1.0).abs() < 1e-12));
}

#[test]
fn an_improper_posterior_is_refused() {
    let empty = Array2::<f64>::zeros((0, 2));
    assert!(matches!(model(2, 0.0).posterior(empty.view(), 1.0), Err(ModelError::NotPositiveDefinite { .. })));
    let (mean, variance) = model(2, 4.0).posterior(empty.view(), 1.0).unwrap();
    assert_eq!((mean, variance), (array![0.3, 0.3], array![0.25, 0.25]));
    for bad in [0.0, -1.0, f64::NAN] {
        assert!(matches!(model(2, 4.0).posterior(empty.view(), bad), Err(ModelError::OutOfRange { setting: "temperature", .. })));
    }
}

#[test]
fn the_predictive_density_is_the_mixture_density() {
    let settings = GaussianMeanSettings { variance: PerFeature::Each(vec![0.5, 2.0]), ..GaussianMeanSettings::default() };
    let model = settings.build(2).unwrap();
    let (x, y) = (array![[1.0, -1.0]], array![0.0]);
    let (mean, density) = check::predict(&model, &array![[1.0, -1.0], [0.0, 1.0]], Batch { x: x.view(), y: y.view() }, 0);
    // √(det 2πΣ) is 2π, as 0.5 · 2 = 1.
    let exact = 0.5 * (1.0 + (-0.5_f64 * (1.0 / 0.5 + 4.0 / 2.0)).exp()) / (2.0 * std::f64::consts::PI);
    assert!(mean.is_empty() && (density[0] - exact).abs() < 1e-15);
}

#[test]
fn initial_draws_follow_the_prior() {
    for (precision, variance) in [(0.0, 1.0), (4.0, 0.25)] {
        let model = model(50, precision);
        let mut draws = Array2::<f64>::zeros((400, 50));
        let mut stream = stream(12);
        draws.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
        let n = draws.len() as f64;
        let centered = draws - 0.3;
        assert!(centered.mean().unwrap().abs() < 4.5 * (variance / n).sqrt());
        assert!((centered.mapv(|w| w * w).mean().unwrap() - variance).abs() < 4.5 * variance * (2.0 / n).sqrt());
    }
}

#[test]
fn bad_settings_are_refused() {
    let message = |text: &str| toml::from_str::<GaussianMeanSettings>(text).unwrap().build(2).unwrap_err().to_string();
    for bad in ["0.0", "-1.0", "nan", "inf"] {
        let value: f64 = bad.parse().unwrap();
        assert_eq!(message(&format!("variance = {bad}")), format!("`variance` must be a positive number, not {value}"));
        assert_eq!(message(&format!("variance = [1.0, {bad}]")), format!("`variance` must be a positive number, not {value}"));
    }
    let length = "`variance` (a list has one number per feature) has 3 numbers; 2 are needed";
    assert_eq!(message("variance = [1.0, 2.0, 3.0]"), length);
    assert!(message("prior_mean = []").starts_with("`prior_mean` (a list has one number per feature) has 0 numbers"));
    assert_eq!(message("prior_mean = [0, nan]"), "`prior_mean` must be a number, not NaN");
    assert_eq!(message("prior_precision = -1"), "`prior_precision` must be zero or a positive number, not -1");
    assert_eq!(message("prior_precision = nan"), "`prior_precision` must be zero or a positive number, not NaN");
    assert_eq!(GaussianMeanSettings::default().build(0).unwrap_err(), ModelError::NoFeatures);
    let error = toml::from_str::<GaussianMeanSettings>("variance = \"wide\"").unwrap_err().to_string();
    assert!(error.contains("must be a number, or a list with one number per feature"), "{error}");
    let good = toml::from_str::<GaussianMeanSettings>("variance = [1, 2]\nprior_mean = 3").unwrap();
    assert_eq!(good.build(2).unwrap().variance, [1.0, 2.0]);
    assert_eq!(toml::from_str::<GaussianMeanSettings>(&toml::to_string(&good).unwrap()).unwrap(), good);
}
