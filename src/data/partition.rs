//! Which agent owns which rows of the training data: the same for any number of ranks.

use super::error::{DataError, Result};
use crate::random::{Purpose, Seed, Stream, Who};
use rand::seq::SliceRandom;

/// A way to deal rows to agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Partition {
    /// Random shards whose sizes differ by at most one.
    #[default]
    Equal,
}

/// Rows dealt to agents: every row belongs to exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    order: Vec<usize>,
    agents: usize,
}

impl Partition {
    /// Deals rows 0..`rows` to `agents` agents.
    ///
    /// # Errors
    /// When there are no agents, or more agents than rows.
    pub fn deal(self, rows: usize, agents: usize, seed: Seed) -> Result<Deal> {
        if agents == 0 || agents > rows {
            return Err(DataError::Request(format!(
                "{rows} rows of training data cannot be dealt to {agents} agents: ask for 1 to {rows} agents"
            )));
        }
        match self {
            Self::Equal => Ok(Deal { order: permutation(rows, &mut seed.stream(Who::Run, 0, Purpose::Partition)), agents }),
        }
    }
}

impl Deal {
    /// How many agents share the rows.
    pub fn agents(&self) -> usize {
        self.agents
    }

    /// The rows of one agent, ascending; none for an agent number that does not exist.
    pub fn rows(&self, agent: usize) -> Vec<usize> {
        if agent >= self.agents {
            return Vec::new();
        }
        let (share, longer) = (self.order.len() / self.agents, self.order.len() % self.agents);
        let start = agent * share + agent.min(longer);
        let mut rows = self.order[start..start + share + usize::from(agent < longer)].to_vec();
        rows.sort_unstable();
        rows
    }
}

/// The numbers 0..`count` in a random order.
pub(super) fn permutation(count: usize, stream: &mut Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(stream);
    order
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_belongs_to_one_agent_and_sizes_differ_by_one_at_most() {
        for (rows, agents) in [(1, 1), (10, 3), (103, 20), (7, 7)] {
            let deal = Partition::Equal.deal(rows, agents, Seed(5)).unwrap();
            let shards: Vec<_> = (0..agents).map(|agent| deal.rows(agent)).collect();
            assert!(
                shards.iter().all(|shard| shard.is_sorted() && (rows / agents..=rows.div_ceil(agents)).contains(&shard.len()))
            );
            let mut all = shards.concat();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
            assert!(deal.rows(agents).is_empty());
        }
    }

    #[test]
    fn the_seed_alone_decides() {
        let deal = |seed| Partition::Equal.deal(1000, 4, Seed(seed)).unwrap();
        assert_eq!(deal(1), deal(1));
        assert_ne!(deal(1), deal(2));
    }

    #[test]
    fn shards_are_random_samples() {
        // The mean of 500 of the row numbers 0..1000 without replacement has standard deviation 288.7/√500·√½ = 9.1: five of
        // them.
        let shard = Partition::Equal.deal(1000, 2, Seed(3)).unwrap().rows(0);
        let mean = shard.iter().sum::<usize>() as f64 / 500.0;
        assert!((mean - 499.5).abs() < 46.0, "{mean}");
        // The control: the first half in order would fail.
        assert!((249.5_f64 - 499.5).abs() > 46.0);
    }

    #[test]
    fn too_many_agents_is_an_error() {
        let message = Partition::Equal.deal(3, 4, Seed(0)).unwrap_err().to_string();
        assert!(message.contains("3 rows") && message.contains("4 agents"), "{message}");
        assert!(Partition::Equal.deal(3, 0, Seed(0)).is_err());
    }
}
