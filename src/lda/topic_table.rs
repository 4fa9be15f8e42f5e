//! The table of topics that a sweep reads: φ of each word in a row, with chunk sums, so that sampling a topic takes few additions.
//!
//! A row has φ_kw of all topics, padded with zeros, and behind them the sums of a_k φ_kw over chunks of sixteen topics, padded as well. a_k
//! is α_k as a multiple of the mean of all α_k. The first number of the padding stands for a token without a topic.

use super::dirichlet::GammaCells;
use super::lanes::{LANES, lane_sum, product};
use crate::random::Stream;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// The number of words whose rows are computed together, and whose sums are added together: results depend on it, not on threads.
const WORDS: usize = 256;
/// The number of topics without tokens that are drawn together, which limits memory.
const EMPTY_TOPICS: usize = 16;

/// φ of all words, in the form that [`TokenBlocks::sweep`](super::TokenBlocks::sweep) reads.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicTable {
    topics: usize,
    vocabulary: usize,
    /// W rows of length [`row_length`].
    rows: Vec<f32>,
    /// For each topic the part of φ_kw that comes from one token, which is subtracted when that token is drawn; 0 if φ is drawn. Padded.
    pub(super) own: Vec<f32>,
    /// a_k of each topic, padded.
    relative_alpha: Vec<f32>,
}

/// The number of topics with padding, of which there is at least one.
fn padded(topics: usize) -> usize {
    (topics + 1).next_multiple_of(LANES)
}

/// The length of a row.
fn row_length(topics: usize) -> usize {
    padded(topics) + (padded(topics) / LANES).next_multiple_of(LANES)
}

impl TopicTable {
    /// A table of zeros for a vocabulary of this size and K topics, whose α_k are equal.
    pub fn new(vocabulary: usize, topics: usize) -> Self {
        let (rows, own) = (vec![0.0; vocabulary * row_length(topics)], vec![0.0; padded(topics)]);
        Self { topics, vocabulary, rows, own, relative_alpha: vec![1.0; padded(topics)] }
    }

    /// Sets a_k of all topics, for what is computed from now on.
    ///
    /// # Panics
    /// If the number of values is not K.
    pub fn set_relative_alpha(&mut self, relative: impl ExactSizeIterator<Item = f64>) {
        assert_eq!(relative.len(), self.topics, "each topic needs its α");
        self.relative_alpha.iter_mut().zip(relative).for_each(|(to, from)| *to = from as f32);
    }

    /// K, the number of topics.
    pub fn topics(&self) -> usize {
        self.topics
    }

    /// W, the size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// φ_kw of a word for all k.
    ///
    /// # Panics
    /// If the word is outside the vocabulary.
    pub fn phi(&self, word: usize) -> &[f32] {
        &self.row(word).0[..self.topics]
    }

    /// φ_kw of a word for all k, padded, and the sums of a_k φ_kw over chunks of topics, padded.
    #[inline(always)]
    pub(super) fn row(&self, word: usize) -> (&[f32], &[f32]) {
        let length = row_length(self.topics);
        self.rows[word * length..(word + 1) * length].split_at(padded(self.topics))
    }

    /// The part of φ_kw of each topic that comes from one token, padded.
    #[inline(always)]
    pub(super) fn own(&self) -> &[f32] {
        &self.own
    }

    /// a_k of each topic, padded.
    #[inline(always)]
    pub(super) fn relative_alpha(&self) -> &[f32] {
        &self.relative_alpha
    }

    /// Sets φ to its mean given the counts n_kw (W × K), φ_kw = (n_kw + β + s p_w)/(n_k + W β + s). p_w is the frequency of the word among
    /// all tokens, and s the `background`: a large one makes topics similar.
    ///
    /// # Panics
    /// If the counts have another size than the table.
    pub fn set_mean(&mut self, counts: &[i32], beta: f64, background: f64) {
        self.check_size(counts);
        let (topics, own) = (self.topics, &mut self.own);
        let totals = topic_totals(counts, topics);
        let all = totals.iter().sum::<i64>().max(1) as f64;
        let prior_total = beta * self.vocabulary as f64 + background;
        own.fill(0.0);
        own.iter_mut().zip(&totals).for_each(|(own, &total)| *own = (1.0 / (total as f64 + prior_total)) as f32);
        let (scales, relative) = (&own[..topics], &self.relative_alpha);
        let rows = self.rows.par_chunks_mut(WORDS * row_length(topics)).zip(counts.par_chunks(WORDS * topics));
        rows.for_each(|(rows, counts)| {
            for (row, counts) in rows.chunks_exact_mut(row_length(topics)).zip(counts.chunks_exact(topics)) {
                let frequency = counts.iter().map(|&count| i64::from(count)).sum::<i64>() as f64 / all;
                let prior = (beta + background * frequency) as f32;
                for ((phi, &count), scale) in row.iter_mut().zip(counts).zip(scales) {
                    *phi = (count as f32 + prior) * scale;
                }
                sum_chunks(row, topics, relative);
            }
        });
    }

