//! Tests of linear regression against its closed forms.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::models::tests as check;
use crate::models::tests::{normals, stream};
use crate::models::{Model, Scratch};
use ndarray::{array, concatenate};
use ndarray_linalg::LeastSquaresSvd;

fn model(features: usize, intercept: bool) -> Linear {
    let scale = 1.7_f64.powf(-0.5);
    let prior = Prior::Normal(scale);
    let intercept_scale = if intercept { scale } else { LinearSettings::default().intercept_scale };
    let settings = LinearSettings { intercept, noise_variance: Some(0.6), prior, intercept_scale, ..LinearSettings::default() };
    settings.build(&DataSchema::new(features, Output::Number)).unwrap()
}

/// Features, and targets that depend on them.
fn data(rows: usize, features: usize, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut stream = stream(seed);
    let x = normals(&mut stream, rows, features);
    let noise = normals(&mut stream, 1, rows).row(0).to_owned();
    let y = x.sum_axis(ndarray::Axis(1)) * 0.4 + 0.8 + noise;
    (x, y)
}

#[test]
fn gradients_agree_with_central_differences() {
    for (case, (features, rows, n)) in
        [(1, 0, 3), (3, 1, 1), (8, 40, 1), (54, 131, 1), (11, 7, 9), (5, 1100, 40)].into_iter().enumerate()
    {
        for intercept in [false, true] {
            let model = model(features, intercept);
            let (x, y) = data(rows, features, case as u64);
            let batch = Batch { x: x.view(), y: y.view() };
            let theta = check::particles(&model, n, 3);
            for weight in [1.0, 17.5] {
                let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                assert!(prior < 1e-7 && loss < 1e-7, "{features} {rows} {n} {intercept}: {prior} {loss}");
            }
            check::assert_particles_are_independent(&model, &theta, batch);
            check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
        }
    }
}

/// The mean solves the least-squares problem of the rows over σ√α with √λ·I below them, by singular values; the covariance inverts
/// the slope of the score, which is linear in θ.
#[test]
fn the_exact_posterior_agrees_with_least_squares_and_the_score() {
    for (features, intercept, temperature) in [(3, true, 1.0), (4, false, 2.5), (7, true, 0.3)] {
        let model = model(features, intercept);
        let (x, y) = data(700, features, 5);
        let batch = Batch { x: x.view(), y: y.view() };
        let (mean, covariance) = model.posterior(batch, temperature).unwrap();
        let d = Model::<f64>::dim(&model);

        let ones = Array2::ones((x.nrows(), 1));
        let design = if intercept { concatenate![ndarray::Axis(1), x, ones] } else { x.clone() };
        let scale = (0.6 * temperature).powf(-0.5);
        let tall = concatenate![ndarray::Axis(0), design * scale, Array2::eye(d) * 1.7_f64.sqrt()];
        let right = concatenate![ndarray::Axis(0), &y * scale, Array1::zeros(d)];
        let solution = tall.least_squares(&right).unwrap().solution;
        assert!((&mean - &solution).iter().all(|difference| difference.abs() < 1e-12), "{mean} {solution}");

        let score = |theta: &Array1<f64>| {
            let theta = theta.view().insert_axis(ndarray::Axis(0));
            let mut score = Array2::zeros((1, d));
            model.prior_score(theta, score.view_mut());
            model.add_score(theta, batch, 1.0 / temperature, score.view_mut(), &mut Scratch::new());
            score.row(0).to_owned()
        };
        assert!(score(&mean).iter().all(|score| score.abs() < 1e-9));
        for (j, column) in covariance.columns().into_iter().enumerate() {
            let unit = score(&mean) - score(&(&mean + &column));
            assert!(unit.iter().enumerate().all(|(i, v)| (v - f64::from(u8::from(i == j))).abs() < 1e-9), "{unit}");
        }
        // Negative control: the posterior depends on the temperature.
        let (other, _) = model.posterior(batch, 2.0 * temperature).unwrap();
        assert!((&mean - &other).iter().any(|difference| difference.abs() > 1e-5));
    }
}

