//! Variational methods: parametric approximations of the posterior.

pub mod gvi;
pub mod npv;
pub mod pvi;
