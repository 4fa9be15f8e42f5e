//! Collapsed Gibbs sweeps word by word, at a cost that follows the topics of a token's document and hardly all topics.
//!
//! With q_k = (n_kw + β)/(n_k + W β), P(z = k | rest) ∝ n_dk q_k + α q_k: the first part is a sum over the topics that the document has,
//! and the second is drawn from sums of q over blocks of topics, of which a token changes two (after Yu, Hsieh, Yun, Vishwanathan &
//! Dhillon 2015, "A scalable asynchronous distributed algorithm for topic modeling", who have a tree of them). All of q is of the word
//! at hand and stays in the fastest cache; a document is one line of memory as long as it has few topics, and is fetched ahead.

use super::collapsed::{Tokens, TopicCounts};
use super::lanes::{LANES, below, draw, place_of, scan, smoothing, uniform};
use crate::random::Stream;
use crate::vector::{self, SimdKernel, SimdLevel, prefetch};

/// How many tokens ahead documents are fetched.
const AHEAD: usize = 8;
/// Where so small a share of a sum is left, rounding may have left nothing or less of it: it is added up anew.
const CANCELLED: f64 = 1.0 / (1 << 20) as f64;

/// What a sweep over some tokens needs beside topics and counts; topics and the sweep's bits do not depend on what was swept before.
#[derive(Clone, Debug)]
pub struct WordSweep {
    /// The tokens in the order of their words: their places among all tokens, and where the topics of their documents begin.
    places: Vec<u32>,
    documents: Vec<u32>,
    /// The tokens of each word that occurs: the word, and where they end in that order.
    words: Vec<(u32, usize)>,
    /// Where the tokens of each document end.
    ends: Vec<usize>,
    held: Held,
    weights: Weights,
}

/// A line of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
struct Line([u32; LANES]);

/// The topics that each document has, and how many tokens each.
///
/// An entry is a topic in its lower bits, and how many tokens above them. A document has lines of its own. The first entry has no topic
/// (K), and tells how many entries follow; behind those are entries of no topic and no tokens.
#[derive(Clone, Debug)]
struct Held {
    /// Bits of a topic.
    bits: u32,
    /// What is no topic: K.
    none: u32,
    lines: Vec<Line>,
}

impl WordSweep {
    /// For these tokens and K topics.
    ///
    /// # Panics
    /// When [`WordSweep::fits`] says that there are too many.
    pub fn new(tokens: &Tokens, topics: usize) -> Self {
        if let Err(what) = Self::fits(tokens, topics) {
            panic!("{what}");
        }
        let mut next = vec![0_u32; tokens.words().iter().max().map_or(0, |&last| last as usize + 1)];
        tokens.words().iter().for_each(|&word| next[word as usize] += 1);
        let mut words: Vec<(u32, usize)> = Vec::new();
        let mut end = 0;
        for (word, next) in (0..).zip(&mut next) {
            let count = std::mem::replace(next, end);
            end += count;
            if count > 0 {
                words.push((word, end as usize));
            }
        }
        let mut places = vec![0; tokens.len()];
        let mut documents = vec![0; tokens.len()];
        let mut lines = 0;
        for span in tokens.spans() {
            for place in span.clone() {
                let at = &mut next[tokens.words()[place] as usize];
                places[*at as usize] = place as u32;
                documents[*at as usize] = lines as u32;
                *at += 1;
            }
            lines += capacity(span.len(), topics);
        }
        let none = topics as u32;
        Self {
            places,
            documents,
            words,
            ends: tokens.spans().map(|span| span.end).collect(),
            held: Held { bits: bits(none), none, lines: vec![Line([none; LANES]); lines] },
            weights: Weights::new(topics),
        }
    }

