//! The data that a run file names, open for reading: rows or documents.

use super::registry::Over;
use super::spec::DataSpec;
use crate::data::corpus::Corpus;
use crate::data::{DataError, Dataset, Split};
use std::path::Path;
use std::sync::Arc;

/// Open data.
#[derive(Clone, Debug)]
pub(super) enum OpenData {
    Rows(Arc<Dataset>),
    Documents(Arc<Corpus>),
}

impl OpenData {
    /// Opens what a file holds.
    ///
    /// # Errors
    /// When it cannot be read, or is not made by `mpibayes import`.
    pub fn open(file: &Path) -> Result<Self, DataError> {
        match Corpus::is_one(file) {
            true => Ok(Self::Documents(Arc::new(Corpus::open(file)?))),
            false => Ok(Self::Rows(Arc::new(Dataset::open(file)?))),
        }
    }

    /// Opens the data of a run, if it has any.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn of(data: Option<&DataSpec>) -> Result<Option<Self>, DataError> {
        data.map(|data| Self::open(&data.file)).transpose()
    }

    pub fn over(&self) -> Over {
        match self {
            Self::Rows(_) => Over::Rows,
            Self::Documents(_) => Over::Texts,
        }
    }

    pub fn digest(&self) -> &str {
        match self {
            Self::Rows(dataset) => dataset.digest(),
            Self::Documents(corpus) => corpus.digest(),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Rows(dataset) => dataset.path(),
            Self::Documents(corpus) => corpus.path(),
        }
    }

    /// How many rows or documents a split has.
    pub fn len(&self, split: Split) -> usize {
        match self {
            Self::Rows(dataset) => dataset.rows(split),
            Self::Documents(corpus) => corpus.documents(split),
        }
    }

    /// What there are that many of.
    pub fn thing(&self) -> &'static str {
        match self {
            Self::Rows(_) => "row",
            Self::Documents(_) => "document",
        }
    }

    pub fn rows(&self) -> Option<&Arc<Dataset>> {
        match self {
            Self::Rows(dataset) => Some(dataset),
            Self::Documents(_) => None,
        }
    }
}

/// What to say where a model is for other data than there are.
pub(super) fn wrong_data(model: &str, wants: Over) -> String {
    match wants {
        Over::Rows => format!("these are documents, and the model {model} is for rows: the model for documents is lda"),
        Over::Texts => {
            format!(
                "these are rows, and the model {model} is for documents: see `mpibayes import --help` for what documents are read"
            )
        }
    }
}
