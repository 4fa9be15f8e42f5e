//! Gibbs sweeps over the topics of all tokens given φ: documents are then independent, and can be swept in any order.
//!
//! P(z = k | rest of the document, φ) ∝ n_dk φ_kw + α_k φ_kw, with n_dk the other tokens of the document. Summed over k, the first term is
//! Σ_j φ_(z_j)w over the other tokens j: in a short document it is sampled by choosing a token j and taking its topic, without counts. In a
//! long document n_dk is an array. The second term is sampled with the sums over chunks of topics that [`TopicTable`] has.
//!
//! All SIMD levels give the same bits, because they add the same numbers in the same order.

use super::lanes::{LANES, below, draw, lane_sum, place_of, product, scan};
use super::token_blocks::{TokenBlock, TokenBlocks};
use super::topic_table::TopicTable;
use crate::random::mix;
use crate::vector::{self, SimdKernel, SimdLevel, prefetch};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::ParallelSliceMut;

/// How many tokens ahead the topics of the document of a token are prefetched.
const PREFETCH_DISTANCE: usize = 6;
/// The distance of consecutive random numbers of a document before they are mixed: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Attempts of the rejection sampler, after which the token keeps its topic: reached only if rounding leaves all weight on that topic.
const MAX_ATTEMPTS: usize = 64;
/// The number of words whose tokens are counted together, by one thread.
const WORDS_COUNTED_TOGETHER: usize = 64;

/// What a sweep depends on, beside the tokens and their topics.
#[derive(Clone, Copy, Debug)]
pub struct FixedSweep<'a> {
    /// φ, and α_k of each topic as a multiple of their mean.
    pub table: &'a TopicTable,
    /// The mean of α_k, the prior count of a topic in a document.
    pub alpha: f64,
    /// The key of all random numbers of the sweep.
    pub key: u64,
    /// The number of the first document of this set among the documents of all sets. Random numbers depend on the key, the number of the
    /// document and the place of the token in it.
    pub first_document: u64,
}

/// How a document is swept: given its length and the number of topics, so that results depend on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentForm {
    /// By its length.
    ByLength,
    /// All documents as lists of topics, for tests.
    #[cfg(test)]
    List,
    /// All documents as counts of topics, for tests.
    #[cfg(test)]
    Dense,
}

impl DocumentForm {
    /// Whether a document of this length has counts of its topics.
    #[inline(always)]
    fn is_dense(self, length: usize, topics: usize) -> bool {
        match self {
            Self::ByLength => 2 * length >= topics,
            #[cfg(test)]
            Self::List => false,
            #[cfg(test)]
            Self::Dense => true,
        }
    }
}

impl TokenBlocks {
    /// Draws new topics for all tokens, and adds them to `counts` (W × K). `topics` holds the topic of each token in document order; K stands
    /// for no topic yet. The result does not depend on threads.
    ///
    /// # Panics
    /// If sizes differ, or a topic is above K.
    pub fn sweep(&self, topics: &mut [u16], sweep: FixedSweep, counts: &mut [i32]) {
        self.sweep_as(DocumentForm::ByLength, topics, sweep, counts);
    }

    pub(super) fn sweep_as(&self, form: DocumentForm, mut topics: &mut [u16], sweep: FixedSweep, counts: &mut [i32]) {
        let (topic_count, table) = (sweep.table.topics(), sweep.table);
        assert_eq!(topics.len(), self.len(), "one topic per token is needed");
        assert_eq!(table.vocabulary(), self.vocabulary(), "the table has another vocabulary than the documents");
        assert_eq!(counts.len(), self.vocabulary() * topic_count, "the counts and the table differ in size");
        // Enough blocks for all threads, and few enough that their new topics take little memory.
        for group in self.blocks.chunks(4 * rayon::current_num_threads()) {
            let mut parts = Vec::with_capacity(group.len());
            for block in group {
                let (part, others) = topics.split_at_mut(block.len());
                parts.push((block, part, Vec::new()));
                topics = others;
            }
            parts.par_chunks_mut(1).for_each_init(Scratch::default, |scratch, part| {
                for (block, topics, new_topics) in part {
                    vector::dispatch(BlockSweep { block, sweep, form, topics, new_topics, scratch });
                }
            });
            counts.par_chunks_mut(WORDS_COUNTED_TOGETHER * topic_count).enumerate().for_each(|(number, counts)| {
                let first = number * WORDS_COUNTED_TOGETHER;
                for (block, _, new_topics) in &parts {
                    block.count(first, new_topics, topic_count, counts);
                }
            });
        }
    }

