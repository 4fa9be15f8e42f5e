//! Errors of reports.

use crate::data::DataError;
use crate::results::ResultsError;
use std::path::{Path, PathBuf};

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The result file cannot be read, or is not a result file.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The dataset cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The figure cannot be drawn.
    #[cfg(feature = "plots")]
    #[error(transparent)]
    Plot(#[from] crate::plots::PlotError),
    /// A file cannot be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The run is not one of a series on more and more ranks.
    #[error("{}: this run cannot be compared: {reason}", run.display())]
    OutsideSeries {
        /// The result file.
        run: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The run does not have what was requested.
    #[error("{0}")]
    Missing(String),
}

impl ReportError {
    pub(super) fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Write { path, source }
    }

    pub(super) fn missing(path: &Path, what: impl std::fmt::Display) -> Self {
        Self::Missing(format!("{}: {what}", path.display()))
    }
}

/// A `Result` whose error is a [`ReportError`].
pub type Result<T> = std::result::Result<T, ReportError>;
