//! Collapsed Gibbs sampling of the topics of all tokens, with the topics' words integrated out (Griffiths & Steyvers 2004).
//!
//! P(z = k | rest) ∝ (n_dk + α)(n_kw + β)/(n_k + W β), with counts of all other tokens.

use super::documents::Documents;
use crate::number::Real;
use crate::random::Stream;
use rand::RngExt;
use std::ops::Range;

/// How many tokens of each word have each topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCounts {
    topics: usize,
    /// n_kw: W × K.
    of_words: Vec<i32>,
    /// n_k.
    totals: Vec<i32>,
}

impl TopicCounts {
    /// None, for a vocabulary of this size and K topics.
    pub fn new(vocabulary: u32, topics: usize) -> Self {
        Self { topics, of_words: vec![0; vocabulary as usize * topics], totals: vec![0; topics] }
    }

    /// Those in an array (W × K).
    ///
    /// # Panics
    /// When it is not of whole rows.
    pub fn from_counts(of_words: Vec<i32>, topics: usize) -> Self {
        assert_eq!(of_words.len() % topics, 0, "counts that are no whole rows of {topics} topics");
        let mut totals = vec![0; topics];
        for row in of_words.chunks_exact(topics) {
            totals.iter_mut().zip(row).for_each(|(total, count)| *total += count);
        }
        Self { topics, of_words, totals }
    }

    /// n_kw (W × K).
    pub fn of_words(&self) -> &[i32] {
        &self.of_words
    }

    /// n_k.
    pub fn totals(&self) -> &[i32] {
        &self.totals
    }

    /// K.
    pub fn topics(&self) -> usize {
        self.topics
    }

    /// W.
    pub fn vocabulary(&self) -> usize {
        self.of_words.len() / self.topics
    }

    /// n_kw of a word, for all k.
    ///
    /// # Panics
    /// When the vocabulary does not have the word.
    pub fn of_word(&self, word: u32) -> &[i32] {
        &self.of_words[word as usize * self.topics..(word as usize + 1) * self.topics]
    }

    /// n_kw (W × K) alone.
    pub fn into_counts(self) -> Vec<i32> {
        self.of_words
    }

    /// φ_kw (W × K), the mean of the topics' words given the counts.
    pub fn phi<F: Real>(&self, beta: f64) -> Vec<F> {
        let spread = beta * self.vocabulary() as f64;
        let scales: Vec<f64> = self.totals.iter().map(|&total| 1.0 / (f64::from(total) + spread)).collect();
        let rows = self.of_words.chunks_exact(self.topics);
        rows.flat_map(|row| row.iter().zip(&scales).map(|(&count, scale)| F::of((f64::from(count) + beta) * scale))).collect()
    }

    /// Counts the topics of some tokens, too.
    ///
    /// # Panics
    /// When a word is none of the vocabulary.
    pub fn count(&mut self, words: &[u32], topics: &[u32]) {
        words.iter().zip(topics).for_each(|(&word, &topic)| self.add(word, topic, 1));
    }

    /// n_kw of a word for all k, and n_k, to be changed together.
    pub(super) fn row_and_totals(&mut self, word: u32) -> (&mut [i32], &mut [i32]) {
        let row = word as usize * self.topics..(word as usize + 1) * self.topics;
        (&mut self.of_words[row], &mut self.totals)
    }

    fn add(&mut self, word: u32, topic: u32, one: i32) {
        self.of_words[word as usize * self.topics + topic as usize] += one;
        self.totals[topic as usize] += one;
    }
}

/// The tokens of some documents, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The word of each token, document by document.
    words: Vec<u32>,
    /// Document d has the tokens `starts[d]..starts[d + 1]`.
    starts: Vec<usize>,
}

impl Tokens {
    /// Those of some documents; a document's are ordered by their words.
    pub fn from_documents(documents: &Documents) -> Self {
        // At most what memory can hold.
        let mut tokens = Self { words: Vec::with_capacity(documents.tokens() as usize), starts: vec![0] };
        for bag in documents.iter() {
            for (&word, &count) in bag.words.iter().zip(bag.counts) {
                tokens.words.extend(std::iter::repeat_n(word, count as usize));
            }
            tokens.starts.push(tokens.words.len());
        }
        tokens
    }

    /// How many documents there are.
    pub fn documents(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The word of each token.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Where the tokens of each document are.
    pub(super) fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        self.starts.windows(2).map(|span| span[0]..span[1])
    }

    /// A topic for each token, drawn uniformly; document d draws from `stream(d)`.
    pub fn draw_topics(&self, topics: u32, mut stream: impl FnMut(u64) -> Stream) -> Vec<u32> {
        let mut drawn = Vec::with_capacity(self.len());
        for (document, span) in (0..).zip(self.spans()) {
            let mut stream = stream(document);
            drawn.extend(span.map(|_| stream.random_range(0..topics)));
        }
        drawn
    }
}

/// A sweep over all tokens in order, in time proportional to the topics for each: the reference that faster sweeps are compared with.
/// Document d draws from `stream(d)`; `topics` has the topic of each token, and `counts` has them and perhaps more.
///
/// # Panics
/// When a word or topic is none of the counts, or topics are not as many as tokens.
pub fn dense_sweep(
    tokens: &Tokens,
    topics: &mut [u32],
    counts: &mut TopicCounts,
    alpha: f64,
    beta: f64,
    mut stream: impl FnMut(u64) -> Stream,
) {
    assert_eq!(tokens.len(), topics.len(), "a topic for each token");
    let spread = beta * counts.vocabulary() as f64;
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
            let with = counts.of_word(word).iter().zip(&counts.totals).zip(&of_document);
            for (((&of_word, &total), &here), running) in with.zip(&mut running) {
                sum += (f64::from(here) + alpha) * (f64::from(of_word) + beta) / (f64::from(total) + spread);
                *running = sum;
            }
            let point = sum * stream.random::<f64>();
            // Rounding may lead past the end.
            *topic = running.partition_point(|&running| running <= point).min(running.len() - 1) as u32;
            counts.add(word, *topic, 1);
            of_document[*topic as usize] += 1;
        }
    }
}
