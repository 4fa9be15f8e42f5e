//! The entry point: parses the command line, runs the subcommand, reports errors once even if mpirun launched several processes.

use super::arguments::{Cli, Command};
use super::output::print_error;
use super::unknown_option::with_advice;
use super::{
    blas, check, compare, completions, data, env, import, init, judge, manual, plan, plot, predict, recalibrate, resume, run,
    scale, summary, sweep, topics,
};
use crate::cluster::mpi::World;
use crate::config::Registry;
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;
use std::time::Duration;

/// How long other processes wait before they report an error, so that the process that speaks for the job reports first.
const GRACE_PERIOD: Duration = Duration::from_secs(1);

/// Lets `--seed -1` reach the parser of `--seed`, which explains the error. Otherwise clap says that `-1` is an unknown option.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(with_negative_numbers)
}

/// The standard library's message for text that is not a whole number or is negative.
const NO_WHOLE_NUMBER: &str = "invalid digit found in string";

/// Prints a usage error, or the help that was asked for, and ends the process.
fn exit_with(usage: &clap::Error) -> ! {
    let text = usage.render().to_string();
    if text.contains(NO_WHOLE_NUMBER) {
        eprint!("{}", text.replace(NO_WHOLE_NUMBER, "write a whole number, such as 5"));
        std::process::exit(usage.exit_code());
    }
    usage.exit()
}

/// Runs the command line with the models and methods of a registry.
pub fn main_with(registry: &Registry) -> ExitCode {
    blas::prepare();
    crate::cluster::mpi::tune_allocator();
    // Before MPI starts, only environment variables of the launcher show which process speaks for the job.
    let speaks = World::is_primary();
    let mut command = init::list_names(with_negative_numbers(Cli::command()), registry);
    let cli = match command.try_get_matches_from_mut(std::env::args_os()).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        // All processes have the same command line. The others exit with success: if the launcher saw one of them fail first,
        // it would kill the process that is about to print the usage error.
        Err(_) if !speaks => return ExitCode::SUCCESS,
        Err(usage) => {
            let typed: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            exit_with(&with_advice(usage, &typed, &command, registry))
        }
    };
    let result = match &cli.command {
        Command::Run(args) => run::run(args, registry),
        Command::Resume(args) => resume::run(args, registry),
        Command::Judge(args) => judge::run(args, registry),
        Command::Recalibrate(args) => recalibrate::run(args, registry),
        Command::Sweep(args) => sweep::run(args, registry),
        Command::Env(args) => env::run(args),
        Command::Predict(args) => predict::run(args, registry),
        Command::Scale(args) => scale::run(args, registry),
        // The other subcommands run in a single process, however many were launched.
        _ if !speaks => Ok(ExitCode::SUCCESS),
        Command::Init(args) => init::run(args, registry),
        Command::Check(args) => check::run(args, registry),
        Command::Import(args) => import::run(args),
        Command::Data(args) => data::run(args),
        Command::Summary(args) => summary::run(args),
        Command::Topics(args) => topics::run(args, registry),
        Command::Plot(args) => plot::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => manual::run(args, Cli::command()),
    };
    result.unwrap_or_else(|error| {
        if !speaks {
            // An error of all processes is reported by the one that speaks, whose exit also ends this one. An error that is still
            // unreported after the grace period concerns this process alone.
            std::thread::sleep(GRACE_PERIOD);
        }
        print_error(&error);
        ExitCode::FAILURE
    })
}
