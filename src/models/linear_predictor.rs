//! Linear predictors wᵀx of rows, and gradients back through them: what models that see a row through one product with their weights share.

use super::layout::{flat, flat_mut, matrix, matrix_mut};
use super::rows::{MOST_BLOCK_ROWS, Rows};
use super::{Batch, Part, Scratch};
use crate::number::Real;
use crate::vector::{self, Kernel, Unit, multiply_add};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};

/// Bytes of features that go through the products at a time: they stay in the first-level cache while all particles pass over them.
const BLOCK_BYTES: usize = 24 << 10;

/// Particles from which on two products by BLAS are faster than the kernels here.
const BLAS_FROM: usize = 17;
/// Up to so many particles each is taken by itself, with lanes over features: with one of 8 lanes used, a block of lanes does more.
const FEW: usize = 2;

/// Rows that BLAS takes at a time, so that memory does not grow with the batch.
pub const BLAS_ROWS: usize = 512;

/// Particles that the kernels take at once, one to a lane: 64 bytes of numbers.
const fn lanes<F>() -> usize {
    64 / size_of::<F>()
}

/// η = wᵀx, plus an intercept if there is one. A particle begins with w, then comes the intercept, then what else the model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearPredictor {
    /// Columns of x.
    pub features: usize,
    /// Whether there is an intercept.
    pub intercept: bool,
    /// How many parameters follow that are none of the predictor's.
    pub others: usize,
}

impl LinearPredictor {
    /// Length of w: features, and the intercept if there is one.
    pub fn weights(self) -> usize {
        self.features + usize::from(self.intercept)
    }

    /// Numbers of a particle.
    pub fn dim(self) -> usize {
        self.weights() + self.others
    }

    /// The parts that a particle begins with.
    pub fn parts(self) -> Vec<Part> {
        let mut parts = vec![Part::new("weights", &[self.features])];
        if self.intercept {
            parts.push(Part::new("intercept", &[]));
        }
        parts
    }

    /// Rows of a block, a multiple of the rows that the kernels take at once.
    fn block_rows<F>(self) -> usize {
        (BLOCK_BYTES / (self.features * size_of::<F>()) / 8 * 8).clamp(8, MOST_BLOCK_ROWS)
    }

    /// The largest number of predictors in a [`Block`].
    pub fn block_len<F>(self) -> usize {
        self.block_rows::<F>() * lanes::<F>()
    }

    fn assert_fits<F>(self, theta: &ArrayView2<F>, x: &ArrayView2<F>) {
        assert_eq!(theta.ncols(), self.dim(), "wrong number of parameters");
        assert_eq!(x.ncols(), self.features, "wrong number of features");
    }

    /// Calls `visit` with each block of rows and each block of particles, rows outside, particles inside.
    pub fn predict<F: Real>(
        self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        scratch: &mut Scratch<F>,
        mut visit: impl FnMut(Block<F>),
    ) {
        let rows = Rows { batch, chosen: None };
        if lanes::<F>() == 16 {
            self.in_lanes::<F, 16>(theta, rows, scratch, |block| visit(block.any_lanes()));
        } else {
            self.in_lanes::<F, 8>(theta, rows, scratch, |block| visit(block.any_lanes()));
        }
    }

