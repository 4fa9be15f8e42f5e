//! Imports text tables row by row.

use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::write::{Description, Writer};
use crate::data::error::{Place, Result};
use crate::data::import::targets::TargetCollector;
use crate::data::import::test_rows::{RowSplitter, TestRows};
use crate::data::readers::source::{Source, file_name};
use crate::data::readers::table::{Table, TableLayout};
use std::path::{Path, PathBuf};

/// What to import from a text table, and how.
#[derive(Clone, Debug)]
pub struct TableImport {
    /// The file, plain or gzip.
    pub train: PathBuf,
    /// The test rows.
    pub test: TestRows,
    /// What the label column contains.
    pub task: Task,
    /// The layout of the file, and of the file of test rows.
    pub layout: TableLayout,
    /// The scaling of features.
    pub scaling: Scaling,
}

/// Imports text tables into the dataset `output`.
///
/// Features and regression targets are stored in double precision, regardless of the precision of runs. It preserves decimal numbers of up
/// to 15 digits, while scaling a large column in single precision would lose digits.
///
/// # Errors
/// If a file cannot be read, has no rows, lines of different length, a feature that is not a finite number,
/// a test label that does not occur in the training rows, or does not have the requested test rows. No partial output remains.
pub fn import_table(import: &TableImport, output: &Path) -> Result<()> {
    let path = &import.train;
    let open = |path: &Path| Table::open(Source::open(path)?, &import.layout);
    let mut splitter = RowSplitter::new(&import.test, path, || open(path)?.count())?;
    let mut table = open(path)?;
    let mut writer = Writer::new(output, table.features(), import.scaling)?;
    let mut targets = TargetCollector::new(import.task);
    let mut rows = 0;
    table.rows(|row| {
        let split = splitter.split(row.index);
        targets.text(split, row.label, path, Place::Line(row.line))?;
        rows = row.index + 1;
        writer.push(split, row.features)
    })?;
    splitter.finish(rows, path)?;
    targets.check(&splitter, path)?;
    let mut source = format!("{}{}", file_name(path), splitter.source);
    if let TestRows::File(path) = &import.test {
        let mut test = open(path)?;
        test.check_columns_match(&table)?;
        test.rows(|row| {
            let place = Place::Line(row.line);
            targets.check_known(row.label, path, place)?;
            targets.text(Split::Test, row.label, path, place)?;
            writer.push(Split::Test, row.features)
        })?;
        source.push_str(&format!(", {}", file_name(path)));
    }
    let (classes, train, test) = targets.finish(path)?;
    let shape = vec![table.features()];
    let description = Description { task: import.task, source, features: Some(table.feature_names()), shape, classes };
    writer.finish(&description, train, test, path)
}
