//! Columns of the tables `metrics` and `history` as curves over rounds, seconds or bytes.

use super::error::Result;
use super::read::ResultFile;
use super::table::Table;
use crate::cluster::record::{BYTES, HISTORY, METRICS};
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
    /// Bytes that agents have received and sent since the run began, without evaluations.
    Bytes,
}

impl XAxis {
    /// Its name as a column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Round => "round",
            Self::Seconds => SECONDS,
            Self::Bytes => BYTES,
        }
    }
}

/// Whether a column is a horizontal axis, and not a curve.
pub fn is_axis(column: &str) -> bool {
    [SECONDS, BYTES].contains(&column)
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
                if !is_axis(&name) && !names.contains(&name) {
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
        let Some(table) = self.curve_tables()?.into_iter().find(|table| !is_axis(name) && table.column(name).is_some()) else {
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
    /// They come from the table itself, or else from the history at the same round.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn positions(&self, table: &Table, axis: XAxis) -> Result<Option<Vec<f64>>> {
        if axis == XAxis::Round {
            return Ok(Some(table.step.iter().map(|&step| step as f64).collect()));
        }
        if let Some(values) = table.column(axis.name()) {
            return Ok(Some(values.to_vec()));
        }
        let history = self.find_table(HISTORY)?.unwrap_or_default();
        let Some(values) = history.column(axis.name()) else { return Ok(None) };
        let at: BTreeMap<u64, f64> =
            (0..history.rows()).filter(|&row| history.agent[row].is_none()).map(|row| (history.step[row], values[row])).collect();
        // A round without a row in the history has the position of the last row before it; 0 if there is none.
        let last_before = |step: u64| at.range(..=step).next_back().map_or(0.0, |(_, value)| *value);
        Ok(Some(table.step.iter().map(|&step| last_before(step)).collect()))
    }
}
