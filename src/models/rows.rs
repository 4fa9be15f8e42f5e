//! Rows of a batch that a sum goes over, and their blocks.

use super::Batch;

/// Rows of the largest block.
pub const MOST_BLOCK_ROWS: usize = 128;

/// Rows of a batch: all, or these in this order.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'b, 'c, F> {
    /// All rows.
    pub batch: Batch<'b, F>,
    /// The numbers of those that are meant, if not all are.
    pub chosen: Option<&'c [usize]>,
}

impl<F: Copy> Rows<'_, '_, F> {
    /// How many there are.
    pub fn count(self) -> usize {
        self.chosen.map_or(self.batch.x.nrows(), <[usize]>::len)
    }

    /// Calls `visit` with blocks of at most `size` (and [`MOST_BLOCK_ROWS`]) rows: how many came before, and their numbers in the batch.
    pub fn blocks(self, size: usize, mut visit: impl FnMut(usize, &[usize])) {
        let (count, size) = (self.count(), size.min(MOST_BLOCK_ROWS));
        let mut own = [0; MOST_BLOCK_ROWS];
        for first in (0..count).step_by(size) {
            let last = count.min(first + size);
            match self.chosen {
                Some(rows) => visit(first, &rows[first..last]),
                None => {
                    own.iter_mut().zip(first..last).for_each(|(row, number)| *row = number);
                    visit(first, &own[..last - first]);
                }
            }
        }
    }
}
