//! Everything about a run that can be told without starting it: what is wrong, and what it would take.

use super::keys::{What, Wrong};
use super::registry::{ModelEntry, Registry, about_a_key};
use super::setup::{facts, needs_data};
use super::spec::{ConfigError, Precision, RunSpec};
use super::typed::{Problem, Typed};
use crate::data::{DataError, Dataset, Split, Task};
use crate::methods::Needs;
use crate::models::{Built, DataFacts, Output, Scratch};
use crate::random::Seed;
use std::path::{Path, PathBuf};

/// Numbers of a split that the model is asked about, less than a tenth of a second's reading, and how many are read at once.
const CHECKED_NUMBERS: usize = 1 << 22;
const BLOCK_NUMBERS: usize = 1 << 20;

/// What a dataset says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct DataReport {
    /// The file.
    pub path: PathBuf,
    /// Classes or numbers.
    pub task: Task,
    /// Training rows.
    pub train: usize,
    /// Test rows.
    pub test: usize,
    /// Numbers in a row.
    pub features: usize,
    /// How many classes; 0 for regression.
    pub classes: usize,
    /// The digest of its content.
    pub digest: String,
}

/// A run that could be started.
#[derive(Clone, Debug)]
pub struct Report {
    /// With every default.
    pub spec: RunSpec,
    /// The method's name.
    pub method: &'static str,
    /// The model's name.
    pub model: &'static str,
    /// d.
    pub parameters: usize,
    /// Whether the model predicts something that could be judged.
    pub predicts: bool,
    /// The data; none for a model that brings its own.
    pub data: Option<DataReport>,
    /// Training rows of the agents with the fewest and the most.
    pub rows_per_agent: (usize, usize),
    /// What the method says it takes.
    pub needs: Needs,
    /// Bytes of a number.
    pub width: u64,
    /// What is allowed, but perhaps not meant.
    pub notes: Vec<String>,
}

impl Report {
    /// Bytes that an agent takes, rows and working arrays, as far as the method tells.
    pub fn bytes_of_agent(&self) -> Option<u64> {
        let features = self.data.as_ref().map_or(1, |data| data.features) as u64;
        let rows = (self.rows_per_agent.1 as u64).saturating_mul(features + 1);
        Some(rows.saturating_add(self.needs.numbers_of_agent?).saturating_mul(self.width))
    }

    /// Bytes that travel in a round, on average, where every agent has a rank of its own, as far as the method tells.
    pub fn bytes_per_round(&self) -> Option<u64> {
        let set = self.needs.particles.unwrap_or(0).saturating_mul(self.parameters as u64);
        // An evaluation takes the particles to all ranks.
        let to_all = set.saturating_mul(u64::from(self.spec.agents.saturating_sub(1)));
        let evaluation = if self.is_evaluated() { to_all / self.spec.evaluate.every.max(1) } else { 0 };
        Some(self.needs.numbers_per_round?.saturating_add(evaluation).saturating_mul(self.width))
    }

    /// Whether predictions are judged on the way.
    pub fn is_evaluated(&self) -> bool {
        self.predicts && self.spec.evaluate.every > 0 && self.data.as_ref().is_some_and(|data| data.test > 0)
    }
}

/// Checks a run: its keys, its values, its data, and whether they go together. Of large data it reads the first rows only.
///
/// # Errors
/// All that is wrong, as far as it can be told at once.
pub fn check(typed: &Typed, registry: &Registry) -> Result<Report, Vec<Problem>> {
    look(typed, registry).map_err(|mut problems| {
        problems.sort_by_key(Problem::line);
        problems
    })
}

fn look(typed: &Typed, registry: &Registry) -> Result<Report, Vec<Problem>> {
    let mut problems = Vec::new();
    let spec = typed.resolve(registry).map_err(|mut found| problems.append(&mut found)).ok();
    let file = typed.table().get("data").and_then(|data| data.get("file")).and_then(toml::Value::as_str).map(Path::new);
    let mut dataset = None;
    if let Some(file) = file {
        match open(file) {
            Ok(opened) => dataset = Some(opened),
            Err(error) => problems.push(typed.problem(&["data", "file"], error)),
        }
    }
    if let (Some(dataset), Some(agents)) = (&dataset, typed.table().get("agents").and_then(toml::Value::as_integer)) {
        let rows = dataset.rows(Split::Train);
        if usize::try_from(agents).is_ok_and(|agents| agents > rows) {
            let what = format!("{agents} agents cannot share {rows} training rows: ask for 1 to {rows} agents");
            problems.push(typed.problem(&["agents"], what));
        }
    }
    let (Some(spec), true) = (spec, dataset.is_some() == file.is_some()) else { return Err(problems) };
    let mut rows_per_agent = None;
    if let (Some(dataset), Some(data), true) = (&dataset, &spec.data, problems.is_empty()) {
        let agents = usize::try_from(spec.agents).unwrap_or(usize::MAX);
        match data.partition.deal(dataset, agents, Seed(spec.seed)) {
            Ok(deal) => {
                let sizes = || (0..agents).map(|agent| deal.count(agent));
                rows_per_agent = sizes().min().zip(sizes().max());
            }
            Err(error) => problems.push(typed.problem(&["data", "partition"], error.to_string())),
        }
    }
    if let Ok(method) = registry.method(&spec.method)
        && let Err(mut wrong) = (method.check_for)(&spec.method, spec.agents)
    {
        wrong.at.insert(0, "method".into());
        if let What::Other(sentence) = wrong.what {
            problems.push(typed.problem_at(&wrong.at, sentence));
        }
    }
    let sized = registry.model(&spec.model);
    let model_name = sized.as_ref().map_or("", |entry| entry.name());
    let sized = sized.and_then(|entry| built_model(&entry, &spec.model, dataset.as_ref().map(facts)));
    match sized {
        Ok(built) if problems.is_empty() => {
            let unfit = dataset.as_ref().and_then(|dataset| unfit_rows(dataset, &built).err());
            match unfit {
                Some(what) => Err(vec![typed.problem(&["data", "file"], format!("not for the model {}: {what}", model_name))]),
                None => Ok(report(spec, registry, dataset.as_ref(), &built, rows_per_agent)),
            }
        }
        Ok(_) => Err(problems),
        Err(mut wrong) => {
            wrong.at.insert(0, "model".into());
            let What::Other(sentence) = wrong.what else { return Err(problems) };
            problems.push(typed.problem_at(&wrong.at, sentence));
            Err(problems)
        }
    }
}

