//! `mpibayes import`: turns tables, arrays, images and documents into what runs read, and says what it made.

use super::documents::{self, DocumentArgs, DocumentFormat};
use super::output::print;
use crate::data::corpus::BagFormat;
use crate::data::{
    ArrayFile, ArrayImport, ArrayPair, Column, Dataset, Delimiter, Format, Header, IdxPair, LibsvmImport, Scaling, Split,
    TableImport, TableLayout, Task, Test, detect, import_arrays, import_idx, import_libsvm, import_table, is_libsvm,
};
use crate::random::Seed;
use crate::report::text;
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  A table with the class in the last column; a fifth of its rows become test rows:
    mpibayes import flowers.csv --test-fraction 0.2 -o flowers.h5

  A LIBSVM file, whose sparse rows stay sparse, and test rows of its own:
    mpibayes import rcv1.svm --test rcv1.t.svm --scaling max-abs -o rcv1.h5

  The column `price` is to be predicted, without the column `id`; test rows of its own:
    mpibayes import train.csv --test test.csv --task regression --label price --drop id -o houses.h5

  Columns between blanks; the test rows are those in line 3 of another file:
    mpibayes import data.txt --task regression --test-rows test_splits.txt --split 3 -o boston.h5

  NumPy arrays, as two NPY files, or in an NPZ file (x and y, or x_train, ...):
    mpibayes import x.npy --targets y.npy --test-fraction 0.2 -o mine.h5
    mpibayes import mnist.npz -o mnist.h5

  Images with labels in IDX files, as MNIST and Fashion-MNIST come, plain or gzip:
    mpibayes import --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
        --test-images t10k-images-idx3-ubyte.gz --test-labels t10k-labels-idx1-ubyte.gz \\
        -o fashion.h5

  Counted words for topic models, as UCI's bags of words, lda-c or Matrix Market, with 300 documents held out:
    mpibayes import docword.kos.txt.gz --vocabulary vocab.kos.txt --test-documents 300 -o kos.h5

  Text for topic models: a file with a document in each line, or a folder with one in each file:
    mpibayes import articles.txt --format text --stop-words english --test-documents 300 -o articles.h5
    mpibayes import 20news/ --format text --stop-words english --test-fraction 0.1 -o 20news.h5";

/// What can be typed after `mpibayes import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// The training rows, plain or gzip: a table in text (CSV, TSV, columns between blanks) with one row an example, or NumPy
    /// arrays (NPY, NPZ); or documents, as counted words, or as text: files with one in each line, or a folder with one in each
    /// file
    #[arg(value_name = "FILE", required_unless_present = "images", conflicts_with = "images")]
    pub files: Vec<PathBuf>,
    /// Where to write the dataset
    #[arg(short, long, value_name = "DATA.h5")]
    pub output: PathBuf,
    /// Replace the dataset if it exists
    #[arg(short, long)]
    pub force: bool,
    /// What the training rows or documents are given as [default: found out from the content, but for text in files]
    #[arg(long, value_enum, conflicts_with = "images")]
    pub format: Option<FormatName>,
    /// What the targets are [default: classification]
    #[arg(long, value_enum, conflicts_with = "images")]
    pub task: Option<TaskName>,
    /// How feature values become what models see [default: pixels for images of bytes, else standardize]
    #[arg(long, value_enum)]
    pub scaling: Option<ScalingName>,

    /// Another file of the same format and columns
    #[arg(long, value_name = "FILE", conflicts_with = "images", help_heading = "Test rows")]
    pub test: Option<PathBuf>,
    /// This share of the rows, drawn at random
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["images", "test"], help_heading = "Test rows")]
    pub test_fraction: Option<f64>,
    /// The seed of that draw, and of the order of documents [default: 1]
    #[arg(long, conflicts_with = "images", help_heading = "Test rows")]
    pub seed: Option<u64>,
    /// The rows listed in a text file: their numbers from 0, blanks between them; each line is a split
    #[arg(long, value_name = "FILE", conflicts_with_all = ["images", "test", "test_fraction"], help_heading = "Test rows")]
    pub test_rows: Option<PathBuf>,
    /// Which line of that file, from 1 [default: 1]
    #[arg(long, value_name = "LINE", requires = "test_rows", help_heading = "Test rows")]
    pub split: Option<usize>,

    /// The column of the label or target: `first`, `last`, its number from 1, or its name in the header [default: last]
    #[arg(long, value_name = "COLUMN", value_parser = column, conflicts_with = "images", help_heading = "Tables")]
    pub label: Option<Column>,
    /// Columns to leave out, named in the same way
    #[arg(
        long,
        value_name = "COLUMN,...",
        value_parser = column,
        value_delimiter = ',',
        conflicts_with = "images",
        help_heading = "Tables"
    )]
    pub drop: Vec<Column>,
    /// Whether the first line names the columns [default: auto]
    #[arg(long, value_enum, conflicts_with = "images", help_heading = "Tables")]
    pub header: Option<HeaderName>,
    /// What stands between columns: `comma`, `semicolon`, `tab`, `blanks`, or a character [default: found out from the first line]
    #[arg(long, value_name = "WHAT", value_parser = delimiter, conflicts_with = "images", help_heading = "Tables")]
    pub delimiter: Option<Delimiter>,

    /// The labels or targets of the rows of an NPY file: another one
    #[arg(long, value_name = "FILE.npy", conflicts_with = "images", help_heading = "Arrays")]
    pub targets: Option<PathBuf>,
    /// Those of the rows of --test
    #[arg(long, value_name = "FILE.npy", requires_all = ["test", "targets"], help_heading = "Arrays")]
    pub test_targets: Option<PathBuf>,
    /// The array of features in an NPZ file [default: x_train or x]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["images", "targets"], help_heading = "Arrays")]
    pub features_name: Option<String>,
    /// The array of labels or targets in an NPZ file [default: y_train or y]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["images", "targets"], help_heading = "Arrays")]
    pub targets_name: Option<String>,

    /// How many features rows have [default: the largest index of the training file]
    #[arg(long, value_name = "D", conflicts_with = "images", help_heading = "LIBSVM")]
    pub features: Option<u32>,

    /// Of documents.
    #[command(flatten)]
    pub documents: DocumentArgs,

    /// The training images
    #[arg(long, value_name = "FILE", requires = "labels", help_heading = "IDX")]
    pub images: Option<PathBuf>,
    /// Their labels
    #[arg(long, value_name = "FILE", requires = "images", help_heading = "IDX")]
    pub labels: Option<PathBuf>,
    /// The test images
    #[arg(long, value_name = "FILE", requires_all = ["images", "test_labels"], help_heading = "IDX")]
    pub test_images: Option<PathBuf>,
    /// Their labels
    #[arg(long, value_name = "FILE", requires_all = ["images", "test_images"], help_heading = "IDX")]
    pub test_labels: Option<PathBuf>,
}

