//! Which agent owns which rows of a split: the same for any number of ranks.

use super::Split;
use super::error::{DataError, Result};
use crate::random::{Purpose, Seed, Stream, Who};

/// What is decided by random numbers for [`Purpose::Partition`]: each has its own, as two shuffles by the same ones are not
/// independent. The discriminants are their step: part of the promise that a seed gives the same bits.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(super) enum Draw {
    /// Which agent owns which training rows.
    Train = 0,
    /// Which rows an import puts aside for testing.
    Hold = 1,
    /// Which agent judges which test rows.
    Test = 2,
}

impl Draw {
    /// Its random numbers.
    pub(super) fn stream(self, seed: Seed) -> Stream {
        seed.stream(Who::Run, self as u64, Purpose::Partition)
    }
}

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
    /// Deals rows 0..`rows` of a split to `agents` agents.
    ///
    /// # Errors
    /// When there are no agents, or more agents than training rows; an agent without test rows has nothing to judge, which is fine.
    pub fn deal(self, split: Split, rows: usize, agents: usize, seed: Seed) -> Result<Deal> {
        if agents == 0 || (split == Split::Train && agents > rows) {
            return Err(DataError::Request(format!(
                "{rows} {} rows cannot be dealt to {agents} agents: ask for 1 to {rows} agents",
                split.name()
            )));
        }
        let draw = match split {
            Split::Train => Draw::Train,
            Split::Test => Draw::Test,
        };
        match self {
            Self::Equal => Ok(Deal { order: draw.stream(seed).permutation(rows), agents }),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_belongs_to_one_agent_and_sizes_differ_by_one_at_most() {
        for (rows, agents) in [(1, 1), (10, 3), (103, 20), (7, 7)] {
            let deal = Partition::Equal.deal(Split::Train, rows, agents, Seed(5)).unwrap();
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
        let deal = |seed| Partition::Equal.deal(Split::Train, 1000, 4, Seed(seed)).unwrap();
        assert_eq!(deal(1), deal(1));
        assert_ne!(deal(1), deal(2));
    }

    /// A change of this changes the shards, and with them the results, of every seed.
    #[test]
    fn a_deal_is_pinned() {
        let deal = |split| Partition::Equal.deal(split, 12, 3, Seed(42)).unwrap();
        let shards = |deal: Deal| [0, 1, 2].map(|agent| deal.rows(agent));
        assert_eq!(shards(deal(Split::Train)), [[4, 9, 10, 11], [0, 3, 5, 8], [1, 2, 6, 7]]);
        assert_eq!(shards(deal(Split::Test)), [[3, 7, 8, 10], [1, 2, 6, 11], [0, 4, 5, 9]]);
    }

    /// Positions of the same row in two independent orders of 1000 have a correlation of standard deviation 1/√999: 4.5 of them are
    /// exceeded with probability 7e-6.
    #[test]
    fn splits_are_dealt_independently() {
        let order = |draw: Draw| draw.stream(Seed(7)).permutation(1000);
        let correlation = |a: &[usize], b: &[usize]| {
            let sum: f64 = a.iter().zip(b).map(|(&a, &b)| (a as f64 - 499.5) * (b as f64 - 499.5)).sum();
            sum / (1000.0 * (1000.0_f64.powi(2) - 1.0) / 12.0)
        };
        let orders = [Draw::Train, Draw::Hold, Draw::Test].map(order);
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let correlation = correlation(&orders[one], &orders[other]);
            assert!(correlation.abs() < 4.5 / 999.0_f64.sqrt(), "{one} {other}: {correlation}");
        }
        // The control: a deal of the training rows is that order, and no other.
        let deal = |split| Partition::Equal.deal(split, 1000, 1000, Seed(7)).unwrap();
        let dealt = |split| (0..1000).map(|agent| deal(split).rows(agent)[0]).collect::<Vec<_>>();
        assert!(dealt(Split::Train) == orders[0] && dealt(Split::Test) == orders[2]);
        assert!((correlation(&orders[0], &orders[0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn shards_are_random_samples() {
        // The mean of 500 of the row numbers 0..1000 without replacement has standard deviation 288.7/√500·√½ = 9.1: five of
        // them.
        let shard = Partition::Equal.deal(Split::Train, 1000, 2, Seed(3)).unwrap().rows(0);
        let mean = shard.iter().sum::<usize>() as f64 / 500.0;
        assert!((mean - 499.5).abs() < 46.0, "{mean}");
        // The control: the first half in order would fail.
        assert!((249.5_f64 - 499.5).abs() > 46.0);
    }

    #[test]
    fn more_agents_than_training_rows_is_an_error() {
        let message = Partition::Equal.deal(Split::Train, 3, 4, Seed(0)).unwrap_err().to_string();
        assert!(message.contains("3 train rows") && message.contains("4 agents"), "{message}");
        assert!(Partition::Equal.deal(Split::Test, 3, 0, Seed(0)).is_err());
        let test = Partition::Equal.deal(Split::Test, 3, 4, Seed(0)).unwrap();
        assert_eq!((0..4).map(|agent| test.rows(agent).len()).collect::<Vec<_>>(), [1, 1, 1, 0]);
    }
}
