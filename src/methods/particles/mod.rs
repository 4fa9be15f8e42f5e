//! Particle methods: Stein variational gradient descent and particle mirror descent.

pub mod dsvgd;
pub mod pmd;
pub mod svgd;
