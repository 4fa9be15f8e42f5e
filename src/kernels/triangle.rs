//! Packed storage of symmetric matrices: the lower triangle with the diagonal, row by row.

use ndarray::{Array2, ArrayView2};

/// The number of values in the triangle of a d × d matrix.
pub fn packed_len(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

/// The index of the entries (i, j) and (j, i) in the triangle.
pub fn packed_index(i: usize, j: usize) -> usize {
    packed_len(i.max(j)) + i.min(j)
}

/// The triangle of a matrix (d × d).
///
/// # Panics
/// If the matrix has fewer columns than rows.
pub fn pack<F: Copy>(matrix: ArrayView2<F>) -> Vec<F> {
    (0..matrix.nrows()).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|at| matrix[at]).collect()
}

/// The matrix (d × d) of a triangle.
///
/// # Panics
/// If the triangle has too few values.
pub fn unpack<F: Copy>(triangle: &[F], dim: usize) -> Array2<F> {
    Array2::from_shape_fn((dim, dim), |(i, j)| triangle[packed_index(i, j)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn unpacking_inverts_packing() {
        let matrix = array![[2, 1, 5], [1, 3, 4], [5, 4, 6]];
        let triangle = pack(matrix.view());
        assert_eq!(triangle, [2, 1, 3, 5, 4, 6]);
        assert_eq!((triangle.len(), triangle[packed_index(0, 2)], triangle[packed_index(1, 1)]), (packed_len(3), 5, 3));
        assert_eq!(unpack(&triangle, 3), matrix);
    }
}
