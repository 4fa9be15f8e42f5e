//! The model of a convolutional network: loss, score and predictions, spread over threads by blocks of images.

use super::architecture::{Architecture, Normalization, Unit};
use super::pass::{self, Memory, Pass};
use crate::layout::{flat, flat_mut};
use crate::models::network::Likelihood;
use crate::models::waves::predict_in_waves;
use crate::models::{Batch, CurvatureSupport, Model, Output, Part, Scratch};
use crate::number::Real;
use crate::random::Stream;
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rayon::prelude::*;

/// The number of images per pass. Sums over images are sums of the blocks' sums, so that their bits do not depend on the number of threads.
pub(super) const BLOCK_IMAGES: usize = 8;

/// A convolutional network.
#[derive(Clone, Debug)]
pub struct ConvolutionalNetwork {
    pub(super) architecture: Architecture,
    pub(super) likelihood: Likelihood,
    pub(super) prior_precision: f64,
}

impl ConvolutionalNetwork {
    pub(super) fn dim(&self) -> usize {
        self.architecture.parameters() + usize::from(self.likelihood.has_log_precision())
    }

    /// The number of multiply-adds of an image's forward pass.
    pub fn products(&self) -> usize {
        self.architecture.products()
    }

    fn check<F: Real>(&self, theta: &ArrayView2<F>, batch: &Batch<F>) {
        assert_eq!(theta.ncols(), self.dim(), "wrong number of parameters");
        assert_eq!(batch.x.ncols(), self.architecture.image.iter().product::<usize>(), "wrong number of features");
        assert_eq!(batch.x.nrows(), batch.y.len(), "features and targets differ in their number of rows");
    }

    /// Calls `each` for every particle and block of images in parallel, then `collect` with its result and memory, in the order of particles
    /// and blocks.
    fn for_each_block<F: Real, T: Send>(
        &self,
        (theta, batch): (ArrayView2<F>, Batch<F>),
        backward: bool,
        scratch: &mut Scratch<F>,
        each: impl Fn(&[F], Batch<F>, &mut Memory<F>) -> T + Sync,
        mut collect: impl FnMut(usize, T, &Memory<F>),
    ) {
        self.check(&theta, &batch);
        let (rows, particles) = (batch.x.nrows(), theta.nrows());
        let theta = flat(theta);
        let firsts = (0..rows).step_by(BLOCK_IMAGES);
        let work: Vec<(usize, usize)> =
            (0..particles).flat_map(|particle| firsts.clone().map(move |first| (particle, first))).collect();
        let mut memories = self.memories(work.len(), rows, backward, scratch);
        for wave in work.chunks(memories.len().max(1)) {
            let run = |(&(particle, first), memory): (&(usize, usize), &mut Memory<F>)| {
                let block = batch.slice(first..rows.min(first + BLOCK_IMAGES));
                each(&theta[particle * self.dim()..][..self.dim()], block, memory)
            };
            let results: Vec<T> = wave.par_iter().zip(&mut memories).map(run).collect();
            for ((&(particle, _), result), memory) in wave.iter().zip(results).zip(&memories) {
                collect(particle, result, memory);
            }
        }
        memories.into_iter().for_each(|memory| memory.put(scratch));
    }

    /// A memory for each thread, at most one for each of `work` pieces of work.
    fn memories<F: Real>(&self, work: usize, rows: usize, backward: bool, scratch: &mut Scratch<F>) -> Vec<Memory<F>> {
        let (threads, images) = (rayon::current_num_threads().min(work), BLOCK_IMAGES.min(rows));
        let score = backward.then(|| self.dim());
        (0..threads).map(|_| Memory::take(&self.architecture, images, score, scratch)).collect()
    }

    /// The parameters whose prior has mean 1: the gains.
    fn gains(&self) -> impl Iterator<Item = usize> {
        self.architecture.units.iter().flat_map(|unit| unit.gains.map_or(0..0, |gains| gains..gains + unit.channels()))
    }

    /// The prediction for a block of images, with sums over particles in order.
    fn predict_block<F: Real>(
        &self,
        theta: &[F],
        block: Batch<F>,
        (mean, density): (&mut [f64], &mut [f64]),
        memory: &mut Memory<F>,
    ) {
        mean.fill(0.0);
        density.fill(0.0);
        let weight = 1.0 / (theta.len() / self.dim()) as f64;
        for theta in theta.chunks_exact(self.dim()) {
            let mut pass = Pass::forward(&self.architecture, theta, block.x, memory);
            self.likelihood.add_prediction(theta, pass.outputs(), block.y, weight, mean, density);
        }
    }
}

impl<F: Real> Model<F> for ConvolutionalNetwork {
    fn dim(&self) -> usize {
        ConvolutionalNetwork::dim(self)
    }

    fn buffered_values(&self) -> usize {
        pass::buffered_values(&self.architecture, BLOCK_IMAGES, self.dim())
    }

    fn has_symmetries(&self) -> bool {
        true
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = self.architecture.parts();
        if self.likelihood.has_log_precision() {
            parts.push(Part::new("log_precision", &[]));
        }
        parts
    }

    fn output(&self) -> Output {
        self.likelihood.output()
    }

