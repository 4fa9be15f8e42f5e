//! `mpibayes predict`: predictions of a finished run for new rows, or topic weights of new documents, as CSV.

use super::import::{HeaderName, column, delimiter, share};
use crate::config::Registry;
use crate::data::{
    ArrayFile, Column, ColumnUse, DataError, Dataset, Delimiter, Format, Idx, IndexLimit, Levels, Place, Recipe, Source, Split,
    Table, TableLayout, Targets, UsedColumn, detect, is_libsvm, is_missing, listed, read_libsvm,
};
use crate::job::predictor::{Predictions, Predictor, RawRows};
use crate::job::topic_model::TopicModel;
use crate::lda::LdaSettings;
use crate::metrics::Tally;
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::report::coefficients::Interval;
use crate::report::text;
use crate::results::ResultFile;
use anyhow::{Context, bail, ensure};
use ndarray::{ArrayView1, Axis};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Rows are predicted in blocks of this size, so that memory does not grow with the file.
const BLOCK: usize = 4096;

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
    /// Replace that file if it exists
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
    /// The array in an NPZ file [default: the only one, or x or x_test]
    #[arg(long, value_name = "NAME")]
    pub features_name: Option<String>,
    /// The share of predictive draws in the interval of a number or count [default: 0.9]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub interval: Option<f64>,
    /// Also write this many predictive draws of each row, each at another draw of the posterior
    #[arg(long, value_name = "N")]
    pub draws: Option<usize>,
    /// The chain of a topic model: topics of different chains have no common order [default: 0]
    #[arg(long, value_name = "CHAIN")]
    pub chain: Option<usize>,
    /// The rows of a dataset, or documents of a corpus [default: test, if there are any]
    #[arg(long, value_enum)]
    pub split: Option<SplitName>,
}

/// A part of a dataset, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SplitName {
    /// The training rows
    Train,
    /// The test rows
    Test,
}

