//! Stochastic gradient Riemannian Langevin dynamics (SGRLD) for LDA (Patterson & Teh 2013), in the expanded-mean parameterization
//! φ_kw = ϑ_kw/Σ_w ϑ_kw.
//!
//! ϑ_kw ← |ϑ_kw + (ε/2)(β − ϑ_kw + ρ Σ_d E\[n_dkw − φ_kw n_dk\]) + N(0, ε ϑ_kw)|, with the sum over the documents d of a minibatch and the
//! factor ρ that scales the minibatch to all documents. The prior is ϑ_kw ~ Gamma(β, 1).

use super::documents::Bag;
use super::gibbs::{DocumentGibbs, Sweeps};
use super::table::WordTable;
use crate::number::Real;
use crate::random::Stream;

/// The lower limit of ϑ, the smallest normal number, because the noise vanishes at 0.
fn min_theta<F: Real>() -> F {
    F::of(if size_of::<F>() == size_of::<f32>() { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE })
}

/// The expected topic-word counts Σ_d E\[n_dkw\] of a minibatch, estimated by Gibbs sampling.
#[derive(Clone, Debug)]
pub struct ExpectedCounts<F> {
    table: WordTable<F>,
    gibbs: DocumentGibbs<F>,
    sweeps: Sweeps,
    /// The counts of each topic with the word of each slot over all kept sweeps: slots × K.
    counts: Vec<u32>,
    totals: Vec<f64>,
}

impl<F: Real> ExpectedCounts<F> {
    /// For a vocabulary of this size and K topics, with the Dirichlet prior α of the topics of a document.
    pub fn new(vocabulary: u32, topics: usize, alpha: f64, sweeps: Sweeps) -> Self {
        Self {
            table: WordTable::new(vocabulary, topics),
            gibbs: DocumentGibbs::new(topics, alpha),
            sweeps,
            counts: Vec::new(),
            totals: vec![0.0; topics],
        }
    }

    /// Samples the topics of the documents of a minibatch given ϑ (W × K); document d draws from `stream(d)`.
    ///
    /// # Panics
    /// If ϑ has the wrong size, or no sweep is kept.
    pub fn sample<'a>(
        &mut self,
        theta: &[F],
        documents: impl Iterator<Item = Bag<'a>> + Clone,
        mut stream: impl FnMut(u64) -> Stream,
    ) {
        let topics = self.table.topics();
        assert_eq!(theta.len(), self.table.vocabulary() * topics, "theta has the wrong size");
        assert!(self.sweeps.kept > 0, "at least one sweep must be kept");
        column_sums(theta, &mut self.totals);
        let scales: Vec<F> = self.totals.iter().map(|&total| F::of(1.0 / total)).collect();
        self.table.fill(documents.clone(), |word, phi| {
            let theta = &theta[word as usize * topics..(word as usize + 1) * topics];
            for ((phi, &theta), &scale) in phi.iter_mut().zip(theta).zip(&scales) {
                *phi = theta * scale;
            }
        });
        self.counts.clear();
        self.counts.resize(self.table.words().len() * topics, 0);
        for (number, bag) in (0..).zip(documents) {
            let counts = &mut self.counts;
            self.gibbs
                .sample(bag, &self.table, self.sweeps, &mut stream(number), |slot, topic| counts[slot * topics + topic] += 1);
        }
    }

    /// The counts of a word for all k over all kept sweeps, if the minibatch contains the word.
    fn word_counts(&self, word: u32) -> Option<&[u32]> {
        let topics = self.table.topics();
        self.table.slot(word).map(|slot| &self.counts[slot * topics..(slot + 1) * topics])
    }
}

/// The parameters of an update.
#[derive(Clone, Copy, Debug)]
pub struct SgrldUpdate {
    /// Dirichlet prior β of the words of a topic.
    pub beta: f64,
    /// Step size ε.
    pub step: f64,
    /// Factor ρ that scales the minibatch to all documents.
    pub scale: f64,
}

/// Updates ϑ (W × K) with the expected counts of a minibatch.
///
/// # Panics
/// If ϑ has another size than in [`ExpectedCounts::sample`].
pub fn sgrld_step<F: Real>(theta: &mut [F], expected: &ExpectedCounts<F>, update: SgrldUpdate, noise: &mut Stream) {
    let SgrldUpdate { beta, step, scale } = update;
    let topics = expected.totals.len();
    assert_eq!(theta.len(), expected.table.vocabulary() * topics, "theta has the wrong size");
    let kept = f64::from(expected.sweeps.kept);
    let mut topic_totals = vec![0.0; topics];
    for row in expected.counts.chunks_exact(topics) {
        row.iter().zip(&mut topic_totals).for_each(|(&count, total)| *total += f64::from(count));
    }
    // ϑ + (ε/2)(β + ρ n_kw) − (ε/2)(1 + ρ n_k/Σϑ_k) ϑ.
    let loss = |(&count, &total): (&f64, &f64)| F::of(0.5 * step * (1.0 + scale * count / kept / total));
    let losses: Vec<F> = topic_totals.iter().zip(&expected.totals).map(loss).collect();
    let (growth, variance) = (F::of(0.5 * step * beta), F::of(step));
    let each = F::of(0.5 * step * scale / kept);
    let least = min_theta::<F>();
    // NaN stays NaN, so that a diverged chain is detected.
    let reflected = |theta: F| if theta.abs() < least { least } else { theta.abs() };
    let mut normals = vec![F::zero(); topics];
    for (word, row) in (0..).zip(theta.chunks_exact_mut(topics)) {
        noise.normals(&mut normals);
        if let Some(counts) = expected.word_counts(word) {
            for (((theta, &loss), &z), &count) in row.iter_mut().zip(&losses).zip(&normals).zip(counts) {
                let spread = (variance * *theta).sqrt();
                let drift = growth + each * F::of(f64::from(count)) - loss * *theta;
                *theta = reflected(*theta + (drift + spread * z));
            }
        } else {
            for ((theta, &loss), &z) in row.iter_mut().zip(&losses).zip(&normals) {
                let spread = (variance * *theta).sqrt();
                *theta = reflected(*theta + (growth - loss * *theta + spread * z));
            }
        }
    }
}

/// Writes the column sums Σ_w ϑ_kw of ϑ (W × K) to `sums`.
fn column_sums<F: Real>(theta: &[F], sums: &mut [f64]) {
    sums.fill(0.0);
    for row in theta.chunks_exact(sums.len()) {
        sums.iter_mut().zip(row).for_each(|(sum, &theta)| *sum += theta.f64());
    }
}
