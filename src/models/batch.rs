//! Rows of data as models see them: a batch, a selection of its rows, and blocks of rows.

use ndarray::{ArrayView1, ArrayView2, s};
use std::ops::Range;

/// Rows of data on which a loss is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a, F> {
    /// Features, rows × features, row-major.
    pub x: ArrayView2<'a, F>,
    /// Targets, one per row: a number for regression, a class index (0, 1, ...) for classification.
    pub y: ArrayView1<'a, F>,
}

impl<'a, F> Batch<'a, F> {
    /// The consecutive rows `rows`.
    pub fn slice(self, rows: Range<usize>) -> Self {
        Self { x: self.x.slice_move(s![rows.clone(), ..]), y: self.y.slice_move(s![rows]) }
    }

    /// The batch in consecutive blocks of `size` rows; the last block may be shorter.
    pub(super) fn blocks(self, size: usize) -> impl Iterator<Item = Self>
    where
        F: Copy,
    {
        let rows = self.x.nrows();
        (0..rows).step_by(size).map(move |first| self.slice(first..rows.min(first + size)))
    }
}

/// The largest number of rows that [`Rows::for_each_block`] passes at a time.
pub const MAX_BLOCK_ROWS: usize = 128;

/// All rows of a batch, or a selection of them in a given order.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'b, 'c, F> {
    /// The batch.
    pub batch: Batch<'b, F>,
    /// Indices of the selected rows; `None` for all rows.
    pub selected: Option<&'c [usize]>,
}

impl<F: Copy> Rows<'_, '_, F> {
    /// The number of rows.
    pub fn count(self) -> usize {
        self.selected.map_or(self.batch.x.nrows(), <[usize]>::len)
    }

    /// Calls `visit` for consecutive blocks of at most `size` and [`MAX_BLOCK_ROWS`] rows, with the number of rows before the block and
    /// the indices of its rows in the batch.
    pub fn for_each_block(self, size: usize, mut visit: impl FnMut(usize, &[usize])) {
        let (count, size) = (self.count(), size.min(MAX_BLOCK_ROWS));
        let mut indices = [0; MAX_BLOCK_ROWS];
        for first in (0..count).step_by(size) {
            let last = count.min(first + size);
            match self.selected {
                Some(rows) => visit(first, &rows[first..last]),
                None => {
                    indices.iter_mut().zip(first..last).for_each(|(index, row)| *index = row);
                    visit(first, &indices[..last - first]);
                }
            }
        }
    }
}
