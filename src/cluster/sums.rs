//! Sums over agents: each rank adds one slice in agent order; receivers assemble the slices.

use super::body::Body;
use super::layout::{AgentId, Layout, Rank};
use super::packet::Posted;
use crate::number::Number;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Sums of fewer bytes are not sliced: the additional messages would cost more than the saved bytes.
const WHOLE_BELOW: usize = 32 * 1024;

/// The ranks that add a sum over these members of this length: rank `j` of them adds slice `j`.
pub(super) fn adding_ranks<N: Number>(layout: &Layout, members: &[AgentId], len: usize) -> Vec<Rank> {
    let mut ranks = layout.ranks_of(members);
    if len * size_of::<N>() < WHOLE_BELOW {
        ranks.truncate(1);
    }
    ranks
}

/// Slice `part` of `parts` of an array of length `len`.
pub(super) fn bounds(part: usize, parts: usize, len: usize) -> Range<usize> {
    part * len / parts..(part + 1) * len / parts
}

/// One slice of a sum, on the rank that adds it.
pub(super) struct Adder<N: Number> {
    /// Unknown if slices from other ranks arrive before the request.
    pub request: Option<Arc<Posted>>,
    /// Members on this rank that have not contributed yet.
    pub local_missing: usize,
    /// Whether this rank adds no slice, or has added all contributions.
    pub finished: bool,
    /// The length of the whole body, and an agent that sent it.
    pub len: Option<(AgentId, u64)>,
    waiting: BTreeMap<AgentId, Body<N>>,
    folded: usize,
    total: Option<Body<N>>,
}

impl<N: Number> Default for Adder<N> {
    fn default() -> Self {
        Self { request: None, local_missing: 0, finished: false, len: None, waiting: BTreeMap::new(), folded: 0, total: None }
    }
}

impl<N: Number> Adder<N> {
    /// Takes a member's contribution to this rank's slice; the error names two members whose bodies differ in length.
    pub fn add(&mut self, from: AgentId, len: u64, contribution: Body<N>) -> Result<(), String> {
        match self.len {
            Some((other, known)) if known != len => {
                return Err(format!(
                    "bodies of one sum differ in length: agent {other} sent {known} values, agent {from} sent {len} values"
                ));
            }
            _ => self.len = Some((from, len)),
        }
        self.waiting.insert(from, contribution);
        Ok(())
    }

    /// Adds the contributions that have arrived, in agent order; returns the total when all have.
    pub fn fold(&mut self) -> Option<Body<N>> {
        let request = self.request.as_ref()?;
        while let Some(member) = request.members.get(self.folded) {
            let contribution = self.waiting.remove(&member.agent)?;
            self.total = Some(match self.total.take() {
                None => contribution,
                Some(total) => {
                    let mut total = total.into_vec();
                    for (sum, &term) in total.iter_mut().zip(&*contribution) {
                        *sum += term;
                    }
                    total.into()
                }
            });
            self.folded += 1;
        }
        self.finished = true;
        self.total.take()
    }
}

/// Assembles a total from its slices.
pub(super) struct Assembly<N> {
    parts: Vec<Option<Body<N>>>,
}

impl<N: Number> Assembly<N> {
    pub fn new(parts: u32) -> Self {
        Self { parts: (0..parts).map(|_| None).collect() }
    }

    /// Takes a slice; returns the whole total after the last one.
    pub fn put(&mut self, part: u32, slice: Body<N>) -> Option<Body<N>> {
        if let Some(place) = self.parts.get_mut(part as usize) {
            *place = Some(slice);
        }
        if self.parts.iter().any(Option::is_none) {
            return None;
        }
        if let [only] = self.parts.as_mut_slice() {
            return only.take();
        }
        let mut whole = Vec::with_capacity(self.parts.iter().flatten().map(|slice| slice.len()).sum());
        for slice in self.parts.iter().flatten() {
            whole.extend_from_slice(slice);
        }
        Some(whole.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_everything_once() {
        for len in [0, 1, 5, 17, 4096] {
            for parts in [1, 2, 3, 7] {
                let cut: Vec<usize> = (0..parts).flat_map(|part| bounds(part, parts, len)).collect();
                assert_eq!(cut, (0..len).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn assembled_slices_are_the_whole() {
        let whole: Body<i32> = (0..10).collect::<Vec<_>>().into();
        let mut assembly = Assembly::new(3);
        assert!(assembly.put(2, whole.slice(bounds(2, 3, 10))).is_none());
        assert!(assembly.put(0, whole.slice(bounds(0, 3, 10))).is_none());
        assert_eq!(&*assembly.put(1, whole.slice(bounds(1, 3, 10))).expect("complete"), &*whole);
    }
}
