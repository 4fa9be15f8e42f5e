//! Sums over agents, added in an order that depends on the numbers of the agents alone, so that the bits of a sum do too.
//!
//! Agents are added in pairs of neighbors, the sums of pairs in neighboring pairs, and so on: agents 0 and 1, 2 and 3, then both sums. An
//! agent that is no member of the request is left out. A rank can add what it has of such a tree before it sends anything.

use super::block::{Block, PartOfSum};
use super::body::Body;
use super::layout::AgentId;
use super::packet::{Posted, Reduction};
use super::ranges::Ranges;
use super::tree;
use crate::number::Number;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A part of a sum has at least this many bytes: the additional messages would cost more than they save.
const MIN_BYTES_OF_PART: usize = 16 * 1024;
/// The most parts: more would not spread the work of adding any better, and each takes a message of every rank.
const MAX_PARTS: usize = 16;

/// The number of parts of a sum of this many values over this many ranks. Each part is added along a tree of its own.
fn parts<N: Number>(ranks: usize, len: usize) -> usize {
    (len * size_of::<N>() / MIN_BYTES_OF_PART).min(ranks).clamp(1, MAX_PARTS)
}

/// Part `part` of `parts` of an array of length `len`.
fn bounds(part: usize, parts: usize, len: usize) -> Range<usize> {
    part * len / parts..(part + 1) * len / parts
}

/// Sums over blocks of agents, none of which can be added to another yet.
struct PartialSums<N> {
    /// The members of the sum.
    members: Arc<Ranges>,
    blocks: BTreeMap<Block, Body<N>>,
}

impl<N: Number> PartialSums<N> {
    fn new(members: Arc<Ranges>) -> Self {
        Self { members, blocks: BTreeMap::new() }
    }

    /// Takes the sum over all members in a block, and adds what can be added.
    fn add(&mut self, mut block: Block, mut sum: Body<N>) {
        while !block.contains_all(&self.members) {
            if let Some(other) = self.blocks.remove(&block.sibling()) {
                sum = added(other, sum);
            } else if block.sibling().contains_any(&self.members) {
                break;
            }
            block = block.parent();
        }
        self.blocks.insert(block, sum);
    }
}

/// The sum of two bodies of the same length. Which of them comes first does not matter for the bits of numbers.
fn added<N: Number>(first: Body<N>, second: Body<N>) -> Body<N> {
    let (sum, term) = if first.is_sole() { (first, second) } else { (second, first) };
    let mut sum = sum.into_vec();
    for (sum, &term) in sum.iter_mut().zip(&*term) {
        *sum += term;
    }
    sum.into()
}

/// What a rank does next with a part of a sum.
pub(super) enum Step<N: Number> {
    /// Sends it to the rank at this place.
    Send { to: u32, part: PartOfSum, body: Body<N> },
    /// It is complete.
    Done { part: u32, parts: u32, total: Body<N> },
}

/// A sum to which members on this rank contribute.
pub(super) struct Summation<N: Number> {
    /// Unknown if parts from other ranks arrive before the request.
    known: Option<Known<N>>,
    /// The length of the whole body, and an agent that has sent it.
    len: Option<(AgentId, u64)>,
    /// What has arrived from other ranks and is not added yet.
    arrived: Vec<(PartOfSum, Body<N>)>,
    /// The parts, once all members on this rank have contributed.
    parts: Vec<Part<N>>,
}

/// What a rank knows of a sum from the request.
struct Known<N: Number> {
    request: Arc<Posted>,
    /// The place of this rank, and those of all ranks that contribute. Ranks that host agents have the places from 0 on.
    place: u32,
    places: Ranges,
    /// Members on this rank that have not contributed yet.
    missing: usize,
    /// The sums of the members on this rank.
    local: PartialSums<N>,
}

/// A part of a sum.
struct Part<N> {
    sums: PartialSums<N>,
    /// Ranks below this one in the tree whose sums have not arrived yet.
    missing: usize,
    is_finished: bool,
}

impl<N: Number> Default for Summation<N> {
    fn default() -> Self {
        Self { known: None, len: None, arrived: Vec::new(), parts: Vec::new() }
    }
}

