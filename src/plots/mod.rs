//! Figures of runs, drawn as SVG and PNG.
//!
//! [`history()`] and [`reliability()`] make a [`Figure`] from the result file of a run; [`posterior()`], [`pair()`] and [`chains()`] make one
//! from its draws, [`reliability_of_draws()`] from the predictions of all draws, and [`bias()`] from the bias of the draws.
//! [`comparison()`] and [`reliability_of_groups()`] make one from several runs, [`forest()`] from the coefficients of one run or several,
//! and [`scaling()`] from the times of runs on different numbers of ranks. [`Figure::draw`] lays a figure out as a [`Drawing`]: an SVG
//! document, from which a PNG is rendered. A font is built in: texts are measured with it, and a PNG needs no installed font. An SVG names
//! the font, and a viewer without it shows a similar one.

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
pub use figure::{Axis, Drawing, Figure, LegendEntry, LegendSample, Mark, Panel, series};
pub use forest::{ForestRow, ForestSeries, forest};
pub use history::{HistoryOptions, history};
pub use parameters::Selection;
pub use posterior::{pair, posterior};
pub use reliability::{ReliabilityCurve, last_bins, reliability, reliability_of_draws, reliability_of_groups};
pub use scaling::{RanksPoint, scaling};
