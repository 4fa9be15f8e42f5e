//! Blocks of agents that are added before others: pairs of neighbors, pairs of pairs, and so on.

use super::layout::AgentId;
use super::ranges::Ranges;
use serde::{Deserialize, Serialize};

/// The agents from `index · 2^level` on, `2^level` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Block {
    level: u8,
    index: AgentId,
}

impl Block {
    pub fn of(agent: AgentId) -> Self {
        Self { level: 0, index: agent }
    }

    fn first(self) -> AgentId {
        self.index << self.level
    }

    fn end(self) -> u64 {
        (u64::from(self.index) + 1) << self.level
    }

    pub fn above(self) -> Self {
        Self { level: self.level + 1, index: self.index >> 1 }
    }

    pub fn neighbor(self) -> Self {
        Self { level: self.level, index: self.index ^ 1 }
    }

    /// Whether any of these agents is in it.
    pub fn has_some_of(self, agents: &Ranges) -> bool {
        agents.has_within(self.first(), self.end())
    }

    /// Whether all of these agents are in it.
    pub fn has_all_of(self, agents: &Ranges) -> bool {
        agents.is_within(self.first(), self.end())
    }
}

/// Partial sums of one part, on their way to another rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartOfSum {
    pub part: u32,
    /// The length of the whole body, and an agent whose body has it.
    pub len: (AgentId, u64),
    /// The blocks; the body of the packet has the sums one after another.
    pub blocks: Vec<Block>,
}
