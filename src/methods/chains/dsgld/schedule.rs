//! Schedules of D-SGLD: the agent of each chain in each round; with more chains than agents, every agent has several slots for chains.

use crate::cluster::{AgentId, Context};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// How chains travel from round to round. Except with `Categorical`, every chain visits every agent equally often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// A new random assignment in each round.
    #[default]
    Permutation,
    /// From each agent to the next.
    Cyclic,
    /// A new random assignment that leaves no chain in its slot; without more chains than agents, no chain stays at its agent.
    Derangement,
    /// One group of chains for each agent, or for each chain if there are fewer. In each round one group moves, at one agent; each group
    /// visits the agents in the order of random permutations (Kassab & Simeone, arXiv 2009.06419, C.1).
    Rotating,
    /// For one chain: the next agent is drawn with a probability proportional to its rows.
    Categorical,
}

/// The number of slots: the same for each agent, and enough for all chains.
pub fn slots(chains: u32, agents: u32) -> u32 {
    chains.div_ceil(agents.max(1)).max(1).saturating_mul(agents)
}

/// The agent that a slot belongs to.
pub fn agent_of(slot: u32, agents: u32) -> AgentId {
    slot % agents
}

impl Schedule {
    /// The slot of each chain in the first round.
    pub fn first(self, chains: u32, agents: u32, rows: &[u64], cx: &Context) -> Vec<u32> {
        match self {
            Self::Categorical => vec![draw_agent(rows, 0, cx)],
            Self::Cyclic => (0..chains).collect(),
            Self::Rotating => {
                let order = permutation(agents, 0, cx);
                (0..chains).map(|chain| order[self.turn(chain, chains, agents) as usize]).collect()
            }
            Self::Permutation | Self::Derangement => permutation(slots(chains, agents), 0, cx)[..chains as usize].to_vec(),
        }
    }

    /// The number of rounds in which each chain makes one visit.
    pub fn rounds_per_turn(self, chains: u32, agents: u32) -> u32 {
        if self == Self::Rotating { agents.min(chains).max(1) } else { 1 }
    }

    /// The share of visits after which a chain goes to another agent, on average.
    pub fn share_that_moves(self, agents: u32) -> f64 {
        match self {
            _ if agents <= 1 => 0.0,
            Self::Permutation | Self::Rotating | Self::Categorical => 1.0 - 1.0 / f64::from(agents),
            Self::Cyclic | Self::Derangement => 1.0,
        }
    }

    /// The round, from 0, among [`Schedule::rounds_per_turn`] in which a chain makes its visit.
    fn turn(self, chain: u32, chains: u32, agents: u32) -> u32 {
        // Below the number of groups, so it fits into u32.
        (u64::from(chain) * u64::from(self.rounds_per_turn(chains, agents)) / u64::from(chains.max(1))) as u32
    }

    /// Whether a chain makes a visit in this round.
    pub fn has_turn(self, chain: u32, round: u64, chains: u32, agents: u32) -> bool {
        round % u64::from(self.rounds_per_turn(chains, agents)) == u64::from(self.turn(chain, chains, agents))
    }

    /// The slot of each chain at its next move, in this round or later, given its slot in the round before.
    pub fn next(self, before: &[u32], round: u64, agents: u32, rows: &[u64], cx: &Context) -> Vec<u32> {
        let chains = before.len();
        let count = u32::try_from(chains).unwrap_or(u32::MAX);
        let slots = slots(count, agents);
        match self {
            Self::Rotating => {
                let last = round.saturating_sub(1);
                let order = permutation(agents, last / u64::from(self.rounds_per_turn(count, agents)) + 1, cx);
                let next = |(chain, &slot)| {
                    if self.has_turn(chain, last, count, agents) { order[self.turn(chain, count, agents) as usize] } else { slot }
                };
                (0..).zip(before).map(next).collect()
            }
            Self::Categorical => vec![draw_agent(rows, round, cx)],
            Self::Cyclic => before.iter().map(|slot| (slot + 1) % slots).collect(),
            Self::Permutation => permutation(slots, round, cx)[..chains].to_vec(),
            Self::Derangement => {
                // By rejection: a permutation has no fixed point with probability near 1/e.
                let mut stream = cx.stream(Who::Run, round, Purpose::Schedule);
                let moves = loop {
                    let moves = stream.permutation(slots as usize);
                    if slots < 2 || moves.iter().enumerate().all(|(from, to)| from != *to) {
                        break moves;
                    }
                };
                before.iter().map(|&slot| u32::try_from(moves[slot as usize]).unwrap_or(slot)).collect()
            }
        }
    }
}

/// A random permutation of the slots.
fn permutation(slots: u32, round: u64, cx: &Context) -> Vec<u32> {
    let order = cx.stream(Who::Run, round, Purpose::Schedule).permutation(slots as usize);
    order.into_iter().map(|slot| u32::try_from(slot).unwrap_or(u32::MAX)).collect()
}

/// Draws an agent with a probability proportional to its rows.
fn draw_agent(rows: &[u64], round: u64, cx: &Context) -> u32 {
    let total: u64 = rows.iter().sum();
    let mut row = cx.stream(Who::Run, round, Purpose::Schedule).random_range(0..total.max(1));
    for (agent, &rows) in (0..).zip(rows) {
        if row < rows {
            return agent;
        }
        row -= rows;
    }
    0
}
