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

/// Values whose first is at the beginning of a cache line, so that vectors of sixteen do not cross lines.
#[derive(Debug)]
pub struct Buffer<F> {
    lines: Vec<Lines<F>>,
    len: usize,
}

/// One cache line of `f32`, or two of `f64`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Lines<F>([F; VALUES]);

const VALUES: usize = 16;

impl<F> Default for Buffer<F> {
    fn default() -> Self {
        Self { lines: Vec::new(), len: 0 }
    }
}

impl<F: Real> Deref for Buffer<F> {
    type Target = [F];

    fn deref(&self) -> &[F] {
        // SAFETY: arrays of plain numbers without padding, one after another, and at least `len` numbers of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<F: Real> DerefMut for Buffer<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl<F: Real> Scratch<F> {
    /// An empty pool.
    pub fn new() -> Self {
        Self { free: Vec::new() }
    }

    /// A buffer of this length with unspecified contents: the smallest free buffer that is large enough.
    pub fn take(&mut self, len: usize) -> Buffer<F> {
        const { assert!(size_of::<Lines<F>>() == VALUES * size_of::<F>(), "lines have padding") };
        let lines = len.div_ceil(VALUES);
        let capacity = |i: usize| self.free[i].lines.capacity();
        let fit = (0..self.free.len()).filter(|&i| capacity(i) >= lines).min_by_key(|&i| capacity(i));
        let mut buffer = fit.map_or_else(Buffer::default, |i| self.free.swap_remove(i));
        buffer.lines.resize(lines, Lines([F::zero(); VALUES]));
        buffer.len = len;
        buffer
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
            let place = scratch.free.iter().max_by_key(|buffer| buffer.lines.capacity()).map(|buffer| buffer.as_ptr());
            assert_eq!(Some(scratch.take(990).as_ptr()), place);
        }
        check::<f32>();
        check::<f64>();
    }
}
