//! The Gauss-Hermite rule for expectations under a standard normal distribution.

use ndarray::{Array1, Array2};
use ndarray_linalg::error::LinalgError;
use ndarray_linalg::{Eigh, UPLO};

/// Nodes z_n and weights w_n, which add up to 1, with E[f(z)] ≈ Σ_n w_n f(z_n) for z ~ N(0, 1): exact for polynomials of degree 2 · `count` − 1.
///
/// The nodes are the eigenvalues of the Jacobi matrix with √i next to its diagonal, the weights the squared first components of its
/// eigenvectors (Golub & Welsch 1969).
///
/// # Errors
/// If the eigenvalue problem cannot be solved.
pub fn gauss_hermite(count: usize) -> Result<(Array1<f64>, Array1<f64>), LinalgError> {
    let jacobi = |(i, j): (usize, usize)| if i.abs_diff(j) == 1 { (i.max(j) as f64).sqrt() } else { 0.0 };
    let (nodes, vectors) = Array2::from_shape_fn((count, count), jacobi).eigh(UPLO::Lower)?;
    Ok((nodes, vectors.row(0).mapv(|first| first * first)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// E[z^(2k)] = 1 · 3 · … · (2k − 1); n nodes are exact up to degree 2n − 1, and no further.
    #[test]
    fn polynomials_are_integrated_exactly() {
        let (nodes, weights) = gauss_hermite(5).unwrap();
        let mean = |of: &dyn Fn(f64) -> f64| nodes.iter().zip(&weights).map(|(&z, w)| w * of(z)).sum::<f64>();
        for (power, exact) in [(0, 1.0), (1, 0.0), (2, 1.0), (4, 3.0), (6, 15.0), (8, 105.0), (9, 0.0)] {
            assert!((mean(&|z| z.powi(power)) - exact).abs() < 1e-11, "{power}");
        }
        assert!((mean(&|z| z.powi(10)) - 945.0).abs() > 1.0, "control");
    }
}
