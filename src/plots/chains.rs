//! Trace plots: the draws of chains in order, which show poor mixing and lack of convergence.

use super::canvas::Stroke;
use super::error::Result;
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, series};
use super::parameters::{Selection, column};
use super::posterior::{extent, keys_of_chains};
use super::ticks::drawable;
use crate::results::Samples;

const MAX_PANELS: usize = 8;

/// Trace plots of these parameters, or of a selection of at most 8; `None` if chains have fewer than two draws.
///
/// # Errors
/// When there is no such parameter.
pub fn chains(samples: &Samples, names: &[String]) -> Result<Option<Figure>> {
    let selection = Selection::new(samples, names, MAX_PANELS)?;
    let (chains, draws, _) = samples.values.dim();
    if selection.shown.is_empty() || draws < 2 {
        return Ok(None);
    }
    let panels = selection.shown.iter().map(|(name, index)| {
        let mut panel = Panel { x: Axis { whole: true, ..Axis::new("draw") }, y: Axis::new(name), ..Panel::default() };
        let columns = column(samples, *index);
        let missing = columns.iter().flatten().filter(|value| !drawable(**value)).count();
        if missing > 0 {
            panel.note = format!("{missing} of {} not finite", chains * draws);
        }
        for (chain, values) in columns.iter().enumerate() {
            // Colors repeat, because many chains in one color would merge into one area.
            let stroke = Stroke { opacity: 0.75, ..Stroke::solid(series(chain).color, 0.9) };
            let points = values.iter().enumerate().map(|(draw, value)| (draw as f64, *value)).collect();
            panel.marks.push(Mark::Line { points, stroke, marked: true });
        }
        panel
    });
    let panels: Vec<Panel> = panels.collect();
    let mut figure = Figure::of_equal("Trace plots", panels);
    if figure.panels.len() > 1 {
        (figure.columns, figure.cell) = (2, (450.0, 190.0));
    }
    let mut legend = keys_of_chains(chains, LegendSample::Line);
    if let [all] = legend.as_mut_slice() {
        *all = LegendEntry { label: format!("{chains} chains; colors repeat"), sample: LegendSample::Line(series(0)) };
    }
    Ok(Some(Figure { legend, caption: extent(samples), remark: selection.remark, ..figure }))
}
