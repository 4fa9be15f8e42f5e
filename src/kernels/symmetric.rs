//! Symmetric matrices stored as tiles of their lower half: a tile stays in cache while it and its transpose are multiplied.

use crate::layout::matrix;
use crate::number::Real;
use crate::vector::{self, vectorized};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, s};
use std::ops::Range;

/// The number of rows and columns of a tile.
const TILE: usize = 128;
/// The number of rows of a tile that are mapped and summed at a time, in the first-level cache.
const ROWS: usize = 8;

/// A symmetric N × N matrix.
#[derive(Clone, Debug)]
pub(super) struct Symmetric<F> {
    n: usize,
    /// For each row of tiles: the tiles left of the diagonal, each row-major, then the diagonal tile, row-major, without its diagonal and what is above it.
    below: Vec<F>,
    /// The diagonal tiles as squares.
    squares: Vec<F>,
}

/// A row of tiles: the matrix rows that it covers and the positions of its tiles.
#[derive(Clone, Copy)]
struct Band {
    first: usize,
    rows: usize,
}

impl Band {
    /// The first of its entries below the diagonal.
    fn start(self) -> usize {
        self.first * self.first.saturating_sub(1) / 2
    }

    /// The tile that begins at column `column`.
    fn tile(self, column: usize) -> Range<usize> {
        let start = self.start() + column * self.rows;
        start..start + TILE * self.rows
    }

    /// The entries below the diagonal in the diagonal tile.
    fn triangle(self) -> Range<usize> {
        let start = self.start() + self.first * self.rows;
        start..start + self.rows * (self.rows - 1) / 2
    }

    fn square(self) -> Range<usize> {
        self.first * TILE..self.first * TILE + self.rows * self.rows
    }

    fn matrix_rows(self) -> Range<usize> {
        self.first..self.first + self.rows
    }
}

impl<F: Real> Symmetric<F> {
    /// A zero matrix.
    pub(super) fn new(n: usize) -> Self {
        let squares = bands(n).map(|band| band.rows * band.rows).sum();
        Self { n, below: vec![F::zero(); n * (n - 1) / 2], squares: vec![F::zero(); squares] }
    }

    /// All N(N − 1)/2 entries below the diagonal, in storage order.
    pub(super) fn below(&self) -> &[F] {
        &self.below
    }

    /// Calls `fill` for each piece of row `i` below the diagonal, with its columns and its values.
    pub(super) fn fill_row(&mut self, i: usize, mut fill: impl FnMut(Range<usize>, &mut [F])) {
        let band = Band { first: i / TILE * TILE, rows: TILE.min(self.n - i / TILE * TILE) };
        let row = i - band.first;
        for column in (0..band.first).step_by(TILE) {
            fill(column..column + TILE, &mut self.below[band.tile(column)][row * TILE..][..TILE]);
        }
        if row > 0 {
            fill(band.first..i, &mut self.below[band.triangle()][row * (row - 1) / 2..][..row]);
        }
    }

    /// Replaces each entry x below the diagonal by exp(`factor` · x) if `factor` is given, sets the diagonal, and sums each row.
    pub(super) fn finish(&mut self, factor: Option<F>, diagonal: impl Fn(usize) -> F, sums: &mut [F]) {
        let map = |part: &mut [F]| {
            if let Some(factor) = factor {
                scale(part, factor);
                vector::exp(part);
            }
        };
        sums.fill(F::zero());
        for band in bands(self.n) {
            let (earlier, own) = sums.split_at_mut(band.first);
            for (column, sums) in earlier.chunks_exact_mut(TILE).enumerate() {
                let tile = &mut self.below[band.tile(column * TILE)];
                for (part, own) in tile.chunks_mut(ROWS * TILE).zip(own.chunks_mut(ROWS)) {
                    map(part);
                    add_sums(part, own, sums);
                }
            }
            map(&mut self.below[band.triangle()]);
            let square = &mut self.squares[band.square()];
            unpack(&self.below[band.triangle()], square, band.rows);
            for (i, (row, sum)) in square.chunks_exact_mut(band.rows).zip(own).enumerate() {
                row[i] = diagonal(band.first + i);
                *sum += total(row);
            }
        }
    }

    /// Writes `alpha` times this matrix times `x` (N × any) to `out`. Requires [`Self::finish`].
    pub(super) fn multiply(&self, alpha: F, x: ArrayView2<F>, mut out: ArrayViewMut2<F>) {
        for band in bands(self.n) {
            let own = x.slice(s![band.matrix_rows(), ..]);
            general_mat_mul(alpha, &self.square(band), &own, F::zero(), &mut out.slice_mut(s![band.matrix_rows(), ..]));
            for (columns, tile) in self.tiles(band) {
                let other = x.slice(s![columns.clone(), ..]);
                general_mat_mul(alpha, &tile, &other, F::one(), &mut out.slice_mut(s![band.matrix_rows(), ..]));
                general_mat_mul(alpha, &tile.t(), &own, F::one(), &mut out.slice_mut(s![columns, ..]));
            }
        }
    }

