//! Rows in memory: what an agent computes on, dense or sparse.

use crate::data::pages::make_large;
use crate::data::sparse::SparseRows;
use crate::models::{Batch, Model, Scratch};
use crate::number::Real;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, CowArray, Ix2, s};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a dataset in memory, scaled and ready to compute on; clones share them. Models see dense rows: sparse ones are made dense a few at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard<F> {
    x: Arc<Features<F>>,
    /// Targets, one per row: numbers, or indices of classes.
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
    /// When there are not as many targets as rows.
    pub fn new(x: Array2<F>, y: Array1<F>) -> Self {
        let x = if x.is_standard_layout() { x } else { x.as_standard_layout().into_owned() };
        if let Some(numbers) = x.as_slice() {
            make_large(numbers);
        }
        Self::of(Features::Dense(x), y)
    }

    /// A shard of sparse rows and targets.
    ///
    /// # Panics
    /// When there are not as many targets as rows.
    pub fn sparse(x: SparseRows<F>, y: Array1<F>) -> Self {
        Self::of(Features::Sparse(x), y)
    }

    fn of(x: Features<F>, y: Array1<F>) -> Self {
        let y = if y.is_standard_layout() { y } else { y.as_standard_layout().into_owned() };
        let shard = Self { x: Arc::new(x), y: Arc::new(y), target_unit: 1.0 };
        assert_eq!(shard.rows(), shard.y.len(), "features and targets have different numbers of rows");
        shard
    }

    /// The same rows, whose targets are numbers in units of this many of the dataset's.
    #[must_use]
    pub fn with_target_unit(self, target_unit: f64) -> Self {
        Self { target_unit, ..self }
    }

    /// The same rows with targets of 0 and unit 1: for those whose targets mean nothing to a model.
    #[must_use]
    pub fn without_targets(self) -> Self {
        let y = Arc::new(Array1::zeros(self.rows()));
        Self { y, target_unit: 1.0, ..self }
    }

    /// The same features and none of the rows.
    #[must_use]
    pub fn without_rows(&self) -> Self {
        Self::new(Array2::zeros((0, self.features())), Array1::zeros(0)).with_target_unit(self.target_unit)
    }

    /// How much 1 of the targets is in the dataset's own units: their standard deviation where they are standardised.
    pub fn target_unit(&self) -> f64 {
        self.target_unit
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        match &*self.x {
            Features::Dense(x) => x.nrows(),
            Features::Sparse(x) => x.rows(),
        }
    }

    /// How many features.
    pub fn features(&self) -> usize {
        match &*self.x {
            Features::Dense(x) => x.ncols(),
            Features::Sparse(x) => x.features(),
        }
    }

    /// The features, rows × features, row-major. To look at: sparse rows are all made dense for it.
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

    /// All rows, unless they are sparse.
    pub fn dense(&self) -> Option<Batch<'_, F>> {
        match &*self.x {
            Features::Dense(x) => Some(Batch { x: x.view(), y: self.y.view() }),
            Features::Sparse(_) => None,
        }
    }

    /// Whether the rows are what a model takes.
    ///
    /// # Errors
    /// The model's message.
    pub fn check(&self, model: &dyn Model<F>, scratch: &mut Scratch<F>) -> Result<(), String> {
        let mut found = Ok(());
        self.blocks(scratch, |_, batch, _| {
            if found.is_ok() {
                found = model.check(batch);
            }
        });
        found
    }

    /// Hands over all rows in order, as dense blocks with the numbers of their rows: dense rows as one block without a copy, sparse
    /// ones in blocks of a few megabytes at most (or one row), whose size depends on the number of features alone.
    pub fn blocks(&self, scratch: &mut Scratch<F>, mut each: impl FnMut(Range<usize>, Batch<F>, &mut Scratch<F>)) {
        match &*self.x {
            Features::Dense(x) => each(0..x.nrows(), Batch { x: x.view(), y: self.y.view() }, scratch),
            Features::Sparse(x) => {
                let block = x.block();
                for first in (0..x.rows()).step_by(block) {
                    let rows = first..(first + block).min(x.rows());
                    let y = self.y.slice(s![rows.clone()]);
                    made_dense(x, rows.clone(), scratch, |x, scratch| each(rows.clone(), Batch { x, y }, scratch));
                }
            }
        }
    }

    /// As [`Shard::blocks`] over these rows alone, in this order, which are copied together first; each block comes with the range of
    /// its places in `rows`.
    ///
    /// # Panics
    /// When a row does not exist.
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
                    made_dense(x, part.iter().copied(), scratch, |x, scratch| {
                        each(first..first + part.len(), Batch { x, y: ArrayView1::from(&y) }, scratch);
                    });
                    scratch.put(y);
                }
            }
        }
    }
}

/// Makes these rows dense in a buffer of the pool, for `use_them`.
fn made_dense<F: Real>(
    sparse: &SparseRows<F>,
    rows: impl ExactSizeIterator<Item = usize>,
    scratch: &mut Scratch<F>,
    use_them: impl FnOnce(ArrayView2<F>, &mut Scratch<F>),
) {
    let (count, features) = (rows.len(), sparse.features());
    let mut dense = scratch.take(count * features);
    // `max`: chunks of no elements are refused, and of no features there is nothing to fill.
    dense.chunks_exact_mut(features.max(1)).zip(rows).for_each(|(dense, row)| sparse.fill(row, dense));
    if let Ok(x) = ArrayView2::from_shape((count, features), &dense) {
        use_them(x, scratch);
    }
    scratch.put(dense);
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

    /// Rows of 100,000 features of 8 bytes: five of them make a block.
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
        // A control: dense rows are one block, and it is no copy.
        let dense = Shard::new(shard.x().into_owned(), shard.y().to_owned());
        dense.blocks(&mut scratch, |rows, batch, _| {
            assert_eq!((rows, Some(batch.x.as_ptr())), (0..23, dense.dense().map(|all| all.x.as_ptr())));
        });
        assert!(shard.dense().is_none());
    }
}
