//! The tree of ranks along which requests spread, and reports and sums come back: halves of halves, so that most messages stay near.
//!
//! Neighboring ranks form pairs, two neighboring pairs a group of four, and so on. Each group has a leader, which is the leader of one of its
//! halves; groups without ranks that take part are left out. What a group has to say reaches its leader and is sent on by it alone. Before two
//! groups of `n` ranks exchange a message, `log₂ n` messages have passed within each. On a cluster whose nodes have neighboring ranks, few
//! messages travel between nodes.
//!
//! There is a tree for each part of a large body, with other leaders, so that no rank adds or sends all parts.

use super::ranges::Ranges;

/// The parts choose between halves by so many bits, over and over.
const BITS: u32 = 4;

/// The numbers from `index · 2^level` on, `2^level` of them.
#[derive(Clone, Copy)]
struct Group {
    level: u32,
    index: u32,
}

impl Group {
    fn has_some_of(self, ranks: &Ranges) -> bool {
        let (first, end) = (u64::from(self.index) << self.level, (u64::from(self.index) + 1) << self.level);
        u32::try_from(first).is_ok_and(|first| ranks.has_within(first, end))
    }

    /// The leader among these ranks in the tree for this part, if there are any.
    fn leader(self, ranks: &Ranges, part: u32) -> Option<u32> {
        if !self.has_some_of(ranks) {
            return None;
        }
        let Some(level) = self.level.checked_sub(1) else { return Some(self.index) };
        let preferred = part >> (level % BITS) & 1;
        let half = |which| Self { level, index: 2 * self.index + which };
        half(preferred).leader(ranks, part).or_else(|| half(1 - preferred).leader(ranks, part))
    }
}

/// The number of levels above single ranks: the most messages that one has to take in, one after another.
pub(super) fn depth(ranks: u32) -> u32 {
    u32::BITS - ranks.saturating_sub(1).leading_zeros()
}

fn depth_of(ranks: &Ranges) -> u32 {
    depth(ranks.end())
}

/// The rank at the top; none if there are no ranks.
pub(super) fn root(ranks: &Ranges, part: u32) -> Option<u32> {
    Group { level: depth_of(ranks), index: 0 }.leader(ranks, part)
}

/// The rank above this one; none at the top.
pub(super) fn parent(rank: u32, ranks: &Ranges, part: u32) -> Option<u32> {
    let groups = (1..=depth_of(ranks)).map(|level| Group { level, index: rank.checked_shr(level).unwrap_or(0) });
    groups.filter_map(|group| group.leader(ranks, part)).find(|&leader| leader != rank)
}

/// The ranks below this one, the one with the largest group first.
pub(super) fn children(rank: u32, ranks: &Ranges, part: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for level in 1..=depth_of(ranks) {
        if (Group { level, index: rank.checked_shr(level).unwrap_or(0) }).leader(ranks, part) != Some(rank) {
            break;
        }
        let other_half = Group { level: level - 1, index: (rank >> (level - 1)) ^ 1 };
        children.extend(other_half.leader(ranks, part));
    }
    children.reverse();
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_reaches_every_rank_once() {
        let half = |seed: u32| (0..64).filter(move |rank: &u32| (rank ^ seed).wrapping_mul(2_654_435_761) >> 16 & 1 == 0);
        let sets = (1..70).map(|count| Ranges::new(0..count)).chain((0..20).map(|seed| Ranges::new(half(seed))));
        for ranks in sets.filter(|ranks| !ranks.is_empty()) {
            for part in 0..17 {
                let mut seen = Vec::new();
                let mut stack = vec![root(&ranks, part).unwrap_or(u32::MAX)];
                assert_eq!(parent(stack[0], &ranks, part), None);
                while let Some(rank) = stack.pop() {
                    seen.push(rank);
                    let below = children(rank, &ranks, part);
                    assert!(below.len() <= depth_of(&ranks) as usize);
                    assert!(below.iter().all(|&child| parent(child, &ranks, part) == Some(rank)));
                    stack.extend(below);
                }
                seen.sort_unstable();
                assert!(ranks.iter().eq(seen.iter().copied()), "{ranks:?}, part {part}: {seen:?}");
            }
        }
        assert_eq!(root(&Ranges::default(), 3), None);
    }

    #[test]
    fn few_messages_travel_between_nodes() {
        let ranks = Ranges::new(0..1024);
        let far =
            |part| (0..1024).filter(|&rank| parent(rank, &ranks, part).is_some_and(|above| above / 32 != rank / 32)).count();
        assert_eq!((far(0), far(5), far(15)), (31, 31, 31));
    }

    #[test]
    fn parts_have_other_leaders() {
        let ranks = Ranges::new(0..64);
        let mut roots: Vec<Option<u32>> = (0..16).map(|part| root(&ranks, part)).collect();
        roots.sort_unstable();
        roots.dedup();
        let load = |rank| (0..16).map(|part| children(rank, &ranks, part).len()).sum::<usize>();
        assert_eq!((roots.len(), (0..64).map(load).max()), (16, Some(17)));
        assert_eq!((depth(1), depth(2), depth(3), depth(64), depth(65)), (0, 1, 2, 6, 7));
    }
}
