//! `mpibayes import`: turns tables, arrays, images and documents into the HDF5 datasets that runs read.

mod args;
mod documents;
mod images;
mod rows;

pub(super) use args::{ChannelsName, DecimalMark, HeaderName, column, delimiter, interval};

use super::output::print;
use crate::data::{Format, is_libsvm};
use anyhow::{Context, bail, ensure};
use args::{OutputArgs, RowArgs, TestArgs};
use documents::{CountsArgs, DocumentTestArgs, TextArgs};
use images::ImagesArgs;
use rows::{ArrayNames, ArraysArgs, LayoutArgs, LibsvmArgs, TableArgs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  A table with the class in the last column; a fifth of its rows become test rows:
    mpibayes import flowers.csv --test-fraction 0.2 -o flowers.h5

  Predict the column `price`, without the column `id`; test rows in another file:
    mpibayes import table train.csv --test test.csv --task regression --label price --drop id -o houses.h5

  Columns separated by blanks; the test rows are listed in line 3 of another file:
    mpibayes import data.txt --task regression --test-rows test_splits.txt --split 3 -o boston.h5

  A LIBSVM file, whose sparse rows stay sparse:
    mpibayes import rcv1.svm --test rcv1.t.svm --scaling max-abs -o rcv1.h5

  NumPy arrays, as two NPY files, or in an NPZ file (x and y, or x_train, ...):
    mpibayes import arrays x.npy --targets y.npy --test-fraction 0.2 -o mine.h5
    mpibayes import mnist.npz -o mnist.h5

  Images with labels in IDX files, the format of MNIST and Fashion-MNIST:
    mpibayes import images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
        --test-images t10k-images-idx3-ubyte.gz --test-labels t10k-labels-idx1-ubyte.gz \\
        -o fashion.h5

  Images of CIFAR-10, from the original archive; PNG files in a folder for each class:
    mpibayes import images cifar-10-binary.tar.gz -o cifar10.h5
    mpibayes import images pets/ -o pets.h5

  Word counts for topic models (UCI bag of words, lda-c, Matrix Market), with 300 test documents:
    mpibayes import counts docword.kos.txt.gz --vocabulary vocab.kos.txt --test-documents 300 -o kos.h5

  Text for topic models: a file with one document per line, or a folder with one document per file:
    mpibayes import text articles.txt --stop-words english --test-documents 300 -o articles.h5
    mpibayes import text 20news/ --stop-words english --test-fraction 0.1 -o 20news.h5

A file with the name of a subcommand is given as ./text, for example.";

/// Arguments of `mpibayes import`: a subcommand, or files whose format is detected.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ImportArgs {
    /// The format of the input, with all its options
    #[command(subcommand)]
    pub format: Option<ImportFormat>,
    /// The input, plain or gzip; its format is detected in the content. A folder contains documents in text
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The dataset to write
    #[arg(short, long, value_name = "DATA.h5", required = true)]
    pub output: Option<PathBuf>,
    /// Replace the dataset if it exists
    #[arg(short, long)]
    pub force: bool,
    /// What rows contain.
    #[command(flatten)]
    pub rows: RowArgs,
    /// How a table is read.
    #[command(flatten)]
    pub layout: LayoutArgs,
    /// Which rows become test rows.
    #[command(flatten)]
    pub test: TestArgs,
    /// The labels or targets of an NPY or IDX file
    #[arg(long, value_name = "FILE", help_heading = "Arrays and images")]
    pub labels: Option<PathBuf>,
    /// The labels or targets of the file --test
    #[arg(long, value_name = "FILE", requires_all = ["test", "labels"], help_heading = "Arrays and images")]
    pub test_labels: Option<PathBuf>,
}

