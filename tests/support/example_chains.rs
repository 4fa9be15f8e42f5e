//! Synthetic chains for tests of convergence diagnostics: well mixed, slow, heavy-tailed, separated, with ties, of odd length and short ones.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here stops the test")]

use mpibayes::random::{Purpose, Seed, Who};
use ndarray::Array2;

/// Independent standard normal draws (chains × draws); every `set` has its own.
fn normals(set: u32, chains: usize, draws: usize) -> Array2<f64> {
    let mut numbers = Array2::zeros((chains, draws));
    for (chain, mut row) in (0..).zip(numbers.rows_mut()) {
        Seed(1903).stream(Who::Chain(chain), u64::from(set), Purpose::Synthetic).normals(row.as_slice_mut().unwrap());
    }
    numbers
}

/// Stationary AR(1) chains with this correlation between successive draws.
fn autoregressive(set: u32, chains: usize, draws: usize, correlation: f64) -> Array2<f64> {
    let mut x = normals(set, chains, draws);
    for mut chain in x.rows_mut() {
        for t in 1..draws {
            chain[t] = correlation * chain[t - 1] + (1.0 - correlation * correlation).sqrt() * chain[t];
        }
    }
    x
}

/// Cauchy draws, whose variance is infinite, with a scale for each chain.
fn cauchy(set: u32, chains: usize, draws: usize, scale: fn(usize) -> f64) -> Array2<f64> {
    let below = normals(set + 1, chains, draws);
    let mut x = normals(set, chains, draws) / below;
    for (chain, mut row) in x.rows_mut().into_iter().enumerate() {
        row *= scale(chain);
    }
    x
}

/// Named sets of draws of one parameter (chains × draws).
pub fn sets() -> Vec<(&'static str, Array2<f64>)> {
    let mut stuck = normals(40, 4, 200);
    stuck.row_mut(2).fill(0.25);
    let mut apart = autoregressive(50, 4, 500, 0.5);
    apart.row_mut(3).mapv_inplace(|x| x + 1.0);
    let mut trend = normals(60, 4, 300);
    trend.rows_mut().into_iter().for_each(|mut chain| (0..300).for_each(|t| chain[t] += t as f64 / 100.0));
    let mut hole = normals(70, 2, 50);
    hole[(1, 20)] = f64::NAN;
    let mut beyond = normals(71, 2, 50);
    beyond[(0, 3)] = f64::INFINITY;
    vec![
        ("independent", normals(0, 4, 1000)),
        ("autoregressive", autoregressive(10, 4, 1000, 0.9)),
        ("slow", autoregressive(20, 3, 500, 0.995)),
        ("antithetic", autoregressive(25, 2, 400, -0.7)),
        ("cauchy", cauchy(30, 4, 500, |_| 1.0)),
        ("scales_apart", cauchy(34, 4, 500, |chain| if chain == 0 { 8.0 } else { 1.0 })),
        ("one_stuck", stuck),
        ("apart", apart),
        ("trend", trend),
        ("ties", autoregressive(80, 4, 250, 0.6).mapv(|x| (2.0 * x).round())),
        ("two_values", autoregressive(84, 3, 120, 0.3).mapv(|x| if x > 1.0 { 7.0 } else { -2.0 })),
        ("odd", autoregressive(88, 3, 101, 0.4).mapv(|x| 1e6 + 1e-2 * x)),
        ("one_chain", autoregressive(92, 1, 300, 0.5)),
        ("four_draws", normals(96, 2, 4)),
        ("five_draws", normals(97, 3, 5)),
        ("nine_draws", normals(98, 2, 9)),
        ("three_draws", normals(99, 4, 3)),
        ("constant", Array2::from_elem((4, 100), 3.5)),
        ("a_hole", hole),
        ("beyond", beyond),
    ]
}
