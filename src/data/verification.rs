//! What comes of comparing the content of a dataset or a corpus with its digest.

use super::error::{DataError, Place, Result};
use std::cell::{Cell, RefCell};
use std::path::Path;

/// A file whose content has the digest that it states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The bytes that were read.
    pub bytes: u64,
    /// What no digest of the file covers, if there is something.
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
pub(crate) fn compare(path: &Path, content: &str, stated: &str) -> Result<()> {
    if content == stated {
        return Ok(());
    }
    Err(DataError::content(
        path,
        Place::File,
        format!(
            "the digest of the content is {content:.12}, not {stated:.12} as the file states: the file was changed or damaged. {RESTORE}"
        ),
    ))
}

/// What to do with a file that is not what was imported.
pub(crate) const RESTORE: &str = "Restore it from a copy, or import the data again";

#[cfg(test)]
mod tests;
