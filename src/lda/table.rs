//! Topic probabilities of the words of a minibatch, with cumulative sums for sampling.

use super::documents::Bag;
use crate::number::Real;

/// Marks a word without a slot.
const NONE: u32 = u32::MAX;

/// For a set of words, the probabilities φ_kw under all topics and the cumulative sums of a_k φ_kw, with a_k = α_k as a multiple of the mean
/// of all α_k. Each word has a slot, in order of first occurrence.
#[derive(Clone, Debug)]
pub struct WordTable<F> {
    topics: usize,
    /// The slot of each word of the vocabulary.
    slots: Vec<u32>,
    words: Vec<u32>,
    /// Slots × K.
    phi: Vec<F>,
    /// Slots × K.
    running: Vec<F>,
    /// a_k of each topic.
    relative_alpha: Vec<F>,
}

impl<F: Real> WordTable<F> {
    /// An empty table for a vocabulary of this size and K topics, whose α_k are equal.
    pub fn new(vocabulary: u32, topics: usize) -> Self {
        let (slots, relative_alpha) = (vec![NONE; vocabulary as usize], vec![F::one(); topics]);
        Self { topics, slots, words: Vec::new(), phi: Vec::new(), running: Vec::new(), relative_alpha }
    }

    /// Sets a_k of all topics, for the next [`WordTable::fill`].
    ///
    /// # Panics
    /// If the number of values is not K.
    pub fn set_relative_alpha(&mut self, relative: impl ExactSizeIterator<Item = f64>) {
        assert_eq!(relative.len(), self.topics, "each topic needs its α");
        self.relative_alpha.iter_mut().zip(relative).for_each(|(to, from)| *to = F::of(from));
    }

    /// a_k of each topic.
    pub(super) fn relative_alpha(&self) -> &[F] {
        &self.relative_alpha
    }

    /// K, the number of topics.
    pub fn topics(&self) -> usize {
        self.topics
    }

    /// W, the size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.slots.len()
    }

    /// The words that have slots, by slot.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The slot of a word, if it has one.
    ///
    /// # Panics
    /// If the word is outside the vocabulary.
    pub fn slot(&self, word: u32) -> Option<usize> {
        let slot = self.slots[word as usize];
        (slot != NONE).then_some(slot as usize)
    }

    /// Replaces the words by those of these documents. `phi` writes the K probabilities of a word; they need not be normalized.
    ///
    /// # Panics
    /// If a word is outside the vocabulary.
    pub fn fill<'a>(&mut self, bags: impl Iterator<Item = Bag<'a>>, mut phi: impl FnMut(u32, &mut [F])) {
        for &word in &self.words {
            self.slots[word as usize] = NONE;
        }
        self.words.clear();
        for bag in bags {
            for &word in bag.words {
                let slot = &mut self.slots[word as usize];
                if *slot == NONE {
                    // There are fewer slots than words, which are u32.
                    *slot = self.words.len() as u32;
                    self.words.push(word);
                }
            }
        }
        let size = self.words.len() * self.topics;
        self.phi.resize(size, F::zero());
        self.running.resize(size, F::zero());
        let rows = self.phi.chunks_exact_mut(self.topics).zip(self.running.chunks_exact_mut(self.topics));
        for (&word, (row, running)) in self.words.iter().zip(rows) {
            phi(word, row);
            let mut sum = F::zero();
            for ((running, &phi), &relative) in running.iter_mut().zip(&*row).zip(&self.relative_alpha) {
                sum += relative * phi;
                *running = sum;
            }
        }
    }

    /// φ_kw of the word in a slot, for all k.
    #[inline]
    pub(super) fn phi(&self, slot: usize) -> &[F] {
        &self.phi[slot * self.topics..(slot + 1) * self.topics]
    }

    /// Σ_{j ≤ k} a_j φ_jw of the word in a slot, for all k.
    #[inline]
    pub(super) fn running(&self, slot: usize) -> &[F] {
        &self.running[slot * self.topics..(slot + 1) * self.topics]
    }
}
