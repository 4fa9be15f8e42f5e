//! From a run file to a running job: data are opened, model and method made, a driver chosen.

use super::keys::Wrong;
use super::open_data::{OpenData, wrong_data};
use super::predictions::{predictive_draws, preprocessing, test_predictions};
use super::registry::{BuildModel, LaunchMethod, Makes, MethodEntry, ModelEntry, Registry, Starts, own_rows};
use super::spec::{ClusterSpec, ConfigError, DataSpec, DrawsBy, EvaluateSpec, Precision, RunSpec};
use super::topics::{PHI, vocabulary};
use crate::cluster::mpi::World;
use crate::cluster::{self, AgentId, Checkpoint, CheckpointError, Collectives, DrawStore, Fault, JobOptions, Method, Outcome};
use crate::data::corpus::Corpus;
use crate::data::{DataError, Dataset, Partition, Shard, ShardAssignment, Split, Task};
use crate::lda::LdaSettings;
use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::methods::common::problem::OpenShard;
use crate::methods::topics::{EVALUATION_SWEEPS, OpenHeldOut, TopicEvaluation, TopicProblem};
use crate::methods::{Evaluation, Launcher, PARTICLE_PATHS, Posterior, Problem, Sharing, Shown, WithEvaluation};
use crate::models::{DataSchema, Model, Output, Part};
use crate::number::{Number, Real};
use crate::random::Seed;
use crate::results::{Grid, Kept, POSTERIOR, ResultsError, RunFolder, RunInfo, SampleGroup, SampleKind, Spool, config_file};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What ends a run before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The dataset.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Ranks see different files under one name.
    #[error(
        "{}: here this is another dataset than on rank 0 (digest {here:.12}, there {there:.12}); give every rank the same file",
        file.display()
    )]
    Copies {
        /// The file.
        file: PathBuf,
        /// Its digest on this rank.
        here: String,
        /// Its digest on rank 0.
        there: String,
    },
    /// The result file or run folder.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Predictions of rows.
    #[error("cannot predict: {0}")]
    Prediction(String),
    /// Topics of a run.
    #[error("{0}")]
    Topics(String),
    /// The run itself.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Something failed on some rank before the run began; all ranks know of it, and rank 0 shall say so.
    #[error("{0}")]
    Agreed(String),
}

/// What carries the run.
pub enum Carrier<'a> {
    /// Threads of this process.
    Threads,
    /// The ranks of an MPI job.
    Mpi(&'a World),
}

impl Carrier<'_> {
    /// Whether this process is the one that keeps the run's folder.
    fn is_root(&self) -> bool {
        self.rank() == 0
    }

    fn rank(&self) -> u32 {
        match self {
            Self::Threads => 0,
            Self::Mpi(world) => world.rank(),
        }
    }

    fn ranks(&self) -> u32 {
        match self {
            Self::Threads => 1,
            Self::Mpi(world) => world.size(),
        }
    }

    /// What rank 0 has; every rank calls this.
    pub fn of_root(&self, mine: &[u8]) -> Vec<u8> {
        match self {
            Self::Threads => mine.to_vec(),
            Self::Mpi(world) => world.broadcast_bytes(self.is_root().then(|| mine.to_vec())),
        }
    }

    /// Whether something went well on every rank; every rank calls this.
    fn agree<T>(&self, mine: Result<T, RunError>) -> Result<T, RunError> {
        match self {
            Self::Threads => mine,
            Self::Mpi(world) => world.agree(mine.map_err(|error| error.to_string())).map_err(RunError::Agreed),
        }
    }
}

/// Starts a method once it is made.
pub struct Launch<'a, F> {
    carrier: &'a Carrier<'a>,
    options: JobOptions,
    folder: &'a mut RunFolder,
    info: RunInfo,
    /// What begins, for people, and what they may not have meant.
    what: String,
    notes: Vec<String>,
    on: On<F>,
}

/// What a run is on, and what is measured on the way.
enum On<F> {
    Rows {
        evaluation: Option<Evaluation<F>>,
        dataset: Option<Arc<Dataset>>,
        /// Whether the predictions of the test rows are kept.
        predicts: bool,
    },
    Documents {
        /// Rounds between evaluations.
        every: u64,
        problem: TopicProblem,
        held_out: Option<OpenHeldOut>,
        corpus: Arc<Corpus>,
    },
}

