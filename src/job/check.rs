//! Checks a run before it starts: its keys, its values, its data, and whether they go together.

use super::check_report::{CheckReport, ClassCounts, DataContent, DataReport, PlannedDraws};
use super::data::{DataFile, other_kind, schema};
use super::notes::notes_on_rows;
use super::pointwise;
use super::prepare::{JobData, RELATIVE_PATH};
use super::problem::assign;
use super::seed_words::seed_words;
use super::tune::can_be_tuned;
use crate::config::sweep::Sweep;
use crate::config::{Dtype, Problem, Registry, Run, RunFile, RunOf, RunSettings, evaluation_interval};
use crate::data::corpus::Corpus as CorpusFile;
use crate::data::{DataError, Dataset, Partition, Split, Targets};
use crate::methods::tuning::Found;
use crate::methods::{Corpus, ResourceEstimate, Table};
use crate::models::{Model, Output, Scratch, require_data};
use crate::settings::KeyError;
use crate::text;
use ndarray::Array2;
use std::path::Path;
use std::sync::Arc;

/// Values of a split that the model is asked about, which takes less than a tenth of a second to read.
const CHECKED_VALUES: usize = 1 << 22;
/// Values that are read at once.
const BLOCK_VALUES: usize = 1 << 20;

/// Parses and checks a run. Of large data it reads only the first rows.
///
/// # Errors
/// Every mistake, as far as they can be found at once, in the order of the lines.
pub fn check(file: &RunFile, registry: &Registry) -> Result<(Run, CheckReport), Vec<Problem>> {
    let mut problems = Vec::new();
    let run = file.parse(registry).map_err(|mut found| problems.append(&mut found)).ok();
    let path = file.table().get("data").and_then(|data| data.get("file")).and_then(toml::Value::as_str).map(Path::new);
    let data = path.and_then(|path| open(path).map_err(|error| problems.push(file.problem(&["data", "file"], error))).ok());
    let checked = match run {
        Some(run) if problems.is_empty() => match &run {
            Run::Table(table) => check_run(file, registry, table, data.as_ref()),
            Run::Corpus(corpus) => check_run(file, registry, corpus, data.as_ref()),
        }
        .map(|report| (run, report)),
        _ => Err(Vec::new()),
    };
    checked.map_err(|mut found| {
        problems.append(&mut found);
        problems.sort_by_key(Problem::line);
        problems
    })
}

/// Parses and checks all runs of a sweep. A mistake that several of them share is reported once, with the first run that has it.
///
/// # Errors
/// Every mistake in any of the runs.
pub fn check_sweep(sweep: &Sweep, registry: &Registry) -> Result<Vec<(Run, CheckReport)>, Vec<Problem>> {
    let mut problems: Vec<Problem> = Vec::new();
    let mut checked = Vec::new();
    for point in &sweep.points {
        let found = match check(&point.file, registry) {
            Ok(run) => {
                checked.push(run);
                continue;
            }
            Err(found) => found,
        };
        for mut problem in found {
            let same = |other: &Problem| {
                (&other.place, &other.key) == (&problem.place, &problem.key) && other.message.starts_with(&problem.message)
            };
            if !problems.iter().any(same) {
                problem.message = format!("{} (in the run {})", problem.message, point.name);
                problems.push(problem);
            }
        }
    }
    if problems.is_empty() { Ok(checked) } else { Err(problems) }
}

/// The remarks on all runs of a sweep. One that not all runs have names the first run that has it.
pub fn notes_on_sweep<'a>(sweep: &Sweep, reports: impl Iterator<Item = &'a CheckReport>) -> Vec<String> {
    let mut found: Vec<(&str, &str, usize)> = Vec::new();
    for (report, point) in reports.zip(&sweep.points) {
        for note in &report.notes {
            match found.iter_mut().find(|(other, ..)| other == note) {
                Some((.., runs)) => *runs += 1,
                None => found.push((note, &point.name, 1)),
            }
        }
    }
    let all = sweep.points.len();
    let sentence = |(note, first, runs): (&str, &str, usize)| match runs {
        runs if runs == all => note.to_owned(),
        1 => format!("{first}: {note}"),
        runs => format!("{first} and {}: {note}", text::counted(runs - 1, "other run")),
    };
    found.into_iter().map(sentence).collect()
}

