//! Collapsed Gibbs sampling word by word, at a cost per token that depends on the topics of its document rather than on all topics.
//!
//! With q_k = (n_kw + β)/(n_k + W β), P(z = k | rest) ∝ n_dk q_k + α q_k. The first term is a sum over the topics of the document. The
//! second is drawn with the help of sums of q over blocks of topics, two of which change per token (after Yu, Hsieh, Yun, Vishwanathan &
//! Dhillon 2015, "A scalable asynchronous distributed algorithm for topic modeling", who use a tree). q belongs to one word and stays in
//! the fastest cache. A document with few topics is one cache line, which is prefetched.

use super::collapsed::{Tokens, TopicCounts};
use super::lanes::{LANES, below, draw, lane_sum, place_of, scan, smoothing, uniform};
use crate::random::Stream;
use crate::vector::{self, SimdKernel, SimdLevel, prefetch};

/// The number of tokens by which documents are prefetched ahead.
const AHEAD: usize = 8;
/// If this small a fraction of a sum remains after a subtraction, rounding dominates and the sum is computed anew.
const CANCELLED: f64 = 1.0 / (1 << 20) as f64;

/// The data structures of sweeps over a set of tokens. Results of a sweep do not depend on earlier sweeps.
#[derive(Clone, Debug)]
pub struct WordSweep {
    /// For each token in the order of words: its index among all tokens, and the first line of its document.
    places: Vec<u32>,
    documents: Vec<u32>,
    /// For each word that occurs: the word, and the end of its tokens in the order of words.
    words: Vec<(u32, usize)>,
    /// The end of the tokens of each document.
    ends: Vec<usize>,
    document_topics: DocumentTopics,
    weights: Weights,
}

/// A cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
struct Line([u32; LANES]);

/// The topic counts n_dk of all documents in sparse form.
///
/// Each document has its own lines. An entry holds a topic in its lower bits and the number of tokens above them. The first entry has the
/// topic K, which stands for no topic, and the number of entries that follow. Unused entries have the topic K and no tokens.
#[derive(Clone, Debug)]
struct DocumentTopics {
    /// The number of bits of a topic.
    bits: u32,
    /// The topic K, which stands for no topic.
    none: u32,
    lines: Vec<Line>,
}

impl WordSweep {
    /// Prepares sweeps over these tokens with K topics.
    ///
    /// # Panics
    /// If [`WordSweep::fits`] returns an error.
    pub fn new(tokens: &Tokens, topics: usize) -> Self {
        if let Err(message) = Self::fits(tokens, topics) {
            panic!("{message}");
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
            document_topics: DocumentTopics { bits: bits(none), none, lines: vec![Line([none; LANES]); lines] },
            weights: Weights::new(topics),
        }
    }

    /// Checks the size limits: token indices and line numbers have 32 bits, and so do K and the tokens of a document together.
    ///
    /// # Errors
    /// A message that says which limit is exceeded.
    pub fn fits(tokens: &Tokens, topics: usize) -> Result<(), String> {
        let lines: usize = tokens.spans().map(|span| capacity(span.len(), topics)).sum();
        if let Some(many) = [tokens.len(), lines].into_iter().find(|&many| u32::try_from(many).is_err()) {
            return Err(format!(
                "an agent has {many} tokens or cache lines for them; sweeps by word support at most {}: use more agents",
                u32::MAX
            ));
        }
        let longest = tokens.spans().map(|span| span.len()).max().unwrap_or(0);
        match (u32::try_from(topics), u32::try_from(longest)) {
            (Ok(topics), Ok(longest)) if bits(topics) + bits(longest) <= u32::BITS => Ok(()),
            _ => Err(format!(
                "{topics} topics and a document of {longest} tokens are too many for sweeps by word: sweep by document"
            )),
        }
    }

    /// Draws new topics for all tokens, word by word; word w draws from `stream(w)`. `topics` holds the topic of each token. `counts`
    /// includes these tokens, and may include others.
    ///
    /// # Panics
    /// If sizes differ, or a word or topic is not in the counts.
    pub fn sweep(
        &mut self,
        topics: &mut [u32],
        counts: &mut TopicCounts,
        alpha: f64,
        beta: f64,
        stream: impl FnMut(u32) -> Stream,
    ) {
        assert_eq!(self.documents.len(), topics.len(), "one topic per token is needed");
        assert_eq!(self.document_topics.none as usize, counts.topics(), "the counts have another number of topics");
        self.document_topics.count(&self.ends, topics);
        vector::dispatch(Sweep { sweep: self, topics, counts, alpha, beta, stream });
    }
}