/// The formats of `mpibayes import`, each with the options that apply to it.
#[derive(Debug, clap::Subcommand)]
pub enum ImportFormat {
    /// Import a table: CSV, TSV, columns separated by blanks, Parquet, Arrow
    Table(TableArgs),
    /// Import NumPy arrays: NPY or NPZ files
    Arrays(ArraysArgs),
    /// Import images with labels: IDX files as of MNIST, CIFAR files, folders of PNG files
    Images(ImagesArgs),
    /// Import a LIBSVM file as sparse rows
    Libsvm(LibsvmArgs),
    /// Import documents in text, for topic models
    Text(TextArgs),
    /// Import documents as word counts, for topic models: UCI bag of words, lda-c, Matrix Market
    Counts(CountsArgs),
}

/// Runs `mpibayes import` and prints a description of the dataset.
///
/// # Errors
/// See [`import`].
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    print(&import(args)?).context("cannot print the description of the dataset")?;
    Ok(ExitCode::SUCCESS)
}

/// Imports the input and describes the dataset, for people.
///
/// # Errors
/// When the output exists (unless `force`) or is one of the inputs, an input cannot be read or is malformed, or the output or its folder
/// cannot be written. No incomplete dataset remains, and an existing one is then untouched.
pub fn import(args: &ImportArgs) -> anyhow::Result<String> {
    match &args.format {
        Some(ImportFormat::Table(args)) => args.import(),
        Some(ImportFormat::Arrays(args)) => args.import(),
        Some(ImportFormat::Images(args)) => args.import(),
        Some(ImportFormat::Libsvm(args)) => args.import(),
        Some(ImportFormat::Text(args)) => args.import(),
        Some(ImportFormat::Counts(args)) => args.import(),
        None => args.detect_and_import(),
    }
}

/// Files of a folder that are looked at.
const FILES_LOOKED_AT: usize = 16;

/// An IDX file among the first files of a folder.
fn idx_file_in(folder: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.take(FILES_LOOKED_AT).filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|file| file.is_file()).find(|file| matches!(rows::format(file), Ok(Format::Idx)))
}

/// Whether the first files of a folder and of its subfolders are all PNG files, by their names.
fn has_png_files_only(folder: &Path) -> bool {
    let entries = walkdir::WalkDir::new(folder).max_depth(3).into_iter().filter_map(Result::ok);
    let mut files = entries.filter(|entry| entry.file_type().is_file()).take(FILES_LOOKED_AT).peekable();
    let is_png = |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
    files.peek().is_some() && files.all(|entry| is_png(entry.path()))
}

impl ImportArgs {
    /// Imports input whose format its content shows.
    fn detect_and_import(&self) -> anyhow::Result<String> {
        let Self { files, force, rows, test, layout, .. } = self;
        let output = self.output.as_deref().context("name the dataset to write with -o")?;
        let prepared = OutputArgs { output: output.to_path_buf(), force: *force };
        let labels = self.labels.iter().chain(&self.test_labels);
        prepared.prepare(files.iter().chain(labels).map(PathBuf::as_path).chain(test.inputs()))?;
        if let Some(missing) = files.iter().find(|file| file.try_exists().is_ok_and(|exists| !exists)) {
            let may_be_column = files.len() > 1 && missing.extension().is_none();
            let separators =
                if may_be_column { "; names of columns in an option are separated by commas: --drop a,b" } else { "" };
            bail!("{}: cannot open: there is no such file{separators}", missing.display());
        }
        if let (Some(labels), [file]) = (&self.labels, files.as_slice()) {
            return self.import_labelled(file, labels, output);
        }
        ensure!(self.labels.is_none(), "--labels is for one file of features or images: several files are tables, see --label");
        if *layout != LayoutArgs::default() {
            return rows::table(files, layout, rows, test, output);
        }
        if files.iter().all(|file| file.is_dir()) {
            if let Some(images) = files.iter().find_map(|folder| idx_file_in(folder)) {
                bail!(
                    "{}: this is an IDX file, and a folder is read as documents in text: name one file of images with its labels, see \
                     `mpibayes import images --help`",
                    images.display()
                );
            }
            if let Some(folder) = files.iter().find(|folder| has_png_files_only(folder)) {
                bail!(
                    "{}: this folder contains PNG files, and a folder is read as documents in text: use `mpibayes import images`",
                    folder.display()
                );
            }
            let split = self.document_test()?;
            return TextArgs::with_defaults(files.clone(), prepared, split).import_prepared();
        }
        if files.iter().all(|file| is_named_table(file)) {
            return rows::table(files, layout, rows, test, output);
        }
        let [file] = files.as_slice() else {
            bail!(
                "{}: one file at a time: several files of text are imported by `mpibayes import text`, several tables by `mpibayes import \
                 table`, test rows with --test",
                files[1].display()
            );
        };
        match rows::format(file)? {
            Format::Table => {}
            Format::Batches(_) => return rows::table(files, layout, rows, test, output),
            Format::Idx => {
                bail!("{}: images need their labels: give them with --labels FILE", file.display())
            }
            Format::Tar => {
                bail!("{}: this is an archive: use `mpibayes import images` if it is one of CIFAR, or unpack it", file.display())
            }
            _ => return rows::arrays(file, &ArrayNames::default(), rows, test, output),
        }
        if documents::detect(file)?.is_some() {
            let split = self.document_test()?;
            return CountsArgs { file: file.clone(), format: None, output: prepared, vocabulary: None, test: split }
                .import_prepared();
        }
        if is_libsvm(file)? {
            return rows::libsvm(file, None, rows, test, output);
        }
        documents::must_have_numbers(file)?;
        rows::table(files, layout, rows, test, output)
    }

