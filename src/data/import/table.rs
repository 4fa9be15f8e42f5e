//! Imports: rows stream from a reader into the dataset, each into its split, its target into the classes.

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
    /// What the label column holds.
    pub task: Task,
    /// How the file, and that of the test rows, is read.
    pub layout: TableLayout,
    /// How feature values become what models see.
    pub scaling: Scaling,
}

/// Imports text tables into the dataset `output`.
///
/// Features and regression targets are stored in double precision whatever precision a run computes in: it holds every decimal
/// number of up to 15 digits exactly enough to give it back, and scaling a large column in single precision would lose its
/// digits.
///
/// # Errors
/// When a file cannot be read, has no rows, lines of different length, something that is no finite number where one is expected,
/// a test label that does not occur in the training rows, or not the rows that are to be held out. Nothing half written stays.
pub fn import_table(import: &TableImport, output: &Path) -> Result<()> {
    let path = &import.train;
    let open = |path: &Path| Table::open(Source::open(path)?, &import.layout);
    let mut held_out = RowSplitter::of(&import.test, path, || open(path)?.count())?;
    let mut table = open(path)?;
    let mut writer = Writer::new(output, table.features(), import.scaling)?;
    let mut targets = TargetCollector::new(import.task);
    let mut rows = 0;
    table.rows(|row| {
        let split = held_out.split(row.index);
        targets.text(split, row.label, path, Place::Line(row.line))?;
        rows = row.index + 1;
        writer.push(split, row.features)
    })?;
    held_out.finish(rows, path)?;
    targets.check(&held_out, path)?;
    let mut source = format!("{}{}", file_name(path), held_out.source);
    if let TestRows::File(path) = &import.test {
        let mut test = open(path)?;
        test.must_match(&table)?;
        test.rows(|row| {
            let place = Place::Line(row.line);
            targets.must_know(row.label, path, place)?;
            targets.text(Split::Test, row.label, path, place)?;
            writer.push(Split::Test, row.features)
        })?;
        source.push_str(&format!(", {}", file_name(path)));
    }
    let (classes, train, test) = targets.finish(path)?;
    let shape = vec![table.features()];
    let about = Description { task: import.task, source, features: Some(table.feature_names()), shape, classes };
    writer.finish(&about, train, test, path)
}
