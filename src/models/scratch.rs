//! Reusable buffers for models, so that nothing is allocated inside a step.

use crate::number::Real;

/// A pool of buffers: `take` one, give it back with `put`, and the next step finds it again.
#[derive(Debug, Default)]
pub struct Scratch<F> {
    free: Vec<Vec<F>>,
}

impl<F: Real> Scratch<F> {
    /// An empty pool.
    pub fn new() -> Self {
        Self { free: Vec::new() }
    }

    /// A buffer of this length with unspecified contents: the smallest free one that is large enough.
    pub fn take(&mut self, len: usize) -> Vec<F> {
        let fit = (0..self.free.len()).filter(|&i| self.free[i].capacity() >= len).min_by_key(|&i| self.free[i].capacity());
        let mut buffer = fit.map_or_else(|| Vec::with_capacity(len), |i| self.free.swap_remove(i));
        buffer.resize(len, F::zero());
        buffer
    }

    /// Gives a buffer back.
    pub fn put(&mut self, buffer: Vec<F>) {
        self.free.push(buffer);
    }
}
