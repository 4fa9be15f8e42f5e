//! Which chains are averaged when: groups that stay for some rounds and then become smaller, or none.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// For some rounds, chains in so many groups are averaged at the end of every visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AveragingPhase {
    /// How many groups of neighbouring chains, as equal as can be: 1 couples all chains.
    pub groups: u32,
    /// For how many rounds.
    pub rounds: u64,
}

/// The groups of this round: ranges of chains, each chain in one. After the last phase every chain is on its own.
pub fn groups(phases: &[AveragingPhase], round: u64, chains: u32) -> Vec<Range<u32>> {
    let mut end = 0_u64;
    let phase = phases.iter().find(|phase| {
        end = end.saturating_add(phase.rounds);
        round < end
    });
    let groups = phase.map_or(chains, |phase| phase.groups.clamp(1, chains.max(1)));
    let edge = |group: u32| (u64::from(group) * u64::from(chains) / u64::from(groups)) as u32;
    (0..groups).map(|group| edge(group)..edge(group + 1)).collect()
}

/// Whether every group of so many lies within one of as many as before.
pub(super) fn splits(chains: u32, before: u32, after: u32) -> bool {
    let phase = |groups: u32| self::groups(&[AveragingPhase { groups, rounds: 1 }], 0, chains);
    let before = phase(before);
    phase(after).iter().all(|group| before.iter().any(|other| other.start <= group.start && group.end <= other.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_shrink_and_then_chains_are_alone() {
        let phases = [AveragingPhase { groups: 1, rounds: 2 }, AveragingPhase { groups: 3, rounds: 1 }];
        assert_eq!(groups(&phases, 1, 7).first(), Some(&(0..7)));
        let sizes: Vec<usize> = groups(&phases, 2, 7).iter().map(ExactSizeIterator::len).collect();
        assert_eq!((sizes.iter().sum::<usize>(), sizes.iter().min(), sizes.iter().max()), (7, Some(&2), Some(&3)));
        assert!(splits(8, 2, 4) && splits(7, 1, 3) && !splits(7, 2, 3) && !splits(8, 4, 2));
        assert_eq!(groups(&phases, 3, 3), [0..1, 1..2, 2..3]);
        assert_eq!(groups(&[], 0, 1).first(), Some(&(0..1)));
        assert_eq!(groups(&[AveragingPhase { groups: 9, rounds: 1 }], 0, 2), [0..1, 1..2]);
    }
}
