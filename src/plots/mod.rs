//! Figures of runs, drawn as SVG and PNG.
//!
//! [`history()`], [`reliability()`], [`posterior()`], [`pair()`] and [`chains()`] make a [`Figure`] from the result
//! file of a run, [`bias()`] from the bias of its draws, [`forest()`] from the coefficients of one run or several, [`comparison()`] and
//! [`reliability_of_groups()`] one from several runs, [`scaling()`] from times on more and more ranks. [`Figure::draw`] lays it out as a [`Drawing`]: an SVG document, from which a PNG is
//! rendered. The font is built in, so that figures look the same everywhere and no installed font is needed.

mod bias;
mod canvas;
mod chains;
mod comparison;
mod curve;
mod density;
mod error;
mod figure;
mod font;
mod forest;
mod history;
mod logarithmic;
mod parameters;
mod posterior;
mod reliability;
mod scaling;
#[cfg(test)]
mod tests;
mod ticks;

pub use bias::bias;
pub use canvas::Stroke;
pub use chains::chains;
pub use comparison::comparison;
pub use curve::Curve;
pub use error::{PlotError, Result};
pub use figure::{Axis, Drawing, Figure, Key, Mark, Panel, Sample, series};
pub use forest::{ForestRow, ForestSeries, forest};
pub use history::{HistoryOptions, history};
pub use parameters::Selection;
pub use posterior::{pair, posterior};
pub use reliability::{ReliabilityCurve, last_bins, reliability, reliability_of_draws, reliability_of_groups};
pub use scaling::{RanksPoint, scaling};