/// Writes predictions, and reports metrics if labels are known.
///
/// # Errors
/// When there is no such run, it is not finished, or the rows do not match its data.
pub fn run(args: &PredictArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let RunResults { file, path } = RunResults::open(&args.run)?;
    let mut model = FittedModel::of(&file, args.chain, registry).with_context(|| format!("{}", path.display()))?;
    if let Some(output) = args.output.as_deref().filter(|output| output.exists()) {
        let same = output.canonicalize().ok() == args.data.canonicalize().ok();
        ensure!(!same, "{}: the predictions would replace the rows; choose another --output", output.display());
        ensure!(args.force, "{}: this file exists; choose another name, or replace it with --force", output.display());
    }
    let partial = args.output.as_deref().map(PartialFile::new);
    let place = || args.output.as_deref().map_or("standard output".into(), |output| output.display().to_string());
    let to: Box<dyn Write> = match &partial {
        Some(partial) => Box::new(File::create(partial.path()).with_context(|| format!("{}: cannot write", place()))?),
        None => Box::new(std::io::stdout().lock()),
    };
    let outcome = match &mut model {
        FittedModel::Table(predictor) => predict_rows(args, predictor, to),
        FittedModel::Topics(model) => predict_documents(args, model, to),
    };
    let Predicted { count, unpredicted, metrics } = match outcome {
        Err(error) if is_closed(&error) => return Ok(ExitCode::SUCCESS),
        outcome => outcome?,
    };
    if let Some(partial) = partial {
        partial.commit().with_context(|| format!("{}: cannot write", place()))?;
        eprintln!("mpibayes: {count} predicted in {}", place());
    }
    if let Some((rows, first)) = unpredicted {
        eprintln!("mpibayes: {} without a prediction, of which the first is {first}", text::counted(rows, "row"));
    }
    if let Some(metrics) = metrics {
        eprintln!("mpibayes: {metrics}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The model of a run.
enum FittedModel {
    Table(Predictor),
    Topics(TopicModel),
}

impl FittedModel {
    fn of(file: &ResultFile, chain: Option<usize>, registry: &Registry) -> anyhow::Result<Self> {
        if file.info().model == LdaSettings::NAME {
            return Ok(Self::Topics(TopicModel::read(file, chain.unwrap_or(0), registry)?));
        }
        ensure!(chain.is_none(), "--chain is for topic models: all chains together predict rows");
        Ok(Self::Table(Predictor::new(file, registry)?))
    }
}

/// What was predicted.
struct Predicted {
    /// The number of rows or documents, with the noun.
    count: String,
    /// How many rows could not be predicted, and why the first of them could not.
    unpredicted: Option<(usize, String)>,
    /// The metrics, if labels are known.
    metrics: Option<String>,
}

fn predict_rows(args: &PredictArgs, predictor: &mut Predictor, to: Box<dyn Write>) -> anyhow::Result<Predicted> {
    let mut output = Output::new(args, predictor, to)?;
    match detect(&args.data)? {
        Format::Hdf5 => predict_dataset(args, predictor, &mut output),
        Format::Table if is_libsvm(&args.data)? => predict_libsvm(args, predictor, &mut output),
        Format::Table | Format::Batches(_) => predict_table(args, predictor, &mut output),
        Format::Npy | Format::Npz => predict_array(args, predictor, &mut output),
        Format::Idx => predict_images(args, predictor, &mut output),
        Format::Other(what) => bail!("{}: this is {what}, which cannot be read: save it as CSV", args.data.display()),
    }?;
    let (without, unpredicted) = (output.unpredicted.as_ref().map_or(0, |(rows, _)| *rows), output.unpredicted.take());
    Ok(Predicted { count: text::counted(output.rows - without, "row"), unpredicted, metrics: output.finish()? })
}

/// Writes the topic weights of each document, with its index in the imported files.
fn predict_documents(args: &PredictArgs, model: &TopicModel, to: Box<dyn Write>) -> anyhow::Result<Predicted> {
    refuse_for("a corpus", args, &["label", "header", "delimiter", "features-name", "interval", "draws"])?;
    ensure!(
        detect(&args.data)? == Format::Hdf5,
        "{}: the run is a topic model and needs a corpus: import the documents with `mpibayes import` first",
        args.data.display()
    );
    let documents = model.adopt(&args.data)?;
    let split = match args.split {
        Some(SplitName::Train) => Split::Train,
        Some(SplitName::Test) => Split::Test,
        None if documents.documents(Split::Test) > 0 => Split::Test,
        None => Split::Train,
    };
    let mut csv = csv::Writer::from_writer(to);
    let head = ["document".to_owned(), "tokens".to_owned()];
    csv.write_record(head.into_iter().chain((0..model.topics()).map(|topic| format!("topic_{topic}"))))?;
    let all = documents.documents(split);
    for first in (0..all).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(all);
        let (bags, numbers) = (documents.read(split, block.clone())?, documents.numbers(split, block)?);
        for ((bag, weights), number) in bags.iter().zip(model.weights(&bags, first as u64).rows()).zip(numbers) {
            let row = [number.to_string(), bag.tokens().to_string()];
            csv.write_record(row.into_iter().chain(weights.iter().map(f64::to_string)))?;
        }
    }
    csv.flush()?;
    Ok(Predicted { count: text::counted(all, "document"), unpredicted: None, metrics: None })
}

/// Whether the reader of the output, such as `head`, has closed it.
fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    let in_csv = |error: &csv::Error| matches!(error.kind(), csv::ErrorKind::Io(error) if closed(error));
    error.downcast_ref().is_some_and(in_csv) || error.downcast_ref().is_some_and(closed)
}

/// The CSV file of predictions, with a tally for the metrics.
struct Output {
    csv: csv::Writer<Box<dyn Write>>,
    /// The interval of numbers and counts, if the model draws them.
    interval: Option<Interval>,
    /// How many predictive draws are written.
    draws: usize,
    classes: Vec<String>,
    labelled: bool,
    tally: Tally,
    rows: usize,
    /// How many rows of a table with labels have none.
    without_label: usize,
    /// How many rows have no prediction, and why the first of them has none.
    unpredicted: Option<(usize, String)>,
}

impl Output {
    fn new(args: &PredictArgs, predictor: &mut Predictor, to: Box<dyn Write>) -> anyhow::Result<Self> {
        let classes = predictor.classes.clone();
        let tally = if classes.is_empty() { Tally::number() } else { Tally::classes(classes.len()) };
        let (can_draw, draws, most) = (predictor.can_draw(), args.draws.unwrap_or(0), predictor.draws());
        if !can_draw {
            ensure!(
                args.interval.is_none() && draws == 0,
                "--interval and --draws are for models that draw targets, such as regressions, which the model of this run does not"
            );
        }
        ensure!(
            args.interval.is_none() || classes.is_empty(),
            "--interval is for numbers and counts: classes have probabilities"
        );
        ensure!(draws <= most, "--draws {draws}: predictions are made with {most} draws of the posterior");
        let Interval { mass, kind } = Interval::default();
        let interval = Interval { mass: args.interval.unwrap_or(mass), kind };
        let interval = (can_draw && classes.is_empty()).then_some(interval);
        Ok(Self {
            csv: csv::Writer::from_writer(to),
            interval,
            draws,
            classes,
            labelled: false,
            tally,
            rows: 0,
            without_label: 0,
            unpredicted: None,
        })
    }

    /// The number of the first of the next rows, if targets are to be drawn.
    fn draws_from(&self) -> Option<u64> {
        (self.interval.is_some() || self.draws > 0).then_some(self.rows as u64)
    }

    fn head(&mut self, labelled: bool) -> anyhow::Result<()> {
        self.labelled = labelled;
        let mut head = vec!["row".to_owned(), "predicted".to_owned()];
        head.extend(labelled.then(|| "label".to_owned()));
        head.extend(self.classes.iter().map(|class| format!("p({class})")));
        if let Some(interval) = self.interval {
            head.push("sd".into());
            head.extend(interval.headings());
        }
        head.extend((1..=self.draws).map(|draw| format!("draw_{draw}")));
        Ok(self.csv.write_record(head)?)
    }

    /// Writes predictions of the next rows, with their labels if known.
    fn add(&mut self, predictions: &Predictions, labels: &[String], targets: &[f64]) -> anyhow::Result<()> {
        let Predictions { means, drawn_targets } = predictions;
        for (at, mean) in means.rows().into_iter().enumerate() {
            let mut record = vec![(self.rows + at).to_string()];
            record.push(match self.classes.is_empty() {
                true => mean[0].to_string(),
                false => most_probable(mean).map_or_else(String::new, |class| self.classes[class].clone()),
            });
            record.extend(labels.get(at).cloned());
            if !self.classes.is_empty() {
                record.extend(mean.iter().map(f64::to_string));
            }
            if let Some(drawn) = drawn_targets {
                self.add_draws(drawn.row(at), &mut record);
            }
            self.csv.write_record(record)?;
        }
        self.rows += means.nrows();
        if self.labelled {
            let known: Vec<usize> = (0..targets.len()).filter(|&row| !targets[row].is_nan()).collect();
            self.without_label += targets.len() - known.len();
            let (means, targets) = (means.select(Axis(0), &known), ArrayView1::from(targets).select(Axis(0), &known));
            // The density of a number needs the noise of the model, which is unknown here.
            let density = |(mean, &target): (ArrayView1<f64>, &f64)| {
                if self.classes.is_empty() { f64::NAN } else { mean[target as usize] }
            };
            let density: Vec<f64> = means.rows().into_iter().zip(&targets).map(density).collect();
            self.tally.add(means.view(), &density, targets.view());
        }
        Ok(())
    }

    /// Writes a row without a prediction.
    fn add_unpredicted(&mut self, label: Option<&str>, why: String) -> anyhow::Result<()> {
        let mut record = vec![self.rows.to_string(), String::new()];
        record.extend(label.map(str::to_owned));
        let numbers = self.interval.map_or(0, |interval| 1 + interval.headings().len()) + self.classes.len() + self.draws;
        record.resize(record.len() + numbers, String::new());
        self.csv.write_record(record)?;
        self.rows += 1;
        self.unpredicted.get_or_insert((0, why)).0 += 1;
        Ok(())
    }

    /// Appends the standard deviation and the interval of predictive draws, and some of these.
    fn add_draws(&self, drawn: ArrayView1<f64>, record: &mut Vec<String>) {
        if let Some(interval) = self.interval {
            let mut sorted = drawn.to_vec();
            sorted.sort_by(f64::total_cmp);
            record.push(drawn.std(1.0).to_string());
            record.extend(interval.of(&sorted).map(|end| end.to_string()));
        }
        let spread = (0..self.draws).map(|draw| drawn[draw * drawn.len() / self.draws]);
        record.extend(spread.map(|value| match self.classes.get(value as usize) {
            Some(class) if !value.is_nan() => class.clone(),
            _ => value.to_string(),
        }));
    }

    /// The metrics as text, if labels are known.
    fn finish(mut self) -> anyhow::Result<Option<String>> {
        self.csv.flush()?;
        Ok(self.labelled.then(|| {
            let values = self.tally.finish().values();
            let known = values.into_iter().filter(|(_, value)| !value.is_nan());
            let metrics = known.map(|(name, value)| format!("{name} {}", text::value(value))).collect::<Vec<_>>().join(", ");
            match self.without_label {
                0 => metrics,
                rows => format!("{metrics} ({} without a label left out)", text::counted(rows, "row")),
            }
        }))
    }
}

/// The most probable class, the first one among ties; `None` if a probability is NaN because draws have diverged.
fn most_probable(row: ArrayView1<f64>) -> Option<usize> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if row.iter().any(|p| p.is_nan()) { None } else { row.iter().position(|&p| p == largest) }
}

