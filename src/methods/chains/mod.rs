//! Markov chain Monte Carlo: chains that travel between agents, chains that are coupled, and chains on their own.

pub mod async_sghmc;
pub mod coupled;
pub mod dsgld;
pub mod ec_sghmc;
pub mod ec_sgld;
pub mod hmc;
pub mod sghmc;
