//! Particle methods: Stein variational gradient descent and particle mirror descent.

mod defaults;
pub mod dsvgd;
pub mod p_dsvgd;
pub mod pmd;
pub mod svgd;
pub mod u_dsvgd;
