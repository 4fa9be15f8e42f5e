//! Markov chain Monte Carlo: chains that travel between agents, chains that are coupled, and chains on their own.

pub mod async_sghmc;
pub mod dsgld;
pub mod elastic;
