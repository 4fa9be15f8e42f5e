//! Gibbs sampling of the topics of a document's tokens with the topics φ given, at a cost that follows the topics in the document.
//!
//! P(z = k | rest) ∝ (α + n_dk) φ_kw, with n_dk the other tokens of the document in topic k, is the mixture of n_dk φ_kw over the topics
//! that the document has, and of α φ_kw over all, which is drawn from running sums that all tokens of a word share.

use super::documents::Bag;
use super::lanes::uniform;
use super::table::WordTable;
use crate::number::Real;
use crate::random::Stream;
use rand::RngExt;

/// How long a document is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sweeps {
    /// Sweeps that bring it from topics drawn uniformly to its distribution.
    pub burn_in: u32,
    /// Sweeps that count.
    pub kept: u32,
}

/// The sampler; it reuses its memory from document to document.
#[derive(Clone, Debug)]
pub struct DocumentGibbs<F> {
    alpha: F,
    /// The topic of each token, and the slot of its word.
    tokens: Vec<(u32, u32)>,
    /// The topics that the document has, and how many tokens each.
    active: Vec<u32>,
    held: Vec<F>,
    /// Where each topic is among them.
    place: Vec<u32>,
    /// Running sums over them.
    running: Vec<F>,
}

/// Where a topic is that the document does not have.
const NOWHERE: u32 = u32::MAX;

impl<F: Real> DocumentGibbs<F> {
    /// For K topics, with the prior's α for each.
    pub fn new(topics: usize, alpha: f64) -> Self {
        Self {
            alpha: F::of(alpha),
            tokens: Vec::new(),
            active: Vec::new(),
            held: Vec::new(),
            place: vec![NOWHERE; topics],
            running: Vec::new(),
        }
    }

    /// α.
    pub fn alpha(&self) -> f64 {
        self.alpha.f64()
    }

    /// Takes another α.
    pub fn set_alpha(&mut self, alpha: f64) {
        self.alpha = F::of(alpha);
    }

    /// Samples a document whose words have slots in the table: `visit` gets slot and topic of each token in each sweep that counts, as
    /// they are right behind its turn.
    ///
    /// # Panics
    /// When a word has no slot, or the table is of another number of topics.
    pub fn sample(
        &mut self,
        bag: Bag<'_>,
        table: &WordTable<F>,
        sweeps: Sweeps,
        stream: &mut Stream,
        mut visit: impl FnMut(usize, usize),
    ) {
        assert_eq!(table.topics(), self.place.len(), "a table of other topics");
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

    /// The topic weights of a document whose words have slots in the table, θ̂_dk = (E\[n_dk\] + α)/(n_d + K α), into `weights`
    /// (length K).
    ///
    /// # Panics
    /// As [`Self::sample`]; and when no sweep counts.
    pub fn weights(&mut self, bag: Bag<'_>, table: &WordTable<F>, sweeps: Sweeps, stream: &mut Stream, weights: &mut [f64]) {
        assert!(sweeps.kept > 0, "sweeps of which none counts");
        weights.fill(0.0);
        self.sample(bag, table, sweeps, stream, |_, topic| weights[topic] += 1.0);
        let (alpha, kept) = (self.alpha(), f64::from(sweeps.kept));
        let all = bag.tokens() as f64 + alpha * weights.len() as f64;
        weights.iter_mut().for_each(|weight| *weight = (*weight / kept + alpha) / all);
    }

    /// Takes the tokens of a document, with topics drawn uniformly.
    fn begin(&mut self, bag: Bag<'_>, table: &WordTable<F>, stream: &mut Stream) {
        for &topic in &self.active {
            self.place[topic as usize] = NOWHERE;
        }
        self.active.clear();
        self.held.clear();
        self.tokens.clear();
        // Topics are numbered in u32.
        let topics = self.place.len() as u32;
        for (&word, &count) in bag.words.iter().zip(bag.counts) {
            let Some(slot) = table.slot(word) else { panic!("word {word} has no slot") };
            for _ in 0..count {
                let topic = stream.random_range(0..topics);
                self.add(topic);
                // Fewer than words, which are u32.
                self.tokens.push((topic, slot as u32));
            }
        }
    }

    #[inline]
    fn draw(&mut self, phi: &[F], running: &[F], stream: &mut Stream) -> u32 {
        let mut sum = F::zero();
        self.running.clear();
        for (&topic, &held) in self.active.iter().zip(&self.held) {
            sum += held * phi[topic as usize];
            self.running.push(sum);
        }
        let last = running[running.len() - 1];
        let point = uniform(stream) * (sum.f64() + self.alpha.f64() * last.f64());
        if point < sum.f64() {
            // Rounding cannot lead past the end: the last running sum is `sum`.
            let at = self.running.iter().position(|running| point < running.f64()).unwrap_or(0);
            return self.active[at];
        }
        // Another number: what the first has left behind the sum is too coarse to tell rare topics apart.
        let point = uniform(stream) * last.f64();
        let topic = running.partition_point(|running| running.f64() <= point);
        topic.min(running.len() - 1) as u32
    }

    #[inline]
    fn add(&mut self, topic: u32) {
        let place = &mut self.place[topic as usize];
        if *place == NOWHERE {
            *place = self.active.len() as u32;
            self.active.push(topic);
            self.held.push(F::one());
        } else {
            self.held[*place as usize] += F::one();
        }
    }

    #[inline]
    fn remove(&mut self, topic: u32) {
        let place = self.place[topic as usize] as usize;
        self.held[place] -= F::one();
        if self.held[place] == F::zero() {
            self.active.swap_remove(place);
            self.held.swap_remove(place);
            if let Some(&moved) = self.active.get(place) {
                self.place[moved as usize] = place as u32;
            }
            self.place[topic as usize] = NOWHERE;
        }
    }
}
