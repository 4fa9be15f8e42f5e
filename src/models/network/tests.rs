//! Networks against central differences, hand computation, and other partitions of the work.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::model::{MIN_WORK_FOR_THREADS, ROW_BLOCK};
use super::*;
use crate::models::tests as check;
use crate::models::tests::stream;
use crate::models::{Batch, Model, ModelError, Output, Part, Scratch};
use ndarray::{Array1, Array2, array, s};
use rand::RngExt;

const LOSSES: [(Output, Option<Loss>); 3] =
    [(Output::Classes(4), None), (Output::Number, None), (Output::Number, Some(Loss::Huber(0.8)))];

fn build(hidden: &[usize], features: usize, output: Output, loss: Option<Loss>) -> Network {
    NetworkSettings { hidden: hidden.to_vec(), loss, ..NetworkSettings::default() }.build(features, output).unwrap()
}

fn data(rows: usize, features: usize, output: Output, seed: u64) -> (Array2<f64>, Array1<f64>) {
    let mut stream = stream(seed);
    let x = check::normals(&mut stream, rows, features);
    let y = match output {
        Output::Classes(classes) => Array1::from_shape_fn(rows, |_| stream.random_range(0..classes) as f64),
        _ => check::normals(&mut stream, rows, 1).column(0).mapv(|y| 2.0 * y),
    };
    (x, y)
}

#[test]
fn gradients_agree_with_central_differences() {
    for (output, loss) in LOSSES {
        for (hidden, features, rows, n) in [(&[][..], 3, 7, 4), (&[5], 4, 1, 3), (&[9, 3, 6], 2, 7, 2), (&[17], 11, 0, 2)] {
            let model = build(hidden, features, output, loss);
            let (x, y) = data(rows, features, output, 5);
            let batch = Batch { x: x.view(), y: y.view() };
            let theta = check::particles(&model, n, 8);
            for weight in [1.0, 60.0] {
                let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                assert!(prior < 1e-7 && loss < 1e-7, "{model:?}: {prior} {loss}");
            }
            check::assert_particles_are_independent(&model, &theta, batch);
            check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
        }
    }
}

/// An output is linear in every single weight, so the Hessian and the Gauss-Newton matrix have the same diagonal. The curvature of the
/// log-precision is its expectation, 1/2 per row.
#[test]
fn curvatures_agree_with_central_differences() {
    for (output, loss) in LOSSES {
        for (hidden, features, rows) in [(&[][..], 3, 40), (&[7], 4, ROW_BLOCK + 50)] {
            let model = build(hidden, features, output, loss);
            let (x, y) = data(rows, features, output, 15);
            let theta = check::particles(&model, 3, 18);
            let batch = Batch { x: x.view(), y: y.view() };
            let error = check::curvature_error(&model, &theta, batch, 2.5, model.weights());
            // Differences occasionally cross kinks of the activations and of Huber's loss.
            assert!(error < 1e-4, "{model:?}: {error}");
            let mut curvature = Array2::zeros(theta.raw_dim());
            model.add_curvature(theta.view(), batch, 2.0, curvature.view_mut(), &mut Scratch::new());
            assert!(model.dim() == model.weights() || curvature[[1, model.weights()]] == rows as f64);
        }
        // With more hidden layers it is approximate, and at least 0.
        let model = build(&[5, 4], 3, output, loss);
        let (x, y) = data(60, 3, output, 16);
        let theta = check::particles(&model, 2, 19);
        let mut curvature = Array2::zeros(theta.raw_dim());
        model.add_curvature(theta.view(), Batch { x: x.view(), y: y.view() }, 1.0, curvature.view_mut(), &mut Scratch::new());
        assert!(curvature.iter().all(|c| *c >= 0.0) && curvature.iter().any(|c| *c > 0.0));
    }
}