/// A format as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FormatName {
    /// A table in text with commas, or what --delimiter says
    Csv,
    /// A table in text with tabs
    Tsv,
    /// A table in text with blanks
    Blanks,
    /// A NumPy array
    Npy,
    /// NumPy arrays in an archive
    Npz,
    /// Labels with index:value pairs; sparse rows stay sparse
    Libsvm,
    /// Documents as UCI's bag of words: three sizes, then lines `document word count`
    Docword,
    /// Documents as Blei's lda-c: lines `n word:count ...`
    LdaC,
    /// Documents as the rows of a Matrix Market file of counts
    MatrixMarket,
    /// Documents in text: one in each line of a file, or in each file of a folder
    Text,
}

impl FormatName {
    /// Of documents.
    fn of_documents(self) -> Option<DocumentFormat> {
        match self {
            Self::Docword => Some(DocumentFormat::Counted(BagFormat::Docword)),
            Self::LdaC => Some(DocumentFormat::Counted(BagFormat::LdaC)),
            Self::MatrixMarket => Some(DocumentFormat::Counted(BagFormat::MatrixMarket)),
            Self::Text => Some(DocumentFormat::Text),
            _ => None,
        }
    }
}

/// A scaling as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ScalingName {
    /// The values as they are
    None,
    /// Mean 0 and standard deviation 1 over the training rows
    Standardize,
    /// 0..255 to 0.01..1
    Pixels,
    /// 0..1 over the training rows
    UnitInterval,
    /// Divided by the largest absolute value over the training rows: zeros stay zeros
    MaxAbs,
    /// The principal axes of the training rows, all in one unit: columns are uncorrelated, and nothing is lost
    Principal,
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
        }
    }
}

/// A task as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TaskName {
    /// A class: any text or number
    Classification,
    /// A number
    Regression,
}

/// What is typed about the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HeaderName {
    /// It does if none of its features is a number
    Auto,
    /// It does
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

pub(super) fn share(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("give a share between 0 and 1, such as 0.2".into()),
    }
}

pub(super) fn delimiter(typed: &str) -> Result<Delimiter, String> {
    Delimiter::named(typed).ok_or_else(|| "give comma, semicolon, tab, blanks, or one character such as '|'".into())
}

pub(super) fn column(typed: &str) -> Result<Column, String> {
    match (typed, typed.parse::<usize>()) {
        ("last", _) => Ok(Column::Last),
        ("first", _) => Ok(Column::Number(1)),
        ("", _) => Err("name a column".into()),
        (_, Ok(0)) => Err("columns are counted from 1".into()),
        (_, Ok(number)) => Ok(Column::Number(number)),
        (name, Err(_)) => Ok(Column::Name(name.to_owned())),
    }
}

