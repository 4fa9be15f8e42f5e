//! How long a rank polls and naps while it waits for messages.

use super::tree;
use std::time::Duration;

/// Time of polling before the first nap.
const POLL: Duration = Duration::from_micros(50);
/// The same while a message is in flight, which naps would delay.
const POLL_SENDING: Duration = Duration::from_millis(1);
/// Caps the delay that naps add to what passes through all levels of the tree of ranks.
const LONGEST: Duration = Duration::from_millis(10);
/// The naps of all levels together are this part of the time waited so far: they lengthen a wait by at most 6 %.
const PARTS: u32 = 16;

/// The shortest nap of a rank whose threads all compute: to wake up and ask MPI for messages takes 15 to 20 µs of the core that they share.
const SHORTEST_OF_COMPUTING: Duration = Duration::from_micros(100);
/// Such a nap is an eighth of the time without events so far: no agent could begin with what arrives meanwhile.
const PARTS_OF_COMPUTING: u32 = 8;
/// In a tree with many levels it is shorter, divided by this number for each level, because naps delay what ranks pass on.
const PARTS_FOR_EACH_LEVEL: u32 = 4;

/// What else is going on while a rank waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meanwhile {
    /// A message is in flight.
    pub sends: bool,
    /// All threads for agents have work.
    pub computes: bool,
}

impl Meanwhile {
    /// For how long a rank polls before its first nap. Polling takes the time of a core that threads may need.
    fn polling(self) -> Duration {
        match (self.sends, self.computes) {
            (true, false) => POLL_SENDING,
            (false, true) => Duration::ZERO,
            (false, false) | (true, true) => POLL,
        }
    }
}

/// The naps of the ranks of a job.
#[derive(Clone, Copy)]
pub(super) struct Naps {
    /// The levels of the tree.
    levels: u32,
}

impl Naps {
    pub fn new(ranks: u32) -> Self {
        Self { levels: tree::depth(ranks).max(1) }
    }

    /// The next nap of a rank that has waited so long; none if it still polls.
    pub fn next(self, waited: Duration, meanwhile: Meanwhile) -> Option<Duration> {
        let nap = match meanwhile {
            Meanwhile { computes: true, sends: false } => self.while_computing(waited),
            _ => self.after(waited),
        };
        (waited >= meanwhile.polling()).then_some(nap)
    }

    /// The next nap of a rank that waits.
    fn after(self, waited: Duration) -> Duration {
        (waited / PARTS).min(LONGEST) / self.levels
    }

    /// The next nap of a rank whose threads all compute, after it has heard of nothing for so long.
    fn while_computing(self, waited: Duration) -> Duration {
        (waited / PARTS_OF_COMPUTING.max(self.levels * PARTS_FOR_EACH_LEVEL))
            .min(LONGEST / self.levels)
            .max(SHORTEST_OF_COMPUTING)
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
    fn naps_of_ranks_that_compute_have_a_least_and_a_largest_length() {
        let (two, naps) = (Naps::new(2), Naps::new(1024));
        assert_eq!([two, naps].map(|naps| naps.while_computing(Duration::ZERO)), [SHORTEST_OF_COMPUTING; 2]);
        let waited = Duration::from_millis(8);
        assert_eq!([two, naps].map(|naps| naps.while_computing(waited)), [waited / 8, waited / 40]);
        assert_eq!(naps.while_computing(Duration::from_secs(1)), LONGEST / 10);
    }

    #[test]
    fn ranks_poll_before_they_nap_unless_their_threads_need_the_core() {
        let naps = Naps::new(2);
        let next = |micros: u64, sends, computes| naps.next(Duration::from_micros(micros), Meanwhile { sends, computes });
        assert_eq!((next(49, false, false), next(999, true, false), next(49, true, true)), (None, None, None));
        assert_eq!(next(0, false, true), Some(SHORTEST_OF_COMPUTING));
        let after = |micros: u64| Some(naps.after(Duration::from_micros(micros)));
        assert_eq!((next(50, false, false), next(1000, true, false), next(50, true, true)), (after(50), after(1000), after(50)));
    }
}
