//! What a run writes down beside its state: rows of information and draws.

use super::codec::raw;
use serde::{Deserialize, Serialize};

/// One thing that a server or an agent wrote down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A row of a table: may be thrown away without changing the run.
    Row(Row),
    /// Draws or particles: what the run is for.
    Draws(Draws),
}

/// A row of a table of numbers, such as the per-round trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The table: `trace`, `metrics`.
    pub table: String,
    /// The round or step that it tells of.
    pub step: u64,
    /// The agent that wrote it, if one did.
    pub agent: Option<u32>,
    /// Columns by name, in the order in which a reader should see them.
    pub values: Vec<(String, f64)>,
}

/// A block of draws: rows × d numbers, row-major, little-endian bytes of the run's precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    /// The group of the result file: `posterior`.
    pub group: String,
    /// The chain that they belong to.
    pub chain: u32,
    /// The number of the first row among the chain's draws.
    pub first: u64,
    /// d, the length of a row.
    pub dim: u64,
    /// `f32`, `f64` or `i32`.
    pub kind: String,
    /// The numbers as raw little-endian bytes.
    #[serde(with = "raw")]
    pub bytes: Vec<u8>,
}