    /// score_n += `weight` · Σ_i (y_i − μ(η_i)) (x_i, 1) over the rows, where `mean` turns predictors η into means μ(η) in place: the gradient of a log-likelihood of the exponential family in its natural parameter η.
    ///
    /// Few particles do so little with a row that copying it would cost as much: they read it where it is. Sums go over rows in their order.
    pub fn add_score<F: Real>(
        self,
        theta: ArrayView2<F>,
        rows: Rows<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        mean: impl Fn(&mut [F]),
    ) {
        let Rows { batch, chosen } = rows;
        self.assert_fits(&theta, &batch.x);
        match (theta.nrows(), chosen) {
            (BLAS_FROM.., Some(rows)) => {
                scratch.gather(batch, rows, |rows, scratch| self.add_score_by_blas(theta, rows, weight, score, scratch, mean));
            }
            (BLAS_FROM.., None) => self.add_score_by_blas(theta, batch, weight, score, scratch, mean),
            (1..=FEW, _) if self.features >= lanes::<F>() => {
                let d = self.dim();
                for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
                    if lanes::<F>() == 16 {
                        self.add_score_of_one::<F, 16>(theta, rows, weight, score, scratch, &mean);
                    } else {
                        self.add_score_of_one::<F, 8>(theta, rows, weight, score, scratch, &mean);
                    }
                }
            }
            _ if lanes::<F>() == 16 => self.add_score_in_lanes::<F, 16>(theta, rows, weight, score, scratch, mean),
            _ => self.add_score_in_lanes::<F, 8>(theta, rows, weight, score, scratch, mean),
        }
    }

    /// curvature_n += `weight` · Σ_i μ'(η_i) (x_i, 1)² over the rows, where `slope` turns predictors η into the slopes μ'(η) of their means
    /// in place: the diagonal of the Fisher information.
    pub fn add_curvature<F: Real>(
        self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        slope: impl Fn(&mut [F]),
    ) {
        let (d, features) = (self.dim(), self.features);
        let curvature = flat_mut(curvature);
        self.predict(theta, batch, scratch, |block| {
            slope(block.values);
            for (&row, slopes) in block.rows.iter().zip(block.values.chunks_exact(block.lanes)) {
                let x = &block.x[row * features..][..features];
                let own = &mut curvature[block.particles.start * d..block.particles.end * d];
                for (curvature, &slope) in own.chunks_exact_mut(d).zip(slopes) {
                    let slope = weight * slope;
                    curvature.iter_mut().zip(x).for_each(|(curvature, &x)| *curvature += slope * x * x);
                    if self.intercept {
                        curvature[features] += slope;
                    }
                }
            }
        });
    }

    /// curvature += `weight` · Σ_n Σ_i μ'(η_ni) (x_i, 1)(x_i, 1)ᵀ over the rows and all particles: the Fisher information of the weights, in
    /// the first rows and columns.
    pub fn add_full_curvature<F: Real>(
        self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
        slope: impl Fn(&mut [F]),
    ) {
        // A row counts with its slopes at all particles together.
        let mut total = vec![F::zero(); batch.x.nrows()];
        self.predict(theta, batch, scratch, |block| {
            slope(block.values);
            for (&row, slopes) in block.rows.iter().zip(block.values.chunks_exact(block.lanes)) {
                total[row] += slopes[..block.particles.len()].iter().copied().sum::<F>();
            }
        });
        let mut scaled = Array2::ones((BLAS_ROWS.min(batch.x.nrows()), self.weights()));
        for first in (0..batch.x.nrows()).step_by(BLAS_ROWS) {
            let rows = first..batch.x.nrows().min(first + BLAS_ROWS);
            let mut scaled = scaled.slice_mut(s![..rows.len(), ..]);
            scaled.slice_mut(s![.., ..self.features]).assign(&batch.x.slice(s![rows.clone(), ..]));
            scaled.slice_mut(s![.., self.features..]).fill(F::one());
            for (mut scaled, &total) in scaled.rows_mut().into_iter().zip(&total[rows]) {
                let root = (weight * total).sqrt();
                scaled.mapv_inplace(|x| root * x);
            }
            let mut own = curvature.slice_mut(s![..self.weights(), ..self.weights()]);
            general_mat_mul(F::one(), &scaled.t(), &scaled, F::one(), &mut own);
        }
    }

    /// Calls `visit` with each block of rows (all, or these), each block of particles and their predictors.
    fn in_lanes<F: Real, const L: usize>(
        self,
        theta: ArrayView2<F>,
        rows: Rows<F>,
        scratch: &mut Scratch<F>,
        mut visit: impl FnMut(InLanes<F, L>),
    ) {
        self.assert_fits(&theta, &rows.batch.x);
        let (particles, x) = (theta.nrows(), flat(rows.batch.x));
        let lane_blocks = particles.div_ceil(L);
        let mut buffers = Buffers::take(scratch, self.padded() * lane_blocks * L, self.block_rows::<F>() * L);
        let (weights, values) = buffers.split::<L>();
        self.transpose(flat(theta), weights);
        rows.blocks(self.block_rows::<F>(), |first, rows| {
            for (group, weights) in weights.chunks_exact(self.padded()).enumerate() {
                let values = &mut values[..rows.len()];
                vector::run(Dots { x, rows, features: self.features, weights, values });
                visit(InLanes { first, x, rows, particles: group * L..particles.min((group + 1) * L), values });
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
        mean: impl Fn(&mut [F]),
    ) {
        let lane_blocks = theta.nrows().div_ceil(L);
        let mut buffers = Buffers::take(scratch, self.padded() * lane_blocks * L, 0);
        let (gradients, _) = buffers.split::<L>();
        gradients.fill([F::zero(); L]);
        self.in_lanes::<F, L>(theta, rows, scratch, |block| {
            mean(block.values.as_flattened_mut());
            for (&row, residuals) in block.rows.iter().zip(block.values.iter_mut()) {
                let y = rows.batch.y[row];
                for residual in residuals {
                    *residual = y - *residual;
                }
            }
            let group = block.particles.start / L;
            let gradient = &mut gradients[group * self.padded()..][..self.padded()];
            vector::run(Outer { x: block.x, rows: block.rows, features: self.features, residuals: block.values, gradient });
        });
        self.add_transposed(gradients, weight, flat_mut(score));
        buffers.put(scratch);
    }

    /// A single particle: lanes hold features instead, of which there must be as many.
    fn add_score_of_one<F: Real, const L: usize>(
        self,
        theta: &[F],
        rows: Rows<F>,
        weight: F,
        score: &mut [F],
        scratch: &mut Scratch<F>,
        mean: impl Fn(&mut [F]),
    ) {
        let (x, y, d, chunks) = (flat(rows.batch.x), rows.batch.y, self.features, self.features.div_ceil(L));
        let intercept = if self.intercept { theta[d] } else { F::zero() };
        let mut buffers = Buffers::take(scratch, 2 * chunks * L, MOST_BLOCK_ROWS);
        let (chunked, values) = buffers.split::<L>();
        let (weights, gradient) = chunked.split_at_mut(chunks);
        let values = values.as_flattened_mut();
        gradient.fill([F::zero(); L]);
        // The last chunk overlaps the one before, where its weights are zero.
        let (whole, overlap) = (d / L, chunks * L - d);
        weights.as_flattened_mut()[..whole * L].copy_from_slice(&theta[..whole * L]);
        if let Some(last) = weights.get_mut(whole) {
            last[..overlap].fill(F::zero());
            last[overlap..].copy_from_slice(&theta[whole * L..d]);
        }
        let mut residual_sum = F::zero();
        rows.blocks(self.block_rows::<F>(), |_, rows| {
            let values = &mut values[..rows.len()];
            vector::run(DotsOfOne { x, rows, features: d, weights, intercept, values });
            mean(values);
            for (&row, residual) in rows.iter().zip(values.iter_mut()) {
                *residual = y[row] - *residual;
                residual_sum += *residual;
            }
            vector::run(OuterOfOne { x, rows, features: d, residuals: values, gradient });
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
        mean: impl Fn(&mut [F]),
    ) {
        let (n, d) = (theta.nrows(), self.features);
        let mut memory = scratch.take(n * batch.x.nrows().min(BLAS_ROWS));
        for (x, y) in blas_blocks(batch) {
            let residuals = &mut memory[..n * x.nrows()];
            let mut product = matrix_mut(residuals, n, x.nrows());
            general_mat_mul(F::one(), &theta.slice(s![.., ..d]), &x.t(), F::zero(), &mut product);
            if self.intercept {
                product += &theta.slice(s![.., d..=d]);
            }
            mean(residuals);
            for residuals in residuals.chunks_exact_mut(x.nrows()) {
                for (residual, &y) in residuals.iter_mut().zip(y) {
                    *residual = y - *residual;
                }
            }
            let residuals = matrix(residuals, n, x.nrows());
            general_mat_mul(weight, &residuals, &x, F::one(), &mut score.slice_mut(s![.., ..d]));
            if self.intercept {
                for (score, residuals) in score.column_mut(d).iter_mut().zip(residuals.rows()) {
                    *score += weight * residuals.sum();
                }
            }
        }
        scratch.put(memory);
    }

    /// Vectors for each block of particles: one for each feature and one for the intercept, which is zero if there is none.
    fn padded(self) -> usize {
        self.features + 1
    }

    /// Particles (rows) into lanes.
    fn transpose<F: Real, const L: usize>(self, theta: &[F], lanes: &mut [[F; L]]) {
        lanes.fill([F::zero(); L]);
        for (n, theta) in theta.chunks_exact(self.dim()).enumerate() {
            let group = &mut lanes[n / L * self.padded()..][..self.padded()];
            for (lanes, &weight) in group.iter_mut().zip(&theta[..self.weights()]) {
                lanes[n % L] = weight;
            }
        }
    }

    /// Adds `weight` times lanes to particles (rows).
    fn add_transposed<F: Real, const L: usize>(self, lanes: &[[F; L]], weight: F, score: &mut [F]) {
        for (n, score) in score.chunks_exact_mut(self.dim()).enumerate() {
            let group = &lanes[n / L * self.padded()..][..self.padded()];
            for (score, lanes) in score[..self.weights()].iter_mut().zip(group) {
                *score += weight * lanes[n % L];
            }
        }
    }
}

/// The batch in blocks of [`BLAS_ROWS`] rows: features and targets.
pub fn blas_blocks<'a, F>(batch: Batch<'a, F>) -> impl Iterator<Item = (ArrayView2<'a, F>, ArrayView1<'a, F>)> {
    let rows = batch.x.nrows();
    (0..rows).step_by(BLAS_ROWS).map(move |first| {
        let last = rows.min(first + BLAS_ROWS);
        (batch.x.slice_move(s![first..last, ..]), batch.y.slice_move(s![first..last]))
    })
}

/// The linear predictors of a block of rows and a block of particles. There may be more lanes than particles: those are surplus.
pub struct Block<'a, F> {
    /// How many rows earlier blocks had.
    pub first: usize,
    /// Features of all rows, row-major.
    pub x: &'a [F],
    /// The numbers of this block's rows.
    pub rows: &'a [usize],
    /// The numbers of its particles.
    pub particles: std::ops::Range<usize>,
    /// Particles that a row of `values` has room for.
    pub lanes: usize,
    /// η, rows × lanes.
    pub values: &'a mut [F],
}

/// A [`Block`] whose lanes the compiler knows.
struct InLanes<'a, F, const L: usize> {
    first: usize,
    x: &'a [F],
    rows: &'a [usize],
    particles: std::ops::Range<usize>,
    values: &'a mut [[F; L]],
}

impl<'a, F, const L: usize> InLanes<'a, F, L> {
    fn any_lanes(self) -> Block<'a, F> {
        let Self { first, x, rows, particles, values } = self;
        Block { first, x, rows, particles, lanes: L, values: values.as_flattened_mut() }
    }
}

