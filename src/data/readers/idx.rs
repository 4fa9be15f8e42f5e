//! Reads IDX files (MNIST, Fashion-MNIST): a big-endian header, then bytes.
//!
//! One file has the images, another one their labels.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::npy::MAX_DIMENSIONS;
use crate::data::readers::source::{Source, read_error};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// An IDX file of unsigned bytes, whose header has been checked against its size.
pub struct Idx<'a> {
    source: Source<'a>,
    shape: Vec<usize>,
    /// The number of records to read.
    wanted: usize,
    /// The last record that was read.
    record: Vec<u8>,
}

impl<'a> Idx<'a> {
    /// Reads the header and the first record, so that a caller does not allocate memory for records that do not exist.
    ///
    /// # Errors
    /// If the input is no IDX file of unsigned bytes, its header does not match its size, or it is empty.
    pub fn open(mut source: Source<'a>) -> Result<Self> {
        let path = source.path.clone();
        let wrong = |what: String| DataError::content(&path, Place::File, what);
        let mut read = |what: &str| -> Result<[u8; 4]> {
            let mut word = [0; 4];
            match source.reader.read_exact(&mut word) {
                Ok(()) => Ok(word),
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(wrong(format!("the file ends inside {what}"))),
                Err(error) => Err(read_error(&path, Place::File, error)),
            }
        };
        let [first, second, kind, dimensions] = read("the IDX header")?;
        if (first, second) != (0, 0) {
            return Err(wrong("this is no IDX file: it does not begin with two zero bytes".into()));
        }
        if kind != 8 {
            return Err(wrong(format!("an IDX file of type {kind:#04x}: only unsigned bytes (0x08) are supported")));
        }
        if usize::from(dimensions) > MAX_DIMENSIONS {
            return Err(wrong(format!("an IDX header of {dimensions} dimensions: the file is damaged")));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let size = u32::from_be_bytes(read("the IDX header")?);
            shape.push(usize::try_from(size).map_err(|_| wrong(format!("a dimension of {size} is too large for this machine")))?);
        }
        let bytes = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size)).filter(|&bytes| bytes > 0);
        let header = 4 + 4 * u64::from(dimensions);
        match bytes.and_then(|bytes| u64::try_from(bytes).ok()) {
            Some(bytes) if !shape.is_empty() && bytes <= source.most_bytes.saturating_sub(header) => {}
            _ => {
                return Err(wrong(format!(
                    "the header promises {shape:?} bytes, which a file of this size cannot hold: it is damaged or cut short"
                )));
            }
        }
        let wanted = shape[0];
        let mut idx = Self { source, shape, wanted, record: Vec::new() };
        idx.read_record(1)?;
        Ok(idx)
    }

    /// The shape of a record; empty for single bytes.
    pub(crate) fn row_shape(&self) -> &[usize] {
        &self.shape[1..]
    }

    /// The number of bytes in a record.
    pub fn row_size(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// The number of records that the header promises.
    pub(crate) fn rows_in_file(&self) -> usize {
        self.shape[0]
    }

    /// Only the first records from now on.
    ///
    /// # Errors
    /// If there are fewer.
    pub(crate) fn first(&mut self, rows: usize) -> Result<()> {
        if rows == 0 || rows > self.shape[0] {
            let what = format!("the first {rows} images are wanted, but it has {}", self.shape[0]);
            return Err(DataError::content(&self.source.path, Place::File, what));
        }
        self.wanted = rows;
        Ok(())
    }

    /// Reads a file of labels for these images, of all or of the first ones that are wanted.
    pub(crate) fn labels(&self, path: &Path) -> Result<Vec<u8>> {
        if self.shape.len() < 2 {
            let what = "a list of single bytes, as labels are: images have at least two dimensions".to_owned();
            return Err(DataError::content(&self.source.path, Place::File, what));
        }
        let mut labels = Idx::open(Source::open(path)?)?;
        if labels.shape.len() != 1 {
            let what = format!("labels have one dimension, this file has {}: is it a file of images?", labels.shape.len());
            return Err(DataError::content(path, Place::File, what));
        }
        if labels.shape[0] != self.shape[0] {
            let (count, images, theirs) = (labels.shape[0], self.shape[0], self.source.path.display());
            let what = format!("{count} labels for the {images} images of {theirs}: these files do not belong together");
            return Err(DataError::content(path, Place::File, what));
        }
        let mut all = Vec::new();
        labels.wanted = self.wanted;
        labels.rows(|row| {
            all.extend_from_slice(row);
            Ok(())
        })?;
        Ok(all)
    }

    fn read_record(&mut self, record: u64) -> Result<()> {
        let size = self.row_size();
        let path = &self.source.path.clone();
        let read = self.source.fill(&mut self.record, size as u64);
        read.map_err(|error| read_error(path, Place::Record(record), error))?;
        if self.record.len() < size {
            let what = format!("the file ends here, its header promises {} records: fetch the file again", self.shape[0]);
            return Err(DataError::content(path, Place::Record(record), what));
        }
        Ok(())
    }

    /// Calls `each` with every record, and checks that the input ends after the last.
    ///
    /// # Errors
    /// If the input is too short or too long, or cannot be read; and those of `each`.
    pub fn rows(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for record in (1..).take(self.wanted) {
            if record > 1 {
                self.read_record(record)?;
            }
            each(&self.record)?;
        }
        if self.wanted < self.shape[0] { Ok(()) } else { self.source.check_end(self.shape[0]) }
    }
}
