//! The rows of an agent in memory, dense or sparse.

use crate::data::pages::make_large;
use crate::data::sparse::SparseRows;
use crate::models::{Batch, Model, Scratch};
use crate::number::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, CowArray, Ix2, s};
use std::ops::Range;
use std::sync::Arc;

/// Scaled rows of a dataset in memory, which clones share. Models get dense rows: sparse rows are converted block by block.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard<F> {
    x: Arc<Features<F>>,
    /// Targets or class indices, one per row.
    y: Arc<Array1<F>>,
    target_unit: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Features<F> {
    /// Rows × features, row-major.
    Dense(Array2<F>),
    Sparse(SparseRows<F>),
}

impl<F: Real> Shard<F> {
    /// A shard of these features (rows × features) and targets (rows).
    ///
    /// # Panics
    /// If the numbers of rows and targets differ.
    pub fn new(x: Array2<F>, y: Array1<F>) -> Self {
        let x = if x.is_standard_layout() { x } else { x.as_standard_layout().into_owned() };
        if let Some(numbers) = x.as_slice() {
            make_large(numbers);
        }
        Self::from_features(Features::Dense(x), y)
    }

    /// A shard of sparse rows and targets.
    ///
    /// # Panics
    /// If the numbers of rows and targets differ.
    pub fn sparse(x: SparseRows<F>, y: Array1<F>) -> Self {
        Self::from_features(Features::Sparse(x), y)
    }

    fn from_features(x: Features<F>, y: Array1<F>) -> Self {
        let y = if y.is_standard_layout() { y } else { y.as_standard_layout().into_owned() };
        let shard = Self { x: Arc::new(x), y: Arc::new(y), target_unit: 1.0 };
        assert_eq!(shard.rows(), shard.y.len(), "features and targets have different numbers of rows");
        shard
    }

    /// The same rows, with 1 of a target equal to `target_unit` in the units of the dataset.
    #[must_use]
    pub fn with_target_unit(self, target_unit: f64) -> Self {
        Self { target_unit, ..self }
    }

    /// The same rows with all targets 0, in units of 1.
    #[must_use]
    pub fn without_targets(self) -> Self {
        let y = Arc::new(Array1::zeros(self.rows()));
        Self { y, target_unit: 1.0, ..self }
    }

    /// A shard with the same features but no rows.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self::new(Array2::zeros((0, self.features())), Array1::zeros(0)).with_target_unit(self.target_unit)
    }

    /// The value of 1 of a target in the units of the dataset. It is the standard deviation if targets are standardized, and 1 otherwise.
    pub fn target_unit(&self) -> f64 {
        self.target_unit
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match &*self.x {
            Features::Dense(x) => x.nrows(),
            Features::Sparse(x) => x.rows(),
        }
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        match &*self.x {
            Features::Dense(x) => x.ncols(),
            Features::Sparse(x) => x.features(),
        }
    }

    /// The features, rows × features, row-major. Allocates a dense matrix if rows are sparse.
    pub fn x(&self) -> CowArray<'_, F, Ix2> {
        match &*self.x {
            Features::Dense(x) => x.view().into(),
            Features::Sparse(sparse) => {
                let mut x = Array2::zeros((sparse.rows(), sparse.features()));
                for (row, mut dense) in x.rows_mut().into_iter().enumerate() {
                    if let Some(dense) = dense.as_slice_mut() {
                        sparse.fill(row, dense);
                    }
                }
                x.into()
            }
        }
    }

    /// The targets, one per row.
    pub fn y(&self) -> ArrayView1<'_, F> {
        self.y.view()
    }

    /// All rows if they are dense.
    pub fn dense(&self) -> Option<Batch<'_, F>> {
        match &*self.x {
            Features::Dense(x) => Some(Batch { x: x.view(), y: self.y.view() }),
            Features::Sparse(_) => None,
        }
    }

    /// Checks that the model accepts the rows.
    ///
    /// # Errors
    /// The model's message.
    pub fn check(&self, model: &dyn Model<F>, scratch: &mut Scratch<F>) -> Result<(), String> {
        let mut checked = Ok(());
        self.blocks(scratch, |_, batch, _| {
            if checked.is_ok() {
                checked = model.check(batch);
            }
        });
        checked
    }

    /// Calls `each` with dense blocks of all rows in order, and with the row indices of each block. Dense rows are one block, which is not
    /// copied. Blocks of sparse rows have at most a few megabytes, or one row; their size depends only on the number of features.
    pub fn blocks(&self, scratch: &mut Scratch<F>, mut each: impl FnMut(Range<usize>, Batch<F>, &mut Scratch<F>)) {
        match &*self.x {
            Features::Dense(x) => each(0..x.nrows(), Batch { x: x.view(), y: self.y.view() }, scratch),
            Features::Sparse(x) => {
                let block_rows = x.block();
                for first in (0..x.rows()).step_by(block_rows) {
                    let rows = first..(first + block_rows).min(x.rows());
                    let y = self.y.slice(s![rows.clone()]);
                    with_dense_rows(x, rows.clone(), scratch, |x, scratch| each(rows.clone(), Batch { x, y }, scratch));
                }
            }
        }
    }

    /// Like [`Shard::blocks`] for these rows in this order, which are copied. The range passed with a block is its range in `rows`.
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn blocks_of(
        &self,
        rows: &[usize],
        scratch: &mut Scratch<F>,
        mut each: impl FnMut(Range<usize>, Batch<F>, &mut Scratch<F>),
    ) {
        match &*self.x {
            Features::Dense(x) => {
                let all = Batch { x: x.view(), y: self.y.view() };
                scratch.gather(all, rows, |batch, scratch| each(0..rows.len(), batch, scratch));
            }
            Features::Sparse(x) => {
                for (block, part) in rows.chunks(x.block()).enumerate() {
                    let first = block * x.block();
                    let mut y = scratch.take(part.len());
                    y.iter_mut().zip(part).for_each(|(y, &row)| *y = self.y[row]);
                    with_dense_rows(x, part.iter().copied(), scratch, |x, scratch| {
                        each(first..first + part.len(), Batch { x, y: ArrayView1::from(&*y) }, scratch);
                    });
                    scratch.put(y);
                }
            }
        }
    }
}

