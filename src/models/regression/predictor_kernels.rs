//! The SIMD kernels of linear predictors: products of rows with weights, and sums of rows times residuals.
//!
//! [`Dots`] and [`Outer`] process a block of particles, each in one of L lanes. [`ParticleDots`] and [`ParticleOuter`] process a single particle,
//! whose features are in chunks of L lanes, where L is a power of two.

use crate::number::Real;
use crate::vector::{self, SimdKernel, SimdLevel, multiply_add};

/// How many columns x has, and how many of them are used.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The number of columns.
    pub(super) columns: usize,
    /// How many of the columns, from the first on, have a weight.
    pub(super) features: usize,
}

impl Shape {
    /// The features of a row.
    #[inline(always)]
    fn row<F>(self, x: &[F], row: usize) -> &[F] {
        &x[row * self.columns..][..self.features]
    }

    #[inline(always)]
    fn prefetch<F>(self, x: &[F], row: usize) {
        vector::prefetch(x, row * self.columns, self.features);
    }
}

/// values[n] = Σ_j x_ij weights[j] + weights[features], where i = rows[n].
pub(super) struct Dots<'a, F, const L: usize> {
    pub(super) x: &'a [F],
    pub(super) rows: &'a [usize],
    pub(super) shape: Shape,
    pub(super) weights: &'a [[F; L]],
    pub(super) values: &'a mut [[F; L]],
}

impl<F: Real, const L: usize> SimdKernel for Dots<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        // So few rows at once that their sums stay in registers.
        if U::WIDE { self.rows_at_once::<U, 8>() } else { self.rows_at_once::<U, 4>() }
    }
}

impl<F: Real, const L: usize> Dots<'_, F, L> {
    #[inline(always)]
    fn rows_at_once<U: SimdLevel, const R: usize>(self) {
        let (shape, d) = (self.shape, self.shape.features);
        let (weights, intercept) = (&self.weights[..d], self.weights[d]);
        let (groups, rest) = self.rows.as_chunks::<R>();
        let (values, last_values) = self.values.split_at_mut(groups.len() * R);
        // Random rows miss the cache, so the next group is prefetched while one is processed.
        groups.iter().take(1).flatten().for_each(|&row| shape.prefetch(self.x, row));
        for (i, (group, values)) in groups.iter().zip(values.chunks_exact_mut(R)).enumerate() {
            self.rows.iter().skip((i + 1) * R).take(R).for_each(|&row| shape.prefetch(self.x, row));
            dots::<F, L, R, U>(group.map(|row| shape.row(self.x, row)), weights, intercept, values);
        }
        for (row, values) in rest.iter().zip(last_values.chunks_exact_mut(1)) {
            dots::<F, L, 1, U>([shape.row(self.x, *row)], weights, intercept, values);
        }
    }
}

/// Dot products of R rows with a block of particles, with sums in registers.
#[inline(always)]
fn dots<F: Real, const L: usize, const R: usize, U: SimdLevel>(
    rows: [&[F]; R],
    weights: &[[F; L]],
    intercept: [F; L],
    values: &mut [[F; L]],
) {
    assert!(rows.iter().all(|row| row.len() >= weights.len()));
    let mut sums = [intercept; R];
    for (j, weights) in weights.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: j is below the number of weights, and no row is shorter. A bounds check would cost as much as the arithmetic.
            let x = unsafe { *row.get_unchecked(j) };
            for l in 0..L {
                sums[l] = multiply_add::<F, U>(x, weights[l], sums[l]);
            }
        }
    }
    values.copy_from_slice(&sums);
}

/// gradient[j] += Σ_n x_ij residuals[n] and gradient[features] += Σ_n residuals[n], where i = rows[n].
pub(super) struct Outer<'a, F, const L: usize> {
    pub(super) x: &'a [F],
    pub(super) rows: &'a [usize],
    pub(super) shape: Shape,
    pub(super) residuals: &'a [[F; L]],
    pub(super) gradient: &'a mut [[F; L]],
}

impl<F: Real, const L: usize> SimdKernel for Outer<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        // So few columns at once that their sums stay in registers.
        if U::WIDE { self.columns_at_once::<U, 8>() } else { self.columns_at_once::<U, 4>() }
    }
}

impl<F: Real, const L: usize> Outer<'_, F, L> {
    #[inline(always)]
    fn columns_at_once<U: SimdLevel, const R: usize>(self) {
        let d = self.shape.features;
        let (gradient, intercept) = self.gradient.split_at_mut(d);
        let (groups_end, pairs_end) = (d / R * R, d / 2 * 2);
        for j in (0..groups_end).step_by(R) {
            outer::<F, L, R, U>(self.x, self.rows, self.shape, j, self.residuals, &mut gradient[j..j + R]);
        }
        for j in (groups_end..pairs_end).step_by(2) {
            outer::<F, L, 2, U>(self.x, self.rows, self.shape, j, self.residuals, &mut gradient[j..j + 2]);
        }
        for j in pairs_end..d {
            outer::<F, L, 1, U>(self.x, self.rows, self.shape, j, self.residuals, &mut gradient[j..j + 1]);
        }
        for residuals in self.residuals {
            for l in 0..L {
                intercept[0][l] += residuals[l];
            }
        }
    }
}