/// Two buffers of one piece of scratch memory, the first at the start of a cache line: vectors that straddle lines cost double.
struct Buffers<F> {
    memory: Vec<F>,
    start: usize,
    first: usize,
    second: usize,
}

impl<F: Real> Buffers<F> {
    fn take(scratch: &mut Scratch<F>, first: usize, second: usize) -> Self {
        let line = 64 / size_of::<F>();
        let memory = scratch.take(first + second + line);
        // An address that cannot be aligned is only slower.
        let start = memory.as_ptr().align_offset(64).min(line);
        Self { memory, start, first, second }
    }

    fn split<const L: usize>(&mut self) -> (&mut [[F; L]], &mut [[F; L]]) {
        let (first, second) = self.memory[self.start..][..self.first + self.second].split_at_mut(self.first);
        (first.as_chunks_mut::<L>().0, second.as_chunks_mut::<L>().0)
    }

    fn put(self, scratch: &mut Scratch<F>) {
        scratch.put(self.memory);
    }
}

/// values[i] = Σ_j x_ij weights[j] + weights[features], i over these rows.
struct Dots<'a, F, const L: usize> {
    x: &'a [F],
    rows: &'a [usize],
    features: usize,
    weights: &'a [[F; L]],
    values: &'a mut [[F; L]],
}

