//! The run file: TOML with every key in its place, overrides on top, unknown keys refused.

use super::keys::{Docs, What, Wrong};
use super::registry::{Registry, toml_value};
use super::typed::{Problem, Typed};
use crate::cluster::Collectives;
use crate::data::Partition;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A run as it was typed, defaults filled in. The tables of model and method are read by whoever bears the name in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The root of all random numbers.
    #[serde(default = "one")]
    pub seed: u64,
    /// What the model computes in.
    #[serde(default)]
    pub precision: Precision,
    /// How many agents share the data; says nothing about ranks.
    #[serde(default = "one_agent")]
    pub agents: u32,
    /// α in p(θ) ∝ p0(θ) exp(−loss/α): 1 for Bayes' rule; above it the data count less.
    #[serde(default = "unit")]
    pub temperature: f64,
    /// The data; models that bring their own need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSpec>,
    /// The model: `name`, and its settings.
    pub model: toml::Table,
    /// The method: `name`, and its settings.
    pub method: toml::Table,
    /// What is measured on the way.
    #[serde(default)]
    pub evaluate: EvaluateSpec,
    /// How the run uses the machine; changes no result.
    #[serde(default)]
    pub cluster: ClusterSpec,
}

/// Which data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// A dataset made by `mpibayes import`.
    pub file: PathBuf,
    /// Which agent gets which of its training rows.
    #[serde(default)]
    pub partition: Partition,
}

impl DataSpec {
    /// What each key means.
    pub const DOCS: Docs = &[
        ("file", "a dataset made by `mpibayes import`"),
        (
            "partition",
            "which agent gets which training rows: \"equal\" random shares, \"by_label\", { sizes = [...] }, { labels = [[...], ...] }, \
             { label_share = 0.8 } or { dirichlet = 0.5 }",
        ),
    ];
}

/// What is measured on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateSpec {
    /// Rounds between evaluations; 0 for none at all. With any other number the last round is evaluated too.
    pub every: u64,
    /// Whether each particle's own predictions are judged beside their average.
    pub single: bool,
    /// The first round from which on predictions are averaged over evaluations as well, as those of chains should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_from: Option<u64>,
    /// Whether the kernelized Stein discrepancy of the particles from the posterior is measured; takes the gradient of all rows.
    pub ksd: bool,
    /// Whether the particles of all evaluated rounds are kept, and not the last alone.
    pub particle_paths: bool,
    /// Whether the predictions of the test rows are kept.
    pub predictions: bool,
}

impl Default for EvaluateSpec {
    fn default() -> Self {
        Self { every: 1, single: false, average_from: None, ksd: false, particle_paths: false, predictions: true }
    }
}

impl EvaluateSpec {
    /// What each key means.
    pub const DOCS: Docs = &[
        ("every", "rounds between evaluations, on the test rows where there are any, outside the history's clock; 0 for none"),
        ("single", "whether each particle's own predictions are judged beside their average"),
        (
            "average_from",
            "the round from which on predictions are also averaged over the evaluations so far, as those of chains should be: at no \
             more memory than the predictions themselves; not by default",
        ),
        ("ksd", "whether the kernelized Stein discrepancy from the posterior is measured; takes the gradient of all rows"),
        ("particle_paths", "whether the particles of all evaluated rounds are kept, and not the last alone"),
        ("predictions", "whether the predictions of the test rows are kept"),
    ];
}

/// How the run uses the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSpec {
    /// Threads on each rank; 0 for as many as the rank may use.
    pub threads: usize,
    /// Whether rank 0 keeps free of agents.
    pub dedicated: bool,
    /// Seconds between checkpoints.
    pub checkpoint_every: f64,
    /// What goes by MPI's collectives rather than point-to-point.
    pub collectives: Collectives,
    /// How the draws of agents reach the result file.
    pub draws: DrawsBy,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            threads: 0,
            dedicated: false,
            checkpoint_every: 300.0,
            collectives: Collectives::default(),
            draws: DrawsBy::default(),
        }
    }
}

/// How the draws of agents reach the result file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrawsBy {
    /// To rank 0, behind the reports of tasks.
    #[default]
    Messages,
    /// Each rank writes those of its agents to files of its own, which rank 0 collects at each checkpoint.
    Files,
}

