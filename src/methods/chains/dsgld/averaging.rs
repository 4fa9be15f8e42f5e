//! Averaging of coupled chains: groups of chains that are averaged for some rounds, in phases.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A phase in which the chains of each group are averaged at the end of every visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AveragingPhase {
    /// Number of groups of consecutive chains, of nearly equal size; 1 averages all chains.
    pub groups: u32,
    /// Number of rounds.
    pub rounds: u64,
}

/// The groups of a round, as ranges that cover all chains. After the last phase every chain is a group of its own.
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

/// Whether each of `after` groups lies within one of `before` groups.
pub(super) fn can_split(chains: u32, before: u32, after: u32) -> bool {
    let phase = |groups: u32| self::groups(&[AveragingPhase { groups, rounds: 1 }], 0, chains);
    let before = phase(before);
    phase(after).iter().all(|group| before.iter().any(|other| other.start <= group.start && group.end <= other.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_nearly_equal_and_end_with_the_last_phase() {
        let phases = [AveragingPhase { groups: 1, rounds: 2 }, AveragingPhase { groups: 3, rounds: 1 }];
        assert_eq!(groups(&phases, 1, 7).first(), Some(&(0..7)));
        let sizes: Vec<usize> = groups(&phases, 2, 7).iter().map(ExactSizeIterator::len).collect();
        assert_eq!((sizes.iter().sum::<usize>(), sizes.iter().min(), sizes.iter().max()), (7, Some(&2), Some(&3)));
        assert!(can_split(8, 2, 4) && can_split(7, 1, 3) && !can_split(7, 2, 3) && !can_split(8, 4, 2));
        assert_eq!(groups(&phases, 3, 3), [0..1, 1..2, 2..3]);
        assert_eq!(groups(&[], 0, 1).first(), Some(&(0..1)));
        assert_eq!(groups(&[AveragingPhase { groups: 9, rounds: 1 }], 0, 2), [0..1, 1..2]);
    }
}