/// Imports, and prints what was made.
///
/// # Errors
/// See [`import`].
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    print(&import(args)?).context("cannot print what was made")?;
    Ok(ExitCode::SUCCESS)
}

/// Imports what the arguments name, and describes the dataset that was made, in lines for people.
///
/// # Errors
/// When the output exists (unless `force`) or is one of the inputs, an input cannot be read or is not what it should be, or the
/// output or its folder, which is made, cannot be written. No half dataset stays, and an older one is then untouched.
pub fn import(args: &ImportArgs) -> anyhow::Result<String> {
    check_output(args)?;
    let pair = |images: &Option<PathBuf>, labels: &Option<PathBuf>| {
        images.clone().zip(labels.clone()).map(|(images, labels)| IdxPair { images, labels })
    };
    let scaling = if let Some(train) = pair(&args.images, &args.labels) {
        let scaling = args.scaling.map_or(Scaling::Pixels, Scaling::from);
        import_idx(&train, pair(&args.test_images, &args.test_labels).as_ref(), scaling, &args.output)?;
        scaling
    } else if let Some(train) = args.files.first() {
        let of_documents = args.format.map(FormatName::of_documents);
        if of_documents.is_none_or(|typed| typed.is_some())
            && let Some(format) = documents::format(&args.files, of_documents.flatten())?
        {
            only_for(args, &of_rows(args), "rows, not documents")?;
            if format != DocumentFormat::Text {
                only_for(args, &args.documents.text.given(), "documents in text, not counted ones")?;
            }
            return documents::import(&args.files, format, &args.documents, args.test_fraction, args.seed, &args.output);
        }
        if let Some(second) = args.files.get(1) {
            let what = "a second file: several can only be documents in text (--format text); test rows come with --test";
            bail!("{}: {what}", second.display());
        }
        only_for(args, &args.documents.text.given(), "documents in text: say --format text")?;
        only_for(args, &args.documents.given(), "documents: UCI's bag of words, lda-c, Matrix Market, or text (--format text)")?;
        only_for(
            args,
            &[(args.seed.is_some() && args.test_fraction.is_none(), "--seed")],
            "test rows that are drawn: --test-fraction",
        )?;
        let format = format(args, train)?;
        let sparse = match args.format {
            Some(typed) => typed == FormatName::Libsvm,
            None => format == Format::Table && is_libsvm(train)?,
        };
        if args.format.is_none() && args.delimiter.is_none() && format == Format::Table && !sparse {
            documents::must_have_numbers(train)?;
        }
        only_for(args, &[(args.features.is_some() && !sparse, "--features")], "LIBSVM files: others say how many they have")?;
        match format {
            _ if sparse => {
                let scaling = args.scaling.map_or(Scaling::None, Scaling::from);
                import_libsvm(&libsvm(args, train, scaling)?, &args.output)?;
                scaling
            }
            Format::Npy => import_arrays(&arrays(args, npy(args, train)?, None)?, &args.output)?,
            Format::Npz => {
                only_for(args, &[(args.targets.is_some(), "--targets")], "an NPY file: NPZ files hold their targets")?;
                let (pair, test) = ArrayPair::in_npz(train, args.features_name.as_deref(), args.targets_name.as_deref())?;
                import_arrays(&arrays(args, pair, test)?, &args.output)?
            }
            _ => {
                let arrays = [
                    (args.targets.is_some(), "--targets"),
                    (args.features_name.is_some(), "--features-name"),
                    (args.targets_name.is_some(), "--targets-name"),
                ];
                only_for(args, &arrays, "arrays (NPY, NPZ): a table has its labels in the column --label")?;
                let scaling = args.scaling.map_or(Scaling::Standardize, Scaling::from);
                import_table(&table(args, train, scaling)?, &args.output)?;
                scaling
            }
        }
    } else {
        bail!("name a file with rows, or IDX files with --images and --labels");
    };
    describe(&args.output, scaling)
}