    /// Draws filters from N(0, 2/n), where n is the number of inputs of a filter (He et al. 2015), and the dense weights from
    /// N(0, 1/features); filters of projections have half the variance of others. Gains are 1, all others 0. A draw from the prior would saturate the network. Without normalization, the second
    /// filters of each of B residual blocks are divided by √B, so that the sum of all blocks stays of order 1.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let theta = flat_mut(theta);
        theta.fill(F::zero());
        let mut draw = |weights: &mut [F], variance: f64| {
            stream.normals(weights);
            let deviation = F::of(variance.sqrt());
            weights.iter_mut().for_each(|weight| *weight *= deviation);
        };
        for (filters, factor) in self.architecture.all_filters() {
            let [height, width, inputs, _] = filters.convolution.shape();
            let variance = 2.0 / (height * width * inputs) as f64;
            draw(&mut theta[filters.offset..][..filters.convolution.weights()], variance * factor * factor);
        }
        let features = self.architecture.features();
        draw(&mut theta[self.architecture.head..][..features * self.architecture.outputs], 1.0 / features as f64);
        self.gains().for_each(|gain| theta[gain] = F::one());
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.dim()).zip(out) {
            let square: f64 = theta[..self.architecture.parameters()].iter().map(|weight| weight.f64() * weight.f64()).sum();
            // (γ − 1)² = γ² − 2γ + 1.
            let gains: f64 = self.gains().map(|gain| 1.0 - 2.0 * theta[gain].f64()).sum();
            *out = self.likelihood.log_prior(theta) - 0.5 * self.prior_precision * (square + gains);
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let precision = F::of(self.prior_precision);
        let (d, weights) = (self.dim(), self.architecture.parameters());
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for (score, weight) in score.iter_mut().zip(&theta[..weights]) {
                *score = -precision * *weight;
            }
            self.gains().for_each(|gain| score[gain] += precision);
            self.likelihood.prior_score(theta, score);
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        let loss = |theta: &[F], block: Batch<F>, memory: &mut Memory<F>| {
            let mut pass = Pass::forward(&self.architecture, theta, block.x, memory);
            self.likelihood.loss(theta, pass.outputs(), block.y)
        };
        self.for_each_block((theta, batch), false, scratch, loss, |particle, loss, _| out[particle] += loss);
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        let (score, d) = (flat_mut(score), self.dim());
        let block_score = |theta: &[F], block: Batch<F>, memory: &mut Memory<F>| {
            let mut pass = Pass::forward(&self.architecture, theta, block.x, memory);
            let (outputs, score) = pass.outputs_and_score();
            self.likelihood.outputs_to_score(theta, outputs, block.y, weight, score);
            pass.backward();
        };
        self.for_each_block((theta, batch), true, scratch, block_score, |particle, (), memory| {
            score[particle * d..][..d].iter_mut().zip(memory.score()).for_each(|(score, &block)| *score += block);
        });
    }

    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::Diagonal
    }

    /// Takes a backward pass for each image and output.
    fn add_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let (curvature, d) = (flat_mut(curvature), self.dim());
        let of_block = |theta: &[F], block: Batch<F>, memory: &mut Memory<F>| {
            let mut sums = vec![F::zero(); d];
            for image in 0..block.x.nrows() {
                let image = block.slice(image..image + 1);
                let mut pass = Pass::forward(&self.architecture, theta, image.x, memory);
                let mut outputs = pass.outputs().to_vec();
                self.likelihood.curvature_roots(theta, &mut outputs, image.y[0], |root| {
                    let (outputs, score) = pass.outputs_and_score();
                    score.fill(F::zero());
                    outputs.copy_from_slice(root);
                    pass.backward();
                    let (_, score) = pass.outputs_and_score();
                    sums.iter_mut().zip(&*score).for_each(|(sum, &score)| *sum += score * score);
                });
                if let Some(of_row) = self.likelihood.curvature_of_log_precision() {
                    sums[d - 1] += F::of(of_row);
                }
            }
            sums
        };
        self.for_each_block((theta, batch), true, scratch, of_block, |particle, sums, _| {
            let curvature = &mut curvature[particle * d..][..d];
            curvature.iter_mut().zip(sums).for_each(|(curvature, sum)| *curvature += weight * sum);
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
        let rows = batch.x.nrows();
        let (theta, mean) = (flat(theta), flat_mut(mean));
        let mut memories = self.memories(rows.div_ceil(BLOCK_IMAGES), rows, false, scratch);
        predict_in_waves((batch, BLOCK_IMAGES), (mean, density), &mut memories, |block, mean, density, memory| {
            self.predict_block(theta, block, (mean, density), memory);
        });
        memories.into_iter().for_each(|memory| memory.put(scratch));
    }
}

/// Sets the factors that [`Model::draw_initial`] uses.
pub(super) fn set_initial_factors(architecture: &mut Architecture, normalization: Normalization) {
    let factor = 1.0 / (architecture.residual_blocks().max(1) as f64).sqrt();
    if normalization == Normalization::None {
        let is_last = |unit: &&mut Unit| unit.shortcut.is_some();
        architecture.units.iter_mut().filter(is_last).for_each(|unit| unit.initial_factor = factor);
    }
}
