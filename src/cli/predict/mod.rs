//! `mpibayes predict`: predictions of a finished run for new rows, or topic weights of new documents, as CSV.

mod all_ranks;
mod args;
mod documents;
mod files;
mod output;
mod rows;
mod table;

use self::all_ranks::agree;
pub use self::args::{PredictArgs, SplitName};
use self::documents::predict_documents;
use self::files::{predict_array, predict_dataset, predict_images, predict_libsvm};
use self::output::{Output, Predicted};
use self::table::predict_table;
use super::output_file::{self, Content};
use super::termination;
use crate::cluster::mpi::World;
use crate::config::Registry;
use crate::data::{Format, detect, is_libsvm};
use crate::job::predictor::Predictor;
use crate::job::topic_model::TopicModel;
use crate::job::{Ranks, threads_of};
use crate::lda::LdaSettings;
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::results::ResultFile;
use crate::text;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Writes predictions, and reports metrics if labels are known. All ranks of an MPI job predict documents; rank 0 alone predicts rows.
///
/// # Errors
/// When there is no such run, it is not finished, or the rows do not match its data. With several ranks, rank 0 alone returns the error.
pub fn run(args: &PredictArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let Some(mut world) = (if World::is_launched() { Some(World::start_watchable()?) } else { None }) else {
        return predict(args, registry, &Ranks::One);
    };
    termination::watch_predictions(&mut world);
    let ranks = Ranks::Mpi(&world);
    let outcome = predict(args, registry, &ranks);
    // The others wait for rank 0 here: ending MPI waits as well, but takes all of a core.
    drop(world.agree(Ok(())));
    if ranks.is_root() { outcome } else { Ok(ExitCode::SUCCESS) }
}

