//! Compares the content of a dataset or a corpus with the digest that its file states: progress, result and errors.

use super::error::{DataError, Place, Result};
use std::cell::{Cell, RefCell};
use std::path::Path;

/// A file whose content matches its stored digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The bytes that were read.
    pub bytes: u64,
    /// Content that is not verified, if any.
    pub uncovered: Option<&'static str>,
}

/// Counts the bytes that are read, and reports them.
pub(crate) struct Progress<'a> {
    bytes: Cell<u64>,
    report: RefCell<&'a mut dyn FnMut(u64)>,
}

impl<'a> Progress<'a> {
    pub fn new(report: &'a mut dyn FnMut(u64)) -> Self {
        Self { bytes: Cell::new(0), report: RefCell::new(report) }
    }

    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Adds what was read.
    pub fn add(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        (self.report.borrow_mut())(self.bytes.get());
    }
}

/// Compares the digest of the content with the one that the file states.
pub(crate) fn check_digest(path: &Path, computed: &str, stated: &str) -> Result<()> {
    if computed == stated {
        return Ok(());
    }
    Err(DataError::content(
        path,
        Place::File,
        format!(
            "the digest of the content is {computed:.12}, not {stated:.12} as the file states: the file was changed or damaged. {RESTORE}"
        ),
    ))
}

/// The error if the content cannot be hashed. `Internal` errors are made by our readers, for arrays that are not as an import writes them: the
/// file is damaged. Others are those of the HDF5 library.
pub(crate) fn unverifiable(path: &Path) -> impl FnOnce(hdf5::Error) -> DataError {
    let path = path.to_path_buf();
    move |error| match error {
        hdf5::Error::Internal(what) => DataError::content(&path, Place::File, format!("{what}. {RESTORE}")),
        error => DataError::hdf5(&path, "verify the content")(error),
    }
}

/// What to do with a file that is not what was imported.
pub(crate) const RESTORE: &str = "Restore it from a copy, or import the data again";

#[cfg(test)]
mod tests;