/// Rows that are predicted block by block.
struct Rows<'a, 'b> {
    predictor: &'a mut Predictor,
    output: &'b mut Output,
    path: &'a Path,
    raw: RawRows,
    labels: Vec<String>,
    targets: Vec<f64>,
    labels_of_run: KnownLabels,
    failed: Option<anyhow::Error>,
}

impl<'a, 'b> Rows<'a, 'b> {
    fn new(path: &'a Path, predictor: &'a mut Predictor, output: &'b mut Output) -> Self {
        let labels_of_run = KnownLabels::new(&predictor.classes);
        let (raw, labels, targets) = (RawRows::default(), Vec::new(), Vec::new());
        Self { predictor, output, path, raw, labels, targets, labels_of_run, failed: None }
    }

    /// Adds a row that cannot be predicted.
    fn push_unpredicted(&mut self, label: Option<&str>, why: String) -> Result<(), DataError> {
        let written = if self.raw.is_empty() { Ok(()) } else { self.flush() };
        let written = written.and_then(|()| self.output.add_unpredicted(label, why));
        self.stop_on(written)
    }

    /// Reading ends at an error of predicting or writing, which is kept.
    fn stop_on(&mut self, written: anyhow::Result<()>) -> Result<(), DataError> {
        written.map_err(|cause| {
            self.failed = Some(cause);
            DataError::Request("stopped".into())
        })
    }