    /// Whether so many can be swept over: the places of tokens and the lines of documents have 32 bits, and the tokens of a document
    /// and K have together.
    ///
    /// # Errors
    /// Says what is too much.
    pub fn fits(tokens: &Tokens, topics: usize) -> Result<(), String> {
        let lines: usize = tokens.spans().map(|span| capacity(span.len(), topics)).sum();
        if let Some(many) = [tokens.len(), lines].into_iter().find(|&many| u32::try_from(many).is_err()) {
            return Err(format!(
                "{many} tokens of one agent, or lines of memory for them: at most {} for sweeps by word",
                u32::MAX
            ));
        }
        let longest = tokens.spans().map(|span| span.len()).max().unwrap_or(0);
        match (u32::try_from(topics), u32::try_from(longest)) {
            (Ok(topics), Ok(longest)) if bits(topics) + bits(longest) <= u32::BITS => Ok(()),
            _ => {
                Err(format!("{topics} topics and a document of {longest} tokens: too many for sweeps by word, sweep by document"))
            }
        }
    }

    /// Sweeps over all tokens, word by word; word w draws from `stream(w)`. `topics` has the topic of each token, and `counts` has them
    /// and perhaps more.
    ///
    /// # Panics
    /// When topics are not as many as tokens, a word or topic is none of the counts, or these are of another number of topics.
    pub fn sweep(
        &mut self,
        topics: &mut [u32],
        counts: &mut TopicCounts,
        alpha: f64,
        beta: f64,
        stream: impl FnMut(u32) -> Stream,
    ) {
        assert_eq!(self.documents.len(), topics.len(), "a topic for each token");
        assert_eq!(self.held.none as usize, counts.topics(), "counts of other topics");
        self.held.take(&self.ends, topics);
        vector::dispatch(Sweep { all: self, topics, counts, alpha, beta, stream });
    }
}

impl Held {
    /// Takes the topics of all tokens.
    fn take(&mut self, ends: &[usize], topics: &[u32]) {
        let Self { bits, none, lines } = self;
        let one = 1 << *bits;
        let mut places = vec![0_usize; *none as usize];
        let (mut rest, mut begin) = (&mut lines[..], 0);
        for &end in ends {
            let (mine, others) = rest.split_at_mut(capacity(end - begin, *none as usize));
            let mut length = 0;
            mine.fill(Line([*none; LANES]));
            for &topic in &topics[begin..end] {
                let place = &mut places[topic as usize];
                if *place == 0 {
                    length += 1;
                    *place = length;
                    mine[length / LANES].0[length % LANES] = topic;
                }
                mine[*place / LANES].0[*place % LANES] += one;
            }
            mine[0].0[0] = *none + length as u32 * one;
            for place in 1..=length {
                places[(mine[place / LANES].0[place % LANES] & (one - 1)) as usize] = 0;
            }
            (rest, begin) = (others, end);
        }
    }
}

/// The bits of a number.
fn bits(number: u32) -> u32 {
    u32::BITS - number.leading_zeros()
}

/// The lines of a document.
fn capacity(tokens: usize, topics: usize) -> usize {
    // The first entry, and for a moment one topic more than tokens.
    (1 + (tokens + 1).min(topics)).div_ceil(LANES)
}

struct Sweep<'a, S> {
    all: &'a mut WordSweep,
    topics: &'a mut [u32],
    counts: &'a mut TopicCounts,
    alpha: f64,
    beta: f64,
    stream: S,
}

