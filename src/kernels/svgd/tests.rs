//! Tests of Stein directions against direct sums.

#![allow(clippy::unwrap_used)]

use super::super::kde::KdeMode;
use super::*;
use crate::random::{Purpose, Seed, Who};
use ndarray::array;

fn particles<F: Real>(n: usize, d: usize, seed: u64, spread: f64) -> Array2<F> {
    let mut theta = Array2::<f64>::zeros((n, d));
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(theta.as_slice_mut().unwrap());
    theta.mapv(|x| F::of(x * spread))
}

fn plain(kernel: Kernel, mode: KdeMode) -> Settings {
    // A step of 1 makes the move the direction itself.
    Settings { kernel, optimizer: Optimizer::Plain { step: 1.0 }, kde: Kde { mode, bandwidth: 0.55 } }
}

/// The direction straight from the formula, in f64; `repulsion` is 1, or −1 for a wrong sign.
fn naive(theta: &Array2<f64>, score: &Array2<f64>, frozen: &[KdeFactor<f64>], settings: Settings, repulsion: f64) -> Array2<f64> {
    let (n, d) = theta.dim();
    let mut total = score.clone();
    for set in frozen {
        settings.kde.add_score(set.sign.value(), set.particles, theta.view(), total.view_mut());
    }
    let h = match settings.kernel {
        Kernel::Rbf(bandwidth) => bandwidth.of(theta.view()),
        Kernel::Linear => f64::NAN,
    };
    let mut phi = Array2::zeros((n, d));
    for i in 0..n {
        for j in 0..n {
            let difference = &theta.row(i) - &theta.row(j);
            let (k, gradient) = match settings.kernel {
                Kernel::Rbf(_) => {
                    let k = (-difference.dot(&difference) / h).exp();
                    (k, &difference * (2.0 / h * k))
                }
                Kernel::Linear => (theta.row(i).dot(&theta.row(j)) + 1.0, theta.row(i).to_owned()),
            };
            let term = &total.row(j) * k + gradient * repulsion;
            phi.row_mut(i).scaled_add(1.0 / n as f64, &term);
        }
    }
    phi
}

fn direction<F: Real>(theta: &Array2<F>, score: Option<&Array2<F>>, frozen: &[KdeFactor<F>], settings: Settings) -> Array2<F> {
    let mut stein = SvgdLoop::new(theta.nrows(), theta.ncols(), settings);
    stein.begin(theta.view(), frozen);
    let mut moved = theta.clone();
    stein.step(score.map(|s| s.view()), Some(moved.view_mut()));
    moved - theta
}

fn largest(matrix: &Array2<f64>) -> f64 {
    matrix.iter().fold(0.0, |top, x| f64::max(top, x.abs()))
}

fn modes() -> [KdeMode; 4] {
    [KdeMode::Lse { floor: 0.0 }, KdeMode::Lse { floor: 1e-9 }, KdeMode::AuthorsCompat, KdeMode::None]
}

#[test]
fn direction_is_the_formula() {
    // Shapes on both sides of n = d, of the panel and of the block.
    for (n, d) in [(1, 3), (2, 1), (6, 55), (20, 9), (70, 3), (5, 2500), (70, 71)] {
        let spread = 1.5 / (d as f64).sqrt();
        let theta = particles::<f64>(n, d, 1, spread);
        let score = particles::<f64>(n, d, 2, 1.0);
        let sets: Vec<Array2<f64>> = (3..6).map(|seed| particles(n + 1, d, seed, spread)).collect();
        let [q, t, new] = [sets[0].view(), sets[1].view(), sets[2].view()];
        let none = Array2::zeros((n, d));
        for mode in modes() {
            for kernel in [Kernel::Rbf(Bandwidth::Repository), Kernel::Rbf(Bandwidth::Paper), Kernel::Linear] {
                let settings = plain(kernel, mode);
                let plain = (Some(&score), vec![]);
                let cavity = (Some(&score), vec![KdeFactor::plus(q), KdeFactor::minus(t)]);
                let distillation = (None, vec![KdeFactor::plus(new), KdeFactor::plus(t), KdeFactor::minus(q)]);
                for (s, frozen) in [plain, cavity, distillation] {
                    let moved = direction(&theta, s, &frozen, settings);
                    let expected = naive(&theta, s.unwrap_or(&none), &frozen, settings, 1.0);
                    let error = largest(&(&moved - &expected));
                    assert!(error <= 1e-12 * largest(&expected).max(1.0), "{n}×{d} {mode:?} {kernel:?}: {error}");
                    if n > 1 && kernel != Kernel::Linear {
                        // Negative control: the repulsion's sign matters to this comparison.
                        let wrong = naive(&theta, s.unwrap_or(&none), &frozen, settings, -1.0);
                        assert!(largest(&(&moved - &wrong)) > 1e-6);
                    }
                }
            }
        }
    }
}

