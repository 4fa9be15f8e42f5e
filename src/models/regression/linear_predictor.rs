//! Linear predictors η = wᵀx of generalized linear models, and the scores of their weights.

use super::block::{Block, LaneBlock, with_lanes};
use super::predictor_kernels::{Dots, Outer, ParticleDots, ParticleOuter, Shape};
use crate::layout::{flat, flat_mut, matrix, matrix_mut};
use crate::models::batch::{Batch, MAX_BLOCK_ROWS, Rows};
use crate::models::{Buffer, Part, Scratch};
use crate::number::Real;
use crate::vector;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, s};

/// Bytes of features in a block of rows. A block stays in the first-level cache while it is multiplied with all particles.
const BLOCK_BYTES: usize = 24 << 10;

/// The number of particles from which on two BLAS products are faster than the SIMD kernels.
pub const BLAS_FROM: usize = 17;
/// Up to this number of particles, each is processed alone with SIMD lanes over features, because most lanes over particles would be
/// unused.
const FEW: usize = 2;

/// The number of rows per BLAS product, which bounds the memory for large batches.
pub const BLAS_ROWS: usize = 512;

/// The number of SIMD lanes: 64 bytes of numbers.
const fn lanes<F>() -> usize {
    64 / size_of::<F>()
}

/// The number of lanes for this many particles, one particle per lane. All lanes but one would be unused by a single particle.
fn lanes_for<F>(particles: usize) -> usize {
    if particles == 1 { 1 } else { lanes::<F>() }
}

/// η = wᵀx, plus an optional intercept. A particle holds w, then the intercept, then further parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearPredictor {
    /// The number of columns of x that have a weight, the first ones.
    pub features: usize,
    /// The number of columns of x.
    pub columns: usize,
    /// Whether the model has an intercept.
    pub intercept: bool,
    /// The number of further parameters, which do not belong to the predictor.
    pub further: usize,
}

impl LinearPredictor {
    /// The length of w, including the intercept.
    pub fn weights(self) -> usize {
        self.features + usize::from(self.intercept)
    }

    /// The number of parameters.
    pub fn dim(self) -> usize {
        self.weights() + self.further
    }

    /// The parts of θ that belong to the predictor, with the names of the features.
    pub fn parts(self, names: &[String]) -> Vec<Part> {
        let mut parts = vec![Part::new("weights", &[self.features]).labelled(0, names)];
        if self.intercept {
            parts.push(Part::new("intercept", &[]));
        }
        parts
    }

    /// The number of rows of a block, a multiple of the rows that the kernels process at once.
    fn block_rows<F>(self) -> usize {
        (BLOCK_BYTES / (self.columns * size_of::<F>()) / 8 * 8).clamp(8, MAX_BLOCK_ROWS)
    }

    /// The largest number of predictors in a [`Block`].
    pub fn block_len<F>(self) -> usize {
        self.block_rows::<F>() * lanes::<F>()
    }

    fn shape(self) -> Shape {
        Shape { columns: self.columns, features: self.features }
    }

    fn assert_fits<F>(self, theta: &ArrayView2<F>, x: &ArrayView2<F>) {
        assert_eq!(theta.ncols(), self.dim(), "wrong number of parameters");
        assert_eq!(x.ncols(), self.columns, "wrong number of columns");
    }

    /// Calls `visit` with the predictors of each block of rows (outer loop) and each block of particles (inner loop).
    pub fn predict<F: Real>(
        self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        scratch: &mut Scratch<F>,
        mut visit: impl FnMut(&mut Block<F>),
    ) {
        let rows = Rows { batch, selected: None };
        let lanes = lanes_for::<F>(theta.nrows());
        with_lanes!(lanes, L => self.for_each_block::<F, L>(theta, rows, scratch, |mut block| visit(&mut block.any_lanes())));
    }

