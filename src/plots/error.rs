//! Errors of figures.

use crate::results::ResultsError;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The file cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The run has no such parameter.
    #[error("{0}")]
    Parameter(String),
    /// The run has no such column.
    #[error("there is no metric {name:?}; the run has {columns}")]
    Column {
        /// The name that was given.
        name: String,
        /// The columns of the run.
        columns: String,
    },
    /// The run has no such horizontal axis.
    #[error("this run has no column of {0}: use rounds as the horizontal axis")]
    NoAxis(&'static str),
    /// The size leaves no room for the data.
    #[error(
        "a figure of {width:.0} × {height:.0} pixels is too small for {panels} panels ({title}): make it larger, or show less"
    )]
    TooSmall {
        /// Its width.
        width: f64,
        /// Its height.
        height: f64,
        /// Its number of panels.
        panels: usize,
        /// Its title.
        title: String,
    },
    /// The PNG would be too large.
    #[error("a PNG of {width:.0} × {height:.0} pixels exceeds 100 million pixels: choose a smaller size or scale")]
    TooLarge {
        /// Its width.
        width: f64,
        /// Its height.
        height: f64,
    },
    /// Rendering failed.
    #[error("cannot make a PNG: {0}")]
    Png(String),
}

/// A `Result` whose error is a [`PlotError`].
pub type Result<T> = std::result::Result<T, PlotError>;
