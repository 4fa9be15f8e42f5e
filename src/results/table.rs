//! Tables of a run: rows of named numbers turned into columns.

use crate::cluster::record::Row;
use std::collections::{BTreeMap, HashMap};

/// A table as columns, rows sorted by step and then by agent, those of no agent first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The round or step of each row.
    pub step: Vec<u64>,
    /// The agent of each row, if one wrote it.
    pub agent: Vec<Option<u32>>,
    /// The named columns, in the order in which a reader should see them; NaN where a row lacks a value.
    pub columns: Vec<(String, Vec<f64>)>,
}

impl Table {
    /// Sorts rows into their tables, by name.
    pub fn collect(rows: &[Row]) -> BTreeMap<String, Self> {
        let mut by_table: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
        for row in rows {
            by_table.entry(&row.table).or_default().push(row);
        }
        by_table.into_iter().map(|(name, rows)| (name.to_owned(), Self::of(rows))).collect()
    }

    fn of(mut rows: Vec<&Row>) -> Self {
        // Stable: rows of one step and agent stay as they were written.
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

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.step.len()
    }

    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|column| column.0 == name).map(|column| column.1.as_slice())
    }
}