#[test]
fn the_exact_posterior_agrees_with_a_grid() {
    let model = model(1, false);
    let (x, y) = data(30, 1, 8);
    let batch = Batch { x: x.view(), y: y.view() };
    let temperature = 1.5;
    let (mean, covariance) = model.posterior(batch, temperature).unwrap();
    let (found_mean, found_variance) = check::moments_on_a_grid(&model, batch, temperature, -8.0..8.0);
    assert!((mean[0] - found_mean).abs() < 1e-10 && (covariance[[0, 0]] - found_variance).abs() < 1e-10);
    let (x32, y32) = (x.mapv(|x| x as f32), y.mapv(|y| y as f32));
    let (mean32, _) = model.posterior(Batch { x: x32.view(), y: y32.view() }, temperature).unwrap();
    assert!((mean32[0] - mean[0]).abs() < 1e-6);
    let huge = array![[1e200]];
    let error = model.posterior(Batch { x: huge.view(), y: array![0.0].view() }, 1.0).unwrap_err();
    assert!(matches!(error, ModelError::NotPositiveDefinite { .. }));
    assert!(matches!(model.posterior(batch, 0.0), Err(ModelError::OutOfRange { setting: "temperature", .. })));
}

/// With more particles than lanes, and a row that does not fill a group of rows.
#[test]
fn predictions_are_mixtures_over_particles() {
    let model = model(2, true);
    let (x, y) = data(9, 2, 9);
    let theta = normals(&mut stream(10), 21, 3);
    let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 1);
    for i in 0..9 {
        let means = theta.rows().into_iter().map(|w| w[0] * x[[i, 0]] + w[1] * x[[i, 1]] + w[2]);
        let densities = means.clone().map(|m| (-(y[i] - m).powi(2) / 1.2).exp() / (1.2 * std::f64::consts::PI).sqrt());
        assert!((mean[[i, 0]] - means.sum::<f64>() / 21.0).abs() < 1e-14);
        assert!((density[i] - densities.sum::<f64>() / 21.0).abs() < 1e-14);
    }
}

#[test]
fn initial_draws_follow_the_prior() {
    let model = model(60, true);
    let mut draws = Array2::<f64>::zeros((400, 61));
    let mut stream = stream(12);
    draws.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
    let (n, variance) = (draws.len() as f64, 1.0 / 1.7);
    assert!(draws.mean().unwrap().abs() < 4.5 * (variance / n).sqrt());
    assert!((draws.mapv(|w| w * w).mean().unwrap() - variance).abs() < 4.5 * variance * (2.0 / n).sqrt());
}

#[test]
fn bad_settings_are_refused() {
    let good = LinearSettings::default();
    let data = DataSchema::new(3, Output::Number);
    assert!(good.build(&data).is_ok());
    let message = good.build(&DataSchema::new(0, Output::Number)).unwrap_err().to_string();
    assert!(message.contains("needs at least one feature"), "{message}");
    for output in [Output::Classes(2), Output::Count, Output::Nothing] {
        let message = good.build(&DataSchema::new(3, output)).unwrap_err().to_string();
        assert!(message.contains("numbers as targets") && message.contains("--task regression"), "{message}");
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let message = LinearSettings { noise_variance: Some(bad), ..good.clone() }.build(&data).unwrap_err().to_string();
        assert_eq!(message, format!("noise_variance: must be a positive number, not {bad}"));
        let message = LinearSettings { prior: Prior::Normal(bad), ..good.clone() }.build(&data).unwrap_err().to_string();
        assert_eq!(message, format!("prior.normal: must be a positive number, not {bad}"));
        let message = LinearSettings { intercept_scale: bad, ..good.clone() }.build(&data).unwrap_err().to_string();
        assert_eq!(message, format!("intercept_scale: must be a positive number, not {bad}"));
    }
    assert_eq!(toml::from_str::<LinearSettings>("noise_variance = 2").unwrap().noise_variance, Some(2.0));
    assert!(toml::from_str::<LinearSettings>("noise = 1.0").is_err());
}
