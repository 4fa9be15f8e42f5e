//! The sections of a run file as types: top-level keys, `[data]`, `[evaluate]` and `[cluster]`.
//!
//! Runs on tables and runs on corpora have types of their own where they take different keys. `[model]` and `[method]` are the settings of
//! the model and the method that they name.

use crate::cluster::Collectives;
use crate::data::{Partition, Split};
use crate::settings::{KeyError, in_range};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The section that turns a run file into a sweep.
pub const SWEEP: &str = "sweep";

/// The floating-point type that a run computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Single precision, for networks and topic models.
    Float32,
    /// Double precision.
    #[default]
    Float64,
}

/// The top-level keys of the run file, for a run on a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct TableRunSettings {
    /// The seed of all random numbers. The same seed gives the same draws, bit for bit, except with asynchronous methods and with
    /// float_sums = "allreduce".
    pub seed: u64,
    /// The floating-point type of parameters and features: "float32" or "float64".
    pub dtype: Dtype,
    /// The number of agents (K). Each agent holds a shard of the training rows, or a chain that sees all of them, as the method defines.
    /// It is independent of the number of MPI ranks.
    pub agents: u32,
    /// The temperature of the posterior p0(θ) exp(-loss(θ)/temperature). 1 is Bayes' rule; larger values give the data less weight.
    pub temperature: f64,
}

impl Default for TableRunSettings {
    fn default() -> Self {
        Self { seed: 1, dtype: Dtype::default(), agents: 1, temperature: 1.0 }
    }
}

/// The top-level keys of the run file, for a run on a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct CorpusRunSettings {
    /// The seed of all random numbers. The same seed gives the same draws, bit for bit, except with asynchronous methods and with
    /// float_sums = "allreduce".
    pub seed: u64,
    /// The floating-point type of topics: "float32", which is precise enough, or "float64".
    pub dtype: Dtype,
    /// The number of agents, each with a share of the documents. It is independent of the number of MPI ranks.
    pub agents: u32,
}

impl Default for CorpusRunSettings {
    fn default() -> Self {
        Self { seed: 1, dtype: Dtype::Float32, agents: 1 }
    }
}

/// What the top-level keys of all run files have in common.
pub trait RunSettings {
    /// The seed of all random numbers.
    fn seed(&self) -> u64;
    /// The floating-point type.
    fn dtype(&self) -> Dtype;
    /// The number of agents.
    fn agents(&self) -> u32;
    /// Values that no run can have.
    fn mistakes(&self) -> Vec<KeyError> {
        let agents = in_range("agents", self.agents(), self.agents() > 0, "at least 1");
        [agents, self.check_own()].into_iter().filter_map(Result::err).collect()
    }

    /// Checks the keys that only these runs have.
    ///
    /// # Errors
    /// If a value is out of its range.
    fn check_own(&self) -> Result<(), KeyError> {
        Ok(())
    }
}

impl RunSettings for TableRunSettings {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn agents(&self) -> u32 {
        self.agents
    }

    fn check_own(&self) -> Result<(), KeyError> {
        let temperature = self.temperature;
        in_range("temperature", temperature, temperature.is_finite() && temperature > 0.0, "a positive number")
    }
}

impl RunSettings for CorpusRunSettings {
    fn seed(&self) -> u64 {
        self.seed
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn agents(&self) -> u32 {
        self.agents
    }
}

/// `[data]` of a run whose agents split the rows of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct TableData {
    /// A dataset made by `mpibayes import`. A relative path counts from the folder in which mpibayes is started.
    pub file: PathBuf,
    /// Which agent gets which training rows: "equal" random shards, "by_label", { sizes = [0.7, 0.3] }, { labels = [["a"], ["b", "c"]] },
    /// { label_share = 0.8 } or { dirichlet = 0.5 }.
    #[serde(default)]
    pub partition: Partition,
    /// The seed of the choice of rows for each agent, so that runs with other seeds have the same shards. Not set: the seed of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// `[data]` of a run whose agents all see the whole table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ReplicatedTableData {
    /// A dataset made by `mpibayes import`. Every agent sees all of its training rows.
    pub file: PathBuf,
}

/// `[data]` of a run on a corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct CorpusData {
    /// A corpus made by `mpibayes import`. A relative path counts from the folder in which mpibayes is started.
    pub file: PathBuf,
    /// How many documents each agent gets: "equal", or in proportion, { sizes = [0.7, 0.3] }.
    #[serde(default)]
    pub partition: CorpusPartition,
}

/// How many documents each agent gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorpusPartition {
    /// Equal numbers.
    #[default]
    Equal,
    /// Numbers in proportion to these.
    Sizes(Vec<f64>),
}