    /// Adds `weight` · Σ_i r_i (x_i, 1) over the rows to `score`: the gradient of Σ_i log p(y_i | η_i) where r = ∂ log p/∂η.
    /// `to_residuals` replaces the predictors η of a block by r in place. Sums run over the rows in order.
    ///
    /// With few particles, copying a row would cost as much as using it, so selected rows are read in place.
    pub fn add_score<F: Real>(
        self,
        theta: ArrayView2<F>,
        rows: Rows<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        mut to_residuals: impl FnMut(&mut Block<F>),
    ) {
        let Rows { batch, selected } = rows;
        self.assert_fits(&theta, &batch.x);
        match (theta.nrows(), selected) {
            (BLAS_FROM.., None) => self.add_score_by_blas(theta, batch, weight, score, scratch, to_residuals),
            (1..=FEW, _) if self.features >= lanes::<F>() => {
                let d = self.dim();
                let particles = flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)).enumerate();
                for (n, (theta, score)) in particles {
                    let mut to_residuals = |values: &mut [F], first, rows: &[usize]| {
                        to_residuals(&mut Block { first, x: flat(batch.x), rows, particles: n..n + 1, lanes: 1, values });
                    };
                    match lanes::<F>() {
                        16 => self.add_particle_score::<F, 16>(theta, rows, weight, score, scratch, &mut to_residuals),
                        _ => self.add_particle_score::<F, 8>(theta, rows, weight, score, scratch, &mut to_residuals),
                    }
                }
            }
            (particles, _) => {
                let lanes = lanes_for::<F>(particles);
                with_lanes!(lanes, L => self.add_score_in_lanes::<F, L>(theta, rows, weight, score, scratch, to_residuals));
            }
        }
    }

    /// Calls `visit` with the predictors of each block of rows and each block of particles.
    fn for_each_block<F: Real, const L: usize>(
        self,
        theta: ArrayView2<F>,
        rows: Rows<F>,
        scratch: &mut Scratch<F>,
        mut visit: impl FnMut(LaneBlock<F, L>),
    ) {
        self.assert_fits(&theta, &rows.batch.x);
        let (particles, x) = (theta.nrows(), flat(rows.batch.x));
        let lane_blocks = particles.div_ceil(L);
        let mut buffers = Buffers::take(scratch, self.padded() * lane_blocks * L, self.block_rows::<F>() * L);
        let (weights, values) = buffers.split::<L>();
        self.transpose(flat(theta), weights);
        rows.for_each_block(self.block_rows::<F>(), |first, rows| {
            for (group, weights) in weights.chunks_exact(self.padded()).enumerate() {
                let values = &mut values[..rows.len()];
                vector::dispatch(Dots { x, rows, shape: self.shape(), weights, values });
                visit(LaneBlock { first, x, rows, particles: group * L..particles.min((group + 1) * L), values });
            }
        });
        buffers.put(scratch);
    }

    fn add_score_in_lanes<F: Real, const L: usize>(
        self,
        theta: ArrayView2<F>,
        rows: Rows<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        mut to_residuals: impl FnMut(&mut Block<F>),
    ) {
        let lane_blocks = theta.nrows().div_ceil(L);
        let mut buffers = Buffers::take(scratch, self.padded() * lane_blocks * L, 0);
        let (gradients, _) = buffers.split::<L>();
        gradients.fill([F::zero(); L]);
        self.for_each_block::<F, L>(theta, rows, scratch, |mut block| {
            to_residuals(&mut block.any_lanes());
            let group = block.particles.start / L;
            let gradient = &mut gradients[group * self.padded()..][..self.padded()];
            vector::dispatch(Outer { x: block.x, rows: block.rows, shape: self.shape(), residuals: block.values, gradient });
        });
        self.add_transposed(gradients, weight, flat_mut(score));
        buffers.put(scratch);
    }

    /// Adds the score of a single particle, with lanes over features. There must be at least L features.
    fn add_particle_score<F: Real, const L: usize>(
        self,
        theta: &[F],
        rows: Rows<F>,
        weight: F,
        score: &mut [F],
        scratch: &mut Scratch<F>,
        to_residuals: &mut impl FnMut(&mut [F], usize, &[usize]),
    ) {
        let (x, d, chunks) = (flat(rows.batch.x), self.features, self.features.div_ceil(L));
        let intercept = if self.intercept { theta[d] } else { F::zero() };
        let mut buffers = Buffers::take(scratch, 2 * chunks * L, MAX_BLOCK_ROWS);
        let (chunked, values) = buffers.split::<L>();
        let (weights, gradient) = chunked.split_at_mut(chunks);
        let values = values.as_flattened_mut();
        gradient.fill([F::zero(); L]);
        // The last chunk overlaps the one before it; its weights are zero in the overlap.
        let (whole, overlap) = (d / L, chunks * L - d);
        weights.as_flattened_mut()[..whole * L].copy_from_slice(&theta[..whole * L]);
        if let Some(last) = weights.get_mut(whole) {
            last[..overlap].fill(F::zero());
            last[overlap..].copy_from_slice(&theta[whole * L..d]);
        }
        let mut residual_sum = F::zero();
        rows.for_each_block(self.block_rows::<F>(), |first, rows| {
            let values = &mut values[..rows.len()];
            vector::dispatch(ParticleDots { x, rows, shape: self.shape(), weights, intercept, values });
            to_residuals(values, first, rows);
            values.iter().for_each(|&residual| residual_sum += residual);
            vector::dispatch(ParticleOuter { x, rows, shape: self.shape(), residuals: values, gradient });
        });
        for (score, &gradient) in score.iter_mut().zip(&gradient.as_flattened()[..whole * L]) {
            *score += weight * gradient;
        }
        if let Some(last) = gradient.get(whole) {
            for (score, &gradient) in score[whole * L..d].iter_mut().zip(&last[overlap..]) {
                *score += weight * gradient;
            }
        }
        if self.intercept {
            score[d] += weight * residual_sum;
        }
        buffers.put(scratch);
    }

    fn add_score_by_blas<F: Real>(
        self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        mut to_residuals: impl FnMut(&mut Block<F>),
    ) {
        let (n, d) = (theta.nrows(), self.features);
        let mut memory = scratch.take(n * batch.x.nrows().min(BLAS_ROWS));
        let mut indices = [0; BLAS_ROWS];
        for first in (0..batch.x.nrows()).step_by(BLAS_ROWS) {
            let rows = &mut indices[..BLAS_ROWS.min(batch.x.nrows() - first)];
            rows.iter_mut().zip(first..).for_each(|(index, row)| *index = row);
            let (rows, residuals) = (&*rows, &mut memory[..n * rows.len()]);
            let x = batch.x.slice(s![first..first + rows.len(), ..d]);
            let mut product = matrix_mut(residuals, n, rows.len());
            general_mat_mul(F::one(), &theta.slice(s![.., ..d]), &x.t(), F::zero(), &mut product);
            if self.intercept {
                product.zip_mut_with(&theta.slice(s![.., d..=d]), |value, &intercept| *value += intercept);
            }
            for (n, values) in residuals.chunks_exact_mut(rows.len()).enumerate() {
                to_residuals(&mut Block { first, x: flat(batch.x), rows, particles: n..n + 1, lanes: 1, values });
            }
            let residuals = matrix(residuals, n, rows.len());
            general_mat_mul(weight, &residuals, &x, F::one(), &mut score.slice_mut(s![.., ..d]));
            if self.intercept {
                for (score, residuals) in score.column_mut(d).iter_mut().zip(residuals.rows()) {
                    *score += weight * residuals.sum();
                }
            }
        }
        scratch.put(memory);
    }

    /// The number of lane vectors per block of particles: one per feature, and one for the intercept, which is zero without one.
    fn padded(self) -> usize {
        self.features + 1
    }

    /// Transposes particles (rows) into lanes.
    fn transpose<F: Real, const L: usize>(self, theta: &[F], lanes: &mut [[F; L]]) {
        lanes.fill([F::zero(); L]);
        for (n, theta) in theta.chunks_exact(self.dim()).enumerate() {
            let group = &mut lanes[n / L * self.padded()..][..self.padded()];
            for (lanes, &weight) in group.iter_mut().zip(&theta[..self.weights()]) {
                lanes[n % L] = weight;
            }
        }
    }

    /// Adds `weight` times the lanes to the particles (rows).
    fn add_transposed<F: Real, const L: usize>(self, lanes: &[[F; L]], weight: F, score: &mut [F]) {
        for (n, score) in score.chunks_exact_mut(self.dim()).enumerate() {
            let group = &lanes[n / L * self.padded()..][..self.padded()];
            for (score, lanes) in score[..self.weights()].iter_mut().zip(group) {
                *score += weight * lanes[n % L];
            }
        }
    }
}

