//! What a run writes down beside its state: rows of information and draws.

use super::codec::raw;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The table of the judged predictions, a row for each evaluated round.
pub const METRICS: &str = "metrics";
/// The table of what happened in rounds: in each, or in some of very many.
pub const HISTORY: &str = "history";

/// One thing that a server or an agent wrote down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A row of a table: may be thrown away without changing the run.
    Row(Row),
    /// Draws or particles: what the run is for.
    Draws(Draws),
}

/// A row of a table of numbers, such as the per-round history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The table: `history`, `metrics`.
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

/// How many draws each chain of each group has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents(BTreeMap<String, BTreeMap<u32, u64>>);

impl Extents {
    /// Whether there are no draws at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The draws of a chain.
    pub fn of(&self, group: &str, chain: u32) -> u64 {
        self.0.get(group).and_then(|chains| chains.get(&chain)).copied().unwrap_or(0)
    }

    /// Sets the draws of a chain.
    pub fn set(&mut self, group: &str, chain: u32, draws: u64) {
        self.0.entry(group.to_owned()).or_default().insert(chain, draws);
    }

    /// Draws of each chain of a group, from chain 0 to the last that has any.
    pub fn lengths(&self, group: &str) -> Vec<u64> {
        let last = self.0.get(group).and_then(|chains| chains.keys().next_back());
        last.map_or_else(Vec::new, |&last| (0..=last).map(|chain| self.of(group, chain)).collect())
    }
}
