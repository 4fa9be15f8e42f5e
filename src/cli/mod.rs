//! The command line: a file for each subcommand.

mod arguments;
mod bar;
pub mod blas;
pub mod check;
pub mod compare;
pub mod completions;
pub mod data;
#[cfg(feature = "plots")]
mod drawing;
#[cfg(not(feature = "plots"))]
#[path = "no_drawing.rs"]
mod drawing;
mod entry;
pub mod env;
pub mod exit_codes;
pub mod import;
pub mod init;
mod job_args;
pub mod judge;
mod make;
pub mod manual;
mod output;
mod output_file;
pub mod picture;
pub mod plan;
pub mod plot;
pub mod predict;
pub mod recalibrate;
mod resources;
pub mod resume;
pub mod run;
pub mod scale;
mod several_runs;
pub mod summary;
pub mod sweep;
mod termination;
pub mod topics;
mod unknown_option;
mod verify;

pub use arguments::{Cli, Command};
pub use entry::main_with;
