//! Integration tests, one module for each subject: `cargo test --release --test it run::` runs those of `mpibayes run`.
//!
//! One program instead of one for each file: they share the time to link, and their tests fill all cores. What needs a process of its
//! own has one: `tests/corruptions.rs` counts the memory that its process allocates, `tests/sparse_memory.rs` that of its child process, which
//! the system counts from the memory of its parent on, and `tests/conformance` and `tests/travel` start themselves under `mpirun`.

mod book;
mod check;
mod checkpoints;
mod cli;
mod convergence;
mod data;
mod images;
mod install;
mod interop;
mod jobs;
mod judge;
mod judgment;
mod logistic_prior;
#[cfg(feature = "plots")]
mod plots;
mod pointwise;
mod predict;
mod real_data;
mod recalibrate;
mod resume;
mod rules;
mod run;
mod scale;
mod sparse;
mod sweep;
mod tables;
mod theory;
mod topics;
mod tuning;
mod whitened;

#[path = "../support/covertype.rs"]
mod covertype;
#[path = "../support/delayed_gradients.rs"]
mod delayed_gradients;
#[path = "../support/example_chains.rs"]
mod example_chains;
#[path = "../support/gaussian_shards.rs"]
mod gaussian_shards;
#[path = "../support/grid.rs"]
mod grid;
#[path = "../support/harness.rs"]
mod harness;
#[path = "../support/launcher.rs"]
mod launcher;
#[path = "../support/linear_chains.rs"]
mod linear_chains;
#[path = "../support/one_dimensional.rs"]
mod one_dimensional;
#[path = "../support/recording.rs"]
mod recording;
#[path = "../support/regression.rs"]
mod regression;