impl<F: Real, const L: usize> Kernel for Dots<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: Unit>(self) {
        // As many sums as the registers hold.
        if U::WIDE { self.rows_at_once::<U, 8>() } else { self.rows_at_once::<U, 4>() }
    }
}

impl<F: Real, const L: usize> Dots<'_, F, L> {
    #[inline(always)]
    fn rows_at_once<U: Unit, const R: usize>(self) {
        let d = self.features;
        let (weights, intercept) = (&self.weights[..d], self.weights[d]);
        let (groups, rest) = self.rows.as_chunks::<R>();
        let (values, last_values) = self.values.split_at_mut(groups.len() * R);
        // Random rows miss the cache: one group is asked for while another is worked on.
        groups.iter().take(1).flatten().for_each(|row| vector::prefetch(self.x, row * d, d));
        for (i, (group, values)) in groups.iter().zip(values.chunks_exact_mut(R)).enumerate() {
            self.rows.iter().skip((i + 1) * R).take(R).for_each(|row| vector::prefetch(self.x, row * d, d));
            dots::<F, L, R, U>(group.map(|row| &self.x[row * d..][..d]), weights, intercept, values);
        }
        for (row, values) in rest.iter().zip(last_values.chunks_exact_mut(1)) {
            dots::<F, L, 1, U>([&self.x[row * d..][..d]], weights, intercept, values);
        }
    }
}

