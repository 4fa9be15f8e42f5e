//! Test helpers that compare gradients and curvatures of models with central differences.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::{Batch, CurvatureSupport, Model, Scratch};
use crate::random::{Purpose, Seed, Stream, Who};
use ndarray::{Array1, Array2, ArrayView2, Axis};

/// A stream for synthetic data.
pub fn stream(seed: u64) -> Stream {
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic)
}

/// A rows × columns matrix of normal numbers.
pub fn normals(stream: &mut Stream, rows: usize, columns: usize) -> Array2<f64> {
    let mut matrix = Array2::zeros((rows, columns));
    stream.normals(matrix.as_slice_mut().unwrap());
    matrix
}

/// Largest difference of `gradient` from central differences of `value`, relative to the largest entry of its row.
fn difference(theta: &Array2<f64>, gradient: &Array2<f64>, value: &dyn Fn(ArrayView2<f64>) -> Vec<f64>) -> f64 {
    let mut numeric = Array2::zeros(theta.raw_dim());
    for j in 0..theta.ncols() {
        let step = 1e-5;
        let (mut above, mut below) = (theta.clone(), theta.clone());
        above.column_mut(j).mapv_inplace(|t| t + step);
        below.column_mut(j).mapv_inplace(|t| t - step);
        for (n, (above, below)) in value(above.view()).into_iter().zip(value(below.view())).enumerate() {
            numeric[[n, j]] = (above - below) / (2.0 * step);
        }
    }
    let mut worst: f64 = 0.0;
    for (exact, numeric) in gradient.rows().into_iter().zip(numeric.rows()) {
        let scale = numeric.iter().fold(1e-3, |scale: f64, g| scale.max(g.abs()));
        for (a, b) in exact.iter().zip(numeric) {
            let error = (a - b).abs() / scale;
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    worst
}

/// The largest relative error of a model's prior score and of its loss gradient; also checks that the first overwrites and the second
/// adds with its weight.
pub fn gradient_errors(model: &dyn Model<f64>, theta: &Array2<f64>, batch: Batch<f64>, weight: f64) -> (f64, f64) {
    let n = theta.nrows();
    let mut prior = Array2::from_elem(theta.raw_dim(), f64::NAN);
    model.prior_score(theta.view(), prior.view_mut());
    let prior_error = difference(theta, &prior, &|theta| {
        let mut out = vec![f64::NAN; n];
        model.log_prior(theta, &mut out);
        out
    });

    let mut scratch = Scratch::new();
    let before = normals(&mut stream(99), n, theta.ncols());
    let mut score = before.clone();
    model.add_score(theta.view(), batch, weight, score.view_mut(), &mut scratch);
    let gradient = (&before - &score) / weight;
    let loss_error = difference(theta, &gradient, &|theta| {
        let mut out = vec![f64::NAN; n];
        model.loss(theta, batch, &mut out, &mut Scratch::new());
        out
    });
    (prior_error, loss_error)
}

/// The largest error of a model's curvature in the first `parameters` parameters, relative to the largest value of the particle, from
/// central differences of the gradient. The predictors must be linear in each of these parameters, so that the Gauss-Newton matrix and the
/// Hessian have the same diagonal. Also checks that the curvature is added with its weight.
pub fn curvature_error(model: &dyn Model<f64>, theta: &Array2<f64>, batch: Batch<f64>, weight: f64, parameters: usize) -> f64 {
    let before = normals(&mut stream(98), theta.nrows(), theta.ncols());
    let mut curvature = before.clone();
    assert_ne!(model.curvature_support(), CurvatureSupport::None);
    model.add_curvature(theta.view(), batch, weight, curvature.view_mut(), &mut Scratch::new());
    let curvature = (&curvature - &before) / weight;
    let gradient = |theta: &Array2<f64>| {
        let mut score = Array2::zeros(theta.raw_dim());
        model.add_score(theta.view(), batch, -1.0, score.view_mut(), &mut Scratch::new());
        score
    };
    let mut worst: f64 = 0.0;
    for j in 0..parameters {
        let (mut above, mut below) = (theta.clone(), theta.clone());
        above.column_mut(j).mapv_inplace(|t| t + 1e-5);
        below.column_mut(j).mapv_inplace(|t| t - 1e-5);
        let numeric = (gradient(&above).column(j).to_owned() - gradient(&below).column(j)) / 2e-5;
        for (n, numeric) in numeric.iter().enumerate() {
            let scale = curvature.row(n).iter().fold(1e-3, |scale: f64, c| scale.max(c.abs()));
            let error = (curvature[[n, j]] - numeric).abs() / scale;
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
    }
    worst
}

/// The largest error of a model's full curvature, relative to its largest entry, from central differences of the gradient summed over
/// particles. Also checks the diagonal, and that the curvature is added with its weight.
pub fn full_curvature_error(model: &dyn Model<f64>, theta: &Array2<f64>, batch: Batch<f64>, weight: f64) -> f64 {
    assert_eq!(model.curvature_support(), CurvatureSupport::Full);
    let d = theta.ncols();
    let before = normals(&mut stream(97), d, d);
    let (mut curvature, mut diagonals) = (before.clone(), Array2::zeros(theta.raw_dim()));
    model.add_full_curvature(theta.view(), batch, weight, curvature.view_mut(), &mut Scratch::new());
    model.add_curvature(theta.view(), batch, weight, diagonals.view_mut(), &mut Scratch::new());
    let curvature = (&curvature - &before) / weight;
    let diagonal = diagonals.sum_axis(Axis(0)) / weight;
    let gradient = |theta: &Array2<f64>| {
        let mut score = Array2::zeros(theta.raw_dim());
        model.add_score(theta.view(), batch, -1.0, score.view_mut(), &mut Scratch::new());
        score.sum_axis(Axis(0))
    };
    let scale = curvature.iter().fold(1e-3, |scale: f64, c| scale.max(c.abs()));
    let mut worst: f64 = 0.0;
    for j in 0..d {
        let (mut above, mut below) = (theta.clone(), theta.clone());
        above.column_mut(j).mapv_inplace(|t| t + 1e-5);
        below.column_mut(j).mapv_inplace(|t| t - 1e-5);
        let numeric = (gradient(&above) - gradient(&below)) / 2e-5;
        let errors = curvature.column(j).iter().zip(&numeric).map(|(c, numeric)| (c - numeric).abs()).collect::<Vec<_>>();
        for error in errors.into_iter().chain([(curvature[[j, j]] - diagonal[j]).abs()]) {
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error / scale) };
        }
    }
    worst
}

/// Particles from the model's initialization, with noise so that no coordinate has a special value.
pub fn particles(model: &dyn Model<f64>, n: usize, seed: u64) -> Array2<f64> {
    let mut stream = stream(seed);
    let mut theta = Array2::zeros((n, model.dim()));
    for row in theta.rows_mut() {
        model.draw_initial(&mut stream, row);
    }
    theta + 0.3 * normals(&mut stream, n, model.dim())
}

/// Checks that the gradients of all particles at once and of each particle alone agree up to rounding.
pub fn assert_particles_are_independent(model: &dyn Model<f64>, theta: &Array2<f64>, batch: Batch<f64>) {
    let mut scratch = Scratch::new();
    let mut together = Array2::zeros(theta.raw_dim());
    model.add_score(theta.view(), batch, 1.0, together.view_mut(), &mut scratch);
    let mut losses = vec![0.0; theta.nrows()];
    model.loss(theta.view(), batch, &mut losses, &mut scratch);
    for (n, together_loss) in losses.into_iter().enumerate() {
        let one = theta.slice(ndarray::s![n..n + 1, ..]);
        let mut alone = Array2::zeros(one.raw_dim());
        model.add_score(one, batch, 1.0, alone.view_mut(), &mut scratch);
        let scale = alone.iter().fold(1.0, |scale: f64, g| scale.max(g.abs()));
        for (a, b) in alone.iter().zip(together.row(n)) {
            assert!((a - b).abs() <= 1e-12 * scale, "particle {n}: {a} alone, {b} together");
        }
        let mut loss = [0.0];
        model.loss(one, batch, &mut loss, &mut scratch);
        assert!((loss[0] - together_loss).abs() <= 1e-12 * loss[0].abs().max(1.0));
    }
}

/// Checks that single precision agrees with double precision on the same inputs, up to `tolerance` relative to the largest entry.
pub fn assert_precisions_agree(
    single: &dyn Model<f32>,
    double: &dyn Model<f64>,
    theta: &Array2<f64>,
    batch: Batch<f64>,
    tolerance: f64,
) {
    let (x, y) = (batch.x.mapv(|v| v as f32), batch.y.mapv(|v| v as f32));
    let theta32 = theta.mapv(|v| v as f32);
    let (x64, y64, theta64) = (x.mapv(f64::from), y.mapv(f64::from), theta32.mapv(f64::from));
    let (mut score32, mut score64) = (Array2::zeros(theta.raw_dim()), Array2::zeros(theta.raw_dim()));
    single.prior_score(theta32.view(), score32.view_mut());
    double.prior_score(theta64.view(), score64.view_mut());
    single.add_score(theta32.view(), Batch { x: x.view(), y: y.view() }, 2.0, score32.view_mut(), &mut Scratch::new());
    double.add_score(theta64.view(), Batch { x: x64.view(), y: y64.view() }, 2.0, score64.view_mut(), &mut Scratch::new());
    let scale = score64.iter().fold(1.0, |scale: f64, g| scale.max(g.abs()));
    for (a, b) in score32.iter().zip(&score64) {
        assert!((f64::from(*a) - b).abs() <= tolerance * scale, "{a} in single, {b} in double precision");
    }
}

/// The predictive mean and density.
pub fn predict(model: &dyn Model<f64>, theta: &Array2<f64>, batch: Batch<f64>, outputs: usize) -> (Array2<f64>, Array1<f64>) {
    let rows = batch.x.nrows();
    let mut mean = Array2::from_elem((rows, outputs), f64::NAN);
    let mut density = Array1::from_elem(rows, f64::NAN);
    model.predict(theta.view(), batch, mean.view_mut(), density.as_slice_mut().unwrap(), &mut Scratch::new());
    (mean, density)
}

/// Mean and variance of p0 exp(−loss/temperature) for a model with one parameter, by sums over a grid: for a Gaussian well inside the
/// range they converge faster than any power of the step.
pub fn moments_on_a_grid(model: &dyn Model<f64>, batch: Batch<f64>, temperature: f64, range: std::ops::Range<f64>) -> (f64, f64) {
    let theta = Array1::linspace(range.start, range.end, 20_001).insert_axis(ndarray::Axis(1));
    let (mut prior, mut loss) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    model.log_prior(theta.view(), &mut prior);
    model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
    let logs: Vec<f64> = prior.iter().zip(&loss).map(|(prior, loss)| prior - loss / temperature).collect();
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - highest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let moment = |f: &dyn Fn(f64) -> f64| theta.iter().zip(&weights).map(|(t, weight)| f(*t) * weight / total).sum::<f64>();
    let mean = moment(&|t| t);
    (mean, moment(&|t| (t - mean).powi(2)))
}

mod controls {
    use super::*;
    use crate::models::{Output, Part};
    use ndarray::{ArrayViewMut1, ArrayViewMut2};

    /// A quadratic whose gradients can be made wrong.
    struct Quadratic {
        fault: f64,
    }

    impl Model<f64> for Quadratic {
        fn dim(&self) -> usize {
            3
        }
        fn parts(&self) -> Vec<Part> {
            vec![Part::new("position", &[3])]
        }
        fn output(&self) -> Output {
            Output::Nothing
        }
        fn draw_initial(&self, stream: &mut Stream, mut theta: ArrayViewMut1<f64>) {
            stream.normals(theta.as_slice_mut().unwrap());
        }
        fn log_prior(&self, theta: ArrayView2<f64>, out: &mut [f64]) {
            self.loss(theta, Batch { x: theta, y: theta.column(0) }, out, &mut Scratch::new());
        }
        fn prior_score(&self, theta: ArrayView2<f64>, mut score: ArrayViewMut2<f64>) {
            score.assign(&(&theta * (1.0 + self.fault)));
        }
        fn loss(&self, theta: ArrayView2<f64>, _: Batch<f64>, out: &mut [f64], _: &mut Scratch<f64>) {
            for (row, out) in theta.rows().into_iter().zip(out) {
                *out = 0.5 * row.dot(&row);
            }
        }
        fn add_score(
            &self,
            theta: ArrayView2<f64>,
            _: Batch<f64>,
            weight: f64,
            mut score: ArrayViewMut2<f64>,
            _: &mut Scratch<f64>,
        ) {
            score.scaled_add(-weight * (1.0 + self.fault), &theta);
        }
        fn predict(&self, _: ArrayView2<f64>, _: Batch<f64>, _: ArrayViewMut2<f64>, _: &mut [f64], _: &mut Scratch<f64>) {}
    }

    #[test]
    fn a_wrong_gradient_is_detected() {
        let empty = Array2::zeros((0, 1));
        let y = Array1::zeros(0);
        let batch = Batch { x: empty.view(), y: y.view() };
        let theta = particles(&Quadratic { fault: 0.0 }, 4, 1);
        let (prior, loss) = gradient_errors(&Quadratic { fault: 0.0 }, &theta, batch, 1.5);
        assert!(prior < 1e-8 && loss < 1e-8, "{prior} {loss}");
        let (prior, loss) = gradient_errors(&Quadratic { fault: 1e-4 }, &theta, batch, 1.5);
        assert!(prior > 1e-5 && loss > 1e-5, "{prior} {loss}");
    }
}