impl<S: FnMut(u32) -> Stream> SimdKernel for Sweep<'_, S> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        let Self { all, topics, counts, alpha, beta, mut stream } = self;
        let WordSweep { places, documents, words, held, weights, .. } = all;
        let (beta, spread) = smoothing(beta, counts.vocabulary());
        // Counts are below 2^31, and numbers of single precision have a relative error of 2^-24: far less than any run can tell.
        let mut scales: Vec<f32> = counts.totals().iter().map(|&total| 1.0 / (total as f32 + spread)).collect();
        let (bits, none) = (held.bits, held.none);
        let one = 1_u32 << bits;
        let mask = one - 1;
        let mut running: Vec<[f32; LANES]> = vec![[0.0; LANES]; 1];
        let mut from = 0;
        for &(word, to) in &*words {
            let mut stream = stream(word);
            let (row, totals) = counts.row_and_totals(word);
            weights.fill(row, &scales, beta);
            for at in from..to {
                if let Some(&ahead) = documents.get(at + AHEAD) {
                    prefetch(&held.lines, ahead as usize, 1);
                    prefetch(topics, places[at + AHEAD] as usize, 1);
                }
                let place_of_token = places[at] as usize;
                let old = topics[place_of_token];
                let k = old as usize;
                // Of its own topic without the token.
                let without = ((row[k] - 1) as f32 + beta) / ((totals[k] - 1) as f32 + spread);
                let all = alpha * (weights.sum - f64::from(weights.leaves[k]) + f64::from(without));
                let start = documents[at] as usize;
                let head = held.lines[start].0;
                let length = (head[0] >> bits) as usize;
                let last = length / LANES;
                let (weight, found) = weigh::<U>(&head, old, bits, mask, &weights.leaves, without);
                let first = scan::<U>(&weight);
                let mut sum = first[LANES - 1];
                let mut own = (found.trailing_zeros() % 32) as usize;
                if last > 0 {
                    if running.len() < last {
                        running.resize(last, [0.0; LANES]);
                    }
                    let lines = &held.lines[start + 1..=start + last];
                    for ((number, line), running) in (1..).zip(lines).zip(&mut running) {
                        let (weight, found) = weigh::<U>(&line.0, old, bits, mask, &weights.leaves, without);
                        own += (found.count_ones() as usize * number * LANES) + (found.trailing_zeros() % 32) as usize;
                        *running = scan::<U>(&weight).map(|of_line| of_line + sum);
                        sum = running[LANES - 1];
                    }
                }
                let point = (uniform(&mut stream) * (f64::from(sum) + all)) as f32;
                let (new, place);
                if point < sum {
                    let mut below = below::<U>(&first, point);
                    for running in &running[..last] {
                        below += super::lanes::below::<U>(running, point);
                    }
                    place = place_of(below);
                    new = held.lines[start + place / LANES].0[place % LANES] & mask;
                } else {
                    let had = weights.set(k, without);
                    if weights.sum < f64::from(had) * CANCELLED {
                        weights.add_up();
                    }
                    new = weights.draw::<U>(&mut stream) as u32;
                    weights.set(k, had);
                    let mut at = length + 1;
                    for (number, line) in held.lines[start..=start + last].iter().enumerate() {
                        let seen = having(&line.0, new, mask);
                        if seen != 0 {
                            at = number * LANES + seen.trailing_zeros() as usize;
                        }
                    }
                    place = at;
                }
                if new == old {
                    continue;
                }
                row[k] -= 1;
                totals[k] -= 1;
                scales[k] = 1.0 / (totals[k] as f32 + spread);
                weights.set(k, without);
                let mut length = length;
                if place > length {
                    held.lines[start + place / LANES].0[place % LANES] = new;
                    length = place;
                }
                held.lines[start + place / LANES].0[place % LANES] += one;
                let left = held.lines[start + own / LANES].0[own % LANES] - one;
                held.lines[start + own / LANES].0[own % LANES] = left;
                if left < one {
                    let moved = &mut held.lines[start + length / LANES].0[length % LANES];
                    let entry = std::mem::replace(moved, none);
                    if own != length {
                        held.lines[start + own / LANES].0[own % LANES] = entry;
                    }
                    length -= 1;
                }
                held.lines[start].0[0] = none + length as u32 * one;
                let k = new as usize;
                row[k] += 1;
                totals[k] += 1;
                scales[k] = 1.0 / (totals[k] as f32 + spread);
                weights.set(k, (row[k] as f32 + beta) * scales[k]);
                topics[place_of_token] = new;
            }
            from = to;
        }
    }
}