/// R rows against a block of particles, sums in registers.
#[inline(always)]
fn dots<F: Real, const L: usize, const R: usize, U: Unit>(
    rows: [&[F]; R],
    weights: &[[F; L]],
    intercept: [F; L],
    values: &mut [[F; L]],
) {
    assert!(rows.iter().all(|row| row.len() >= weights.len()));
    let mut sums = [intercept; R];
    for (j, weights) in weights.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: j is below the number of weights, and no row is shorter. A checked index costs as much here as the arithmetic.
            let x = unsafe { *row.get_unchecked(j) };
            for l in 0..L {
                sums[l] = multiply_add::<F, U>(x, weights[l], sums[l]);
            }
        }
    }
    values.copy_from_slice(&sums);
}

/// gradient[j] += Σ_i x_ij residuals[i], gradient[features] += Σ_i residuals[i], i over these rows.
struct Outer<'a, F, const L: usize> {
    x: &'a [F],
    rows: &'a [usize],
    features: usize,
    residuals: &'a [[F; L]],
    gradient: &'a mut [[F; L]],
}

impl<F: Real, const L: usize> Kernel for Outer<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: Unit>(self) {
        // As many sums as the registers hold.
        if U::WIDE { self.columns_at_once::<U, 8>() } else { self.columns_at_once::<U, 4>() }
    }
}

impl<F: Real, const L: usize> Outer<'_, F, L> {
    #[inline(always)]
    fn columns_at_once<U: Unit, const R: usize>(self) {
        let d = self.features;
        let (gradient, intercept) = self.gradient.split_at_mut(d);
        let (whole, pairs) = (d / R * R, d / 2 * 2);
        for j in (0..whole).step_by(R) {
            outer::<F, L, R, U>(self.x, self.rows, d, j, self.residuals, &mut gradient[j..j + R]);
        }
        for j in (whole..pairs).step_by(2) {
            outer::<F, L, 2, U>(self.x, self.rows, d, j, self.residuals, &mut gradient[j..j + 2]);
        }
        for j in pairs..d {
            outer::<F, L, 1, U>(self.x, self.rows, d, j, self.residuals, &mut gradient[j..j + 1]);
        }
        for residuals in self.residuals {
            for l in 0..L {
                intercept[0][l] += residuals[l];
            }
        }
    }
}

