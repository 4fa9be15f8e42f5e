//! Collapsed Gibbs sampling word by word, at a cost per token that depends on the topics of its document rather than on all topics.
//!
//! With q_k = (n_kw + β)/(n_k + W β), P(z = k | rest) ∝ n_dk q_k + α q_k. The first term is a sum over the topics of the document. The
//! second is drawn with the help of sums of q over blocks of topics, at most two of which change per token (after Yu, Hsieh, Yun, Vishwanathan &
//! Dhillon 2015, "A scalable asynchronous distributed algorithm for topic modeling", who use a tree). q belongs to one word and stays in
//! the fastest cache. A document with few topics is one cache line, which is prefetched.

use super::collapsed::{Tokens, TopicCounts};
use super::lanes::{LANES, below, draw, lane_sum, place_of, scan, smoothing, uniform};
use crate::random::Stream;
use crate::vector::{self, SimdKernel, SimdLevel, prefetch};

/// How many tokens ahead the document of a token is prefetched.
const PREFETCH_DISTANCE: usize = 8;
/// If this small a fraction of a sum remains after a subtraction, rounding dominates and the sum is recomputed.
const CANCELLED: f64 = 1.0 / (1 << 20) as f64;

/// Sweeps over a set of tokens in word order: all tokens of the first word, then of the second. A sweep does not depend on earlier ones.
#[derive(Clone, Debug)]
pub struct WordSweep {
    /// The tokens in word order, as indices in document order.
    tokens: Vec<u32>,
    /// The first line of the document of each token, in word order.
    document_lines: Vec<u32>,
    /// Each word that occurs, and the end of its tokens in word order.
    word_ends: Vec<(u32, usize)>,
    /// The end of the tokens of each document, in document order.
    document_ends: Vec<usize>,
    document_topics: DocumentTopics,
    weights: Weights,
}

/// A cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
struct Line([u32; LANES]);

/// The topic counts n_dk of all documents in sparse form.
///
/// A document occupies one or more lines. An entry is a `u32`: a topic in the lower bits, and its count in the upper bits. The first entry
/// of a document has topic K (no topic), and its count is the number of used entries, which follow. Unused entries have topic K and count
/// 0.
#[derive(Clone, Debug)]
struct DocumentTopics {
    /// The number of lower bits that hold the topic.
    topic_bits: u32,
    /// K, which stands for no topic.
    no_topic: u32,
    lines: Vec<Line>,
}

impl WordSweep {
    /// Prepares sweeps over these tokens with K topics.
    ///
    /// # Panics
    /// If [`WordSweep::check_size`] returns an error.
    pub fn new(tokens: &Tokens, topics: usize) -> Self {
        if let Err(message) = Self::check_size(tokens, topics) {
            panic!("{message}");
        }
        // The number of tokens of each word, then the position of its next token in word order.
        let mut next = vec![0_u32; tokens.words().iter().max().map_or(0, |&last| last as usize + 1)];
        tokens.words().iter().for_each(|&word| next[word as usize] += 1);
        let mut word_ends: Vec<(u32, usize)> = Vec::new();
        let mut end = 0;
        for (word, next) in (0..).zip(&mut next) {
            let tokens_of_word = std::mem::replace(next, end);
            end += tokens_of_word;
            if tokens_of_word > 0 {
                word_ends.push((word, end as usize));
            }
        }
        let mut in_word_order = vec![0; tokens.len()];
        let mut document_lines = vec![0; tokens.len()];
        let mut lines = 0;
        for span in tokens.spans() {
            for token in span.clone() {
                let position = &mut next[tokens.words()[token] as usize];
                in_word_order[*position as usize] = token as u32;
                document_lines[*position as usize] = lines as u32;
                *position += 1;
            }
            lines += lines_of_document(span.len(), topics);
        }
        let no_topic = topics as u32;
        Self {
            tokens: in_word_order,
            document_lines,
            word_ends,
            document_ends: tokens.spans().map(|span| span.end).collect(),
            document_topics: DocumentTopics {
                topic_bits: bit_length(no_topic),
                no_topic,
                lines: vec![Line([no_topic; LANES]); lines],
            },
            weights: Weights::new(topics),
        }
    }

