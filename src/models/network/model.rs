//! The network model: loss, score, curvature and predictions of all particles, spread over threads.

use super::super::waves::predict_in_waves;
use super::super::{Batch, CurvatureSupport, Model, Output, Part, Scratch};
use super::dense::{self, Layer, Pass};
use super::losses::Likelihood;
use crate::layout::{flat, flat_mut, matrix};
use crate::number::Real;
use crate::random::Stream;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rayon::prelude::*;

/// The number of rows per pass through a network, which bounds the memory for large batches.
pub(super) const ROW_BLOCK: usize = 512;

/// The number of multiply-adds from which on particles or blocks of rows are spread over threads.
pub(super) const MIN_WORK_FOR_THREADS: usize = 1_000_000;

/// A dense network.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) layers: Vec<Layer>,
    pub(super) likelihood: Likelihood,
    pub(super) prior_precision: f64,
}

impl Network {
    /// The number of weights and biases: the parameters with the Gaussian prior.
    pub(super) fn weights(&self) -> usize {
        self.layers.iter().map(Layer::size).sum()
    }

    pub(super) fn dim(&self) -> usize {
        self.weights() + usize::from(self.likelihood.has_log_precision())
    }

    /// The length of the scratch memory of one thread.
    fn memory_per_thread(&self, rows: usize, backward: bool) -> usize {
        // A multiple of a cache line, so that the memory of each thread begins at one.
        dense::memory(&self.layers, rows.min(ROW_BLOCK), backward).next_multiple_of(16)
    }

    /// The number of threads for `units` of work: one if the work is small. Each unit is computed independently, so the result does not
    /// depend on the number of threads.
    fn threads(&self, particles: usize, rows: usize, units: usize) -> usize {
        let work = particles * rows * self.weights();
        if work < MIN_WORK_FOR_THREADS { 1 } else { rayon::current_num_threads().clamp(1, units.max(1)) }
    }

    fn check<F: Real>(&self, theta: &ArrayView2<F>, batch: &Batch<F>) {
        assert_eq!(theta.ncols(), self.dim(), "wrong number of parameters");
        assert_eq!(batch.x.ncols(), self.layers[0].inputs, "wrong number of features");
        assert_eq!(batch.x.nrows(), batch.y.len(), "features and targets differ in their number of rows");
    }

    /// Calls `each` for every particle with its `per_particle` values of `out` and scratch memory, on several threads if the work is large.
    fn for_each_particle<F: Real, T: Send>(
        &self,
        (theta, batch): (ArrayView2<F>, Batch<F>),
        (out, per_particle): (&mut [T], usize),
        backward: bool,
        scratch: &mut Scratch<F>,
        each: impl Fn(&[F], &mut [T], &mut [F]) + Sync,
    ) {
        self.check(&theta, &batch);
        let (n, d, rows) = (theta.nrows(), self.dim(), batch.x.nrows());
        let theta = flat(theta);
        let threads = self.threads(n, rows, n);
        let (share, memory_size) = (n.div_ceil(threads).max(1), self.memory_per_thread(rows, backward));
        let mut memory = scratch.take(threads * memory_size);
        let work = |((theta, out), memory): ((&[F], &mut [T]), &mut [F])| {
            for (theta, out) in theta.chunks_exact(d).zip(out.chunks_exact_mut(per_particle)) {
                each(theta, out, memory);
            }
        };
        if threads == 1 {
            work(((theta, out), &mut memory));
        } else {
            let out = out.par_chunks_mut(share * per_particle);
            theta.par_chunks(share * d).zip(out).zip(memory.par_chunks_mut(memory_size)).for_each(work);
        }
        scratch.put(memory);
    }