    /// Adds the topics of all tokens to `counts` (W × K).
    ///
    /// # Panics
    /// If sizes differ, or a topic is not below K.
    pub fn count(&self, topics: &[u16], topic_count: usize, counts: &mut [i32]) {
        assert_eq!(topics.len(), self.len(), "one topic per token is needed");
        assert_eq!(counts.len(), self.vocabulary() * topic_count, "the counts have another size");
        let mut before = 0;
        for block in &self.blocks {
            let mut cursors: Vec<usize> = block.starts.iter().map(|&start| before + start as usize).collect();
            before += block.len();
            let mut documents = block.documents.iter();
            let mut begin = 0;
            for &[word, end] in block.word_ends.iter() {
                for &document in documents.by_ref().take((end - begin) as usize) {
                    let cursor = &mut cursors[usize::from(document)];
                    counts[word as usize * topic_count + usize::from(topics[*cursor])] += 1;
                    *cursor += 1;
                }
                begin = end;
            }
        }
    }
}

impl TokenBlock {
    /// Adds the topics of the tokens of some words, from word `first` on, to `counts` (some rows of length K). `topics` is in word order.
    fn count(&self, first: usize, topics: &[u16], topic_count: usize, counts: &mut [i32]) {
        let run = self.word_ends.partition_point(|&[word, _]| (word as usize) < first);
        let mut begin = if run == 0 { 0 } else { self.word_ends[run - 1][1] };
        for &[word, end] in &self.word_ends[run..] {
            let row = (word as usize - first) * topic_count;
            let Some(counts) = counts.get_mut(row..row + topic_count) else { break };
            topics[begin as usize..end as usize].iter().for_each(|&topic| counts[usize::from(topic)] += 1);
            begin = end;
        }
    }
}

/// A document of a block during a sweep.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct SweptDocument {
    /// The key of its random numbers.
    key: u64,
    /// Its first token in document order.
    start: u32,
    /// The number of its tokens.
    length: u32,
    /// The number of its tokens that have new topics.
    cursor: u32,
    /// The step at which its counts begin, or [`NOT_DENSE`].
    counts: u32,
}

/// In place of counts, for a document without.
const NOT_DENSE: u32 = u32::MAX;

/// The buffers of a thread.
#[derive(Clone, Debug, Default)]
struct Scratch {
    documents: Vec<SweptDocument>,
    /// The topics of the block in document order, with a step of padding.
    topics: Vec<u16>,
    /// n_dk of the documents with many tokens, padded.
    counts: Vec<u16>,
    /// α_k of each topic, padded.
    alphas: Vec<f32>,
    /// Sums over the lanes up to each step.
    sums: Vec<[f32; LANES]>,
}

struct BlockSweep<'a> {
    block: &'a TokenBlock,
    sweep: FixedSweep<'a>,
    form: DocumentForm,
    /// The topics of the block in document order.
    topics: &'a mut [u16],
    /// The new topics in word order.
    new_topics: &'a mut Vec<u16>,
    scratch: &'a mut Scratch,
}

