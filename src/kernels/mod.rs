//! Update rules on arrays: SVGD, kernel density estimates, optimizers, Langevin and Hamiltonian steps, convolutions.

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
