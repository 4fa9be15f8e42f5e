//! SVGD and DSVGD against exact theory: reductions to each other, closed forms, and distributed variational inference on a grid.

#![allow(clippy::unwrap_used)]

mod common;
mod oracle;

use common::{Line, run, share};
use mpibayes::data::Shard;
use mpibayes::kernels::adagrad::Optimizer;
use mpibayes::kernels::kde::{Kde, KdeMode};
use mpibayes::kernels::rbf::Bandwidth;
use mpibayes::kernels::svgd::{Kernel, Settings};
use mpibayes::methods::dsvgd::{Dsvgd, PriorConvention};
use mpibayes::methods::problem::Problem;
use mpibayes::methods::svgd::Svgd;
use mpibayes::models::gaussian::FactorProductSettings;
use ndarray::{Array2, Axis, concatenate};
use oracle::{Grid, GridDvi, log_normal, toy_gradient, toy_loss};
use std::sync::Arc;

const LAMBDA: f64 = 0.55;

fn settings(optimizer: Optimizer, mode: KdeMode) -> Settings {
    Settings { kernel: Kernel::Rbf(Bandwidth::Repository), optimizer, kde: Kde { mode, bandwidth: LAMBDA } }
}

/// The one-dimensional example of Kassab & Simeone with prior N(0, 1).
fn toy() -> Line {
    Line { initial: |z| z, prior_score: |x| -x, gradient: toy_gradient }
}

fn own_number(agent: u32) -> Vec<f64> {
    vec![f64::from(agent)]
}

fn dsvgd(
    problem: Problem<f64>,
    particles: usize,
    rounds: u64,
    steps: u64,
    stein: Settings,
    prior: PriorConvention,
) -> Array2<f64> {
    let method = Dsvgd { problem, particles, rounds, local_steps: steps, distillation_steps: steps, batch: 100, prior, stein };
    run(method, 1).particles
}

fn svgd(problem: Problem<f64>, particles: usize, rounds: u64, steps: u64, stein: Settings) -> Array2<f64> {
    run(Svgd { problem, particles, rounds, steps, batch: 100, stein }, 1).particles
}

/// With one agent the first cavity is q/t = 1 exactly, in either convention, so that the first round is SVGD to the bit.
#[test]
fn one_agents_first_round_is_svgd_bit_for_bit() {
    let everything = |_| vec![0.0, 1.0];
    let stein = settings(Optimizer::default(), KdeMode::default());
    let central = svgd(share(toy(), 1, 1.0, everything), 20, 1, 50, stein);
    for prior in [PriorConvention::Absorbed, PriorConvention::Pure] {
        let distributed = dsvgd(share(toy(), 1, 1.0, everything), 20, 1, 50, stein, prior);
        assert_eq!(central, distributed, "{prior:?}");
    }
    // The control: the second round has a cavity, and the steps differ.
    let central = svgd(share(toy(), 1, 1.0, everything), 20, 2, 50, stein);
    assert_ne!(central, dsvgd(share(toy(), 1, 1.0, everything), 20, 2, 50, stein, PriorConvention::Absorbed));
}

/// Spread over agents, SVGD sums the same score: equal up to the rounding of one sum in another order.
#[test]
fn svgd_spread_over_agents_is_svgd() {
    let stein = settings(Optimizer::Plain { step: 0.05 }, KdeMode::None);
    let one = svgd(share(toy(), 1, 1.5, |_| vec![0.0, 1.0]), 30, 2, 40, stein);
    let two = svgd(share(toy(), 2, 1.5, own_number), 30, 2, 40, stein);
    assert!((&one - &two).iter().all(|difference| difference.abs() < 1e-10), "{:e}", (&one - &two).mapv(f64::abs).sum());
    let other = svgd(share(toy(), 2, 1.0, own_number), 30, 2, 40, stein);
    assert!((&one - &other).iter().any(|difference| difference.abs() > 1e-3), "the temperature must show");
}

