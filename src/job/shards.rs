//! How the training rows of a run reach its agents.

use crate::cluster::AgentId;
use crate::data::{Dataset, Shard, ShardAssignment, Split};
use crate::methods::Sharing;
use crate::methods::common::problem::OpenShard;
use crate::number::Real;
use crate::text::{count, counted};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A process that hosts all agents reads the file at most this many times. A single time would need the memory of the data twice, as read and
/// as shards, and a time for each agent would take long.
const MAX_PASSES: usize = 8;

/// Opens the shards of an assignment. Each is read once, on the rank that asks for it; those who ask again share it. If this process
/// `hosts_all`, those of consecutive agents are read together.
pub(super) fn open_assigned<F: Real>(
    dataset: &Arc<Dataset>,
    split: Split,
    assignment: ShardAssignment,
    hosts_all: bool,
) -> OpenShard<F> {
    let dataset = dataset.clone();
    let opened: Mutex<HashMap<AgentId, Shard<F>>> = Mutex::default();
    let read_at_once = if hosts_all { assignment.agents().div_ceil(MAX_PASSES).max(1) } else { 1 };
    Arc::new(move |agent| {
        // A reader that panicked leaves only whole shards behind.
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = opened.get(&agent) {
            return Ok(shard.clone());
        }
        let first = agent as usize / read_at_once * read_at_once;
        let neighbors = first..(first + read_at_once).min(assignment.agents());
        let rows: Vec<Vec<usize>> = neighbors.clone().map(|agent| assignment.rows(agent)).collect();
        let shards = dataset.read_shards(split, &rows)?;
        opened.extend(neighbors.zip(shards).map(|(agent, shard)| (agent as AgentId, shard)));
        Ok(opened.get(&agent).cloned().ok_or_else(|| format!("agent {agent} has no shard"))?)
    })
}

/// Opens the shards of a model that needs no data file: row i is the number i. Agents get blocks of rows, or all share them.
pub(super) fn open_numbered_rows<F: Real>(rows: usize, agents: u32, sharing: Sharing) -> OpenShard<F> {
    Arc::new(move |agent| {
        let (shard, shards) = (sharing.shard(agent as usize), sharing.shards(agents as usize));
        let range = shard * rows / shards..(shard + 1) * rows / shards;
        let x = ndarray::Array2::from_shape_fn((range.len(), 1), |(row, _)| F::of((range.start + row) as f64));
        let y = ndarray::Array1::zeros(range.len());
        Ok(Shard::new(x, y))
    })
}

/// The sizes of shards in words, such as ` of 30 to 31 rows`.
pub(super) fn describe_sizes(sizes: impl Iterator<Item = usize> + Clone, entry: &str) -> String {
    match (sizes.clone().min(), sizes.max()) {
        (Some(least), Some(most)) if least == most => format!(" of {}", counted(most, entry)),
        (Some(least), Some(most)) => format!(" of {} to {}", count(least), counted(most, entry)),
        _ => String::new(),
    }
}
