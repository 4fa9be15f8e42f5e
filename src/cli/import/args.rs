//! Options that several forms of `mpibayes import` share, and parsers of values that other commands use as well.

use super::super::output_file::{self, Content};
use crate::data::{ChannelOrder, Column, Delimiter, Header, Missing, Scaling, Task, TestRows};
use crate::random::Seed;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Where the dataset goes.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// The dataset to write
    #[arg(short, long, value_name = "DATA.h5")]
    pub output: PathBuf,
    /// Replace the dataset if it exists
    #[arg(short, long)]
    pub force: bool,
}

/// What rows contain.
#[derive(Debug, clap::Args)]
pub struct RowArgs {
    /// What the targets are [default: classification]
    #[arg(long, value_enum)]
    pub task: Option<TaskName>,
    /// How features are scaled for models [default: channels for images with several channels, pixels for other images of bytes, none for
    /// LIBSVM, else standardize]
    #[arg(long, value_enum)]
    pub scaling: Option<ScalingName>,
}

/// Which rows become test rows.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Test rows")]
pub struct TestArgs {
    /// The rows of another file with the same format and columns
    #[arg(long, value_name = "FILE")]
    pub test: Option<PathBuf>,
    /// This share of the rows, drawn at random
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "test")]
    pub test_fraction: Option<f64>,
    /// The seed with which --test-fraction selects rows [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// The rows listed in a text file: row numbers from 0, separated by blanks; each line is one choice of test rows
    #[arg(long, value_name = "FILE", conflicts_with_all = ["test", "test_fraction"])]
    pub test_rows: Option<PathBuf>,
    /// Which line of --test-rows to use, from 1, without empty lines [default: 1]
    #[arg(long, value_name = "LINE", requires = "test_rows")]
    pub split: Option<usize>,
}

/// A scaling on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ScalingName {
    /// Keep the values
    None,
    /// Mean 0 and standard deviation 1 over the training rows
    Standardize,
    /// 0..255 to 0.01..1
    Pixels,
    /// 0..1 over the training rows
    UnitInterval,
    /// Divide by the largest absolute value over the training rows: zeros stay zeros
    MaxAbs,
    /// Rotate into the principal axes of the training rows: columns become uncorrelated, nothing is lost
    Principal,
    /// Mean 0 and standard deviation 1 of each channel of images over the training rows: all pixels of a channel share one scale
    Channels,
}

impl From<ScalingName> for Scaling {
    fn from(name: ScalingName) -> Self {
        match name {
            ScalingName::None => Self::None,
            ScalingName::Standardize => Self::Standardize,
            ScalingName::Pixels => Self::Pixels,
            ScalingName::UnitInterval => Self::UnitInterval,
            ScalingName::MaxAbs => Self::MaxAbs,
            ScalingName::Principal => Self::Principal,
            ScalingName::Channels => Self::Channels,
        }
    }
}

/// A task on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TaskName {
    /// A class: any text or number
    Classification,
    /// A number
    Regression,
    /// A count 0, 1, 2, ...
    Counts,
}

/// Where the channels of images are in an array, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ChannelsName {
    /// Examples, channels, height, width
    First,
    /// Examples, height, width, channels
    Last,
}

impl From<ChannelsName> for ChannelOrder {
    fn from(name: ChannelsName) -> Self {
        match name {
            ChannelsName::First => Self::First,
            ChannelsName::Last => Self::Last,
        }
    }
}

/// What becomes of rows with missing values, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum MissingName {
    /// They are an error
    Refuse,
    /// They are left out
    Drop,
    /// Missing numbers become the mean of the training rows, and a feature of their own says that they were missing; missing texts of
    /// --categorical become a level of their own
    MeanAndFlag,
}

impl From<MissingName> for Missing {
    fn from(name: MissingName) -> Self {
        match name {
            MissingName::Refuse => Self::Refuse,
            MissingName::Drop => Self::Drop,
            MissingName::MeanAndFlag => Self::MeanAndFlag,
        }
    }
}

/// How fractions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DecimalMark {
    /// 2.5
    Point,
    /// 2,5
    Comma,
}

/// Whether the first line of a table is a header, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HeaderName {
    /// A header if no cell is a number, ignoring the cell of the label
    Auto,
    /// It is a header
    Yes,
    /// It is a row of data
    No,
}

impl From<HeaderName> for Header {
    fn from(name: HeaderName) -> Self {
        match name {
            HeaderName::Auto => Self::Detect,
            HeaderName::Yes => Self::Yes,
            HeaderName::No => Self::No,
        }
    }
}

