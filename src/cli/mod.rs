//! The command line: what can be typed, a file for each subcommand, and how they write numbers.

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
pub mod run;
pub mod shell;
pub mod summary;
pub mod sweep;
pub mod topics;

pub use entry::main_with;

const EXIT_CODES: &str = "\
Exit codes: 0 all went well, 1 something could not be done (one line says what), 2 a typing mistake, 70 a run failed on its way \
(one line says on which rank and in which agent), 75 a run was saved and stopped before its end: the same command goes on with it.";

/// Bayesian inference on data that is spread over a cluster.
///
/// Import your data once, describe a run in a TOML file, start it with or without mpirun, look at what came out:
///
///   mpibayes import train.csv --test test.csv -o data.h5
///   mpibayes init dsvgd --data data.h5 -o run.toml
///   mpirun -n 2 mpibayes run run.toml --output runs/first
///   mpibayes summary runs/first
///   mpibayes plot runs/first
#[derive(Debug, clap::Parser)]
#[command(name = "mpibayes", version, verbatim_doc_comment, max_term_width = 110, subcommand_required = true)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// A subcommand and its arguments.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Import tables, LIBSVM files, NumPy arrays, IDX images or documents into an HDF5 dataset
    Import(Box<import::ImportArgs>),
    /// List, download or generate data sets
    Data(data::DataArgs),
    /// Write a starting run file: every key, its default, its meaning
    Init(init::InitArgs),
    /// Say what a run file asks for, and all that is wrong with it, data included
    Check(check::CheckArgs),
    /// Run what a TOML file describes; go on with it where it was stopped
    Run(run::RunArgs),
    /// Run a grid of runs: methods, settings, seeds; gather what came out in one table
    Sweep(sweep::SweepArgs),
    /// Show what came out of a run
    Summary(summary::SummaryArgs),
    /// Predict rows with a finished run, or the topics of documents, as CSV
    Predict(predict::PredictArgs),
    /// Show the topics of a run on documents: their top words, how coherent they are; arrays for pyLDAvis
    Topics(topics::TopicsArgs),
    /// Draw what came out of a run, as SVG and PNG
    Plot(plot::PlotArgs),
    /// Put several runs side by side, in a table and in a picture
    Compare(compare::CompareArgs),
    /// Print how a run of dsgld has planned its trajectories, for another run to follow
    Plan(plan::PlanArgs),
    /// Say with which MPI, HDF5 and BLAS, on which cores and under which launcher it runs
    Env(env::EnvArgs),
    /// Print what a shell needs to complete what is typed
    Completions(shell::CompletionsArgs),
    /// Print the manual page, or write one for each subcommand
    Man(shell::ManArgs),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_exit_codes_are_those_that_the_help_lists() {
        let codes = [crate::cluster::EXIT_CODE, i32::from(run::STOPPED)];
        assert!(codes.into_iter().all(|code| EXIT_CODES.contains(&format!(", {code} "))));
    }

    #[test]
    fn arguments_that_contradict_each_other_are_typing_mistakes() {
        for typed in [
            "mpibayes",
            "mpibayes import -o data.h5",
            "mpibayes import a.csv",
            "mpibayes import images a -o data.h5",
            "mpibayes import images a --labels b --test-images c -o data.h5",
            "mpibayes import a.csv --label last -o data.h5",
            "mpibayes import images a --labels b --label last -o data.h5",
            "mpibayes import a.csv --test b.csv --test-fraction 0.2 -o data.h5",
            "mpibayes import table a.csv --label 0 -o data.h5",
            "mpibayes import a.csv --test-fraction 1 -o data.h5",
            "mpibayes import a.csv --test-fraction nan -o data.h5",
            "mpibayes summary",
            "mpibayes summary runs/a --json --get ece",
            "mpibayes run run.toml --set seed",
            "mpibayes plot",
            "mpibayes plot runs/a histogram",
            "mpibayes plot runs/a --size 640",
            "mpibayes plot runs/a --size 640x0",
            "mpibayes plot runs/a --scale 0",
            "mpibayes plot runs/a --format pdf",
            "mpibayes plot runs/a --pair weights[0]",
            "mpibayes plot runs/a --against hours",
            "mpibayes compare runs/a",
            "mpibayes compare runs/a runs/b --json --csv",
        ] {
            let usage = Cli::try_parse_from(typed.split(' ')).expect_err(typed);
            assert_eq!(usage.exit_code(), 2, "{typed}");
        }
        // The control: the same in order.
        for typed in [
            "mpibayes import images a --labels b --test-images c --test-labels d -o data.h5",
            "mpibayes import a.csv --test-fraction 0.2 --seed 3 -o data.h5",
            "mpibayes import table a.csv --test-fraction 0.2 --seed 3 --label 1 -o data.h5",
            "mpibayes summary runs/a --get ece",
            "mpibayes run run.toml --set seed=2 --set data=other.h5 --output runs/a",
            "mpibayes plot runs/a history posterior --size 640x480 --scale 1.5 --format png --pair a[0] b --against seconds",
            "mpibayes compare runs/a runs/b --against bytes --metric ece --output a.svg --csv",
        ] {
            Cli::try_parse_from(typed.split(' ')).expect(typed);
        }
    }
}