impl Scratch {
    /// Loads the documents of a block.
    fn load(&mut self, block: &TokenBlock, sweep: FixedSweep, form: DocumentForm, topics: &[u16]) {
        let topic_count = sweep.table.topics();
        let row = sweep.table.own().len();
        assert!(topics.iter().all(|&topic| usize::from(topic) <= topic_count), "a topic is above {topic_count}");
        self.topics.clear();
        self.topics.extend_from_slice(topics);
        self.topics.resize(topics.len() + LANES, 0);
        self.documents.clear();
        self.counts.clear();
        self.alphas.clear();
        self.alphas.extend(sweep.table.relative_alpha().iter().map(|&relative| (sweep.alpha * f64::from(relative)) as f32));
        let mut longest = 0;
        for (number, span) in (0..).zip(block.starts.windows(2)) {
            let (start, length) = (span[0], span[1] - span[0]);
            let number: u64 = sweep.first_document + block.first_document as u64 + number;
            let mut counts = NOT_DENSE;
            if form.is_dense(length as usize, topic_count) && length > 0 {
                // A block has at most 2^13 documents, and a row at most 2^12 steps.
                counts = (self.counts.len() / LANES) as u32;
                let begin = self.counts.len();
                self.counts.resize(begin + row, 0);
                let of_document = &mut self.counts[begin..];
                topics[span[0] as usize..span[1] as usize].iter().for_each(|&topic| of_document[usize::from(topic)] += 1);
            } else {
                longest = longest.max(length as usize);
            }
            self.documents.push(SweptDocument { key: mix(sweep.key ^ mix(number)), start, length, cursor: 0, counts });
        }
        self.sums.resize(longest.div_ceil(LANES).max(row / LANES), [0.0; LANES]);
    }
}

impl SimdKernel for BlockSweep<'_> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        let Self { block, sweep: sweep @ FixedSweep { table, alpha, .. }, form, topics: saved, new_topics, scratch } = self;
        scratch.load(block, sweep, form, saved);
        let Scratch { documents, topics, counts, alphas, sums } = scratch;
        let (topic_count, own_parts, relative_alpha) = (table.topics(), table.own(), table.relative_alpha());
        let (word_ends, document_of_token): (&[[u32; 2]], &[u16]) = (&block.word_ends, &block.documents);
        let chunks = own_parts.len() / LANES;
        new_topics.resize(block.len(), 0);
        let mut begin = 0;
        for (run, &[word, end]) in word_ends.iter().enumerate() {
            let (phi, chunk_sums) = table.row(word as usize);
            if let Some(&[next, _]) = word_ends.get(run + 1) {
                prefetch(table.row(next as usize).0, 0, phi.len());
            }
            let groups = chunk_sums.as_chunks::<LANES>().0;
            let mut all = 0.0;
            for group in groups {
                all += f64::from(lane_sum(*group));
            }
            for position in begin as usize..end as usize {
                if let Some(&ahead) = document_of_token.get(position + PREFETCH_DISTANCE) {
                    let ahead = documents[usize::from(ahead)];
                    prefetch(topics, ahead.start as usize, 2 * LANES);
                    prefetch(topics, ahead.start as usize + 2 * LANES, 2 * LANES);
                }
                let document = &mut documents[usize::from(document_of_token[position])];
                let SweptDocument { key, start, length, cursor, counts: first_count } = *document;
                document.cursor = cursor + 1;
                let (start, length) = (start as usize, length as usize);
                let place = start + cursor as usize;
                let old = topics[place];
                let own = own_parts[usize::from(old)].min(phi[usize::from(old)]);
                let hash = mix(key.wrapping_add(STEP.wrapping_mul(u64::from(cursor))));
                let new = if first_count == NOT_DENSE {
                    let steps = length.div_ceil(LANES);
                    let last = list_sums::<U>(&topics[start..start + steps * LANES], phi, (cursor, length), (old, own), sums);
                    let running = scan::<U>(&last);
                    let document_sum = f64::from(running[LANES - 1]);
                    let prior_sum = alpha * (all - f64::from(own * relative_alpha[usize::from(old)]));
                    let point = (upper(hash) * (document_sum + prior_sum)) as f32;
                    if point < running[LANES - 1] {
                        topics[start + find(&sums[..steps], &running, below::<U>(&running, point), point)]
                    } else if prior_sum > 0.0 {
                        draw_from_prior::<U>(phi, relative_alpha, groups, all, (old, own), hash)
                    } else {
                        keep(old, topic_count, hash)
                    }
                } else {
                    let first = first_count as usize * LANES;
                    let counts = &mut counts[first..first + chunks * LANES];
                    let last = dense_sums::<U>(counts, phi, alphas, (old, own), sums);
                    let running = scan::<U>(&last);
                    let point = (upper(hash) * f64::from(running[LANES - 1])) as f32;
                    let new = if point < running[LANES - 1] {
                        // There are fewer topics than 2^16.
                        find(&sums[..chunks], &running, below::<U>(&running, point), point) as u16
                    } else {
                        keep(old, topic_count, hash)
                    };
                    counts[usize::from(old)] -= 1;
                    counts[usize::from(new)] += 1;
                    new
                };
                topics[place] = new;
                new_topics[position] = new;
            }
            begin = end;
        }
        saved.copy_from_slice(&topics[..saved.len()]);
    }
}

