//! Transitions: one update of one chain on the shard of one agent.

pub mod sgd;
pub mod sghmc;
pub mod sgld;
mod sgrld;
pub mod transition;

pub use sgrld::{LocalSgrld, Sgrld};