/// The format of the training rows: what is typed, or else what the content shows. What the two agree on is left to the readers.
fn format(args: &ImportArgs, path: &Path) -> anyhow::Result<Format> {
    let found = detect(path)?;
    let (typed, name) = match args.format {
        Some(FormatName::Npy) => (Some(Format::Npy), "an NPY file"),
        Some(FormatName::Npz) => (Some(Format::Npz), "an NPZ file"),
        Some(FormatName::Csv | FormatName::Tsv | FormatName::Blanks) => (Some(Format::Table), "a table in text"),
        Some(FormatName::Libsvm) => (Some(Format::Table), "a LIBSVM file"),
        Some(FormatName::Docword | FormatName::LdaC | FormatName::MatrixMarket) => (Some(Format::Table), "counted documents"),
        Some(FormatName::Text) => (Some(Format::Table), "text"),
        None => (None, ""),
    };
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
    let is = match found {
        Format::Table if typed.is_none() && matches!(extension.as_str(), "npy" | "npz" | "h5" | "hdf5") => {
            bail!("{}: this is no {extension} file, whatever its name says: fetch or save it again", path.display())
        }
        Format::Npy => "an NPY file",
        Format::Npz => "an NPZ or another ZIP file",
        Format::Table => "a table in text, or nothing known",
        Format::Idx => bail!("{}: this is an IDX file: give images with --images and labels with --labels", path.display()),
        Format::Hdf5 => bail!("{}: this is an HDF5 file; a dataset of this program needs no import", path.display()),
        Format::Other(what) => bail!("{}: this is {what}: save it as CSV", path.display()),
    };
    match typed {
        Some(typed) if typed != found => bail!("{}: this is {is}, not {name} as --format says", path.display()),
        _ => Ok(found),
    }
}

/// Refuses options that mean nothing for the format of the file.
fn only_for(args: &ImportArgs, given: &[(bool, &str)], what: &str) -> anyhow::Result<()> {
    let file = args.files.first().map_or(Path::new(""), PathBuf::as_path).display();
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => bail!("{file}: {option} is for {what}"),
        None => Ok(()),
    }
}

