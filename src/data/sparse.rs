//! Sparse rows (CSR): in memory, where agents turn a few of them at a time into dense ones, and on their way into a dataset.

use crate::number::Real;
use std::ops::Range;

/// Dense blocks of sparse rows are of about this size: small beside any data that is worth keeping sparse, and large enough for
/// products of matrices. A constant, never a function of threads: the sums over blocks, and so the bits, depend on it.
const BLOCK_BYTES: usize = 1 << 22;

/// Rows of which only the values that are not zero are kept, row after row with ascending columns.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows<F> {
    features: usize,
    /// Row i has the entries `starts[i]..starts[i + 1]`.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<F>,
}

impl<F: Real> SparseRows<F> {
    /// Rows of `features` features: row i has `values[starts[i]..starts[i + 1]]` in these columns (from 0).
    ///
    /// # Panics
    /// When there are not as many columns as values, `starts` does not ascend from 0 to their number, or a column is not below `features`.
    pub fn new(features: usize, starts: Vec<usize>, columns: Vec<u32>, values: Vec<F>) -> Self {
        assert_eq!(columns.len(), values.len(), "columns and values differ in number");
        assert!(starts.first() == Some(&0) && starts.last() == Some(&values.len()), "starts do not span the values");
        assert!(starts.is_sorted(), "starts do not ascend");
        assert!(columns.iter().all(|&column| (column as usize) < features), "a column is not below {features}");
        Self { features, starts, columns, values }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many features.
    pub fn features(&self) -> usize {
        self.features
    }

    /// These rows.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let entries = self.starts[row]..self.starts[row + 1];
            columns.extend_from_slice(&self.columns[entries.clone()]);
            values.extend_from_slice(&self.values[entries]);
            starts.push(values.len());
        }
        Self { features: self.features, starts, columns, values }
    }

    /// How many values are kept.
    pub fn values(&self) -> usize {
        self.values.len()
    }

    /// How many rows make a block of at most a few megabytes; at least one.
    pub(crate) fn block(&self) -> usize {
        (BLOCK_BYTES / (self.features * size_of::<F>()).max(1)).max(1)
    }

    /// Writes a row with all its zeros.
    pub(crate) fn fill(&self, row: usize, dense: &mut [F]) {
        dense.fill(F::zero());
        let Range { start, end } = self.starts[row]..self.starts[row + 1];
        for (&column, &value) in self.columns[start..end].iter().zip(&self.values[start..end]) {
            dense[column as usize] = value;
        }
    }
}