/// A uniform random number in [0, 1) from the upper 32 bits.
#[inline(always)]
fn upper(hash: u64) -> f64 {
    f64::from((hash >> 32) as u32) / 4_294_967_296.0
}

/// A uniform random number in [0, 1) from the lower 32 bits.
#[inline(always)]
fn lower(hash: u64) -> f64 {
    f64::from(hash as u32) / 4_294_967_296.0
}

/// The old topic, or any if there is none, for a token whose weights are all 0.
#[inline(always)]
fn keep(old: u16, topics: usize, hash: u64) -> u16 {
    // The product is below the number of topics, which is below 2^16.
    if usize::from(old) < topics { old } else { ((u64::from(hash as u32) * topics as u64) >> 32) as u16 }
}

/// The index of the weight that contains `point`. `sums[step][lane]` is the cumulative weight of a lane up to a step. `running` has the
/// cumulative sums of the lanes' totals, and `below` of them are at most `point`.
#[inline(always)]
fn find(sums: &[[f32; LANES]], running: &[f32; LANES], below: u32, point: f32) -> usize {
    let lane = place_of(below) % LANES;
    let before = if below == 0 { 0.0 } else { running[place_of(below - 1) % LANES] };
    let point = point - before;
    let mut step = 0;
    while step < sums.len() && sums[step][lane] <= point {
        step += 1;
    }
    if step == sums.len() {
        // By rounding, the point is past the last weight of the lane.
        let last = sums[sums.len() - 1][lane];
        step = 0;
        while sums[step][lane] < last {
            step += 1;
        }
    }
    step * LANES + lane
}

/// Draws a topic with probability proportional to a_k φ, where φ of the old topic is less by `own`. `groups` are the sums over chunks of
/// topics, and `all` is that over all. The upper half of the hash has been used.
#[inline(always)]
fn draw_from_prior<U: SimdLevel>(
    phi: &[f32],
    relative_alpha: &[f32],
    groups: &[[f32; LANES]],
    all: f64,
    (old, own): (u16, f32),
    mut hash: u64,
) -> u16 {
    let (chunks, relative) = (phi.as_chunks().0, relative_alpha.as_chunks().0);
    let mut is_upper = true;
    let mut uniform = || {
        is_upper = !is_upper;
        if is_upper {
            upper(hash)
        } else {
            let half = lower(hash);
            hash = mix(hash.wrapping_add(STEP));
            half
        }
    };
    for _ in 0..MAX_ATTEMPTS {
        // Sums of the padding are 0, so a topic is drawn, and topics are below 2^16.
        let drawn =
            draw::<U>(|chunk| product(&chunks[chunk], &relative[chunk]), groups.len(), |group| groups[group], all, &mut uniform)
                as u16;
        if drawn != old || uniform() * f64::from(phi[usize::from(old)]) >= f64::from(own) {
            return drawn;
        }
    }
    old
}