    /// Writes all entries to `out` (N × N). Requires [`Self::finish`].
    pub(super) fn write(&self, mut out: ArrayViewMut2<F>) {
        for band in bands(self.n) {
            out.slice_mut(s![band.matrix_rows(), band.matrix_rows()]).assign(&self.square(band));
            for (columns, tile) in self.tiles(band) {
                out.slice_mut(s![band.matrix_rows(), columns.clone()]).assign(&tile);
                out.slice_mut(s![columns, band.matrix_rows()]).assign(&tile.t());
            }
        }
    }

    /// The diagonal tile of a row of tiles.
    fn square(&self, band: Band) -> ArrayView2<'_, F> {
        matrix(&self.squares[band.square()], band.rows, band.rows)
    }

    /// The tiles left of the diagonal tile, with their columns.
    fn tiles(&self, band: Band) -> impl Iterator<Item = (Range<usize>, ArrayView2<'_, F>)> {
        let columns = (0..band.first).step_by(TILE);
        columns.map(move |column| (column..column + TILE, matrix(&self.below[band.tile(column)], band.rows, TILE)))
    }
}

fn bands(n: usize) -> impl Iterator<Item = Band> {
    (0..n).step_by(TILE).map(move |first| Band { first, rows: TILE.min(n - first) })
}

vectorized! {
    fn scale<F: Real>(values: &mut [F], by: F) {
        for value in values {
            *value *= by;
        }
    }
}

vectorized! {
    /// Adds the row sums and the column sums of some rows of a tile.
    fn add_sums<F: Real>(part: &[F], rows: &mut [F], columns: &mut [F]) {
        for (row, sum) in part.chunks_exact(TILE).zip(rows) {
            let mut lanes = [F::zero(); 16];
            let (groups, _) = row.as_chunks::<16>();
            let (columns, _) = columns.as_chunks_mut::<16>();
            for (group, columns) in groups.iter().zip(columns) {
                for lane in 0..16 {
                    lanes[lane] += group[lane];
                    columns[lane] += group[lane];
                }
            }
            *sum += lanes.iter().copied().sum::<F>();
        }
    }
}

vectorized! {
    fn total<F: Real>(values: &[F]) -> F {
        let mut lanes = [F::zero(); 16];
        let (groups, rest) = values.as_chunks::<16>();
        for group in groups {
            for lane in 0..16 {
                lanes[lane] += group[lane];
            }
        }
        let rest: F = rest.iter().copied().sum();
        lanes.iter().copied().sum::<F>() + rest
    }
}

vectorized! {
    /// Fills a symmetric matrix (n × n) from the rows of `triangle`, except for its diagonal. It proceeds piece by piece, because
    /// transposing a row writes to one entry in each of many rows.
    fn unpack<F: Real>(triangle: &[F], square: &mut [F], n: usize) {
        const PIECE: usize = 32;
        for i in 1..n {
            square[i * n..i * n + i].copy_from_slice(&triangle[i * (i - 1) / 2..][..i]);
        }
        for above in (0..n).step_by(PIECE) {
            for j in above + 1..n {
                let (upper, lower) = square.split_at_mut(j * n);
                for (i, &x) in lower[above..(above + PIECE).min(j)].iter().enumerate() {
                    upper[(above + i) * n + j] = x;
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use ndarray::Array2;

    #[test]
    fn it_agrees_with_a_dense_matrix() {
        // Sizes on both sides of one and two tiles.
        for n in [1, 2, 31, 100, 127, 128, 129, 200, 256, 300] {
            let mut x = Array2::<f64>::zeros((n, 5));
            Seed(n as u64).stream(Who::Run, 0, Purpose::Synthetic).normals(x.as_slice_mut().unwrap());
            let entry = |i: usize, j: usize| ((i.max(j) * 7 + i.min(j) * 3) % 11) as f64 * 0.1;
            for factor in [None, Some(-0.7)] {
                let mut matrix = Symmetric::new(n);
                for i in 0..n {
                    let mut next = 0;
                    matrix.fill_row(i, |columns, out| {
                        assert_eq!((columns.start, columns.len()), (next, out.len()));
                        next = columns.end;
                        columns.zip(out).for_each(|(j, out)| *out = entry(i, j));
                    });
                    assert_eq!(next, i);
                }
                let mut sums = vec![1.0; n];
                matrix.finish(factor, |i| i as f64, &mut sums);
                let dense = Array2::from_shape_fn((n, n), |(i, j)| match factor {
                    _ if i == j => i as f64,
                    Some(factor) => (factor * entry(i, j)).exp(),
                    None => entry(i, j),
                });
                let mut written = Array2::zeros((n, n));
                matrix.write(written.view_mut());
                assert!((&written - &dense).iter().all(|error| error.abs() < 1e-14));
                let errors = dense.rows().into_iter().zip(&sums).map(|(row, sum)| (row.sum() - sum).abs());
                assert!(errors.fold(0.0, f64::max) < 1e-12 * n as f64);
                let mut product = Array2::from_elem((n, 5), f64::NAN);
                matrix.multiply(2.0, x.view(), product.view_mut());
                assert!((product - dense.dot(&x) * 2.0).iter().all(|error| error.abs() < 1e-12 * n as f64));
            }
        }
    }
}