impl ClusterSpec {
    /// What each key means.
    pub const DOCS: Docs = &[
        ("threads", "threads on each rank; 0: one under a launcher, all cores without"),
        ("dedicated", "whether rank 0 keeps free of agents"),
        ("checkpoint_every", "seconds between checkpoints; the first is asked for after ten at most"),
        (
            "collectives",
            "what goes by MPI's collectives: requests = \"broadcast\", sums = \"allreduce\"; with float_sums = \"allreduce\" bits depend \
             on the number of ranks",
        ),
        (
            "draws",
            "how draws reach the result file: \"messages\" to rank 0, or \"files\", which ranks write themselves and rank 0 collects at \
             checkpoints: for many or large draws",
        ),
    ];
}

/// What a model computes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision: networks.
    F32,
    /// Double precision.
    #[default]
    F64,
}

fn one() -> u64 {
    1
}

fn unit() -> f64 {
    1.0
}

fn one_agent() -> u32 {
    1
}

/// Says where all mistakes are listed.
fn more(problems: usize) -> String {
    match problems {
        0 | 1 => String::new(),
        problems => format!(" (the first of {problems} mistakes: mpibayes check lists all)"),
    }
}

/// What is wrong with a run file or an override.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the run file {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}, line {line}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What the reader of TOML says.
        what: String,
    },
    /// What rank 0 sent is no run.
    #[error("the run file of rank 0: {0}")]
    Sent(toml::de::Error),
    /// The file is TOML, but no run: the first mistake, and how many there are.
    #[error("{}{}", .0.first().map(ToString::to_string).unwrap_or_default(), more(.0.len()))]
    Problems(Vec<Problem>),
    /// The key of an override leads nowhere.
    #[error("--set {key}: {what}; write it like --set method.rounds=20")]
    Override {
        /// What was typed before the '='.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// A table's settings are wrong.
    #[error("[{table}]: {cause}")]
    Table {
        /// `model` or `method`.
        table: &'static str,
        /// What is wrong.
        cause: String,
    },
    /// What was named is none.
    #[error("{}: this is {is}", path.display())]
    NoRunFile {
        /// What was named.
        path: PathBuf,
        /// What it is, and what to do.
        is: &'static str,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Contradiction(String),
}

impl ConfigError {
    /// Mistakes in a table that is not known as it was typed, such as that of a run's folder.
    pub(super) fn of(table: &'static str, wrongs: &[Wrong]) -> Self {
        let sentences: Vec<String> = wrongs.iter().map(ToString::to_string).collect();
        Self::Table { table, cause: sentences.join("; ") }
    }
}

/// An override: a key with dots, and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    key: String,
    value: String,
}

impl Assignment {
    /// From `key=value`.
    pub fn parse(typed: &str) -> Option<Self> {
        let (key, value) = typed.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        (!key.is_empty()).then(|| Self { key: key.into(), value: value.into() })
    }

    /// The parts of the key.
    pub(super) fn keys(&self) -> Vec<String> {
        self.key.split('.').map(str::to_owned).collect()
    }

    /// Lays it on a table.
    pub(super) fn apply(&self, table: &mut toml::Table) -> Result<(), ConfigError> {
        let wrong = |what: String| ConfigError::Override { key: self.key.clone(), what };
        // What is not TOML is a plain string, so that names need no quotes.
        let value = toml_value(&self.value).unwrap_or_else(|| toml::Value::String(self.value.clone()));
        let keys = self.keys();
        if keys.iter().any(String::is_empty) {
            return Err(wrong("its key has an empty part".into()));
        }
        lay(table, &keys, value).map_err(|part| wrong(format!("'{part}' is a value, not a table")))
    }
}

