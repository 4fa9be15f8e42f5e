//! The tree of ranks along which requests spread, and reports and sums come back: halves of halves, so that most messages stay near.
//!
//! Neighboring ranks form pairs, two neighboring pairs a block of four, and so on. Each block has a leader, which is the leader of one of its
//! halves; blocks without ranks that take part are left out. What a block has to say reaches its leader and is sent on by it alone. Before two
//! blocks of `n` ranks exchange a message, `log₂ n` messages have passed within each. On a cluster whose nodes have neighboring ranks, few
//! messages travel between nodes.
//!
//! There is a tree for each part of a large body, with other leaders, so that no rank adds or sends all parts.

use super::block::Block;
use super::ranges::Ranges;

/// The parts choose between halves by this many bits, over and over.
const BITS: u8 = 4;

/// The leader of a block among these ranks in the tree for this part, if there are any.
fn leader(block: Block, ranks: &Ranges, part: u32) -> Option<u32> {
    if !block.contains_any(ranks) {
        return None;
    }
    let Some([lower, upper]) = block.halves() else { return Some(block.first()) };
    let prefers_upper = part >> (lower.level() % BITS) & 1 == 1;
    let [preferred, other] = if prefers_upper { [upper, lower] } else { [lower, upper] };
    leader(preferred, ranks, part).or_else(|| leader(other, ranks, part))
}

/// The blocks of a rank: itself, its pair, and so on, up to all of these ranks.
fn blocks_of(rank: u32, ranks: &Ranges) -> impl Iterator<Item = Block> {
    std::iter::successors(Some(Block::single(rank)), |block| Some(block.parent())).take(depth(ranks.end()) as usize + 1)
}

/// The number of levels above single ranks: the most messages that one has to take in, one after another.
pub(super) fn depth(ranks: u32) -> u32 {
    u32::BITS - ranks.saturating_sub(1).leading_zeros()
}

/// The rank at the top; none if there are no ranks.
pub(super) fn root(ranks: &Ranges, part: u32) -> Option<u32> {
    blocks_of(ranks.first()?, ranks).last().and_then(|all| leader(all, ranks, part))
}

/// The rank above this one; none at the top.
pub(super) fn parent(rank: u32, ranks: &Ranges, part: u32) -> Option<u32> {
    blocks_of(rank, ranks).filter_map(|block| leader(block, ranks, part)).find(|&leader| leader != rank)
}

/// The ranks below this one, the one with the largest block first.
pub(super) fn children(rank: u32, ranks: &Ranges, part: u32) -> Vec<u32> {
    let led = blocks_of(rank, ranks).skip(1).zip(blocks_of(rank, ranks));
    let led = led.take_while(|(block, _)| leader(*block, ranks, part) == Some(rank));
    let mut children: Vec<u32> = led.filter_map(|(_, half)| leader(half.sibling(), ranks, part)).collect();
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
                    assert!(below.len() <= depth(ranks.end()) as usize);
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
