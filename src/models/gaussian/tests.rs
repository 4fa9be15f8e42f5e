//! Tests of Gaussian factors and mixtures against closed forms.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::models::tests as check;
use crate::models::tests::stream;
use ndarray::{Axis, array};

/// A random positive definite matrix.
fn covariance(d: usize, seed: u64) -> Array2<f64> {
    let root = check::normals(&mut stream(seed), d, d);
    root.dot(&root.t()) + 0.5 * Array2::<f64>::eye(d)
}

fn component(weight: f64, d: usize, seed: u64) -> ComponentSettings {
    let mean = check::normals(&mut stream(seed + 100), 1, d).into_raw_vec_and_offset().0;
    let covariance = covariance(d, seed).rows().into_iter().map(|row| row.to_vec()).collect();
    ComponentSettings { weight, mean, covariance }
}

/// log p0(θ) − Σ loss(θ) over all factors: the log of the unnormalized posterior.
fn log_posterior(model: &FactorProduct, theta: &Array2<f64>) -> Vec<f64> {
    let (x, y) = model.data();
    let (mut prior, mut loss) = (vec![0.0; theta.nrows()], vec![0.0; theta.nrows()]);
    model.log_prior(theta.view(), &mut prior);
    model.loss(theta.view(), Batch { x: x.view(), y: y.view() }, &mut loss, &mut Scratch::new());
    prior.iter().zip(loss).map(|(prior, loss)| prior - loss).collect()
}

#[test]
fn gradients_agree_with_central_differences() {
    for d in [1, 2, 5] {
        let mixture = vec![component(0.5, d, 1), component(2.0, d, 2), component(1.0, d, 3)];
        for prior in
            [PriorSettings::Mixture(mixture.clone()), PriorSettings::Uniform { lower: vec![-50.0; d], upper: vec![50.0; d] }]
        {
            let settings = FactorProductSettings { prior, factors: vec![mixture.clone(), vec![component(1.0, d, 4)]] };
            let model = settings.build().unwrap();
            let theta = check::particles(&model, 6, 5);
            let y = Array1::zeros(7);
            let x = array![[0.0], [1.0], [1.0], [0.0], [0.0], [1.0], [1.0]];
            for rows in [0, 1, 7] {
                let batch = Batch { x: x.slice(ndarray::s![..rows, ..]), y: y.slice(ndarray::s![..rows]) };
                for weight in [1.0, 0.25] {
                    let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                    assert!(prior < 1e-7 && loss < 1e-7, "{d} {rows}: {prior} {loss}");
                }
                check::assert_particles_are_independent(&model, &theta, batch);
                check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
            }
        }
    }
}

#[test]
fn normal_from_precision_is_normal_from_covariance() {
    let (covariance, component) = (covariance(4, 9), component(1.0, 4, 9));
    let by_covariance = Mixture::new(std::slice::from_ref(&component)).unwrap();
    let factor = inverse(&cholesky(covariance.view()).unwrap());
    let by_precision = Mixture::normal(&component.mean, factor.t().dot(&factor).view()).unwrap();
    for theta in check::normals(&mut stream(3), 5, 4).rows() {
        let (a, b) = (by_covariance.log_density(&theta.to_vec()), by_precision.log_density(&theta.to_vec()));
        assert!((a - b).abs() < 1e-10 * a.abs().max(1.0), "{a} {b}");
    }
    // Against the textbook density in one dimension.
    let normal = Mixture::normal(&[1.0], array![[0.25]].view()).unwrap();
    let expected = -0.5 * (2.0 * std::f64::consts::PI * 4.0).ln() - 0.5 * 9.0 / 4.0;
    assert!((normal.log_density(&[4.0]) - expected).abs() < 1e-14);
}

#[test]
fn far_tails_do_not_underflow() {
    let model = FactorProductSettings::mixture_1d_normal_prior().build().unwrap();
    let mut score = Array2::<f64>::zeros((1, 1));
    let (x, y) = model.data();
    model.add_score(array![[-1e3]].view(), Batch { x: x.view(), y: y.view() }, 1.0, score.view_mut(), &mut Scratch::new());
    // There N(3, 2) dominates N(−3, 1), and the slopes are 1001/4 and 1003/2.
    assert!((score[[0, 0]] - (1001.0 / 4.0 + 1003.0 / 2.0)).abs() < 1e-9);
}

