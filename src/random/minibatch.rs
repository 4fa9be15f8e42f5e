//! Minibatches: rows drawn uniformly without replacement, in time proportional to the batch size.

use super::Stream;

/// Draws minibatches of rows; reuses its memory.
#[derive(Clone, Debug)]
pub struct Minibatch {
    rows: usize,
    batch: Vec<usize>,
    /// One bit per row; all 0 between draws.
    marks: Vec<u64>,
}

impl Minibatch {
    /// Batches of min(`size`, `rows`) out of `rows` rows.
    pub fn new(rows: usize, size: usize) -> Self {
        let size = size.min(rows);
        let marks = if size == rows { 0 } else { rows.div_ceil(64) };
        Self { rows, batch: (0..size).collect(), marks: vec![0; marks] }
    }

    /// The next batch: distinct row numbers, every subset equally likely, by rejection of rows that are already in it.
    ///
    /// Rows are in the order of drawing, or ascending if the batch has more than half of the rows: then the rows to leave out are
    /// drawn. A batch of all rows is 0, 1, 2, ... and uses no random numbers.
    pub fn draw(&mut self, stream: &mut Stream) -> &[usize] {
        let size = self.batch.len();
        if size == self.rows {
            return &self.batch;
        }
        if size <= self.rows / 2 {
            self.mark_new(size, stream);
            // Only these bits: `marks` may be much longer than the batch.
            for &row in &self.batch {
                self.marks[row / 64] = 0;
            }
        } else {
            self.mark_new(self.rows - size, stream);
            let marks = &self.marks;
            let kept = (0..self.rows).filter(|row| marks[row / 64] >> (row % 64) & 1 == 0);
            self.batch.iter_mut().zip(kept).for_each(|(place, row)| *place = row);
            self.marks.fill(0);
        }
        &self.batch
    }

    /// Marks `count` rows and writes their numbers to the front of the batch; `count` is at most the batch size.
    fn mark_new(&mut self, count: usize, stream: &mut Stream) {
        let (batch, marks) = (&mut self.batch[..count], &mut self.marks[..]);
        let mut found = 0;
        if let Ok(rows) = u32::try_from(self.rows) {
            // Lemire's bounded integers, taken directly from the stream's buffer.
            let least = rows.wrapping_neg() % rows;
            while found < count {
                for &word in stream.some_words(count - found) {
                    let product = u64::from(word) * u64::from(rows);
                    if product as u32 >= least {
                        let row = (product >> 32) as usize;
                        batch[found] = row;
                        found += usize::from(mark(marks, row));
                    }
                }
            }
        } else {
            while found < count {
                batch[found] = stream.below(self.rows);
                found += usize::from(mark(marks, batch[found]));
            }
        }
    }
}

/// Sets the bit of a row; returns whether it was clear before.
#[inline]
fn mark(marks: &mut [u64], row: usize) -> bool {
    let bit = 1 << (row % 64);
    let word = &mut marks[row / 64];
    let new = *word & bit == 0;
    *word |= bit;
    new
}

#[cfg(test)]
mod tests;
