//! The distributed methods: a file each, and one line each in [`crate::config::registry`].

pub mod dsvgd;
pub mod monitored;
pub mod problem;
pub mod svgd;

pub use monitored::{Monitored, Posterior};
pub use problem::{LocalLoss, Problem};