impl<F: Real> Launcher<F> for Launch<'_, F> {
    type Outcome = Result<(), RunError>;

    fn particles<M: Method<Number = F>>(self, inner: M, model: Arc<dyn Model<F>>) -> Self::Outcome
    where
        M::Server: Posterior<F>,
    {
        self.monitored(inner, &model, SampleKind::Particles)
    }

    fn chains<M: Method<Number = F>>(mut self, inner: M, model: Arc<dyn Model<F>>) -> Self::Outcome
    where
        M::Server: Posterior<F>,
    {
        if let On::Rows { evaluation, .. } = &mut self.on {
            // Chains have their draws.
            *evaluation = evaluation.take().filter(|evaluation| evaluation.tests.is_some() || evaluation.discrepancy.is_some());
            evaluation.iter_mut().for_each(|evaluation| evaluation.particle_paths = false);
        }
        self.monitored(inner, &model, SampleKind::Chains)
    }

    fn topics<M: Method>(self, inner: M, shown: Shown) -> Self::Outcome
    where
        M::Server: Posterior<M::Number>,
    {
        let On::Documents { every, problem, held_out, corpus } = &self.on else {
            return Err(ConfigError::Contradiction("a method for documents was started on rows".into()).into());
        };
        let shape = [problem.vocabulary as usize, problem.topics as usize];
        let groups = vec![SampleGroup { name: POSTERIOR.into(), parts: vec![Part::new(PHI, &shape)], kind: SampleKind::Topics }];
        let corpus = corpus.clone();
        let at_end = move |_: &mut RunFolder, _: &Outcome| Ok(vec![vocabulary(&corpus)?]);
        match held_out {
            Some(held_out) if *every > 0 => {
                let (problem, held_out) = (problem.clone(), held_out.clone());
                let evaluator = TopicEvaluation { every: *every, problem, held_out, sweeps: EVALUATION_SWEEPS, shown };
                self.run(WithEvaluation { inner, evaluator }, groups, at_end)
            }
            _ => self.run(inner, groups, at_end),
        }
    }
}

impl<F: Real> Launch<'_, F> {
    fn monitored<M: Method<Number = F>>(self, inner: M, model: &Arc<dyn Model<F>>, kind: SampleKind) -> Result<(), RunError>
    where
        M::Server: Posterior<F>,
    {
        let On::Rows { evaluation, dataset, predicts } = &self.on else {
            return Err(ConfigError::Contradiction("a method for rows was started on documents".into()).into());
        };
        let group = |name: &str, kind| SampleGroup { name: name.into(), parts: model.parts(), kind };
        let mut groups = vec![group(POSTERIOR, kind)];
        if kind == SampleKind::Chains {
            groups.extend(EXPECTATIONS.map(|name| group(name, SampleKind::Expectation)));
        }
        if evaluation.as_ref().is_some_and(|evaluation| evaluation.particle_paths) {
            groups.push(group(PARTICLE_PATHS, SampleKind::Paths));
        }
        let (model, dataset, predicts) = (model.clone(), dataset.clone(), *predicts);
        let at_end = move |folder: &mut RunFolder, outcome: &Outcome| {
            let Some(dataset) = dataset else { return Ok(Vec::new()) };
            let mut grids = vec![preprocessing(&dataset)?];
            let wanted = predicts && dataset.rows(Split::Test) > 0 && model.output() != Output::Nothing;
            if wanted && let Some(theta) = predictive_draws(&folder.drawn(outcome)?)? {
                grids.push(test_predictions(model.as_ref(), &theta, &dataset)?);
            }
            Ok(grids)
        };
        match evaluation.clone() {
            Some(evaluator) => self.run(WithEvaluation { inner, evaluator }, groups, at_end),
            None => self.run(inner, groups, at_end),
        }
    }

    /// Runs a method to its end, or goes on with the run in the folder; keeps what `at_end` gives when the run is over.
    fn run<M: Method>(
        self,
        method: M,
        groups: Vec<SampleGroup>,
        at_end: impl FnOnce(&mut RunFolder, &Outcome) -> Result<Vec<Grid>, RunError>,
    ) -> Result<(), RunError> {
        let method = Arc::new(method);
        let root = self.carrier.is_root();
        let mut begin = || -> Result<_, RunError> {
            if !root {
                return Ok(None);
            }
            let path = self.folder.checkpoint();
            let saved = Checkpoint::read(&path)?;
            let fits = saved.as_ref().map_or(Ok(()), |saved| saved.check(self.options.name_of::<M>(), M::Number::NAME));
            fits.map_err(|cause| CheckpointError::Damaged { path, cause })?;
            self.folder.begin(&self.what, saved.as_ref(), self.info.clone(), groups.clone())?;
            self.notes.iter().for_each(|note| self.folder.say(&format!("note: {note}")));
            Ok(saved)
        };
        // What rank 0 alone finds wrong, all must know before any goes on.
        let saved = self.carrier.agree(begin())?;
        let outcome: Option<Outcome> = match self.carrier {
            Carrier::Threads => Some(cluster::threads::run(method, self.options, saved, self.folder)?),
            Carrier::Mpi(world) => cluster::mpi::run(world, method, self.options, saved, self.folder),
        };
        let Some(outcome) = outcome else { return Ok(()) };
        if outcome.finished {
            let grids = at_end(self.folder, &outcome)?;
            grids.into_iter().for_each(|grid| self.folder.keep_grid(grid));
        }
        self.folder.end(&outcome)?;
        Ok(())
    }
}

