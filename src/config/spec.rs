//! The run file: TOML with every key in its place, overrides on top, unknown keys refused.

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

/// What is measured on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluateSpec {
    /// Rounds between evaluations; 0 for none at all. With any other number the last round is evaluated too.
    pub every: u64,
    /// Whether each particle's own predictions are judged beside their average.
    pub single: bool,
    /// Whether the kernelised Stein discrepancy of the particles from the posterior is measured; takes the gradient of all rows.
    pub ksd: bool,
    /// Whether the particles of all evaluated rounds are kept, and not the last alone.
    pub history: bool,
    /// Whether the predictions of the test rows are kept.
    pub predictions: bool,
}

impl Default for EvaluateSpec {
    fn default() -> Self {
        Self { every: 1, single: false, ksd: false, history: false, predictions: true }
    }
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
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self { threads: 0, dedicated: false, checkpoint_every: 300.0, collectives: Collectives::default() }
    }
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
    /// The file is no valid run file.
    #[error("{}: {cause}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        cause: toml::de::Error,
    },
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
    /// A name that nothing is registered under.
    #[error("[{table}] name = \"{name}\" is unknown; there are: {known}")]
    Unknown {
        /// `model` or `method`.
        table: &'static str,
        /// What was typed.
        name: String,
        /// What there is.
        known: String,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Contradiction(String),
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

    /// Lays it on a table.
    fn apply(&self, table: &mut toml::Table) -> Result<(), ConfigError> {
        let wrong = |what: String| ConfigError::Override { key: self.key.clone(), what };
        // What is not TOML is a plain string, so that names need no quotes.
        let value = format!("value = {}", self.value)
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut parsed| parsed.remove("value"))
            .unwrap_or_else(|| toml::Value::String(self.value.clone()));
        let mut at = table;
        let mut parts = self.key.split('.').peekable();
        while let Some(part) = parts.next() {
            if part.is_empty() {
                return Err(wrong("its key has an empty part".into()));
            }
            if parts.peek().is_none() {
                at.insert(part.into(), value);
                return Ok(());
            }
            let next = at.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            at = next.as_table_mut().ok_or_else(|| wrong(format!("'{part}' is a value, not a table")))?;
        }
        Ok(())
    }
}

impl RunSpec {
    /// Reads a run file and lays overrides on top.
    ///
    /// # Errors
    /// Where the file cannot be read, is not TOML, has unknown keys, or an override does not fit.
    pub fn read(path: &Path, overrides: &[Assignment]) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
        let parse = |cause| ConfigError::Parse { path: path.to_owned(), cause };
        let mut table: toml::Table = text.parse().map_err(parse)?;
        for assignment in overrides {
            assignment.apply(&mut table)?;
        }
        // Through text once more, so that errors point at a line where there are no overrides.
        let spec: Self = if overrides.is_empty() { toml::from_str(&text) } else { table.try_into() }.map_err(parse)?;
        if spec.agents == 0 {
            return Err(ConfigError::Contradiction("agents = 0: a run needs at least one agent".into()));
        }
        if !(spec.temperature.is_finite() && spec.temperature > 0.0) {
            return Err(ConfigError::Contradiction(format!("temperature = {}: must be a positive number", spec.temperature)));
        }
        let every = spec.cluster.checkpoint_every;
        if !(every.is_finite() && every > 0.0) {
            return Err(ConfigError::Contradiction(format!(
                "[cluster] checkpoint_every = {every}: must be a positive number of seconds"
            )));
        }
        Ok(spec)
    }

    /// A run back from [`RunSpec::to_toml`], such as rank 0's on another rank.
    ///
    /// # Errors
    /// Where the text is not that of a run.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|cause| ConfigError::Parse { path: "the run file of rank 0".into(), cause })
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
        let spec = RunSpec::read(file(SMALL).path(), &overrides).unwrap();
        assert_eq!(spec.seed, 7);
        assert_eq!(spec.method["rounds"].as_integer(), Some(20));
        assert_eq!(spec.method["kde"]["floor"].as_float(), Some(1e-3));
        assert_eq!(spec.model["hidden"].as_array().unwrap().len(), 2);
        assert_eq!(spec.method["prior"].as_str(), Some("pure"));
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
            let error = RunSpec::read(file(text).path(), &typed(&overrides)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_was_resolved_reads_back_the_same() {
        let spec = RunSpec::read(file(SMALL).path(), &[]).unwrap();
        assert_eq!(RunSpec::read(file(&spec.to_toml().unwrap()).path(), &[]).unwrap(), spec);
    }
}
