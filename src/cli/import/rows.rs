//! `mpibayes import table`, `arrays` and `libsvm`: rows with targets become a dataset.

use super::args::{
    ChannelsName, DecimalMark, HeaderName, MissingName, OutputArgs, RowArgs, TestArgs, column, delimiter, reference,
};
use crate::data::{
    ArrayFile, ArrayImport, ArrayPair, ChannelOrder, Column, ColumnOptions, ColumnUse, DataError, Dataset, Delimiter, Format,
    LibsvmImport, Missing, Scaling, Split, TableImport, TableLayout, Task, TestRows, UsedColumn, detect, import_arrays,
    import_libsvm, import_table, listed,
};
use crate::text;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Arguments of `mpibayes import table`.
#[derive(Debug, clap::Args)]
pub struct TableArgs {
    /// The table: one example per row; text (CSV, TSV or separated by blanks, plain or gzip), Parquet or Arrow. Several files with the
    /// same columns are read one after the other
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub rows: RowArgs,
    #[command(flatten)]
    pub layout: LayoutArgs,
    #[command(flatten)]
    pub test: TestArgs,
}

/// How a table is read.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Columns of a table")]
pub struct LayoutArgs {
    /// The column of the label or target: `first`, `last`, its number from 1, or its name in the header [default: last]
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub label: Option<Column>,
    /// Columns to leave out, named in the same way
    #[arg(long, value_name = "COLUMN,...", value_parser = column, value_delimiter = ',')]
    pub drop: Vec<Column>,
    /// All labels in their order, such as low,medium,high, for ordinal regressions [default: by number or alphabet]
    #[arg(long, value_name = "LABEL,...", value_delimiter = ',')]
    pub classes: Vec<String>,
    /// Columns of texts or codes, such as a region: each of its values but the first becomes a column of 1 and 0
    #[arg(long, value_name = "COLUMN,...", value_parser = column, value_delimiter = ',')]
    pub categorical: Vec<Column>,
    /// The value of a column of --categorical that the others are compared with [default: the first one in order]
    #[arg(long, value_name = "COLUMN=VALUE,...", value_parser = reference, value_delimiter = ',')]
    pub reference: Vec<(Column, String)>,
    /// Columns of dates or times as in 2024-02-29 13:05: they become days since 1970
    #[arg(long, value_name = "COLUMN,...", value_parser = column, value_delimiter = ',')]
    pub date: Vec<Column>,
    /// The column of groups, such as a school: regressions give each group effects of its own
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub group: Option<Column>,
    /// The column of exposures, such as person-years, whose logarithm is added to the linear predictor of counts
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub exposure: Option<Column>,
    /// The column of offsets, which are added to the linear predictor
    #[arg(long, value_name = "COLUMN", value_parser = column, conflicts_with = "exposure")]
    pub offset: Option<Column>,
    /// The column of weights: a row of weight 2 counts as two rows
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    pub weight: Option<Column>,
    /// What becomes of rows with missing values [default: refuse]
    #[arg(long, value_enum)]
    pub missing: Option<MissingName>,
    /// What else stands for a missing value, such as -999 or unknown; an empty field, NA, NaN, null, ? and . always do
    #[arg(long, value_name = "TEXT,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub na: Vec<String>,
    /// How fractions are written: 2.5 or 2,5 [default: point]
    #[arg(long, value_enum, value_name = "MARK")]
    pub decimal: Option<DecimalMark>,
    /// Whether the first line names the columns [default: auto]
    #[arg(long, value_enum)]
    pub header: Option<HeaderName>,
    /// What separates columns: `comma`, `semicolon`, `tab`, `blanks`, or a character [default: detected in the first line]
    #[arg(long, value_name = "SEPARATOR", value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,
}

/// Arguments of `mpibayes import arrays`.
#[derive(Debug, clap::Args)]
pub struct ArraysArgs {
    /// The features as an NPY file, plain or gzip, one example per row; or an NPZ file with features and targets
    pub file: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub rows: RowArgs,
    #[command(flatten)]
    pub names: ArrayNames,
    #[command(flatten)]
    pub test: TestArgs,
}