/// Runs what a run file asks for. Every rank calls this.
///
/// # Errors
/// Anything that is wrong with the run file or the data, or that ended the run.
pub fn launch(spec: &RunSpec, registry: &Registry, carrier: &Carrier, folder: &mut RunFolder) -> Result<(), RunError> {
    let opened = carrier.agree(Opened::new(spec, registry))?;
    let there = String::from_utf8_lossy(&carrier.of_root(opened.digest().as_bytes())).into_owned();
    carrier.agree(opened.is_that_of_root(there))?;
    let job = Job { opened: &opened, registry, carrier, folder };
    match (opened.model.makes, opened.method.starts, spec.precision) {
        (Makes::Rows(build, _), Starts::Rows(start, _), Precision::F32) => job.carry(on_rows(&opened, build), start),
        (Makes::Rows(_, build), Starts::Rows(_, start), Precision::F64) => job.carry(on_rows(&opened, build), start),
        (Makes::Topics(settings), Starts::Texts(start, _), Precision::F32) => job.carry(on_documents(&opened, settings), start),
        (Makes::Topics(settings), Starts::Texts(_, start), Precision::F64) => job.carry(on_documents(&opened, settings), start),
        (Makes::Rows(..), Starts::Texts(..), _) | (Makes::Topics(_), Starts::Rows(..), _) => {
            Err(ConfigError::Contradiction("method and model are for different data".into()).into())
        }
    }
}

/// A run whose names are found and whose data are open.
struct Opened {
    /// With every default.
    spec: RunSpec,
    /// The same as TOML.
    config: String,
    data: Option<OpenData>,
    model: ModelEntry,
    method: MethodEntry,
}

impl Opened {
    fn new(spec: &RunSpec, registry: &Registry) -> Result<Self, RunError> {
        let spec = resolve(spec, registry)?;
        let config = spec.to_toml().map_err(no_toml)?;
        let data = OpenData::of(spec.data.as_ref())?;
        let model = registry.model(&spec.model).map_err(|wrong| ConfigError::of("model", &[wrong]))?;
        let over = model.makes.over();
        if data.as_ref().is_some_and(|data| data.over() != over) {
            return Err(ConfigError::Table { table: "data", cause: wrong_data(model.name(), over) }.into());
        }
        let method = registry.method(&spec.method, over).map_err(|wrong| ConfigError::of("method", &[wrong]))?;
        (method.check_for)(&spec.method, spec.agents).map_err(|wrong| ConfigError::of("method", &[wrong]))?;
        Ok(Self { config, data, model, method, spec })
    }

    /// The digest of the data; empty if there are none.
    fn digest(&self) -> &str {
        self.data.as_ref().map_or("", OpenData::digest)
    }

    fn is_that_of_root(&self, there: String) -> Result<(), RunError> {
        match &self.data {
            Some(data) if data.digest() != there => {
                Err(RunError::Copies { file: data.path().to_owned(), here: data.digest().to_owned(), there })
            }
            _ => Ok(()),
        }
    }

