//! Everything about a run that can be told without starting it: what is wrong, and what it would take.

use super::keys::{What, Wrong};
use super::open_data::{OpenData, wrong_data};
use super::registry::{Makes, ModelEntry, Over, Registry, about_a_key};
use super::setup::{facts, needs_data, needs_no_partition, unfit_for_topics};
use super::spec::{ConfigError, Precision, RunSpec};
use super::typed::{Problem, Typed};
use crate::data::{DataError, Dataset, Partition, Split, Task};
use crate::methods::{DocumentBytes, Needs, Sharing};
use crate::models::{BuiltModel, DataSchema, Output, Scratch};
use crate::random::Seed;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Numbers of a split that the model is asked about, less than a tenth of a second's reading, and how many are read at once.
const CHECKED_NUMBERS: usize = 1 << 22;
const BLOCK_NUMBERS: usize = 1 << 20;

/// What data say about themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct DataReport {
    /// The file.
    pub path: PathBuf,
    /// What they are made of.
    pub content: DataContent,
    /// Training rows or documents.
    pub train: usize,
    /// Test rows, or documents that are held out.
    pub test: usize,
    /// The digest of their content.
    pub digest: String,
}

/// What data are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataContent {
    /// Rows.
    Rows {
        /// Classes or numbers.
        task: Task,
        /// Numbers in a row.
        features: usize,
        /// How many classes; 0 for regression.
        classes: usize,
    },
    /// Documents.
    Documents {
        /// W, the size of the vocabulary.
        words: u32,
        /// Tokens of the training documents.
        tokens: u64,
        /// Different words of each of them, in all.
        entries: usize,
    },
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
    /// Training rows or documents of the agents with the fewest and the most.
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
        let rows = self.rows_per_agent.1 as u64;
        let own = match self.data.as_ref().map(|data| (data.content, data.train as u64)) {
            None => rows.saturating_mul(2 * self.width),
            Some((DataContent::Rows { features, .. }, _)) => rows.saturating_mul(features as u64 + 1).saturating_mul(self.width),
            Some((DataContent::Documents { tokens, entries, .. }, documents)) => {
                let DocumentBytes { document, entry, token } = self.needs.of_documents;
                let all = document as f64 * documents as f64 + entry as f64 * entries as f64 + token as f64 * tokens as f64;
                (all * rows as f64 / documents.max(1) as f64) as u64
            }
        };
        Some(own.saturating_add(self.needs.numbers_of_agent?.saturating_mul(self.width)))
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
    let mut data = None;
    if let Some(file) = file {
        match open(file) {
            Ok(opened) => data = Some(opened),
            Err(error) => problems.push(typed.problem(&["data", "file"], error)),
        }
    }
    let sharing = spec.as_ref().map_or(Sharing::Dealt, |spec| {
        let method = registry.method(&spec.method, registry.over(&spec.model));
        method.map_or(Sharing::Dealt, |method| method.sharing)
    });
    if let (Some(data), Some(agents), Sharing::Dealt) =
        (&data, typed.table().get("agents").and_then(toml::Value::as_integer), sharing)
    {
        let (rows, thing) = (data.len(Split::Train), data.thing());
        if usize::try_from(agents).is_ok_and(|agents| agents > rows) {
            let what = format!("{agents} agents cannot share {rows} training {thing}s: ask for 1 to {rows} agents");
            problems.push(typed.problem(&["agents"], what));
        }
    }
    let (Some(spec), true) = (spec, data.is_some() == file.is_some()) else { return Err(problems) };
    let Ok(model) = registry.model(&spec.model) else { return Err(problems) };
    let over = model.makes.over();
    if data.as_ref().is_some_and(|data| data.over() != over) {
        problems.push(typed.problem(&["data", "file"], wrong_data(model.name(), over)));
        return Err(problems);
    }
    let mut rows_per_agent = None;
    if let (Some(opened), Some(data), true) = (&data, &spec.data, problems.is_empty()) {
        let agents = usize::try_from(spec.agents).unwrap_or(usize::MAX);
        if sharing == Sharing::Everyone && data.partition != Partition::Equal {
            let method = spec.method.get("name").and_then(toml::Value::as_str).unwrap_or_default();
            problems.push(typed.problem(&["data", "partition"], needs_no_partition(method)));
        } else {
            match sizes(opened, &data.partition, sharing.owners(agents), Seed(spec.seed)) {
                Ok(sizes) => rows_per_agent = sizes.iter().copied().min().zip(sizes.iter().copied().max()),
                Err(error) => problems.push(typed.problem(&["data", "partition"], error.to_string())),
            }
        }
    }
    if let Ok(method) = registry.method(&spec.method, over)
        && let Err(mut wrong) = (method.check_for)(&spec.method, spec.agents)
    {
        wrong.at.insert(0, "method".into());
        if let What::Other(sentence) = wrong.what {
            problems.push(typed.problem_at(&wrong.at, sentence));
        }
    }
    if over == Over::Texts {
        problems.extend(unfit_for_topics(&spec).into_iter().map(|(at, what)| typed.problem(at, what)));
    }
    match sized(&model, &spec.model, data.as_ref()) {
        Ok(sized) if problems.is_empty() => match sized.unfit {
            Some(what) => Err(vec![typed.problem(&["data", "file"], format!("not for the model {}: {what}", model.name()))]),
            None => Ok(report(spec, registry, data.as_ref(), &sized, rows_per_agent)),
        },
        Ok(_) => Err(problems),
        Err(mut wrong) => {
            wrong.at.insert(0, "model".into());
            let What::Other(sentence) = wrong.what else { return Err(problems) };
            problems.push(typed.problem_at(&wrong.at, sentence));
            Err(problems)
        }
    }
}