/// The sums over lanes of φ of the topics of a document, up to each step of sixteen tokens, without the token at `cursor`. φ of the topic
/// `old` is less by `own`. Returns the last sums. `topics` is padded to whole steps.
#[inline(always)]
fn list_sums<U: SimdLevel>(
    topics: &[u16],
    phi: &[f32],
    (cursor, length): (u32, usize),
    (old, own): (u16, f32),
    sums: &mut [[f32; LANES]],
) -> [f32; LANES] {
    let steps = topics.as_chunks::<LANES>().0;
    assert!(steps.len() <= sums.len(), "there are sums of every step");
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: `WIDE` levels have AVX-512. Topics are at most K, for which `phi` has an element.
        return unsafe {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            // A document has fewer than 2^16 tokens.
            let (cursor, length) = (_mm512_set1_epi32(cursor as i32), _mm512_set1_epi32(length as i32));
            let (old, own) = (_mm512_set1_epi32(i32::from(old)), _mm512_set1_ps(own));
            let (mut sum, mut index) = (_mm512_setzero_ps(), lanes);
            for (step, topics) in steps.iter().enumerate() {
                let topics = _mm512_cvtepu16_epi32(_mm256_loadu_si256(topics.as_ptr().cast()));
                let gathered = _mm512_i32gather_ps::<4>(topics, phi.as_ptr());
                let is_old = _mm512_cmpeq_epi32_mask(topics, old);
                let weights = _mm512_mask_sub_ps(gathered, is_old, gathered, own);
                let inside = _mm512_cmpgt_epi32_mask(length, index);
                let is_other = _mm512_mask_cmpneq_epi32_mask(inside, index, cursor);
                sum = _mm512_mask_add_ps(sum, is_other, sum, weights);
                index = _mm512_add_epi32(index, _mm512_set1_epi32(LANES as i32));
                _mm512_storeu_ps(sums.get_unchecked_mut(step).as_mut_ptr(), sum);
            }
            std::mem::transmute::<__m512, [f32; LANES]>(sum)
        };
    }
    #[cfg(target_arch = "x86_64")]
    if U::AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: these levels have AVX2. Topics are at most K, for which `phi` has an element.
        return unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            // A document has fewer than 2^16 tokens.
            let (cursor, length) = (_mm256_set1_epi32(cursor as i32), _mm256_set1_epi32(length as i32));
            let (old, own) = (_mm256_set1_epi32(i32::from(old)), _mm256_set1_ps(own));
            let mut sum = [_mm256_setzero_ps(); 2];
            let mut index = [lanes, _mm256_add_epi32(lanes, _mm256_set1_epi32(8))];
            for (step, topics) in steps.iter().enumerate() {
                let loaded = _mm256_loadu_si256(topics.as_ptr().cast());
                let halves = [_mm256_castsi256_si128(loaded), _mm256_extracti128_si256::<1>(loaded)];
                for half in 0..2 {
                    let topics = _mm256_cvtepu16_epi32(halves[half]);
                    let gathered = _mm256_i32gather_ps::<4>(phi.as_ptr(), topics);
                    let is_old = _mm256_castsi256_ps(_mm256_cmpeq_epi32(topics, old));
                    let weights = _mm256_sub_ps(gathered, _mm256_and_ps(is_old, own));
                    let inside = _mm256_cmpgt_epi32(length, index[half]);
                    let is_other = _mm256_andnot_si256(_mm256_cmpeq_epi32(index[half], cursor), inside);
                    sum[half] = _mm256_add_ps(sum[half], _mm256_and_ps(weights, _mm256_castsi256_ps(is_other)));
                    index[half] = _mm256_add_epi32(index[half], _mm256_set1_epi32(LANES as i32));
                }
                let place = sums.get_unchecked_mut(step).as_mut_ptr();
                _mm256_storeu_ps(place, sum[0]);
                _mm256_storeu_ps(place.add(8), sum[1]);
            }
            std::mem::transmute::<[__m256; 2], [f32; LANES]>(sum)
        };
    }
    let mut sum = [0.0_f32; LANES];
    for (step, topics) in steps.iter().enumerate() {
        for lane in 0..LANES {
            let index = step * LANES + lane;
            let topic = topics[lane];
            let weight = phi[usize::from(topic)] - if topic == old { own } else { 0.0 };
            sum[lane] += if index < length && index != cursor as usize { weight } else { 0.0 };
        }
        sums[step] = sum;
    }
    sum
}

