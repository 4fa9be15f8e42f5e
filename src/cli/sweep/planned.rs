//! A run of a sweep, before and after it was carried out.

use serde::{Deserialize, Serialize};

/// What rank 0 tells all ranks of a run of the sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PlannedRun {
    /// From 0.
    pub number: usize,
    pub name: String,
    /// The validated run as TOML.
    pub config: String,
    /// Whether it is finished already.
    pub is_finished: bool,
}

/// How a run of a sweep ended.
pub(super) enum Ended {
    Finished,
    Stopped,
    Failed(String),
}