/// Where the targets of arrays are.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Arrays")]
pub struct ArrayNames {
    /// The labels or targets of an NPY file of features
    #[arg(long, visible_alias = "labels", value_name = "FILE.npy")]
    pub targets: Option<PathBuf>,
    /// The labels or targets of the file --test
    #[arg(long, visible_alias = "test-labels", value_name = "FILE.npy", requires_all = ["test", "targets"])]
    pub test_targets: Option<PathBuf>,
    /// The array of features in an NPZ file [default: x_train or x]
    #[arg(long, value_name = "NAME", conflicts_with = "targets")]
    pub features_name: Option<String>,
    /// The array of labels or targets in an NPZ file [default: y_train or y]
    #[arg(long, value_name = "NAME", conflicts_with = "targets")]
    pub targets_name: Option<String>,
    /// Where the channels of images are in an array of four dimensions [default: first if there are 1, 3 or 4 there and not at the end]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub channels: Option<ChannelsName>,
}

/// Arguments of `mpibayes import libsvm`.
#[derive(Debug, clap::Args)]
pub struct LibsvmArgs {
    /// The LIBSVM file, plain or gzip: a label and index:value pairs per row; sparse rows stay sparse
    pub file: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
    /// The number of features [default: the largest index of the training file]
    #[arg(long, value_name = "D")]
    pub features: Option<u32>,
    #[command(flatten)]
    pub rows: RowArgs,
    #[command(flatten)]
    pub test: TestArgs,
}

impl TableArgs {
    pub fn import(&self) -> anyhow::Result<String> {
        self.output.prepare(self.files.iter().map(PathBuf::as_path).chain(self.test.inputs()))?;
        table(&self.files, &self.layout, &self.rows, &self.test, &self.output.output)
    }
}

impl ArraysArgs {
    pub fn import(&self) -> anyhow::Result<String> {
        let targets = self.names.targets.iter().chain(&self.names.test_targets).map(PathBuf::as_path);
        self.output.prepare([self.file.as_path()].into_iter().chain(self.test.inputs()).chain(targets))?;
        arrays(&self.file, &self.names, &self.rows, &self.test, &self.output.output)
    }
}

impl LibsvmArgs {
    pub fn import(&self) -> anyhow::Result<String> {
        self.output.prepare([self.file.as_path()].into_iter().chain(self.test.inputs()))?;
        require_table(&self.file)?;
        libsvm(&self.file, self.features, &self.rows, &self.test, &self.output.output)
    }
}

/// The format of a file of rows.
///
/// # Errors
/// When its content is no such format; the message proposes a command.
pub fn format(path: &Path) -> anyhow::Result<Format> {
    let found = detect(path)?;
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
    match found {
        Format::Table if matches!(extension.as_str(), "npy" | "npz" | "h5" | "hdf5") => {
            bail!("{}: this is no {extension} file, despite its name: fetch or save it again", path.display())
        }
        Format::Hdf5 => bail!("{}: this is an HDF5 file; a dataset of this program needs no import", path.display()),
        Format::Other(what) => bail!("{}: this is {what}", path.display()),
        found => Ok(found),
    }
}

/// Refuses a file that is no table.
pub fn require_table(path: &Path) -> anyhow::Result<()> {
    let what = match format(path)? {
        Format::Npy | Format::Npz => "NumPy arrays: use `mpibayes import arrays`",
        Format::Idx => "an IDX file: use `mpibayes import images`",
        Format::Tar => "an archive: use `mpibayes import images` if it is one of CIFAR, or unpack it",
        _ => return Ok(()),
    };
    bail!("{}: this file contains {what}", path.display())
}

