//! Which chain is where: slots, several of them at an agent where there are more chains than agents, dealt anew for each round.

use crate::cluster::{AgentId, Context};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// How chains travel from round to round. All but the last bring every chain to every agent equally often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// A fresh random assignment for each round.
    #[default]
    Permutation,
    /// From each agent to the next.
    Cyclic,
    /// A fresh random assignment that leaves no chain in its slot: not where it is, if there are no more chains than agents.
    Derangement,
    /// As many groups of chains as agents, if there are so many; in each round the next group moves, at one agent, and each group comes
    /// to agents in the order of random permutations (as Kassab & Simeone use D-SGLD, arXiv 2009.06419, C.1).
    Rotating,
    /// One chain only: to an agent drawn with the probabilities of the shares of rows.
    Categorical,
}

/// How many slots: as many for each agent as all chains need.
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
            Self::Categorical => vec![drawn(rows, 0, cx)],
            Self::Cyclic => (0..chains).collect(),
            Self::Rotating => {
                let order = dealt(agents, 0, cx);
                (0..chains).map(|chain| order[self.group(chain, chains, agents) as usize]).collect()
            }
            Self::Permutation | Self::Derangement => dealt(slots(chains, agents), 0, cx)[..chains as usize].to_vec(),
        }
    }

    /// In how many rounds each chain moves once.
    pub fn every(self, chains: u32, agents: u32) -> u32 {
        if self == Self::Rotating { agents.min(chains).max(1) } else { 1 }
    }

    /// The group of a chain, of those that move in turn.
    fn group(self, chain: u32, chains: u32, agents: u32) -> u32 {
        // Below the number of groups, and so of chains.
        (u64::from(chain) * u64::from(self.every(chains, agents)) / u64::from(chains.max(1))) as u32
    }

    /// Whether a chain moves in this round.
    pub fn moves(self, chain: u32, round: u64, chains: u32, agents: u32) -> bool {
        round % u64::from(self.every(chains, agents)) == u64::from(self.group(chain, chains, agents))
    }

    /// The slot of each chain when it moves next, in this round or later, from that in the round before.
    pub fn next(self, before: &[u32], round: u64, agents: u32, rows: &[u64], cx: &Context) -> Vec<u32> {
        let chains = before.len();
        let count = u32::try_from(chains).unwrap_or(u32::MAX);
        let slots = slots(count, agents);
        match self {
            Self::Rotating => {
                let last = round.saturating_sub(1);
                let order = dealt(agents, last / u64::from(self.every(count, agents)) + 1, cx);
                let next = |(chain, &slot)| {
                    if self.moves(chain, last, count, agents) { order[self.group(chain, count, agents) as usize] } else { slot }
                };
                (0..).zip(before).map(next).collect()
            }
            Self::Categorical => vec![drawn(rows, round, cx)],
            Self::Cyclic => before.iter().map(|slot| (slot + 1) % slots).collect(),
            Self::Permutation => dealt(slots, round, cx)[..chains].to_vec(),
            Self::Derangement => {
                // By rejection: a permutation leaves nothing in place with probability near 1/e.
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

fn dealt(slots: u32, round: u64, cx: &Context) -> Vec<u32> {
    let order = cx.stream(Who::Run, round, Purpose::Schedule).permutation(slots as usize);
    order.into_iter().map(|slot| u32::try_from(slot).unwrap_or(u32::MAX)).collect()
}

/// An agent, with the probability of its share of all rows.
fn drawn(rows: &[u64], round: u64, cx: &Context) -> u32 {
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