    /// Draws φ given the counts n_kw (W × K): φ_k ~ Dirichlet(n_k + β). Word w draws from `word_stream(w)`, a topic k without tokens from
    /// `topic_stream(k)`.
    ///
    /// # Panics
    /// If the counts have another size than the table.
    pub fn draw(
        &mut self,
        counts: &[i32],
        beta: f64,
        word_stream: impl Fn(u64) -> Stream + Sync,
        topic_stream: impl Fn(u64) -> Stream + Sync,
    ) {
        self.check_size(counts);
        let (topics, length, vocabulary) = (self.topics, row_length(self.topics), self.vocabulary);
        let cells = GammaCells::new(beta);
        self.own.fill(0.0);
        let rows = self.rows.par_chunks_mut(WORDS * length).zip(counts.par_chunks(WORDS * topics)).enumerate();
        let sums: Vec<Vec<f64>> = rows
            .map(|(part, (rows, counts))| {
                let mut sums = vec![0.0; topics];
                let words = (part as u64 * WORDS as u64..).zip(rows.chunks_exact_mut(length)).zip(counts.chunks_exact(topics));
                for ((word, row), counts) in words {
                    cells.draw(counts, &mut row[..topics], &mut word_stream(word));
                    sums.iter_mut().zip(&*row).for_each(|(sum, &gamma)| *sum += f64::from(gamma));
                }
                sums
            })
            .collect();
        let mut scales = vec![0.0; topics];
        for sums in &sums {
            scales.iter_mut().zip(sums).for_each(|(scale, sum)| *scale += sum);
        }
        let totals = topic_totals(counts, topics);
        scales.iter_mut().for_each(|scale| *scale = 1.0 / *scale);
        self.rows.par_chunks_mut(length).for_each(|row| {
            row.iter_mut().zip(&scales).for_each(|(phi, scale)| *phi = (f64::from(*phi) * scale) as f32);
        });
        let empty: Vec<usize> = (0..topics).filter(|&topic| totals[topic] == 0).collect();
        for empty in empty.chunks(EMPTY_TOPICS) {
            let draw = |&topic: &usize| {
                let mut phi = vec![0.0; vocabulary];
                cells.draw_empty_topic(&mut phi, &mut topic_stream(topic as u64));
                (topic, phi)
            };
            let drawn: Vec<(usize, Vec<f64>)> = empty.par_iter().map(draw).collect();
            self.rows.par_chunks_mut(length).enumerate().for_each(|(word, row)| {
                drawn.iter().for_each(|(topic, phi)| row[*topic] = phi[word] as f32);
            });
        }
        let relative = &self.relative_alpha;
        self.rows.par_chunks_mut(length).for_each(|row| sum_chunks(row, topics, relative));
    }

    fn check_size(&self, counts: &[i32]) {
        assert_eq!(counts.len(), self.vocabulary * self.topics, "the table and the counts differ in size");
    }
}

/// n_k of each topic.
fn topic_totals(counts: &[i32], topics: usize) -> Vec<i64> {
    let totals = |counts: &[i32]| {
        let mut totals = vec![0; topics];
        for row in counts.chunks_exact(topics) {
            totals.iter_mut().zip(row).for_each(|(total, &count)| *total += i64::from(count));
        }
        totals
    };
    let add = |mut one: Vec<i64>, other: Vec<i64>| {
        one.iter_mut().zip(other).for_each(|(one, other)| *one += other);
        one
    };
    counts.par_chunks(WORDS * topics).map(totals).reduce(|| vec![0; topics], add)
}

/// Sets the padding of a row to 0 and the sums of a_k φ_kw over chunks of topics.
fn sum_chunks(row: &mut [f32], topics: usize, relative_alpha: &[f32]) {
    let (phi, sums) = row.split_at_mut(padded(topics));
    phi[topics..].fill(0.0);
    sums.fill(0.0);
    let chunks = phi.as_chunks::<LANES>().0.iter().zip(relative_alpha.as_chunks::<LANES>().0);
    for (sum, (phi, relative)) in sums.iter_mut().zip(chunks) {
        *sum = lane_sum(product(phi, relative));
    }
}
