//! How long a rank naps while it waits for messages.

use super::tree;
use std::time::Duration;

/// Time of polling before the first nap.
pub(super) const POLL: Duration = Duration::from_micros(50);
/// The longest delay by naps of what passes through all levels of the tree of ranks: bounds the CPU time of a long wait.
const LONGEST: Duration = Duration::from_millis(10);
/// All naps on the way of a message through the tree are one of so many parts of the time waited so far: they lengthen a wait by at most 6 %.
const PARTS: u32 = 16;

/// The shortest nap of a rank whose threads all compute: to wake up and ask MPI for messages takes 15 to 20 µs of the core that they share.
const SHORTEST_OF_COMPUTING: Duration = Duration::from_micros(100);
/// Such a nap is one of so many parts of the time without events so far, or one of more parts if the tree has many levels: naps delay what ranks
/// pass on. It is longer than that of a rank that waits, because no agent could begin with what arrives.
const PARTS_OF_COMPUTING: u32 = 8;
const PARTS_OF_A_LEVEL: u32 = 4;

/// The naps of each of these ranks.
#[derive(Clone, Copy)]
pub(super) struct Naps {
    /// The levels of the tree.
    levels: u32,
}

impl Naps {
    pub fn new(ranks: u32) -> Self {
        Self { levels: tree::depth(ranks).max(1) }
    }

    /// The next nap of a rank that has waited so long.
    pub fn after(self, waited: Duration) -> Duration {
        (waited / PARTS).min(LONGEST) / self.levels
    }

    /// The next nap of a rank whose threads all compute, after it has heard of nothing for so long.
    pub fn while_computing(self, waited: Duration) -> Duration {
        (waited / PARTS_OF_COMPUTING.max(self.levels * PARTS_OF_A_LEVEL)).min(LONGEST / self.levels).max(SHORTEST_OF_COMPUTING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_of_all_levels_are_a_sixteenth_of_the_wait() {
        let second = Duration::from_secs(1);
        assert_eq!(Naps::new(2).after(second / 10), second / 160);
        assert_eq!(Naps::new(4096).after(second / 10), second / 160 / 12);
        assert_eq!((Naps::new(1).after(second), Naps::new(1024).after(second)), (LONGEST, LONGEST / 10));
    }

    #[test]
    fn naps_of_ranks_that_compute_are_neither_short_nor_longer_than_those_of_others_can_be() {
        let (two, naps) = (Naps::new(2), Naps::new(1024));
        assert_eq!([two, naps].map(|naps| naps.while_computing(Duration::ZERO)), [SHORTEST_OF_COMPUTING; 2]);
        let waited = Duration::from_millis(8);
        assert_eq!([two, naps].map(|naps| naps.while_computing(waited)), [waited / 8, waited / 40]);
        assert_eq!(naps.while_computing(Duration::from_secs(1)), LONGEST / 10);
    }
}