/// Opens a dataset and reads its first and last row.
fn open(file: &Path) -> Result<Dataset, String> {
    let dataset = Dataset::open(file).map_err(|error| match &error {
        DataError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => format!(
            "{}: there is no such file; mpibayes import makes one, and its place counts from the folder that mpibayes is started in",
            file.display()
        ),
        _ => error.to_string(),
    })?;
    for split in [Split::Train, Split::Test] {
        let ends: Vec<usize> = [0, dataset.rows(split).saturating_sub(1)].into_iter().take(dataset.rows(split)).collect();
        dataset.read_rows::<f64>(split, &ends).map_err(|error| error.to_string())?;
    }
    Ok(dataset)
}

/// Asks the model about the rows: all of them, or the first of data that take long to read.
fn unfit_rows(dataset: &Dataset, built: &Built<f64>) -> Result<(), String> {
    let at_once = (BLOCK_NUMBERS / dataset.features()).max(1);
    let mut scratch = Scratch::new();
    for split in [Split::Train, Split::Test] {
        let most = dataset.rows(split).min((CHECKED_NUMBERS / dataset.features()).max(1));
        for first in (0..most).step_by(at_once) {
            let rows: Vec<usize> = (first..(first + at_once).min(most)).collect();
            let shard = dataset.read_rows::<f64>(split, &rows).map_err(|error| error.to_string())?;
            shard.check(built.model.as_ref(), &mut scratch).map_err(|what| format!("{} rows: {what}", split.name()))?;
        }
    }
    Ok(())
}

/// The model for these data.
pub(super) fn built_model(entry: &ModelEntry, settings: &toml::Table, facts: Option<DataFacts>) -> Result<Built<f64>, Wrong> {
    // All that is asked of it is the same in either precision.
    let built = (entry.f64)(settings, facts).map_err(|error| {
        let sentence = match error {
            ConfigError::Table { cause, .. } => cause,
            other => other.to_string(),
        };
        about_a_key((entry.fields)(), sentence)
    })?;
    if facts.is_none() && built.own_rows == 0 {
        return Err(about_a_key(&[], needs_data(entry.name())));
    }
    Ok(built)
}

fn report(
    spec: RunSpec,
    registry: &Registry,
    dataset: Option<&Dataset>,
    built: &Built<f64>,
    rows_per_agent: Option<(usize, usize)>,
) -> Report {
    let data = dataset.map(|dataset| DataReport {
        path: dataset.path().to_owned(),
        task: dataset.task(),
        train: dataset.rows(Split::Train),
        test: dataset.rows(Split::Test),
        features: dataset.features(),
        classes: dataset.classes().len(),
        digest: dataset.digest().to_owned(),
    });
    let (parameters, own_rows) = (built.model.dim(), built.own_rows);
    let predicts = built.model.output() != Output::Nothing;
    let agents = usize::try_from(spec.agents).unwrap_or(usize::MAX).max(1);
    let rows_per_agent = rows_per_agent.unwrap_or((own_rows / agents, own_rows.div_ceil(agents)));
    let method = registry.method(&spec.method).ok();
    let needs = method.as_ref().map_or_else(Needs::default, |entry| (entry.needs)(&spec.method, spec.agents, parameters));
    let mut notes = method.as_ref().map_or_else(Vec::new, |entry| (entry.notes)(&spec.method, spec.agents));
    if let Some(data) = &data {
        if spec.evaluate.every > 0 && predicts && data.test == 0 {
            notes.push(
                "the data have no test rows, so no predictions are judged: import them with --test or --test-fraction".into(),
            );
        }
        if let Some(batch) = needs.minibatch.filter(|&batch| batch > rows_per_agent.0 as u64) {
            let rows = rows_per_agent.0;
            notes.push(format!(
                "a minibatch is to have {batch} rows of an agent that has {rows}: its every step takes all of them"
            ));
        }
    }
    Report {
        method: method.map_or("", |entry| entry.name()),
        model: registry.model(&spec.model).map_or("", |entry| entry.name()),
        width: match spec.precision {
            Precision::F32 => 4,
            Precision::F64 => 8,
        },
        spec,
        parameters,
        predicts,
        data,
        rows_per_agent,
        needs,
        notes,
    }
}