#[test]
fn step_reports_the_kernel() {
    let theta = particles::<f64>(9, 4, 1, 0.5);
    let sets = [particles::<f64>(9, 4, 2, 0.5), particles::<f64>(9, 4, 3, 0.5)];
    let settings = plain(Kernel::default(), KdeMode::Lse { floor: 1e-2 });
    let frozen = [KdeFactor::plus(sets[0].view()), KdeFactor::minus(sets[1].view())];
    let mut stein = SvgdLoop::new(9, 4, settings);
    stein.begin(theta.view(), &frozen);
    let step = stein.step(None, None);
    let h = Bandwidth::Repository.of(theta.view());
    let kernel = super::super::rbf::squared_distances(theta.view(), theta.view()).mapv(|d| (-d / h).exp());
    assert!((step.bandwidth - h).abs() < 1e-13 * h);
    assert!((step.mean_kernel - kernel.mean().unwrap()).abs() < 1e-13);
    let mut score = Array2::zeros((9, 4));
    let report = super::super::kde::add_cavity_score(settings.kde, &frozen, theta.view(), score.view_mut());
    let weight = report.weights.iter().sum::<f64>() / 2.0;
    assert!((step.kde_weight - weight).abs() < 1e-13, "{step:?} {report:?}");
}

#[test]
fn repulsion_sums_to_zero() {
    for n in [2, 6, 100] {
        let theta = particles::<f64>(n, 5, 4, 1.0);
        let none = Array2::zeros((n, 5));
        let phi = direction(&theta, Some(&none), &[], plain(Kernel::default(), KdeMode::None));
        assert!(largest(&phi) > 1e-3);
        for column in phi.columns() {
            assert!(column.sum().abs() < 1e-13);
        }
    }
}

#[test]
fn equivariances() {
    let (n, d) = (7, 3);
    let (theta, score) = (particles::<f64>(n, d, 1, 0.6), particles::<f64>(n, d, 2, 1.0));
    let (q, t) = (particles::<f64>(n, d, 3, 0.6), particles::<f64>(n, d, 4, 0.6));
    let settings = plain(Kernel::default(), KdeMode::default());
    let phi = |map: &dyn Fn(&Array2<f64>) -> Array2<f64>, turn: &dyn Fn(&Array2<f64>) -> Array2<f64>| {
        let (q, t) = (map(&q), map(&t));
        direction(&map(&theta), Some(&turn(&score)), &[KdeFactor::plus(q.view()), KdeFactor::minus(t.view())], settings)
    };
    let same = |m: &Array2<f64>| m.clone();
    let base = phi(&same, &same);
    let close = |a: &Array2<f64>, b: &Array2<f64>| assert!(largest(&(a - b)) < 1e-12, "{a} {b}");
    // Translation; far away, so that uncenterd products would lose ten digits.
    let far = |m: &Array2<f64>| m + 1e3;
    assert!(largest(&(phi(&far, &same) - &base)) < 1e-10);
    // Rotation in two planes.
    let (c, s) = (0.8, 0.6);
    let rotation = array![[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]].dot(&array![[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]]);
    let turn = |m: &Array2<f64>| m.dot(&rotation);
    close(&phi(&turn, &turn), &turn(&base));
    // Permutation.
    let order = [3, 0, 6, 1, 5, 2, 4];
    let permute = |m: &Array2<f64>| m.select(Axis(0), &order);
    close(&phi(&permute, &permute), &permute(&base));
}

