//! Transition kernels of chains on the shard of one agent: SGD, SGLD, SGHMC, and SGRLD for topics.

pub mod sgd;
pub mod sghmc;
pub mod sgld;
mod sgrld;
pub mod transition;

pub use sgrld::{LocalSgrld, Sgrld};
