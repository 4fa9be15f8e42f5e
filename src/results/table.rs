//! Tables of a result file: rows of named values, stored as columns.

use crate::cluster::record::Row;
use std::collections::{BTreeMap, HashMap};

/// A table by columns. Rows are sorted by step and then by agent, rows without an agent first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The round or step of each row.
    pub step: Vec<u64>,
    /// The agent that wrote the row, if any.
    pub agent: Vec<Option<u32>>,
    /// The named columns in display order; missing values are NaN.
    pub columns: Vec<(String, Vec<f64>)>,
}

impl Table {
    /// Groups rows by table.
    pub fn collect(rows: &[Row]) -> BTreeMap<String, Self> {
        let mut by_table: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            by_table.entry(&row.table).or_default().push(row);
        }
        by_table.into_iter().map(|(name, rows)| (name.to_owned(), Self::of(rows))).collect()
    }

    fn of(mut rows: Vec<&Row>) -> Self {
        // The sort is stable: rows of the same step and agent stay in the order in which they were written.
        rows.sort_by_key(|row| (row.step, row.agent));
        let mut table = Self {
            step: rows.iter().map(|row| row.step).collect(),
            agent: rows.iter().map(|row| row.agent).collect(),
            columns: Vec::new(),
        };
        let mut position: HashMap<&str, usize> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            for (name, value) in &row.values {
                let column = *position.entry(name).or_insert_with(|| {
                    table.columns.push((name.clone(), vec![f64::NAN; rows.len()]));
                    table.columns.len() - 1
                });
                table.columns[column].1[index] = *value;
            }
        }
        table
    }

    /// A digest of the rows, which is stored with them.
    pub(super) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(bytemuck::cast_slice(&self.step));
        for agent in &self.agent {
            hasher.update(&agent.map_or(-1, i64::from).to_le_bytes());
        }
        for (name, values) in &self.columns {
            hasher.update(name.as_bytes());
            hasher.update(bytemuck::cast_slice(values));
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.step.len()
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.0 == name).map(|column| column.1.as_slice())
    }
}
