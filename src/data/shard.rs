//! Rows in memory: what an agent computes on, and minibatches gathered from it.

use crate::models::Batch;
use crate::number::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};

/// Rows of a dataset in memory, scaled and ready to compute on.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard<F> {
    /// Features, rows × features, row-major.
    x: Array2<F>,
    /// Targets, one per row: numbers, or indices of classes.
    y: Array1<F>,
    target_unit: f64,
}

/// Memory for minibatches that is used again and again.
#[derive(Clone, Debug)]
pub struct BatchBuffer<F> {
    x: Array2<F>,
    y: Array1<F>,
}

impl<F: Real> BatchBuffer<F> {
    /// An empty buffer.
    pub fn new() -> Self {
        Self { x: Array2::zeros((0, 0)), y: Array1::zeros(0) }
    }
}

impl<F: Real> Default for BatchBuffer<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Real> Shard<F> {
    /// A shard of these features (rows × features) and targets (rows).
    ///
    /// # Panics
    /// When there are not as many targets as rows.
    pub fn new(x: Array2<F>, y: Array1<F>) -> Self {
        assert_eq!(x.nrows(), y.len(), "features and targets have different numbers of rows");
        let x = if x.is_standard_layout() { x } else { x.as_standard_layout().into_owned() };
        let y = if y.is_standard_layout() { y } else { y.as_standard_layout().into_owned() };
        Self { x, y, target_unit: 1.0 }
    }

    /// The same rows, whose targets are numbers in units of this many of the dataset's.
    #[must_use]
    pub fn with_target_unit(self, target_unit: f64) -> Self {
        Self { target_unit, ..self }
    }

    /// How much 1 of the targets is in the dataset's own units: their standard deviation where they are standardised.
    pub fn target_unit(&self) -> f64 {
        self.target_unit
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.x.nrows()
    }

    /// How many features.
    pub fn features(&self) -> usize {
        self.x.ncols()
    }

    /// The features, rows × features, row-major.
    pub fn x(&self) -> ArrayView2<'_, F> {
        self.x.view()
    }

    /// The targets, one per row.
    pub fn y(&self) -> ArrayView1<'_, F> {
        self.y.view()
    }

    /// All rows.
    pub fn batch(&self) -> Batch<'_, F> {
        Batch { x: self.x.view(), y: self.y.view() }
    }

    /// The given rows, in the given order, copied into `into`, which is not allocated anew once it is large enough.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn gather<'b>(&self, rows: &[usize], into: &'b mut BatchBuffer<F>) -> Batch<'b, F> {
        // Random rows miss the cache: ask for them this many rows ahead.
        const AHEAD: usize = 4;
        let features = self.features();
        if into.x.nrows() < rows.len() || into.x.ncols() != features {
            *into = BatchBuffer { x: Array2::zeros((rows.len(), features)), y: Array1::zeros(rows.len()) };
        }
        let (x, y) = (self.x.as_slice().unwrap_or_default(), self.y.as_slice().unwrap_or_default());
        for &row in rows.iter().take(AHEAD) {
            prefetch(x, row * features, features);
        }
        // `max`: chunks of no elements are refused, and of no features there is nothing to copy.
        let slots = into.x.as_slice_mut().unwrap_or_default().chunks_exact_mut(features.max(1));
        for (i, (slot, &row)) in slots.zip(rows).enumerate() {
            if let Some(&later) = rows.get(i + AHEAD) {
                prefetch(x, later * features, features);
            }
            slot.copy_from_slice(&x[row * features..(row + 1) * features]);
        }
        for (target, &row) in into.y.iter_mut().zip(rows) {
            *target = y[row];
        }
        Batch { x: into.x.slice(s![..rows.len(), ..]), y: into.y.slice(s![..rows.len()]) }
    }
}

/// Asks the processor to fetch `len` elements from `start` on; the hardware's own prefetcher continues after the first lines.
#[inline]
fn prefetch<F>(data: &[F], start: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        const MOST_LINES: usize = 8;
        let bytes = (len * size_of::<F>()).min(LINE * MOST_LINES);
        let first = data.as_ptr().wrapping_add(start).cast::<i8>();
        for offset in (0..bytes).step_by(LINE) {
            // SAFETY: a prefetch is a hint and reads nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, start, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(rows: usize, features: usize) -> Shard<f64> {
        Shard::new(
            Array2::from_shape_fn((rows, features), |(i, j)| (i * 1000 + j) as f64),
            Array1::from_shape_fn(rows, |i| -(i as f64)),
        )
    }

    #[test]
    fn gather_copies_the_rows_in_their_order() {
        for features in [1, 3, 54, 784] {
            let shard = shard(50, features);
            let mut buffer = BatchBuffer::new();
            for rows in [vec![], vec![49], vec![3, 3, 0, 49, 7, 8, 9, 10, 11, 12, 13, 14], (0..50).collect()] {
                let batch = shard.gather(&rows, &mut buffer);
                assert_eq!(batch.x, shard.x().select(ndarray::Axis(0), &rows));
                assert_eq!(batch.y, shard.y().select(ndarray::Axis(0), &rows));
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_row_that_does_not_exist_panics() {
        shard(3, 2).gather(&[3], &mut BatchBuffer::new());
    }

    #[test]
    fn a_transposed_array_is_laid_out_anew() {
        let wide = Array2::from_shape_fn((2, 3), |(i, j)| (10 * i + j) as f64);
        let shard = Shard::new(wide.reversed_axes(), Array1::zeros(3));
        assert_eq!(shard.gather(&[2], &mut BatchBuffer::new()).x, ndarray::array![[2.0, 12.0]]);
    }
}
