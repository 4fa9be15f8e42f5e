//! What can be wrong with a data file, always with the file and the place in it.

use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong with bytes that are no text, after the name of what they are.
pub(crate) const NOT_UTF8: &str = "is not text in UTF-8: convert the file, such as with iconv -f latin1 -t utf8";

/// Where in a file a problem lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of a text file, from 1.
    Line(u64),
    /// A record (image, label, row) of a binary file, from 1.
    Record(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ", line {line}"),
            Self::Record(record) => write!(f, ", record {record}"),
        }
    }
}

/// A problem with data that a user brought.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The operating system refused.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `open`, `read`.
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
        doing: &'static str,
        /// Why not.
        source: Box<hdf5::Error>,
    },
    /// The content is not what it should be.
    #[error("{}{place}: {what}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The partition of a run file does not suit its data or its agents.
    #[error("data.partition: {0}")]
    Partition(String),
    /// What was asked for cannot be had from this data.
    #[error("{0}")]
    Request(String),
}

impl DataError {
    /// Whether there is no such file.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    pub(crate) fn content(path: &Path, place: Place, what: impl Into<String>) -> Self {
        Self::Content { path: path.to_path_buf(), place, what: what.into() }
    }

    /// A column whose scale or offset double precision cannot hold.
    pub(crate) fn overflow(path: &Path, column: &str) -> Self {
        Self::content(path, Place::File, format!("{column} spans more than double precision holds: scale it before importing"))
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, doing, source }
    }

    pub(crate) fn hdf5(path: &Path, doing: &'static str) -> impl FnOnce(hdf5::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Hdf5 { path, doing, source: Box::new(source) }
    }
}

/// A `Result` whose error is a [`DataError`].
pub type Result<T> = std::result::Result<T, DataError>;

/// The first dozen names, separated by commas, for a message.
pub(crate) fn listed(names: &[String]) -> String {
    const LISTED: usize = 12;
    if names.is_empty() {
        return "none".into();
    }
    let listed = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{listed}, ...") } else { listed }
}
