//! Metrics and the method's history over rounds, seconds or bytes: one panel for each column.

use super::error::{PlotError, Result};
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, series};
use super::ticks::drawable;
use crate::metrics::{axis_label, possible_range};
use crate::results::{ResultFile, Table, XAxis, is_axis};
use std::collections::{BTreeMap, BTreeSet};

/// The number of averaged draws does not measure quality: it is drawn only if named.
const DRAWS: &str = "averaged_draws";
const MAX_PANELS: usize = 18;
/// Agents that get a line each, in tables to which only agents wrote.
const MAX_AGENTS: usize = 8;

/// What a figure of the history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryOptions {
    /// The horizontal axis.
    pub x_axis: XAxis,
    /// These columns of the metrics or the history; all metrics if empty.
    pub columns: Vec<String>,
    /// Whether to add all columns of the history.
    pub details: bool,
}

/// An axis for a column, with the column's label and range.
pub(super) fn axis_of(name: &str) -> Axis {
    Axis { domain: possible_range(name), ..Axis::new(axis_label(name)) }
}

/// The horizontal axis of a figure.
pub(super) fn horizontal(axis: XAxis) -> Axis {
    Axis { whole: axis == XAxis::Round, ..axis_of(axis.name()) }
}

/// The horizontal axis as part of a title.
pub(super) fn by(axis: XAxis) -> &'static str {
    match axis {
        XAxis::Round => "round",
        XAxis::Seconds => "time",
        XAxis::Bytes => "bytes",
    }
}

/// The rows of each line: those without an agent, or one line per agent if only agents wrote to the table.
fn lines(table: &Table) -> BTreeMap<Option<u32>, Vec<usize>> {
    let mut rows: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (row, agent) in table.agent.iter().enumerate() {
        rows.entry(*agent).or_default().push(row);
    }
    if rows.contains_key(&None) {
        rows.retain(|agent, _| agent.is_none());
    }
    rows
}

/// A figure of metrics and history; `None` if the run has neither.
///
/// # Errors
/// When the file cannot be read, or has no such column.
pub fn history(file: &ResultFile, options: &HistoryOptions) -> Result<Option<Figure>> {
    let tables = file.curve_tables()?;
    let mut wanted: Vec<(&Table, &str)> = Vec::new();
    for name in &options.columns {
        let table = tables.iter().find(|table| !is_axis(name) && table.column(name).is_some());
        wanted.push((table.ok_or_else(|| no_column(file, name))?, name));
    }
    let all = |table: &'_ Table| -> Vec<String> {
        table.columns.iter().map(|column| column.0.clone()).filter(|name| !is_axis(name) && name != DRAWS).collect()
    };
    let [metrics, history] = &tables;
    let (of_metrics, of_history) = (all(metrics), all(history));
    if options.columns.is_empty() {
        wanted.extend(of_metrics.iter().map(|name| (metrics, name.as_str())));
    }
    if options.details || wanted.is_empty() {
        wanted.extend(of_history.iter().map(|name| (history, name.as_str())));
    }
    let mut seen = BTreeSet::new();
    wanted.retain(|(table, name)| seen.insert((std::ptr::from_ref(*table), *name)));

    let (mut panels, mut agents, mut remarks) = (Vec::new(), BTreeSet::new(), Vec::new());
    let (mut empty, mut lacks_axis) = (Vec::new(), false);
    for (table, name) in wanted {
        let Some(x) = file.positions(table, options.x_axis)? else {
            lacks_axis = true;
            continue;
        };
        let values = table.column(name).unwrap_or_default();
        // A column that was named gets a panel even if it is empty; others are only mentioned.
        if options.columns.is_empty() && !values.iter().copied().any(drawable) {
            empty.push(name);
            continue;
        }
        let mut panel = Panel { x: horizontal(options.x_axis), y: axis_of(name), ..Panel::default() };
        let lines = lines(table);
        for (place, (agent, rows)) in lines.iter().take(MAX_AGENTS).enumerate() {
            agents.extend(*agent);
            let points: Vec<(f64, f64)> = rows.iter().map(|&row| (x[row], values[row])).collect();
            panel.marks.push(Mark::Line { points, stroke: series(place), marked: true });
        }
        let missing = lines.values().flatten().filter(|&&row| !drawable(values[row])).count();
        if missing > 0 && missing < values.len() {
            panel.note = format!("{missing} of {} missing", values.len());
        }
        if lines.len() > MAX_AGENTS {
            remarks.push(format!("Agents 0 to {} of {} are shown.", MAX_AGENTS - 1, lines.len()));
        }
        panels.push(panel);
    }
    if panels.is_empty() {
        return if lacks_axis { Err(PlotError::NoAxis(options.x_axis.name())) } else { Ok(None) };
    }
    if panels.len() > MAX_PANELS {
        remarks.push(format!("{MAX_PANELS} of {} columns are shown.", panels.len()));
        panels.truncate(MAX_PANELS);
    }
    remarks.dedup();
    let caption = if empty.is_empty() { String::new() } else { format!("No values: {}.", empty.join(", ")) };
    let legend = agents
        .iter()
        .enumerate()
        .map(|(place, agent)| LegendEntry { label: format!("agent {agent}"), sample: LegendSample::Line(series(place)) });
    let title = format!("{} by {}", if metrics.rows() > 0 { "Metrics" } else { "History" }, by(options.x_axis));
    Ok(Some(Figure { legend: legend.collect(), caption, remark: remarks.join(" "), ..Figure::of_equal(title, panels) }))
}

fn no_column(file: &ResultFile, name: &str) -> PlotError {
    match file.curves() {
        Ok(columns) if columns.is_empty() => PlotError::Column { name: name.into(), columns: "none".into() },
        Ok(columns) => PlotError::Column { name: name.into(), columns: columns.join(", ") },
        Err(error) => error.into(),
    }
}
