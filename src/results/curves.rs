//! Columns of the tables `metrics` and `history` as curves over rounds, seconds or bytes.

use super::error::Result;
use super::read::ResultFile;
use super::table::Table;
use crate::cluster::record::{HISTORY, METRICS};
use std::collections::BTreeMap;

/// The column of seconds since the run began, without evaluations.
pub const SECONDS: &str = "seconds";

/// The horizontal axis of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XAxis {
    /// The round.
    #[default]
    Round,
    /// Seconds since the run began, without evaluations.
    Seconds,
    /// Bytes sent between ranks since the run began.
    Bytes,
}

impl XAxis {
    /// Its name as a column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Round => "round",
            Self::Seconds => SECONDS,
            Self::Bytes => "bytes",
        }
    }
}

/// The points of a curve: round, position on the horizontal axis, value.
pub type Points = Vec<(u64, f64, f64)>;

impl ResultFile {
    /// The names of all curves: the columns of the metrics, then the other columns of the history.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn curves(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        for table in self.curve_tables()? {
            for (name, _) in table.columns {
                if name != SECONDS && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    /// The points of a curve, without the rows of single agents; `None` if the run has no such column or no such axis.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn curve(&self, name: &str, axis: XAxis) -> Result<Option<Points>> {
        let Some(table) = self.curve_tables()?.into_iter().find(|table| name != SECONDS && table.column(name).is_some()) else {
            return Ok(None);
        };
        let (Some(x), Some(y)) = (self.positions(&table, axis)?, table.column(name)) else { return Ok(None) };
        let rows = (0..table.rows()).filter(|&row| table.agent[row].is_none());
        Ok(Some(rows.map(|row| (table.step[row], x[row], y[row])).collect()))
    }

    /// The tables of metrics and of the history; an empty table if the run has none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn curve_tables(&self) -> Result<[Table; 2]> {
        Ok([self.find_table(METRICS)?.unwrap_or_default(), self.find_table(HISTORY)?.unwrap_or_default()])
    }

    /// The position of each row of a table on the horizontal axis; `None` if the file does not have this axis.
    ///
    /// Seconds come from the table itself, or else from the history at the same round. Bytes are the column `bytes` of the history,
    /// or the sum of its columns `PURPOSE_bytes`, each counted from the beginning of the run.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn positions(&self, table: &Table, axis: XAxis) -> Result<Option<Vec<f64>>> {
        match axis {
            XAxis::Round => return Ok(Some(table.step.iter().map(|&step| step as f64).collect())),
            XAxis::Seconds => {
                if let Some(seconds) = table.column(SECONDS) {
                    return Ok(Some(seconds.to_vec()));
                }
            }
            XAxis::Bytes => {}
        }
        let history = self.find_table(HISTORY)?.unwrap_or_default();
        let columns: Vec<&[f64]> = match axis {
            XAxis::Bytes if history.column("bytes").is_none() => {
                history.columns.iter().filter(|column| column.0.ends_with("_bytes")).map(|column| column.1.as_slice()).collect()
            }
            _ => history.column(axis.name()).into_iter().collect(),
        };
        if columns.is_empty() {
            return Ok(None);
        }
        let at: BTreeMap<u64, f64> = (0..history.rows())
            .filter(|&row| history.agent[row].is_none())
            .map(|row| (history.step[row], 0.0 + columns.iter().map(|column| column[row]).sum::<f64>()))
            .collect();
        // A round without a row in the history has the position of the last row before it.
        let last_before = |step: u64| at.range(..=step).next_back().map_or(0.0, |(_, value)| *value);
        Ok(Some(table.step.iter().map(|&step| last_before(step)).collect()))
    }
}