impl<N: Number> Summation<N> {
    /// Takes the request. This rank is at `place` among the `places` of those that contribute, and hosts this many of the members.
    pub fn open(&mut self, request: Arc<Posted>, place: u32, places: Ranges, members_here: usize) {
        let local = PartialSums::new(Arc::new(request.members.agents()));
        self.known = Some(Known { request, place, places, missing: members_here, local });
    }

    /// Takes the contribution of a member on this rank.
    ///
    /// # Errors
    /// If another member's body has another length; the error names both.
    pub fn contribute(&mut self, from: AgentId, body: Body<N>) -> Result<(), String> {
        self.check_length((from, body.len() as u64))?;
        if let Some(known) = &mut self.known {
            known.missing = known.missing.saturating_sub(1);
            known.local.add(Block::single(from), body);
        }
        Ok(())
    }

    /// Takes partial sums from another rank.
    ///
    /// # Errors
    /// As [`contribute`](Self::contribute).
    pub fn receive(&mut self, part: PartOfSum, body: Body<N>) -> Result<(), String> {
        self.check_length(part.length_of)?;
        self.arrived.push((part, body));
        Ok(())
    }

    fn check_length(&mut self, (from, len): (AgentId, u64)) -> Result<(), String> {
        match self.len {
            Some((other, known)) if known != len => Err(format!(
                "bodies of one sum differ in length: agent {other} sent {known} values, agent {from} sent {len} values"
            )),
            _ => {
                self.len = Some((from, len));
                Ok(())
            }
        }
    }

    /// The sum over the members on this rank, once all have contributed: MPI adds it to those of other ranks.
    pub fn take_local(&mut self) -> Option<Reduction<N>> {
        let known = self.known.as_mut().filter(|known| known.missing == 0)?;
        let number = known.request.reduction?;
        let contribution = std::mem::take(&mut known.local.blocks).into_values().reduce(added)?;
        Some(Reduction { number, request: known.request.clone(), from: self.len?.0, contribution })
    }

    /// The request, if it has arrived.
    pub fn request(&self) -> Option<&Arc<Posted>> {
        self.known.as_ref().map(|known| &known.request)
    }

    /// Whether this rank has no more to do with the sum.
    pub fn is_finished(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| part.is_finished)
    }

    /// What to do with the parts that have all that this rank waits for.
    pub fn advance(&mut self) -> Vec<Step<N>> {
        let (Some(known), Some(len)) = (&mut self.known, self.len) else { return Vec::new() };
        if known.missing > 0 {
            return Vec::new();
        }
        if self.parts.is_empty() {
            self.parts = known.cut(len.1 as usize);
        }
        let (place, places) = (known.place, &known.places);
        let parts = self.parts.len();
        for (arrived, body) in self.arrived.drain(..) {
            if let Some(part) = self.parts.get_mut(arrived.part as usize) {
                part.missing = part.missing.saturating_sub(1);
                if let [block] = arrived.blocks[..] {
                    // Without a second holder, its memory is used for the sum.
                    part.sums.add(block, body);
                    continue;
                }
                let size = body.len() / arrived.blocks.len().max(1);
                let slices = (0..).map(|at| at * size..(at + 1) * size);
                arrived.blocks.into_iter().zip(slices).for_each(|(block, values)| part.sums.add(block, body.slice(values)));
            }
        }
        let mut steps = Vec::new();
        for (number, part) in (0..).zip(&mut self.parts).filter(|(_, part)| part.missing == 0 && !part.is_finished) {
            part.is_finished = true;
            let sums = std::mem::take(&mut part.sums.blocks);
            steps.push(match tree::parent(place, places, number) {
                None => Step::Done { part: number, parts: parts as u32, total: Body::joined(sums.into_values().collect()) },
                Some(to) => {
                    let (blocks, bodies): (Vec<Block>, Vec<Body<N>>) = sums.into_iter().unzip();
                    Step::Send { to, part: PartOfSum { part: number, length_of: len, blocks }, body: Body::joined(bodies) }
                }
            });
        }
        steps
    }
}

