//! The placement of agents on ranks.

use super::ranges::Ranges;

/// The number of a rank; rank 0 holds the server.
pub type Rank = u32;

/// The number of an agent, from 0; independent of ranks.
pub type AgentId = u32;

/// How agents are distributed over the ranks that host them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Consecutive agents share a rank: best if agents transfer states to their neighbors.
    Blocks,
    /// Consecutive agents are on different ranks: best if agents are visited one after another and compute after their report.
    Cyclic,
}

/// Numbers of ranks and agents, and the rank of each agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of agents.
    pub agents: u32,
    /// Whether rank 0 hosts no agents; ignored on one rank.
    pub dedicated: bool,
    /// How agents are distributed.
    pub placement: Placement,
}

impl Layout {
    fn first_host(&self) -> u32 {
        u32::from(self.dedicated && self.ranks > 1)
    }

    /// Number of ranks that may host agents.
    pub fn hosts(&self) -> u32 {
        self.ranks - self.first_host()
    }

    /// The rank that hosts an agent.
    pub fn rank_of(&self, agent: AgentId) -> Rank {
        let hosts = self.hosts();
        self.first_host()
            + match self.placement {
                Placement::Cyclic => agent % hosts,
                // The first `large` hosts have one agent more than the others.
                Placement::Blocks => {
                    let (small, large) = (self.agents / hosts, self.agents % hosts);
                    let in_large = large * (small + 1);
                    if agent < in_large { agent / (small + 1) } else { large + (agent - in_large) / small.max(1) }
                }
            }
    }

    /// The agents on a rank, ascending.
    pub fn hosted(&self, rank: Rank) -> impl Iterator<Item = AgentId> + '_ {
        (0..self.agents).filter(move |&agent| self.rank_of(agent) == rank)
    }

    /// The ranks that host agents.
    pub(super) fn hosting(&self) -> Ranges {
        let first = self.first_host();
        Ranges::union([(first, self.ranks.min(first.saturating_add(self.agents)))])
    }

    /// The places of these ranks among those that may host agents, from 0.
    pub(super) fn places(&self, ranks: &Ranges) -> Ranges {
        ranks.lowered(self.first_host())
    }

    /// The place of a rank that may host agents.
    pub(super) fn place_of(&self, rank: Rank) -> u32 {
        rank.saturating_sub(self.first_host())
    }

    /// The rank at a place.
    pub(super) fn rank_at(&self, place: u32) -> Rank {
        place + self.first_host()
    }

    /// The ranks that host any of these agents.
    pub(super) fn ranks_of(&self, agents: &Ranges) -> Ranges {
        let (hosts, first_host) = (self.hosts(), self.first_host());
        Ranges::union(agents.bounds().filter(|(first, end)| first < end).flat_map(|(first, end)| {
            let (first_rank, last_rank) = (self.rank_of(first), self.rank_of(end - 1));
            match self.placement {
                Placement::Blocks => [(first_rank, last_rank + 1), (0, 0)],
                Placement::Cyclic if end - first >= hosts => [(first_host, self.ranks), (0, 0)],
                Placement::Cyclic if first_rank <= last_rank => [(first_rank, last_rank + 1), (0, 0)],
                Placement::Cyclic => [(first_rank, self.ranks), (first_host, last_rank + 1)],
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_one_host_and_loads_differ_by_at_most_one() {
        for placement in [Placement::Blocks, Placement::Cyclic] {
            for (ranks, agents) in [(1, 1), (3, 7), (5, 2), (4, 8), (7, 100)] {
                for dedicated in [false, true] {
                    let layout = Layout { ranks, agents, dedicated, placement };
                    let loads: Vec<usize> = (0..ranks).map(|rank| layout.hosted(rank).count()).collect();
                    assert_eq!(loads.iter().sum::<usize>(), agents as usize, "{layout:?}");
                    let hosting = if dedicated && ranks > 1 { &loads[1..] } else { &loads[..] };
                    assert!(
                        hosting.iter().max() <= hosting.iter().min().map(|least| least + 1).as_ref(),
                        "{layout:?}: {loads:?}"
                    );
                    assert!(!dedicated || ranks == 1 || loads[0] == 0);
                    assert_eq!(layout.hosting(), layout.ranks_of(&Ranges::new(0..agents)));
                }
            }
        }
    }

    #[test]
    fn the_ranks_of_agents_are_those_that_host_them() {
        for placement in [Placement::Blocks, Placement::Cyclic] {
            for (ranks, agents) in [(1, 5), (3, 7), (5, 2), (4, 9), (7, 40)] {
                for dedicated in [false, true] {
                    let layout = Layout { ranks, agents, dedicated, placement };
                    for (first, end, without) in
                        [(0, agents, 1), (1, agents, agents), (agents / 2, agents, agents - 1), (0, 1, 9)]
                    {
                        let chosen = || (first..end).filter(|&agent| agent != without);
                        let expected = Ranges::union(chosen().map(|agent| layout.rank_of(agent)).map(|rank| (rank, rank + 1)));
                        assert_eq!(layout.ranks_of(&Ranges::new(chosen())), expected, "{layout:?}, {first}..{end}");
                    }
                }
            }
        }
    }
}
