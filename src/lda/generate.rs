//! Made-up documents whose topics are known.

use super::documents::Documents;
use crate::number::Real;
use crate::random::{Purpose, Seed, Who};
use rand::RngExt;
use rand_distr::{Distribution, Gamma, LogNormal};
use std::ops::Range;

/// What documents are drawn from: topics whose words follow Zipf's law over the vocabulary, each with words of its own in front.
#[derive(Clone, Debug)]
pub struct CorpusGenerator {
    seed: Seed,
    vocabulary: u32,
    alpha: f64,
    length: LogNormal<f64>,
    /// Σ_{v ≤ w} φ_kv: K × W.
    running: Vec<f64>,
}

/// How a [`CorpusGenerator`] is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorpusGeneratorSettings {
    /// W.
    pub vocabulary: u32,
    /// K.
    pub topics: u32,
    /// α of the documents' topics.
    pub alpha: f64,
    /// How alike topics are: φ_k ~ Dir(concentration · Zipf's law), so that a few hundred is many words in common.
    pub concentration: f64,
    /// Mean and standard deviation of the logarithm of a document's tokens.
    pub log_length: (f64, f64),
}

impl CorpusGenerator {
    /// Draws topics.
    ///
    /// # Errors
    /// Says which number is out of its range.
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
        let all: f64 = (0..vocabulary).map(zipf).sum();
        let mut running = Vec::with_capacity(vocabulary as usize * topics as usize);
        for topic in 0..u64::from(topics) {
            let mut stream = seed.stream(Who::Server, topic, Purpose::Synthetic);
            let first = running.len();
            let mut sum = 0.0;
            for word in 0..vocabulary {
                // What underflows is a word that the topic does not have.
                sum += Gamma::new(concentration * zipf(word) / all, 1.0).map_or(0.0, |gamma| gamma.sample(&mut stream));
                running.push(sum);
            }
            running[first..].iter_mut().for_each(|part| *part /= sum);
        }
        Ok(Self { seed, vocabulary, alpha, length, running })
    }

    /// W.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// K.
    pub fn topics(&self) -> usize {
        self.running.len() / self.vocabulary as usize
    }

    /// φ_k (W) of a topic.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn topic(&self, topic: usize) -> impl Iterator<Item = f64> {
        let words = self.vocabulary as usize;
        let running = &self.running[topic * words..(topic + 1) * words];
        let mut before = 0.0;
        running.iter().map(move |&part| part - std::mem::replace(&mut before, part))
    }

    /// φ (W × K).
    pub fn phi<F: Real>(&self) -> Vec<F> {
        let topics = self.topics();
        let mut phi = vec![F::zero(); self.running.len()];
        for topic in 0..topics {
            self.topic(topic).enumerate().for_each(|(word, part)| phi[word * topics + topic] = F::of(part));
        }
        phi
    }

    /// The documents with these numbers, the same whichever are asked for together; each has a token at least.
    pub fn documents(&self, numbers: Range<u64>) -> Documents {
        let words = self.vocabulary as usize;
        let mut documents = Documents::new(self.vocabulary);
        let mut tokens: Vec<u32> = Vec::new();
        let mut weights = vec![0.0; self.topics()];
        let (mut distinct, mut counts) = (Vec::new(), Vec::new());
        for number in numbers {
            let mut stream = self.seed.stream(Who::Run, number, Purpose::Synthetic);
            let mut sum = 0.0;
            for weight in &mut weights {
                sum += Gamma::new(self.alpha, 1.0).map_or(0.0, |gamma| gamma.sample(&mut stream));
                *weight = sum;
            }
            if sum == 0.0 {
                // All have underflown: one topic has all tokens.
                let topic = stream.random_range(0..weights.len());
                weights[topic..].fill(1.0);
                sum = 1.0;
            }
            let length = self.length.sample(&mut stream).round().max(1.0) as u64;
            tokens.clear();
            tokens.extend((0..length).map(|_| {
                let point = sum * stream.random::<f64>();
                let topic = weights.partition_point(|&part| part <= point).min(weights.len() - 1);
                let running = &self.running[topic * words..(topic + 1) * words];
                let point = stream.random::<f64>();
                running.partition_point(|&part| part <= point).min(words - 1) as u32
            }));
            tokens.sort_unstable();
            distinct.clear();
            counts.clear();
            for run in tokens.chunk_by(|one, other| one == other) {
                distinct.push(run[0]);
                // A document's length is far below what u32 holds.
                counts.push(run.len() as u32);
            }
            documents.push(&distinct, &counts);
        }
        documents
    }
}
