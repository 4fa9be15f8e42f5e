//! Figures of runs, drawn as SVG and PNG.
//!
//! [`history()`], [`reliability()`], [`posterior()`], [`pair()`] and [`chains()`] make a [`Figure`] from the result
//! file of a run, [`bias()`] from the bias of its draws, [`forest()`] from coefficients, [`comparison()`] one from several runs. [`Figure::draw`] lays it out as a [`Drawing`]: an SVG document, from which a PNG
//! is rendered. The font is built in, so that figures look the same everywhere and no installed font is needed.

mod bias;
mod canvas;
mod chains;
mod comparison;
mod density;
mod error;
mod figure;
mod font;
mod forest;
mod history;
mod parameters;
mod posterior;
mod reliability;
#[cfg(test)]
mod tests;
mod ticks;

pub use bias::bias;
pub use canvas::Stroke;
pub use chains::chains;
pub use comparison::{Curve, comparison};
pub use error::{PlotError, Result};
pub use figure::{Axis, Drawing, Figure, Key, Mark, Panel, Sample, series};
pub use forest::{ForestRow, forest};
pub use history::{HistoryOptions, history};
pub use parameters::Selection;
pub use posterior::{pair, posterior};
pub use reliability::{reliability, reliability_of_draws};