#[test]
fn one_particle_climbs_the_gradient() {
    let theta = array![[0.1, -3.0, 1e5]];
    let score = array![[1.0 / 3.0, 0.7, -2.0]];
    for kernel in [Kernel::Rbf(Bandwidth::Repository), Kernel::Rbf(Bandwidth::Paper), Kernel::Rbf(Bandwidth::Fixed(2.0))] {
        let mut stein = SvgdLoop::new(1, 3, plain(kernel, KdeMode::None));
        stein.begin(theta.view(), &[]);
        let mut moved = theta.clone();
        for _ in 0..3 {
            let before = moved.clone();
            stein.step(Some(score.view()), Some(moved.view_mut()));
            assert_eq!(moved, before + &score);
        }
    }
}

#[test]
fn equal_sets_of_opposite_sign_cancel_exactly() {
    let (theta, score) = (particles::<f64>(6, 55, 1, 1.0), particles::<f64>(6, 55, 2, 1.0));
    let settings = Settings::default();
    let frozen = [KdeFactor::plus(theta.view()), KdeFactor::minus(theta.view())];
    let (mut with, mut without) = (SvgdLoop::new(6, 55, settings), SvgdLoop::new(6, 55, settings));
    with.begin(theta.view(), &frozen);
    without.begin(theta.view(), &[]);
    let (mut a, mut b) = (theta.clone(), theta.clone());
    for _ in 0..20 {
        with.step(Some(score.view()), Some(a.view_mut()));
        without.step(Some(score.view()), Some(b.view_mut()));
    }
    assert_eq!(a, b);
    assert_ne!(a, theta);
}

#[test]
fn each_loop_starts_from_a_reset_state() {
    let theta = particles::<f64>(5, 7, 1, 1.0);
    let other = particles::<f64>(4, 7, 2, 1.0);
    let score = particles::<f64>(5, 7, 3, 1.0);
    let run = |stein: &mut SvgdLoop<f64>| {
        stein.begin(theta.view(), &[KdeFactor::plus(other.view())]);
        let mut moved = theta.clone();
        for _ in 0..5 {
            stein.step(Some(score.view()), None);
        }
        stein.read(moved.view_mut());
        moved
    };
    let mut stein = SvgdLoop::new(5, 7, Settings::default());
    let first = run(&mut stein);
    stein.begin(score.view(), &[]);
    stein.step(None, None);
    assert_eq!(run(&mut stein), first);
}

#[test]
fn bits_do_not_depend_on_threads() {
    let theta = particles::<f32>(8, 5000, 1, 0.02);
    let score = particles::<f32>(8, 5000, 2, 1.0);
    let sets = [particles::<f32>(8, 5000, 3, 0.02), particles::<f32>(8, 5000, 4, 0.02)];
    let run = |threads: usize, scored: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut stein = SvgdLoop::new(8, 5000, Settings::default());
            stein.begin(theta.view(), &[KdeFactor::plus(sets[0].view()), KdeFactor::minus(sets[1].view())]);
            let mut moved = theta.clone();
            for _ in 0..4 {
                stein.step(scored.then(|| score.view()), Some(moved.view_mut()));
            }
            moved
        })
    };
    for scored in [true, false] {
        let one = run(1, scored);
        for threads in [2, 3] {
            assert_eq!(run(threads, scored), one);
        }
    }
}