/// Batches longer than a block of rows are the sum of their blocks.
#[test]
fn long_batches_are_sums_of_blocks() {
    for (output, loss) in LOSSES {
        let model = build(&[6], 3, output, loss);
        let rows = 2 * ROW_BLOCK + 37;
        let (x, y) = data(rows, 3, output, 6);
        let theta = check::particles(&model, 2, 9);
        let gradient = |range: std::ops::Range<usize>| {
            let mut score = Array2::zeros(theta.raw_dim());
            let batch = Batch { x: x.slice(s![range.clone(), ..]), y: y.slice(s![range]) };
            model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
            let mut losses = [0.0; 2];
            model.loss(theta.view(), batch, &mut losses, &mut Scratch::new());
            (score, losses)
        };
        let (whole, whole_loss) = gradient(0..rows);
        let mut sum = Array2::zeros(theta.raw_dim());
        let mut loss_sum = [0.0; 2];
        for first in (0..rows).step_by(100) {
            let (score, losses) = gradient(first..rows.min(first + 100));
            sum += &score;
            (0..2).for_each(|n| loss_sum[n] += losses[n]);
        }
        let scale = whole.iter().fold(1.0, |scale: f64, g| scale.max(g.abs()));
        assert!((&whole - &sum).iter().all(|difference| difference.abs() < 1e-12 * scale));
        assert!((0..2).all(|n| (whole_loss[n] - loss_sum[n]).abs() < 1e-12 * whole_loss[n].abs()));
    }
}

/// A network 1-2-2 whose outputs can be followed by hand, on x = 2: hidden relu(2·1 + 0.5, 2·(−1)) = (2.5, 0).
#[test]
fn prediction_agrees_with_hand_computation() {
    let model = build(&[2], 1, Output::Classes(2), None);
    let weights = array![1.0, -1.0, 0.5, 0.0, 0.2, -0.4, 7.0, 7.0, 0.1, -0.1];
    let theta = ndarray::stack![ndarray::Axis(0), weights, Array1::zeros(10)];
    let (x, y) = (array![[2.0]], array![1.0]);
    let batch = Batch { x: x.view(), y: y.view() };
    let (mean, density) = check::predict(&model, &theta, batch, 2);
    let first = 1.0 / (1.0 + (0.6_f64 - -1.1).exp());
    assert!((mean[[0, 1]] - 0.5 * (first + 0.5)).abs() < 1e-14);
    assert!((mean.sum() - 1.0).abs() < 1e-14 && density[0] == mean[[0, 1]]);
    let mut loss = [0.0; 2];
    model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
    assert!((loss[0] + first.ln()).abs() < 1e-14 && (loss[1] - 2.0_f64.ln()).abs() < 1e-14);

    let model = build(&[], 1, Output::Number, None);
    let theta = array![[1.0, 0.5, 0.7], [-1.0, 0.0, -0.3]];
    let (mean, density) = check::predict(&model, &theta, batch, 1);
    let normal = |r: f64, g: f64| (0.5 * g - 0.5 * g.exp() * r * r).exp() / (2.0 * std::f64::consts::PI).sqrt();
    assert!((mean[[0, 0]] - 0.25).abs() < 1e-14);
    assert!((density[0] - 0.5 * (normal(1.5, 0.7) + normal(-3.0, -0.3))).abs() < 1e-14);
}

/// With several blocks of rows, the bits of results do not depend on the number of threads, and probabilities add up to 1.
#[test]
fn bits_do_not_depend_on_threads() {
    let model = build(&[16], 8, Output::Classes(4), None);
    let rows = 2 * ROW_BLOCK + 5;
    let (x, y) = data(rows, 8, Output::Classes(4), 10);
    let batch = Batch { x: x.view(), y: y.view() };
    let theta = check::particles(&model, 7, 11);
    assert!(7 * rows * model.weights() > MIN_WORK_FOR_THREADS, "the work is too small for threads");
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut score = Array2::zeros(theta.raw_dim());
            model.add_score(theta.view(), batch, 3.0, score.view_mut(), &mut Scratch::new());
            let mut loss = vec![0.0; 7];
            model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
            (score, loss, check::predict(&model, &theta, batch, 4))
        })
    };
    let one = on(1);
    assert!(one.2.0.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-12));
    for threads in [2, 3, 4] {
        assert_eq!(one, on(threads));
    }
}

#[test]
fn huber_follows_its_definition_in_both_regimes() {
    let model = build(&[], 1, Output::Number, Some(Loss::Huber(0.8)));
    // exp(−loss) integrates to 1: over |r| ≤ 0.8 by the error function, and beyond in closed form.
    let log_normalizer = (1.444_542_810_186_275_2 + 2.0 / 0.8 * (-0.5 * 0.8_f64.powi(2)).exp()).ln();
    // f = b, so that residuals are b − y and the gradient of b is the loss's derivative.
    for (residual, loss, slope) in
        [(0.5_f64, 0.125_f64, 0.5_f64), (-0.5, 0.125, -0.5), (2.0, 0.8 * 1.6, 0.8), (-2.0, 0.8 * 1.6, -0.8)]
    {
        let theta = array![[0.0, residual + 1.0]];
        let (x, y) = (array![[3.0]], array![1.0]);
        let batch = Batch { x: x.view(), y: y.view() };
        let mut out = [0.0];
        model.loss(theta.view(), batch, &mut out, &mut Scratch::new());
        let mut score = Array2::<f64>::zeros((1, 2));
        model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
        assert!(
            (out[0] - loss - log_normalizer).abs() < 1e-12
                && (score[[0, 1]] + slope).abs() < 1e-14
                && (score[[0, 0]] + 3.0 * slope).abs() < 1e-14
        );
    }
}