impl RowArgs {
    pub fn task(&self) -> Task {
        match self.task {
            None | Some(TaskName::Classification) => Task::Classification,
            Some(TaskName::Regression) => Task::Regression,
            Some(TaskName::Counts) => Task::Counts,
        }
    }

    pub fn scaling_or(&self, default: Scaling) -> Scaling {
        self.scaling.map_or(default, Scaling::from)
    }
}

impl TestArgs {
    /// Where the test rows of these training files come from; `open` turns another file into input of the right format.
    pub fn rows<'a, F>(
        &self,
        training: impl IntoIterator<Item = &'a Path>,
        open: impl FnOnce(&Path) -> anyhow::Result<F>,
    ) -> anyhow::Result<TestRows<F>> {
        if let Some(test) = &self.test
            && let Ok(file) = test.canonicalize()
            && training.into_iter().any(|training| training.canonicalize().is_ok_and(|training| training == file))
        {
            bail!(
                "--test {}: these are training rows: test rows need a file of their own, or --test-fraction 0.1 draws them",
                test.display()
            );
        }
        if self.seed.is_some() && self.test_fraction.is_none() {
            bail!("--seed needs --test-fraction: without it no rows are drawn at random");
        }
        Ok(match (&self.test, self.test_fraction, &self.test_rows) {
            (Some(path), _, _) => TestRows::File(open(path)?),
            (None, Some(fraction), _) => TestRows::Fraction(fraction, Seed(self.seed.unwrap_or(1))),
            (None, None, Some(path)) => TestRows::Rows { file: path.clone(), split: self.split },
            (None, None, None) => TestRows::None,
        })
    }

    /// The files that these options name.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.test.iter().chain(&self.test_rows).map(PathBuf::as_path)
    }
}

impl OutputArgs {
    /// Checks that the output loses nothing, and creates its folder.
    ///
    /// # Errors
    /// When the output exists (without `--force`), is one of the inputs, a folder or a file of a run, or lies in an input folder; or when its
    /// folder cannot be created.
    pub fn prepare<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> anyhow::Result<()> {
        let output = &self.output;
        let inputs: Vec<&Path> = inputs.into_iter().collect();
        for folder in inputs.iter().filter(|input| input.is_dir()) {
            let canonical = folder.canonicalize().with_context(|| folder.display().to_string())?;
            let absolute = std::path::absolute(output).with_context(|| output.display().to_string())?;
            let inside = |place: &Path| place.canonicalize().is_ok_and(|place| place.starts_with(&canonical));
            // In a/../b.h5, the folder a is not above the output.
            let above: Vec<&Path> = absolute.ancestors().skip(1).collect();
            let last = above.iter().position(|folder| folder.ends_with("..")).unwrap_or(above.len());
            if above.iter().take(last + 1).any(|folder| inside(folder)) {
                bail!("{}: the output lies in the input folder {}: write it elsewhere", output.display(), folder.display());
            }
        }
        output_file::check(output, Content::Hdf5, self.force, inputs)?;
        let Some(folder) = output.parent() else { return Ok(()) };
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create this folder", folder.display()))
    }
}

pub(in crate::cli) fn share(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("give a share between 0 and 1, such as 0.2".into()),
    }
}

pub(in crate::cli) fn interval(typed: &str) -> Result<f64, String> {
    share(typed).map_err(|_| "give a share between 0 and 1, such as 0.95".into())
}

pub(in crate::cli) fn delimiter(typed: &str) -> Result<Delimiter, String> {
    Delimiter::named(typed).ok_or_else(|| "give comma, semicolon, tab, blanks, or one character such as '|'".into())
}

/// A column and one of its values.
pub(super) fn reference(typed: &str) -> Result<(Column, String), String> {
    let parts = typed.split_once('=').filter(|(column, value)| !column.is_empty() && !value.is_empty());
    let (of, value) = parts.ok_or("give a column and one of its values, such as region=north")?;
    Ok((column(of)?, value.to_owned()))
}

pub(in crate::cli) fn column(typed: &str) -> Result<Column, String> {
    // After the comma of a list.
    let typed = typed.trim();
    match (typed, typed.parse::<usize>()) {
        ("last", _) => Ok(Column::Last),
        ("first", _) => Ok(Column::Number(1)),
        ("", _) => Err("name a column".into()),
        (_, Ok(0)) => Err("columns are numbered from 1".into()),
        (_, Ok(number)) => Ok(Column::Number(number)),
        (name, Err(_)) => Ok(Column::Name(name.to_owned())),
    }
}
