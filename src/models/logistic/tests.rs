//! Tests of logistic regression against direct formulas and finite differences.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::models::tests as check;
use crate::models::tests::stream;
use crate::models::{Batch, Model, Scratch};
use ndarray::{Array1, Array2, Axis, array};
use rand::RngExt;

fn labels(rows: usize, seed: u64) -> Array1<f64> {
    let mut stream = stream(seed);
    Array1::from_shape_fn(rows, |_| f64::from(stream.random_range(0..2_u8)))
}

fn model(features: usize, intercept: bool) -> Logistic {
    let settings =
        LogisticSettings { prior: Prior::SampledPrecision { shape: 1.7, rate: 2.5 }, intercept, ..LogisticSettings::default() };
    settings.build(&DataSchema::new(features, Output::Classes(2))).unwrap()
}

#[test]
fn gradients_agree_with_central_differences() {
    for (case, (features, rows, n)) in
        [(1, 0, 3), (3, 1, 1), (11, 7, 9), (54, 131, 17), (8, 300, 2), (5, 1100, 40)].into_iter().enumerate()
    {
        for intercept in [false, true] {
            let model = model(features, intercept);
            let mut data = stream(case as u64);
            let x = check::normals(&mut data, rows, features);
            let y = labels(rows, 7);
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

#[test]
fn curvature_is_the_diagonal_of_the_losses_hessian() {
    for intercept in [false, true] {
        let model = model(5, intercept);
        let x = check::normals(&mut stream(51), 300, 5);
        let y = labels(300, 52);
        let theta = check::particles(&model, 11, 53);
        let batch = Batch { x: x.view(), y: y.view() };
        assert!(check::curvature_error(&model, &theta, batch, 2.5, theta.ncols()) < 1e-6);
        assert!(check::full_curvature_error(&model, &theta, batch, 2.5) < 1e-6);
    }
}

/// Loss and prediction of one row, worked out by hand.
#[test]
fn loss_and_prediction_agree_with_hand_computation() {
    let model = model(2, true);
    let theta = array![[0.5, -1.0, 0.25, 0.3], [2.0, 1.0, -1.0, 0.0]];
    let (x, y) = (array![[1.0, 2.0]], array![1.0]);
    let batch = Batch { x: x.view(), y: y.view() };
    let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
    let p = [sigma(-1.25), sigma(3.0)];
    let mut loss = [0.0; 2];
    model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
    for (loss, p) in loss.iter().zip(p) {
        assert!((loss + p.ln()).abs() < 1e-14);
    }
    let (mean, density) = check::predict(&model, &theta, batch, 2);
    assert!((mean[[0, 1]] - 0.5 * (p[0] + p[1])).abs() < 1e-14 && (mean.sum() - 1.0).abs() < 1e-14);
    assert_eq!(density[0], mean[[0, 1]]);

    let wide = LogisticSettings { intercept: true, predictive_bandwidth: 0.55, ..LogisticSettings::default() };
    let (mean, _) = check::predict(&wide.build(&DataSchema::new(2, Output::Classes(2))).unwrap(), &theta, batch, 2);
    let shrink = (1.0_f64 + std::f64::consts::PI * 0.55 * 0.55 * 6.0 / 8.0).powf(-0.5);
    assert!((mean[[0, 1]] - 0.5 * (sigma(-1.25 * shrink) + sigma(3.0 * shrink))).abs() < 1e-14);
}

/// The rows of a minibatch give the same bits in place and copied, on both sides of the sizes of blocks, vectors and BLAS.
#[test]
fn minibatches_in_place_equal_copied_batches() {
    for (n, rows, intercept) in [(1, 3, false), (6, 100, false), (9, 300, true), (20, 100, true)] {
        let model = LogisticSettings { intercept, ..LogisticSettings::default() }
            .build(&DataSchema::new(54, Output::Classes(2)))
            .unwrap();
        let x = check::normals(&mut stream(31), 400, 54);
        let y = labels(400, 32);
        let theta = check::normals(&mut stream(33), n, Model::<f64>::dim(&model));
        let selected: Vec<usize> = (0..rows).map(|i| i * 7 % 400).collect();
        let (mut in_place, mut copied) = (Array2::zeros(theta.dim()), Array2::zeros(theta.dim()));
        let (mut scratch, all) = (Scratch::new(), Batch { x: x.view(), y: y.view() });
        model.add_minibatch_score(&selected, theta.view(), all, 0.5, in_place.view_mut(), &mut scratch);
        let (x, y) = (x.select(Axis(0), &selected), y.select(Axis(0), &selected));
        let batch = Batch { x: x.view(), y: y.view() };
        model.add_score(theta.view(), batch, 0.5, copied.view_mut(), &mut scratch);
        assert_eq!(in_place, copied);
        assert!(copied.iter().any(|score| *score != 0.0));
    }
}

/// A row of class 0 with a logit z > 0 has the loss log(1 + e^z), even where 1 − σ(z) rounds to 0.
#[test]
fn confident_mistakes_have_a_finite_loss() {
    fn cost<F: Real>(z: f64, label: f64) -> f64 {
        let (x, y) = (array![[F::one()]], array![F::of(label)]);
        let theta = array![[F::of(if label == 0.0 { z } else { -z }), F::zero()]];
        let (mut mean, mut density) = (Array2::zeros((1, 2)), [0.0]);
        let batch = Batch { x: x.view(), y: y.view() };
        model(1, false).predict(theta.view(), batch, mean.view_mut(), &mut density, &mut Scratch::new());
        -density[0].ln()
    }
    for label in [0.0, 1.0] {
        for z in [5.0_f64, 20.0, 40.0, 80.0] {
            let exact = z + (-z).exp().ln_1p();
            // The relative errors of the logistic functions, as absolute ones of the logarithm.
            assert!((cost::<f32>(z, label) - exact).abs() < 1e-6, "{z} {label}: {}", cost::<f32>(z, label));
            assert!((cost::<f64>(z, label) - exact).abs() < 1e-13, "{z} {label}: {}", cost::<f64>(z, label));
        }
    }
    // Negative control: the difference from 1 loses these probabilities.
    assert!(1.0 - 1.0 / (1.0 + (-20.0_f32).exp()) == 0.0 && 1.0 - 1.0 / (1.0 + (-40.0_f64).exp()) == 0.0);
}

/// Swapping the labels and the sign of the weights swaps the columns bit for bit.
#[test]
fn predictions_are_symmetric_in_the_classes() {
    for (n, rows, intercept) in [(3, 40, false), (19, 131, true)] {
        let settings = LogisticSettings { intercept, predictive_bandwidth: 0.3, ..LogisticSettings::default() };
        let model = settings.build(&DataSchema::new(6, Output::Classes(2))).unwrap();
        let x = check::normals(&mut stream(21), rows, 6);
        let y = labels(rows, 22);
        let theta = check::normals(&mut stream(23), n, Model::<f64>::dim(&model)) * 5.0;
        let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 2);
        let swapped = y.mapv(|y| 1.0 - y);
        let (mirrored, same) = check::predict(&model, &-&theta, Batch { x: x.view(), y: swapped.view() }, 2);
        assert_eq!(mean.column(0), mirrored.column(1));
        assert_eq!(mean.column(1), mirrored.column(0));
        assert_eq!(density, same);
        assert!(mean.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-14));
    }
}

/// The closed form σ(z/√(1 + πλ²‖x‖²/8)) is an approximation: it must lie near the exact average over a particle's kernel.
#[test]
fn kernel_averaged_prediction_agrees_with_quadrature() {
    let settings = LogisticSettings { predictive_bandwidth: 0.55, intercept: false, ..LogisticSettings::default() };
    let model = settings.build(&DataSchema::new(1, Output::Classes(2))).unwrap();
    let (x, y) = (array![[2.0]], array![1.0]);
    let (mean, _) = check::predict(&model, &array![[0.8, 0.0]], Batch { x: x.view(), y: y.view() }, 2);
    let step = 1e-3;
    let exact: f64 = (-8000..=8000)
        .map(|i| {
            let t = f64::from(i) * step;
            (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt() / (1.0 + (-2.0 * (0.8 + 0.55 * t)).exp()) * step
        })
        .sum();
    assert!((mean[[0, 1]] - exact).abs() < 0.01, "{} {exact}", mean[[0, 1]]);
    let plain = 1.0 / (1.0 + (-1.6_f64).exp());
    assert!((plain - exact).abs() > 0.02, "negative control: the plain average differs");
}

/// With the weights integrated out, v = log ξ has the density of the logarithm of a Gamma variable.
#[test]
fn marginal_of_the_log_precision_is_log_gamma() {
    let model = model(1, false);
    let log_marginal = |v: f64| {
        let (step, range) = (0.01 * (-0.5 * v).exp(), 1000);
        let theta = Array2::from_shape_fn((2 * range + 1, 2), |(i, j)| if j == 0 { (i as f64 - range as f64) * step } else { v });
        let mut out = vec![0.0; theta.nrows()];
        Model::<f64>::log_prior(&model, theta.view(), &mut out);
        out.iter().map(|log| log.exp() * step).sum::<f64>().ln()
    };
    let log_gamma = |v: f64| 1.7 * v - 2.5 * v.exp();
    for v in [-3.0, -1.0, 0.0, 1.0] {
        let (found, expected) = (log_marginal(v) - log_marginal(-0.5), log_gamma(v) - log_gamma(-0.5));
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        // The score of v, averaged over w given v, is the score of the marginal.
        let mut score = Array2::zeros((1, 2));
        let theta = array![[(-0.5 * v).exp(), v]];
        Model::<f64>::prior_score(&model, theta.view(), score.view_mut());
        let step = 1e-5;
        let slope = (log_gamma(v + step) - log_gamma(v - step)) / (2.0 * step);
        assert!((score[[0, 1]] - slope).abs() < 1e-8, "{} {slope}", score[[0, 1]]);
    }
}

/// E ξ = a/b and E w²ξ = 1 for draws from the prior, within 4.5 standard errors.
#[test]
fn initial_draws_follow_the_prior() {
    let model = model(1, false);
    let draws = 40_000;
    let mut stream = stream(11);
    let (mut precision, mut square) = (0.0, 0.0);
    for _ in 0..draws {
        let mut theta = Array1::<f64>::zeros(2);
        model.draw_initial(&mut stream, theta.view_mut());
        precision += theta[1].exp() / f64::from(draws);
        square += theta[0].powi(2) * theta[1].exp() / f64::from(draws);
    }
    let root = f64::from(draws).sqrt();
    assert!((precision - 1.7 / 2.5).abs() < 4.5 * (1.7_f64.sqrt() / 2.5) / root);
    assert!((square - 1.0).abs() < 4.5 * 2.0_f64.sqrt() / root);
}

/// With a fixed precision the score is −ξ w; loss and gradient are as with a sampled precision.
#[test]
fn a_fixed_precision_is_not_a_parameter() {
    let (scale, data) = (2.5_f64.powf(-0.5), DataSchema::new(3, Output::Classes(2)));
    let settings = LogisticSettings { prior: Prior::Normal(scale), intercept_scale: scale, ..LogisticSettings::default() };
    let model = settings.build(&data).unwrap();
    assert_eq!((Model::<f64>::dim(&model), Model::<f64>::parts(&model).len()), (4, 1 + 1));
    let (x, y) = (check::normals(&mut stream(41), 30, 3), labels(30, 42));
    let batch = Batch { x: x.view(), y: y.view() };
    let theta = check::particles(&model, 5, 43);
    let (prior, loss) = check::gradient_errors(&model, &theta, batch, 3.0);
    assert!(prior < 1e-7 && loss < 1e-7, "{prior} {loss}");
    let mut score = Array2::zeros(theta.dim());
    model.prior_score(theta.view(), score.view_mut());
    assert!((&score + 2.5 * &theta).iter().all(|difference| difference.abs() < 1e-14));
    // The prior density is known up to a constant.
    let mut out = [0.0; 2];
    model.log_prior(array![[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]].view(), &mut out);
    assert!((out[0] - out[1] - 3.75).abs() < 1e-12, "{out:?}");
    let mut stream = stream(44);
    let squares = (0..10_000).map(|_| {
        let mut theta = Array1::<f64>::zeros(4);
        model.draw_initial(&mut stream, theta.view_mut());
        theta.mapv(|w| w * w).sum()
    });
    // E ‖w‖² = 4/2.5, with standard deviation √8/2.5 of a draw.
    let mean = squares.sum::<f64>() / 1e4;
    assert!((mean - 1.6).abs() < 4.5 * 8_f64.sqrt() / 2.5 / 100.0, "{mean}");
}

#[test]
fn extreme_log_precisions_stay_finite() {
    let model = model(2, false);
    let theta = array![[1.0, 1.0, 1e4], [1.0, 1.0, -1e4]];
    let mut score = Array2::zeros((2, 3));
    Model::<f64>::prior_score(&model, theta.view(), score.view_mut());
    assert!(score.iter().all(|g| g.is_finite()));
}

#[test]
fn bad_settings_are_refused() {
    let good = LogisticSettings::default();
    let message = |settings: &LogisticSettings, features, output| {
        settings.build(&DataSchema::new(features, output)).map(drop).unwrap_err().to_string()
    };
    assert!(good.build(&DataSchema::new(3, Output::Classes(2))).is_ok());
    assert!(message(&good, 0, Output::Classes(2)).contains("at least one feature"));
    assert!(message(&good, 3, Output::Classes(3)).contains("cannot predict 3 classes"));
    assert!(message(&good, 3, Output::Number).contains("two classes as targets"));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for prior in [
            Prior::Normal(bad),
            Prior::StudentT { degrees_of_freedom: bad, scale: 1.0 },
            Prior::StudentT { degrees_of_freedom: 3.0, scale: bad },
            Prior::SampledPrecision { shape: bad, rate: 1.0 },
            Prior::SampledPrecision { shape: 1.0, rate: bad },
        ] {
            let message = message(&LogisticSettings { prior, ..good.clone() }, 3, Output::Classes(2));
            assert!(message.starts_with("prior.") && message.contains("must be a positive number"), "{message}");
        }
    }
    let read = toml::from_str::<LogisticSettings>("prior = { student_t = { degrees_of_freedom = 3.0, scale = 2.5 } }").unwrap();
    assert_eq!(read.prior, Prior::StudentT { degrees_of_freedom: 3.0, scale: 2.5 });
    assert!(toml::from_str::<LogisticSettings>("prior = { student_t = { scale = 2.5, df = 3.0 } }").is_err());
    assert!(toml::from_str::<LogisticSettings>("priors = { normal = 1.0 }").is_err());
}