    /// Takes the folder for this run, on rank 0; whether the run is over.
    fn enter(&self, registry: &Registry, folder: &mut RunFolder) -> Result<bool, RunError> {
        let kept = match folder.claim()? {
            Some(kept) if kept.holds_results => kept,
            kept => {
                // Nothing is lost with a run that ended before its first checkpoint, often by what is mended now.
                if kept.is_some_and(|kept| kept.config != self.config || kept.data_digest != self.digest()) {
                    folder.gives_way();
                }
                folder.keep(&self.config, self.digest())?;
                return Ok(false);
            }
        };
        if let Some(differs) = difference(&kept, folder, &self.spec, registry)? {
            return Err(ResultsError::OtherRun { folder: folder.path().to_owned(), differs }.into());
        }
        if kept.data_digest != self.digest() {
            let file = self.data.as_ref().map_or_else(String::new, |data| data.path().display().to_string());
            let here = self.digest().to_owned();
            return Err(ResultsError::OtherData { folder: folder.path().to_owned(), there: kept.data_digest, here, file }.into());
        }
        Ok(kept.finished)
    }
}

/// The run with every default written out.
///
/// # Errors
/// Where a name or a setting is wrong.
fn resolve(spec: &RunSpec, registry: &Registry) -> Result<RunSpec, ConfigError> {
    let mut spec = spec.clone();
    let model = |wrongs: &[Wrong]| ConfigError::of("model", wrongs);
    let method = |wrongs: &[Wrong]| ConfigError::of("method", wrongs);
    let entry = registry.model(&spec.model).map_err(|wrong| model(&[wrong]))?;
    spec.model = (entry.resolve)(&spec.model).map_err(|wrongs| model(&wrongs))?;
    let entry = registry.method(&spec.method, entry.makes.over()).map_err(|wrong| method(&[wrong]))?;
    spec.method = (entry.resolve)(&spec.method).map_err(|wrongs| method(&wrongs))?;
    Ok(spec)
}

fn no_toml(cause: toml::ser::Error) -> ConfigError {
    ConfigError::Contradiction(format!("the run file has no TOML form: {cause}"))
}

/// The first value in which the run in the folder differs from this one. Defaults that are newer than the folder are filled in.
fn difference(kept: &Kept, folder: &RunFolder, here: &RunSpec, registry: &Registry) -> Result<Option<String>, RunError> {
    let there = toml::from_str(&kept.config).map_err(|cause: toml::de::Error| cause.message().to_owned());
    let there = there.and_then(|there| resolve(&there, registry).map_err(|cause| cause.to_string()));
    let there = there.map_err(|cause| ResultsError::Content {
        path: config_file(folder.path()),
        what: format!(
            "this version of mpibayes cannot read the run in the folder ({cause}); choose another --output, or delete it"
        ),
    })?;
    let table = |spec: &RunSpec| toml::Table::try_from(what_counts(spec)).map_err(no_toml);
    Ok(first_difference("", &table(&there)?, &table(here)?))
}

/// A run without what changes no result: how it uses the machine, and where the data lie, whose digest is compared instead.
fn what_counts(spec: &RunSpec) -> RunSpec {
    let Collectives { float_sums, .. } = spec.cluster.collectives;
    let collectives = Collectives { float_sums, ..Collectives::default() };
    let partition = spec.data.as_ref().map(|data| data.partition.clone()).unwrap_or_default();
    // What is predicted in the end changes no draw.
    let evaluate = EvaluateSpec { predictions: true, ..spec.evaluate.clone() };
    RunSpec {
        evaluate,
        data: Some(DataSpec { file: PathBuf::new(), partition }),
        cluster: ClusterSpec { collectives, ..ClusterSpec::default() },
        ..spec.clone()
    }
}

fn first_difference(at: &str, there: &toml::Table, here: &toml::Table) -> Option<String> {
    there.keys().chain(here.keys()).find_map(|key| {
        let text = |value: Option<&toml::Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        match (there.get(key), here.get(key)) {
            (there, here) if there == here => None,
            (Some(toml::Value::Table(there)), Some(toml::Value::Table(here))) => {
                first_difference(&format!("{at}{key}."), there, here)
            }
            (there, here) => Some(format!("{at}{key}: {} there, {} here", text(there), text(here))),
        }
    })
}

/// Threads that this process may use.
fn available() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What a run is made of once its data are looked at.
struct Prepared<F, P> {
    problem: P,
    on: On<F>,
    /// How much agents have, for people.
    sizes: String,
}

