//! Document completion: the perplexity of a part of the tokens of held-out documents given their other tokens (Wallach et al. 2009).
//!
//! θ̂_dk = (E\[n_dk\] + α_k)/Σ_j (n_dj + α_j) estimates the share of topic k in document d: n_dk is the number of its observed tokens in
//! that topic, and E the mean over Gibbs sweeps with topics φ. A scored token of word w has the probability Σ_k θ̂_dk φ_kw.
//! Probabilities, not log-probabilities, are averaged over draws of φ.

use super::documents::Documents;
use super::gibbs::{DocumentGibbs, Sweeps};
use super::table::WordTable;
use crate::number::Real;
use crate::random::Stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Held-out documents, with their tokens divided into observed and scored ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOut {
    /// The observed tokens of each document.
    pub observed: Documents,
    /// The scored tokens of each document, which are predicted from the observed ones.
    pub scored: Documents,
}

/// Draws the scored tokens of a document, without replacement; returns how many tokens of each word, in the order of `counts`. Their number, `share`
/// of all tokens, is rounded up or down at random so that its mean is exact, except where no token would stay observed.
pub fn draw_scored_tokens(counts: &[u32], share: f64, stream: &mut Stream) -> Vec<u32> {
    let mut left: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let wanted = share * left as f64 + stream.random::<f64>();
    let mut wanted = (wanted as u64).min(left.saturating_sub(1));
    // Selection sampling, Knuth's algorithm S.
    let mut draw = |_: u32| {
        let drawn = stream.random::<f64>() * (left as f64) < wanted as f64;
        (left, wanted) = (left - 1, wanted - u64::from(drawn));
        u32::from(drawn)
    };
    counts.iter().map(|&count| (0..count).map(&mut draw).sum()).collect()
}

/// Predictive probabilities of the scored tokens, summed over draws of the topics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// For each entry of the scored documents, the sum of its probabilities over draws.
    sums: Vec<f64>,
    draws: u64,
}

/// The predictive log-likelihood of scored tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionScore {
    /// Σ log p over the scored tokens, in nats.
    pub log_likelihood: f64,
    /// The number of scored tokens.
    pub tokens: u64,
}

impl CompletionScore {
    /// Adds tokens of a word with this probability.
    fn add_tokens(&mut self, probability: f64, tokens: u32) {
        self.log_likelihood += f64::from(tokens) * probability.ln();
        self.tokens += u64::from(tokens);
    }

    /// Adds the score of other documents.
    pub fn merge(&mut self, other: Self) {
        self.log_likelihood += other.log_likelihood;
        self.tokens += other.tokens;
    }

    /// The perplexity exp(−log-likelihood/tokens). It is the size of the vocabulary for uniform predictions, and NaN without tokens.
    pub fn perplexity(self) -> f64 {
        (-self.log_likelihood / self.tokens as f64).exp()
    }
}

impl HeldOut {
    /// The perplexity of the scored tokens given topics φ (W × K) and α, after these sweeps over each document.
    ///
    /// # Panics
    /// If φ has another size, or no sweep is kept.
    pub fn perplexity<F: Real>(&self, phi: &[F], alpha: f64, sweeps: Sweeps, stream: impl FnMut(u64) -> Stream) -> f64 {
        let vocabulary = self.observed.vocabulary();
        let topics = phi.len() / vocabulary as usize;
        let row = |word: u32, out: &mut [F]| out.copy_from_slice(&phi[word as usize * topics..(word as usize + 1) * topics]);
        let (mut gibbs, mut table) = (DocumentGibbs::new(topics, alpha), WordTable::new(vocabulary, topics));
        Completion::default().add(self, &mut gibbs, &mut table, sweeps, row, stream).perplexity()
    }
}

impl Completion {
    /// Adds a draw of the topics and returns the score of this draw alone. `phi` writes the K probabilities of a word; document d is
    /// sampled with `stream(d)`.
    ///
    /// # Panics
    /// If the documents differ from those of earlier draws, sizes differ, or no sweep is kept.
    pub fn add<F: Real>(
        &mut self,
        held_out: &HeldOut,
        gibbs: &mut DocumentGibbs<F>,
        table: &mut WordTable<F>,
        sweeps: Sweeps,
        phi: impl FnMut(u32, &mut [F]),
        mut stream: impl FnMut(u64) -> Stream,
    ) -> CompletionScore {
        let HeldOut { observed, scored } = held_out;
        table.fill(observed.iter().chain(scored.iter()), phi);
        let entries = scored.iter().map(|bag| bag.words.len()).sum();
        if self.draws == 0 {
            self.sums = vec![0.0; entries];
        }
        assert_eq!(
            (self.sums.len(), observed.len()),
            (entries, scored.len()),
            "the documents differ from those of earlier draws"
        );
        let mut sums = self.sums.iter_mut();
        let mut weights = vec![0.0; table.topics()];
        let mut score = CompletionScore::default();
        for (document, (observed, bag)) in (0..).zip(observed.iter().zip(scored.iter())) {
            if bag.words.is_empty() {
                continue;
            }
            gibbs.weights(observed, table, sweeps, &mut stream(document), &mut weights);
            for ((&word, &count), sum) in bag.words.iter().zip(bag.counts).zip(&mut sums) {
                let phi = table.slot(word).map(|slot| table.phi(slot)).unwrap_or_default();
                let probability = weights.iter().zip(phi).map(|(weight, phi)| weight * phi.f64()).sum::<f64>();
                *sum += probability;
                score.add_tokens(probability, count);
            }
        }
        self.draws += 1;
        score
    }

    /// The number of draws.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// The score of the probabilities averaged over draws; zero tokens without draws.
    pub fn score(&self, held_out: &HeldOut) -> CompletionScore {
        let mut score = CompletionScore::default();
        let counts = held_out.scored.iter().flat_map(|bag| bag.counts.iter());
        for (&count, &sum) in counts.zip(&self.sums) {
            score.add_tokens(sum / self.draws as f64, count);
        }
        score
    }
}