impl<N: Number> Known<N> {
    /// The parts of the sum, each with what the members on this rank contribute to it.
    fn cut(&mut self, len: usize) -> Vec<Part<N>> {
        let count = parts::<N>(self.places.len(), len);
        let blocks = std::mem::take(&mut self.local.blocks);
        let with = |part: usize, blocks| Part {
            sums: PartialSums { members: self.local.members.clone(), blocks },
            missing: tree::children(self.place, &self.places, part as u32).len(),
            is_finished: false,
        };
        if count == 1 {
            return vec![with(0, blocks)];
        }
        let slices = |part| blocks.iter().map(move |(&block, body)| (block, body.slice(bounds(part, count, len)))).collect();
        (0..count).map(|part| with(part, slices(part))).collect()
    }
}

/// Assembles a total from its parts.
pub(super) struct Assembly<N> {
    parts: Vec<Option<Body<N>>>,
}

impl<N: Number> Assembly<N> {
    pub fn new(parts: u32) -> Self {
        Self { parts: (0..parts).map(|_| None).collect() }
    }

    /// Takes a part; returns the whole total after the last one.
    pub fn put(&mut self, part: u32, values: Body<N>) -> Option<Body<N>> {
        if let Some(place) = self.parts.get_mut(part as usize) {
            *place = Some(values);
        }
        self.parts.iter().all(Option::is_some).then(|| Body::joined(self.parts.drain(..).flatten().collect()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::codec::Raw;
    use super::super::members::{Member, Members};
    use super::super::request::Route;
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for len in [0, 1, 5, 17, 4096] {
            for parts in [1, 2, 3, 7] {
                let cut: Vec<usize> = (0..parts).flat_map(|part| bounds(part, parts, len)).collect();
                assert_eq!(cut, (0..len).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn assembled_parts_are_the_whole() {
        let whole: Body<i32> = (0..10).collect::<Vec<_>>().into();
        let mut assembly = Assembly::new(3);
        assert!(assembly.put(2, whole.slice(bounds(2, 3, 10))).is_none());
        assert!(assembly.put(0, whole.slice(bounds(0, 3, 10))).is_none());
        assert_eq!(&*assembly.put(1, whole.slice(bounds(1, 3, 10))).unwrap(), &*whole);
    }

    /// Packets that a rank received, and sums in a packet.
    type Load = (usize, usize);

    /// What an agent contributes: numbers whose sums are rounded.
    fn contribution(agent: AgentId, len: usize) -> Body<f32> {
        (0..len).map(|at| 1.0 / (1.0 + agent as f32 + 0.1 * at as f32)).collect::<Vec<f32>>().into()
    }

    /// The sum over members from `first` to `end` in halves of halves.
    fn expected(members: &Ranges, level: u32, index: u32, len: usize) -> Option<Vec<f32>> {
        if level == 0 {
            return members.contains(index).then(|| contribution(index, len).to_vec());
        }
        let half = |index| expected(members, level - 1, index, len);
        match (half(2 * index), half(2 * index + 1)) {
            (Some(left), Some(right)) => Some(left.iter().zip(&right).map(|(left, right)| left + right).collect()),
            (left, right) => left.or(right),
        }
    }

    /// Adds over ranks that host these members, in turn or from the last to the first; returns the total, the most packets that a rank received,
    /// and the most sums in a packet.
    fn sum_over(hosted: &[Vec<AgentId>], len: usize, backwards: bool) -> (Vec<f32>, Load) {
        let member = |&agent: &AgentId| Member { agent, sequence: 0, transfer: None };
        let mut agents: Vec<AgentId> = hosted.iter().flatten().copied().collect();
        agents.sort_unstable();
        let members = Members::new(agents.iter().map(member));
        let request =
            Arc::new(Posted { id: 0, task: Raw(Vec::new()), members, route: Route::Sum, monitoring: false, reduction: None });
        let mut ranks: Vec<Summation<f32>> = hosted.iter().map(|_| Summation::default()).collect();
        let places = Ranges::new((0..).zip(hosted).filter(|(_, agents)| !agents.is_empty()).map(|(place, _)| place));
        let mut received = vec![0; hosted.len()];
        let mut most_sums = 0;
        let mut total = None;
        let mut order: Vec<usize> = (0..hosted.len()).collect();
        if backwards {
            order.reverse();
        }
        let mut waiting = Vec::new();
        for at in order {
            if hosted[at].is_empty() {
                continue;
            }
            ranks[at].open(request.clone(), at as u32, places.clone(), hosted[at].len());
            hosted[at].iter().for_each(|&agent| ranks[at].contribute(agent, contribution(agent, len)).unwrap());
            waiting.push(at);
            while let Some(at) = waiting.pop() {
                for step in ranks[at].advance() {
                    match step {
                        Step::Send { to, part, body } => {
                            most_sums = most_sums.max(part.blocks.len());
                            received[to as usize] += 1;
                            ranks[to as usize].receive(part, body).unwrap();
                            waiting.push(to as usize);
                        }
                        Step::Done { part, parts, total: values } => {
                            total = total.or_else(|| Some(Assembly::new(parts)));
                            let whole = total.as_mut().unwrap().put(part, values);
                            if let Some(whole) = whole {
                                assert!(places.iter().all(|place| ranks[place as usize].is_finished()));
                                return (whole.to_vec(), (received.into_iter().max().unwrap_or(0), most_sums));
                            }
                        }
                    }
                }
            }
        }
        (Vec::new(), (0, 0))
    }

    #[test]
    fn the_bits_of_a_sum_depend_on_the_members_alone() {
        for members in [Ranges::new(0..23), Ranges::new([0, 1, 3, 7, 8, 9, 22, 30, 31]), Ranges::new([5])] {
            for len in [0, 1, 7, 40_000] {
                let right = expected(&members, 5, 0, len).unwrap();
                // The control: from the first to the last, the bits are others.
                let from_left = members.iter().map(|agent| contribution(agent, len).to_vec());
                let from_left = from_left.reduce(|sum, term| sum.iter().zip(&term).map(|(sum, term)| sum + term).collect());
                assert!(members.len() == 1 || len < 40_000 || from_left != Some(right.clone()));
                for ranks in [1, 2, 3, 5, 9] {
                    for cyclic in [false, true] {
                        let mut hosted = vec![Vec::new(); ranks.min(members.len())];
                        let each = members.len().div_ceil(hosted.len());
                        for (at, agent) in members.iter().enumerate() {
                            let rank = if cyclic { at % hosted.len() } else { at / each };
                            hosted[rank].push(agent);
                        }
                        hosted.retain(|agents| !agents.is_empty());
                        for backwards in [false, true] {
                            assert_eq!(sum_over(&hosted, len, backwards).0, right, "{hosted:?}, {len} values");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_rank_receives_few_packets_of_a_sum() {
        for (ranks, len, most) in [(64, 10, 6), (1000, 10, 10), (64, 1 << 20, 17)] {
            let hosted: Vec<Vec<AgentId>> = (0..ranks).map(|agent| vec![agent]).collect();
            let (packets, sums) = sum_over(&hosted, len, false).1;
            assert!(packets <= most && sums == 1, "{ranks} ranks: {packets} packets of {sums} sums");
        }
        // Half of the agents, each on a rank of its own: a packet has one sum. With some more agents than ranks it has a few.
        let some = |agent: AgentId| (agent.wrapping_mul(2_654_435_761) >> 16).is_multiple_of(2);
        let half: Vec<Vec<AgentId>> = (0..1000).map(|agent| if some(agent) { vec![agent] } else { Vec::new() }).collect();
        let (packets, sums) = sum_over(&half, 10, false).1;
        assert!(packets <= 10 && sums == 1, "{packets} packets of {sums} sums");
        let uneven: Vec<Vec<AgentId>> = (0..256).map(|rank| (rank * 5 / 4..(rank + 1) * 5 / 4).collect()).collect();
        let (packets, sums) = sum_over(&uneven, 10, false).1;
        assert!(packets <= 8 && (2..=6).contains(&sums), "{packets} packets of {sums} sums");
    }

    #[test]
    fn bodies_of_other_lengths_are_refused() {
        let mut sum: Summation<f32> = Summation::default();
        sum.contribute(3, contribution(3, 4)).unwrap();
        let part = PartOfSum { part: 0, length_of: (9, 5), blocks: vec![Block::single(9)] };
        let refused = sum.receive(part, contribution(9, 5)).unwrap_err();
        assert!(refused.contains("agent 3 sent 4 values, agent 9 sent 5 values"), "{refused}");
    }
}