/// One particle, quadratic losses a_k (θ − m_k)²/2, prior N(μ, 1/p), absorbed convention, exact densities: the fixed point is
/// (K p μ + Σ a_k m_k − (K − 1) θ0/λ²) / (K p + Σ a_k − (K − 1)/λ²), because distillation moves local and global particle alike.
#[test]
fn one_particle_reaches_the_closed_form() {
    const A: [f64; 3] = [4.0, 6.0, 5.0];
    const M: [f64; 3] = [-1.0, 2.0, 0.5];
    const P: f64 = 2.0;
    const MU: f64 = 0.3;
    const START: f64 = 0.9;
    let model = || Line { initial: |_| START, prior_score: |x| -P * (x - MU), gradient: |k, x| A[k] * (x - M[k]) };
    let stein = settings(Optimizer::Plain { step: 0.1 }, KdeMode::Lse { floor: 0.0 });
    let theta = dsvgd(share(model(), 3, 1.0, own_number), 1, 120, 300, stein, PriorConvention::Absorbed)[(0, 0)];
    let force: f64 = 3.0 * P * MU + A.iter().zip(M).map(|(a, m)| a * m).sum::<f64>();
    let (extra, stiffness) = (2.0 / (LAMBDA * LAMBDA), 3.0 * P + A.iter().sum::<f64>());
    let expected = (force - extra * START) / (stiffness - extra);
    let posterior_mode = (P * MU + A.iter().zip(M).map(|(a, m)| a * m).sum::<f64>()) / (P + A.iter().sum::<f64>());
    assert!((theta - expected).abs() < 1e-6, "{theta} against {expected}");
    assert!((theta - posterior_mode).abs() > 0.01, "the control: this fixed point is not the mode {posterior_mode}");
}

/// The grid and everything on it: agent k's loss, the prior's logarithm.
fn dvi(alpha: f64) -> GridDvi {
    let grid = Grid::line(-12.0, 12.0, 2400);
    let losses = (0..2).map(|k| grid.map(|x| toy_loss(k, x[0]))).collect();
    let prior = grid.map(|x| log_normal(x[0], 0.0, 1.0));
    GridDvi::new(grid, prior, losses, alpha)
}

/// KL of the particles' density estimate from the posterior of the toy.
fn toy_kl(particles: &Array2<f64>, alpha: f64) -> f64 {
    let dvi = dvi(alpha);
    let kde = Kde { mode: KdeMode::Lse { floor: 0.0 }, bandwidth: LAMBDA };
    dvi.grid().kl_of_particles(kde, particles.view(), &dvi.optimum())
}

/// N = 200, L = L' = 200: reference runs of the paper's setting give KL .036 .028 .036 .020 in rounds 3 to 6, and even exact draws
/// smoothed by λ have 0.034. The seed is fixed; across seeds single rounds stay within [0.015, 0.06].
#[test]
fn dsvgd_reaches_the_toys_posterior() {
    let stein = settings(Optimizer::default(), KdeMode::default());
    for rounds in 3..=6 {
        let particles = dsvgd(share(toy(), 2, 1.0, own_number), 200, rounds, 200, stein, PriorConvention::Absorbed);
        let kl = toy_kl(&particles, 1.0);
        assert!((0.015..=0.06).contains(&kl), "round {rounds}: KL {kl}");
    }
    // The control: the first agent alone knows nothing of the left mode.
    let particles = dsvgd(share(toy(), 2, 1.0, own_number), 200, 1, 200, stein, PriorConvention::Absorbed);
    assert!(toy_kl(&particles, 1.0) > 0.1);
}

/// Central SVGD ends at KL 0.033 ± 0.004: the smoothing by λ, not the particles, is what is left.
#[test]
fn svgd_reaches_the_toys_posterior() {
    let stein = settings(Optimizer::default(), KdeMode::None);
    let kl = toy_kl(&svgd(share(toy(), 2, 1.0, own_number), 200, 1, 800, stein), 1.0);
    assert!((kl - 0.033).abs() < 0.004, "KL {kl}");
}

