//! The description of a run in its result file: method, model, seed, configuration, progress.

use super::events::Event;
use crate::text;

/// The version of the layout.
pub(super) const VERSION: u32 = 2;
/// The attribute with the digest of a description or of a table.
pub(super) const DIGEST: &str = "digest";
/// The root attribute `inference_library`.
pub(super) const LIBRARY: &str = "mpibayes";

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunState {
    /// Whether it is finished.
    pub finished: bool,
    /// Completed rounds.
    pub done: u64,
    /// All rounds.
    pub total: u64,
    /// Seconds since it began, without evaluation.
    pub seconds: f64,
}

impl RunState {
    /// The state of a finished run with unknown rounds and seconds.
    pub fn over() -> Self {
        Self { finished: true, done: 0, total: 0, seconds: 0.0 }
    }
}

/// The description of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// When the run began: ISO 8601, UTC.
    pub created_at: String,
    /// The version of this program.
    pub version: String,
    /// The method, by its name in the configuration.
    pub method: String,
    /// The model, by its name in the configuration.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// The digest of the dataset; empty if the run had none.
    pub data_digest: String,
    /// The resolved configuration as TOML.
    pub config: String,
    /// Its progress.
    pub state: RunState,
    /// The hosts of the ranks of the last job, by rank.
    pub hosts: Vec<String>,
    /// What happened to it.
    pub events: Vec<Event>,
}

impl RunInfo {
    /// The description of a finished run by this version of the program, created now.
    pub fn new(method: &str, model: &str, seed: u64, data_digest: &str, config: &str) -> Self {
        Self {
            created_at: text::iso_time_now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            method: method.to_owned(),
            model: model.to_owned(),
            seed,
            data_digest: data_digest.to_owned(),
            config: config.to_owned(),
            state: RunState::over(),
            hosts: Vec::new(),
            events: Vec::new(),
        }
    }

    /// A digest of what stays the same during a run, which is stored with it.
    pub(super) fn digest(&self) -> String {
        let Self { method, model, seed, data_digest, config, .. } = self;
        let text = format!("{method}\n{model}\n{seed}\n{data_digest}\n{config}");
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}
