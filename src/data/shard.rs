//! Rows in memory: what an agent computes on.

use crate::models::Batch;
use crate::number::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// Rows of a dataset in memory, scaled and ready to compute on.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard<F> {
    /// Features, rows × features, row-major.
    x: Array2<F>,
    /// Targets, one per row: numbers, or indices of classes.
    y: Array1<F>,
    target_unit: f64,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_array_is_laid_out_anew() {
        let wide = Array2::from_shape_fn((2, 3), |(i, j)| (10 * i + j) as f64);
        let shard = Shard::new(wide.reversed_axes(), Array1::zeros(3));
        assert_eq!(shard.x().as_slice(), Some(&[0.0, 10.0, 1.0, 11.0, 2.0, 12.0][..]));
    }
}
