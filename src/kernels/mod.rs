//! Numerical kernels on arrays: update rules, kernel densities and discrepancies, convolutions, sums, packed symmetric matrices.

pub mod convolution;
pub mod hamiltonian;
pub mod kde;
pub mod ksd;
pub mod langevin;
pub mod optimizer;
pub mod rbf;
pub mod reduce;
mod select;
pub mod svgd;
mod symmetric;
pub mod triangle;
