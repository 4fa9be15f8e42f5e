//! Coordinates that give every parameter the same scale, and the points at which chains start there.

use crate::number::Real;
use ndarray::{Array2, ArrayView1, ArrayView2};

/// The coordinates z with θ_j = d_j z_j.
#[derive(Clone, Debug)]
pub struct Scaling<F> {
    /// d, the scale of each parameter.
    scale: Vec<F>,
    /// θ at the points at which chains start.
    starts: Array2<F>,
}

impl<F: Real> Scaling<F> {
    /// The scaling with this d and these starting points (K × d).
    ///
    /// # Panics
    /// If lengths differ.
    pub fn new(scale: ArrayView1<f64>, starts: ArrayView2<f64>) -> Self {
        assert_eq!(scale.len(), starts.ncols(), "a scaling needs one value for each parameter");
        Self { scale: scale.iter().map(|&value| F::of(value)).collect(), starts: starts.mapv(F::of) }
    }

    /// d, the number of parameters.
    pub fn dim(&self) -> usize {
        self.scale.len()
    }

    /// d.
    pub(super) fn scale(&self) -> &[F] {
        &self.scale
    }

    /// Writes θ at z.
    pub(super) fn write_parameters(&self, z: &[F], theta: &mut [F]) {
        theta.iter_mut().zip(z).zip(&self.scale).for_each(|((theta, &z), &scale)| *theta = scale * z);
    }

    /// Replaces θ by its z.
    pub(super) fn to_coordinates(&self, theta: &mut [F]) {
        theta.iter_mut().zip(&self.scale).for_each(|(value, &scale)| *value /= scale);
    }

    /// Writes the z at which a chain starts; false if there are no starting points. Chains share them if there are fewer than chains.
    pub(super) fn start(&self, chain: u64, z: &mut [F]) -> bool {
        let rows = self.starts.nrows();
        if rows == 0 {
            return false;
        }
        // Below the number of rows.
        let row = self.starts.row((chain % rows as u64) as usize);
        z.iter_mut().zip(row).for_each(|(z, &start)| *z = start);
        self.to_coordinates(z);
        true
    }

    /// Turns a gradient with respect to θ into one with respect to z, and adds it to `out`.
    pub(super) fn add_gradient(&self, by_theta: &[F], out: &mut [F]) {
        out.iter_mut().zip(by_theta).zip(&self.scale).for_each(|((out, &value), &scale)| *out += scale * value);
    }

    /// Turns a curvature with respect to θ into one with respect to z, and adds it to `out`.
    pub(super) fn add_curvature(&self, by_theta: &[F], out: &mut [F]) {
        let dim = self.dim();
        for ((out, row), &scale) in out.chunks_exact_mut(dim).zip(by_theta.chunks_exact(dim)).zip(&self.scale) {
            out.iter_mut().zip(row).zip(&self.scale).for_each(|((out, &value), &other)| *out += scale * other * value);
        }
    }
}