#[test]
fn huber_density_integrates_to_one() {
    for delta in [0.1, 0.8, 20.0] {
        let model = build(&[], 1, Output::Number, Some(Loss::Huber(delta)));
        // Tails fall like exp(−δ|y|): out to 40/δ nothing is left. A midpoint rule, as the second derivative jumps at δ.
        let range = 20.0 + 40.0 / delta;
        let rows = 400_000;
        let step = 2.0 * range / rows as f64;
        let y = Array1::from_shape_fn(rows, |i| (i as f64 + 0.5) * step - range);
        let x = Array2::zeros((rows, 1));
        let (_, density) = check::predict(&model, &array![[0.0, 0.0]], Batch { x: x.view(), y: y.view() }, 1);
        assert!((density.sum() * step - 1.0).abs() < 1e-6, "{delta}: {}", density.sum() * step);
    }
}

#[test]
fn parts_cover_the_parameters() {
    let model = build(&[100], 784, Output::Classes(10), None);
    assert_eq!(Network::dim(&model), 79_510);
    for (output, loss) in LOSSES {
        let model = build(&[5, 6], 3, output, loss);
        let parts = Model::<f64>::parts(&model);
        assert_eq!(parts.iter().map(Part::size).sum::<usize>(), model.dim());
        assert_eq!(parts.last().unwrap().name == "log_precision", output == Output::Number && loss.is_none());
    }
}

/// Weights of a layer have variance 1/(inputs + 1), within 4.5 standard errors; biases and g are 0.
#[test]
fn initial_weights_are_scaled_by_fan_in() {
    let model = build(&[300], 99, Output::Number, None);
    let mut theta = Array1::<f64>::from_elem(model.dim(), f64::NAN);
    model.draw_initial(&mut stream(3), theta.view_mut());
    let weights = theta.slice(s![..99 * 300]);
    let variance = weights.mapv(|w| w * w).mean().unwrap() * 100.0;
    assert!((variance - 1.0).abs() < 4.5 * (2.0 / (99.0 * 300.0_f64)).sqrt(), "{variance}");
    assert!(theta.slice(s![99 * 300..100 * 300]).iter().all(|&bias| bias == 0.0) && theta[model.dim() - 1] == 0.0);
}

#[test]
fn settings_read_well_and_bad_ones_are_refused() {
    let read = |text: &str| toml::from_str::<NetworkSettings>(text);
    assert_eq!(read("hidden = [100]\nloss = \"gaussian\"").unwrap().loss, Some(Loss::Gaussian));
    let huber = read("loss = { huber = 1.5 }").unwrap();
    assert_eq!(huber.loss, Some(Loss::Huber(1.5)));
    assert_eq!(read(&toml::to_string(&huber).unwrap()).unwrap(), huber);
    assert_eq!(read(&toml::to_string(&NetworkSettings::default()).unwrap()).unwrap(), NetworkSettings::default());
    assert!(read("widths = [3]").is_err());

    let build = |text: &str, output| read(text).unwrap().build(3, output);
    assert!(matches!(build("hidden = [4, 0]", Output::Number), Err(ModelError::EmptyLayer { layer: 2 })));
    assert!(matches!(build("prior_precision = -1.0", Output::Number), Err(ModelError::OutOfRange { .. })));
    assert!(matches!(build("loss = { huber = 0.0 }", Output::Number), Err(ModelError::OutOfRange { setting: "loss.huber", .. })));
    assert!(matches!(build("loss = \"gaussian\"", Output::Classes(3)), Err(ModelError::Loss { loss: "gaussian", .. })));
    assert!(matches!(build("loss = \"cross_entropy\"", Output::Number), Err(ModelError::Loss { .. })));
    assert!(matches!(build("", Output::Classes(1)), Err(ModelError::Classes { classes: 1, .. })));
    assert!(matches!(build("", Output::Nothing), Err(ModelError::Target { .. })));
    assert!(matches!(NetworkSettings::default().build(0, Output::Number), Err(ModelError::NoFeatures)));
}