impl std::fmt::Display for Assignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Puts a value under a key of several parts, making the tables on the way.
///
/// # Errors
/// The part that is a value and no table.
pub(super) fn lay(table: &mut toml::Table, keys: &[String], value: toml::Value) -> Result<(), String> {
    let Some((last, before)) = keys.split_last() else { return Ok(()) };
    let mut at = table;
    for part in before {
        let next = at.entry(part.as_str()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = next.as_table_mut().ok_or_else(|| part.clone())?;
    }
    at.insert(last.clone(), value);
    Ok(())
}

impl RunSpec {
    /// What each key at the top of a run file means; tables have docs of their own.
    pub const DOCS: Docs = &[
        ("seed", "the root of all random numbers: the same seed gives the same bits"),
        ("precision", "\"f32\" or \"f64\"; networks want \"f32\""),
        ("agents", "K, how many agents share the data; says nothing about ranks"),
        ("temperature", "α in p(θ) ∝ p0(θ) exp(−loss/α): above 1 the data count less"),
        ("data", "the data; models that bring their own need none"),
        ("model", "the model: its name and its settings"),
        ("method", "the method: its name and its settings"),
        ("evaluate", "what is measured on the way"),
        ("cluster", "how the run uses the machine; changes no result, but for float_sums"),
    ];

    /// Reads a run file, lays overrides on top and fills in every default.
    ///
    /// # Errors
    /// Where the file cannot be read, is not TOML, or has unknown keys or values out of their range, or an override does not fit.
    pub fn read(path: &Path, overrides: &[Assignment], registry: &Registry) -> Result<Self, ConfigError> {
        Typed::read(path, overrides)?.resolve(registry).map_err(ConfigError::Problems)
    }

    /// The values that no run can have.
    pub(super) fn out_of_range(&self) -> Vec<Wrong> {
        let mut wrongs = Vec::new();
        let mut wrong = |at: &[&str], what: String| {
            wrongs.push(Wrong { at: at.iter().map(|&key| key.to_owned()).collect(), what: What::Other(what) });
        };
        if self.agents == 0 {
            wrong(&["agents"], "must be at least 1, not 0: a run needs at least one agent".into());
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            wrong(&["temperature"], format!("must be a positive number, not {}", self.temperature));
        }
        let every = self.cluster.checkpoint_every;
        if !(every.is_finite() && every > 0.0) {
            wrong(&["cluster", "checkpoint_every"], format!("must be a positive number of seconds, not {every}"));
        }
        wrongs
    }

    /// A run back from [`RunSpec::to_toml`], such as rank 0's on another rank.
    ///
    /// # Errors
    /// Where the text is not that of a run.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(ConfigError::Sent)
    }

    /// The run as TOML text, every default written out.
    ///
    /// # Errors
    /// Where a value has no TOML form, such as an integer beyond 63 bits.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn typed(overrides: &[&str]) -> Vec<Assignment> {
        overrides.iter().map(|text| Assignment::parse(text).unwrap()).collect()
    }

    const SMALL: &str = "[model]\nname = \"logistic\"\n[method]\nname = \"svgd\"\n";

    #[test]
    fn overrides_reach_any_depth_and_keep_their_type() {
        let overrides =
            typed(&["seed=7", "method.rounds=20", "method.kde.floor=1e-3", "model.hidden=[10, 5]", "method.prior=pure"]);
        let typed = Typed::read(file(SMALL).path(), &overrides).unwrap();
        let table = typed.table();
        assert_eq!(table["seed"].as_integer(), Some(7));
        assert_eq!(table["method"]["rounds"].as_integer(), Some(20));
        assert_eq!(table["method"]["kde"]["floor"].as_float(), Some(1e-3));
        assert_eq!(table["model"]["hidden"].as_array().unwrap().len(), 2);
        assert_eq!(table["method"]["prior"].as_str(), Some("pure"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, overrides, expected) in [
            ("sed = 1\n[model]\n[method]\n", vec![], "sed"),
            (SMALL, vec!["seed..x=1"], "empty part"),
            (SMALL, vec!["seed.x=1", "seed.x.y=1"], "not a table"),
            ("agents = 0\n[model]\n[method]\n", vec![], "at least one agent"),
            ("agents = -1\n[model]\n[method]\n", vec![], "agents"),
            (SMALL, vec!["cluster.checkpoint_every=-1"], "checkpoint_every"),
        ] {
            let error = RunSpec::read(file(text).path(), &typed(&overrides), &Registry::default()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_was_resolved_reads_back_the_same() {
        let spec = RunSpec::read(file(SMALL).path(), &[], &Registry::default()).unwrap();
        let text = file(&spec.to_toml().unwrap());
        assert_eq!(RunSpec::read(text.path(), &[], &Registry::default()).unwrap(), spec);
    }
}
