//! Stochastic gradient Riemannian Langevin dynamics of the topics (Patterson & Teh 2013), in the expanded mean: φ_kw = ϑ_kw/Σ_w ϑ_kw.
//!
//! ϑ_kw ← |ϑ_kw + (ε/2)(β − ϑ_kw + ρ Σ_d E\[n_dkw − φ_kw n_dk\]) + N(0, ε ϑ_kw)| over the documents d of a minibatch, with ρ the factor that
//! scales it to all documents; the prior is ϑ_kw ~ Gamma(β, 1).

use super::documents::Bag;
use super::gibbs::{DocumentGibbs, Sweeps};
use super::table::WordTable;
use crate::number::Real;
use crate::random::Stream;

/// ϑ never falls below the smallest number of its type that is not subnormal: from 0 no noise would lead away.
fn floor<F: Real>() -> F {
    F::of(if size_of::<F>() == size_of::<f32>() { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE })
}

/// What a minibatch tells of the topics: E\[n_dkw\], summed over its documents.
#[derive(Clone, Debug)]
pub struct ExpectedCounts<F> {
    table: WordTable<F>,
    gibbs: DocumentGibbs<F>,
    sweeps: Sweeps,
    /// How often each topic was seen with the word of each slot: slots × K.
    seen: Vec<u32>,
    totals: Vec<f64>,
}

impl<F: Real> ExpectedCounts<F> {
    /// For a vocabulary of this size and K topics, with the prior's α for the topics of a document.
    pub fn new(vocabulary: u32, topics: usize, alpha: f64, sweeps: Sweeps) -> Self {
        Self {
            table: WordTable::new(vocabulary, topics),
            gibbs: DocumentGibbs::new(topics, alpha),
            sweeps,
            seen: Vec::new(),
            totals: vec![0.0; topics],
        }
    }

    /// Takes a minibatch: samples the topics of its documents, each with a stream of its own, with φ of ϑ (W × K).
    ///
    /// # Panics
    /// When ϑ has another size, or no topics of documents were kept.
    pub fn sample<'a>(
        &mut self,
        theta: &[F],
        documents: impl Iterator<Item = Bag<'a>> + Clone,
        mut stream: impl FnMut(u64) -> Stream,
    ) {
        let topics = self.table.topics();
        assert_eq!(theta.len(), self.table.vocabulary() * topics, "topics of another size");
        assert!(self.sweeps.kept > 0, "sweeps of which none counts");
        column_sums(theta, &mut self.totals);
        let scales: Vec<F> = self.totals.iter().map(|&total| F::of(1.0 / total)).collect();
        self.table.fill(documents.clone(), |word, phi| {
            let theta = &theta[word as usize * topics..(word as usize + 1) * topics];
            for ((phi, &theta), &scale) in phi.iter_mut().zip(theta).zip(&scales) {
                *phi = theta * scale;
            }
        });
        self.seen.clear();
        self.seen.resize(self.table.words().len() * topics, 0);
        for (number, bag) in (0..).zip(documents) {
            let seen = &mut self.seen;
            self.gibbs.sample(bag, &self.table, self.sweeps, &mut stream(number), |slot, topic| seen[slot * topics + topic] += 1);
        }
    }

    /// E\[n_kw\] of a word for all k, if the minibatch has it, in units of 1/kept sweeps.
    fn of(&self, word: u32) -> Option<&[u32]> {
        let topics = self.table.topics();
        self.table.slot(word).map(|slot| &self.seen[slot * topics..(slot + 1) * topics])
    }
}

/// The numbers of an update.
#[derive(Clone, Copy, Debug)]
pub struct SgrldUpdate {
    /// β.
    pub beta: f64,
    /// ε.
    pub step: f64,
    /// ρ.
    pub scale: f64,
}

/// An update of ϑ (W × K) with what a minibatch has told of it.
///
/// # Panics
/// When ϑ has another size than at [`ExpectedCounts::sample`].
pub fn sgrld_step<F: Real>(theta: &mut [F], expected: &ExpectedCounts<F>, update: SgrldUpdate, noise: &mut Stream) {
    let SgrldUpdate { beta, step, scale } = update;
    let topics = expected.totals.len();
    assert_eq!(theta.len(), expected.table.vocabulary() * topics, "topics of another size");
    let kept = f64::from(expected.sweeps.kept);
    let mut counts = vec![0.0; topics];
    for row in expected.seen.chunks_exact(topics) {
        row.iter().zip(&mut counts).for_each(|(&seen, count)| *count += f64::from(seen));
    }
    // ϑ + (ε/2)(β + ρ n_kw) − (ε/2)(1 + ρ n_k/Σϑ_k) ϑ.
    let loss = |(&count, &total): (&f64, &f64)| F::of(0.5 * step * (1.0 + scale * count / kept / total));
    let losses: Vec<F> = counts.iter().zip(&expected.totals).map(loss).collect();
    let (growth, variance) = (F::of(0.5 * step * beta), F::of(step));
    let each = F::of(0.5 * step * scale / kept);
    let least = floor::<F>();
    // What is not a number stays none, and is told.
    let reflected = |theta: F| if theta.abs() < least { least } else { theta.abs() };
    let mut normals = vec![F::zero(); topics];
    for (word, row) in (0..).zip(theta.chunks_exact_mut(topics)) {
        noise.normals(&mut normals);
        if let Some(seen) = expected.of(word) {
            for (((theta, &loss), &z), &seen) in row.iter_mut().zip(&losses).zip(&normals).zip(seen) {
                let spread = (variance * *theta).sqrt();
                let drift = growth + each * F::of(f64::from(seen)) - loss * *theta;
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

/// Σ_w ϑ_kw of each topic, of ϑ (W × K).
fn column_sums<F: Real>(theta: &[F], sums: &mut [f64]) {
    sums.fill(0.0);
    for row in theta.chunks_exact(sums.len()) {
        sums.iter_mut().zip(row).for_each(|(sum, &theta)| *sum += theta.f64());
    }
}
