//! How the training rows of a run reach its agents.

use crate::cluster::AgentId;
use crate::data::{Dataset, Shard, ShardAssignment, Split};
use crate::methods::Sharing;
use crate::methods::common::problem::OpenShard;
use crate::number::Real;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Opens the shards of an assignment. Each is read once, on the rank that asks for it; those who ask again share it.
pub(super) fn open_assigned<F: Real>(dataset: &Arc<Dataset>, split: Split, assignment: ShardAssignment) -> OpenShard<F> {
    let dataset = dataset.clone();
    let opened: Mutex<HashMap<AgentId, Shard<F>>> = Mutex::default();
    Arc::new(move |agent| {
        // A reader that panicked leaves only whole shards behind.
        let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shard) = opened.get(&agent) {
            return Ok(shard.clone());
        }
        let shard: Shard<F> = dataset.read_rows(split, &assignment.rows(agent as usize))?;
        opened.insert(agent, shard.clone());
        Ok(shard)
    })
}

/// The rows of a model that brings its own: row i holds the number i. Agents get blocks of them, or all share them.
pub(super) fn own_rows<F: Real>(rows: usize, agents: u32, sharing: Sharing) -> OpenShard<F> {
    Arc::new(move |agent| {
        let (shard, shards) = (sharing.shard(agent as usize), sharing.shards(agents as usize));
        let range = shard * rows / shards..(shard + 1) * rows / shards;
        let x = ndarray::Array2::from_shape_fn((range.len(), 1), |(row, _)| F::of((range.start + row) as f64));
        let y = ndarray::Array1::zeros(range.len());
        Ok(Shard::new(x, y))
    })
}

/// The sizes of shards for people, such as ` of 30 to 31 rows`.
pub(super) fn describe_sizes(sizes: impl Iterator<Item = usize> + Clone, entry: &str) -> String {
    match (sizes.clone().min(), sizes.max()) {
        (Some(least), Some(most)) if least == most => format!(" of {}", count(most, entry)),
        (Some(least), Some(most)) => format!(" of {least} to {}", count(most, entry)),
        _ => String::new(),
    }
}

/// A number of things: `1 agent`, `4 agents`.
pub(super) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