    /// Imports a file of features or images whose labels are in another file.
    fn import_labelled(&self, file: &Path, labels: &Path, output: &Path) -> anyhow::Result<String> {
        let Self { rows, test, layout, test_labels, .. } = self;
        let found = rows::format(file)?;
        ensure!(
            matches!(found, Format::Idx | Format::Npy | Format::Npz) && *layout == LayoutArgs::default(),
            "{}: --labels is for NPY and IDX files: the labels of a table are a column of it, which --label names",
            file.display()
        );
        if found != Format::Idx {
            let names = ArrayNames { targets: Some(labels.into()), test_targets: test_labels.clone(), ..ArrayNames::default() };
            return rows::arrays(file, &names, rows, test, output);
        }
        for (is_given, option) in [(test.test_fraction.is_some(), "--test-fraction"), (test.test_rows.is_some(), "--test-rows")] {
            ensure!(
                !is_given,
                "{}: {option} is not for IDX files: give test images with --test FILE --test-labels FILE",
                file.display()
            );
        }
        ensure!(rows.task.is_none(), "{}: --task is not for IDX files, whose images are classified: remove it", file.display());
        if let (Some(test), None) = (&test.test, test_labels) {
            bail!("{}: test images in an IDX file need their labels: give them with --test-labels FILE", test.display());
        }
        images::idx((file, labels), test.test.as_deref().zip(test_labels.as_deref()), None, rows.scaling, output)
    }

    /// The options for documents; refuses those for rows.
    fn document_test(&self) -> anyhow::Result<DocumentTestArgs> {
        let for_rows = [
            (self.rows.task.is_some(), "--task"),
            (self.rows.scaling.is_some(), "--scaling"),
            (self.test.test.is_some(), "--test"),
            (self.test.test_rows.is_some(), "--test-rows"),
        ];
        if let Some((_, option)) = for_rows.iter().find(|(given, _)| *given) {
            bail!("{}: {option} is for rows, and this input contains documents: remove it", self.files[0].display());
        }
        Ok(DocumentTestArgs { test_fraction: self.test.test_fraction, seed: self.test.seed, ..DocumentTestArgs::default() })
    }
}

/// Whether the name of a file says that it is a table, which text for topic models is not.
fn is_named_table(file: &Path) -> bool {
    let extension = file.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let stem = || file.file_stem().map(Path::new);
    match extension.as_deref() {
        Some("gz") => stem().is_some_and(is_named_table),
        Some("csv" | "tsv" | "parquet" | "arrow" | "feather") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