/// Predicts. Of documents, all ranks return an error; of rows, rank 0 alone.
fn predict(args: &PredictArgs, registry: &Registry, ranks: &Ranks) -> anyhow::Result<ExitCode> {
    let open = || RunResults::open(&args.run).map_err(anyhow::Error::from);
    let opened = agree(ranks, if ranks.is_root() { open().map(Some) } else { Ok(None) })?;
    let is_of_topics = opened.as_ref().is_some_and(|run| is_of_topics(&run.file));
    let is_of_topics = ranks.broadcast(&[u8::from(is_of_topics)]) == [1];
    if !is_of_topics && !ranks.is_root() {
        return Ok(ExitCode::SUCCESS);
    }
    let ranks = if is_of_topics { ranks } else { &Ranks::One };
    if matches!(ranks, Ranks::Mpi(_)) {
        // As in a run: one thread for each rank.
        drop(rayon::ThreadPoolBuilder::new().num_threads(threads_of(0, ranks)).build_global());
    }
    let RunResults { file, path } = agree(ranks, opened.map_or_else(open, Ok))?;
    let model = FittedModel::of(&file, args.chain, registry).with_context(|| format!("{}", path.display()));
    let mut model = agree(ranks, model)?;
    let destination = if ranks.is_root() { Destination::open(args).map(Some) } else { Ok(None) };
    let destination = agree(ranks, destination)?;
    let (partial, to) = destination.map_or((None, None), |Destination { partial, to }| (partial, Some(to)));
    let outcome = match (&mut model, to) {
        (FittedModel::Topics(model), to) => predict_documents(args, model, ranks, to),
        (FittedModel::Table(predictor), Some(to)) => predict_rows(args, predictor, to),
        (FittedModel::Table(_), None) => return Ok(ExitCode::SUCCESS),
    };
    let predicted = match outcome {
        Err(error) if is_closed(&error) => return Ok(ExitCode::SUCCESS),
        Err(error) if is_of_output(&error) => return Err(error.context(format!("{}: cannot write", place(args)))),
        outcome => outcome?,
    };
    if ranks.is_root() {
        if let Some(partial) = partial {
            partial.commit().with_context(|| format!("{}: cannot write", place(args)))?;
            eprintln!("mpibayes: {} predicted in {}", predicted.count, place(args));
        }
        report(predicted);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the output could not be written: what is read has the name of its file in its errors.
fn is_of_output(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some() || error.downcast_ref::<csv::Error>().is_some()
}

/// Reports counts and metrics of the predictions.
fn report(predicted: Predicted) {
    let Predicted { count: _, unpredicted, of_new_groups, filled_in, far, metrics } = predicted;
    if let Some(unpredicted) = unpredicted {
        eprintln!("mpibayes: {unpredicted}");
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
    if let Some((rows, first)) = far {
        let rows = text::counted(rows, "row");
        eprintln!(
            "mpibayes: {rows} far from most training rows, of which the first is {first}. Predictions there rest on the form of the model alone"
        );
    }
    if let Some(metrics) = metrics {
        eprintln!("mpibayes: {metrics}");
    }
}

/// Where predictions go.
struct Destination {
    /// The file, until it is complete.
    partial: Option<PartialFile>,
    to: Box<dyn Write>,
}

impl Destination {
    fn open(args: &PredictArgs) -> anyhow::Result<Self> {
        if let Some(output) = &args.output {
            output_file::check(output, Content::Text, args.force, [args.run.as_path(), &args.data])?;
        }
        let partial = args.output.as_deref().map(PartialFile::new);
        let to: Box<dyn Write> = match &partial {
            Some(partial) => Box::new(File::create(partial.path()).with_context(|| format!("{}: cannot write", place(args)))?),
            None => Box::new(std::io::stdout().lock()),
        };
        Ok(Self { partial, to })
    }
}

/// Where predictions go, in messages.
fn place(args: &PredictArgs) -> String {
    args.output.as_deref().map_or("standard output".into(), |output| output.display().to_string())
}

/// Whether a run is on documents.
fn is_of_topics(file: &ResultFile) -> bool {
    file.info().model == LdaSettings::NAME
}

/// The model of a run.
enum FittedModel {
    Table(Predictor),
    Topics(TopicModel),
}

impl FittedModel {
    fn of(file: &ResultFile, chain: Option<usize>, registry: &Registry) -> anyhow::Result<Self> {
        if is_of_topics(file) {
            return Ok(Self::Topics(TopicModel::read(file, chain.unwrap_or(0), registry)?));
        }
        ensure!(chain.is_none(), "--chain is for topic models: all chains together predict rows");
        Ok(Self::Table(Predictor::new(file, registry)?))
    }
}

fn predict_rows(args: &PredictArgs, predictor: &mut Predictor, to: Box<dyn Write>) -> anyhow::Result<Predicted> {
    let mut output = Output::new(args, predictor, to)?;
    ensure!(
        predictor.shape.is_none() || !args.data.is_dir(),
        "{}: this is a folder: import PNG files with `mpibayes import images`, and predict the dataset",
        args.data.display()
    );
    match detect(&args.data)? {
        Format::Hdf5 => predict_dataset(args, predictor, &mut output),
        Format::Table if is_libsvm(&args.data)? => predict_libsvm(args, predictor, &mut output),
        Format::Table | Format::Batches(_) => predict_table(args, predictor, &mut output),
        Format::Npy | Format::Npz => predict_array(args, predictor, &mut output),
        Format::Idx => predict_images(args, predictor, &mut output),
        Format::Tar => bail!("{}: this is an archive: import its images, and predict the dataset", args.data.display()),
        Format::Other(what) => bail!("{}: this is {what}", args.data.display()),
    }?;
    output.finish()
}

/// Whether the reader of the output, such as `head`, has closed it.
fn is_closed(error: &anyhow::Error) -> bool {
    let closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    let in_csv = |error: &csv::Error| matches!(error.kind(), csv::ErrorKind::Io(error) if closed(error));
    error.downcast_ref().is_some_and(in_csv) || error.downcast_ref().is_some_and(closed)
}