/// The options that documents have no use for.
fn of_rows(args: &ImportArgs) -> [(bool, &'static str); 12] {
    [
        (args.task.is_some(), "--task"),
        (args.scaling.is_some(), "--scaling"),
        (args.test.is_some(), "--test"),
        (args.test_rows.is_some(), "--test-rows"),
        (args.label.is_some(), "--label"),
        (!args.drop.is_empty(), "--drop"),
        (args.header.is_some(), "--header"),
        (args.delimiter.is_some(), "--delimiter"),
        (args.targets.is_some(), "--targets"),
        (args.features_name.is_some(), "--features-name"),
        (args.targets_name.is_some(), "--targets-name"),
        (args.features.is_some(), "--features"),
    ]
}

/// Where the test rows come from; `file` says what another file is.
fn test<F>(args: &ImportArgs, file: impl FnOnce(&Path) -> anyhow::Result<F>) -> anyhow::Result<Test<F>> {
    Ok(match (&args.test, args.test_fraction, &args.test_rows) {
        (Some(path), _, _) => Test::File(file(path)?),
        (None, Some(fraction), _) => Test::Fraction(fraction, Seed(args.seed.unwrap_or(1))),
        (None, None, Some(path)) => Test::Rows { file: path.clone(), split: args.split },
        (None, None, None) => Test::None,
    })
}

fn task(args: &ImportArgs) -> Task {
    match args.task {
        None | Some(TaskName::Classification) => Task::Classification,
        Some(TaskName::Regression) => Task::Regression,
    }
}

fn npy(args: &ImportArgs, train: &Path) -> anyhow::Result<ArrayPair> {
    let named = [(args.features_name.is_some(), "--features-name"), (args.targets_name.is_some(), "--targets-name")];
    only_for(args, &named, "NPZ files: the targets of an NPY file come with --targets FILE.npy")?;
    let Some(targets) = &args.targets else {
        bail!("{}: an NPY file holds features alone: give their labels or targets with --targets FILE.npy", train.display());
    };
    Ok(ArrayPair { features: ArrayFile::npy(train), targets: ArrayFile::npy(targets) })
}

/// An import of arrays; `own_test` are the test rows that the training rows brought along.
fn arrays(args: &ImportArgs, train: ArrayPair, own_test: Option<ArrayPair>) -> anyhow::Result<ArrayImport> {
    let tables = [
        (args.label.is_some(), "--label"),
        (!args.drop.is_empty(), "--drop"),
        (args.header.is_some(), "--header"),
        (args.delimiter.is_some(), "--delimiter"),
    ];
    only_for(args, &tables, "tables, not arrays")?;
    let other = |path: &Path| match (detect(path)?, &args.test_targets) {
        (Format::Npz, None) => Ok(ArrayPair::in_npz(path, args.features_name.as_deref(), args.targets_name.as_deref())?.0),
        (Format::Npy, Some(targets)) => Ok(ArrayPair { features: ArrayFile::npy(path), targets: ArrayFile::npy(targets) }),
        (Format::Npy, None) => bail!("{}: give the labels or targets of these rows with --test-targets FILE.npy", path.display()),
        _ => bail!("{}: test rows come in the format of the training rows: NPY with --test-targets, or NPZ", path.display()),
    };
    let test = match (test(args, other)?, own_test) {
        (Test::None, Some(own)) => Test::File(own),
        (test, None) => test,
        (_, Some(_)) => bail!(
            "{}: this file has test rows of its own, x_test and y_test; to leave them out, name the others with --features-name \
             x_train --targets-name y_train",
            train.features.path.display()
        ),
    };
    Ok(ArrayImport { train, test, task: task(args), scaling: args.scaling.map(Scaling::from) })
}

fn table(args: &ImportArgs, train: &Path, scaling: Scaling) -> anyhow::Result<TableImport> {
    Ok(TableImport {
        train: train.to_path_buf(),
        test: test(args, |path| match detect(path)? {
            Format::Table => Ok(path.to_path_buf()),
            _ => bail!("{}: test rows come in the format of the training rows: this is no table in text", path.display()),
        })?,
        task: task(args),
        layout: TableLayout {
            label: args.label.clone().unwrap_or_default(),
            drop: args.drop.clone(),
            header: args.header.unwrap_or(HeaderName::Auto).into(),
            delimiter: args.delimiter.or(match args.format {
                Some(FormatName::Csv) => Some(Delimiter::Character(b',')),
                Some(FormatName::Tsv) => Some(Delimiter::Character(b'\t')),
                Some(FormatName::Blanks) => Some(Delimiter::Blanks),
                _ => None,
            }),
        },
        scaling,
    })
}

fn libsvm(args: &ImportArgs, train: &Path, scaling: Scaling) -> anyhow::Result<LibsvmImport> {
    let tables = [
        (args.label.is_some(), "--label"),
        (args.header.is_some(), "--header"),
        (!args.drop.is_empty(), "--drop"),
        (args.delimiter.is_some(), "--delimiter"),
    ];
    only_for(args, &tables, "tables: in a LIBSVM file the label comes first, and there is no header")?;
    let arrays = [
        (args.targets.is_some(), "--targets"),
        (args.test_targets.is_some(), "--test-targets"),
        (args.features_name.is_some(), "--features-name"),
        (args.targets_name.is_some(), "--targets-name"),
    ];
    only_for(args, &arrays, "arrays (NPY, NPZ): in a LIBSVM file the label comes first")?;
    let test = test(args, |path| Ok(path.to_path_buf()))?;
    Ok(LibsvmImport { train: train.to_path_buf(), test, task: task(args), features: args.features, scaling })
}

/// Refuses to replace what the user may still want, and makes the folder of the output.
fn check_output(args: &ImportArgs) -> anyhow::Result<()> {
    let output = &args.output;
    for folder in args.files.iter().filter(|file| file.is_dir()) {
        let canonical = folder.canonicalize().with_context(|| folder.display().to_string())?;
        let absolute = std::path::absolute(output).with_context(|| output.display().to_string())?;
        let inside = |place: &Path| place.canonicalize().is_ok_and(|place| place.starts_with(&canonical));
        if absolute.ancestors().skip(1).any(inside) {
            bail!(
                "{}: this lies in {}, all of which is to be read: write the corpus elsewhere",
                output.display(),
                folder.display()
            );
        }
    }
    if !output.exists() {
        let Some(folder) = output.parent() else { return Ok(()) };
        return std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make this folder", folder.display()));
    }
    ensure!(!output.is_dir(), "{}: this is a folder; name the file to write", output.display());
    let canonical = output.canonicalize().with_context(|| output.display().to_string())?;
    let inputs = [
        &args.test,
        &args.test_rows,
        &args.targets,
        &args.test_targets,
        &args.images,
        &args.labels,
        &args.test_images,
        &args.test_labels,
        &args.documents.vocabulary,
        &args.documents.text.stop_words,
    ];
    if inputs.into_iter().flatten().chain(&args.files).any(|input| input.canonicalize().is_ok_and(|input| input == canonical)) {
        bail!("{}: this file is to be read, and would be replaced by the dataset", output.display());
    }
    ensure!(args.force, "{}: this file exists; choose another name, or replace it with --force", output.display());
    Ok(())
}

/// How many class labels are listed before the rest is left out.
const LISTED: usize = 12;

fn describe(path: &Path, scaling: Scaling) -> anyhow::Result<String> {
    let data = Dataset::open(path)?;
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let number = |number: usize| text::count(number);
    let mut lines = vec![("task", data.task().name().to_owned()), ("train", format!("{} rows", number(data.rows(Split::Train))))];
    lines.push(match data.rows(Split::Test) {
        0 => ("test", "none: runs cannot judge predictions".into()),
        rows => ("test", format!("{} rows", number(rows))),
    });
    let shape = match data.shape() {
        [_] => String::new(),
        sides => format!(" ({})", sides.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")),
    };
    lines.push(("features", format!("{}{shape}", number(data.features()))));
    if data.is_sparse() {
        let kept = data.values(Split::Train)? + data.values(Split::Test)?;
        lines.push(("sparse", format!("{} values are not zero", number(kept))));
    }
    lines.push(("scaling", scaling.name().to_owned()));
    if data.task() == Task::Classification {
        let classes = data.classes();
        let listed: Vec<&str> = classes.iter().take(LISTED).map(String::as_str).collect();
        let rest = if classes.len() > LISTED { ", ..." } else { "" };
        lines.push(("classes", format!("{}: {}{rest}", number(classes.len()), listed.join(", "))));
    } else {
        let (scale, offset) = data.target_scaling();
        lines
            .push(("targets", format!("mean {}, standard deviation {}", text::value(-offset / scale), text::value(1.0 / scale))));
    }
    lines.push(("digest", text::short_digest(data.digest()).to_owned()));
    Ok(format!("wrote {} ({})\n{}", path.display(), text::bytes(size), text::pairs(&lines)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn args(folder: &Path, rest: &str) -> ImportArgs {
        let place = |word: &str| word.replace("@", &format!("{}/", folder.display()));
        let typed = ["mpibayes", "import"].map(str::to_owned).into_iter().chain(rest.split(' ').map(place));
        match Cli::try_parse_from(typed).unwrap().command {
            Command::Import(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x,y,kind\n1,10,b\n2,20,a\n3,30,b\n4,40,a\n5,50,a\n").unwrap();
        std::fs::write(
            folder.path().join("images"),
            [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 255, 9, 8]].concat(),
        )
        .unwrap();
        std::fs::write(folder.path().join("labels"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 3]).unwrap();
        folder
    }

    #[test]
    fn a_csv_import_says_what_it_made() {
        let folder = folder();
        let said = import(&args(folder.path(), "@a.csv --test-fraction 0.4 --seed 2 -o @a.h5")).unwrap();
        for line in [
            "task      classification",
            "train     3 rows",
            "test      2 rows",
            "features  2\n",
            "scaling   standardize",
            "classes   2: a, b",
        ] {
            assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
        }
        let data = Dataset::open(&folder.path().join("a.h5")).unwrap();
        assert!(said.contains(&format!("digest    {}\n", &data.digest()[..12])), "{said}");
        std::fs::write(folder.path().join("c.csv"), "x,price\n1,90\n2,110\n").unwrap();
        let said = import(&args(folder.path(), "@c.csv --task regression --label price -o @c.h5")).unwrap();
        assert!(said.contains(&format!("\n  targets   mean {}, standard deviation {}\n", text::value(100.0), text::value(10.0))));
        let said = import(&args(folder.path(), "@a.csv --label 2 --header yes --task regression -o @b.h5"));
        // The control: the label is then a feature, and no number.
        assert!(said.unwrap_err().to_string().contains("a.csv, line 2"));
    }

    #[test]
    fn an_idx_import_says_what_it_made() {
        let folder = folder();
        let said = import(&args(folder.path(), "--images @images --labels @labels -o @i.h5")).unwrap();
        for line in ["features  2 (1 × 2)", "scaling   pixels", "classes   2: 3, 7", "test      none"] {
            assert!(said.contains(line), "{line:?} in\n{said}");
        }
        let refused = import(&args(folder.path(), "@images -o @j.h5")).unwrap_err().to_string();
        assert!(refused.contains("--images"), "{refused}");
    }

    #[test]
    fn the_format_is_found_and_what_does_not_suit_it_is_refused() {
        let folder = folder();
        let file = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
        let npy = |shape: &str, data: &[u8]| {
            let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}");
            [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
        };
        file("x.npy", &npy("(2, 1, 2)", &[1, 2, 3, 4]));
        file("y.npy", &npy("(2,)", &[0, 1]));
        file("t.txt", b"1 2 7\n3 4 8\n5 6 9\n");
        file("rows.txt", b"0\n");
        file("z.npz", b"PK\x03\x04 and no more");
        file("book.csv", &[b"PK\x03\x04".as_slice(), &[0; 26], b"[Content_Types].xml"].concat());
        file("n.npy", b"1,2\n3,4\n");
        let said = import(&args(folder.path(), "@x.npy --targets @y.npy -o @x.h5")).unwrap();
        assert!(said.contains("features  2 (1 × 2)") && said.contains("scaling   pixels"), "{said}");
        let said =
            import(&args(folder.path(), "@t.txt --task regression --label first --drop last --test-rows @rows.txt -o @t.h5"));
        let said = said.unwrap();
        assert!(said.contains("train     2 rows") && said.contains("features  1\n"), "{said}");
        for (typed, says) in [
            ("@x.npy -o @n.h5", "x.npy: an NPY file holds features alone: give their labels or targets with --targets"),
            ("@x.npy --targets @y.npy --label 1 -o @n.h5", "x.npy: --label is for tables"),
            ("@x.npy --targets @y.npy --features-name x -o @n.h5", "cannot be used"),
            ("@x.npy --targets @y.npy --test @x.npy -o @n.h5", "--test-targets FILE.npy"),
            ("@x.npy --targets @y.npy --test @a.csv -o @n.h5", "a.csv: test rows come in the format of the training rows"),
            ("@a.csv --targets @y.npy -o @n.h5", "a.csv: --targets is for arrays"),
            ("@a.csv --test @x.npy -o @n.h5", "x.npy: test rows come in the format of the training rows"),
            (
                "@a.csv --format npz -o @n.h5",
                "a.csv: this is a table in text, or nothing known, not an NPZ file as --format says",
            ),
            ("@x.npy --format csv -o @n.h5", "x.npy: this is an NPY file, not a table in text as --format says"),
            ("@z.npz -o @n.h5", "z.npz: this NPZ file is damaged"),
            ("@z.npz --format csv -o @n.h5", "z.npz: this is an NPZ or another ZIP file, not a table"),
            ("@book.csv -o @n.h5", "book.csv: this is a spreadsheet: save it as CSV"),
            ("@n.npy -o @n.h5", "n.npy: this is no npy file, whatever its name says"),
            ("@x.h5 -o @n.h5", "x.h5: this is an HDF5 file"),
            ("@a.csv --delimiter 5 -o @n.h5", "give comma, semicolon, tab, blanks"),
            ("@a.csv --split 2 -o @n.h5", "--test-rows"),
        ] {
            let typed = typed.replace('@', &format!("{}/", folder.path().display()));
            let parsed = Cli::try_parse_from(["mpibayes", "import"].into_iter().chain(typed.split(' ')));
            let message = match parsed.map(|cli| cli.command) {
                Ok(Command::Import(args)) => import(&args).unwrap_err().to_string(),
                Ok(other) => panic!("{other:?}"),
                Err(error) => error.to_string(),
            };
            assert!(message.contains(says), "{typed}: {message:?} must say {says:?}");
            assert!(!folder.path().join("n.h5").exists() && !folder.path().join("n.h5.partial").exists());
        }
    }

    #[test]
    fn documents_become_a_corpus() {
        let folder = folder();
        let file = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
        file("docword.txt", "5\n3\n5\n1 1 2\n1 3 9\n2 2 11\n3 3 1\n5 1 7\n");
        file("words.txt", "a\nb\nc\n");
        file("c.ldac", "1 0:2\n2 0:1 4:3\n");
        let said = import(&args(
            folder.path(),
            "@docword.txt --vocabulary @words.txt --test-documents 1 --scored 0.5 --seed 4 -o @d.h5",
        ))
        .unwrap();
        for line in [
            "task      topics",
            "train     3 documents, ",
            "test      1 document, ",
            "words     3\n",
            "left out  1 document without",
        ] {
            assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
        }
        let said = import(&args(folder.path(), "@c.ldac -o @c.h5")).unwrap();
        for line in ["test    none: runs cannot judge topics; hold some out", "words   5, which have numbers alone"] {
            assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
        }
        for (typed, says) in [
            ("@docword.txt --label 1 -o @n.h5", "docword.txt: --label is for rows, not documents"),
            ("@docword.txt --task regression -o @n.h5", "--task is for rows"),
            ("@docword.txt --format lda-c -o @n.h5", "looks like UCI's bag of words, not like lda-c"),
            ("@docword.txt --test-documents 4 -o @n.h5", "leave some to learn from"),
            ("@docword.txt --test-documents 2 --scored 1e-9 -o @n.h5", "no token would be scored"),
            ("@docword.txt --scored 0.2 -o @n.h5", "--scored is for documents that are held out"),
            ("@docword.txt --vocabulary @words.txt -o @words.txt --force", "is to be read"),
            ("@a.csv --vocabulary @words.txt -o @n.h5", "a.csv: --vocabulary is for documents: UCI"),
            ("@a.csv --seed 3 -o @n.h5", "a.csv: --seed is for test rows that are drawn"),
        ] {
            let refused = import(&args(folder.path(), typed)).unwrap_err().to_string();
            assert!(refused.contains(says), "{typed}: {refused:?} must say {says:?}");
            assert!(!folder.path().join("n.h5").exists());
        }
    }

    #[test]
    fn text_becomes_a_corpus_and_says_what_it_left_out() {
        let folder = folder();
        let file = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
        let fables = "the fox and the grapes\nthe dog and 2 foxes\n\nno grapes, no fox: caf\u{e9}\n";
        file("fables.txt", fables.as_bytes());
        file("words.txt", b"fox\ngrapes\nwolf\n");
        std::fs::create_dir(folder.path().join("news")).unwrap();
        file("news/1", b"the fox and caf\xe9 grapes");
        file("news/2", b"grapes of the dog");
        file("news/3.png", b"\x89PNG\0");
        let all = "--least-documents 1 --most-share 1";
        let said =
            import(&args(folder.path(), &format!("@fables.txt --format text {all} --stop-words english -o @t.h5"))).unwrap();
        for line in [
            "task      topics",
            "text      4 documents, a line each",
            "seen      7 words, 12 tokens, of 3 letters or more",
            "dropped   2 words, 5 tokens: stop words",
            "kept      5 words, 7 tokens",
            "train     3 documents, 7 tokens",
            "words     5\n",
            "left out  1 document without",
        ] {
            assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
        }
        // A folder is text without a word, and --vocabulary leaves nothing to choose.
        let said = import(&args(folder.path(), "@news --vocabulary @words.txt -o @f.h5")).unwrap();
        for line in [
            "text     2 documents, a file each",
            "no text  1 file, left out; the first is ",
            "Latin-1  1 document with bytes that are not UTF-8",
            "seen     9 tokens",
            "kept     2 words, 3 tokens of the vocabulary",
            "words    3\n",
        ] {
            assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
        }
        let said = import(&args(folder.path(), &format!("@fables.txt @words.txt @news --format text {all} -o @s.h5"))).unwrap();
        assert!(said.contains("text      7 documents, a line each; 2 documents, a file each\n"), "{said}");
        for (typed, says) in [
            ("@fables.txt -o @n.h5", "fables.txt: hardly a field is a number: if each line is a document, say --format text; if"),
            ("@fables.txt --format text -o @n.h5", "none of the 7 words is kept: 0 are stop words, 7 are in fewer than 5"),
            ("@fables.txt --stop-words english -o @n.h5", "fables.txt: --stop-words is for documents in text: say --format text"),
            ("@fables.txt @words.txt -o @n.h5", "words.txt: a second file: several can only be documents in text"),
            ("@fables.txt --format text --stop-words german -o @n.h5", "german: there is no such file of stop words"),
            ("@fables.txt --format text --label 1 -o @n.h5", "--label is for rows, not documents"),
            ("@news --vocabulary @words.txt --shortest 4 -o @n.h5", "--shortest is for words that are chosen from the text"),
            ("@news --format csv -o @n.h5", "news: this is a folder"),
            ("@news --format lda-c -o @n.h5", "news: this is a folder"),
            ("@news -o @news/out.h5", "news/out.h5: this lies in"),
            ("@news -o @news/new/out.h5", "all of which is to be read"),
            ("@fables.txt --format text --stop-words @words.txt -o @words.txt --force", "is to be read"),
            ("@docword.txt --stop-words english -o @n.h5", "docword.txt: cannot open"),
            ("@fables.txt --format text --most-share 1.5 -o @n.h5", "give a share above 0 and up to 1"),
        ] {
            let typed = typed.replace('@', &format!("{}/", folder.path().display()));
            let parsed = Cli::try_parse_from(["mpibayes", "import"].into_iter().chain(typed.split(' ')));
            let refused = match parsed.map(|cli| cli.command) {
                Ok(Command::Import(args)) => import(&args).unwrap_err().to_string(),
                Ok(other) => panic!("{other:?}"),
                Err(error) => error.to_string(),
            };
            assert!(refused.contains(says), "{typed}: {refused:?} must say {says:?}");
            assert!(!folder.path().join("n.h5").exists() && !folder.path().join("news/new").exists());
        }
    }

    #[test]
    fn nothing_is_replaced_unasked_and_no_input_ever() {
        let folder = folder();
        let output = folder.path().join("a.h5");
        std::fs::write(&output, "precious").unwrap();
        let refused = import(&args(folder.path(), "@a.csv -o @a.h5")).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        assert_eq!(std::fs::read(&output).unwrap(), b"precious");
        import(&args(folder.path(), "@a.csv -o @a.h5 --force")).unwrap();
        assert!(Dataset::open(&output).is_ok());
        let refused = import(&args(folder.path(), "@a.csv -o @a.csv --force")).unwrap_err().to_string();
        assert!(refused.contains("is to be read"), "{refused}");
        let refused = import(&args(folder.path(), "@a.csv -o @a.csv/a.h5")).unwrap_err().to_string();
        assert!(refused.contains("a.csv: cannot make this folder"), "{refused}");
        import(&args(folder.path(), "@a.csv -o @new/folder/a.h5")).unwrap();
        assert!(Dataset::open(&folder.path().join("new/folder/a.h5")).is_ok());
    }
}