/// Imports tables with the same columns and describes the dataset.
pub fn table(files: &[PathBuf], layout: &LayoutArgs, rows: &RowArgs, test: &TestArgs, output: &Path) -> anyhow::Result<String> {
    let scaling = rows.scaling_or(Scaling::Standardize);
    files.iter().try_for_each(|file| require_table(file))?;
    let import = TableImport {
        train: files.to_vec(),
        test: test.rows(files.iter().map(PathBuf::as_path), |path| match detect(path)? {
            Format::Table | Format::Batches(_) => Ok(path.to_path_buf()),
            _ => bail!("{}: test rows need the format of the training rows: this is no table", path.display()),
        })?,
        task: rows.task(),
        layout: TableLayout {
            label: layout.label.clone().unwrap_or_default(),
            drop: layout.drop.clone(),
            dates: layout.date.clone(),
            header: layout.header.unwrap_or(HeaderName::Auto).into(),
            delimiter: layout.delimiter,
            decimal_comma: layout.decimal == Some(DecimalMark::Comma),
            ..TableLayout::default()
        },
        columns: ColumnOptions {
            classes: layout.classes.clone(),
            categorical: layout.categorical.clone(),
            references: layout.reference.clone(),
            group: layout.group.clone(),
            offset: layout.offset.clone(),
            exposure: layout.exposure.clone(),
            weight: layout.weight.clone(),
            missing: layout.missing.map_or(Missing::Refuse, Missing::from),
            na: layout.na.clone(),
        },
        scaling,
    };
    let warnings = import_table(&import, output)?;
    let notes: String = warnings.iter().map(|warning| format!("note: {warning}\n")).collect();
    Ok(describe(output, scaling)? + &notes)
}

/// Imports a LIBSVM file and describes the dataset.
pub fn libsvm(file: &Path, features: Option<u32>, rows: &RowArgs, test: &TestArgs, output: &Path) -> anyhow::Result<String> {
    let scaling = rows.scaling_or(Scaling::None);
    let test = test.rows([file], |path| Ok(path.to_path_buf()))?;
    import_libsvm(&LibsvmImport { train: file.to_path_buf(), test, task: rows.task(), features, scaling }, output)?;
    describe(output, scaling)
}

/// Imports NumPy arrays and describes the dataset.
pub fn arrays(file: &Path, names: &ArrayNames, rows: &RowArgs, test: &TestArgs, output: &Path) -> anyhow::Result<String> {
    let in_order = |mut pair: ArrayPair| {
        pair.features.channels = names.channels.map(ChannelOrder::from);
        pair
    };
    let npz = |path: &Path| -> Result<(ArrayPair, Option<ArrayPair>), DataError> {
        let (train, test) = ArrayPair::in_npz(path, names.features_name.as_deref(), names.targets_name.as_deref())?;
        Ok((in_order(train), test.map(in_order)))
    };
    let npy = |features: &Path, targets: &Path| {
        in_order(ArrayPair { features: ArrayFile::npy(features), targets: ArrayFile::npy(targets) })
    };
    let (train, own_test) = match (format(file)?, &names.targets) {
        (Format::Npy, _) if names.features_name.is_some() || names.targets_name.is_some() => bail!(
            "{}: --features-name and --targets-name are for NPZ files: give the targets of an NPY file with --targets FILE.npy",
            file.display()
        ),
        (Format::Npy, Some(targets)) => (npy(file, targets), None),
        (Format::Npy, None) => bail!(
            "{}: an NPY file holds features alone: give their labels or targets with `mpibayes import arrays {} --targets FILE.npy`",
            file.display(),
            file.display()
        ),
        (Format::Npz, Some(_)) => bail!(
            "{}: targets in a file of their own (--targets, --labels) are for NPY files: an NPZ file contains them",
            file.display()
        ),
        (Format::Npz, None) => npz(file)?,
        _ => bail!("{}: this is no NumPy file (NPY or NPZ)", file.display()),
    };
    let other = |path: &Path| match (detect(path)?, &names.test_targets) {
        (Format::Npz, None) => Ok(npz(path)?.0),
        (Format::Npy, Some(targets)) => Ok(npy(path, targets)),
        (Format::Npy, None) => bail!("{}: give the labels or targets of these rows with --test-targets FILE.npy", path.display()),
        _ => bail!("{}: test rows need the format of the training rows: NPY with --test-targets, or NPZ", path.display()),
    };
    let test = match (test.rows([file], other)?, own_test) {
        (TestRows::None, Some(own)) => TestRows::File(own),
        (test, None) => test,
        (_, Some(_)) => bail!(
            "{}: this file has test rows of its own, x_test and y_test; to ignore them, use `mpibayes import arrays` with \
             --features-name x_train --targets-name y_train",
            file.display()
        ),
    };
    let import = ArrayImport { train, test, task: rows.task(), scaling: rows.scaling.map(Scaling::from) };
    let scaling = import_arrays(&import, output)?;
    describe(output, scaling)
}

