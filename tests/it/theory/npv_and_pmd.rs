//! Centralized baselines against exact theory: nonparametric variational inference on Gaussians, and particle mirror descent, whose first
//! full step is importance sampling from the prior.

#![allow(clippy::unwrap_used)]

use crate::one_dimensional::{Line, share};
use crate::recording::{Recording, run};
use mpibayes::cluster::{Context, Method, Outbox, Server};
use mpibayes::data::Shard;
use mpibayes::methods::Problem;
use mpibayes::methods::particles::pmd::Pmd;
use mpibayes::methods::variational::npv::Npv;
use mpibayes::models::gaussian_mean::{GaussianMeanSettings, PerFeature};
use mpibayes::models::linear::LinearSettings;
use mpibayes::models::regression::prior::Prior;
use mpibayes::models::{Batch, DataSchema, Model, Output, Scratch};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2, Axis};
use std::sync::Arc;

const SEED: u64 = 1;
const VARIANCES: [f64; 3] = [0.5, 2.0, 8.0];
const PRIOR_PRECISION: f64 = 0.7;
const ROWS: usize = 6;

fn normals(rows: usize, columns: usize) -> Array2<f64> {
    let mut x = vec![0.0; rows * columns];
    Seed(21).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut x);
    Array2::from_shape_vec((rows, columns), x).unwrap() + 0.5
}

/// The mean of a Gaussian in three dimensions: the problem, and means and variances of its posterior.
fn gaussian() -> (Problem<f64>, Array1<f64>, Array1<f64>) {
    let variance = PerFeature::Each(VARIANCES.to_vec());
    let settings = GaussianMeanSettings { variance, prior_precision: PRIOR_PRECISION, ..GaussianMeanSettings::default() };
    let (model, x) = (settings.build(3).unwrap(), normals(ROWS, 3));
    let (mean, variance) = model.posterior(x.view(), 1.0).unwrap();
    (problem(model, x, Array1::zeros(ROWS)), mean, variance)
}

fn problem(model: impl Model<f64> + 'static, x: Array2<f64>, y: Array1<f64>) -> Problem<f64> {
    let shard = move |_| Ok(Shard::new(x.clone(), y.clone()));
    Problem { model: Arc::new(model), agents: 1, temperature: 1.0, shard: Arc::new(shard) }
}

fn npv(problem: Problem<f64>, rounds: u64, components: usize, particles: usize) -> Npv<f64> {
    Npv { problem, rounds, components, iterations: 100, particles }
}

/// One round of these steps.
fn pmd(problem: Problem<f64>, particles: usize, steps: u64, gain: f64) -> Pmd<f64> {
    Pmd { problem, rounds: 1, particles, steps, batch: ROWS, gain, jitter: 0.002 }
}

/// The last value of a column of a table.
fn last(recording: &Recording, table: &str, column: &str) -> f64 {
    let row = recording.rows.iter().rev().find(|row| row.table == table).unwrap();
    row.values.iter().find(|(name, _)| name == column).unwrap().1
}

/// The mean of a mixture with one component, from a draw with known noise.
fn fitted_mean(recording: &Recording, rounds: u64) -> Array1<f64> {
    let deviation = last(recording, "components", "variance").sqrt();
    let mut z = vec![0.0; recording.particles().ncols()];
    Seed(SEED).stream(Who::Server, rounds, Purpose::Noise).normals(&mut z);
    &recording.particles().row(0) - &(Array1::from(z) * deviation)
}

fn largest(off: &Array1<f64>) -> f64 {
    off.iter().fold(0.0, |worst, off| off.abs().max(worst))
}

/// One component on a Gaussian posterior of precision Λ, diagonal or not: ELBO₁ has its maximum at the mean, and ELBO₂ at σ² = d/tr Λ, where it
/// is d/2 log(4πσ²) + f(μ) − d/2.
#[test]
fn one_component_is_exact_on_gaussians() {
    let (problem_of_mean, mean, variance) = gaussian();
    let recording = run(npv(problem_of_mean.clone(), 1, 1, 1), SEED);
    // L-BFGS ends when its line search finds no lower point: the error is the square root of rounding.
    let off = largest(&(fitted_mean(&recording, 1) - &mean));
    assert!(off < 1e-6, "{off}");
    let exact = 3.0 / variance.mapv(f64::recip).sum();
    let found = last(&recording, "components", "variance");
    // Differences of a linear score have the error of rounding divided by their step of 6e-6.
    assert!((found / exact - 1.0).abs() < 1e-8, "{found} {exact}");
    assert!((found / (variance.sum() / 3.0) - 1.0).abs() > 0.1, "control: the mean of variances differs");
    let model = &problem_of_mean.model;
    let at = mean.clone().insert_axis(Axis(0));
    let (mut prior, mut loss) = ([0.0], [0.0]);
    model.log_prior(at.view(), &mut prior);
    let x = normals(ROWS, 3);
    let y = Array1::zeros(ROWS);
    model.loss(at.view(), Batch { x: x.view(), y: y.view() }, &mut loss, &mut Scratch::new());
    let bound = 1.5 * (4.0 * std::f64::consts::PI * exact).ln() + prior[0] - loss[0] - 1.5;
    assert!((last(&recording, "history", "elbo") - bound).abs() < 1e-8);

    let features = 4;
    let mut x = normals(60, features);
    for mut row in x.rows_mut() {
        let common = row[0];
        row.iter_mut().skip(1).for_each(|x| *x = 0.5 * *x + 0.5 * common);
    }
    let y = x.dot(&ndarray::array![0.5, -1.0, 0.25, 2.0]);
    let model = LinearSettings {
        prior: Prior::Normal(2_f64.powf(-0.5)),
        noise_variance: Some(1.0),
        intercept: false,
        ..LinearSettings::default()
    };
    let model = model.build(&DataSchema::new(features, Output::Number)).unwrap();
    let (mean, _) = model.posterior(Batch { x: x.view(), y: y.view() }, 1.0).unwrap();
    let trace = x.mapv(|x| x * x).sum() + 2.0 * features as f64;
    let recording = run(npv(problem(model, x, y), 1, 1, 1), SEED);
    let off = largest(&(fitted_mean(&recording, 1) - &mean));
    assert!(off < 1e-6, "{off}");
    let found = last(&recording, "components", "variance") * trace / features as f64;
    assert!((found - 1.0).abs() < 1e-8, "{found}");
}

