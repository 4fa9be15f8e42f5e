//! In which order a server visits its agents, one in each round.

use crate::cluster::{AgentId, Context};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// In which order agents are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VisitOrder {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Each once in as many rounds as there are agents, in a fresh random order each time.
    RandomPermutation,
    /// Any one, each time.
    Random,
}

impl VisitOrder {
    /// What it means, for people.
    pub const DOCS: &'static str = "in which order agents are visited: \"round_robin\", \"random_permutation\" (all in a fresh random order, again and \
         again) or \"random\"";

    /// The agent that is visited in this round, which counts from 0.
    pub fn agent(self, round: u64, agents: u32, cx: &Context) -> AgentId {
        let place = round % u64::from(agents.max(1));
        let stream = |turn| cx.stream(Who::Run, turn, Purpose::Schedule);
        // Below the number of agents, in each case.
        match self {
            Self::RoundRobin => place as AgentId,
            Self::RandomPermutation => {
                let order = stream(round / u64::from(agents.max(1))).permutation(agents as usize);
                order[place as usize] as AgentId
            }
            Self::Random => stream(round).random_range(0..agents.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    #[test]
    fn orders_visit_all_agents_equally_often() {
        let (agents, turns) = (5, 4000);
        let cx = Context::outside(Seed(3));
        let visited = |order: VisitOrder| (0..turns * 5).map(|round| order.agent(round, agents, &cx)).collect::<Vec<u32>>();
        assert_eq!(visited(VisitOrder::RoundRobin)[..7], [0, 1, 2, 3, 4, 0, 1]);
        let permuted = visited(VisitOrder::RandomPermutation);
        for turn in permuted.chunks(5) {
            let mut turn = turn.to_vec();
            turn.sort_unstable();
            assert_eq!(turn, [0, 1, 2, 3, 4]);
        }
        assert!(permuted[..5] != permuted[5..10] || permuted[..5] != permuted[10..15]);
        for order in [VisitOrder::RandomPermutation, VisitOrder::Random] {
            // How often an agent is first of a turn: chi-square with 4 degrees of freedom, above 30 in 5 cases of a million.
            let mut first = [0.0_f64; 5];
            visited(order).chunks(5).for_each(|turn| first[turn[0] as usize] += 1.0);
            let chi: f64 = first.iter().map(|count| (count - 800.0).powi(2) / 800.0).sum();
            assert!(chi < 30.0, "{order:?}: {first:?}");
        }
        assert_eq!(VisitOrder::Random.agent(9, 1, &cx), 0);
    }
}
