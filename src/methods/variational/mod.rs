//! Variational methods: parametric approximations of the posterior.

pub mod npv;
pub mod pvi;