/// Four components have a higher bound than one, and spread along the widest direction of a Gaussian.
#[test]
fn more_components_raise_the_bound() {
    let bound = |components, rounds| last(&run(npv(gaussian().0, rounds, components, 8), SEED), "history", "elbo");
    let one = bound(1, 1);
    let four: Vec<f64> = [1, 2, 4, 8].map(|rounds| bound(4, rounds)).to_vec();
    assert!(four[3] > one + 0.1, "{one} {four:?}");
    let recording = run(npv(gaussian().0, 8, 4, 4000), SEED);
    let spread = recording.particles().var_axis(Axis(0), 0.0);
    assert!(spread[2] > 1.5 * spread[0], "{spread}");
}

/// With γ = 1 and all rows, the first step has no jitter: particles are prior draws, weighted by their likelihood.
#[test]
fn the_first_full_step_is_importance_sampling_from_the_prior() {
    const N: usize = 500;
    let (problem, ..) = gaussian();
    let mut prior = Array2::<f64>::zeros((N, 3));
    for (n, row) in (0..).zip(prior.rows_mut()) {
        problem.model.draw_initial(&mut Seed(SEED).stream(Who::Run, n, Purpose::Initial), row);
    }
    let (x, y, mut loss) = (normals(ROWS, 3), Array1::zeros(ROWS), vec![0.0; N]);
    problem.model.loss(prior.view(), Batch { x: x.view(), y: y.view() }, &mut loss, &mut Scratch::new());
    let weights = |gamma: f64| {
        let weights = Array1::from_iter(loss.iter().map(|loss| (-gamma * loss).exp()));
        &weights / weights.sum()
    };
    let counts = |recording: &Recording| {
        let taken = |draw: ndarray::ArrayView1<f64>| recording.particles().rows().into_iter().filter(|row| *row == draw).count();
        prior.rows().into_iter().map(taken).collect::<Vec<usize>>()
    };
    // γ = a/(N · 101) with N rows.
    for gamma in [1.0, 0.25] {
        let recording = run(pmd(problem.clone(), N, 1, gamma * 101.0 * ROWS as f64), SEED);
        let exact = weights(gamma);
        let effective = last(&recording, "history", "effective_particles") * exact.mapv(|w| w * w).sum();
        assert!((effective - 1.0).abs() < 1e-10 && (last(&recording, "history", "gamma") - gamma).abs() < 1e-12, "{effective}");
        let counts = counts(&recording);
        assert_eq!(counts.iter().sum::<usize>(), N, "particles are prior draws, unmoved");
        for (taken, weight) in counts.iter().zip(&exact) {
            assert!((*taken as f64 - N as f64 * weight).abs() < 1.0, "{taken} {weight}");
        }
        // Control: these are not the weights of another γ.
        let other = weights(1.25 - gamma);
        assert!(counts.iter().zip(&other).any(|(taken, weight)| (*taken as f64 - N as f64 * weight).abs() > 2.0));
    }
    // Control: from the second step on, particles are drawn from the density estimate, and move.
    let recording = run(pmd(problem.clone(), N, 2, 1e9), SEED);
    assert_eq!(counts(&recording).iter().sum::<usize>(), 0);
}

/// With γ = 1, every step is importance sampling of the posterior from the last step's density estimate. The means of three coordinates are
/// within 4.5 standard errors, computed from the effective number of particles (probability of a false alarm 2e-5).
#[test]
fn full_steps_stay_at_the_posterior() {
    let (problem, mean, variance) = gaussian();
    for steps in [1, 4] {
        let recording = run(pmd(problem.clone(), 2000, steps, 1e9), SEED);
        let effective = last(&recording, "history", "effective_particles");
        let found = recording.particles().mean_axis(Axis(0)).unwrap();
        for i in 0..3 {
            let error = (variance[i] / effective).sqrt();
            assert!((found[i] - mean[i]).abs() < 4.5 * error, "{steps} steps: {} {} ± {error}", found[i], mean[i]);
        }
        // Control: the prior's mean is 0.
        assert!(mean[0].abs() > 4.5 * (variance[0] / effective).sqrt(), "{mean}");
    }
}

/// Both methods are centralized: with several agents they would use the data of the first only.
#[test]
fn several_agents_are_refused() {
    fn refusal<M: Method>(method: M) -> String {
        let mut cx = Context::detached(Seed(SEED));
        method.server(None).unwrap().start(&mut Outbox::default(), &mut cx).unwrap_err().to_string()
    }
    let line = Line { initial: |z| z, prior_score: |x| -x, gradient: |_, _| 0.0 };
    let problem = share(line, 2, 1.0, |_| vec![0.0]);
    for error in [refusal(npv(problem.clone(), 1, 1, 1)), refusal(pmd(problem, 2, 1, 1.0))] {
        assert!(error.contains("agents: must be 1 for "), "{error}");
    }
}
