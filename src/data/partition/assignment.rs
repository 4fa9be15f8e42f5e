//! Which agent owns which rows, and the random streams that decide it.

use crate::data::dataset::layout::Split;
use crate::data::error::{DataError, Result};
use crate::random::{Purpose, Seed, Stream, Who};

/// The random choices that a partition makes. Each has a random stream of its own, so that they are independent. The discriminants
/// choose the streams: changing one changes the shards of every seed.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum RandomChoice {
    /// The order in which training rows are dealt to agents.
    TrainingRows = 0,
    /// The rows that an import holds out for testing.
    HeldOutRows = 1,
    /// The order in which test rows are dealt to agents for evaluation.
    TestRows = 2,
    /// The class proportions of each agent in a Dirichlet partition.
    ClassProportions = 3,
    /// The class from which an agent takes its next row in a Dirichlet partition.
    NextClass = 4,
}

impl RandomChoice {
    /// Its random stream.
    pub(crate) fn stream(self, seed: Seed) -> Stream {
        seed.stream(Who::Run, self as u64, Purpose::Partition)
    }
}

/// Which rows each agent owns: every row belongs to exactly one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardAssignment {
    /// All rows, agent after agent.
    pub(super) order: Vec<usize>,
    /// Agent k owns `order[starts[k]..starts[k + 1]]`.
    pub(super) starts: Vec<usize>,
}

impl ShardAssignment {
    /// Random shards of the rows of a split, with sizes that differ by at most one.
    ///
    /// # Errors
    /// If there are no agents, or more agents than training rows. Agents without test rows are allowed.
    pub fn equal(split: Split, rows: usize, agents: usize, seed: Seed) -> Result<Self> {
        if agents == 0 {
            return Err(DataError::Request("there are no agents: take at least 1".into()));
        }
        if split == Split::Train && agents > rows {
            let what = format!("{rows} training rows cannot be split among {agents} agents: take at most {rows} agents");
            return Err(DataError::Request(what));
        }
        let order = match split {
            Split::Train => RandomChoice::TrainingRows,
            Split::Test => RandomChoice::TestRows,
        };
        let (size, larger) = (rows / agents, rows % agents);
        let sizes = (0..agents).map(|agent| size + usize::from(agent < larger)).collect();
        Ok(Self::from_sizes(order.stream(seed).permutation(rows), sizes))
    }

    /// Shards of these sizes, taken from `order` one after another.
    pub(super) fn from_sizes(order: Vec<usize>, sizes: Vec<usize>) -> Self {
        let mut starts = vec![0];
        starts.extend(sizes.into_iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        Self { order, starts }
    }

    /// These shards.
    pub(super) fn from_shards(shards: Vec<Vec<usize>>) -> Self {
        let sizes = shards.iter().map(Vec::len).collect();
        Self::from_sizes(shards.concat(), sizes)
    }

    /// The number of agents.
    pub fn agents(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows of an agent; 0 if there is no such agent.
    pub fn count(&self, agent: usize) -> usize {
        match self.starts.get(agent..=agent.saturating_add(1)) {
            Some([start, end]) => end - start,
            _ => 0,
        }
    }

    /// The rows of an agent, ascending; none if there is no such agent.
    pub fn rows(&self, agent: usize) -> Vec<usize> {
        let start = self.starts.get(agent).copied().unwrap_or(self.order.len());
        let mut rows = self.order[start..start + self.count(agent)].to_vec();
        rows.sort_unstable();
        rows
    }
}