/// Exact draws: mean and covariance of the 2-D prior within 4.5 standard errors, and the share of components.
#[test]
fn initial_draws_follow_the_prior() {
    let draws = 20_000;
    let root = f64::from(draws).sqrt();
    let mut stream = stream(2);
    let model = FactorProductSettings::mixture_2d().build().unwrap();
    let mut theta = Array2::<f64>::zeros((20_000, 2));
    theta.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
    let mean = theta.mean_axis(Axis(0)).unwrap();
    assert!(mean.iter().all(|m| m.abs() < 4.5 * 2.0 / root));
    let second = theta.t().dot(&theta) / f64::from(draws);
    // Var(x_i x_j) = Σ_ii Σ_jj + Σ_ij².
    for (i, j, expected, variance) in [(0, 0, 4.0, 32.0), (1, 1, 4.0, 32.0), (0, 1, 2.0, 20.0_f64)] {
        assert!((second[[i, j]] - expected).abs() < 4.5 * variance.sqrt() / root, "{second}");
    }

    let normal =
        |weight, mean: f64, variance: f64| ComponentSettings { weight, mean: vec![mean], covariance: vec![vec![variance]] };
    let model = FactorProduct::without_data(Mixture::new(&[normal(1.0, -100.0, 1.0), normal(3.0, 100.0, 9.0)]).unwrap());
    let mut theta = Array1::<f64>::zeros(1);
    let right = (0..draws).filter(|_| {
        model.draw_initial(&mut stream, theta.view_mut());
        theta[0] > 0.0
    });
    assert!((right.count() as f64 / f64::from(draws) - 0.75).abs() < 4.5 * (0.75 * 0.25_f64).sqrt() / root);
}

/// p0 ℓ_1 ℓ_2 is a mixture again, by products of Gaussians (weights to six digits).
#[test]
fn one_dimensional_posteriors_agree_with_the_analytic_mixtures() {
    let normal = |weight, mean, variance| ComponentSettings { weight, mean: vec![mean], covariance: vec![vec![variance]] };
    let grid = Array2::from_shape_fn((119, 1), |(i, _)| (i as f64 - 59.0) * 0.1);
    for (settings, exact) in [
        (
            FactorProductSettings::mixture_1d_uniform_prior(),
            [normal(0.235_861, -2.2, 0.8), normal(0.764_139, 7.0 / 3.0, 4.0 / 3.0)],
        ),
        (
            FactorProductSettings::mixture_1d_normal_prior(),
            [normal(0.227_316, -11.0 / 9.0, 4.0 / 9.0), normal(0.772_684, 1.0, 4.0 / 7.0)],
        ),
    ] {
        let (model, exact) = (settings.build().unwrap(), Mixture::new(&exact).unwrap());
        let found = log_posterior(&model, &grid);
        let constant = found[59] - exact.log_density(&[0.0]);
        for (theta, found) in grid.iter().zip(found) {
            assert!((found - exact.log_density(&[*theta]) - constant).abs() < 1e-5, "{theta}");
        }
    }
}

/// Moments of the posterior truncated to [−6, 6] by quadrature.
#[test]
fn truncated_posterior_has_the_known_moments() {
    let model = FactorProductSettings::mixture_1d_uniform_prior().build().unwrap();
    let step = 1e-3;
    let grid = Array2::from_shape_fn((12_000, 1), |(i, _)| -6.0 + (i as f64 + 0.5) * step);
    let density: Vec<f64> = log_posterior(&model, &grid).iter().map(|log| log.exp() * step).collect();
    let total: f64 = density.iter().sum();
    let average = |f: &dyn Fn(f64) -> f64| grid.iter().zip(&density).map(|(&t, p)| f(t) * p).sum::<f64>() / total;
    let mean = average(&|t| t);
    assert!((mean - 1.261_23).abs() < 1e-5, "{mean}");
    assert!((average(&|t| (t - mean).powi(2)) - 4.899_52).abs() < 1e-5);
    assert!((average(&|t| f64::from(t < 0.0)) - 0.250_91).abs() < 1e-5);
    for (place, peak) in [(-2.197, 0.1054), (2.333, 0.2642)] {
        let at = log_posterior(&model, &array![[place]])[0].exp() / total;
        assert!((at - peak).abs() < 1e-4, "{at}");
    }
    assert_eq!(log_posterior(&model, &array![[6.5]])[0], f64::NEG_INFINITY);
}

