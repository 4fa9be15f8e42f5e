//! One-dimensional HDF5 datasets that grow chunk by chunk.

use crate::data::dataset::write::CHUNK_BYTES;

/// A one-dimensional dataset to which numbers are appended.
pub(crate) struct GrowingList<T> {
    pub data: hdf5::Dataset,
    buffer: Vec<T>,
    /// How many numbers are in the file.
    pub written: usize,
}

impl<T: hdf5::H5Type + Copy> GrowingList<T> {
    pub fn new(group: &hdf5::Group, name: &str) -> hdf5::Result<Self> {
        let data = group
            .new_dataset::<T>()
            .chunk(CHUNK_BYTES / size_of::<T>())
            .fill_time(hdf5::dataset::FillTime::Never)
            .obj_track_times(false)
            .shape(0..)
            .create(name)?;
        Ok(Self { data, buffer: Vec::new(), written: 0 })
    }

    pub fn push(&mut self, value: T) -> hdf5::Result<()> {
        self.buffer.push(value);
        if self.buffer.len() == CHUNK_BYTES / size_of::<T>() { self.flush() } else { Ok(()) }
    }

    pub fn extend(&mut self, values: &[T]) -> hdf5::Result<()> {
        values.iter().try_for_each(|&value| self.push(value))
    }

    /// Writes the buffered numbers.
    pub fn flush(&mut self) -> hdf5::Result<()> {
        let end = self.written + self.buffer.len();
        self.data.resize(end)?;
        self.data.write_slice(self.buffer.as_slice(), self.written..end)?;
        self.written = end;
        self.buffer.clear();
        Ok(())
    }
}