    /// Checks the size limits: token indices and line indices must fit into 32 bits, and so must an entry, which holds a topic up to K and
    /// a count up to the length of the longest document.
    ///
    /// # Errors
    /// A message that names the exceeded limit.
    pub fn check_size(tokens: &Tokens, topics: usize) -> Result<(), String> {
        let lines: usize = tokens.spans().map(|span| lines_of_document(span.len(), topics)).sum();
        if let Some(size) = [tokens.len(), lines].into_iter().find(|&size| u32::try_from(size).is_err()) {
            return Err(format!(
                "an agent's documents are too large for sweeps by word ({size} tokens or lines of counts, at most {}): use more agents",
                u32::MAX
            ));
        }
        let longest = tokens.spans().map(|span| span.len()).max().unwrap_or(0);
        match (u32::try_from(topics), u32::try_from(longest)) {
            (Ok(topics), Ok(longest)) if bit_length(topics) + bit_length(longest) <= u32::BITS => Ok(()),
            _ => Err(format!(
                "{topics} topics and a document of {longest} tokens are too many for sweeps by word: set method.sweep_by = \"document\""
            )),
        }
    }

    /// Draws new topics for all tokens, word by word; word w draws from `stream(w)`. `topics` holds the topic of each token in document
    /// order. `counts` includes these tokens, and may include others.
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
        assert_eq!(self.tokens.len(), topics.len(), "one topic per token is needed");
        assert_eq!(self.document_topics.no_topic as usize, counts.topics(), "the counts have another number of topics");
        self.document_topics.count_topics(&self.document_ends, topics);
        vector::dispatch(Sweep { sweep: self, topics, counts, alpha, beta, stream });
    }
}

impl DocumentTopics {
    /// Counts the topics of all tokens, which are in document order.
    fn count_topics(&mut self, document_ends: &[usize], topics: &[u32]) {
        let Self { topic_bits, no_topic, lines } = self;
        let one_token = 1 << *topic_bits;
        // The entry of each topic in the current document, 0 if it has none.
        let mut entry_of_topic = vec![0_usize; *no_topic as usize];
        let (mut remaining, mut begin) = (&mut lines[..], 0);
        for &end in document_ends {
            let (lines, later) = remaining.split_at_mut(lines_of_document(end - begin, *no_topic as usize));
            let mut used = 0;
            lines.fill(Line([*no_topic; LANES]));
            for &topic in &topics[begin..end] {
                let entry = &mut entry_of_topic[topic as usize];
                if *entry == 0 {
                    used += 1;
                    *entry = used;
                    lines[used / LANES].0[used % LANES] = topic;
                }
                lines[*entry / LANES].0[*entry % LANES] += one_token;
            }
            lines[0].0[0] = *no_topic + used as u32 * one_token;
            for entry in 1..=used {
                entry_of_topic[(lines[entry / LANES].0[entry % LANES] & (one_token - 1)) as usize] = 0;
            }
            (remaining, begin) = (later, end);
        }
    }
}

/// The number of bits that hold the numbers up to `max`.
fn bit_length(max: u32) -> u32 {
    u32::BITS - max.leading_zeros()
}