    /// Adds a row, with its label if known.
    fn push(&mut self, row: impl IntoIterator<Item = (u32, f64)>, label: Option<&str>, place: Place) -> Result<(), DataError> {
        if let Some(label) = label {
            let target = self.labels_of_run.target(label);
            self.targets.push(target.map_err(|what| DataError::content(self.path, place, what))?);
            self.labels.push(label.to_owned());
        }
        self.raw.push(row);
        if self.raw.len() < BLOCK {
            return Ok(());
        }
        let written = self.flush();
        self.stop_on(written)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let predictions = self.predictor.predict_rows(std::mem::take(&mut self.raw), self.output.draws_from())?;
        self.output.add(&predictions, &self.labels, &self.targets)?;
        self.labels.clear();
        self.targets.clear();
        Ok(())
    }

    /// Predicts the remaining rows if reading has succeeded.
    fn finish(mut self, read: Result<(), DataError>) -> anyhow::Result<()> {
        match self.failed.take() {
            Some(cause) => Err(cause),
            None => {
                read?;
                if self.raw.is_empty() { Ok(()) } else { self.flush() }
            }
        }
    }
}

/// What labels of the run's data mean.
struct KnownLabels {
    classes: Levels,
}

impl KnownLabels {
    fn new(classes: &[String]) -> Self {
        Self { classes: Levels::known(classes) }
    }

