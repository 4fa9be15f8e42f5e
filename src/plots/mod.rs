//! Pictures from result files: what is shown of a run, in figures that become SVG and PNG by one drawing code.
//!
//! [`history()`], [`reliability()`], [`posterior()`], [`pair()`] and [`chains()`] make a [`Figure`] from the file of a run,
//! [`comparison()`] one from several. [`Figure::draw`] lays it out, and [`Drawing`] is an SVG document, or a PNG file rendered
//! from it. The font comes along: no system library and no installed font is needed, and pictures are the same everywhere.

mod canvas;
mod chains;
mod comparison;
mod density;
mod figure;
mod font;
mod history;
mod parameters;
mod posterior;
mod quantity;
mod reliability;
#[cfg(test)]
mod tests;
mod ticks;

pub use canvas::Stroke;
pub use chains::chains;
pub use comparison::{Curve, Values, comparison, values};
pub use figure::{Axis, Drawing, Figure, Key, Mark, Panel, Sample, series};
pub use history::{Against, HistoryOptions, SECONDS, columns, history};
pub use parameters::Choice;
pub use posterior::{pair, posterior};
pub use quantity::{Better, better, label};
pub use reliability::reliability;

use crate::results::ResultsError;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The file cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A parameter was asked for that there is none of.
    #[error("{0}")]
    Parameter(String),
    /// A column was asked for that no table has.
    #[error("no metric is called {name:?}; there are {there}")]
    Column {
        /// What was asked for.
        name: String,
        /// What could be.
        there: String,
    },
    /// The horizontal axis that was asked for is not in the file.
    #[error("the tables of this run have no column of {0}; take rounds for the horizontal axis")]
    Clock(&'static str),
    /// The size that was asked for leaves no room for data.
    #[error("a figure of {width:.0} × {height:.0} pixels is too small for {panels} panels ({title}): give it more, or show less")]
    TooSmall {
        /// The width that was asked for.
        width: f64,
        /// The height that was asked for.
        height: f64,
        /// How many panels it has.
        panels: usize,
        /// Its title.
        title: String,
    },
    /// The bitmap would be larger than is of use.
    #[error("a PNG of {width:.0} × {height:.0} pixels is more than 100 million: ask for a smaller size or scale")]
    TooLarge {
        /// Its width.
        width: f64,
        /// Its height.
        height: f64,
    },
    /// The renderer refused.
    #[error("cannot make a PNG: {0}")]
    Png(String),
}

/// A `Result` whose error is a [`PlotError`].
pub type Result<T> = std::result::Result<T, PlotError>;

/// A number of things: `1 draw`, `20 draws`.
fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
