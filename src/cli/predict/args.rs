//! The arguments of `mpibayes predict`.

use crate::cli::import::{ChannelsName, DecimalMark, HeaderName, column, delimiter, interval};
use crate::data::{Column, Delimiter, Split};
use anyhow::bail;
use std::path::PathBuf;

/// Rows are predicted in blocks of this size, so that memory does not grow with the file.
pub(super) const BLOCK: usize = 4096;

const EXAMPLES: &str = "\
Examples:
  New rows; columns are matched by the names in the header, and other columns are ignored:
    mpibayes predict runs/first new.csv -o predicted.csv

  Rows with known classes in the column `kind`, for which metrics are reported:
    mpibayes predict runs/first test.csv --label kind -o predicted.csv

  A NumPy array, images of an IDX file, rows of a LIBSVM file with labels:
    mpibayes predict runs/first new.npy -o predicted.csv
    mpibayes predict runs/first t10k-images-idx3-ubyte.gz -o predicted.csv
    mpibayes predict runs/first new.svm --label first -o predicted.csv

  The test rows of a dataset, which has labels:
    mpibayes predict runs/first data.h5 | head

  The topic weights of documents, imported with any vocabulary, by a topic model:
    mpibayes predict runs/topics corpus.h5 --split train -o weights.csv";

/// Arguments of `mpibayes predict`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PredictArgs {
    /// The folder of a finished run, or its result file
    pub run: PathBuf,
    /// The rows in original units: a table (CSV, TSV, spaces, Parquet, Arrow), LIBSVM, NPY, NPZ or IDX, plain or gzip, or a dataset; for a topic
    /// model, a corpus
    pub data: PathBuf,
    /// The file for the predictions [default: standard output]
    #[arg(short, long, value_name = "FILE.csv")]
    pub output: Option<PathBuf>,
    /// Replace the file of --output if it exists
    #[arg(short, long, requires = "output")]
    pub force: bool,
    /// The column of labels or targets, if any: `first`, `last`, its number from 1, or its name; `first` for a LIBSVM file
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub label: Option<Column>,
    /// Whether the first line names the columns [default: auto]
    #[arg(long, value_enum)]
    pub header: Option<HeaderName>,
    /// The separator of columns [default: detected from the first line]
    #[arg(long, value_name = "WHAT", value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,
    /// How fractions are written: 2.5 or 2,5 [default: as in the table of the run]
    #[arg(long, value_enum, value_name = "MARK")]
    pub decimal: Option<DecimalMark>,
    /// The array in an NPZ file [default: the only one, or x or x_test]
    #[arg(long, value_name = "NAME")]
    pub features_name: Option<String>,
    /// Where the channels of images are in an array of four dimensions [default: first if there are 1, 3 or 4 there and not at the end]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub channels: Option<ChannelsName>,
    /// The probability of the interval, such as 0.95 [default: 0.9 for numbers and counts, no interval for classes]
    #[arg(long, value_name = "SHARE", value_parser = interval)]
    pub interval: Option<f64>,
    /// What the interval is for [default: target; mean for classes]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub of: Option<IntervalOf>,
    /// Copy these columns of the table, such as an id, into the predictions: columns that the model does not use, with at most 100,000 different values
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub keep: Vec<String>,
    /// Also write this many draws of each target, each from another draw of the posterior
    #[arg(long, value_name = "N")]
    pub draws: Option<usize>,
    /// The chain of a topic model: topics of different chains have no common order [default: 0]
    #[arg(long, value_name = "CHAIN")]
    pub chain: Option<usize>,
    /// The rows of a dataset, or documents of a corpus [default: test, if there are any]
    #[arg(long, value_enum)]
    pub split: Option<SplitName>,
}

impl PredictArgs {
    /// The part of a dataset or corpus that is predicted.
    ///
    /// # Errors
    /// If the test part was asked for and has nothing.
    pub(super) fn split(&self, has_test: bool, entries: &str) -> anyhow::Result<Split> {
        match (self.split, has_test) {
            (Some(SplitName::Train), _) | (None, false) => Ok(Split::Train),
            (Some(SplitName::Test) | None, true) => Ok(Split::Test),
            (Some(SplitName::Test), false) => {
                bail!("--split test: {} has no test {entries}; without --split, all {entries} are predicted", self.data.display())
            }
        }
    }
}

/// What an interval of a prediction is of, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum IntervalOf {
    /// A new target
    Target,
    /// The mean of new targets, or the probability of a class
    Mean,
}

/// A part of a dataset, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SplitName {
    /// The training rows
    Train,
    /// The test rows
    Test,
}
