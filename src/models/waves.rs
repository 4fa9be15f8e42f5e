//! Predictions of blocks of rows, on several threads.

use super::Batch;
use crate::number::Real;
use rayon::prelude::*;

/// Calls `predict` for each block of `block_rows` rows with its means, its densities and a memory, in waves of as many blocks as there are
/// memories. With a single memory, it stays on this thread.
pub(super) fn predict_in_waves<F: Real, M: Send>(
    (batch, block_rows): (Batch<F>, usize),
    (mean, density): (&mut [f64], &mut [f64]),
    memories: &mut [M],
    predict: impl Fn(Batch<F>, &mut [f64], &mut [f64], &mut M) + Sync,
) {
    let rows = batch.x.nrows();
    if rows == 0 {
        return;
    }
    let (outputs, wave_rows) = (mean.len() / rows, memories.len() * block_rows);
    for (wave, (mean, density)) in mean.chunks_mut(wave_rows * outputs).zip(density.chunks_mut(wave_rows)).enumerate() {
        let work = |block: usize, mean: &mut [f64], density: &mut [f64], memory: &mut M| {
            let first = wave * wave_rows + block * block_rows;
            predict(batch.slice(first..first + density.len()), mean, density, memory);
        };
        if let [memory] = &mut *memories {
            work(0, mean, density, memory);
        } else {
            let blocks = mean.par_chunks_mut(block_rows * outputs).zip(density.par_chunks_mut(block_rows));
            let blocks = blocks.zip(memories.par_iter_mut()).enumerate();
            blocks.for_each(|(block, ((mean, density), memory))| work(block, mean, density, memory));
        }
    }
}