#[test]
fn single_precision_is_accurate_far_from_the_origin() {
    // Particles 1e-2 apart at a distance of 1 from the origin in each of many coordinates: uncenterd products would leave
    // nothing of the squared distances, 8 out of 80,000.
    let (n, d) = (20, 79_510);
    let theta = particles::<f32>(n, d, 1, 0.01) + 1.0;
    let t = particles::<f32>(n, d, 2, 0.0005) + &theta;
    let score = particles::<f32>(n, d, 3, 1.0);
    let wide = |m: &Array2<f32>| m.mapv(f64::from);
    let settings = plain(Kernel::default(), KdeMode::Lse { floor: 0.0 });
    let (theta64, t64) = (wide(&theta), wide(&t));
    let frozen = [KdeFactor::plus(theta.view()), KdeFactor::minus(t.view())];
    let frozen64 = [KdeFactor::plus(theta64.view()), KdeFactor::minus(t64.view())];
    let mut stein = SvgdLoop::<f32>::new(n, d, settings);
    stein.begin(theta.view(), &frozen);
    let step = stein.step(Some(score.view()), None);
    let h = Bandwidth::Repository.of(theta64.view());
    assert!((step.bandwidth / h - 1.0).abs() < 1e-5, "{} {h}", step.bandwidth);
    let mut moved = theta.clone();
    stein.read(moved.view_mut());
    let exact = direction(&theta64, Some(&wide(&score)), &frozen64, settings);
    let error = largest(&(wide(&moved) - &theta64 - &exact));
    assert!(error < 1e-5 * largest(&exact), "{error} of {}", largest(&exact));
}

#[test]
fn distillation_of_one_particle_has_a_closed_form() {
    // Three Gaussians of one width: the product's mode is t + new − q, and a plain step of λ² lands on it.
    let [q, t, new] = [array![[0.3, -1.0]], array![[2.0, 0.7]], array![[-0.4, 1.1]]];
    let mut settings = plain(Kernel::default(), KdeMode::Lse { floor: 0.0 });
    settings.optimizer = Optimizer::Plain { step: 0.55 * 0.55 };
    let mut stein = SvgdLoop::new(1, 2, settings);
    stein.begin(t.view(), &[KdeFactor::plus(new.view()), KdeFactor::plus(t.view()), KdeFactor::minus(q.view())]);
    let mut local = t.clone();
    stein.step(None, Some(local.view_mut()));
    assert!(largest(&(&local - &(&t + &new - &q))) < 1e-14);
    assert!(super::super::kde::distillation_residual([t.view(), local.view()], [q.view(), new.view()]) < 1e-14);
}

#[test]
fn linear_kernel_finds_gaussian_moments() {
    let (n, d) = (8, 3);
    let mean = array![0.5, -1.0, 0.3];
    let factor = array![[1.0, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.1]];
    let precision = factor.dot(&factor.t());
    let run = |kernel: Kernel| {
        let mut theta = particles::<f64>(n, d, 5, 1.0);
        let settings = Settings { optimizer: Optimizer::Plain { step: 0.05 }, ..plain(kernel, KdeMode::None) };
        let mut stein = SvgdLoop::new(n, d, settings);
        stein.begin(theta.view(), &[]);
        for _ in 0..4000 {
            let score = (&mean - &theta).dot(&precision);
            stein.step(Some(score.view()), Some(theta.view_mut()));
        }
        let center = theta.mean_axis(Axis(0)).unwrap();
        let around = &theta - &center;
        let covariance = around.t().dot(&around) / n as f64;
        // Covariance times precision is the unit matrix.
        let product = covariance.dot(&precision) - Array2::<f64>::eye(d);
        (largest(&product), (&center - &mean).mapv(f64::abs).sum())
    };
    let (covariance, center) = run(Kernel::Linear);
    assert!(covariance < 1e-9 && center < 1e-9, "{covariance} {center}");
    // Negative control: with few particles the RBF kernel has other fixed points.
    assert!(run(Kernel::default()).0 > 1e-2);
}