    /// The index of a class, or the number, of a label; NaN if it is missing.
    fn target(&self, label: &str) -> Result<f64, String> {
        if let Some(class) = self.classes.find(label.as_bytes()) {
            return Ok(f64::from(class));
        }
        if is_missing(label.as_bytes()) {
            return Ok(f64::NAN);
        }
        if self.classes.names().is_empty() {
            let number = label.parse::<f64>().ok().filter(|number| number.is_finite());
            return number.ok_or_else(|| format!("the target {label:?} is not a finite number"));
        }
        Err(format!("unknown class {label:?}: the run has {}", listed(self.classes.names())))
    }
}

fn predict_dataset(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a dataset", args, &["label", "header", "delimiter", "features-name"])?;
    let data = predictor.adopt(Dataset::open(&args.data)?)?;
    let split = match args.split {
        Some(SplitName::Train) => Split::Train,
        Some(SplitName::Test) => Split::Test,
        None if data.rows(Split::Test) > 0 => Split::Test,
        None => Split::Train,
    };
    let labels: Vec<String> = match data.targets(split)? {
        Targets::Classes(indices) => indices.into_iter().map(|class| data.classes()[class as usize].clone()).collect(),
        Targets::Numbers(numbers) => numbers.iter().map(f64::to_string).collect(),
    };
    let known = KnownLabels::new(&predictor.classes);
    let targets: Result<Vec<f64>, String> = labels.iter().map(|label| known.target(label)).collect();
    let targets = targets.map_err(|what| DataError::content(&args.data, Place::File, what))?;
    output.head(true)?;
    for first in (0..data.rows(split)).step_by(BLOCK) {
        let block = first..(first + BLOCK).min(data.rows(split));
        let rows: Vec<usize> = block.clone().collect();
        let predictions = predictor.predict_dataset(&data, split, &rows, output.draws_from().is_some())?;
        output.add(&predictions, &labels[block.clone()], &targets[block])?;
    }
    Ok(())
}

