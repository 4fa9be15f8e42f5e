//! The table of a sweep: the evaluations of its finished runs as CSV, with a column for each key that varies.

use super::super::output_file;
use crate::config::sweep::Sweep;
use crate::partial::{PartialFile, folder_of};
use crate::report::communication::Communication;
use crate::report::summary::Summary;
use crate::results::{AgentBytes, BYTES, HISTORY, METRICS, ResultFile, TRAFFIC, Table, XAxis, is_axis};
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The first column of the table.
const FIRST_COLUMN: &str = "run";

/// The table of the runs that are finished.
pub(super) struct ResultTable {
    path: PathBuf,
    /// The rows of finished runs, by the number of the run, from 0.
    rows: BTreeMap<usize, Vec<Row>>,
    /// Names of columns, in the order in which they came.
    columns: Vec<String>,
}

/// A line of the table.
struct Row {
    step: u64,
    last: bool,
    values: Vec<(String, f64)>,
}

impl ResultTable {
    /// An empty table for this file. If it will be written, the file is checked now.
    ///
    /// # Errors
    /// If it will be written, and there is another file, or none can be written.
    pub fn new(path: PathBuf, will_be_written: bool) -> anyhow::Result<Self> {
        // The folder may be still to be made.
        if will_be_written && folder_of(&path).is_dir() {
            output_file::check_replaces_same_kind(&path, &format!("{FIRST_COLUMN},"), "the table of a sweep")?;
        }
        Ok(Self { path, rows: BTreeMap::new(), columns: Vec::new() })
    }

    /// Where the table is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many runs it has.
    pub fn runs(&self) -> usize {
        self.rows.len()
    }

    /// Seconds that a run took.
    pub fn seconds(&self, number: usize) -> Option<f64> {
        let last = self.rows.get(&number)?.last()?;
        last.values.iter().find(|value| value.0 == "seconds").map(|value| value.1)
    }

    /// Adds the results of a run. Its last row has the metrics to report: those of the predictions by all draws.
    ///
    /// # Errors
    /// If its result file cannot be read.
    pub fn add(&mut self, number: usize, file: &ResultFile, summary: &Summary) -> anyhow::Result<()> {
        let mut rows = rows_of_run(file, summary.agent_bytes)?;
        if let Some(last) = rows.last_mut() {
            for (name, of_all_draws) in summary.best_metrics().into_iter().filter(|(name, _)| !is_axis(name)) {
                match last.values.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, value)) => *value = of_all_draws,
                    None => last.values.push((name, of_all_draws)),
                }
            }
        }
        for (name, _) in rows.iter().flat_map(|row| &row.values) {
            if !self.columns.contains(name) {
                self.columns.push(name.clone());
            }
        }
        self.rows.insert(number, rows);
        Ok(())
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, sweep: &Sweep) -> anyhow::Result<()> {
        let place = || format!("{}: cannot write", self.path.display());
        std::fs::create_dir_all(folder_of(&self.path)).with_context(place)?;
        let partial = PartialFile::new(&self.path);
        let mut csv = csv::Writer::from_path(partial.path()).with_context(place)?;
        let fixed = ["step".to_owned(), "final".to_owned()];
        let first = [FIRST_COLUMN.to_owned()];
        csv.write_record(first.iter().chain(&sweep.keys).chain(&fixed).chain(&self.columns)).with_context(place)?;
        let finished = sweep.points.iter().enumerate().filter_map(|(number, point)| Some((point, self.rows.get(&number)?)));
        for (point, rows) in finished {
            for row in rows {
                let mut cells = vec![point.name.clone()];
                cells.extend(point.labels.iter().cloned());
                cells.extend([row.step.to_string(), u8::from(row.last).to_string()]);
                cells.extend(self.columns.iter().map(|name| {
                    let value = row.values.iter().find(|value| value.0 == *name).map(|value| value.1);
                    value.filter(|value| !value.is_nan()).map_or_else(String::new, |value| value.to_string())
                }));
                csv.write_record(&cells).with_context(place)?;
            }
        }
        csv.flush().with_context(place)?;
        drop(csv);
        partial.commit().with_context(place)
    }
}

/// The rows of a finished run.
fn rows_of_run(file: &ResultFile, agent_bytes: Option<Communication>) -> anyhow::Result<Vec<Row>> {
    let metrics = file.find_table(METRICS)?.unwrap_or_default();
    let mut rows = rows_of(&metrics);
    if let Some(bytes) = file.positions(&metrics, XAxis::Bytes)? {
        rows.iter_mut().zip(bytes).for_each(|(row, bytes)| row.values.push((BYTES.to_owned(), bytes)));
    }
    if rows.is_empty() {
        // There are no metrics: the end of the history.
        rows.extend(file.find_table(HISTORY)?.and_then(|history| rows_of(&history).pop()));
    }
    if let Some(last) = rows.last_mut() {
        last.last = true;
        if let Some(Communication { bytes: AgentBytes { received, sent }, .. }) = agent_bytes {
            let bytes = [("received", received), ("sent", sent)];
            last.values.extend(bytes.map(|(name, bytes)| (format!("{BYTES}_{name}"), bytes as f64)));
        }
        if let Some(traffic) = file.find_table(TRAFFIC)? {
            for kind in ["messages", "bytes"] {
                let of_kind = traffic.columns.iter().filter(|(name, _)| name.ends_with(&format!("_{kind}")));
                // The sum of nothing is -0.
                last.values.push((format!("{kind}_between_ranks"), 0.0 + of_kind.flat_map(|(_, values)| values).sum::<f64>()));
            }
        }
    }
    Ok(rows)
}

/// The rows of a table that are about all agents together.
fn rows_of(table: &Table) -> Vec<Row> {
    let all = (0..table.rows()).filter(|&row| table.agent[row].is_none());
    let values = |row: usize| table.columns.iter().map(|(name, values)| (name.clone(), values[row])).collect();
    all.map(|row| Row { step: table.step[row], last: false, values: values(row) }).collect()
}