impl CorpusPartition {
    /// The relative sizes, if they are given.
    pub fn sizes(&self) -> Option<&[f64]> {
        match self {
            Self::Equal => None,
            Self::Sizes(sizes) => Some(sizes),
        }
    }
}

/// `[evaluate]` of a run on a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct TableEvaluation {
    /// Rounds between evaluations on the test rows. The last round is evaluated too. 0 evaluates nothing. The time of an evaluation does
    /// not count as time of the run. If not set, the run is evaluated
    /// at most twenty times.
    pub every: Option<u64>,
    /// Whether each particle's own predictions are evaluated, beside their average.
    pub per_particle: bool,
    /// The first round whose predictions enter an average over evaluations, which suits chains. Not set: no such average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_from: Option<u64>,
    /// Whether the kernelized Stein discrepancy between the particles and the posterior is computed. It needs the gradient of all rows.
    pub ksd: bool,
    /// Whether the particles of every evaluated round are kept, instead of those of the last round only. Chains keep their draws anyway.
    pub particle_paths: bool,
    /// Whether the predictions for the test rows are kept in the result file.
    pub predictions: bool,
    /// Whether the log-likelihood of every training row at every draw is kept, for cross-validation (`mpibayes compare`, ArviZ): 8 bytes for
    /// each row and draw. Regressions keep a target drawn from the model as well, for posterior predictive checks: another 8 bytes.
    pub pointwise: bool,
    /// The rows that `pointwise` is about: `train`, for cross-validation, or `test`.
    pub pointwise_rows: Split,
    /// Whether the bias of the draws is measured after the last round. It takes the gradient of all rows at 1.5 d + 8 draws for d parameters,
    /// but at least 100, and 400 where rows are few. For more than 300 parameters only the spread of each variable is measured, which
    /// takes about a second. `mpibayes judge` measures what was not measured here.
    pub bias: bool,
}

impl Default for TableEvaluation {
    fn default() -> Self {
        Self {
            every: None,
            per_particle: false,
            average_from: None,
            ksd: false,
            particle_paths: false,
            predictions: true,
            pointwise: false,
            pointwise_rows: Split::Train,
            bias: true,
        }
    }
}

/// `[evaluate]` of a run on a corpus.
#[derive(Default, Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct CorpusEvaluation {
    /// Rounds between evaluations on the held-out documents. The last round is evaluated too. 0 evaluates nothing. An evaluation can take
    /// longer than a round. If not set, the run is evaluated at most twenty times.
    pub every: Option<u64>,
}

/// Evaluations of a run whose file does not say how many rounds are between them.
const EVALUATIONS: u64 = 20;

/// Rounds between evaluations: as the run file has it, or so that a run of `rounds` rounds has at most twenty. 0 for none.
pub fn evaluation_interval(every: Option<u64>, rounds: Option<u64>) -> u64 {
    every.unwrap_or_else(|| rounds.unwrap_or(1).div_ceil(EVALUATIONS).max(1))
}

/// `[cluster]`: how the run uses the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// Threads on each rank. 0 chooses: 1 under mpirun or srun, all cores without.
    pub threads: usize,
    /// Whether rank 0 only coordinates and hosts no agents.
    pub dedicated: bool,
    /// Seconds between checkpoints. The first one comes after ten seconds at the latest.
    pub checkpoint_every: f64,
    /// How draws reach the result file: as "messages" to rank 0, or in "files", which the ranks write themselves and rank 0 collects at
    /// checkpoints. Files suit many or large draws.
    pub draw_transport: DrawTransport,
    /// Which MPI collectives are used: requests = "broadcast"; integer_sums = "allreduce" or "point_to_point", where "auto" leaves out the
    /// zeros of large sums; float_sums = "allreduce", with which the last bits of the draws depend on the number of ranks.
    pub collectives: Collectives,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            threads: 0,
            dedicated: false,
            checkpoint_every: 300.0,
            draw_transport: DrawTransport::default(),
            collectives: Collectives::default(),
        }
    }
}

impl ClusterSettings {
    /// Values that no run can have.
    pub(super) fn mistakes(&self) -> Vec<KeyError> {
        let (threads, every) = (self.threads, self.checkpoint_every);
        let threads = in_range("threads", threads, threads <= MAX_THREADS, &format!("at most {MAX_THREADS}"));
        let every = in_range("checkpoint_every", every, every.is_finite() && every > 0.0, "a positive number of seconds");
        [threads, every].into_iter().filter_map(Result::err).collect()
    }
}

/// More threads on a rank are a typing mistake: no machine has as many cores.
const MAX_THREADS: usize = 4096;

/// How draws reach the result file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrawTransport {
    /// In messages to rank 0, after the responses.
    #[default]
    Messages,
    /// In files that each rank writes, and that rank 0 collects at each checkpoint.
    Files,
}
