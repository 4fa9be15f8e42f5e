//! Array views as flat slices and back: models pass contiguous arrays to inner loops and BLAS.

use crate::number::Real;
use ndarray::{ArrayView2, ArrayViewMut, ArrayViewMut2, Dimension};

/// A row-major, contiguous matrix as a slice.
///
/// # Panics
/// If it is not row-major and contiguous, which models require.
pub fn flat<'a, F>(matrix: ArrayView2<'a, F>) -> &'a [F] {
    match matrix.to_slice() {
        Some(slice) => slice,
        None => panic!("models need row-major, contiguous arrays"),
    }
}

/// A row-major, contiguous array as a mutable slice; panics as [`flat`] does.
pub fn flat_mut<'a, F, D: Dimension>(array: ArrayViewMut<'a, F, D>) -> &'a mut [F] {
    match array.into_slice() {
        Some(slice) => slice,
        None => panic!("models need row-major, contiguous arrays"),
    }
}

/// A slice as a rows × columns matrix, without a copy; panics if the sizes differ.
pub fn matrix<F>(slice: &[F], rows: usize, columns: usize) -> ArrayView2<'_, F> {
    match ArrayView2::from_shape((rows, columns), slice) {
        Ok(view) => view,
        Err(error) => panic!("cannot view {} numbers as a {rows} × {columns} matrix: {error}", slice.len()),
    }
}

/// A mutable slice as a matrix, like [`matrix`].
pub fn matrix_mut<F>(slice: &mut [F], rows: usize, columns: usize) -> ArrayViewMut2<'_, F> {
    let len = slice.len();
    match ArrayViewMut2::from_shape((rows, columns), slice) {
        Ok(view) => view,
        Err(error) => panic!("cannot view {len} numbers as a {rows} × {columns} matrix: {error}"),
    }
}

/// A target as the index of a class or factor.
///
/// # Panics
/// If it is not one of 0, 1, ..., `count` − 1.
pub fn index<F: Real>(target: F, count: usize) -> usize {
    match target.to_usize() {
        Some(index) if index < count && target == F::of(index as f64) => index,
        _ => panic!("{target} is not an index below {count}"),
    }
}
