//! Synthetic corpora with known topics.

use super::documents::Documents;
use crate::number::Real;
use crate::random::{Purpose, Seed, Who};
use rand::RngExt;
use rand_distr::{Distribution, Gamma, LogNormal};
use std::ops::Range;

/// A generator of documents from known topics, whose words follow Zipf's law over the vocabulary with words preferred by each topic.
#[derive(Clone, Debug)]
pub struct CorpusGenerator {
    seed: Seed,
    vocabulary: u32,
    alpha: f64,
    length: LogNormal<f64>,
    mean_tokens: f64,
    /// Σ_{v ≤ w} φ_kv: K × W.
    cumulative_phi: Vec<f64>,
}

/// The settings of a [`CorpusGenerator`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorpusGeneratorSettings {
    /// W, the size of the vocabulary.
    pub vocabulary: u32,
    /// K, the number of topics.
    pub topics: u32,
    /// Dirichlet prior α of the topic weights of documents.
    pub alpha: f64,
    /// The similarity of topics: φ_k ~ Dir(concentration · Zipf's law). At a few hundred, topics share many words.
    pub concentration: f64,
    /// Mean and standard deviation of the logarithm of the number of tokens of a document.
    pub log_length: (f64, f64),
}

impl CorpusGenerator {
    /// Draws the topics.
    ///
    /// # Errors
    /// A message that says which setting is out of range.
    pub fn new(settings: CorpusGeneratorSettings, seed: Seed) -> Result<Self, String> {
        let CorpusGeneratorSettings { vocabulary, topics, alpha, concentration, log_length: (mean, sd) } = settings;
        for (name, value) in [("alpha", alpha), ("concentration", concentration)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} = {value}: must be a number above 0"));
            }
        }
        if vocabulary == 0 || topics == 0 {
            return Err(format!("{vocabulary} words and {topics} topics: at least one of each"));
        }
        if !(mean.is_finite() && mean < 15.0 && sd.is_finite() && sd >= 0.0) {
            return Err(format!("log_length = {mean}, {sd}: a mean below 15, and a standard deviation of 0 or more"));
        }
        let length = LogNormal::new(mean, sd).map_err(|error| format!("log_length = {mean}, {sd}: {error}"))?;
        let zipf = |word: u32| 1.0 / (f64::from(word) + 3.0);
        let zipf_sum: f64 = (0..vocabulary).map(zipf).sum();
        let mut cumulative_phi = Vec::with_capacity(vocabulary as usize * topics as usize);
        for topic in 0..u64::from(topics) {
            let mut stream = seed.stream(Who::Server, topic, Purpose::Synthetic);
            let first = cumulative_phi.len();
            let mut sum = 0.0;
            for word in 0..vocabulary {
                // A word whose weight underflows does not occur in the topic.
                sum += Gamma::new(concentration * zipf(word) / zipf_sum, 1.0).map_or(0.0, |gamma| gamma.sample(&mut stream));
                cumulative_phi.push(sum);
            }
            cumulative_phi[first..].iter_mut().for_each(|cumulative| *cumulative /= sum);
        }
        let mean_tokens = (mean + sd * sd / 2.0).exp().max(1.0);
        Ok(Self { seed, vocabulary, alpha, length, mean_tokens, cumulative_phi })
    }

    /// W, the size of the vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// Dirichlet prior α of the topic weights of documents.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// K, the number of topics.
    pub fn topics(&self) -> usize {
        self.cumulative_phi.len() / self.vocabulary as usize
    }

    /// The mean number of tokens of a document.
    pub fn mean_tokens(&self) -> f64 {
        self.mean_tokens
    }

    /// φ_k (W) of a topic.
    ///
    /// # Panics
    /// If there is no such topic.
    pub fn topic(&self, topic: usize) -> impl Iterator<Item = f64> {
        let words = self.vocabulary as usize;
        let mut previous = 0.0;
        let cumulative = &self.cumulative_phi[topic * words..(topic + 1) * words];
        cumulative.iter().map(move |&cumulative| cumulative - std::mem::replace(&mut previous, cumulative))
    }

    /// φ (W × K).
    pub fn phi<F: Real>(&self) -> Vec<F> {
        let topics = self.topics();
        let mut phi = vec![F::zero(); self.cumulative_phi.len()];
        for topic in 0..topics {
            self.topic(topic).enumerate().for_each(|(word, probability)| phi[word * topics + topic] = F::of(probability));
        }
        phi
    }

    /// Generates the documents with these numbers, each with at least one token. A document depends only on the seed and its number.
    pub fn documents(&self, numbers: Range<u64>) -> Documents {
        let words = self.vocabulary as usize;
        let mut documents = Documents::new(self.vocabulary);
        let mut tokens: Vec<u32> = Vec::new();
        let mut cumulative_weights = vec![0.0; self.topics()];
        let (mut distinct, mut counts) = (Vec::new(), Vec::new());
        for number in numbers {
            let mut stream = self.seed.stream(Who::Run, number, Purpose::Synthetic);
            let mut sum = 0.0;
            for cumulative in &mut cumulative_weights {
                sum += Gamma::new(self.alpha, 1.0).map_or(0.0, |gamma| gamma.sample(&mut stream));
                *cumulative = sum;
            }
            if sum == 0.0 {
                // All weights underflowed: one topic gets all tokens.
                let topic = stream.random_range(0..cumulative_weights.len());
                cumulative_weights[topic..].fill(1.0);
                sum = 1.0;
            }
            let length = self.length.sample(&mut stream).round().max(1.0) as u64;
            tokens.clear();
            tokens.extend((0..length).map(|_| {
                let point = sum * stream.random::<f64>();
                let topic =
                    cumulative_weights.partition_point(|&cumulative| cumulative <= point).min(cumulative_weights.len() - 1);
                let cumulative_phi = &self.cumulative_phi[topic * words..(topic + 1) * words];
                let point = stream.random::<f64>();
                cumulative_phi.partition_point(|&cumulative| cumulative <= point).min(words - 1) as u32
            }));
            tokens.sort_unstable();
            distinct.clear();
            counts.clear();
            for run in tokens.chunk_by(|one, other| one == other) {
                distinct.push(run[0]);
                // The length of a document fits into u32.
                counts.push(run.len() as u32);
            }
            documents.push(&distinct, &counts);
        }
        documents
    }
}
