//! Tests of kernel density estimates against closed forms.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::random::{Purpose, Seed, Who};

fn modes() -> [KdeMode; 4] {
    [KdeMode::Lse { floor: 0.0 }, KdeMode::Lse { floor: 1e-9 }, KdeMode::AuthorsCompat, KdeMode::None]
}

fn particles(n: usize, d: usize, seed: u64, spread: f64) -> Array2<f64> {
    let mut theta = Array2::zeros((n, d));
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(theta.as_slice_mut().unwrap());
    theta * spread
}

#[test]
fn scores_are_central_differences() {
    for d in [1, 2, 9, 20] {
        // Particles at distances of a few λ, where both the kernels and the floor have a say.
        let spread = 1.2 / (d as f64).sqrt();
        let (points, theta) = (particles(7, d, 1, spread), particles(5, d, 2, 1.5 * spread));
        for mode in modes() {
            let kde = Kde { mode, bandwidth: 0.55 };
            let mut score = Array2::zeros(theta.dim());
            kde.add_score(1.0, points.view(), theta.view(), score.view_mut());
            let at = |moved: &Array2<f64>, n: usize| {
                let mut out = vec![0.0; 5];
                kde.log_density(points.view(), moved.view(), &mut out);
                out[n]
            };
            for n in 0..5 {
                let size = score.row(n).dot(&score.row(n)).sqrt();
                for i in 0..d {
                    let step = 1e-5;
                    let (mut up, mut down) = (theta.clone(), theta.clone());
                    up[(n, i)] += step;
                    down[(n, i)] -= step;
                    let slope = (at(&up, n) - at(&down, n)) / (2.0 * step);
                    // Beside the relative 1e-6: rounding of the logarithm, 1e-16 · |log q| / step.
                    let bound = 1e-6 * size + 1e-15 * (1.0 + at(&theta, n).abs()) / step;
                    assert!((slope - score[(n, i)]).abs() <= bound, "{mode:?} d={d}: {slope} {}", score[(n, i)]);
                }
            }
        }
    }
}

#[test]
fn log_density_agrees_with_the_formula() {
    let (points, theta) = (particles(4, 2, 1, 1.0), particles(3, 2, 2, 1.0));
    let variance: f64 = 0.55 * 0.55;
    for mode in modes() {
        let mut out = [0.0; 3];
        Kde { mode, bandwidth: 0.55 }.log_density(points.view(), theta.view(), &mut out);
        for (n, value) in out.into_iter().enumerate() {
            let kernel = |floor: f64| -> f64 {
                points
                    .rows()
                    .into_iter()
                    .map(|c| (-(&c - &theta.row(n)).mapv(|x| x * x).sum() / (2.0 * variance)).exp() + floor)
                    .sum()
            };
            let expected = match mode {
                KdeMode::Lse { floor } => (kernel(floor) / (4.0 * 2.0 * PI * variance)).ln(),
                KdeMode::AuthorsCompat => (kernel(1e-9) / (4.0 * 2.0 * PI * variance) + 1e-10).ln(),
                KdeMode::None => 0.0,
            };
            assert!((value - expected).abs() < 1e-13, "{mode:?} {value} {expected}");
        }
    }
}

#[test]
fn floors_cut_off_distant_particles() {
    let points = particles(6, 54, 1, 10.0);
    let theta = particles(6, 54, 2, 1e3);
    let weight = |mode| {
        let mut score = Array2::zeros(theta.dim());
        let weight = Kde { mode, bandwidth: 0.55 }.add_score(1.0, points.view(), theta.view(), score.view_mut());
        assert!(score.iter().all(|s| s.is_finite()));
        weight
    };
    // The exact estimate pulls with full weight from anywhere; a floor cuts it off.
    assert!((weight(KdeMode::Lse { floor: 0.0 }) - 1.0).abs() < 1e-12);
    assert_eq!(weight(KdeMode::Lse { floor: 1e-9 }), 0.0);
    assert_eq!(weight(KdeMode::AuthorsCompat), 0.0);
    // At the particles, the floor has no effect, but the normalizer of `AuthorsCompat` makes the weight vanish.
    let at = |mode| Kde { mode, bandwidth: 0.55 }.weights(points.view(), points.view()).sum() / 6.0;
    assert!((at(KdeMode::Lse { floor: 1e-9 }) - 1.0).abs() < 1e-7);
    assert!(at(KdeMode::AuthorsCompat) < 1e-16);
}

#[test]
fn reports_norms_weights_and_residuals() {
    let kde = Kde { mode: KdeMode::Lse { floor: 0.0 }, bandwidth: 0.5 };
    let (theta, point) = (ndarray::array![[0.0], [1.0]], ndarray::array![[2.0]]);
    let mut score = Array2::zeros((2, 1));
    let report = add_cavity_score(kde, &[KdeFactor::plus(point.view())], theta.view(), score.view_mut());
    // (2 − x)/λ² = 8 and 4.
    assert_eq!(score, ndarray::array![[8.0], [4.0]]);
    assert!((report.norm - 80_f64.sqrt()).abs() < 1e-12 && (report.weights[0] - 1.0).abs() < 1e-15);
    let report =
        add_cavity_score(kde, &[KdeFactor::plus(point.view()), KdeFactor::minus(point.view())], theta.view(), score.view_mut());
    assert_eq!((report.norm, report.weights.len()), (0.0, 2));
    let floored = Kde { mode: KdeMode::default(), ..kde };
    // Weights are reported per factor.
    let far = ndarray::array![[9.0]];
    let report =
        add_cavity_score(floored, &[KdeFactor::plus(theta.view()), KdeFactor::minus(far.view())], theta.view(), score.view_mut());
    assert!(report.weights[0] > 0.99 && report.weights[1] < 1e-40, "{report:?}");
    let none = Kde { mode: KdeMode::None, ..kde };
    assert!(add_cavity_score(none, &[KdeFactor::plus(far.view())], theta.view(), score.view_mut()).weights[0].is_nan());
    let moved = &theta + 0.25;
    let ideal = distillation_residual([theta.view(), moved.view()], [theta.view(), moved.view()]);
    assert_eq!(ideal, 0.0);
    let still = distillation_residual([theta.view(), theta.view()], [theta.view(), moved.view()]);
    assert!((still - 1.0).abs() < 1e-15);
}

#[test]
fn settings_from_toml() {
    let parse = |text: &str| toml::from_str::<Kde>(text);
    assert_eq!(parse("").unwrap(), Kde::default());
    assert_eq!(parse("mode = \"none\"").unwrap().mode, KdeMode::None);
    assert_eq!(parse("mode = \"authors_compat\"\nbandwidth = 0.3").unwrap().bandwidth, 0.3);
    assert_eq!(parse("mode = { lse = { floor = 0.0 } }").unwrap().mode, KdeMode::Lse { floor: 0.0 });
    assert_eq!(parse("mode = { lse = {} }").unwrap().mode, KdeMode::default());
    assert!(parse("mode = { lse = { flor = 0.0 } }").is_err());
    assert!(parse("lambda = 1").is_err());
    assert!(Kde { bandwidth: 0.0, ..Kde::default() }.check().is_err());
    assert!(Kde { mode: KdeMode::Lse { floor: -1.0 }, ..Kde::default() }.check().is_err());
}
