//! Metrics, and what a method logged, over rounds or seconds: a panel for each column.

use super::figure::{Axis, Figure, Key, Mark, Panel, Sample, series};
use super::quantity::{domain, label};
use super::ticks::drawable;
use super::{PlotError, Result};
use crate::results::{HISTORY, METRICS, RunFile, Table};
use std::collections::{BTreeMap, BTreeSet};

/// The column of seconds since the run began, in either.
pub const SECONDS: &str = "seconds";
/// How many draws a metric is of, which says nothing of how good they are: drawn where it is asked for.
const DRAWS: &str = "averaged_draws";
/// At most so many panels.
const MOST_PANELS: usize = 18;
/// Where only agents wrote rows, at most so many of them get a line.
const MOST_AGENTS: usize = 8;

/// What the horizontal axis shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Against {
    /// The round or step.
    #[default]
    Round,
    /// Seconds since the run began, without those of evaluations.
    Seconds,
    /// Bytes between ranks since the run began.
    Bytes,
}

impl Against {
    /// The name of what it shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Round => "round",
            Self::Seconds => SECONDS,
            Self::Bytes => "bytes",
        }
    }

    /// The axis of it.
    pub fn axis(self) -> Axis {
        Axis { whole: self == Self::Round, domain: domain(self.name()), ..Axis::new(label(self.name())) }
    }
}

/// What of the tables is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Over what.
    pub against: Against,
    /// These columns of the metrics or the history; if there are none, all metrics.
    pub columns: Vec<String>,
    /// Whether to show all that the method itself logged, too.
    pub details: bool,
}

/// A table of the file; an empty one if it has none of this name.
fn table(file: &RunFile, name: &str) -> Result<Table> {
    Ok(if file.tables()?.iter().any(|other| other == name) { file.table(name)? } else { Table::default() })
}

/// The table that has a column, the metrics before the history.
pub(super) fn find(file: &RunFile, name: &str) -> Result<Option<Table>> {
    let tables = [table(file, METRICS)?, table(file, HISTORY)?];
    Ok(tables.into_iter().find(|table| name != SECONDS && table.column(name).is_some()))
}