/// A model for rows, and the rows.
fn on_rows<F: Real>(opened: &Opened, build: BuildModel<F>) -> Result<Prepared<F, Problem<F>>, RunError> {
    let Opened { spec, model, method, .. } = opened;
    let sharing = method.sharing;
    let dataset = opened.data.as_ref().and_then(OpenData::rows);
    let seed = Seed(spec.seed);
    let mut sizes = String::new();
    let built = build(&spec.model, dataset.map(|dataset| facts(dataset)))?;
    let (shard, tests) = match dataset {
        None if built.own_rows == 0 => return Err(ConfigError::Contradiction(needs_data(model.name())).into()),
        None => (own_rows(built.own_rows, spec.agents, sharing), None),
        Some(dataset) => {
            let agents = spec.agents as usize;
            let partition = spec.data.as_ref().map(|data| data.partition.clone()).unwrap_or_default();
            if sharing == Sharing::Everyone && partition != Partition::Equal {
                return Err(ConfigError::Table { table: "data", cause: needs_no_partition(method.name()) }.into());
            }
            let owners = sharing.owners(agents);
            let assignment = partition.assign(dataset, owners, seed)?;
            sizes = shard_sizes((0..owners).map(|owner| assignment.count(owner)), "row");
            // A model that predicts nothing has no use for test rows.
            let test = if built.model.output() == Output::Nothing { 0 } else { dataset.rows(Split::Test) };
            let slice = (test > 0).then(|| ShardAssignment::equal(Split::Test, test, agents, seed)).transpose()?;
            let train = dealt(dataset, Split::Train, assignment);
            let train: OpenShard<F> = Arc::new(move |agent| train(sharing.owner(agent)));
            (train, slice.map(|assignment| dealt(dataset, Split::Test, assignment)))
        }
    };
    let problem = Problem { model: built.model, agents: spec.agents, temperature: spec.temperature, shard };
    let EvaluateSpec { every, single, average_from, ksd, particle_paths, predictions } = spec.evaluate;
    // Shards are added up: rows that everyone has are their owner's alone.
    let discrepancy = ksd.then(|| {
        let all = problem.shard.clone();
        let once = move |agent| all(agent).map(|shard| if sharing.owner(agent) == agent { shard } else { shard.without_rows() });
        Problem { shard: Arc::new(once), ..problem.clone() }
    });
    let evaluation = Evaluation { model: problem.model.clone(), every, tests, single, average_from, discrepancy, particle_paths };
    let wanted = every > 0 && (evaluation.tests.is_some() || ksd || particle_paths);
    let on = On::Rows { evaluation: wanted.then_some(evaluation), dataset: dataset.cloned(), predicts: predictions };
    Ok(Prepared { problem, on, sizes })
}

/// The topic model, and its documents.
fn on_documents<F>(
    opened: &Opened,
    settings: fn(&toml::Table) -> Result<LdaSettings, ConfigError>,
) -> Result<Prepared<F, TopicProblem>, RunError> {
    let Opened { spec, model, .. } = opened;
    let Some(OpenData::Documents(corpus)) = &opened.data else {
        return Err(ConfigError::Contradiction(needs_data(model.name())).into());
    };
    if let Some((_, what)) = unfit_for_topics(spec).into_iter().next() {
        return Err(ConfigError::Contradiction(what).into());
    }
    let LdaSettings { topics, alpha, beta } = settings(&spec.model)?;
    let agents = spec.agents as usize;
    let partition = spec.data.as_ref().map(|data| data.partition.clone()).unwrap_or_default();
    let stretches = partition.stretches(corpus.documents(Split::Train), agents)?;
    let sizes = shard_sizes(stretches.iter().map(Range::len), "document");
    let train = corpus.clone();
    let documents = move |agent: AgentId| Ok(train.train(stretches[agent as usize].clone())?);
    let (held, test) = (corpus.documents(Split::Test), corpus.clone());
    let slice = move |agent: AgentId| {
        let agent = agent as usize;
        Ok(test.held_out(agent * held / agents..(agent + 1) * held / agents)?)
    };
    let problem =
        TopicProblem { agents: spec.agents, vocabulary: corpus.words(), topics, alpha, beta, documents: Arc::new(documents) };
    let on = On::Documents {
        every: spec.evaluate.every,
        problem: problem.clone(),
        held_out: (held > 0).then(|| Arc::new(slice) as OpenHeldOut),
        corpus: corpus.clone(),
    };
    Ok(Prepared { problem, on, sizes })
}

