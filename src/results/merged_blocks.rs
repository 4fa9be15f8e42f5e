//! Merges blocks of draws in memory into those from files of ranks, so that each chain has its draws in order.
//!
//! Ranks that store draws in files send them to rank 0 instead while the disk is full.

use super::error::{Result, ResultsError};
use crate::cluster::record::{DrawBlock, Extents};
use std::collections::BTreeMap;
use std::iter::Peekable;

/// Blocks from files, those of each chain in order, and blocks in memory whose predecessors are among them.
pub(super) struct MergedBlocks<'a, I: Iterator> {
    /// By group, chain and first draw.
    in_memory: BTreeMap<(String, u32, u64), &'a DrawBlock>,
    in_files: Peekable<I>,
}

impl<'a, I: Iterator<Item = Result<DrawBlock>>> MergedBlocks<'a, I> {
    pub fn new(in_memory: Vec<&'a DrawBlock>, in_files: I) -> Self {
        let key = |block: &DrawBlock| (block.group.clone(), block.chain, block.first);
        Self { in_memory: in_memory.into_iter().map(|block| (key(block), block)).collect(), in_files: in_files.peekable() }
    }

    /// The next block after draws up to these extents, if there is one. A block from memory continues its chain; one from a file may leave a
    /// gap, which the caller has to check.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn next(&mut self, extents: &Extents) -> Result<Option<DrawBlock>> {
        let draws_of_chain = |block: &DrawBlock| extents.of(&block.group, block.chain);
        while let Some(Ok(block)) = self.in_files.peek() {
            let (first, there) = (block.first, draws_of_chain(block));
            if first == there {
                break;
            }
            if first > there {
                match self.in_memory.remove(&(block.group.clone(), block.chain, there)) {
                    Some(between) => return Ok(Some(between.clone())),
                    None => break,
                }
            }
            // The result file has these draws: their file could not be deleted when they were collected.
            self.in_files.next();
        }
        if let Some(block) = self.in_files.next() {
            return block.map(Some);
        }
        // The first one that leaves a gap stops all after it, also those of other chains.
        let next = self.in_memory.first_entry().filter(|next| next.get().first == draws_of_chain(next.get()));
        Ok(next.map(|next| next.remove().clone()))
    }

    /// Checks that no block is left.
    ///
    /// # Errors
    /// If one is, because its predecessor is missing.
    pub fn check_end(&self) -> Result<()> {
        self.in_memory.keys().next().map_or(Ok(()), |(group, chain, first)| {
            Err(ResultsError::Shape(format!("the draws of {group:?}: chain {chain} has a gap before draw {first}")))
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn block(chain: u32, first: u64, draws: usize) -> DrawBlock {
        let bytes = vec![0; 8 * draws];
        DrawBlock { group: "posterior".into(), chain, first, dim: 1, kind: "f64".into(), bytes }
    }

    /// The blocks as chain and first draw, and what the end says.
    fn ordered(in_memory: &[DrawBlock], in_files: Vec<DrawBlock>) -> (Vec<(u32, u64)>, Result<()>) {
        let mut extents = Extents::default();
        extents.set("posterior", 0, 2);
        let mut all = MergedBlocks::new(in_memory.iter().collect(), in_files.into_iter().map(Ok));
        let mut order = Vec::new();
        while let Some(block) = all.next(&extents).unwrap() {
            order.push((block.chain, block.first));
            extents.set("posterior", block.chain, block.first + block.bytes.len() as u64 / 8);
        }
        (order, all.check_end())
    }

    #[test]
    fn draws_in_memory_come_between_those_in_files() {
        let in_memory = [block(0, 4, 1), block(0, 5, 2), block(0, 9, 1), block(1, 3, 1), block(2, 0, 1)];
        let in_files = vec![block(0, 0, 2), block(0, 2, 2), block(0, 7, 2), block(1, 0, 3)];
        let (order, end) = ordered(&in_memory, in_files);
        assert_eq!(order, [(0, 2), (0, 4), (0, 5), (0, 7), (1, 0), (0, 9), (1, 3), (2, 0)]);
        end.unwrap();
        // A draw that is missing is noticed, in memory and in a file.
        let end = ordered(&[block(0, 3, 1)], Vec::new()).1.unwrap_err().to_string();
        assert!(end.contains("chain 0 has a gap before draw 3"), "{end}");
        assert_eq!(ordered(&[], vec![block(0, 3, 1)]).0, [(0, 3)], "the caller sees the gap");
    }
}