/// The columns that can be drawn: those of the metrics, then those of the history that are not among them.
///
/// # Errors
/// When the file cannot be read.
pub fn columns(file: &RunFile) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for table in [table(file, METRICS)?, table(file, HISTORY)?] {
        for (name, _) in table.columns {
            if name != SECONDS && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// The rows that a picture shows: those of no agent, or those of agents if there are no others.
fn shown_rows(table: &Table) -> BTreeMap<Option<u32>, Vec<usize>> {
    let mut rows: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    for (row, agent) in table.agent.iter().enumerate() {
        rows.entry(*agent).or_default().push(row);
    }
    if rows.contains_key(&None) {
        rows.retain(|agent, _| agent.is_none());
    }
    rows
}

/// The horizontal axis as values of the rows of a table; none if the file does not have them.
///
/// Seconds are those of the table itself, or of the history at the same step. Bytes are the column `bytes` of the history, or the sum
/// of its columns `PURPOSE_bytes`, each counted from the beginning of the run.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn clock(file: &RunFile, rows: &Table, against: Against) -> Result<Option<Vec<f64>>> {
    let rounds = || rows.step.iter().map(|&step| step as f64).collect();
    let history = match against {
        Against::Round => return Ok(Some(rounds())),
        Against::Seconds => match rows.column(SECONDS) {
            Some(seconds) => return Ok(Some(seconds.to_vec())),
            None => table(file, HISTORY)?,
        },
        Against::Bytes => table(file, HISTORY)?,
    };
    let counted: Vec<&[f64]> = match against {
        Against::Bytes if history.column("bytes").is_none() => {
            history.columns.iter().filter(|column| column.0.ends_with("_bytes")).map(|column| column.1.as_slice()).collect()
        }
        _ => history.column(against.name()).into_iter().collect(),
    };
    if counted.is_empty() {
        return Ok(None);
    }
    let at: BTreeMap<u64, f64> = (0..history.rows())
        .filter(|&row| history.agent[row].is_none())
        .map(|row| (history.step[row], 0.0 + counted.iter().map(|column| column[row]).sum::<f64>()))
        .collect();
    // A round without a row of its own has seen what the one before it had.
    let before = |step: u64| at.range(..=step).next_back().map_or(0.0, |(_, value)| *value);
    Ok(Some(rows.step.iter().map(|&step| before(step)).collect()))
}

/// Metrics over rounds or seconds; none if the run has no numbers to show.
///
/// # Errors
/// When the file cannot be read, or has no such column.
pub fn history(file: &RunFile, options: &HistoryOptions) -> Result<Option<Figure>> {
    let tables = [table(file, METRICS)?, table(file, HISTORY)?];
    let mut wanted: Vec<(&Table, &str)> = Vec::new();
    for name in &options.columns {
        let holder = tables.iter().find(|table| name != SECONDS && table.column(name).is_some());
        let holder = holder.ok_or_else(|| no_column(file, name))?;
        wanted.push((holder, name));
    }
    let all = |table: &'_ Table| -> Vec<String> {
        table.columns.iter().map(|column| column.0.clone()).filter(|name| name != SECONDS && name != DRAWS).collect()
    };
    let [metrics, own] = &tables;
    let (of_metrics, of_method) = (all(metrics), all(own));
    if options.columns.is_empty() {
        wanted.extend(of_metrics.iter().map(|name| (metrics, name.as_str())));
    }
    if options.details || wanted.is_empty() {
        wanted.extend(of_method.iter().map(|name| (own, name.as_str())));
    }
    let mut seen = BTreeSet::new();
    wanted.retain(|(table, name)| seen.insert((std::ptr::from_ref(*table), *name)));

    let (mut panels, mut agents, mut remarks) = (Vec::new(), BTreeSet::new(), Vec::new());
    let (mut without, mut missing_clock) = (Vec::new(), false);
    for (table, name) in wanted {
        let Some(x) = clock(file, table, options.against)? else {
            missing_clock = true;
            continue;
        };
        let values = table.column(name).unwrap_or_default();
        // What was asked for by name is shown to have no values; what nobody asked for is only mentioned.
        if options.columns.is_empty() && !values.iter().copied().any(drawable) {
            without.push(name);
            continue;
        }
        let mut panel =
            Panel { x: options.against.axis(), y: Axis { domain: domain(name), ..Axis::new(label(name)) }, ..Panel::default() };
        let rows = shown_rows(table);
        for (place, (agent, rows)) in rows.iter().take(MOST_AGENTS).enumerate() {
            agents.extend(*agent);
            let points: Vec<(f64, f64)> = rows.iter().map(|&row| (x[row], values[row])).collect();
            panel.marks.push(Mark::Line { points, stroke: series(place), marked: true });
        }
        let missing = rows.values().flatten().filter(|&&row| !drawable(values[row])).count();
        if missing > 0 && missing < values.len() {
            panel.note = format!("{missing} of {} missing", values.len());
        }
        if rows.len() > MOST_AGENTS {
            remarks.push(format!("Agents 0 to {} of {} are shown.", MOST_AGENTS - 1, rows.len()));
        }
        panels.push(panel);
    }
    if panels.is_empty() {
        return match missing_clock {
            true => Err(PlotError::Clock(options.against.name())),
            false => Ok(None),
        };
    }
    if panels.len() > MOST_PANELS {
        remarks.push(format!("{MOST_PANELS} of {} columns are shown.", panels.len()));
        panels.truncate(MOST_PANELS);
    }
    remarks.dedup();
    let caption = if without.is_empty() { String::new() } else { format!("Without a value: {}.", without.join(", ")) };
    let legend = agents
        .iter()
        .enumerate()
        .map(|(place, agent)| Key { label: format!("agent {agent}"), sample: Sample::Line(series(place)) });
    let title = format!("{} by {}", if metrics.rows() > 0 { "Metrics" } else { "History" }, by(options.against));
    Ok(Some(Figure { legend: legend.collect(), caption, remark: remarks.join(" "), ..Figure::of_equal(title, panels) }))
}

/// The horizontal axis in a title.
pub(super) fn by(against: Against) -> &'static str {
    match against {
        Against::Round => "round",
        Against::Seconds => "time",
        Against::Bytes => "bytes sent",
    }
}

fn no_column(file: &RunFile, name: &str) -> PlotError {
    match columns(file) {
        Ok(there) if there.is_empty() => PlotError::Column { name: name.into(), there: "none".into() },
        Ok(there) => PlotError::Column { name: name.into(), there: there.join(", ") },
        Err(error) => error,
    }
}