    /// Σ ℓ over the batch for one particle.
    fn particle_loss<F: Real>(&self, theta: &[F], batch: Batch<F>, memory: &mut [F]) -> f64 {
        let mut sum = 0.0;
        for block in batch.blocks(ROW_BLOCK) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            sum += self.likelihood.loss(theta, pass.outputs(), block.y);
        }
        sum
    }

    /// Subtracts weight · Σ ∇ℓ over the batch from the score of one particle.
    fn add_particle_score<F: Real>(&self, theta: &[F], batch: Batch<F>, weight: F, score: &mut [F], memory: &mut [F]) {
        for block in batch.blocks(ROW_BLOCK) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            self.likelihood.outputs_to_score(theta, pass.outputs(), block.y, weight, score);
            pass.backward(score);
        }
    }

    /// Adds weight · Σ diag G over the batch to the curvature of one particle. Exact with up to one hidden layer.
    fn add_particle_curvature<F: Real>(&self, theta: &[F], batch: Batch<F>, weight: F, curvature: &mut [F], memory: &mut [F]) {
        for block in batch.blocks(ROW_BLOCK) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            let outputs = pass.outputs();
            self.likelihood.probabilities(outputs);
            let probabilities = outputs.to_vec();
            self.likelihood.outputs_to_curvature(theta, outputs, block.y, weight, curvature);
            let classes = self.likelihood.output();
            pass.curvature(
                |own, weights, mut below| match classes {
                    // Σ_c p_c w_c² − (Σ_c p_c w_c)², because the class probabilities of a row are dependent.
                    Output::Classes(classes) => {
                        let p = matrix(&probabilities, block.x.nrows(), classes);
                        let squares = weights.mapv(|weight| weight * weight);
                        let mean = p.dot(&weights.t());
                        general_mat_mul(weight, &p, &squares.t(), F::zero(), &mut below);
                        below.zip_mut_with(&mean, |below, &mean| *below = (*below - weight * mean * mean).max(F::zero()));
                    }
                    Output::Number | Output::Count | Output::Nothing => {
                        let squares = weights.mapv(|weight| weight * weight);
                        general_mat_mul(F::one(), &own, &squares.t(), F::zero(), &mut below);
                    }
                },
                curvature,
            );
        }
    }

    /// The predictive of one block of rows, with sums over particles in order.
    fn predict_block<F: Real>(&self, theta: &[F], block: Batch<F>, mean: &mut [f64], density: &mut [f64], memory: &mut [F]) {
        mean.fill(0.0);
        density.fill(0.0);
        let weight = 1.0 / (theta.len() / self.dim()) as f64;
        for theta in theta.chunks_exact(self.dim()) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            self.likelihood.add_prediction(theta, pass.outputs(), block.y, weight, mean, density);
        }
    }
}

impl<F: Real> Model<F> for Network {
    fn dim(&self) -> usize {
        Network::dim(self)
    }

    fn has_symmetries(&self) -> bool {
        self.layers.len() > 1
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (l, layer) in (1..).zip(&self.layers) {
            parts.push(Part::new(format!("weights_{l}"), &[layer.inputs, layer.outputs]));
            parts.push(Part::new(format!("biases_{l}"), &[layer.outputs]));
        }
        if self.likelihood.has_log_precision() {
            parts.push(Part::new("log_precision", &[]));
        }
        parts
    }

    fn output(&self) -> Output {
        self.likelihood.output()
    }

    /// W_l ~ N(0, 1/(inputs + 1)) and biases 0, because the outputs of a network drawn from the prior would be much too large. g = 0; the DSVGD authors'
    /// code uses −log of the mean squared error of such a network on training rows, which is near −log 1.5 for standardized targets.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let theta = flat_mut(theta);
        theta.fill(F::zero());
        for layer in &self.layers {
            let deviation = F::of(1.0 / (layer.inputs as f64 + 1.0).sqrt());
            let weights = &mut theta[layer.offset..][..layer.inputs * layer.outputs];
            stream.normals(weights);
            weights.iter_mut().for_each(|weight| *weight *= deviation);
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.dim()).zip(out) {
            let square: f64 = theta[..self.weights()].iter().map(|w| w.f64() * w.f64()).sum();
            *out = self.likelihood.log_prior(theta) - 0.5 * self.prior_precision * square;
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let precision = F::of(self.prior_precision);
        let (d, weights) = (self.dim(), self.weights());
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for (score, weight) in score.iter_mut().zip(&theta[..weights]) {
                *score = -precision * *weight;
            }
            self.likelihood.prior_score(theta, score);
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        self.for_each_particle((theta, batch), (out, 1), false, scratch, |theta, out, memory| {
            out[0] = self.particle_loss(theta, batch, memory);
        });
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.for_each_particle((theta, batch), (flat_mut(score), self.dim()), true, scratch, |theta, score, memory| {
            self.add_particle_score(theta, batch, weight, score, memory);
        });
    }

    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::Diagonal
    }

    fn add_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.for_each_particle((theta, batch), (flat_mut(curvature), self.dim()), true, scratch, |theta, curvature, memory| {
            self.add_particle_curvature(theta, batch, weight, curvature, memory);
        });
    }

    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    ) {
        self.check(&theta, &batch);
        let (n, rows) = (theta.nrows(), batch.x.nrows());
        let (theta, mean) = (flat(theta), flat_mut(mean));
        let threads = self.threads(n, rows, rows.div_ceil(ROW_BLOCK));
        let memory_size = self.memory_per_thread(rows, false);
        let mut memory = scratch.take(threads * memory_size);
        // `max` because chunks of 0 elements panic; without rows there is nothing to predict.
        let mut memories: Vec<&mut [F]> = memory.chunks_mut(memory_size.max(1)).collect();
        predict_in_waves((batch, ROW_BLOCK), (mean, density), &mut memories, |block, mean, density, memory| {
            self.predict_block(theta, block, mean, density, memory);
        });
        scratch.put(memory);
    }
}
