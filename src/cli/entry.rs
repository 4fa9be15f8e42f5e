//! From what was typed to a subcommand and an exit code, said once however many processes were launched.

use super::{Cli, Command, import, run, summary};
use crate::cluster::mpi::World;
use crate::config::Registry;
use clap::Parser;
use std::process::ExitCode;
use std::time::Duration;

/// How long a process that does not speak for its job leaves the word to the one that does.
const AFTER_YOU: Duration = Duration::from_secs(1);

/// The whole command line, with these models and methods.
pub fn main_with(registry: &Registry) -> ExitCode {
    crate::cluster::mpi::tune_allocator();
    // Before MPI starts, only the launcher's variables tell which process may speak.
    let speaks = World::speaks();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // All processes were typed alike. The silent ones end well: a launcher that saw one of them fail first would kill the
        // one that speaks before it has spoken.
        Err(_) if !speaks => return ExitCode::SUCCESS,
        Err(usage) => usage.exit(),
    };
    let result = match &cli.command {
        Command::Run(args) => run::run(args, registry),
        // These need one process, however many were launched.
        _ if !speaks => Ok(ExitCode::SUCCESS),
        Command::Import(args) => import::run(args),
        Command::Summary(args) => summary::run(args),
    };
    result.unwrap_or_else(|error| {
        if !speaks {
            // What concerns all is said by the process that speaks, and its end ends this one; what is left is this one's alone.
            std::thread::sleep(AFTER_YOU);
        }
        eprintln!("mpibayes: error: {error:#}");
        ExitCode::FAILURE
    })
}