/// Calls `compute` with a dense copy of these rows, in a buffer from `scratch`.
fn with_dense_rows<F: Real>(
    sparse: &SparseRows<F>,
    rows: impl ExactSizeIterator<Item = usize>,
    scratch: &mut Scratch<F>,
    compute: impl FnOnce(ArrayView2<F>, &mut Scratch<F>),
) {
    let (count, features) = (rows.len(), sparse.features());
    let mut dense = scratch.take(count * features);
    // `max`: chunks must not be empty. Without features there is nothing to fill.
    dense.chunks_exact_mut(features.max(1)).zip(rows).for_each(|(dense, row)| sparse.fill(row, dense));
    if let Ok(x) = ArrayView2::from_shape((count, features), &dense) {
        compute(x, scratch);
    }
    scratch.put(dense);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transposed_array_is_stored_row_major() {
        let wide = Array2::from_shape_fn((2, 3), |(i, j)| (10 * i + j) as f64);
        let shard = Shard::new(wide.reversed_axes(), Array1::zeros(3));
        assert_eq!(shard.x().as_slice(), Some(&[0.0, 10.0, 1.0, 11.0, 2.0, 12.0][..]));
    }

    /// Rows of 100,000 features of 8 bytes: a block has five rows.
    fn wide(rows: usize) -> Shard<f64> {
        let columns = (0..rows).map(|row| u32::try_from(row * 7 % 100_000).unwrap_or(0)).collect();
        let values = (0..rows).map(|row| row as f64 + 0.5).collect();
        let y = Array1::from_shape_fn(rows, |row| row as f64);
        Shard::sparse(SparseRows::new(100_000, (0..=rows).collect(), columns, values), y)
    }

    #[test]
    fn blocks_are_all_rows_in_order_and_small() {
        let (shard, mut scratch) = (wide(23), Scratch::new());
        let mut seen = Vec::new();
        shard.blocks(&mut scratch, |rows, batch, _| {
            assert!(batch.x.len() * 8 <= 1 << 22);
            assert_eq!(batch.x, shard.x().slice(s![rows.clone(), ..]));
            assert_eq!(batch.y, shard.y().slice(s![rows.clone()]));
            seen.extend(rows);
        });
        assert!(seen.into_iter().eq(0..23));
        let wanted = [22, 0, 0, 7, 9, 11, 3];
        let mut seen = 0;
        shard.blocks_of(&wanted, &mut scratch, |places, batch, _| {
            assert!(batch.x.len() * 8 <= 1 << 22 && places.start == seen);
            for (place, (x, y)) in places.zip(batch.x.rows().into_iter().zip(batch.y)) {
                assert_eq!((x, *y), (shard.x().row(wanted[place]), wanted[place] as f64));
                seen += 1;
            }
        });
        assert_eq!(seen, wanted.len());
        // Dense rows are one block, without a copy.
        let dense = Shard::new(shard.x().into_owned(), shard.y().to_owned());
        dense.blocks(&mut scratch, |rows, batch, _| {
            assert_eq!((rows, Some(batch.x.as_ptr())), (0..23, dense.dense().map(|all| all.x.as_ptr())));
        });
        assert!(shard.dense().is_none());
    }
}
