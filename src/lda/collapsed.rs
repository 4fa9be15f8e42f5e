//! Collapsed Gibbs sampling for LDA: topic-word counts, tokens, and the plain sweep of Griffiths & Steyvers (2004).
//!
//! P(z = k | rest) ∝ (n_dk + α)(n_kw + β)/(n_k + W β), with the counts of all other tokens.

use super::documents::Documents;
use crate::number::Real;
use crate::random::Stream;
use rand::RngExt;
use std::ops::Range;

/// Topic-word counts: the number of tokens of each word with each topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCounts {
    topics: usize,
    /// n_kw (W × K).
    counts: Vec<i32>,
    /// n_k.
    totals: Vec<i32>,
}

impl TopicCounts {
    /// Zero counts for a vocabulary of this size and K topics.
    pub fn new(vocabulary: u32, topics: usize) -> Self {
        Self { topics, counts: vec![0; vocabulary as usize * topics], totals: vec![0; topics] }
    }

    /// Counts from an array of n_kw (W × K).
    ///
    /// # Panics
    /// If its length is not a multiple of K.
    pub fn from_counts(counts: Vec<i32>, topics: usize) -> Self {
        assert_eq!(counts.len() % topics, 0, "the number of counts must be a multiple of {topics}, the number of topics");
        let mut totals = vec![0; topics];
        for row in counts.chunks_exact(topics) {
            totals.iter_mut().zip(row).for_each(|(total, count)| *total += count);
        }
        Self { topics, counts, totals }
    }

    /// n_k, the number of tokens of each topic.
    pub fn totals(&self) -> &[i32] {
        &self.totals
    }

    /// K, the number of topics.
    pub fn topics(&self) -> usize {
        self.topics
    }

    /// W, the size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.counts.len() / self.topics
    }

    /// n_kw of a word for all k.
    ///
    /// # Panics
    /// If the word is outside the vocabulary.
    pub fn word_counts(&self, word: u32) -> &[i32] {
        &self.counts[word as usize * self.topics..(word as usize + 1) * self.topics]
    }

    /// Returns the array of n_kw (W × K).
    pub fn into_counts(self) -> Vec<i32> {
        self.counts
    }

    /// The posterior mean of φ_kw (W × K) given the counts.
    pub fn phi<F: Real>(&self, beta: f64) -> Vec<F> {
        let beta_total = beta * self.vocabulary() as f64;
        let scales: Vec<f64> = self.totals.iter().map(|&total| 1.0 / (f64::from(total) + beta_total)).collect();
        let rows = self.counts.chunks_exact(self.topics);
        rows.flat_map(|row| row.iter().zip(&scales).map(|(&count, scale)| F::of((f64::from(count) + beta) * scale))).collect()
    }

    /// Adds tokens with these words and topics.
    ///
    /// # Panics
    /// If a word is outside the vocabulary or a topic is not below K.
    pub fn add_tokens(&mut self, words: &[u32], topics: &[u32]) {
        words.iter().zip(topics).for_each(|(&word, &topic)| self.add(word, topic, 1));
    }

    /// n_kw of a word for all k, and n_k, for simultaneous updates.
    pub(super) fn row_and_totals(&mut self, word: u32) -> (&mut [i32], &mut [i32]) {
        let row = word as usize * self.topics..(word as usize + 1) * self.topics;
        (&mut self.counts[row], &mut self.totals)
    }

    fn add(&mut self, word: u32, topic: u32, change: i32) {
        self.counts[word as usize * self.topics + topic as usize] += change;
        self.totals[topic as usize] += change;
    }
}

/// The tokens of a set of documents, concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The word of each token, document by document.
    words: Vec<u32>,
    /// Document d has the tokens `starts[d]..starts[d + 1]`.
    starts: Vec<usize>,
}

impl Tokens {
    /// The tokens of `documents`; within a document they are ordered by word.
    pub fn from_documents(documents: &Documents) -> Self {
        // The cast keeps the value, because all tokens fit into memory.
        let mut tokens = Self { words: Vec::with_capacity(documents.tokens() as usize), starts: vec![0] };
        for bag in documents.iter() {
            for (&word, &count) in bag.words.iter().zip(bag.counts) {
                tokens.words.extend(std::iter::repeat_n(word, count as usize));
            }
            tokens.starts.push(tokens.words.len());
        }
        tokens
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word of each token.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The range of tokens of each document.
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        self.starts.windows(2).map(|span| span[0]..span[1])
    }

    /// Draws a topic for each token uniformly; document d draws from `stream(d)`.
    pub fn draw_topics(&self, topics: u32, mut stream: impl FnMut(u64) -> Stream) -> Vec<u32> {
        let mut drawn = Vec::with_capacity(self.len());
        for (document, span) in (0..).zip(self.spans()) {
            let mut stream = stream(document);
            drawn.extend(span.map(|_| stream.random_range(0..topics)));
        }
        drawn
    }
}

/// Draws new topics for all tokens in order, at a cost per token proportional to K: the plain algorithm, of `sweep_by = "document"` and for
/// tests of faster sweeps. Document d draws from `stream(d)`. `topics` holds the topic of each token. `counts` includes these tokens, and may
/// include others.
///
/// # Panics
/// If a word or topic is not in the counts, or `topics` does not have one topic for each token.
pub fn dense_sweep(
    tokens: &Tokens,
    topics: &mut [u32],
    counts: &mut TopicCounts,
    alpha: f64,
    beta: f64,
    mut stream: impl FnMut(u64) -> Stream,
) {
    assert_eq!(tokens.len(), topics.len(), "one topic per token is needed");
    let beta_total = beta * counts.vocabulary() as f64;
    let mut of_document = vec![0_i32; counts.topics];
    let mut running = vec![0.0; counts.topics];
    for (document, span) in (0..).zip(tokens.spans()) {
        let (words, topics) = (&tokens.words[span.clone()], &mut topics[span]);
        of_document.fill(0);
        topics.iter().for_each(|&topic| of_document[topic as usize] += 1);
        let mut stream = stream(document);
        for (&word, topic) in words.iter().zip(topics) {
            counts.add(word, *topic, -1);
            of_document[*topic as usize] -= 1;
            let mut sum = 0.0;
            let counts_of_topics = counts.word_counts(word).iter().zip(&counts.totals).zip(&of_document);
            for (((&of_word, &total), &in_document), running) in counts_of_topics.zip(&mut running) {
                sum += (f64::from(in_document) + alpha) * (f64::from(of_word) + beta) / (f64::from(total) + beta_total);
                *running = sum;
            }
            let point = sum * stream.random::<f64>();
            // No topic is found only if the sum is not a normal number above 0.
            *topic = running.partition_point(|&running| running <= point).min(running.len() - 1) as u32;
            counts.add(word, *topic, 1);
            of_document[*topic as usize] += 1;
        }
    }
}