/// The number of lines of a document with this many tokens.
fn lines_of_document(tokens: usize, topics: usize) -> usize {
    // The first entry, and the topics: during an update there is one more than tokens.
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
        let WordSweep { tokens, document_lines, word_ends, document_topics, weights, .. } = sweep;
        let (beta, beta_sum) = smoothing(beta, counts.vocabulary());
        // The relative error of single precision, 2^-24, is far below the Monte Carlo error of any run.
        let mut scales: Vec<f32> = counts.totals().iter().map(|&total| 1.0 / (total as f32 + beta_sum)).collect();
        let (topic_bits, no_topic) = (document_topics.topic_bits, document_topics.no_topic);
        let one_token = 1_u32 << topic_bits;
        let topic_mask = one_token - 1;
        // Cumulative weights of the entries of a document, from its second line.
        let mut cumulative: Vec<[f32; LANES]> = vec![[0.0; LANES]; 1];
        let mut begin = 0;
        for &(word, end) in &*word_ends {
            let mut stream = stream(word);
            let (row, totals) = counts.row_and_totals(word);
            weights.fill(row, &scales, beta);
            for position in begin..end {
                if let Some(&line) = document_lines.get(position + PREFETCH_DISTANCE) {
                    prefetch(&document_topics.lines, line as usize, 1);
                    prefetch(topics, tokens[position + PREFETCH_DISTANCE] as usize, 1);
                }
                let token = tokens[position] as usize;
                let old_topic = topics[token];
                let old = old_topic as usize;
                // q of the old topic without this token.
                let q_without = ((row[old] - 1) as f32 + beta) / ((totals[old] - 1) as f32 + beta_sum);
                // Σ_k α q_k, the second term of the sum over topics.
                let prior_sum = alpha * (weights.sum - f64::from(weights.q[old]) + f64::from(q_without));
                let first_line = document_lines[position] as usize;
                let head = document_topics.lines[first_line].0;
                let used = (head[0] >> topic_bits) as usize;
                let further_lines = used / LANES;
                let (entry_weights, old_mask) = weigh::<U>(&head, old_topic, topic_bits, topic_mask, &weights.q, q_without);
                let first_cumulative = scan::<U>(&entry_weights);
                let mut document_sum = first_cumulative[LANES - 1];
                let mut old_entry = (old_mask.trailing_zeros() % 32) as usize;
                if further_lines > 0 {
                    if cumulative.len() < further_lines {
                        cumulative.resize(further_lines, [0.0; LANES]);
                    }
                    let lines = &document_topics.lines[first_line + 1..=first_line + further_lines];
                    for ((number, line), cumulative) in (1..).zip(lines).zip(&mut cumulative) {
                        let (entry_weights, old_mask) =
                            weigh::<U>(&line.0, old_topic, topic_bits, topic_mask, &weights.q, q_without);
                        old_entry +=
                            (old_mask.count_ones() as usize * number * LANES) + (old_mask.trailing_zeros() % 32) as usize;
                        *cumulative = scan::<U>(&entry_weights).map(|within_line| within_line + document_sum);
                        document_sum = cumulative[LANES - 1];
                    }
                }
                let point = (uniform(&mut stream) * (f64::from(document_sum) + prior_sum)) as f32;
                let (new_topic, new_entry);
                if point < document_sum {
                    let mut entries_below = below::<U>(&first_cumulative, point);
                    for cumulative in &cumulative[..further_lines] {
                        entries_below += below::<U>(cumulative, point);
                    }
                    new_entry = place_of(entries_below);
                    new_topic = document_topics.lines[first_line + new_entry / LANES].0[new_entry % LANES] & topic_mask;
                } else {
                    let q_with = weights.set(old, q_without);
                    if weights.sum < f64::from(q_with) * CANCELLED {
                        weights.recompute_sums();
                    }
                    new_topic = weights.draw::<U>(&mut stream) as u32;
                    weights.set(old, q_with);
                    // The entry of the new topic, or else the first unused one.
                    let mut entry = used + 1;
                    for (number, line) in document_topics.lines[first_line..=first_line + further_lines].iter().enumerate() {
                        let lanes = lanes_with_topic(&line.0, new_topic, topic_mask);
                        if lanes != 0 {
                            entry = number * LANES + lanes.trailing_zeros() as usize;
                        }
                    }
                    new_entry = entry;
                }
                if new_topic == old_topic {
                    continue;
                }
                row[old] -= 1;
                totals[old] -= 1;
                scales[old] = 1.0 / (totals[old] as f32 + beta_sum);
                weights.set(old, q_without);
                let mut used = used;
                if new_entry > used {
                    document_topics.lines[first_line + new_entry / LANES].0[new_entry % LANES] = new_topic;
                    used = new_entry;
                }
                document_topics.lines[first_line + new_entry / LANES].0[new_entry % LANES] += one_token;
                let decremented = document_topics.lines[first_line + old_entry / LANES].0[old_entry % LANES] - one_token;
                document_topics.lines[first_line + old_entry / LANES].0[old_entry % LANES] = decremented;
                if decremented < one_token {
                    // The old topic has no tokens left: the last entry takes its place.
                    let last = &mut document_topics.lines[first_line + used / LANES].0[used % LANES];
                    let moved = std::mem::replace(last, no_topic);
                    if old_entry != used {
                        document_topics.lines[first_line + old_entry / LANES].0[old_entry % LANES] = moved;
                    }
                    used -= 1;
                }
                document_topics.lines[first_line].0[0] = no_topic + used as u32 * one_token;
                let new = new_topic as usize;
                row[new] += 1;
                totals[new] += 1;
                scales[new] = 1.0 / (totals[new] as f32 + beta_sum);
                weights.set(new, (row[new] as f32 + beta) * scales[new]);
                topics[token] = new_topic;
            }
            begin = end;
        }
    }
}

