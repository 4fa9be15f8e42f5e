//! From what was typed to a subcommand and an exit code, said once however many processes were launched.

use super::{
    Cli, Command, blas, check, compare, data, env, import, init, plan, plot, predict, run, shell, summary, sweep, topics,
};
use crate::cluster::mpi::World;
use crate::config::Registry;
use clap::Parser;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How long a process that does not speak for its job leaves the word to the one that does.
const AFTER_YOU: Duration = Duration::from_secs(1);

/// The whole command line, with these models and methods.
pub fn main_with(registry: &Registry) -> ExitCode {
    crate::cluster::mpi::tune_allocator();
    blas::hold_to_one_thread();
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
        Command::Sweep(args) => sweep::run(args, registry),
        Command::Env(args) => env::run(args),
        // These need one process, however many were launched.
        _ if !speaks => Ok(ExitCode::SUCCESS),
        Command::Init(args) => init::run(args, registry),
        Command::Check(args) => check::run(args, registry),
        Command::Import(args) => import::run(args),
        Command::Data(args) => data::run(args),
        Command::Summary(args) => summary::run(args),
        Command::Topics(args) => topics::run(args),
        Command::Predict(args) => predict::run(args, registry),
        Command::Plot(args) => plot::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Completions(args) => shell::completions(args),
        Command::Man(args) => shell::man(args),
    };
    result.unwrap_or_else(|error| {
        if !speaks {
            // What concerns all is said by the process that speaks, and its end ends this one; what is left is this one's alone.
            std::thread::sleep(AFTER_YOU);
        }
        say(&error);
        ExitCode::FAILURE
    })
}

/// Prints what was asked for. A reader that has seen enough, such as `head`, is no error.
///
/// # Errors
/// Where standard output cannot be written.
pub(super) fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => Err(cause),
        _ => Ok(()),
    }
}

/// Says on standard error what went wrong, at one stroke: written in pieces, mpirun's own lines would come between them.
pub(super) fn say(error: &anyhow::Error) {
    // Nobody is left to tell that the error output is closed.
    drop(std::io::stderr().write_all(format!("mpibayes: error: {}\n", said_once(error)).as_bytes()));
}

/// An error with its causes in a line; a cause that its effect has quoted already is left out.
fn said_once(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
