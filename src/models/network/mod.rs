//! Dense networks of any depth for regression and classification, written on BLAS.
//!
//! θ = [W1, b1, W2, b2, ..., (g)], W_l (inputs × outputs) row-major, ReLU between layers. Weights and biases have the prior N(0, 1/λ).
//! Classification: softmax cross-entropy. Regression: y ~ N(f(x), 1/γ) with g = log γ, γ ~ Gamma(shape, rate), or Huber's loss.
//! The networks of Liu & Wang 2016, section 5, and of Kassab & Simeone, arXiv 2009.06419, are those with one hidden layer.

mod dense;
mod losses;
mod settings;

pub use settings::{Loss, NetworkSettings};

use super::layout::{flat, flat_mut, matrix, particle_mut};
use super::{Batch, CurvatureSupport, Model, Output, Part, Scratch};
use crate::number::Real;
use crate::random::Stream;
use dense::{Layer, Pass};
use losses::Likelihood;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2, s};
use rayon::prelude::*;

/// Rows that go through a network at a time, so that memory does not grow with the batch.
const ROW_BLOCK: usize = 512;

/// Multiply-adds of a call above which particles (or blocks of rows) are spread over threads.
const WORTH_THREADS: usize = 1_000_000;

/// A dense network.
#[derive(Clone, Debug)]
pub struct Network {
    layers: Vec<Layer>,
    likelihood: Likelihood,
    prior_precision: f64,
}

impl Network {
    /// How many weights and biases there are: the parameters with the Gaussian prior.
    fn weights(&self) -> usize {
        self.layers.iter().map(Layer::size).sum()
    }

    fn dim(&self) -> usize {
        self.weights() + usize::from(self.likelihood.has_log_precision())
    }

    /// Length of the piece of scratch memory that one thread needs.
    fn piece(&self, rows: usize, backward: bool) -> usize {
        dense::memory(&self.layers, rows.min(ROW_BLOCK), backward)
    }

    /// How many pieces `units` of work are cut into: the threads at hand, if the work is worth it.
    ///
    /// Units are computed alone and alike wherever they land, so that the number of threads doesn't change a bit of the result.
    fn threads(&self, particles: usize, rows: usize, units: usize) -> usize {
        let work = particles * rows * self.weights();
        if work < WORTH_THREADS { 1 } else { rayon::current_num_threads().clamp(1, units.max(1)) }
    }

    fn check<F: Real>(&self, theta: &ArrayView2<F>, batch: &Batch<F>) {
        assert_eq!(theta.ncols(), self.dim(), "network: wrong number of parameters");
        assert_eq!(batch.x.ncols(), self.layers[0].inputs, "network: wrong number of features");
        assert_eq!(batch.x.nrows(), batch.y.len(), "network: features and targets differ in their number of rows");
    }

    /// The batch in blocks of rows.
    fn blocks<'a, F>(batch: Batch<'a, F>) -> impl Iterator<Item = Batch<'a, F>> {
        let rows = batch.x.nrows();
        (0..rows).step_by(ROW_BLOCK).map(move |first| {
            let last = rows.min(first + ROW_BLOCK);
            let Batch { x, y } = batch;
            Batch { x: x.slice_move(s![first..last, ..]), y: y.slice_move(s![first..last]) }
        })
    }

    /// Does something with each particle, its row of `sums` and memory for a backward pass, on threads where it is worth it.
    fn over_particles<F: Real>(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        sums: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        each: impl Fn(&[F], &mut [F], &mut [F]) + Sync,
    ) {
        self.check(&theta, &batch);
        let (n, d, rows) = (theta.nrows(), self.dim(), batch.x.nrows());
        let (theta, sums) = (flat(theta), flat_mut(sums));
        let threads = self.threads(n, rows, n);
        let (share, piece) = (n.div_ceil(threads).max(1), self.piece(rows, true));
        let mut memory = scratch.take(threads * piece);
        let work = |((theta, sums), memory): ((&[F], &mut [F]), &mut [F])| {
            for (theta, sums) in theta.chunks_exact(d).zip(sums.chunks_exact_mut(d)) {
                each(theta, sums, memory);
            }
        };
        if threads == 1 {
            work(((theta, sums), &mut memory));
        } else {
            let sums = sums.par_chunks_mut(share * d);
            theta.par_chunks(share * d).zip(sums).zip(memory.par_chunks_mut(piece)).for_each(work);
        }
        scratch.put(memory);
    }

    /// Σ ℓ of one particle.
    fn particle_loss<F: Real>(&self, theta: &[F], batch: Batch<F>, memory: &mut [F]) -> f64 {
        let mut sum = 0.0;
        for block in Self::blocks(batch) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            sum += self.likelihood.loss(theta, pass.outputs(), block.y);
        }
        sum
    }

    /// score −= weight · Σ ∇ℓ of one particle.
    fn add_particle_score<F: Real>(&self, theta: &[F], batch: Batch<F>, weight: F, score: &mut [F], memory: &mut [F]) {
        for block in Self::blocks(batch) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            self.likelihood.outputs_to_score(theta, pass.outputs(), block.y, weight, score);
            pass.backward(score);
        }
    }

    /// curvature += weight · Σ diag G of one particle. With one hidden layer it is exact.
    fn add_particle_curvature<F: Real>(&self, theta: &[F], batch: Batch<F>, weight: F, curvature: &mut [F], memory: &mut [F]) {
        for block in Self::blocks(batch) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            let outputs = pass.outputs();
            self.likelihood.probabilities(outputs);
            let probabilities = outputs.to_vec();
            self.likelihood.outputs_to_curvature(theta, outputs, block.y, weight, curvature);
            let classes = self.likelihood.output();
            pass.curvature(
                |own, weights, mut below| match classes {
                    // Σ_c p_c w_c² − (Σ_c p_c w_c)²: outputs of one row are not independent.
                    Output::Classes(classes) => {
                        let p = matrix(&probabilities, block.x.nrows(), classes);
                        let squares = weights.mapv(|weight| weight * weight);
                        let mean = p.dot(&weights.t());
                        general_mat_mul(weight, &p, &squares.t(), F::zero(), &mut below);
                        below.zip_mut_with(&mean, |below, &mean| *below = (*below - weight * mean * mean).max(F::zero()));
                    }
                    Output::Number | Output::Nothing => {
                        let squares = weights.mapv(|weight| weight * weight);
                        general_mat_mul(F::one(), &own, &squares.t(), F::zero(), &mut below);
                    }
                },
                curvature,
            );
        }
    }

    /// The predictive of one block of rows, particles in their order.
    fn predict_block<F: Real>(&self, theta: &[F], block: Batch<F>, mean: &mut [f64], density: &mut [f64], memory: &mut [F]) {
        mean.fill(0.0);
        density.fill(0.0);
        let share = 1.0 / (theta.len() / self.dim()) as f64;
        for theta in theta.chunks_exact(self.dim()) {
            let mut pass = Pass::forward(&self.layers, theta, block.x, memory);
            self.likelihood.add_prediction(theta, pass.outputs(), block.y, share, mean, density);
        }
    }
}

