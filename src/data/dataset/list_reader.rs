//! Reads a one-dimensional HDF5 dataset from its start to its end, a block at a time.

use crate::data::verification::Progress;

/// The bytes of a block.
const BLOCK_BYTES: usize = 1 << 22;

/// A list that is read in order.
pub(crate) struct ListReader<'a, 'b, T> {
    data: hdf5::Dataset,
    length: usize,
    block: Vec<T>,
    /// The next value in the block.
    next: usize,
    /// The end of the block in the list.
    end: usize,
    /// The bytes of a value in the file.
    stored: u64,
    progress: &'a Progress<'b>,
}

impl<'a, 'b, T: hdf5::H5Type + Copy> ListReader<'a, 'b, T> {
    /// Starts to read a list.
    ///
    /// # Errors
    /// If it is not a list.
    pub fn new(data: hdf5::Dataset, progress: &'a Progress<'b>) -> hdf5::Result<Self> {
        let [length] = data.shape()[..] else {
            return Err(hdf5::Error::Internal(format!("{} is not a list", data.name())));
        };
        let stored = data.dtype()?.size() as u64;
        Ok(Self { data, length, block: Vec::new(), next: 0, end: 0, stored, progress })
    }

    /// Calls `each` with the next `count` values, in pieces.
    ///
    /// # Errors
    /// If there are fewer, or the file cannot be read.
    pub fn read(&mut self, count: usize, mut each: impl FnMut(&[T])) -> hdf5::Result<()> {
        let mut left = count;
        while left > 0 {
            if self.next == self.block.len() {
                self.read_block()?;
            }
            let piece = &self.block[self.next..self.block.len().min(self.next.saturating_add(left))];
            each(piece);
            self.next += piece.len();
            left -= piece.len();
        }
        Ok(())
    }

    /// The next value.
    ///
    /// # Errors
    /// If there is none, or the file cannot be read.
    pub fn read_one(&mut self) -> hdf5::Result<T> {
        let mut value = None;
        self.read(1, |values| value = values.first().copied())?;
        value.ok_or_else(|| self.ended())
    }

    /// Checks that all values were read.
    ///
    /// # Errors
    /// If some were not.
    pub fn finish(self) -> hdf5::Result<()> {
        let left = self.length - self.end + self.block.len() - self.next;
        if left == 0 { Ok(()) } else { Err(hdf5::Error::Internal(format!("{} has {left} values too many", self.data.name()))) }
    }

    fn read_block(&mut self) -> hdf5::Result<()> {
        let end = self.length.min(self.end + BLOCK_BYTES / size_of::<T>());
        if end == self.end {
            return Err(self.ended());
        }
        self.block = self.data.read_slice_1d::<T, _>(self.end..end)?.to_vec();
        self.progress.add(self.stored.saturating_mul(self.block.len() as u64));
        (self.next, self.end) = (0, end);
        Ok(())
    }

    fn ended(&self) -> hdf5::Error {
        hdf5::Error::Internal(format!("{} ends after {} values", self.data.name(), self.length))
    }
}