/// R columns from `j` on against a block of particles, sums in registers.
#[inline(always)]
fn outer<F: Real, const L: usize, const R: usize, U: Unit>(
    x: &[F],
    rows: &[usize],
    d: usize,
    j: usize,
    residuals: &[[F; L]],
    gradient: &mut [[F; L]],
) {
    let mut sums = [[F::zero(); L]; R];
    sums.copy_from_slice(gradient);
    for (row, residuals) in rows.iter().zip(residuals) {
        let x = &x[row * d + j..][..R];
        for r in 0..R {
            for l in 0..L {
                sums[r][l] = multiply_add::<F, U>(x[r], residuals[l], sums[r][l]);
            }
        }
    }
    gradient.copy_from_slice(&sums);
}

/// As [`Dots`] for a single particle: weights in chunks of L features; where L does not divide their number, the last chunk holds the
/// last L features, with zeros for those that the chunk before has counted.
struct DotsOfOne<'a, F, const L: usize> {
    x: &'a [F],
    rows: &'a [usize],
    features: usize,
    weights: &'a [[F; L]],
    intercept: F,
    values: &'a mut [F],
}

impl<F: Real, const L: usize> Kernel for DotsOfOne<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: Unit>(self) {
        // As many sums as the registers hold.
        if U::WIDE { self.rows_at_once::<U, 8>() } else { self.rows_at_once::<U, 4>() }
    }
}

impl<F: Real, const L: usize> DotsOfOne<'_, F, L> {
    #[inline(always)]
    fn rows_at_once<U: Unit, const R: usize>(self) {
        let d = self.features;
        let (groups, rest) = self.rows.as_chunks::<R>();
        let (values, last_values) = self.values.split_at_mut(groups.len() * R);
        // As in `Dots`.
        groups.iter().take(1).flatten().for_each(|row| vector::prefetch(self.x, row * d, d));
        for (i, (group, values)) in groups.iter().zip(values.chunks_exact_mut(R)).enumerate() {
            self.rows.iter().skip((i + 1) * R).take(R).for_each(|row| vector::prefetch(self.x, row * d, d));
            let rows = group.map(|row| &self.x[row * d..][..d]);
            values.copy_from_slice(&dots_of_one::<F, L, R, U>(rows, self.weights, self.intercept));
        }
        for (row, value) in rest.iter().zip(last_values) {
            [*value] = dots_of_one::<F, L, 1, U>([&self.x[row * d..][..d]], self.weights, self.intercept);
        }
    }
}

/// R rows against one particle.
#[inline(always)]
fn dots_of_one<F: Real, const L: usize, const R: usize, U: Unit>(rows: [&[F]; R], weights: &[[F; L]], intercept: F) -> [F; R] {
    let last = last_chunk::<F, L>(&rows);
    let mut sums = [[F::zero(); L]; R];
    for (c, weights) in weights.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: a chunk begins no later than the last.
            let x = unsafe { chunk::<F, L>(row, last.min(c * L)) };
            for l in 0..L {
                sums[l] = multiply_add::<F, U>(x[l], weights[l], sums[l]);
            }
        }
    }
    sums.map(|mut sums| {
        let mut half = L / 2;
        while half > 0 {
            for l in 0..half {
                sums[l] += sums[l + half];
            }
            half /= 2;
        }
        sums[0] + intercept
    })
}

/// gradient += Σ_i x_i residuals[i], i over these rows, in chunks as those of [`DotsOfOne`].
struct OuterOfOne<'a, F, const L: usize> {
    x: &'a [F],
    rows: &'a [usize],
    features: usize,
    residuals: &'a [F],
    gradient: &'a mut [[F; L]],
}

impl<F: Real, const L: usize> Kernel for OuterOfOne<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: Unit>(self) {
        let d = self.features;
        let (groups, rest) = self.rows.as_chunks::<8>();
        let (residuals, last_residuals) = self.residuals.as_chunks::<8>();
        for (group, residuals) in groups.iter().zip(residuals) {
            outer_of_one::<F, L, 8, U>(group.map(|row| &self.x[row * d..][..d]), *residuals, self.gradient);
        }
        for (row, &residual) in rest.iter().zip(last_residuals) {
            outer_of_one::<F, L, 1, U>([&self.x[row * d..][..d]], [residual], self.gradient);
        }
    }
}