/// What a check asks about one kind of data.
trait Checked: JobData {
    /// What a file of such data consists of.
    fn content(open: &Self::Open) -> DataContent;
    /// The model of a run on these data.
    fn check_model(run: &RunOf<Self>, open: Option<&Self::Open>) -> Result<CheckedModel, KeyError>;
    /// The temperature, if such runs have one.
    fn temperature(run: &RunOf<Self>) -> Option<f64>;
    /// Rounds between evaluations, if the run file says so.
    fn evaluate_every(run: &RunOf<Self>) -> Option<u64>;
    /// The first round whose predictions are averaged over evaluations, if any are.
    fn average_from(run: &RunOf<Self>) -> Option<u64>;
    /// The rows whose log-likelihoods are kept, if any are.
    fn pointwise(run: &RunOf<Self>) -> Option<Split>;
    /// The training rows of each class at each agent, if the partition depends on classes.
    fn class_counts(run: &RunOf<Self>, open: &Self::Open) -> Option<ClassCounts>;
}

struct CheckedModel {
    parameters: usize,
    /// Values that each agent needs for each thread in addition.
    buffered_values: usize,
    predicts: bool,
    /// Rows that the model brings along.
    own_rows: usize,
    /// What is wrong with the rows of the data.
    rows: Result<(), String>,
    /// What the method misses in the model.
    method: Result<(), KeyError>,
    /// Remarks on what can be used, but not well.
    notes: Vec<String>,
    /// Whether the curvature at the mode is found where the method needs it, and not only the scale of parameters.
    has_curvature: bool,
    /// Whether what the method leaves to be found can be found.
    is_tuned: bool,
    /// What a run needs where it cannot.
    estimate: Option<ResourceEstimate>,
}

fn check_run<D: Checked>(
    file: &RunFile,
    registry: &Registry,
    run: &RunOf<D>,
    data: Option<&DataFile>,
) -> Result<CheckReport, Vec<Problem>> {
    let open = data.and_then(D::downcast);
    if let (Some(data), None) = (data, open) {
        return Err(vec![file.problem(
            &["data", "file"],
            format!("names {}, which {}", data.path().display(), other_kind(data, run.model_name(), D::WORDS.kind)),
        )]);
    }
    let mut problems = Vec::new();
    let mut sizes = Vec::new();
    if let Some(open) = open {
        match D::shard_sizes(run, open) {
            Ok(found) => sizes = found,
            Err(error) => problems.push(match data.map(|data| data.len(Split::Train)) {
                Some(entries) if run.settings.agents() as usize > entries => {
                    let entry = D::WORDS.entry;
                    file.problem(&["agents"], format!("must be at most {entries}, the number of training {entry}s"))
                }
                _ => file.problem(&["data", "partition"], format!("cannot be used: {}", without_key(&error))),
            }),
        }
    }
    let model = D::check_model(run, open).map_err(|error| problems.push(file.problem_in("model", error, registry))).ok();
    if let Some(Err(message)) = model.as_ref().map(|model| &model.rows) {
        let message = format!("does not suit the model {}: {message}", run.model_name());
        problems.push(file.problem(&["data", "file"], message));
    }
    if let Some(Err(error)) = model.as_ref().map(|model| model.method.clone()) {
        problems.push(file.problem_in("method", error, registry));
    }
    match model {
        Some(model) if problems.is_empty() => Ok(report(run, data.zip(open), &model, &sizes)),
        _ => Err(problems),
    }
}

