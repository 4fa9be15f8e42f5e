//! Import of LIBSVM files as sparse rows.

use crate::data::dataset::layout::{Split, Task};
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::write::Description;
use crate::data::dataset::write_sparse::SparseWriter;
use crate::data::error::{DataError, Place, Result};
use crate::data::import::targets::TargetCollector;
use crate::data::import::test_rows::{RowSplitter, TestRows};
use crate::data::readers::libsvm::{IndexLimit, MAX_FEATURES, count_rows, read_libsvm};
use crate::data::readers::source::{Source, file_name};
use std::path::{Path, PathBuf};

/// What to import from a LIBSVM file, and how.
#[derive(Clone, Debug)]
pub struct LibsvmImport {
    /// The file, plain or gzip.
    pub train: PathBuf,
    /// The test rows.
    pub test: TestRows,
    /// What the labels are.
    pub task: Task,
    /// The number of features; by default, the largest index in the training file.
    pub features: Option<u32>,
    /// The scaling of features; it must keep zeros.
    pub scaling: Scaling,
}

/// Imports LIBSVM files into the dataset `output`, as sparse rows.
///
/// # Errors
/// If a file cannot be read, has no rows or a damaged line, a test label or index does not occur in the training file, or the scaling
/// would turn zeros into other numbers. No partial output remains.
pub fn import_libsvm(import: &LibsvmImport, output: &Path) -> Result<()> {
    let mut splitter = RowSplitter::new(&import.test, &import.train, || count_rows(&import.train))?;
    let mut writer = SparseWriter::new(output, import.scaling)?;
    let mut targets = TargetCollector::new(import.task);
    let limit = match import.features {
        Some(0) => return Err(DataError::Request("--features 0: must be at least 1".into())),
        Some(most) if most > MAX_FEATURES => {
            return Err(DataError::Request(format!("{most} features: a dataset may have at most {MAX_FEATURES}")));
        }
        Some(most) => IndexLimit { max: most, description: "the number of features that was asked for" },
        None => IndexLimit::ANY,
    };
    let (mut rows, mut largest) = (0, 0);
    read_libsvm(Source::open(&import.train)?, limit, |row| {
        let split = splitter.split(rows);
        (rows, largest) = (rows + 1, row.largest_index.max(largest));
        targets.add_text(split, row.label, &import.train, Place::Line(row.line))?;
        writer.push(split, row.columns, row.values)
    })?;
    splitter.finish(rows, &[&import.train])?;
    targets.check(&splitter, &import.train)?;
    let features = import.features.unwrap_or(largest);
    if features == 0 {
        let what = "no row has a feature: a row is its label and then index:value pairs, such as 1 3:0.5";
        return Err(DataError::content(&import.train, Place::File, what));
    }
    let mut source = format!("{}{}", file_name(&import.train), splitter.source);
    if let TestRows::File(path) = &import.test {
        let description =
            format!("the largest in {}: say with --features how many there are in both files", import.train.display());
        let limit = if import.features.is_some() { limit } else { IndexLimit { max: features, description: &description } };
        read_libsvm(Source::open(path)?, limit, |row| {
            let place = Place::Line(row.line);
            targets.add_test_text(row.label, path, place)?;
            writer.push(Split::Test, row.columns, row.values)
        })?;
        source.push_str(&format!(", {}", file_name(path)));
    }
    let (classes, train, test) = targets.finish(&import.train)?;
    let shape = vec![features as usize];
    let dataset = Description { task: import.task, source, features: None, shape, classes, recipe: None };
    writer.finish(&dataset, &train, test.as_ref(), &import.train)
}

#[cfg(test)]
mod tests;