/// What a run file asks for that topics have not: the key, and what to say.
pub(super) fn unfit_for_topics(spec: &RunSpec) -> Vec<(&'static [&'static str], String)> {
    let EvaluateSpec { single, average_from, ksd, particle_paths, .. } = spec.evaluate;
    let of_particles = |name: &str| format!("[evaluate] {name} is for particles, and topics are none");
    let mut found: Vec<(&'static [&'static str], String)> = Vec::new();
    if spec.temperature != 1.0 {
        found.push((&["temperature"], format!("temperature = {}: topics are inferred at 1 alone", spec.temperature)));
    }
    if single {
        found.push((&["evaluate", "single"], of_particles("single")));
    }
    if average_from.is_some() {
        let what = "[evaluate] average_from is for rows: predictions of documents are averaged from the first draw on anyhow";
        found.push((&["evaluate", "average_from"], what.into()));
    }
    if ksd {
        found.push((&["evaluate", "ksd"], of_particles("ksd")));
    }
    if particle_paths {
        found.push((&["evaluate", "particle_paths"], of_particles("particle_paths")));
    }
    found
}

/// Where a run is carried out.
struct Job<'a> {
    opened: &'a Opened,
    registry: &'a Registry,
    carrier: &'a Carrier<'a>,
    folder: &'a mut RunFolder,
}

impl Job<'_> {
    /// Carries it out.
    fn carry<F: Real, P>(self, prepared: Result<Prepared<F, P>, RunError>, start: LaunchMethod<F, P>) -> Result<(), RunError> {
        let Self { opened, registry, carrier, folder } = self;
        let Opened { spec, config, model, method, .. } = opened;
        let Prepared { problem, on, sizes } = carrier.agree(prepared)?;
        // Rank 0's word counts: a shared file system may show the others an older state.
        let finished = carrier.agree(if carrier.is_root() { opened.enter(registry, folder) } else { Ok(false) })?;
        if carrier.of_root(&[u8::from(finished)]) == [1] {
            folder.already_finished();
            return Ok(());
        }
        let threads = match (spec.cluster.threads, carrier) {
            (0, Carrier::Threads) => available(),
            (0, Carrier::Mpi(_)) => 1,
            (threads, _) => threads,
        };
        let store: Option<Arc<dyn DrawStore>> = match spec.cluster.draws {
            DrawsBy::Messages => None,
            DrawsBy::Files => Some(Arc::new(Spool::new(folder.path(), carrier.rank()))),
        };
        // A second pool of the same size, where there is one already, would change nothing.
        drop(rayon::ThreadPoolBuilder::new().num_threads(threads).build_global());
        let launch = Launch {
            carrier,
            options: JobOptions {
                name: Some(method.name()),
                threads,
                dedicated: spec.cluster.dedicated,
                collectives: spec.cluster.collectives,
                store,
                ..JobOptions::new(Seed(spec.seed))
            },
            folder,
            info: RunInfo::new(method.name(), model.name(), spec.seed, opened.digest(), config),
            what: format!(
                "{} on the model {}: {}{sizes}, {} × {}{}",
                method.name(),
                model.name(),
                count(spec.agents as usize, "agent"),
                count(carrier.ranks() as usize, "rank"),
                count(threads, "thread"),
                idle(carrier.ranks(), spec)
            ),
            notes: (opened.method.notes)(&spec.method, spec.agents),
            on,
        };
        start(&spec.method, problem, launch)
    }
}

/// What to say of a partition of rows that everyone sees.
pub(super) fn needs_no_partition(method: &str) -> String {
    format!("every agent of {method} sees all rows: take partition out")
}

/// What to say where there are no data.
pub(super) fn needs_data(model: &str) -> String {
    format!("the model {model} needs data: add [data] with file = \"...\" (made by mpibayes import)")
}

/// What a model has to fit to.
pub(super) fn facts(dataset: &Dataset) -> DataSchema {
    DataSchema {
        features: dataset.features(),
        output: match dataset.task() {
            Task::Classification => Output::Classes(dataset.classes().len()),
            Task::Regression => Output::Number,
        },
    }
}