fn report<D: Checked>(run: &RunOf<D>, data: Option<(&DataFile, &D::Open)>, model: &CheckedModel, sizes: &[usize]) -> CheckReport {
    let settings = &run.settings;
    let agents = settings.agents();
    let shards = run.method.sharing().shards(agents as usize);
    let range = sizes.iter().copied().min().zip(sizes.iter().copied().max());
    let rows_per_agent = range.unwrap_or((model.own_rows / shards, model.own_rows.div_ceil(shards)));
    let mut estimate = model.estimate.unwrap_or_else(|| run.method.estimate(agents, model.parameters));
    let mut notes = run.method.notes(agents);
    notes.extend(model.notes.iter().cloned());
    let class_counts = data.and_then(|(_, open)| D::class_counts(run, open));
    let mut pointwise_rows = 0;
    if let Some(((file, _), split)) = data.zip(D::pointwise(run)) {
        match pointwise::note_if_nothing_is_kept(file.len(split), D::temperature(run).unwrap_or(1.0)) {
            Some(note) => notes.push(note),
            None => pointwise_rows = file.len(split),
        }
    }
    let data = data.map(|(file, open)| DataReport {
        path: file.path().to_owned(),
        content: D::content(open),
        train: file.len(Split::Train),
        test: file.len(Split::Test),
        digest: file.digest().to_owned(),
    });
    let mut evaluate_every = D::evaluate_every(run);
    let needs = run.method.tuning().filter(|_| model.is_tuned);
    let draws = PlannedDraws::of(&estimate, needs.as_ref(), model.has_curvature);
    let lengths_are_found = needs.as_ref().is_some_and(|needs| needs.rounds.is_none());
    if let Some(needs) = needs {
        estimate.rounds = needs.rounds;
        if needs.noise.is_some() {
            notes.push(
                "step = \"auto\": the step, and the lengths that are not given, are chosen before the run starts".to_owned(),
            );
        }
    }
    if estimate.rounds.is_some() {
        evaluate_every = Some(evaluation_interval(evaluate_every, estimate.rounds));
    }
    if let (Some(from), Some(rounds)) = (D::average_from(run), estimate.rounds)
        && from > rounds
    {
        notes.push(format!("evaluate.average_from = {from} has no effect: the run has {rounds} rounds"));
    }
    if let Some(data) = &data {
        let (entry, test_entry) = (D::WORDS.entry, D::WORDS.test_entry);
        if evaluate_every != Some(0) && model.predicts && data.test == 0 {
            notes.push(format!(
                "nothing is evaluated, because the data have no {test_entry}s: import them with --test-fraction 0.2"
            ));
        }
        if let Some(batch) = estimate.minibatch.filter(|&batch| batch > rows_per_agent.0 as u64) {
            let rows = rows_per_agent.0;
            notes.push(format!("an agent with {rows} {entry}s uses all of them in each step, because batch = {batch} is larger"));
        }
    }
    CheckReport {
        seed: settings.seed(),
        agents,
        temperature: D::temperature(run),
        evaluate_every,
        method: run.method.name(),
        model: run.model_name(),
        parameters: model.parameters,
        buffered_values: model.buffered_values,
        predicts: model.predicts,
        data,
        rows_per_agent,
        class_counts,
        estimate,
        sharing: run.method.sharing(),
        lengths_are_found,
        draws,
        dedicated: run.cluster.dedicated,
        pointwise_rows,
        value_bytes: estimate.bytes_of_value.unwrap_or(match settings.dtype() {
            Dtype::Float32 => 4,
            Dtype::Float64 => 8,
        }),
        notes,
    }
}

impl Checked for Table {
    fn content(dataset: &Arc<Dataset>) -> DataContent {
        DataContent::Table {
            task: dataset.task(),
            features: dataset.features() - dataset.extra_columns(),
            classes: dataset.classes().len(),
        }
    }

    fn check_model(run: &RunOf<Self>, dataset: Option<&Arc<Dataset>>) -> Result<CheckedModel, KeyError> {
        // Nothing that is asked of the model here depends on the dtype.
        let schema = dataset.map(|dataset| schema(dataset)).transpose().map_err(|error| KeyError::table(error.to_string()))?;
        let built = run.model.float64(schema.as_ref())?;
        if built.own_rows == 0 {
            require_data(dataset)?;
        }
        let model = built.model.as_ref();
        let (parameters, predicts) = (model.dim(), model.output() != Output::Nothing);
        let rows = dataset.map_or(Ok(()), |dataset| check_rows(model, dataset));
        let notes = dataset.map(|dataset| notes_on_rows(run, dataset)).unwrap_or_default();
        let (mut method, mut estimate) = (run.method.check_model(model), None);
        let has_curvature = can_be_tuned(model);
        let is_tuned = run.method.tuning().is_some_and(|needs| needs.noise.is_some() || has_curvature);
        if run.method.tuning().is_some() && !is_tuned {
            match run.method.tuned(Found::Nothing, run.settings.agents) {
                Ok(untuned) => estimate = Some(untuned.estimate(run.settings.agents, parameters)),
                Err(error) => method = method.and(Err(error)),
            }
        }
        let own_rows = built.own_rows;
        let buffered_values = model.buffered_values();
        Ok(CheckedModel {
            parameters,
            buffered_values,
            predicts,
            own_rows,
            rows,
            method,
            notes,
            has_curvature,
            is_tuned,
            estimate,
        })
    }

    fn temperature(run: &RunOf<Self>) -> Option<f64> {
        Some(run.settings.temperature)
    }

    fn evaluate_every(run: &RunOf<Self>) -> Option<u64> {
        run.evaluate.every
    }

    fn average_from(run: &RunOf<Self>) -> Option<u64> {
        run.evaluate.average_from
    }

    fn pointwise(run: &RunOf<Self>) -> Option<Split> {
        run.evaluate.pointwise.then_some(run.evaluate.pointwise_rows)
    }

