//! Convergence diagnostics (R-hat, ESS, MCSE) equal those of ArviZ and detect chains that have not converged.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use mpibayes::metrics::convergence::{
    Convergence, convergence, ess_mean, ess_quantile, ess_sd, estimates, particle_estimates, r_hat,
};
use ndarray::{Array2, Array3, ArrayView2, Axis, s, stack};
/// ArviZ gives NaN.
const NAN: f64 = f64::NAN;

/// R-hat, the ESS of bulk, tail, mean, standard deviation and lower quartile, the MCSE of mean and standard deviation, of each set:
/// printed by ArviZ 0.23.4, `rhat(method="rank")`, `ess(method="bulk")`, ..., `ess(method="quantile", prob=0.25)`, `mcse(...)`.
#[rustfmt::skip]
const ARVIZ: [(&str, [f64; 8]); 20] = [
    ("independent", [0.9999854074, 3682.825933, 3308.821172, 3689.619806, 3661.403825, 3797.578712, 0.01646391158, 0.01165351019]),
    ("autoregressive", [1.014777987, 274.7070435, 671.3108189, 275.0344045, 529.3298053, 408.5579465, 0.05778363777, 0.0293999443]),
    ("slow", [2.46738483, 3.755616598, 13.8964446, 3.343028423, 5.897870326, 5.750653593, 0.7442179677, 0.2428936793]),
    ("antithetic", [1.014792265, 2322.47199, 606.3041478, 2322.47199, 290.9413203, 841.7347604, 0.01993857351, 0.04204833131]),
    ("cauchy", [1.00176071, 2112.885822, 2084.678126, 2018.03371, 2018.616194, 2203.398625, 1.198354213, 17.39476881]),
    ("scales_apart", [1.163999873, 2108.093782, 66.24439673, 2029.998367, 2016.214963, 157.1607454, 19.29923923, 425.3724102]),
    ("one_stuck", [1.527817821, 678.098266, 576.7872603, 627.0497931, 42.78148783, 42.81535138, 0.03641620819, 0.1098785]),
    ("apart", [1.094794937, 31.44166616, 402.2762078, 31.30609828, 1036.754366, 131.5320772, 0.1913463742, 0.02294915293]),
    ("trend", [1.230838269, 12.42164046, 131.9679714, 12.25245613, 373.1448593, 21.91592782, 0.3822454406, 0.04461071489]),
    ("ties", [1.00576914, 194.5009414, 365.7196841, 195.062314, 468.3069041, 263.6210927, 0.1484587791, 0.06826320417]),
    ("two_values", [0.9983426368, 273.5984056, 273.5984056, 273.5984056, 273.5984056, 273.5984056, 0.2083162247, 0.175323938]),
    ("odd", [1.021802402, 128.5764893, 185.3621837, 129.5164117, 180.731757, 162.705802, 0.0009336476144, 0.0005439896525]),
    ("one_chain", [NAN, 112.7877832, 165.8591585, 113.3349081, 219.8309498, 201.4925282, 0.08854317957, 0.04417285191]),
    ("four_draws", [1.558861056, 7.224719896, 7.224719896, 7.224719896, 7.224719896, 7.224719896, 0.3610712526, 0.1723717324]),
    ("five_draws", [0.9241456718, 12.95017495, 12.95017495, 12.95017495, 12.95017495, 12.95017495, 0.2533890422, 0.2373198866]),
    ("nine_draws", [0.8969242245, 19.26591972, 16.0, 19.26591972, 19.26591972, 19.26591972, 0.2586286249, 0.1484830882]),
    ("three_draws", [NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN]),
    ("constant", [NAN, 400.0, 400.0, 400.0, 400.0, 400.0, 0.0, NAN]),
    ("a_hole", [NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN]),
    ("beyond", [1.01196322, 131.8523332, 100.9573063, NAN, NAN, 165.6984265, NAN, NAN]),
];

fn ours(draws: ArrayView2<f64>) -> [f64; 8] {
    let Convergence { mcse_mean, mcse_sd, ess_bulk, ess_tail, r_hat } = convergence(draws);
    [r_hat, ess_bulk, ess_tail, ess_mean(draws), ess_sd(draws), ess_quantile(draws, 0.25), mcse_mean, mcse_sd]
}

/// Equality up to a relative error of 1e-6, because sums are computed in another order. NaN equals NaN.
fn equal(found: f64, expected: f64) -> bool {
    (found.is_nan() && expected.is_nan()) || (found - expected).abs() <= 1e-6 * expected.abs()
}

fn set(name: &str) -> Array2<f64> {
    crate::example_chains::sets().into_iter().find(|set| set.0 == name).expect(name).1
}