/// The weights n_dk q_k of the entries of a line, and a bit mask of the entry with the topic `old_topic`. One token is taken from that
/// entry, and its q is `q_without`.
#[inline(always)]
fn weigh<U: SimdLevel>(
    line: &[u32; LANES],
    old_topic: u32,
    topic_bits: u32,
    topic_mask: u32,
    q: &[f32],
    q_without: f32,
) -> ([f32; LANES], u32) {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: `WIDE` levels have AVX-512, and `q` has an element for each topic and for K.
        return unsafe {
            let entries = _mm512_loadu_si512(line.as_ptr().cast());
            let topics = _mm512_and_si512(entries, _mm512_set1_epi32(topic_mask as i32));
            let counts = _mm512_srl_epi32(entries, _mm_cvtsi32_si128(topic_bits as i32));
            let old_mask = _mm512_cmpeq_epi32_mask(topics, _mm512_set1_epi32(old_topic as i32));
            let counts = _mm512_mask_sub_epi32(counts, old_mask, counts, _mm512_set1_epi32(1));
            let q = _mm512_i32gather_ps::<4>(topics, q.as_ptr().cast());
            let q = _mm512_mask_mov_ps(q, old_mask, _mm512_set1_ps(q_without));
            let weights = _mm512_mul_ps(_mm512_cvtepi32_ps(counts), q);
            (std::mem::transmute::<__m512, [f32; LANES]>(weights), u32::from(old_mask))
        };
    }
    #[cfg(target_arch = "x86_64")]
    if U::AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: these levels have AVX2, and `q` has an element for each topic and for K.
        return unsafe {
            let half = |at: usize| {
                let entries = _mm256_loadu_si256(line.as_ptr().add(at).cast());
                let topics = _mm256_and_si256(entries, _mm256_set1_epi32(topic_mask as i32));
                let is_old = _mm256_cmpeq_epi32(topics, _mm256_set1_epi32(old_topic as i32));
                // −1 in the lane of the old topic.
                let counts = _mm256_add_epi32(_mm256_srl_epi32(entries, _mm_cvtsi32_si128(topic_bits as i32)), is_old);
                let q = _mm256_i32gather_ps::<4>(q.as_ptr(), topics);
                let q = _mm256_blendv_ps(q, _mm256_set1_ps(q_without), _mm256_castsi256_ps(is_old));
                let weights = _mm256_mul_ps(_mm256_cvtepi32_ps(counts), q);
                (weights, _mm256_movemask_ps(_mm256_castsi256_ps(is_old)) as u32)
            };
            let ((low, old_low), (high, old_high)) = (half(0), half(8));
            (std::mem::transmute::<[__m256; 2], [f32; LANES]>([low, high]), old_low | old_high << 8)
        };
    }
    let mut weights = [0.0_f32; LANES];
    let mut old_mask = 0;
    for lane in 0..LANES {
        let topic = line[lane] & topic_mask;
        let is_old = u32::from(topic == old_topic);
        old_mask |= is_old << lane;
        weights[lane] =
            ((line[lane] >> topic_bits) - is_old) as i32 as f32 * if topic == old_topic { q_without } else { q[topic as usize] };
    }
    (weights, old_mask)
}

/// A bit mask of the entries of a line that have this topic.
#[inline(always)]
fn lanes_with_topic(line: &[u32; LANES], topic: u32, topic_mask: u32) -> u32 {
    let mut lanes = 0;
    for (lane, entry) in line.iter().enumerate() {
        lanes |= u32::from(entry & topic_mask == topic) << lane;
    }
    lanes
}

/// q of one word, with sums over blocks of topics.
#[derive(Clone, Debug)]
struct Weights {
    /// q of each topic, padded with 0.
    q: Vec<f32>,
    /// The sum of q over each block of topics, padded with 0.
    block_sums: Vec<f64>,
    sum: f64,
}

impl Weights {
    fn new(topics: usize) -> Self {
        let blocks = (topics + 1).div_ceil(LANES);
        Self { q: vec![0.0; blocks * LANES], block_sums: vec![0.0; blocks.next_multiple_of(LANES)], sum: 0.0 }
    }

    /// Computes q from the counts of a word and 1/(n_k + W β).
    #[inline(always)]
    fn fill(&mut self, row: &[i32], scales: &[f32], beta: f32) {
        for ((q, &count), scale) in self.q.iter_mut().zip(row).zip(scales) {
            *q = (count as f32 + beta) * scale;
        }
        self.recompute_sums();
    }

    #[inline(always)]
    fn recompute_sums(&mut self) {
        self.sum = 0.0;
        for (block_sum, block) in self.block_sums.iter_mut().zip(self.q.as_chunks::<LANES>().0) {
            *block_sum = lane_sum(block.map(f64::from));
            self.sum += *block_sum;
        }
    }

    /// Sets q of a topic, updates the sums, and returns the previous value.
    #[inline(always)]
    fn set(&mut self, topic: usize, q: f32) -> f32 {
        let previous = self.q[topic];
        let change = f64::from(q) - f64::from(previous);
        self.q[topic] = q;
        // Rounding can make the sum negative. With a negative sum, `draw` could select a block of padding.
        self.block_sums[topic / LANES] = (self.block_sums[topic / LANES] + change).max(0.0);
        self.sum += change;
        previous
    }

    /// Draws a topic.
    #[inline(always)]
    fn draw<U: SimdLevel>(&self, stream: &mut Stream) -> usize {
        let (blocks, groups) = (self.q.as_chunks().0, self.block_sums.as_chunks::<LANES>().0);
        draw::<U>(
            |block| blocks[block],
            groups.len(),
            |group| groups[group].map(|block_sum| block_sum as f32),
            self.sum,
            || uniform(stream),
        )
    }
}

#[cfg(test)]
mod tests;