    fn class_counts(run: &RunOf<Self>, dataset: &Arc<Dataset>) -> Option<ClassCounts> {
        let partition = &run.data.as_ref()?.partition;
        if matches!(partition, Partition::Equal | Partition::Sizes(_)) {
            return None;
        }
        let Targets::Classes(targets) = dataset.targets(Split::Train).ok()? else { return None };
        let assignment = assign(run, dataset).ok()?;
        let mut rows = Array2::zeros((assignment.agents(), dataset.classes().len()));
        for agent in 0..assignment.agents() {
            assignment.rows(agent).iter().for_each(|&row| rows[[agent, targets[row] as usize]] += 1);
        }
        Some(ClassCounts { classes: dataset.classes().to_vec(), rows })
    }
}

/// The message without the key that it begins with.
fn without_key(error: &DataError) -> String {
    match error {
        DataError::Partition(what) => what.clone(),
        error => error.to_string(),
    }
}

/// Asks the model about the rows: all of them, or the first ones if reading all would take long.
fn check_rows(model: &dyn Model<f64>, dataset: &Dataset) -> Result<(), String> {
    let at_once = (BLOCK_VALUES / dataset.features()).max(1);
    let mut scratch = Scratch::new();
    for split in [Split::Train, Split::Test] {
        let most = dataset.rows(split).min((CHECKED_VALUES / dataset.features()).max(1));
        for first in (0..most).step_by(at_once) {
            let rows: Vec<usize> = (first..(first + at_once).min(most)).collect();
            let shard = dataset.read_rows::<f64>(split, &rows).map_err(|error| error.to_string())?;
            shard.check(model, &mut scratch).map_err(|message| format!("{} rows: {message}", split.name()))?;
        }
    }
    Ok(())
}

impl Checked for Corpus {
    fn content(corpus: &Arc<CorpusFile>) -> DataContent {
        let (tokens, entries) = (corpus.tokens(Split::Train), corpus.entries(Split::Train));
        DataContent::Corpus { words: corpus.words(), tokens, entries }
    }

    fn check_model(run: &RunOf<Self>, corpus: Option<&Arc<CorpusFile>>) -> Result<CheckedModel, KeyError> {
        let corpus = require_data(corpus)?;
        let (_, notes) = seed_words(run, corpus)?;
        let parameters = corpus.words() as usize * run.model.topics as usize;
        let limit = run.method.estimate(run.settings.agents, parameters).longest_document;
        let rows = match corpus.longest(Split::Train).zip(limit) {
            Some((longest, most)) if longest > most => Err(format!(
                "a document has {} tokens, and the method {} takes at most {}: split it into several documents, or take another method",
                text::count(longest),
                run.method.name(),
                text::count(most)
            )),
            _ => Ok(()),
        };
        Ok(CheckedModel {
            parameters,
            buffered_values: 0,
            predicts: true,
            own_rows: 0,
            rows,
            method: Ok(()),
            notes,
            has_curvature: false,
            is_tuned: false,
            estimate: None,
        })
    }

    fn temperature(_: &RunOf<Self>) -> Option<f64> {
        None
    }

    fn evaluate_every(run: &RunOf<Self>) -> Option<u64> {
        run.evaluate.every
    }

    fn average_from(_: &RunOf<Self>) -> Option<u64> {
        None
    }

    fn pointwise(_: &RunOf<Self>) -> Option<Split> {
        None
    }

    fn class_counts(_: &RunOf<Self>, _: &Arc<CorpusFile>) -> Option<ClassCounts> {
        None
    }
}

/// Opens data and reads the first and the last entry of each split.
fn open(path: &Path) -> Result<DataFile, String> {
    let data = DataFile::open(path).map_err(|error| match error.is_not_found() {
        true if path.starts_with("~") => format!("names {}, but run files do not know ~: write the whole path", path.display()),
        true => format!("names {}, which does not exist. `mpibayes import` makes such a file; {RELATIVE_PATH}", path.display()),
        false => format!("cannot be used: {error}"),
    })?;
    read_ends(&data).map_err(|error| format!("cannot be used: {error}"))?;
    Ok(data)
}

fn read_ends(data: &DataFile) -> Result<(), DataError> {
    for split in [Split::Train, Split::Test] {
        let entries = data.len(split);
        let ends: Vec<usize> = [0, entries.saturating_sub(1)].into_iter().take(entries).collect();
        match data {
            DataFile::Table(table) => drop(table.read_rows::<f64>(split, &ends)?),
            DataFile::Corpus(corpus) => {
                for end in ends {
                    match split {
                        Split::Train => drop(corpus.train(end..end + 1)?),
                        Split::Test => drop(corpus.held_out(end..end + 1)?),
                    }
                }
            }
        }
    }
    Ok(())
}
