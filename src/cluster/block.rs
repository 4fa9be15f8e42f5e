//! Blocks of 2^k consecutive agents or ranks, block by block of which sums are built and messages forwarded; and the partial sums of blocks.

use super::layout::AgentId;
use super::ranges::Ranges;
use serde::{Deserialize, Serialize};

/// The agents, or ranks, from `index · 2^level` on, `2^level` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Block {
    level: u8,
    index: u32,
}

impl Block {
    /// A block of one.
    pub fn single(number: u32) -> Self {
        Self { level: 0, index: number }
    }

    pub fn first(self) -> u32 {
        self.index << self.level
    }

    fn end(self) -> u64 {
        (u64::from(self.index) + 1) << self.level
    }

    /// The block of twice the size that it is a half of.
    pub fn parent(self) -> Self {
        Self { level: self.level + 1, index: self.index >> 1 }
    }

    /// The other half of its parent.
    pub fn sibling(self) -> Self {
        Self { level: self.level, index: self.index ^ 1 }
    }

    pub fn level(self) -> u8 {
        self.level
    }

    /// Its lower and its upper half; none if it is a single one.
    pub fn halves(self) -> Option<[Self; 2]> {
        let level = self.level.checked_sub(1)?;
        Some([0, 1].map(|half| Self { level, index: 2 * self.index + half }))
    }

    /// Whether any of these is in it.
    pub fn contains_any(self, numbers: &Ranges) -> bool {
        numbers.has_within(self.first(), self.end())
    }

    /// Whether all of these are in it.
    pub fn contains_all(self, numbers: &Ranges) -> bool {
        numbers.is_within(self.first(), self.end())
    }
}

/// Partial sums of one part, on their way to another rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartOfSum {
    pub part: u32,
    /// An agent, and the length of its whole body.
    pub length_of: (AgentId, u64),
    /// The blocks; the body of the packet has the sums one after another.
    pub blocks: Vec<Block>,
}
