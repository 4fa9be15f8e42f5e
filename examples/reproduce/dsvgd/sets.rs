//! The data sets of the experiments, read with the library's import.

use super::runs::Result;
use flate2::read::MultiGzDecoder;
use mpibayes::data::{
    CifarImport, ColumnOptions, Generator, Header, IdxPair, Scaling, Table, TableImport, TableLayout, Task, TestRows,
    import_cifar, import_idx, import_table,
};
use mpibayes::random::Seed;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A data set in a temporary file, which is deleted on drop.
pub struct Set {
    pub file: PathBuf,
    _folder: TempDir,
}

/// A file below the folder of data sets.
fn found(name: &str) -> Result<PathBuf> {
    let folder = std::env::var("MPIBAYES_DATA").unwrap_or_else(|_| "datasets".into());
    let file = Path::new(&folder).join(name);
    if file.is_file() { Ok(file) } else { Err(format!("{}: there is no such file; set MPIBAYES_DATA", file.display()).into()) }
}

impl Set {
    fn made(import: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("set.h5");
        import(folder.path(), &file)?;
        Ok(Self { file, _folder: folder })
    }

    fn table(train: PathBuf, test: TestRows, task: Task, scaling: Scaling) -> Result<Self> {
        let layout = TableLayout { header: Header::No, ..TableLayout::default() };
        Self::made(|_, file| {
            Ok(import_table(
                &TableImport { train: vec![train], test, task, layout, columns: ColumnOptions::default(), scaling },
                file,
            )
            .map(drop)?)
        })
    }

    /// The same data set for all seeds.
    pub fn shared(self, seeds: u64) -> Vec<Arc<Self>> {
        let set = Arc::new(self);
        (0..seeds).map(|_| set.clone()).collect()
    }

    /// Training and test rows of a generator.
    pub fn generated(generator: Generator, train: u64, test: u64, seed: u64) -> Result<Self> {
        let task = if generator == Generator::Year { Task::Regression } else { Task::Classification };
        let scaling = if generator == Generator::Year { Scaling::Standardize } else { Scaling::None };
        Self::made(|folder, file| {
            let path = folder.join("rows.csv");
            generator.write_csv(train + test, Seed(seed), &mut std::io::BufWriter::new(File::create(&path)?))?;
            let test = TestRows::Fraction(test as f64 / (train + test) as f64, Seed(seed));
            Ok(import_table(
                &TableImport {
                    train: vec![path],
                    test,
                    task,
                    layout: TableLayout::default(),
                    columns: ColumnOptions::default(),
                    scaling,
                },
                file,
            )
            .map(drop)?)
        })
    }

    /// The sample of Covertype, class 2 against the others, in [0, 1]; a fifth of the rows for testing, the same for all seeds.
    pub fn covertype() -> Result<Self> {
        let source = found("covertype/covtype_20k.csv.gz")?;
        Self::made(|folder, file| {
            let path = folder.join("rows.csv");
            let mut out = std::io::BufWriter::new(File::create(&path)?);
            let layout = TableLayout { header: Header::No, ..TableLayout::default() };
            let mut text = String::new();
            Table::open(&source, &layout)?.rows(|row| {
                row.features.iter().for_each(|value| text.push_str(&format!("{value},")));
                text.push_str(if row.label == "2" { "2\n" } else { "1\n" });
                Ok(())
            })?;
            out.write_all(text.as_bytes())?;
            out.flush()?;
            drop(out);
            let (test, task) = (TestRows::Fraction(0.2, Seed(1)), Task::Classification);
            Ok(import_table(
                &TableImport {
                    train: vec![path],
                    test,
                    task,
                    layout,
                    columns: ColumnOptions::default(),
                    scaling: Scaling::UnitInterval,
                },
                file,
            )
            .map(drop)?)
        })
    }

    /// One of the small binary sets, standardized: `train` rows drawn by the seed for training, the others for testing.
    pub fn binary(name: &str, train: usize, rows: usize, seed: u64) -> Result<Self> {
        let test = TestRows::Fraction((rows - train) as f64 / rows as f64, Seed(seed));
        Self::table(found(&format!("binary/{name}.csv.gz"))?, test, Task::Classification, Scaling::Standardize)
    }

    /// Kin8nm with one of its standard splits, from 1.
    pub fn kin8nm(split: usize) -> Result<Self> {
        let test = TestRows::Rows { file: found("uci_regression/kin8nm/test_splits.txt.gz")?, split: Some(split) };
        Self::table(found("uci_regression/kin8nm/data.txt.gz")?, test, Task::Regression, Scaling::Standardize)
    }

    /// CIFAR-10: the original archive, or a part of it in files of records, of which the first test images are taken.
    pub fn cifar(tests: usize) -> Result<Self> {
        let records = |name: &str| found(&format!("cifar10/{name}"));
        let (train, test) = match records("cifar-10-binary.tar.gz") {
            Ok(archive) => (archive, None),
            Err(_) => {
                let (test, mut bytes) = (records("test_2k.bin.gz")?, Vec::new());
                MultiGzDecoder::new(File::open(test)?).take(tests as u64 * 3073).read_to_end(&mut bytes)?;
                (records("train_10k.bin.gz")?, Some(bytes))
            }
        };
        Self::made(|folder, file| {
            let test = test.map(|bytes| std::fs::write(folder.join("test.bin"), bytes).map(|()| folder.join("test.bin")));
            let import = CifarImport { train: vec![train], test: test.transpose()?, ..CifarImport::default() };
            Ok(import_cifar(&import, file).map(drop)?)
        })
    }

    /// MNIST or Fashion-MNIST with this many test images, the first ones.
    pub fn images(fashion: bool, scaling: Scaling, tests: u32) -> Result<Self> {
        let file = |name: &str| {
            // The folder in which the data set is packaged.
            let installed = Path::new("/usr/share/datasets/fashion-mnist").join(name);
            match fashion {
                true if installed.is_file() => Ok(installed),
                true => found(&format!("fashion-mnist/{name}")),
                false => found(&format!("mnist/{name}")),
            }
        };
        let pair = |part: &str| -> Result<IdxPair> {
            Ok(IdxPair {
                images: file(&format!("{part}-images-idx3-ubyte.gz"))?,
                labels: file(&format!("{part}-labels-idx1-ubyte.gz"))?,
            })
        };
        let (train, test) = (pair("train")?, pair("t10k")?);
        Self::made(|folder, file| {
            let test = IdxPair {
                images: beginning(&test.images, tests, &folder.join("images"))?,
                labels: beginning(&test.labels, tests, &folder.join("labels"))?,
            };
            Ok(import_idx(&train, Some(&test), scaling, file)?)
        })
    }
}

/// Writes the first entries of an IDX file to another, which it returns.
fn beginning(source: &Path, entries: u32, to: &Path) -> Result<PathBuf> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(source)?).read_to_end(&mut bytes)?;
    // The header has two zeros, the type, the number of dimensions, and four bytes for the size of each of them.
    let header = 4 + 4 * usize::from(*bytes.get(3).ok_or("an empty IDX file")?);
    let size = |at: usize| bytes.get(at..at + 4).map_or(0, |size| size.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)));
    let entry: usize = (8..header).step_by(4).map(size).product();
    bytes.truncate(header + entries as usize * entry);
    bytes.splice(4..8, entries.to_be_bytes());
    std::fs::write(to, bytes)?;
    Ok(to.to_owned())
}