impl DocumentTopics {
    /// Counts the topics of all tokens.
    fn count(&mut self, ends: &[usize], topics: &[u32]) {
        let Self { bits, none, lines } = self;
        let one = 1 << *bits;
        let mut places = vec![0_usize; *none as usize];
        let (mut remaining, mut begin) = (&mut lines[..], 0);
        for &end in ends {
            let (lines, others) = remaining.split_at_mut(capacity(end - begin, *none as usize));
            let mut length = 0;
            lines.fill(Line([*none; LANES]));
            for &topic in &topics[begin..end] {
                let place = &mut places[topic as usize];
                if *place == 0 {
                    length += 1;
                    *place = length;
                    lines[length / LANES].0[length % LANES] = topic;
                }
                lines[*place / LANES].0[*place % LANES] += one;
            }
            lines[0].0[0] = *none + length as u32 * one;
            for place in 1..=length {
                places[(lines[place / LANES].0[place % LANES] & (one - 1)) as usize] = 0;
            }
            (remaining, begin) = (others, end);
        }
    }
}

/// The number of bits of a number.
fn bits(number: u32) -> u32 {
    u32::BITS - number.leading_zeros()
}

/// The number of lines of a document.
fn capacity(tokens: usize, topics: usize) -> usize {
    // The first entry, and temporarily one topic more than tokens.
    (1 + (tokens + 1).min(topics)).div_ceil(LANES)
}

struct Sweep<'a, S> {
    sweep: &'a mut WordSweep,
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
        let Self { sweep, topics, counts, alpha, beta, mut stream } = self;
        let WordSweep { places, documents, words, document_topics, weights, .. } = sweep;
        let (beta, spread) = smoothing(beta, counts.vocabulary());
        // The relative error of single precision, 2^-24, is far below the Monte Carlo error of any run.
        let mut scales: Vec<f32> = counts.totals().iter().map(|&total| 1.0 / (total as f32 + spread)).collect();
        let (bits, none) = (document_topics.bits, document_topics.none);
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
                    prefetch(&document_topics.lines, ahead as usize, 1);
                    prefetch(topics, places[at + AHEAD] as usize, 1);
                }
                let place_of_token = places[at] as usize;
                let old = topics[place_of_token];
                let k = old as usize;
                // q of the old topic without this token.
                let without = ((row[k] - 1) as f32 + beta) / ((totals[k] - 1) as f32 + spread);
                let all = alpha * (weights.sum - f64::from(weights.leaves[k]) + f64::from(without));
                let start = documents[at] as usize;
                let head = document_topics.lines[start].0;
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
                    let lines = &document_topics.lines[start + 1..=start + last];
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
                    new = document_topics.lines[start + place / LANES].0[place % LANES] & mask;
                } else {
                    let had = weights.set(k, without);
                    if weights.sum < f64::from(had) * CANCELLED {
                        weights.add_up();
                    }
                    new = weights.draw::<U>(&mut stream) as u32;
                    weights.set(k, had);
                    let mut at = length + 1;
                    for (number, line) in document_topics.lines[start..=start + last].iter().enumerate() {
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
                    document_topics.lines[start + place / LANES].0[place % LANES] = new;
                    length = place;
                }
                document_topics.lines[start + place / LANES].0[place % LANES] += one;
                let left = document_topics.lines[start + own / LANES].0[own % LANES] - one;
                document_topics.lines[start + own / LANES].0[own % LANES] = left;
                if left < one {
                    let moved = &mut document_topics.lines[start + length / LANES].0[length % LANES];
                    let entry = std::mem::replace(moved, none);
                    if own != length {
                        document_topics.lines[start + own / LANES].0[own % LANES] = entry;
                    }
                    length -= 1;
                }
                document_topics.lines[start].0[0] = none + length as u32 * one;
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

/// The weights n_dk q_k of the entries of a line without one token of the topic `old`, whose q is `without`; and a bit mask of the entry
/// with that topic.
#[inline(always)]
fn weigh<U: SimdLevel>(line: &[u32; LANES], old: u32, bits: u32, mask: u32, leaves: &[f32], without: f32) -> ([f32; LANES], u32) {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: `WIDE` levels have AVX-512, and there is a leaf for each topic and for K.
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

/// A bit mask of the entries of a line that have this topic.
#[inline(always)]
fn having(line: &[u32; LANES], topic: u32, mask: u32) -> u32 {
    let mut found = 0;
    for (lane, entry) in line.iter().enumerate() {
        found |= u32::from(entry & mask == topic) << lane;
    }
    found
}

/// q of one word, with sums over blocks of topics.
#[derive(Clone, Debug)]
struct Weights {
    /// q of each topic, padded with 0.
    leaves: Vec<f32>,
    /// The sum of each block of topics, padded with 0.
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

    /// Computes all sums from the leaves.
    #[inline(always)]
    fn add_up(&mut self) {
        self.sum = 0.0;
        for (block, leaves) in self.blocks.iter_mut().zip(self.leaves.as_chunks::<LANES>().0) {
            *block = lane_sum(leaves.map(f64::from));
            self.sum += *block;
        }
    }

    /// Sets a leaf, updates the sums, and returns the old value.
    #[inline(always)]
    fn set(&mut self, at: usize, number: f32) -> f32 {
        let before = self.leaves[at];
        let more = f64::from(number) - f64::from(before);
        self.leaves[at] = number;
        // A negative block sum could lead to a missing block.
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