/// Outer products for R columns from `j` on and a block of particles, with sums in registers.
#[inline(always)]
fn outer<F: Real, const L: usize, const R: usize, U: SimdLevel>(
    x: &[F],
    rows: &[usize],
    shape: Shape,
    j: usize,
    residuals: &[[F; L]],
    gradient: &mut [[F; L]],
) {
    let mut sums = [[F::zero(); L]; R];
    sums.copy_from_slice(gradient);
    for (row, residuals) in rows.iter().zip(residuals) {
        let x = &x[row * shape.columns + j..][..R];
        for r in 0..R {
            for l in 0..L {
                sums[r][l] = multiply_add::<F, U>(x[r], residuals[l], sums[r][l]);
            }
        }
    }
    gradient.copy_from_slice(&sums);
}

/// Like [`Dots`] for a single particle, with its weights in chunks of L features. If L does not divide the number of features, the last
/// chunk holds the last L features, with zeros where it overlaps the chunk before it.
pub(super) struct ParticleDots<'a, F, const L: usize> {
    pub(super) x: &'a [F],
    pub(super) rows: &'a [usize],
    pub(super) shape: Shape,
    pub(super) weights: &'a [[F; L]],
    pub(super) intercept: F,
    pub(super) values: &'a mut [F],
}

impl<F: Real, const L: usize> SimdKernel for ParticleDots<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        // So few rows at once that their sums stay in registers.
        if U::WIDE { self.rows_at_once::<U, 8>() } else { self.rows_at_once::<U, 4>() }
    }
}

impl<F: Real, const L: usize> ParticleDots<'_, F, L> {
    #[inline(always)]
    fn rows_at_once<U: SimdLevel, const R: usize>(self) {
        let shape = self.shape;
        let (groups, rest) = self.rows.as_chunks::<R>();
        let (values, last_values) = self.values.split_at_mut(groups.len() * R);
        // Prefetched as in `Dots`.
        groups.iter().take(1).flatten().for_each(|&row| shape.prefetch(self.x, row));
        for (i, (group, values)) in groups.iter().zip(values.chunks_exact_mut(R)).enumerate() {
            self.rows.iter().skip((i + 1) * R).take(R).for_each(|&row| shape.prefetch(self.x, row));
            let rows = group.map(|row| shape.row(self.x, row));
            values.copy_from_slice(&particle_dots::<F, L, R, U>(rows, self.weights, self.intercept));
        }
        for (row, value) in rest.iter().zip(last_values) {
            [*value] = particle_dots::<F, L, 1, U>([shape.row(self.x, *row)], self.weights, self.intercept);
        }
    }
}

/// Dot products of R rows with one particle.
#[inline(always)]
fn particle_dots<F: Real, const L: usize, const R: usize, U: SimdLevel>(
    rows: [&[F]; R],
    weights: &[[F; L]],
    intercept: F,
) -> [F; R] {
    let last = last_chunk_start::<F, L>(&rows);
    let mut sums = [[F::zero(); L]; R];
    for (c, weights) in weights.iter().enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: no chunk begins after the last one.
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

/// gradient += Σ_n x_i residuals[n], where i = rows[n], in chunks of L features. Where the last chunk overlaps the one before it, it has the same
/// sums again.
pub(super) struct ParticleOuter<'a, F, const L: usize> {
    pub(super) x: &'a [F],
    pub(super) rows: &'a [usize],
    pub(super) shape: Shape,
    pub(super) residuals: &'a [F],
    pub(super) gradient: &'a mut [[F; L]],
}

impl<F: Real, const L: usize> SimdKernel for ParticleOuter<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        let shape = self.shape;
        let (groups, rest) = self.rows.as_chunks::<8>();
        let (residuals, last_residuals) = self.residuals.as_chunks::<8>();
        for (group, residuals) in groups.iter().zip(residuals) {
            particle_outer::<F, L, 8, U>(group.map(|row| shape.row(self.x, row)), *residuals, self.gradient);
        }
        for (row, &residual) in rest.iter().zip(last_residuals) {
            particle_outer::<F, L, 1, U>([shape.row(self.x, *row)], [residual], self.gradient);
        }
    }
}

/// Adds R rows times their residuals to the gradient. Each sum takes the rows in order.
#[inline(always)]
fn particle_outer<F: Real, const L: usize, const R: usize, U: SimdLevel>(
    rows: [&[F]; R],
    residuals: [F; R],
    gradient: &mut [[F; L]],
) {
    let last = last_chunk_start::<F, L>(&rows);
    for (c, gradient) in gradient.iter_mut().enumerate() {
        let mut sums = *gradient;
        for (row, residual) in rows.iter().zip(residuals) {
            // SAFETY: no chunk begins after the last one.
            let x = unsafe { chunk::<F, L>(row, last.min(c * L)) };
            for l in 0..L {
                sums[l] = multiply_add::<F, U>(x[l], residual, sums[l]);
            }
        }
        *gradient = sums;
    }
}

/// Where the last L numbers of rows of one length start. Panics if rows are shorter than L.
#[inline(always)]
fn last_chunk_start<F, const L: usize>(rows: &[&[F]]) -> usize {
    let d = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    assert!(d >= L, "a chunk is longer than a row");
    d - L
}

/// L numbers of a row from `start` on. A bounds check would cost as much as the arithmetic.
///
/// # Safety
/// The row must have at least `start` + L numbers.
#[inline(always)]
unsafe fn chunk<F, const L: usize>(row: &[F], start: usize) -> &[F; L] {
    debug_assert!(start + L <= row.len());
    // SAFETY: the caller guarantees that the row is long enough.
    unsafe { &*row.as_ptr().add(start).cast::<[F; L]>() }
}