/// Two buffers in one scratch buffer.
struct Buffers<F> {
    memory: Buffer<F>,
    first: usize,
}

impl<F: Real> Buffers<F> {
    fn take(scratch: &mut Scratch<F>, first: usize, second: usize) -> Self {
        Self { memory: scratch.take(first + second), first }
    }

    fn split<const L: usize>(&mut self) -> (&mut [[F; L]], &mut [[F; L]]) {
        let (first, second) = self.memory.split_at_mut(self.first);
        (first.as_chunks_mut::<L>().0, second.as_chunks_mut::<L>().0)
    }

    fn put(self, scratch: &mut Scratch<F>) {
        scratch.put(self.memory);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::models::tests::{normals, stream};
    use ndarray::{Array1, Array2};

    /// Scores equal plain sums on both sides of each size limit (lanes, chunks, blocks, BLAS), with a mean function other than the
    /// identity. Selected rows read in place give the same bits as copied rows.
    #[test]
    fn scores_equal_plain_sums() {
        fn scores<F: Real>(tolerance: f64) {
            for features in [1, 7, 8, 9, 15, 16, 17, 54] {
                for (particles, rows, intercept, further) in [
                    (1, 1, false, 0),
                    (1, 100, true, 2),
                    (1, 300, false, 1),
                    (2, 131, true, 0),
                    (16, 9, true, 1),
                    (17, 30, false, 1),
                ] {
                    let predictor = LinearPredictor { features, columns: features + further, intercept, further };
                    let mut data = stream(features as u64);
                    let x = normals(&mut data, 400, features + further).mapv(F::of);
                    let y = normals(&mut data, 1, 400).row(0).mapv(F::of);
                    let theta = normals(&mut data, particles, predictor.dim()).mapv(F::of);
                    let selected: Vec<usize> = (0..rows).map(|i| i * 7 % 400).collect();
                    let (weight, mut scratch) = (F::of(3.0), Scratch::new());
                    let mut of = |batch: Batch<F>, selected: Option<&[usize]>| {
                        let mut score = Array2::from_elem(theta.dim(), F::one());
                        let rows = Rows { batch, selected };
                        predictor.add_score(theta.view(), rows, weight, score.view_mut(), &mut scratch, |block| {
                            block.for_each(|_, _, value| *value *= F::of(0.5));
                            block.subtract_from(batch.y);
                        });
                        score
                    };
                    let in_place = of(Batch { x: x.view(), y: y.view() }, (particles < BLAS_FROM).then_some(&selected[..]));
                    let (x, y) = (x.select(ndarray::Axis(0), &selected), y.select(ndarray::Axis(0), &selected));
                    let copied = of(Batch { x: x.view(), y: y.view() }, None);
                    assert!(particles >= BLAS_FROM || in_place == copied);

                    for (theta, score) in theta.rows().into_iter().zip(copied.rows()) {
                        let mut plain = Array1::<f64>::ones(predictor.dim());
                        for (row, y) in x.rows().into_iter().zip(&y) {
                            let bias = if intercept { theta[features].f64() } else { 0.0 };
                            let eta = bias + row.iter().zip(theta).take(features).map(|(x, w)| x.f64() * w.f64()).sum::<f64>();
                            let residual = 3.0 * (y.f64() - 0.5 * eta);
                            (0..features).for_each(|j| plain[j] += residual * row[j].f64());
                            if intercept {
                                plain[features] += residual;
                            }
                        }
                        let largest = plain.iter().fold(1.0, |largest: f64, score| largest.max(score.abs()));
                        let worst = score.iter().zip(&plain).map(|(a, b)| (a.f64() - b).abs()).fold(0.0, f64::max);
                        assert!(worst < tolerance * largest, "{features} {particles} {rows} {intercept}: {score} {plain}");
                    }
                }
            }
        }
        // Rounding errors of up to 300 · 54 additions, most of which cancel.
        scores::<f64>(1e-13);
        scores::<f32>(5e-5);
    }
}