/// A number of things: `1 agent`, `4 agents`.
fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The rows of a split that were dealt to agents; each shard is read on the rank that asks for it, and once: what asks again
/// shares it.
fn dealt<F: Real>(dataset: &Arc<Dataset>, split: Split, assignment: ShardAssignment) -> OpenShard<F> {
    let dataset = dataset.clone();
    let opened: Mutex<HashMap<AgentId, Shard<F>>> = Mutex::default();
    Arc::new(move |agent| {
        // A panic of another reader leaves whole shards behind.
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = opened.get(&agent) {
            return Ok(shard.clone());
        }
        let shard: Shard<F> = dataset.read_rows(split, &assignment.rows(agent as usize))?;
        opened.insert(agent, shard.clone());
        Ok(shard)
    })
}

/// What to say of ranks that have nothing to do, for people.
fn idle(ranks: u32, spec: &RunSpec) -> String {
    let hosts = ranks.saturating_sub(u32::from(spec.cluster.dedicated && ranks > 1));
    match hosts.checked_sub(spec.agents) {
        None | Some(0) => String::new(),
        Some(idle) => format!(" ({} without an agent: agents = {hosts} would use all)", count(idle as usize, "rank")),
    }
}

/// How much agents have, for people: ` of 30 to 31 rows`.
fn shard_sizes(sizes: impl Iterator<Item = usize> + Clone, thing: &str) -> String {
    match (sizes.clone().min(), sizes.max()) {
        (Some(least), Some(most)) if least == most => format!(" of {}", count(most, thing)),
        (Some(least), Some(most)) => format!(" of {least} to {}", count(most, thing)),
        _ => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const CONFIG: &str = "[model]\nname = \"toy\"\n[method]\nname = \"svgd\"\nparticles = 5\n";

    /// The difference between a folder with this configuration and a run with that one.
    fn differs(there: &str, here: &str) -> Result<Option<String>, String> {
        let registry = Registry::default();
        let kept = Kept { config: there.into(), data_digest: String::new(), finished: false, holds_results: true };
        let folder = RunFolder::new("folder".as_ref(), std::time::Duration::MAX, false);
        let here = resolve(&toml::from_str(here).unwrap(), &registry).unwrap();
        difference(&kept, &folder, &here, &registry).map_err(|error| error.to_string())
    }

    #[test]
    fn what_changes_a_result_is_another_run_and_nothing_else_is() {
        for same in [
            "",
            "[cluster]\nthreads = 3\ndedicated = true\ncheckpoint_every = 1.0\n",
            "[cluster.collectives]\nrequests = \"broadcast\"\ninteger_sums = \"point_to_point\"\n",
            "[data]\nfile = \"elsewhere.h5\"\n",
            "[data]\nfile = \"elsewhere.h5\"\npartition = \"equal\"\n",
            "[evaluate]\nevery = 1\n",
        ] {
            assert_eq!(differs(CONFIG, &format!("{CONFIG}{same}")), Ok(None), "{same}");
            assert_eq!(differs(&format!("{CONFIG}{same}"), CONFIG), Ok(None), "{same}");
        }
        for (other, says) in [
            ("rounds = 3\n", "method.rounds: 10 there, 3 here"),
            ("optimizer = { plain = { step = 0.5 } }\n", "method.optimizer.adagrad: "),
            ("[evaluate]\nevery = 2\n", "evaluate.every: 1 there, 2 here"),
            ("[data]\nfile = \"a.h5\"\npartition = \"by_label\"\n", "data.partition: \"equal\" there, \"by_label\" here"),
            (
                "[cluster.collectives]\nfloat_sums = \"allreduce\"\n",
                "cluster.collectives.float_sums: \"point_to_point\" there, \"allreduce\" here",
            ),
        ] {
            let found = differs(CONFIG, &format!("{CONFIG}{other}")).unwrap().unwrap();
            assert!(found.starts_with(says), "{found}");
        }
    }

    #[test]
    fn defaults_of_a_newer_version_are_no_difference_and_unknown_keys_are_told() {
        let registry = Registry::default();
        let resolved = resolve(&toml::from_str(CONFIG).unwrap(), &registry).unwrap().to_toml().unwrap();
        let older: Vec<&str> = resolved.lines().filter(|line| !line.starts_with("temp") && !line.starts_with("batch")).collect();
        assert!(older.len() + 2 == resolved.lines().count());
        assert_eq!(differs(&older.join("\n"), CONFIG), Ok(None));
        let message = differs(&format!("novelty = 1\n{CONFIG}"), CONFIG).unwrap_err();
        assert!(message.contains("config.toml") && message.contains("novelty") && message.contains("--output"), "{message}");
    }
}
