//! The tree of ranks along which requests spread, and reports and sums come back: halves of halves, so that most messages stay near.
//!
//! Ranks are numbered by their position among those of a request. Position `p` and its neighbor form a pair, two neighboring pairs form a
//! group of four, and so on. Each group has a leader, which is the leader of one of its halves. What a group has to say reaches its leader
//! and is sent on by it alone. A message between groups of `n` ranks thus comes only after `log₂ n` within them, and on a cluster whose
//! nodes have neighboring ranks, few messages travel between nodes.
//!
//! There is a tree for each part of a large body, with other leaders, so that no rank adds or sends all parts.

/// The leader of group `index` of `2^level` positions among `count`, in the tree for this part.
fn leader(level: u32, index: usize, count: usize, part: usize) -> usize {
    let first = index << level;
    let leader = first + (part & ((1 << level) - 1));
    // The last group may not be full.
    if leader < count || level == 0 { leader } else { self::leader(level - 1, 2 * index, count, part) }
}

/// The number of levels above single positions: the most messages that one has to take in, one after another.
pub(super) fn depth(count: usize) -> u32 {
    count.next_power_of_two().trailing_zeros()
}

/// The position at the top.
pub(super) fn root(count: usize, part: usize) -> usize {
    leader(depth(count), 0, count, part)
}

/// The position above `at`; none at the top.
pub(super) fn parent(at: usize, count: usize, part: usize) -> Option<usize> {
    (1..=depth(count)).map(|level| leader(level, at >> level, count, part)).find(|&leader| leader != at)
}

/// The positions below `at`, the one with the largest group first.
pub(super) fn children(at: usize, count: usize, part: usize) -> Vec<usize> {
    let leads = |level: &u32| leader(*level, at >> level, count, part) == at;
    let other_half = |level: u32| (at >> (level - 1)) ^ 1;
    let led: Vec<u32> = (1..=depth(count)).take_while(leads).collect();
    let exists = |level: &u32| other_half(*level) << (*level - 1) < count;
    led.into_iter().rev().filter(exists).map(|level| leader(level - 1, other_half(level), count, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_reaches_every_position_once() {
        for count in 1..70 {
            for part in 0..17 {
                let mut seen = vec![0; count];
                let mut stack = vec![root(count, part)];
                assert_eq!(parent(stack[0], count, part), None);
                while let Some(at) = stack.pop() {
                    seen[at] += 1;
                    let below = children(at, count, part);
                    assert!(below.len() <= depth(count) as usize);
                    assert!(below.iter().all(|&child| parent(child, count, part) == Some(at)));
                    stack.extend(below);
                }
                assert_eq!(seen, vec![1; count], "{count} positions, part {part}");
            }
        }
    }

    #[test]
    fn what_a_rank_sends_on_is_from_neighbors() {
        // The positions below one form a group with it: sums over neighbors are complete when they are sent on.
        for (count, part) in [(64, 0), (64, 13), (37, 5), (4096, 7)] {
            for at in 0..count {
                let mut below = vec![at];
                let mut next = 0;
                while let Some(&position) = below.get(next) {
                    below.extend(children(position, count, part));
                    next += 1;
                }
                let (first, last) = (below.iter().min().copied(), below.iter().max().copied());
                assert_eq!(first.zip(last).map(|(first, last)| last - first + 1), Some(below.len()));
            }
        }
    }

    #[test]
    fn few_messages_travel_between_nodes() {
        let node = |position: usize| position / 32;
        let far = |part| (0..1024).filter(|&at| parent(at, 1024, part).is_some_and(|above| node(above) != node(at))).count();
        assert_eq!((far(0), far(5), far(31)), (31, 31, 31));
    }

    #[test]
    fn parts_have_other_leaders() {
        let load = |at: usize| (0..16).map(|part| children(at, 64, part).len()).max();
        assert_eq!(root(64, 5), 5);
        let whole: Vec<usize> = (0..64).map(|at| (0..16).map(|part| children(at, 64, part).len()).sum()).collect();
        assert!(load(5) == Some(6) && whole.iter().all(|&load| load <= 17), "{whole:?}");
    }
}
