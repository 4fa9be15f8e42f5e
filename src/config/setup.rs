//! From a run file to a running job: data are opened, model and method made, a driver chosen.

use super::registry::{BuildModel, LaunchMethod, MethodEntry, ModelEntry, Registry, own_rows};
use super::spec::{ConfigError, Precision, RunSpec};
use crate::cluster::mpi::World;
use crate::cluster::{self, Checkpoint, CheckpointError, Fault, Method, Outcome, Plan};
use crate::data::{DataError, Dataset, Partition, Split, Task};
use crate::methods::problem::OpenShard;
use crate::methods::{Launcher, Monitored, Posterior, Problem, Tests};
use crate::models::{DataFacts, Model, Output};
use crate::number::Real;
use crate::random::Seed;
use crate::results::{ResultsError, RunFolder, RunInfo, Stage};
use std::sync::Arc;

/// What ends a run before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The dataset.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The result file or run folder.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
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
        match self {
            Self::Threads => true,
            Self::Mpi(world) => world.rank() == 0,
        }
    }

    /// What rank 0 answers; every rank calls this.
    fn of_root(&self, mine: bool) -> bool {
        match self {
            Self::Threads => mine,
            Self::Mpi(world) => world.broadcast_bytes(self.is_root().then(|| vec![u8::from(mine)])) == [1],
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
    plan: Plan,
    folder: &'a mut RunFolder,
    info: RunInfo,
    tests: Option<Tests<F>>,
}

impl<F: Real> Launcher<F> for Launch<'_, F> {
    type Outcome = Result<(), RunError>;

    fn particles<M: Method<Number = F>>(self, inner: M, model: Arc<dyn Model<F>>) -> Self::Outcome
    where
        M::Server: Posterior<F>,
    {
        match &self.tests {
            Some(Tests { slice, every }) => {
                let method = Monitored { inner, model: model.clone(), slice: slice.clone(), every: *every };
                self.run(method, model.as_ref())
            }
            None => self.run(inner, model.as_ref()),
        }
    }
}

impl<F: Real> Launch<'_, F> {
    /// Runs a method to its end, or goes on with the run in the folder.
    fn run<M: Method<Number = F>>(self, method: M, model: &dyn Model<F>) -> Result<(), RunError> {
        let method = Arc::new(method);
        let saved = if self.carrier.is_root() { Checkpoint::<M>::read(&self.folder.checkpoint())? } else { None };
        self.folder.begin(saved.as_ref());
        let outcome: Option<Outcome> = match self.carrier {
            Carrier::Threads => Some(cluster::threads::run(method, self.plan, saved, self.folder)?),
            Carrier::Mpi(world) => cluster::mpi::run(world, method, self.plan, saved, self.folder),
        };
        if let Some(outcome) = outcome {
            self.folder.end(&outcome, &self.info, &model.parts())?;
        }
        Ok(())
    }
}

/// Runs what a run file asks for. Every rank calls this.
///
/// # Errors
/// Anything that is wrong with the run file or the data, or that ended the run.
pub fn launch(spec: &RunSpec, registry: &Registry, carrier: &Carrier, folder: &mut RunFolder) -> Result<(), RunError> {
    let checked = || {
        let resolved = resolve(spec, registry)?;
        // Rank 0's word counts: a shared file system may show the others an older state.
        let stage = if carrier.is_root() { folder.stage(&resolved)? } else { Stage::New };
        Ok((resolved, stage, registry.model(&spec.model)?, registry.method(&spec.method)?))
    };
    let (resolved, stage, model, method) = carrier.agree(checked())?;
    if carrier.of_root(stage == Stage::Finished) {
        folder.already_finished();
        return Ok(());
    }
    match spec.precision {
        Precision::F32 => carry(spec, &resolved, carrier, folder, &model, model.f32, &method, method.f32),
        Precision::F64 => carry(spec, &resolved, carrier, folder, &model, model.f64, &method, method.f64),
    }
}

