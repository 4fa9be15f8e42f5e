//! The No-U-Turn Sampler against exact posteriors, in the coordinates of the model and in whitened ones.

#![allow(clippy::unwrap_used)]

use super::normals;
use crate::recording::Recording;
use mpibayes::cluster::JobOptions;
use mpibayes::data::Shard;
use mpibayes::methods::chains::hmc::HmcSettings;
use mpibayes::methods::{MethodSettings, Problem};
use mpibayes::metrics::convergence::estimates;
use mpibayes::models::linear::LinearSettings;
use mpibayes::models::regression::prior::Prior;
use mpibayes::models::{DataSchema, Output, Whitened, Whitening};
use mpibayes::random::Seed;
use ndarray::{Array1, Array2, Array3, Axis, s};
use ndarray_linalg::{InverseC, Solve};
use std::sync::Arc;

const FEATURES: usize = 4;
const ROWS: usize = 60;
const AGENTS: u32 = 3;
const CHAINS: usize = 4;
const DRAWS: usize = 2000;
/// Standard deviations of the features: scales of the posterior that differ by 1,000.
const SCALES: [f64; FEATURES] = [1e-2, 0.3, 1.0, 10.0];
/// The level at which a value of eight is a false alarm in 5e-5 of seeds.
const Z: f64 = 4.5;

fn rows() -> (Array2<f64>, Array1<f64>) {
    let mut x = normals(ROWS, FEATURES, 1) * &Array1::from(SCALES.to_vec());
    // Two features that are close to each other.
    let mixed = &x.column(2) + &(0.09 * &x.column(3));
    x.column_mut(2).assign(&mixed);
    let y = x.dot(&Array1::from(vec![30.0, -1.0, 0.5, 0.1])) + normals(1, ROWS, 2).row(0);
    (x, y)
}

/// A linear regression with known noise: its posterior is Gaussian.
fn problem() -> Problem<f64> {
    let (x, y) = rows();
    let settings = LinearSettings {
        intercept: false,
        prior: Prior::Normal(1e-3_f64.powf(-0.5)),
        noise_variance: Some(1.0),
        ..LinearSettings::default()
    };
    let model = settings.build(&DataSchema::new(FEATURES, Output::Number)).unwrap();
    let shard = move |agent: u32| {
        let range = s![agent as usize * 20..(agent as usize + 1) * 20, ..];
        Ok(Shard::new(x.slice(range).to_owned(), y.slice(s![agent as usize * 20..(agent as usize + 1) * 20]).to_owned()))
    };
    Problem { model: Arc::new(model), agents: AGENTS, temperature: 1.0, shard: Arc::new(shard) }
}

/// The exact mean and covariance.
fn exact() -> (Array1<f64>, Array2<f64>) {
    let (x, y) = rows();
    let precision = x.t().dot(&x) + Array2::<f64>::eye(FEATURES) * 1e-3;
    (precision.solve(&x.t().dot(&y)).unwrap(), precision.invc().unwrap())
}

/// The draws of all chains.
fn draws(problem: Problem<f64>, burn_in: u64) -> Array3<f64> {
    let settings = HmcSettings { chains: CHAINS as u32, draws: DRAWS as u64, burn_in, ..HmcSettings::default() };
    settings.check().unwrap();
    let recording = Recording::of(settings.hmc(problem), JobOptions { threads: 2, ..JobOptions::new(Seed(3)) }).unwrap();
    Array3::from_shape_vec((CHAINS, DRAWS, FEATURES), recording.values("posterior")).unwrap()
}

/// The largest z-scores of the means and of the mean squares about the exact means; standard errors follow from effective sample sizes.
fn z_scores(draws: &Array3<f64>) -> (f64, f64) {
    let (mean, covariance) = exact();
    let worst = |values: Array3<f64>, exact: Array1<f64>| {
        let estimated = estimates(values.view());
        let z = estimated
            .iter()
            .zip(exact)
            .map(|(estimate, exact)| ((estimate.mean - exact) / estimate.convergence.unwrap().mcse_mean).abs());
        z.fold(0.0, f64::max)
    };
    let about = draws - &mean.view().insert_axis(Axis(0)).insert_axis(Axis(0));
    (worst(draws.clone(), mean), worst(about.mapv(|value| value * value), covariance.diag().to_owned()))
}

#[test]
fn draws_have_the_exact_moments_where_scales_differ_by_a_thousand() {
    let (means, squares) = z_scores(&draws(problem(), 1000));
    assert!(means < Z && squares < Z, "{means} {squares}");
    // Control: a posterior with variances that are 15 % larger is told apart.
    let wide = draws(Problem { temperature: 1.15, ..problem() }, 1000);
    let (_, squares) = z_scores(&wide);
    assert!(squares > Z, "{squares}");
}

#[test]
fn whitened_coordinates_give_the_same_posterior_with_few_steps() {
    let (mean, covariance) = exact();
    // Any L will do: here one that knows the scales, but not the correlations.
    let factor = Array2::from_diag(&covariance.diag().mapv(f64::sqrt));
    let whitening = Whitening::new(mean.view(), factor.view(), Array1::zeros(FEATURES).view());
    let plain = problem();
    let model = Arc::new(Whitened::new(plain.model.clone(), whitening));
    let (means, squares) = z_scores(&draws(Problem { model, ..plain }, 1000));
    assert!(means < Z && squares < Z, "{means} {squares}");
}
