//! Fresh minibatches: uniform without replacement, in time proportional to the batch.

use super::Stream;

/// Draws minibatches from `rows` rows; reuses its memory.
#[derive(Clone, Debug)]
pub struct Minibatch {
    rows: usize,
    batch: Vec<usize>,
    /// One bit for each row; all are 0 between draws.
    marks: Vec<u64>,
}

impl Minibatch {
    /// Batches of min(`size`, `rows`) of `rows` rows.
    pub fn new(rows: usize, size: usize) -> Self {
        let size = size.min(rows);
        let marks = if size == rows { 0 } else { rows.div_ceil(64) };
        Self { rows, batch: (0..size).collect(), marks: vec![0; marks] }
    }

    /// The next batch: distinct row numbers, every subset equally likely, by rejection of rows that are in it already.
    ///
    /// They come in the order of drawing, or ascending if the batch is more than half of the rows: then the rows to leave
    /// out are drawn. A batch of all rows is 0, 1, 2, ... and uses no random numbers.
    pub fn draw(&mut self, stream: &mut Stream) -> &[usize] {
        let size = self.batch.len();
        if size <= self.rows / 2 {
            for i in 0..size {
                self.batch[i] = self.mark_new(stream);
            }
            // Not the whole of `marks`: that may be far longer than the batch.
            for &row in &self.batch {
                self.marks[row / 64] = 0;
            }
        } else if size < self.rows {
            for _ in size..self.rows {
                self.mark_new(stream);
            }
            let marks = &self.marks;
            let kept = (0..self.rows).filter(|row| marks[row / 64] >> (row % 64) & 1 == 0);
            self.batch.iter_mut().zip(kept).for_each(|(place, row)| *place = row);
            self.marks.fill(0);
        }
        &self.batch
    }

    #[inline]
    fn mark_new(&mut self, stream: &mut Stream) -> usize {
        loop {
            let row = stream.below(self.rows);
            let word = &mut self.marks[row / 64];
            let bit = 1 << (row % 64);
            if *word & bit == 0 {
                *word |= bit;
                return row;
            }
        }
    }
}