/// The sums over lanes of (n_dk + α_k) φ_kw, up to each step of sixteen topics, without the token itself: the count of the topic `old` is less
/// by 1, and its φ by `own`. Returns the last sums.
#[inline(always)]
fn dense_sums<U: SimdLevel>(
    counts: &[u16],
    phi: &[f32],
    alphas: &[f32],
    (old, own): (u16, f32),
    sums: &mut [[f32; LANES]],
) -> [f32; LANES] {
    let (counts, phi, alphas) = (counts.as_chunks::<LANES>().0, phi.as_chunks::<LANES>().0, alphas.as_chunks::<LANES>().0);
    assert!(counts.len() <= sums.len() && counts.len() == phi.len(), "there are sums of every step");
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: `WIDE` levels have AVX-512.
        return unsafe {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let (old, own, one) = (_mm512_set1_epi32(i32::from(old)), _mm512_set1_ps(own), _mm512_set1_ps(1.0));
            let (mut sum, mut topic) = (_mm512_setzero_ps(), lanes);
            for (step, ((counts, phi), alphas)) in counts.iter().zip(phi).zip(alphas).enumerate() {
                let is_old = _mm512_cmpeq_epi32_mask(topic, old);
                let counts = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256(counts.as_ptr().cast())));
                let others = _mm512_mask_sub_ps(counts, is_old, counts, one);
                let others = _mm512_add_ps(others, _mm512_loadu_ps(alphas.as_ptr()));
                let phi = _mm512_loadu_ps(phi.as_ptr());
                let phi = _mm512_mask_sub_ps(phi, is_old, phi, own);
                sum = _mm512_add_ps(sum, _mm512_mul_ps(others, phi));
                topic = _mm512_add_epi32(topic, _mm512_set1_epi32(LANES as i32));
                _mm512_storeu_ps(sums.get_unchecked_mut(step).as_mut_ptr(), sum);
            }
            std::mem::transmute::<__m512, [f32; LANES]>(sum)
        };
    }
    #[cfg(target_arch = "x86_64")]
    if U::AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: these levels have AVX2.
        return unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let (old, own) = (_mm256_set1_epi32(i32::from(old)), _mm256_set1_ps(own));
            let one = _mm256_set1_ps(1.0);
            let mut sum = [_mm256_setzero_ps(); 2];
            let mut topic = [lanes, _mm256_add_epi32(lanes, _mm256_set1_epi32(8))];
            for (step, ((counts, phi), alphas)) in counts.iter().zip(phi).zip(alphas).enumerate() {
                let loaded = _mm256_loadu_si256(counts.as_ptr().cast());
                let halves = [_mm256_castsi256_si128(loaded), _mm256_extracti128_si256::<1>(loaded)];
                for half in 0..2 {
                    let counts = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(halves[half]));
                    let is_old = _mm256_castsi256_ps(_mm256_cmpeq_epi32(topic[half], old));
                    let alpha = _mm256_loadu_ps(alphas.as_ptr().add(8 * half));
                    let others = _mm256_add_ps(_mm256_sub_ps(counts, _mm256_and_ps(is_old, one)), alpha);
                    let phi = _mm256_sub_ps(_mm256_loadu_ps(phi.as_ptr().add(8 * half)), _mm256_and_ps(is_old, own));
                    sum[half] = _mm256_add_ps(sum[half], _mm256_mul_ps(others, phi));
                    topic[half] = _mm256_add_epi32(topic[half], _mm256_set1_epi32(LANES as i32));
                }
                let place = sums.get_unchecked_mut(step).as_mut_ptr();
                _mm256_storeu_ps(place, sum[0]);
                _mm256_storeu_ps(place.add(8), sum[1]);
            }
            std::mem::transmute::<[__m256; 2], [f32; LANES]>(sum)
        };
    }
    let mut sum = [0.0_f32; LANES];
    for (step, ((counts, phi), alphas)) in counts.iter().zip(phi).zip(alphas).enumerate() {
        for lane in 0..LANES {
            let (less, part) = if step * LANES + lane == usize::from(old) { (1.0, own) } else { (0.0, 0.0) };
            sum[lane] += (f32::from(counts[lane]) - less + alphas[lane]) * (phi[lane] - part);
        }
        sums[step] = sum;
    }
    sum
}

#[cfg(test)]
mod tests;