/// What has become of a column, unless it is what it was.
fn used(column: &UsedColumn) -> Option<(&'static str, String)> {
    let name = &column.name;
    match &column.r#use {
        ColumnUse::Number | ColumnUse::Filled(_) => None,
        ColumnUse::FilledAndFlagged(mean) => {
            Some(("filled in", format!("{name}: its mean {} where it is missing, and {name}[missing]", text::value(*mean))))
        }
        ColumnUse::Date => Some(("date", format!("{name}: days since 1970-01-01"))),
        ColumnUse::Indicators(levels) => {
            let others = listed(&levels[1..]);
            Some(("categorical", format!("{name}: {others}, each compared with the reference level {}", levels[0])))
        }
        ColumnUse::Group(levels) => {
            Some(("groups", format!("{name}: {}: {}", text::counted(levels.len(), "group"), listed(levels))))
        }
        ColumnUse::Offset => Some(("offset", format!("{name} is added to linear predictors"))),
        ColumnUse::Exposure => Some(("exposure", format!("log({name}) is added to linear predictors"))),
        ColumnUse::Weight => Some(("weight", format!("each row counts {name} times"))),
    }
}

/// Describes a dataset, for people.
pub fn describe(path: &Path, scaling: Scaling) -> anyhow::Result<String> {
    let data = Dataset::open(path)?;
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let mut lines =
        vec![("task", data.task().name().to_owned()), ("train", format!("{} rows", text::count(data.rows(Split::Train))))];
    lines.push(match data.rows(Split::Test) {
        0 => ("test", "none: runs cannot evaluate predictions".into()),
        rows => ("test", format!("{} rows", text::count(rows))),
    });
    let shape = match data.shape() {
        [_] => String::new(),
        sides => format!(" ({})", sides.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")),
    };
    lines.push(("features", format!("{}{shape}", text::count(data.features() - data.extra_columns()))));
    if data.is_sparse() {
        let stored = data.values(Split::Train)? + data.values(Split::Test)?;
        lines.push(("sparse", format!("{} nonzero values", text::count(stored))));
    }
    lines.push(("scaling", scaling.name().to_owned()));
    if let Some(recipe) = data.recipe() {
        lines.extend(recipe.columns.iter().filter_map(used));
        if recipe.left_out > 0 {
            lines.push(("left out", format!("{}, where a value is missing", text::counted(recipe.left_out, "row"))));
        }
    }
    if data.task() == Task::Classification {
        let classes = data.classes();
        lines.push(("classes", format!("{}: {}", text::count(classes.len()), listed(classes))));
    } else if data.task() == Task::Regression {
        let (scale, offset) = data.target_scaling();
        let (mean, deviation) = (text::value(-offset / scale), text::value(1.0 / scale));
        lines.push(("targets", format!("mean {mean}, standard deviation {deviation}")));
    }
    lines.push(("digest", text::short_digest(data.digest()).to_owned()));
    Ok(format!("wrote {} ({})\n{}", path.display(), text::bytes(size), text::pairs(&lines)))
}