#[test]
fn two_dimensional_posterior_agrees_with_the_analytic_mixture() {
    let model = FactorProductSettings::mixture_2d().build().unwrap();
    let (step, half) = (0.04, 200);
    let side = 2 * half + 1;
    let place = |i: usize| (i as f64 - half as f64) * step;
    let grid = Array2::from_shape_fn((side * side, 2), |(i, j)| place(if j == 0 { i / side } else { i % side }));
    let mut weights = Array1::from(log_posterior(&model, &grid)).mapv(f64::exp);
    weights /= weights.sum();
    let mean = weights.dot(&grid);
    let centred = &grid - &mean;
    let covariance = (&centred * &weights.view().insert_axis(Axis(1))).t().dot(&centred);
    let expected = array![0.162_561, -0.305_123, 1.620_401, 0.801_583, 1.153_409];
    let found = array![mean[0], mean[1], covariance[[0, 0]], covariance[[0, 1]], covariance[[1, 1]]];
    assert!((&found - &expected).iter().all(|difference| difference.abs() < 3e-6), "{found}");
    let exact = Mixture::new(&[
        ComponentSettings {
            weight: 0.270_661,
            ..ComponentSettings::new([-1.400_61, -1.293_88], [[0.195_868, 0.121_736], [0.121_736, 0.480_346]])
        },
        ComponentSettings {
            weight: 0.729_339,
            ..ComponentSettings::new([0.742_660, 0.061_809], [[0.905_741, 0.267_443], [0.267_443, 0.905_741]])
        },
    ])
    .unwrap();
    for (theta, weight) in grid.rows().into_iter().zip(&weights).step_by(977).filter(|(_, weight)| **weight > 1e-9) {
        let log = exact.log_density(&theta.to_vec());
        assert!((weight.ln() - 2.0 * step.ln() - log).abs() < 1e-3, "{theta}");
    }
}

#[test]
fn a_model_without_data_takes_empty_batches() {
    let model = FactorProduct::normal(&[1.0, 2.0], array![[2.0, 0.5], [0.5, 1.0]].view()).unwrap();
    let (x, y) = model.data::<f64>();
    assert_eq!((x.nrows(), y.len()), (0, 0));
    let theta = array![[0.0, 0.0]];
    let mut score = array![[3.0, 4.0]];
    let mut loss = [1.0];
    let batch = Batch { x: x.view(), y: y.view() };
    model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
    model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
    assert_eq!((score, loss), (array![[3.0, 4.0]], [0.0]));
    let mut score = array![[f64::NAN, f64::NAN]];
    model.prior_score(theta.view(), score.view_mut());
    assert!((&score - &array![[3.0, 2.5]]).iter().all(|difference| difference.abs() < 1e-14), "Λ(μ − θ)");
}

#[test]
fn the_predictive_density_of_a_row_is_that_of_its_factor() {
    let model = FactorProductSettings::mixture_1d_normal_prior().build().unwrap();
    let (x, y) = (array![[0.0]], array![0.0]);
    let (mean, density) = check::predict(&model, &array![[1.0], [3.0]], Batch { x: x.view(), y: y.view() }, 0);
    let peak = 1.0 / (8.0 * std::f64::consts::PI).sqrt();
    assert!(mean.is_empty() && (density[0] - 0.5 * peak * (1.0 + (-0.5_f64).exp())).abs() < 1e-14);
}

#[test]
fn bad_settings_are_refused() {
    let normal = |mean: Vec<f64>, covariance: Vec<Vec<f64>>| ComponentSettings { weight: 1.0, mean, covariance };
    let not_definite = normal(vec![0.0, 0.0], vec![vec![1.0, 2.0], vec![2.0, 1.0]]);
    assert!(matches!(Mixture::new(&[not_definite]), Err(ModelError::NotPositiveDefinite { .. })));
    let asymmetric = normal(vec![0.0, 0.0], vec![vec![1.0, 0.5], vec![0.4, 1.0]]);
    assert!(matches!(Mixture::new(&[asymmetric]), Err(ModelError::NotPositiveDefinite { .. })));
    assert!(matches!(Mixture::new(&[]), Err(ModelError::NoComponents)));
    let ragged = normal(vec![0.0, 0.0], vec![vec![1.0, 0.0], vec![0.0]]);
    assert!(matches!(Mixture::new(&[ragged]), Err(ModelError::Size { .. })));
    assert!(Mixture::new(&[normal(vec![], vec![])]).is_err());
    let prior = PriorSettings::Uniform { lower: vec![1.0], upper: vec![1.0] };
    let settings = FactorProductSettings { prior, ..FactorProductSettings::default() };
    assert!(matches!(settings.build(), Err(ModelError::EmptyBox { .. })));
    let settings =
        FactorProductSettings { factors: FactorProductSettings::mixture_2d().factors, ..FactorProductSettings::default() };
    assert!(matches!(settings.build(), Err(ModelError::Size { .. })));
}

#[test]
fn settings_survive_toml() {
    for settings in [FactorProductSettings::mixture_2d(), FactorProductSettings::mixture_1d_uniform_prior()] {
        assert_eq!(toml::from_str::<FactorProductSettings>(&toml::to_string(&settings).unwrap()).unwrap(), settings);
    }
}