#[test]
fn all_diagnostics_equal_arviz() {
    let sets = crate::example_chains::sets();
    assert_eq!(sets.len(), ARVIZ.len());
    for ((name, draws), (row, expected)) in sets.iter().zip(ARVIZ) {
        assert_eq!(*name, row);
        let found = ours(draws.view());
        assert!(found.iter().zip(expected).all(|(&found, expected)| equal(found, expected)), "{name}:\n{found:?}\n{expected:?}");
    }
    // The control: shuffled draws have another ESS.
    let sticky = set("autoregressive");
    let mut shuffled = sticky.clone();
    for (place, old) in (0..1000).map(|place| (place, place * 7 % 1000)) {
        shuffled.column_mut(place).assign(&sticky.column(old));
    }
    assert!(!equal(ess_mean(shuffled.view()), ARVIZ[1].1[3]) && ess_mean(shuffled.view()) > 2.0 * ARVIZ[1].1[3]);
}

/// Split R-hat of Gelman & Rubin without rank normalization.
fn classic(draws: ArrayView2<f64>) -> f64 {
    let half = draws.ncols() / 2;
    let (first, second) = (draws.slice(s![.., ..half]), draws.slice(s![.., draws.ncols() - half..]));
    let chains: Vec<_> = first.rows().into_iter().chain(second.rows()).collect();
    let within = chains.iter().map(|chain| chain.var(1.0)).sum::<f64>() / chains.len() as f64;
    let means: ndarray::Array1<f64> = chains.iter().map(|chain| chain.mean().unwrap()).collect();
    (means.var(1.0) / within + (half as f64 - 1.0) / half as f64).sqrt()
}

#[test]
fn r_hat_detects_chains_that_disagree() {
    for name in ["slow", "one_stuck", "apart", "trend", "scales_apart"] {
        assert!(r_hat(set(name).view()) > 1.01, "{name}");
    }
    for name in ["independent", "cauchy"] {
        assert!(r_hat(set(name).view()) < 1.01, "{name}");
    }
    // Ranks matter for Cauchy tails: means and variances of chains are noise, and the classic formula does not detect that one chain is
    // eight times as wide.
    let wide = set("scales_apart");
    assert!(classic(wide.view()) < 1.01 && r_hat(wide.view()) > 1.1, "{} {}", classic(wide.view()), r_hat(wide.view()));
    // The control: with light tails, the classic formula detects disagreement, too.
    assert!(classic(set("apart").view()) > 1.01);
}

#[test]
fn bulk_and_tail_ess_are_invariant_under_monotone_transformations() {
    let draws = set("odd").mapv(|x| (x - 1e6) * 100.0);
    let (plain, changed) = (convergence(draws.view()), convergence(draws.mapv(f64::exp).view()));
    assert!(equal(changed.ess_bulk, plain.ess_bulk) && equal(changed.ess_tail, plain.ess_tail));
    assert!(!equal(changed.mcse_mean, plain.mcse_mean));
}

#[test]
fn many_parameters_are_estimated_like_one() {
    let sets: Vec<Array2<f64>> = ["cauchy", "scales_apart"].map(set).into();
    let views: Vec<_> = sets.iter().map(|draws| draws.view()).collect();
    let together: Array3<f64> = stack(Axis(2), &views).unwrap();
    for (estimate, draws) in estimates(together.view()).iter().zip(&sets) {
        assert_eq!(estimate.convergence, Some(convergence(draws.view())));
        assert!(equal(estimate.mean, draws.mean().unwrap()) && equal(estimate.sd, draws.std(1.0)));
    }
    let whole = Array3::from_shape_fn((2, 5, 3), |(chain, draw, j)| i32::try_from(3 * chain + draw * (j + 1)).unwrap());
    assert_eq!(estimates(whole.view()), estimates(whole.mapv(f64::from).view()));
}

#[test]
fn particles_have_quantiles_but_no_diagnostics() {
    let particles = Array2::from_shape_fn((11, 2), |(n, j)| (10 - n) as f32 * (j + 1) as f32);
    let estimates = particle_estimates(particles.view());
    // Quantiles of 0, 1, ..., 10 by R's type 7 lie at 0.5 and 9.5; the variance of 11 consecutive integers is 11.
    assert!(equal(estimates[0].q5, 0.5) && equal(estimates[1].q95, 19.0) && estimates[1].mean == 10.0);
    assert!(equal(estimates[0].sd, 11.0_f64.sqrt()) && estimates[0].convergence.is_none());
    assert!(particle_estimates(Array2::from_elem((1, 1), NAN).view())[0].q5.is_nan());
    assert!(particle_estimates(Array2::<f64>::zeros((0, 1)).view())[0].mean.is_nan());
}

#[test]
fn too_few_draws_give_nan() {
    for shape in [(0, 10), (3, 0), (2, 1), (2, 3)] {
        let Convergence { mcse_mean, ess_bulk, r_hat, .. } = convergence(Array2::zeros(shape).view());
        assert!(mcse_mean.is_nan() && ess_bulk.is_nan() && r_hat.is_nan(), "{shape:?}");
    }
    assert!(estimates(Array3::<f64>::zeros((2, 0, 1)).view())[0].q5.is_nan());
    assert!(estimates(Array3::<f64>::zeros((2, 10, 0)).view()).is_empty());
}
