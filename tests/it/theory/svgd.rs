//! SVGD and the exact inference on a grid, with which other tests compare, against densities with known moments.

#![allow(clippy::unwrap_used)]

use crate::grid::{Grid, GridDvi, log_normal, toy_gradient, toy_loss};
use mpibayes::kernels::kde::{Kde, KdeMode};
use mpibayes::kernels::optimizer::Optimizer;
use mpibayes::kernels::rbf::Bandwidth;
use mpibayes::kernels::svgd::{Kernel, Settings, SvgdLoop};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::Array2;

fn toy(alpha: f64) -> GridDvi {
    let grid = Grid::line(-12.0, 12.0, 4800);
    let prior = grid.map(|x| log_normal(x[0], 0.0, 1.0));
    let losses = (0..2).map(|k| grid.map(|x| toy_loss(k, x[0]))).collect();
    GridDvi::new(grid, prior, losses, alpha)
}

fn max_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn one_sweep_of_exact_inference_is_the_posterior() {
    for alpha in [1.0, 2.0] {
        let mut dvi = toy(alpha);
        let optimum = dvi.optimum();
        dvi.visit(0);
        // Control: half a sweep is not enough.
        assert!(max_difference(&dvi.q, &optimum) > 0.1);
        dvi.visit(1);
        assert!(max_difference(&dvi.q, &optimum) < 1e-10, "{}", max_difference(&dvi.q, &optimum));
        // Further visits change nothing.
        dvi.visit(0);
        assert!(max_difference(&dvi.q, &optimum) < 1e-10);
        let mut parallel = toy(alpha);
        parallel.visit_all(&[0, 1]);
        assert!(max_difference(&parallel.q, &optimum) < 1e-10);
        parallel.visit_all(&[1]);
        assert!(max_difference(&parallel.q, &optimum) < 1e-10);
    }
}

#[test]
fn the_temperature_changes_the_posterior() {
    assert!(max_difference(&toy(1.0).optimum(), &toy(2.0).optimum()) > 0.1);
}

#[test]
fn the_toy_posterior_has_its_known_moments() {
    // A mixture: N(−11/9, 4/9) with weight 0.227316 and N(1, 4/7) with 0.772684.
    let dvi = toy(1.0);
    let (grid, q) = (dvi.grid(), dvi.optimum());
    let mean = grid.mean(&q, |x| x[0]);
    let variance = grid.mean(&q, |x| (x[0] - mean).powi(2));
    assert!((mean - 0.494853).abs() < 1e-6 && (variance - 1.409938).abs() < 1e-6, "{mean} {variance}");
    assert!((grid.kl(&grid.map(|x| log_normal(x[0], 0.0, 1.0)), &q) - 0.2163).abs() < 1e-4);
}

#[test]
fn one_sweep_in_two_dimensions() {
    let grid = Grid::square(-6.0, 6.0, 60);
    let prior = grid.map(|x| -0.5 * (x[0] * x[0] - x[0] * x[1] + x[1] * x[1]));
    let losses = vec![grid.map(|x| toy_loss(1, x[0] + x[1])), grid.map(|x| (x[0] - 1.0).powi(2))];
    let mut dvi = GridDvi::new(grid, prior, losses, 1.0);
    dvi.visit(1);
    dvi.visit(0);
    assert!(max_difference(&dvi.q, &dvi.optimum()) < 1e-10);
}

fn normals(n: usize, seed: u64) -> Array2<f64> {
    let mut theta = Array2::zeros((n, 1));
    Seed(seed).stream(Who::Run, 0, Purpose::Initial).normals(theta.as_slice_mut().unwrap());
    theta
}

fn toy_score(theta: &Array2<f64>, sign: f64) -> Array2<f64> {
    theta.mapv(|x| sign * (-x - toy_gradient(0, x) - toy_gradient(1, x)))
}

#[test]
fn svgd_reaches_the_smoothed_posterior() {
    let dvi = toy(1.0);
    let (optimum, kde) = (dvi.optimum(), Kde { mode: KdeMode::Lse { floor: 0.0 }, bandwidth: 0.55 });
    let run = |seed: u64, bandwidth: Bandwidth| {
        let mut theta = normals(200, seed);
        let mut stein = SvgdLoop::new(200, 1, Settings { kernel: Kernel::Rbf(bandwidth), ..Settings::default() });
        stein.begin(theta.view(), &[]);
        for _ in 0..800 {
            let score = toy_score(&theta, 1.0);
            stein.step(Some(score.view()), Some(theta.view_mut()));
        }
        dvi.grid().kl_of_particles(kde, theta.view(), &optimum)
    };
    // The exact posterior, smoothed by the estimate's bandwidth, has KL 0.0340, which is the least that particles can reach.
    for seed in 0..3 {
        let kl = run(seed, Bandwidth::Repository);
        assert!((kl - 0.033).abs() < 0.004, "{kl}");
    }
    // Control: with almost no repulsion, the particles collapse onto the modes.
    assert!((run(0, Bandwidth::Fixed(1e6)) - 0.033).abs() > 0.05);
}

#[test]
fn small_plain_steps_decrease_the_free_energy() {
    // Along the Stein direction KL falls at the rate of the discrepancy (Liu & Wang 2016, theorem 3.1); here KL of the density estimate,
    // far from the optimum, where its smoothing does not matter.
    let dvi = toy(1.0);
    let (optimum, kde) = (dvi.optimum(), Kde { mode: KdeMode::Lse { floor: 0.0 }, bandwidth: 0.55 });
    let run = |sign: f64| {
        let mut theta = normals(200, 1) * 0.5 - 3.0;
        let optimizer = Optimizer::Plain { step: 0.02 };
        let mut stein = SvgdLoop::new(200, 1, Settings { optimizer, ..Settings::default() });
        stein.begin(theta.view(), &[]);
        let mut kl = vec![dvi.grid().kl_of_particles(kde, theta.view(), &optimum)];
        for _ in 0..50 {
            stein.step(Some(toy_score(&theta, sign).view()), Some(theta.view_mut()));
            kl.push(dvi.grid().kl_of_particles(kde, theta.view(), &optimum));
        }
        kl
    };
    let kl = run(1.0);
    assert!(kl.windows(2).all(|pair| pair[1] < pair[0]), "{kl:?}");
    assert!(kl[50] < 0.8 * kl[0]);
    // Control: a score of the wrong sign.
    assert!(!run(-1.0).windows(2).all(|pair| pair[1] < pair[0]));
}
