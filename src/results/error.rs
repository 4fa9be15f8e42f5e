//! What can be wrong with the file of a run.

use std::path::{Path, PathBuf};

/// A problem with the file of a run.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The operating system refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The HDF5 library refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: String,
        /// Why not.
        source: Box<hdf5::Error>,
    },
    /// The file is not what it should be.
    #[error("{}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The folder holds another run.
    #[error("{} holds a run with another configuration ({differs}); choose another --output, or delete it", folder.display())]
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// The first value that differs.
        differs: String,
    },
    /// The folder holds a run on other data.
    #[error(
        "{} holds a run that was begun on other data (digest {there:.12} there, {here:.12} here, of {file}); give it back its data, \
         choose another --output, or delete it",
        folder.display()
    )]
    OtherData {
        /// The folder.
        folder: PathBuf,
        /// What the run was begun on.
        there: String,
        /// What it is given now.
        here: String,
        /// Where that lies.
        file: String,
    },
    /// Another job works in the folder.
    #[error("another job works in {}: wait for it, or choose another --output", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// What a run produced does not fit together.
    #[error("{0}")]
    Shape(String),
}

impl ResultsError {
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, doing, source }
    }

    pub(super) fn hdf5(path: &Path, doing: impl Into<String>) -> impl FnOnce(hdf5::Error) -> Self {
        let (path, doing) = (path.to_path_buf(), doing.into());
        move |source| Self::Hdf5 { path, doing, source: Box::new(source) }
    }
}

/// A `Result` whose error is a [`ResultsError`].
pub type Result<T> = std::result::Result<T, ResultsError>;