/// At temperature 2 the rounds follow distributed variational inference with that temperature, and not with temperature 1.
#[test]
fn dsvgd_follows_distributed_variational_inference_at_temperature_two() {
    let stein = settings(Optimizer::default(), KdeMode::default());
    let kde = Kde { mode: KdeMode::Lse { floor: 0.0 }, bandwidth: LAMBDA };
    let (mut right, mut wrong) = (dvi(2.0), dvi(1.0));
    for round in 1..=2 {
        right.visit(round as usize - 1);
        wrong.visit(round as usize - 1);
        let particles = dsvgd(share(toy(), 2, 2.0, own_number), 200, round, 200, stein, PriorConvention::Absorbed);
        let kl = |dvi: &GridDvi| dvi.grid().kl_of_particles(kde, particles.view(), &dvi.q);
        let (right, wrong) = (kl(&right), kl(&wrong));
        // The estimate's own smoothing leaves up to 0.034 at temperature 1, and less of these flatter densities.
        assert!(right < 0.034 && right < 0.6 * wrong, "round {round}: KL {right} from temperature 2, {wrong} from temperature 1");
    }
}

/// The two-dimensional example of Kassab & Simeone: its two factors on one agent, or one on each of two.
fn plane(agents: u32) -> Problem<f64> {
    let model = FactorProductSettings::mixture_2d().build().unwrap();
    let (x, y) = model.data::<f64>();
    let shard = move |agent: u32| {
        let own: Vec<usize> = if agents == 1 { vec![0, 1] } else { vec![agent as usize] };
        Ok(Shard::new(x.select(Axis(0), &own), y.select(Axis(0), &own)))
    };
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(shard) }
}

/// How far the mean of particles is from that of the exact posterior, and the share of them in its minor mode: within Mahalanobis
/// distance 1.5 of N((−1.40061, −1.29388), [0.195868 0.121736; 0.121736 0.480346]).
fn moments(particles: &Array2<f64>) -> (f64, f64) {
    let mean = particles.mean_axis(Axis(0)).unwrap();
    let far = (mean[0] - 0.162_561).abs().max((mean[1] + 0.305_123).abs());
    let [a, b, c] = [0.195_868, 0.121_736, 0.480_346];
    let near = particles.rows().into_iter().filter(|x| {
        let (u, v) = (x[0] + 1.400_61, x[1] + 1.293_88);
        (c * u * u - 2.0 * b * u * v + a * v * v) / (a * c - b * b) < 1.5 * 1.5
    });
    (far, near.count() as f64 / particles.nrows() as f64)
}

/// N = 200, five rounds of L = L' = 200, particles of five seeds together: of exact draws 19.6 % lie in the minor mode, and the mean of
/// one run of DSVGD is 0.13 ± 0.07 off, depending on whom it visited last. Over seeds one run in five misses the 0.2 that five
/// together keep with room to spare.
#[test]
fn both_modes_of_the_plane_are_found() {
    let stein = settings(Optimizer::default(), KdeMode::default());
    let pool = |one: &dyn Fn(u64) -> Array2<f64>| {
        let runs: Vec<_> = (1..=5).map(one).collect();
        moments(&concatenate(Axis(0), &runs.iter().map(|particles| particles.view()).collect::<Vec<_>>()).unwrap())
    };
    let (batch, prior) = (100, PriorConvention::Absorbed);
    let svgd = Svgd { problem: plane(1), particles: 200, rounds: 1, steps: 1000, batch, stein };
    let (far, minor) = pool(&|seed| run(svgd.clone(), seed).particles);
    assert!(far < 0.1 && (0.12..=0.28).contains(&minor), "SVGD: mean off by {far}, {minor} in the minor mode");
    let (problem, particles) = (plane(2), 200);
    let dsvgd = Dsvgd { problem, particles, rounds: 5, local_steps: 200, distillation_steps: 200, batch, prior, stein };
    let (far, minor) = pool(&|seed| run(dsvgd.clone(), seed).particles);
    assert!(far < 0.2 && (0.12..=0.28).contains(&minor), "DSVGD: mean off by {far}, {minor} in the minor mode");
    // The control: one visit knows the first agent's factor alone.
    let (far, minor) = pool(&|seed| run(Dsvgd { rounds: 1, ..dsvgd.clone() }, seed).particles);
    assert!(far > 0.5 && minor > 0.28, "one visit: mean off by {far}, {minor} in the minor mode");
}
