//! The command line: a file for each subcommand.

mod arguments;
mod blas;
pub mod check;
pub mod compare;
pub mod data;
#[cfg(feature = "plots")]
mod drawing;
#[cfg(not(feature = "plots"))]
#[path = "no_drawing.rs"]
mod drawing;
mod entry;
pub mod env;
pub mod import;
pub mod init;
mod make;
mod output;
pub mod picture;
pub mod plan;
pub mod plot;
pub mod predict;
pub mod recalibrate;
pub mod resume;
pub mod run;
pub mod shell;
pub mod summary;
pub mod sweep;
pub mod topics;

pub use arguments::{Cli, Command};
pub use entry::main_with;
