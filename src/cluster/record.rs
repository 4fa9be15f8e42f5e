//! Records of a run: rows of tables and draws.

use super::codec::raw;
use super::states::PartId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The table of evaluation metrics, a row for each evaluated round.
pub const METRICS: &str = "metrics";
/// The table of quantities by round, with a row for every round or for some of them.
pub const HISTORY: &str = "history";

/// The column of the history with the bytes that agents have received and sent since the run began.
pub const BYTES: &str = "bytes";

/// A record of a server or an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A row of a table: for information, without influence on the run.
    Row(Row),
    /// Draws or particles: the result of the run.
    Draws(DrawBlock),
}

/// A row of a table of numbers, such as the per-round history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The table: `history`, `metrics`.
    pub table: String,
    /// The round or step.
    pub step: u64,
    /// The agent that wrote it; none for the server.
    pub agent: Option<u32>,
    /// Names and values of the columns, in display order.
    pub values: Vec<(String, f64)>,
}

/// A block of draws: rows × d numbers, row-major, little-endian bytes of the run's precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawBlock {
    /// The group of the result file: `posterior`.
    pub group: String,
    /// The chain.
    pub chain: u32,
    /// The index of the first row among the chain's draws.
    pub first: u64,
    /// d, the length of a row.
    pub dim: u64,
    /// `f32`, `f64` or `i32`.
    pub kind: String,
    /// The numbers as raw little-endian bytes.
    #[serde(with = "raw")]
    pub bytes: Vec<u8>,
}

/// The number of draws of each chain in each group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents(BTreeMap<String, BTreeMap<u32, u64>>);

impl Extents {
    /// Whether there are no draws.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of draws of a chain.
    pub fn of(&self, group: &str, chain: u32) -> u64 {
        self.0.get(group).and_then(|chains| chains.get(&chain)).copied().unwrap_or(0)
    }

    /// Sets the number of draws of a chain.
    pub fn set(&mut self, group: &str, chain: u32, draws: u64) {
        self.0.entry(group.to_owned()).or_default().insert(chain, draws);
    }

    /// The number of chains of a group, up to the last one that has draws. Those in a damaged checkpoint can be more than memory holds.
    pub fn chains(&self, group: &str) -> u64 {
        let last = self.0.get(group).and_then(|chains| chains.keys().next_back());
        last.map_or(0, |&last| u64::from(last) + 1)
    }

    /// The number of draws of each chain of a group, from chain 0 to the last chain that has draws.
    pub fn lengths(&self, group: &str) -> Vec<u64> {
        (0..self.chains(group)).map_while(|chain| u32::try_from(chain).ok()).map(|chain| self.of(group, chain)).collect()
    }
}

/// Draws that a rank has stored, for the recorder to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDraws {
    /// What identifies them.
    pub part: PartId,
    /// Their amount in the unit of the store.
    pub amount: u64,
}
