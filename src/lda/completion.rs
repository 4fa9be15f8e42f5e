//! Document completion: how well topics predict a part of a document's tokens from the others (Wallach et al. 2009).
//!
//! With the topics φ given, the observed tokens give θ̂_dk = (E\[n_dk\] + α)/(n_d + K α), and a token that is scored has the probability
//! Σ_k θ̂_dk φ_kw. Probabilities, not their logarithms, are averaged over draws of φ.

use super::documents::Documents;
use super::gibbs::{DocumentGibbs, Sweeps};
use super::table::WordTable;
use crate::number::Real;
use crate::random::Stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Documents of which a part of the tokens is to be predicted from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOut {
    /// What may be seen of each document.
    pub observed: Documents,
    /// What is to be predicted of it.
    pub scored: Documents,
}

/// How many tokens of each entry of a document are to be predicted: a share of all tokens, drawn without replacement; what is left of
/// rounding to whole tokens is drawn too, and at least one token stays to be seen.
pub fn draw_scored_tokens(counts: &[u32], share: f64, stream: &mut Stream) -> Vec<u32> {
    let mut left: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let wanted = share * left as f64 + stream.random::<f64>();
    let mut wanted = (wanted as u64).min(left.saturating_sub(1));
    // Token after token, as likely as what is wanted still is among those that are left: Knuth's algorithm S.
    let mut draw = |_: u32| {
        let drawn = stream.random::<f64>() * (left as f64) < wanted as f64;
        (left, wanted) = (left - 1, wanted - u64::from(drawn));
        u32::from(drawn)
    };
    counts.iter().map(|&count| (0..count).map(&mut draw).sum()).collect()
}

/// The predictions so far: what a run that goes on needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Of each entry of the scored documents, the sum of its probabilities under the draws.
    sums: Vec<f64>,
    draws: u64,
}

/// How well tokens were predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionScore {
    /// Σ log p over the scored tokens, in nats.
    pub log_likelihood: f64,
    /// How many these are.
    pub tokens: u64,
}

impl CompletionScore {
    /// Takes tokens of a word that has this probability.
    fn take(&mut self, probability: f64, tokens: u32) {
        self.log_likelihood += f64::from(tokens) * probability.ln();
        self.tokens += u64::from(tokens);
    }

    /// Adds what others have predicted.
    pub fn merge(&mut self, other: Self) {
        self.log_likelihood += other.log_likelihood;
        self.tokens += other.tokens;
    }

    /// exp of the mean of −log p: W where nothing is known. Not a number without tokens.
    pub fn perplexity(self) -> f64 {
        (-self.log_likelihood / self.tokens as f64).exp()
    }
}

impl Completion {
    /// Takes a draw of the topics of which `phi` writes a word's K probabilities; document d is sampled with the stream `stream(d)`.
    /// Gives how well this draw predicts by itself.
    ///
    /// # Panics
    /// When the documents are not those of the draws before, the table is of another vocabulary or the sampler of other topics, or no
    /// sweep counts.
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
        assert_eq!((self.sums.len(), observed.len()), (entries, scored.len()), "other documents than before");
        let mut sums = self.sums.iter_mut();
        let mut weights = vec![0.0; table.topics()];
        let mut completed = CompletionScore::default();
        for (document, (seen, bag)) in (0..).zip(observed.iter().zip(scored.iter())) {
            if bag.words.is_empty() {
                continue;
            }
            gibbs.weights(seen, table, sweeps, &mut stream(document), &mut weights);
            for ((&word, &count), sum) in bag.words.iter().zip(bag.counts).zip(&mut sums) {
                let phi = table.slot(word).map(|slot| table.phi(slot)).unwrap_or_default();
                let probability = weights.iter().zip(phi).map(|(weight, phi)| weight * phi.f64()).sum::<f64>();
                *sum += probability;
                completed.take(probability, count);
            }
        }
        self.draws += 1;
        completed
    }

    /// How many draws were taken.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// How well the draws predict; without any, nothing was predicted.
    pub fn score(&self, held_out: &HeldOut) -> CompletionScore {
        let mut completed = CompletionScore::default();
        let counts = held_out.scored.iter().flat_map(|bag| bag.counts.iter());
        for (&count, &sum) in counts.zip(&self.sums) {
            completed.take(sum / self.draws as f64, count);
        }
        completed
    }
}