/// The run file as TOML with every default written out.
///
/// # Errors
/// Where a name or a setting is wrong.
pub fn resolve(spec: &RunSpec, registry: &Registry) -> Result<String, ConfigError> {
    let mut spec = spec.clone();
    spec.model = (registry.model(&spec.model)?.resolve)(&spec.model)?;
    spec.method = (registry.method(&spec.method)?.resolve)(&spec.method)?;
    spec.to_toml().map_err(|cause| ConfigError::Contradiction(format!("the run file has no TOML form: {cause}")))
}

/// Threads that this process may use.
fn available() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A run in one precision.
#[expect(clippy::too_many_arguments, reason = "the two halves of the match on precision, written once")]
fn carry<F: Real>(
    spec: &RunSpec,
    resolved: &str,
    carrier: &Carrier,
    folder: &mut RunFolder,
    model: &ModelEntry,
    build: BuildModel<F>,
    method: &MethodEntry,
    start: LaunchMethod<F>,
) -> Result<(), RunError> {
    let seed = Seed(spec.seed);
    let prepare = || {
        let dataset = spec.data.as_ref().map(|data| Dataset::open(&data.file)).transpose()?.map(Arc::new);
        let facts = dataset.as_ref().map(|dataset| DataFacts {
            features: dataset.features(),
            output: match dataset.task() {
                Task::Classification => Output::Classes(dataset.classes().len()),
                Task::Regression => Output::Number,
            },
        });
        let built = build(&spec.model, facts)?;
        let (shard, slice, digest) = match dataset {
            None if built.own_rows == 0 => {
                return Err(ConfigError::Contradiction(format!(
                    "the model {} needs data: add [data] with file = \"...\" (made by mpibayes import)",
                    model.name()
                ))
                .into());
            }
            None => (own_rows(built.own_rows, spec.agents), None, String::new()),
            Some(dataset) => {
                let shard = dealt(&dataset, Split::Train, spec.agents, seed)?;
                let judged = spec.evaluate.every > 0 && dataset.rows(Split::Test) > 0;
                let test = if judged { Some(dealt(&dataset, Split::Test, spec.agents, seed)?) } else { None };
                (shard, test, dataset.digest().to_owned())
            }
        };
        let problem = Problem { model: built.model, agents: spec.agents, temperature: spec.temperature, shard };
        let every = spec.evaluate.every;
        let tests = slice.map(|slice| Tests { slice, every });
        if carrier.is_root() {
            folder.claim(resolved)?;
        }
        Ok((problem, tests, digest))
    };
    let (problem, tests, digest) = carrier.agree(prepare())?;
    let threads = if spec.cluster.threads > 0 {
        spec.cluster.threads
    } else {
        match carrier {
            Carrier::Threads => available(),
            Carrier::Mpi(_) => 1,
        }
    };
    // A second pool of the same size, where there is one already, would change nothing.
    drop(rayon::ThreadPoolBuilder::new().num_threads(threads).build_global());
    let launch = Launch {
        carrier,
        plan: Plan { seed, threads, dedicated: spec.cluster.dedicated, collectives: spec.cluster.collectives },
        folder,
        info: RunInfo::new(method.name(), model.name(), spec.seed, &digest, resolved),
        tests,
    };
    start(&spec.method, problem, launch)
}

/// The rows of a split, dealt to agents in equal random shards; each is read on the rank that asks for it.
fn dealt<F: Real>(dataset: &Arc<Dataset>, split: Split, agents: u32, seed: Seed) -> Result<OpenShard<F>, DataError> {
    let deal = Partition::Equal.deal(split, dataset.rows(split), agents as usize, seed)?;
    let dataset = dataset.clone();
    Ok(Arc::new(move |agent| Ok(dataset.read_rows(split, &deal.rows(agent as usize))?)))
}
