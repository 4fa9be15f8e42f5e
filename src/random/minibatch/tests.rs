//! Minibatches: distinct rows, and equal probability of every subset.

use super::super::{Purpose, Seed, Who};
use super::*;
use std::collections::HashMap;

fn stream() -> Stream {
    Seed(9).stream(Who::Chain(1), 0, Purpose::Minibatch)
}

#[test]
fn batches_are_distinct_rows_whatever_the_sizes() {
    let mut stream = stream();
    for rows in [0_usize, 1, 2, 3, 7, 64, 65, 1000] {
        for size in [0, 1, 2, 3, rows / 2, rows / 2 + 1, rows.saturating_sub(1), rows, rows + 5] {
            let mut minibatch = Minibatch::new(rows, size);
            for _ in 0..20 {
                let mut batch = minibatch.draw(&mut stream).to_vec();
                assert!(batch.iter().all(|&row| row < rows));
                batch.sort_unstable();
                batch.dedup();
                assert_eq!(batch.len(), size.min(rows));
            }
        }
    }
}

#[test]
fn a_batch_of_all_rows_is_ascending() {
    assert!(Minibatch::new(9, 12).draw(&mut stream()).iter().copied().eq(0..9));
    assert!(Minibatch::new(9, 9).draw(&mut stream()).iter().copied().eq(0..9));
}

#[test]
fn a_batch_depends_on_the_stream_only() {
    for size in [20, 400] {
        let (mut used, mut fresh) = (Minibatch::new(500, size), Minibatch::new(500, size));
        let mut stream = stream();
        used.draw(&mut stream);
        assert_eq!(used.draw(&mut stream.clone()), fresh.draw(&mut stream));
    }
}

#[test]
fn every_subset_is_equally_likely() {
    let mut stream = stream();
    for (size, subsets) in [(1, 8.0), (3, 56.0), (4, 70.0), (5, 56.0), (6, 28.0), (7, 8.0)] {
        let mut minibatch = Minibatch::new(8, size);
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for _ in 0..200_000 {
            *counts.entry(minibatch.draw(&mut stream).iter().map(|row| 1 << row).sum()).or_default() += 1;
        }
        assert_eq!(counts.len() as f64, subsets);
        let expected = 200_000.0 / subsets;
        let chi: f64 = counts.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        // 4.5 is exceeded with probability 1.2e-3 at 7 degrees of freedom, and 9e-5 at 69; the seed is fixed.
        let z = (chi - (subsets - 1.0)) / f64::sqrt(2.0 * (subsets - 1.0));
        assert!(z.abs() < 4.5, "{size} of 8: {z}");
    }
}

#[test]
fn rows_of_a_large_dataset_are_equally_frequent_and_so_are_pairs() {
    const ROWS: usize = 2000;
    const DRAWS: usize = 20_000;
    let mut stream = stream();
    for size in [100, 1500] {
        let mut minibatch = Minibatch::new(ROWS, size);
        let (mut counts, mut together) = (vec![0_u32; ROWS], 0.0);
        let mut inside = vec![false; ROWS];
        for _ in 0..DRAWS {
            inside.fill(false);
            for &row in minibatch.draw(&mut stream) {
                counts[row] += 1;
                inside[row] = true;
            }
            together += inside.chunks_exact(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        }
        let (draws, rows, size) = (DRAWS as f64, ROWS as f64, size as f64);
        let p = size / rows;
        let chi: f64 = counts.iter().map(|&count| (f64::from(count) - draws * p).powi(2)).sum::<f64>() / (draws * p * (1.0 - p));
        // The inclusions of one draw have covariance p (1 − p) rows / (rows − 1) (I − 11ᵀ / rows).
        let z = (chi * (rows - 1.0) / rows - (rows - 1.0)) / f64::sqrt(2.0 * (rows - 1.0));
        assert!(z.abs() < 4.5, "{size}: {z}");
        // Rows 2i and 2i + 1 in one batch. Pairs are negatively correlated, so the variance is at most that of independent ones.
        let pair = p * (size - 1.0) / (rows - 1.0);
        let trials = draws * rows / 2.0;
        let z = (together - trials * pair) / f64::sqrt(trials * pair * (1.0 - pair));
        assert!(z.abs() < 4.5, "{size}: {z}");
    }
}