/// Of each entry of a line n_dk q_k without a token of the topic `old`, whose q is `without` then; and which entry has that topic, as
/// bits.
#[inline(always)]
fn weigh<U: SimdLevel>(line: &[u32; LANES], old: u32, bits: u32, mask: u32, leaves: &[f32], without: f32) -> ([f32; LANES], u32) {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: the unit has AVX-512, and there is a leaf for each topic and for none.
        return unsafe {
            let entries = _mm512_loadu_si512(line.as_ptr().cast());
            let topics = _mm512_and_si512(entries, _mm512_set1_epi32(mask as i32));
            let counts = _mm512_srl_epi32(entries, _mm_cvtsi32_si128(bits as i32));
            let found = _mm512_cmpeq_epi32_mask(topics, _mm512_set1_epi32(old as i32));
            let counts = _mm512_mask_sub_epi32(counts, found, counts, _mm512_set1_epi32(1));
            let q = _mm512_i32gather_ps::<4>(topics, leaves.as_ptr().cast());
            let q = _mm512_mask_mov_ps(q, found, _mm512_set1_ps(without));
            let weight = _mm512_mul_ps(_mm512_cvtepi32_ps(counts), q);
            (std::mem::transmute::<__m512, [f32; LANES]>(weight), u32::from(found))
        };
    }
    let mut weight = [0.0_f32; LANES];
    let mut found = 0;
    for lane in 0..LANES {
        let topic = line[lane] & mask;
        let same = u32::from(topic == old);
        found |= same << lane;
        weight[lane] = ((line[lane] >> bits) - same) as i32 as f32 * if topic == old { without } else { leaves[topic as usize] };
    }
    (weight, found)
}

/// Which entries of a line have a topic, as bits.
#[inline(always)]
fn having(line: &[u32; LANES], topic: u32, mask: u32) -> u32 {
    let mut found = 0;
    for (lane, entry) in line.iter().enumerate() {
        found |= u32::from(entry & mask == topic) << lane;
    }
    found
}

/// q of the word at hand, and its sums.
#[derive(Clone, Debug)]
struct Weights {
    /// Of each topic, and 0 behind the last.
    leaves: Vec<f32>,
    /// Of each block of topics, and 0 behind the last.
    blocks: Vec<f64>,
    sum: f64,
}

impl Weights {
    fn new(topics: usize) -> Self {
        let blocks = (topics + 1).div_ceil(LANES);
        Self { leaves: vec![0.0; blocks * LANES], blocks: vec![0.0; blocks.next_multiple_of(LANES)], sum: 0.0 }
    }

    #[inline(always)]
    fn fill(&mut self, row: &[i32], scales: &[f32], beta: f32) {
        for ((leaf, &count), scale) in self.leaves.iter_mut().zip(row).zip(scales) {
            *leaf = (count as f32 + beta) * scale;
        }
        self.add_up();
    }

    /// The sums of what is there.
    #[inline(always)]
    fn add_up(&mut self) {
        self.sum = 0.0;
        for (block, leaves) in self.blocks.iter_mut().zip(self.leaves.as_chunks::<LANES>().0) {
            let mut lanes = leaves.map(f64::from);
            for step in [8, 4, 2, 1] {
                for lane in 0..step {
                    lanes[lane] += lanes[lane + step];
                }
            }
            *block = lanes[0];
            self.sum += *block;
        }
    }

    /// Gives the number that was there.
    #[inline(always)]
    fn set(&mut self, at: usize, number: f32) -> f32 {
        let before = self.leaves[at];
        let more = f64::from(number) - f64::from(before);
        self.leaves[at] = number;
        // Below 0 it could lead to a block that is none.
        self.blocks[at / LANES] = (self.blocks[at / LANES] + more).max(0.0);
        self.sum += more;
        before
    }

    /// Draws a topic.
    #[inline(always)]
    fn draw<U: SimdLevel>(&self, stream: &mut Stream) -> usize {
        let (leaves, blocks) = (self.leaves.as_chunks().0, self.blocks.as_chunks::<LANES>().0);
        draw::<U>(leaves, blocks.len(), |group| blocks[group].map(|block| block as f32), self.sum, stream)
    }
}

#[cfg(test)]
mod tests;
