//! Views as flat slices: the form in which models hand arrays to their inner loops and to BLAS.

use crate::number::Real;
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};

/// The numbers of a row-major, contiguous matrix.
///
/// # Panics
/// If it is not row-major and contiguous, which [`Model`](super::Model) requires.
pub fn flat<'a, F>(matrix: ArrayView2<'a, F>) -> &'a [F] {
    match matrix.to_slice() {
        Some(slice) => slice,
        None => panic!("models take row-major, contiguous arrays"),
    }
}

/// The numbers of a row-major, contiguous matrix, to be changed; panics as [`flat`] does.
pub fn flat_mut<'a, F>(matrix: ArrayViewMut2<'a, F>) -> &'a mut [F] {
    match matrix.into_slice() {
        Some(slice) => slice,
        None => panic!("models take row-major, contiguous arrays"),
    }
}

/// The numbers of one particle, to be changed; panics as [`flat`] does.
pub fn particle_mut<'a, F>(theta: ArrayViewMut1<'a, F>) -> &'a mut [F] {
    match theta.into_slice() {
        Some(slice) => slice,
        None => panic!("models take row-major, contiguous arrays"),
    }
}

/// A slice as a rows × columns matrix, without a copy; panics if the sizes differ.
pub fn matrix<F>(slice: &[F], rows: usize, columns: usize) -> ArrayView2<'_, F> {
    match ArrayView2::from_shape((rows, columns), slice) {
        Ok(view) => view,
        Err(error) => panic!("{rows} × {columns} numbers out of {}: {error}", slice.len()),
    }
}

/// As [`matrix`], to be changed.
pub fn matrix_mut<F>(slice: &mut [F], rows: usize, columns: usize) -> ArrayViewMut2<'_, F> {
    let len = slice.len();
    match ArrayViewMut2::from_shape((rows, columns), slice) {
        Ok(view) => view,
        Err(error) => panic!("{rows} × {columns} numbers out of {len}: {error}"),
    }
}

/// A target as the index of a class or factor below `count`.
///
/// # Panics
/// If it is not one of 0, 1, ..., `count` − 1.
pub fn index<F: Real>(target: F, count: usize) -> usize {
    match target.to_usize() {
        Some(index) if index < count && target == F::of(index as f64) => index,
        _ => panic!("{target} is not an index below {count}"),
    }
}