/// Refuses those of these options that were given, because they have no effect on such a file.
fn refuse_for(is: &str, args: &PredictArgs, options: &[&str]) -> anyhow::Result<()> {
    let given = [
        ("label", args.label.is_some()),
        ("header", args.header.is_some()),
        ("delimiter", args.delimiter.is_some()),
        ("features-name", args.features_name.is_some()),
        ("interval", args.interval.is_some()),
        ("draws", args.draws.is_some()),
        ("split", args.split.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(option, is_given)| *is_given && options.contains(option)) {
        bail!("{}: this is {is}, for which --{option} has no meaning: leave it out", args.data.display());
    }
    Ok(())
}

/// Refuses rows of numbers alone if the run was on a table whose columns had other uses.
fn check_no_recipe(args: &PredictArgs, predictor: &Predictor, is: &str) -> anyhow::Result<()> {
    ensure!(
        predictor.recipe.as_ref().is_none_or(Recipe::has_numbers_only),
        "{}: the run is on a table with texts, dates, gaps, groups, offsets or weights, and this is {is}: give a table with the columns that \
         were imported, or a dataset",
        args.data.display()
    );
    Ok(())
}

fn predict_libsvm(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a LIBSVM file", args, &["header", "delimiter", "features-name", "split"])?;
    check_no_recipe(args, predictor, "a LIBSVM file")?;
    ensure!(
        matches!(args.label, None | Some(Column::Number(1))),
        "{}: the labels of a LIBSVM file come first: use --label first, or no --label",
        args.data.display()
    );
    let labelled = args.label.is_some();
    output.head(labelled)?;
    let most = u32::try_from(predictor.columns)?;
    let dense = !predictor.is_sparse();
    let path = &args.data;
    let mut rows = Rows::new(path, predictor, output);
    let mut whole = Vec::new();
    let read = read_libsvm(Source::open(path)?, IndexLimit { max: most, description: "the features of the run" }, |row| {
        let (label, place) = (labelled.then_some(row.label), Place::Line(row.line));
        let entries = row.columns.iter().copied().zip(row.values.iter().copied());
        if !dense {
            return rows.push(entries, label, place);
        }
        whole.clear();
        whole.resize(most as usize, 0.0);
        entries.for_each(|(column, value)| whole[column as usize] = value);
        rows.push((0..).zip(whole.iter().copied()), label, place)
    });
    rows.finish(read)
}

/// Refuses dense rows if the run is on sparse data.
fn check_dense(args: &PredictArgs, predictor: &Predictor) -> anyhow::Result<()> {
    ensure!(!predictor.is_sparse(), "{}: the run is on sparse data and needs a LIBSVM file or a dataset", args.data.display());
    Ok(())
}

fn predict_array(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("an array", args, &["header", "delimiter", "split"])?;
    check_no_recipe(args, predictor, "an array")?;
    check_dense(args, predictor)?;
    ensure!(
        args.label.is_none(),
        "{}: an array of features has no labels: import features and labels, and predict the dataset",
        args.data.display()
    );
    output.head(false)?;
    let (path, width) = (&args.data, predictor.columns);
    let array = ArrayFile::of_features(path, args.features_name.as_deref())?;
    let mut rows = Rows::new(path, predictor, output);
    let read = array.rows(width, |row, record| rows.push((0..).zip(row.iter().copied()), None, Place::Record(record)));
    rows.finish(read)
}

fn predict_images(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a file of images", args, &["header", "delimiter", "features-name", "split"])?;
    check_no_recipe(args, predictor, "a file of images")?;
    check_dense(args, predictor)?;
    ensure!(
        args.label.is_none(),
        "{}: a file of images has no labels: import images and labels, and predict the dataset",
        args.data.display()
    );
    output.head(false)?;
    let path = &args.data;
    let mut images = Idx::open(Source::open(path)?)?;
    let (size, width) = (images.row_size(), predictor.columns);
    ensure!(size == width, "{}: these images have {size} pixels, but the run has {width} features", path.display());
    let mut rows = Rows::new(path, predictor, output);
    let read = images.rows(|row| rows.push((0..).zip(row.iter().copied().map(f64::from)), None, Place::File));
    rows.finish(read)
}

fn predict_table(args: &PredictArgs, predictor: &mut Predictor, output: &mut Output) -> anyhow::Result<()> {
    refuse_for("a table", args, &["features-name", "split"])?;
    check_dense(args, predictor)?;
    let path = &args.data;
    let mut layout = TableLayout {
        label: args.label.clone().unwrap_or(Column::None),
        header: args.header.unwrap_or(HeaderName::Auto).into(),
        delimiter: args.delimiter,
        ..TableLayout::default()
    };
    let recipe = predictor.recipe.clone().unwrap_or_else(|| plain_recipe(predictor));
    let order = columns(path, predictor, &recipe, &mut layout)?;
    let labelled = layout.label != Column::None;
    output.head(labelled)?;
    let mut table = Table::open(path, &layout)?.with_levels(recipe.texts().map(|(_, levels)| levels).collect());
    let mut rows = Rows::new(path, predictor, output);
    let (mut values, mut used) = (Vec::new(), Vec::new());
    let read = table.rows(|row| {
        values.clear();
        // A row to predict needs no weight.
        values.extend(order.iter().map(|at| at.map_or(1.0, |at| row.features[at])));
        let (place, label) = (row.place, labelled.then_some(row.label));
        match recipe.apply(&values, &mut used) {
            Ok(()) => rows.push((0..).zip(used.iter().copied()), label, place),
            Err(what) => {
                let text = recipe.unknown_text(&values, row.levels).map_or_else(String::new, |text| format!(", not {text:?}"));
                rows.push_unpredicted(label, DataError::content(path, place, what + &text).to_string())
            }
        }
    });
    rows.finish(read)
}

/// What becomes of the columns of a table of numbers.
fn plain_recipe(predictor: &Predictor) -> Recipe {
    let numbered = || (1..=predictor.columns).map(|number| format!("x{number}")).collect();
    let names = if predictor.features.is_empty() { numbered() } else { predictor.features.clone() };
    let columns = names.into_iter().map(|name| UsedColumn { name, r#use: ColumnUse::Number }).collect();
    Recipe { columns, ..Recipe::default() }
}

/// For each column that the run was given, the index of its column among the features of the table, which a weight need not have. Columns
/// are matched by name if both have names, otherwise by position. Completes the layout.
fn columns(path: &Path, predictor: &Predictor, recipe: &Recipe, layout: &mut TableLayout) -> anyhow::Result<Vec<Option<usize>>> {
    let wanted = &recipe.columns[..];
    layout.allow_missing = true;
    layout.na.clone_from(&recipe.na);
    // A first line of numbers and texts is a row if the texts are where the run had texts.
    let in_places = by_position(wanted, layout);
    let names = Table::names_in(path, layout).or_else(|cause| Table::names_in(path, &in_places).map_err(|_| cause))?;
    let has_names = predictor.recipe.is_some() || !predictor.features.is_empty();
    if let Some(names) = names.filter(|_| has_names) {
        return by_name(path, wanted, &names, layout);
    }
    let count = wanted.len();
    let features = Table::open(path, &in_places)?.features();
    ensure!(
        features == count,
        "{}: the table has {features} columns of features, but the run has {count}: name the column of labels with --label, or add a \
         header with the names of the features",
        path.display(),
    );
    *layout = in_places;
    Ok((0..count).map(Some).collect())
}

/// The layout with the texts and dates where the run had them, around the label.
fn by_position(wanted: &[UsedColumn], layout: &TableLayout) -> TableLayout {
    let label = if let Column::Number(number) = layout.label { number } else { usize::MAX };
    let mut layout = layout.clone();
    for (number, column) in (1..).zip(wanted) {
        add_text_or_date(column, Column::Number(if number < label { number } else { number + 1 }), &mut layout);
    }
    layout
}

/// Adds a column of the table to those of texts or dates if it is one.
fn add_text_or_date(wanted: &UsedColumn, column: Column, layout: &mut TableLayout) {
    match wanted.r#use {
        ColumnUse::Date => layout.dates.push(column),
        ColumnUse::Indicators(_) | ColumnUse::Group(_) => layout.texts.push(column),
        _ => {}
    }
}

/// Matches columns by their names, and leaves out all others.
fn by_name(path: &Path, wanted: &[UsedColumn], names: &[String], layout: &mut TableLayout) -> anyhow::Result<Vec<Option<usize>>> {
    let is_needed = |column: &&UsedColumn| column.r#use != ColumnUse::Weight;
    let missing: Vec<String> = wanted
        .iter()
        .filter(|column| is_needed(column) && !names.contains(&column.name))
        .map(|column| column.name.clone())
        .collect();
    ensure!(missing.is_empty(), "{}: the header lacks {}; it has {}", path.display(), listed(&missing), listed(names));
    let is_label = |place: usize, name: &String| match &layout.label {
        Column::Name(label) => label == name,
        Column::Number(number) => place + 1 == *number,
        Column::Last => place + 1 == names.len(),
        Column::None => false,
    };
    let is_wanted = |name: &String| wanted.iter().any(|column| column.name == *name);
    let (kept, others): (Vec<_>, Vec<_>) =
        names.iter().enumerate().filter(|(place, name)| !is_label(*place, name)).partition(|(_, name)| is_wanted(name));
    layout.drop = others.into_iter().map(|(place, _)| Column::Number(place + 1)).collect();
    layout.header = crate::data::Header::Yes;
    let mut order = Vec::new();
    for column in wanted {
        let place = kept.iter().position(|(_, kept)| **kept == column.name);
        ensure!(place.is_some() || !is_needed(&column), "{}: {:?} is both a feature and the label", path.display(), column.name);
        order.push(place);
        if place.is_some() {
            add_text_or_date(column, Column::Name(column.name.clone()), layout);
        }
    }
    Ok(order)
}