impl<F: Real> Model<F> for Network {
    fn dim(&self) -> usize {
        Network::dim(self)
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

    /// W_l ~ N(0, 1/(inputs + 1)), biases 0: a draw from the prior would be a saturated network. g = 0, where the authors' code takes
    /// −log of such a network's mean squared error on training rows: for standardised targets that is near −log 1.5, and no data need
    /// to travel for it.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let theta = particle_mut(theta);
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
        self.check(&theta, &batch);
        let (n, d, rows) = (theta.nrows(), self.dim(), batch.x.nrows());
        let theta = flat(theta);
        let threads = self.threads(n, rows, n);
        let (share, piece) = (n.div_ceil(threads).max(1), self.piece(rows, false));
        let mut memory = scratch.take(threads * piece);
        let work = |((theta, out), memory): ((&[F], &mut [f64]), &mut [F])| {
            for (theta, out) in theta.chunks_exact(d).zip(out) {
                *out = self.particle_loss(theta, batch, memory);
            }
        };
        if threads == 1 {
            work(((theta, out), &mut memory));
        } else {
            let outs = out.par_chunks_mut(share);
            theta.par_chunks(share * d).zip(outs).zip(memory.par_chunks_mut(piece)).for_each(work);
        }
        scratch.put(memory);
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.over_particles(theta, batch, score, scratch, |theta, score, memory| {
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
        self.over_particles(theta, batch, curvature, scratch, |theta, curvature, memory| {
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
        let (n, rows, outputs) = (theta.nrows(), batch.x.nrows(), mean.ncols());
        let (theta, mean) = (flat(theta), flat_mut(mean));
        let threads = self.threads(n, rows, rows.div_ceil(ROW_BLOCK));
        let piece = self.piece(rows, false);
        let mut memory = scratch.take(threads * piece);
        let wave = threads * ROW_BLOCK;
        for (w, (mean, density)) in mean.chunks_mut(wave * outputs).zip(density.chunks_mut(wave)).enumerate() {
            let last = rows.min((w + 1) * wave);
            let wave = Batch { x: batch.x.slice_move(s![w * wave..last, ..]), y: batch.y.slice_move(s![w * wave..last]) };
            let work = |(((mean, density), memory), first): (Piece<F>, usize)| {
                let last = first + density.len();
                let block = Batch { x: wave.x.slice_move(s![first..last, ..]), y: wave.y.slice_move(s![first..last]) };
                self.predict_block(theta, block, mean, density, memory);
            };
            if threads == 1 {
                work((((mean, density), &mut memory), 0));
            } else {
                let firsts = (0..threads).into_par_iter().map(|block| block * ROW_BLOCK);
                let blocks = mean.par_chunks_mut(ROW_BLOCK * outputs).zip(density.par_chunks_mut(ROW_BLOCK));
                blocks.zip(memory.par_chunks_mut(piece)).zip(firsts).for_each(work);
            }
        }
        scratch.put(memory);
    }
}

/// The predictions of a block of rows (means and densities), and the memory to make them in.
type Piece<'a, F> = ((&'a mut [f64], &'a mut [f64]), &'a mut [F]);

#[cfg(test)]
mod tests;
