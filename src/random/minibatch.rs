//! Fresh minibatches: uniform without replacement, in time proportional to the batch.

use super::Stream;
use rand::RngExt;

/// Draws minibatches from `rows` rows; reuses its memory.
#[derive(Clone, Debug)]
pub struct Minibatch {
    rows: usize,
    batch: Vec<usize>,
}

impl Minibatch {
    /// Batches of min(`size`, `rows`) of `rows` rows.
    pub fn new(rows: usize, size: usize) -> Self {
        Self { rows, batch: vec![0; size.min(rows)] }
    }

    /// The next batch: distinct row numbers, every subset equally likely.
    pub fn draw(&mut self, stream: &mut Stream) -> &[usize] {
        for i in 0..self.batch.len() {
            self.batch[i] = loop {
                let row = stream.random_range(0..self.rows);
                if !self.batch[..i].contains(&row) {
                    break row;
                }
            };
        }
        &self.batch
    }
}
