//! Reusable buffers for models, which avoid allocations inside a step.

use super::batch::Batch;
use crate::layout::{flat, matrix};
use crate::number::Real;
use crate::vector::prefetch;
use ndarray::ArrayView1;
use std::ops::{Deref, DerefMut};

/// A pool of buffers: `take` a buffer, return it with `put`, and the next step reuses it.
#[derive(Debug, Default)]
pub struct Scratch<F> {
    free: Vec<Buffer<F>>,
}

/// Values that begin at a cache line, because vectors that straddle lines cost double.
#[derive(Debug, Default)]
pub struct Buffer<F> {
    memory: Vec<F>,
    start: usize,
    len: usize,
}

impl<F> Buffer<F> {
    /// The values of a cache line.
    const LINE: usize = 64 / size_of::<F>();
}

impl<F> Deref for Buffer<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        &self.memory[self.start..][..self.len]
    }
}

impl<F> DerefMut for Buffer<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.memory[self.start..][..self.len]
    }
}

impl<F: Real> Scratch<F> {
    /// An empty pool.
    pub fn new() -> Self {
        Self { free: Vec::new() }
    }

    /// A buffer of this length with unspecified contents: the smallest free buffer that is large enough.
    pub fn take(&mut self, len: usize) -> Buffer<F> {
        let memory_len = len + Buffer::<F>::LINE;
        let capacity = |i: usize| self.free[i].memory.capacity();
        let fit = (0..self.free.len()).filter(|&i| capacity(i) >= memory_len).min_by_key(|&i| capacity(i));
        let mut memory = fit.map_or_else(|| Vec::with_capacity(memory_len), |i| self.free.swap_remove(i).memory);
        memory.resize(memory_len, F::zero());
        // An address that cannot be aligned only costs speed.
        let start = memory.as_ptr().align_offset(64).min(Buffer::<F>::LINE);
        Buffer { memory, start, len }
    }

    /// Returns a buffer to the pool.
    pub fn put(&mut self, buffer: Buffer<F>) {
        self.free.push(buffer);
    }

    /// Copies the rows of a batch with these indices into a contiguous batch, in this order, and calls `visit` with it.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn gather<T>(&mut self, from: Batch<F>, rows: &[usize], visit: impl FnOnce(Batch<F>, &mut Self) -> T) -> T {
        // Random rows miss the cache, so they are prefetched this many rows ahead.
        const AHEAD: usize = 4;
        let features = from.x.ncols();
        let x = flat(from.x);
        let (mut copies, mut targets) = (self.take(rows.len() * features), self.take(rows.len()));
        for &row in rows.iter().take(AHEAD) {
            prefetch(x, row * features, features);
        }
        // `max` because chunks of 0 elements panic; without features there is nothing to copy.
        for (i, (copy, &row)) in copies.chunks_exact_mut(features.max(1)).zip(rows).enumerate() {
            if let Some(&later) = rows.get(i + AHEAD) {
                prefetch(x, later * features, features);
            }
            copy.copy_from_slice(&x[row * features..][..features]);
        }
        for (target, &row) in targets.iter_mut().zip(rows) {
            *target = from.y[row];
        }
        let result = visit(Batch { x: matrix(&copies, rows.len(), features), y: ArrayView1::from(&*targets) }, self);
        self.put(copies);
        self.put(targets);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, Axis};

    fn data(rows: usize, features: usize) -> (Array2<f64>, Array1<f64>) {
        let x = Array2::from_shape_fn((rows, features), |(i, j)| (i * 1000 + j) as f64);
        (x, Array1::from_shape_fn(rows, |i| -(i as f64)))
    }

    #[test]
    fn gather_copies_the_rows_in_their_order() {
        let mut scratch = Scratch::new();
        for features in [1, 3, 54, 784] {
            let (x, y) = data(50, features);
            for rows in [vec![], vec![49], vec![3, 3, 0, 49, 7, 8, 9, 10, 11, 12, 13, 14], (0..50).collect()] {
                scratch.gather(Batch { x: x.view(), y: y.view() }, &rows, |batch, _| {
                    assert_eq!(batch.x, x.select(Axis(0), &rows));
                    assert_eq!(batch.y, y.select(Axis(0), &rows));
                });
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_row_that_does_not_exist_panics() {
        let (x, y) = data(3, 2);
        Scratch::new().gather(Batch { x: x.view(), y: y.view() }, &[3], |_, _| ());
    }

    #[test]
    fn buffers_begin_at_cache_lines_and_are_used_again() {
        fn check<F: Real>() {
            let mut scratch = Scratch::<F>::new();
            for len in [0, 1, 16, 17, 1000] {
                let mut buffer = scratch.take(len);
                assert_eq!(buffer.len(), len);
                assert!(buffer.as_ptr().addr().is_multiple_of(64));
                buffer.fill(F::one());
                scratch.put(buffer);
            }
            let place = scratch.free.iter().max_by_key(|buffer| buffer.memory.capacity()).map(|buffer| buffer.as_ptr());
            assert_eq!(Some(scratch.take(990).as_ptr()), place);
        }
        check::<f32>();
        check::<f64>();
    }
}
