//! Gibbs sampling of the topics of one document given the topics φ, at a cost that depends on the topics of the document.
//!
//! P(z = k | rest) ∝ (α_k + n_dk) φ_kw, with n_dk the other tokens of the document in topic k. This is a mixture of n_dk φ_kw over the
//! topics of the document and α_k φ_kw over all topics; the latter is drawn from cumulative sums that all tokens of a word share.

use super::documents::Bag;
use super::lanes::uniform;
use super::table::WordTable;
use crate::number::Real;
use crate::random::Stream;
use rand::RngExt;

/// The number of Gibbs sweeps over a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sweeps {
    /// Sweeps that are discarded, after topics are initialized uniformly.
    pub burn_in: u32,
    /// Sweeps that are kept.
    pub kept: u32,
}

/// The sampler of one document at a time; it reuses its buffers.
#[derive(Clone, Debug)]
pub struct DocumentGibbs<F> {
    alpha: F,
    /// The topic of each token, and the slot of its word.
    tokens: Vec<(u32, u32)>,
    /// The topics of the document, and the number of tokens of each.
    active: Vec<u32>,
    counts: Vec<F>,
    /// The position of each topic in `active`.
    place: Vec<u32>,
    /// Cumulative sums over `active`.
    running: Vec<F>,
}

/// The position of topics that the document does not have.
const ABSENT: u32 = u32::MAX;

impl<F: Real> DocumentGibbs<F> {
    /// A sampler with K topics, whose α_k have the mean α; the tables have the multiples of it.
    pub fn new(topics: usize, alpha: f64) -> Self {
        Self {
            alpha: F::of(alpha),
            tokens: Vec::new(),
            active: Vec::new(),
            counts: Vec::new(),
            place: vec![ABSENT; topics],
            running: Vec::new(),
        }
    }

    /// The mean of α_k.
    pub fn alpha(&self) -> f64 {
        self.alpha.f64()
    }

    /// Sets the mean of α_k.
    pub fn set_alpha(&mut self, alpha: f64) {
        self.alpha = F::of(alpha);
    }

    /// Samples the topics of a document. `visit` receives the slot and the new topic of each token in each kept sweep.
    ///
    /// # Panics
    /// If a word has no slot in the table, or the table has another number of topics.
    pub fn sample(
        &mut self,
        bag: Bag<'_>,
        table: &WordTable<F>,
        sweeps: Sweeps,
        stream: &mut Stream,
        mut visit: impl FnMut(usize, usize),
    ) {
        assert_eq!(table.topics(), self.place.len(), "the table has another number of topics");
        self.begin(bag, table, stream);
        for sweep in 0..u64::from(sweeps.burn_in) + u64::from(sweeps.kept) {
            for token in 0..self.tokens.len() {
                let (topic, slot) = self.tokens[token];
                self.remove(topic);
                let topic = self.draw(table.phi(slot as usize), table.running(slot as usize), stream);
                self.add(topic);
                self.tokens[token].0 = topic;
                if sweep >= u64::from(sweeps.burn_in) {
                    visit(slot as usize, topic as usize);
                }
            }
        }
    }

    /// Writes the posterior mean of the topic weights of a document, θ̂_dk = (E\[n_dk\] + α_k)/(n_d + Σ_k α_k), to `weights` (length K).
    ///
    /// # Panics
    /// As [`Self::sample`], and if no sweep is kept.
    pub fn weights(&mut self, bag: Bag<'_>, table: &WordTable<F>, sweeps: Sweeps, stream: &mut Stream, weights: &mut [f64]) {
        assert!(sweeps.kept > 0, "at least one sweep must be kept");
        weights.fill(0.0);
        self.sample(bag, table, sweeps, stream, |_, topic| weights[topic] += 1.0);
        let (alpha, kept) = (self.alpha(), f64::from(sweeps.kept));
        let all = bag.tokens() as f64 + alpha * weights.len() as f64;
        let each = weights.iter_mut().zip(table.relative_alpha());
        each.for_each(|(weight, relative)| *weight = (*weight / kept + alpha * relative.f64()) / all);
    }

    /// Loads the tokens of a document with uniformly drawn topics.
    fn begin(&mut self, bag: Bag<'_>, table: &WordTable<F>, stream: &mut Stream) {
        for &topic in &self.active {
            self.place[topic as usize] = ABSENT;
        }
        self.active.clear();
        self.counts.clear();
        self.tokens.clear();
        // Topic indices are u32.
        let topics = self.place.len() as u32;
        for (&word, &count) in bag.words.iter().zip(bag.counts) {
            let Some(slot) = table.slot(word) else { panic!("word {word} has no slot") };
            for _ in 0..count {
                let topic = stream.random_range(0..topics);
                self.add(topic);
                // There are fewer slots than words, which are u32.
                self.tokens.push((topic, slot as u32));
            }
        }
    }

    #[inline]
    fn draw(&mut self, phi: &[F], running: &[F], stream: &mut Stream) -> u32 {
        let mut sum = F::zero();
        self.running.clear();
        for (&topic, &count) in self.active.iter().zip(&self.counts) {
            sum += count * phi[topic as usize];
            self.running.push(sum);
        }
        let last = running[running.len() - 1];
        let point = uniform(stream) * (sum.f64() + self.alpha.f64() * last.f64());
        if point < sum.f64() {
            // The last cumulative sum is `sum`, so rounding cannot exceed the end.
            let at = self.running.iter().position(|running| point < running.f64()).unwrap_or(0);
            return self.active[at];
        }
        // A second random number, because the remainder of the first is too coarse for rare topics.
        let point = uniform(stream) * last.f64();
        let topic = running.partition_point(|running| running.f64() <= point);
        topic.min(running.len() - 1) as u32
    }

    #[inline]
    fn add(&mut self, topic: u32) {
        let place = &mut self.place[topic as usize];
        if *place == ABSENT {
            *place = self.active.len() as u32;
            self.active.push(topic);
            self.counts.push(F::one());
        } else {
            self.counts[*place as usize] += F::one();
        }
    }

    #[inline]
    fn remove(&mut self, topic: u32) {
        let place = self.place[topic as usize] as usize;
        self.counts[place] -= F::one();
        if self.counts[place] == F::zero() {
            self.active.swap_remove(place);
            self.counts.swap_remove(place);
            if let Some(&moved) = self.active.get(place) {
                self.place[moved as usize] = place as u32;
            }
            self.place[topic as usize] = ABSENT;
        }
    }
}

#[cfg(test)]
mod tests;