/// R rows onto the gradient, one after the other.
#[inline(always)]
fn outer_of_one<F: Real, const L: usize, const R: usize, U: Unit>(rows: [&[F]; R], residuals: [F; R], gradient: &mut [[F; L]]) {
    let last = last_chunk::<F, L>(&rows);
    for (c, gradient) in gradient.iter_mut().enumerate() {
        let mut sums = *gradient;
        for (row, residual) in rows.iter().zip(residuals) {
            // SAFETY: a chunk begins no later than the last.
            let x = unsafe { chunk::<F, L>(row, last.min(c * L)) };
            for l in 0..L {
                sums[l] = multiply_add::<F, U>(x[l], residual, sums[l]);
            }
        }
        *gradient = sums;
    }
}

/// Where the last L numbers of rows of one length begin, all of which have as many.
#[inline(always)]
fn last_chunk<F, const L: usize>(rows: &[&[F]]) -> usize {
    let d = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    assert!(d >= L, "a chunk is longer than a row");
    d - L
}

/// L numbers of a row from `start` on. A checked range costs as much in a kernel as the arithmetic.
///
/// # Safety
/// The row must have that many.
#[inline(always)]
unsafe fn chunk<F, const L: usize>(row: &[F], start: usize) -> &[F; L] {
    debug_assert!(start + L <= row.len());
    // SAFETY: the numbers are there, says the caller.
    unsafe { &*row.as_ptr().add(start).cast::<[F; L]>() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::models::tests::{normals, stream};
    use ndarray::{Array1, Array2};

    /// On both sides of what lanes, chunks, blocks and BLAS take, for all rows and for some: the plain sums, with a mean that is no
    /// identity; and rows in place give the bits of rows copied together.
    #[test]
    fn scores_are_plain_sums() {
        fn scores<F: Real>(tolerance: f64) {
            for features in [1, 7, 8, 9, 15, 16, 17, 54] {
                for (particles, rows, intercept, others) in [
                    (1, 1, false, 0),
                    (1, 100, true, 2),
                    (1, 300, false, 1),
                    (2, 131, true, 0),
                    (16, 9, true, 1),
                    (17, 30, false, 1),
                ] {
                    let predictor = LinearPredictor { features, intercept, others };
                    let mut data = stream(features as u64);
                    let x = normals(&mut data, 400, features).mapv(F::of);
                    let y = normals(&mut data, 1, 400).row(0).mapv(F::of);
                    let theta = normals(&mut data, particles, predictor.dim()).mapv(F::of);
                    let chosen: Vec<usize> = (0..rows).map(|i| i * 7 % 400).collect();
                    let half = |values: &mut [F]| values.iter_mut().for_each(|value| *value *= F::of(0.5));
                    let (weight, mut scratch) = (F::of(3.0), Scratch::new());
                    let mut of = |batch: Batch<F>, chosen: Option<&[usize]>| {
                        let mut score = Array2::from_elem(theta.dim(), F::one());
                        let rows = Rows { batch, chosen };
                        predictor.add_score(theta.view(), rows, weight, score.view_mut(), &mut scratch, half);
                        score
                    };
                    let in_place = of(Batch { x: x.view(), y: y.view() }, Some(&chosen));
                    let (x, y) = (x.select(ndarray::Axis(0), &chosen), y.select(ndarray::Axis(0), &chosen));
                    assert_eq!(in_place, of(Batch { x: x.view(), y: y.view() }, None));

                    for (theta, score) in theta.rows().into_iter().zip(in_place.rows()) {
                        let mut plain = Array1::<f64>::ones(predictor.dim());
                        for (row, y) in x.rows().into_iter().zip(&y) {
                            let bias = if intercept { theta[features].f64() } else { 0.0 };
                            let eta = bias + row.iter().zip(theta).map(|(x, w)| x.f64() * w.f64()).sum::<f64>();
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
        // Roundings of up to 300 · 54 additions, of which most cancel.
        scores::<f64>(1e-13);
        scores::<f32>(5e-5);
    }
}
