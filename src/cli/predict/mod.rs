//! `mpibayes predict`: predictions of a finished run for new rows, or topic weights of new documents, as CSV.

mod args;
mod files;
mod output;
mod rows;
mod table;

use self::args::BLOCK;
pub use self::args::{PredictArgs, SplitName};
use self::files::{predict_array, predict_dataset, predict_images, predict_libsvm, refuse_for};
use self::output::{Output, Predicted};
use self::table::predict_table;
use crate::config::Registry;
use crate::data::{Format, Split, detect, is_libsvm};
use crate::job::predictor::Predictor;
use crate::job::topic_model::TopicModel;
use crate::lda::LdaSettings;
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::results::ResultFile;
use crate::text;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

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
    let Predicted { count, unpredicted, of_new_groups, filled_in, metrics } = match outcome {
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
    if of_new_groups > 0 {
        let rows = text::counted(of_new_groups, "row");
        eprintln!("mpibayes: {rows} of groups without training rows: predicted as members of new groups");
    }
    if filled_in > 0 {
        let rows = text::counted(filled_in, "row");
        eprintln!(
            "mpibayes: {rows} with a missing number: predicted with the mean of the training rows in its place. Intervals do not account for this"
        );
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
    output.finish()
}

/// Writes the topic weights of each document, with its index in the imported files.
fn predict_documents(args: &PredictArgs, model: &TopicModel, to: Box<dyn Write>) -> anyhow::Result<Predicted> {
    refuse_for(
        "a corpus",
        args,
        &["label", "header", "delimiter", "decimal", "features-name", "interval", "of", "draws", "keep"],
    )?;
    ensure!(
        detect(&args.data)? == Format::Hdf5,
        "{}: the run is a topic model and needs a corpus: import the documents with `mpibayes import` first",
        args.data.display()
    );
    let documents = model.adopt(&args.data)?;
    let split = args.split(documents.documents(Split::Test) > 0);
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
    Ok(Predicted { count: text::counted(all, "document"), unpredicted: None, of_new_groups: 0, filled_in: 0, metrics: None })
}

/// Whether the reader of the output, such as `head`, has closed it.
fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    let in_csv = |error: &csv::Error| matches!(error.kind(), csv::ErrorKind::Io(error) if closed(error));
    error.downcast_ref().is_some_and(in_csv) || error.downcast_ref().is_some_and(closed)
}