/// What a model says of its size for the data at hand.
struct Sized {
    parameters: usize,
    predicts: bool,
    own_rows: usize,
    /// What is wrong with the rows.
    unfit: Option<String>,
}

fn sized(model: &ModelEntry, settings: &toml::Table, data: Option<&OpenData>) -> Result<Sized, Wrong> {
    if let Makes::Topics(topics) = model.makes {
        let Some(OpenData::Documents(corpus)) = data else { return Err(about_a_key(&[], needs_data(model.name()))) };
        let topics = topics(settings).map_err(|error| about_a_key((model.fields)(), error.to_string()))?.topics;
        let parameters = corpus.words() as usize * topics as usize;
        return Ok(Sized { parameters, predicts: true, own_rows: 0, unfit: None });
    }
    let dataset = data.and_then(OpenData::rows);
    let built = built_model(model, settings, dataset.map(|dataset| facts(dataset)))?;
    Ok(Sized {
        parameters: built.model.dim(),
        predicts: built.model.output() != Output::Nothing,
        own_rows: built.own_rows,
        unfit: dataset.and_then(|dataset| unfit_rows(dataset, &built).err()),
    })
}

/// How many rows or documents each agent gets.
fn sizes(data: &OpenData, partition: &Partition, agents: usize, seed: Seed) -> Result<Vec<usize>, DataError> {
    match data {
        OpenData::Rows(dataset) => {
            let assignment = partition.assign(dataset, agents, seed)?;
            Ok((0..agents).map(|agent| assignment.count(agent)).collect())
        }
        OpenData::Documents(corpus) => {
            Ok(partition.stretches(corpus.documents(Split::Train), agents)?.iter().map(Range::len).collect())
        }
    }
}

/// Opens data and reads the first and the last of each split.
fn open(file: &Path) -> Result<OpenData, String> {
    let data = OpenData::open(file).map_err(|error| match &error {
        DataError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => format!(
            "{}: there is no such file; mpibayes import makes one, and its place counts from the folder that mpibayes is started in",
            file.display()
        ),
        _ => error.to_string(),
    })?;
    let read = || -> Result<(), DataError> {
        for split in [Split::Train, Split::Test] {
            let all = data.len(split);
            let ends = [0, all.saturating_sub(1)].into_iter().take(all);
            match &data {
                OpenData::Rows(dataset) => drop(dataset.read_rows::<f64>(split, &ends.collect::<Vec<_>>())?),
                OpenData::Documents(corpus) => {
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
    };
    read().map_err(|error| error.to_string())?;
    Ok(data)
}

/// Asks the model about the rows: all of them, or the first of data that take long to read.
fn unfit_rows(dataset: &Dataset, built: &BuiltModel<f64>) -> Result<(), String> {
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
pub(super) fn built_model(
    entry: &ModelEntry,
    settings: &toml::Table,
    facts: Option<DataSchema>,
) -> Result<BuiltModel<f64>, Wrong> {
    // All that is asked of it is the same in either precision.
    let Makes::Rows(_, build) = entry.makes else {
        return Err(about_a_key(&[], wrong_data(entry.name(), entry.makes.over())));
    };
    let built = build(settings, facts).map_err(|error| {
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
    data: Option<&OpenData>,
    sized: &Sized,
    rows_per_agent: Option<(usize, usize)>,
) -> Report {
    let thing = data.map_or("row", OpenData::thing);
    let data = data.map(|data| DataReport {
        path: data.path().to_owned(),
        content: match data {
            OpenData::Rows(dataset) => {
                DataContent::Rows { task: dataset.task(), features: dataset.features(), classes: dataset.classes().len() }
            }
            OpenData::Documents(corpus) => DataContent::Documents {
                words: corpus.words(),
                tokens: corpus.tokens(Split::Train),
                entries: corpus.entries(Split::Train),
            },
        },
        train: data.len(Split::Train),
        test: data.len(Split::Test),
        digest: data.digest().to_owned(),
    });
    let Sized { parameters, own_rows, predicts, .. } = *sized;
    let agents = usize::try_from(spec.agents).unwrap_or(usize::MAX).max(1);
    let method = registry.method(&spec.method, registry.over(&spec.model)).ok();
    let owners = method.as_ref().map_or(agents, |method| method.sharing.owners(agents));
    let rows_per_agent = rows_per_agent.unwrap_or((own_rows / owners, own_rows.div_ceil(owners)));
    let needs = method.as_ref().map_or_else(Needs::default, |entry| (entry.needs)(&spec.method, spec.agents, parameters));
    let mut notes = method.as_ref().map_or_else(Vec::new, |entry| (entry.notes)(&spec.method, spec.agents));
    if let Some(data) = &data {
        if spec.evaluate.every > 0 && predicts && data.test == 0 {
            notes.push(format!(
                "the data have no test {thing}s, so no predictions are judged: import them with {}",
                if thing == "row" { "--test or --test-fraction" } else { "--test-documents or --test-fraction" }
            ));
        }
        if let Some(batch) = needs.minibatch.filter(|&batch| batch > rows_per_agent.0 as u64) {
            let rows = rows_per_agent.0;
            notes.push(format!(
                "a minibatch is to have {batch} {thing}s of an agent that has {rows}: its every step takes all of them"
            ));
        }
    }
    Report {
        method: method.map_or("", |entry| entry.name()),
        model: registry.model(&spec.model).map_or("", |entry| entry.name()),
        width: needs.bytes_of_number.unwrap_or(match spec.precision {
            Precision::F32 => 4,
            Precision::F64 => 8,
        }),
        spec,
        parameters,
        predicts,
        data,
        rows_per_agent,
        needs,
        notes,
    }
}
