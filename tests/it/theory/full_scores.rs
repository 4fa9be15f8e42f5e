//! Scores that are estimated from some of the rows have the scores of all rows as their mean.
//!
//! |z| is at most 4.5, which has a rate of false alarms of 1.4e-5 for two numbers. The control has weights that are wrong by a tenth.

#![allow(clippy::unwrap_used)]

use crate::gaussian_shards::{Z, problem, rows};
use crate::recording::run;
use mpibayes::methods::common::full_scores::{FullScores, SCORES, ScoredRows};
use ndarray::{Array2, Axis};

const DRAWS: usize = 400;
const ROWS: [usize; 3] = [50, 7, 0];

/// The scores at equal draws, draws × 2.
fn scores(scored: ScoredRows) -> Array2<f64> {
    let shards = (0..).zip(ROWS).map(|(agent, count)| rows(agent, count, 2, 3.0)).collect();
    let draws = [0.5, -0.25].repeat(DRAWS);
    let values = run(FullScores { problem: problem(shards), draws, rows: scored }, 1).values::<f64>(SCORES);
    Array2::from_shape_vec((DRAWS, 2), values).unwrap()
}

#[test]
fn scores_of_some_rows_have_those_of_all_rows_as_their_mean() {
    let exact = scores(ScoredRows::All).row(0).to_owned();
    let all = (0..).zip(ROWS).map(|(agent, count)| rows(agent, count, 2, 3.0).sum_axis(Axis(0))).reduce(|a, b| a + b).unwrap();
    let count = ROWS.iter().sum::<usize>() as f64;
    for (j, at) in [0.5, -0.25].into_iter().enumerate() {
        assert!((exact[j] - (all[j] - count * at)).abs() < 1e-9, "{exact} {all}");
    }
    // As many rows as there are: all of them.
    assert_eq!(scores(ScoredRows::Sample { rows: 57, of: 57 }), scores(ScoredRows::All));
    let some = scores(ScoredRows::Sample { rows: 20, of: 57 });
    let z = |factor: f64| {
        let values = some.mapv(|value| factor * value);
        let (mean, error) = (values.mean_axis(Axis(0)).unwrap(), values.std_axis(Axis(0), 1.0) / (DRAWS as f64).sqrt());
        ((mean - &exact) / error).mapv(f64::abs)
    };
    assert!(z(1.0).iter().all(|z| *z < Z), "{}", z(1.0));
    assert!(z(1.1).iter().any(|z| *z > Z), "{}", z(1.1));
}

/// Draws are scored some at a time. The score of a Gaussian is linear.
#[test]
fn every_draw_has_its_own_score() {
    let shards = (0..).zip(ROWS).map(|(agent, count)| rows(agent, count, 2, 3.0)).collect();
    let draws: Vec<f64> = (0..2 * 150).map(|number| 0.01 * f64::from(number)).collect();
    let method = FullScores { problem: problem(shards), draws: draws.clone(), rows: ScoredRows::All };
    let values = run(method, 1).values::<f64>(SCORES);
    let all = (0..).zip(ROWS).map(|(agent, count)| rows(agent, count, 2, 3.0).sum_axis(Axis(0))).reduce(|a, b| a + b).unwrap();
    let count = ROWS.iter().sum::<usize>() as f64;
    assert_eq!(values.len(), draws.len());
    for (place, (score, draw)) in values.iter().zip(&draws).enumerate() {
        assert!((score - (all[place % 2] - count * draw)).abs() < 1e-9, "value {place}: {score}");
    }
}
