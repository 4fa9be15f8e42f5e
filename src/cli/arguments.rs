//! The definition of the command line: all subcommands with their arguments.

use super::{
    check, compare, completions, data, env, exit_codes, import, init, judge, manual, plan, plot, predict, recalibrate, resume,
    run, scale, summary, sweep, topics,
};

/// Bayesian inference on data that is spread over a cluster.
///
/// Import your data once, describe a run in a TOML file, start it with or without mpirun, and look at the results:
///
///   mpibayes import train.csv --test test.csv -o data.h5
///   mpibayes init dsvgd --data data.h5 -o run.toml
///   mpirun -n 2 mpibayes run run.toml --output runs/first
///   mpibayes summary runs/first
///   mpibayes plot runs/first
#[derive(Debug, clap::Parser)]
#[command(name = "mpibayes", version, verbatim_doc_comment, max_term_width = 110, subcommand_required = true)]
#[command(after_help = exit_codes::paragraph())]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// A subcommand and its arguments.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Import tables, LIBSVM files, NumPy arrays, images or documents into an HDF5 dataset
    Import(Box<import::ImportArgs>),
    /// List, download or generate data sets, or verify a dataset
    Data(data::DataArgs),
    /// Write a run file to start from, with every key, its default and its meaning
    Init(init::InitArgs),
    /// Show what a run file describes, and its mistakes, including those in the data
    Check(check::CheckArgs),
    /// Show how long a run takes on more and more ranks, and how many are worth it
    Scale(scale::ScaleArgs),
    /// Start the run of a TOML file, or resume it
    Run(run::RunArgs),
    /// Resume the run in a folder, or make a finished one longer
    Resume(resume::ResumeArgs),
    /// Judge the draws that a run has so far, also while it goes on
    Judge(judge::JudgeArgs),
    /// Correct the mean and covariance of the draws of a finished run whose posterior is close to a Gaussian
    Recalibrate(recalibrate::RecalibrateArgs),
    /// Run a grid of methods, settings and seeds, and collect the results in one table
    Sweep(sweep::SweepArgs),
    /// Show the results of a run: metrics, calibration, posterior estimates with R-hat and ESS
    Summary(summary::SummaryArgs),
    /// Predict new rows with a finished run, or the topics of new documents, as CSV
    Predict(predict::PredictArgs),
    /// Show the topics of a run: top words and coherence, or arrays for pyLDAvis
    Topics(topics::TopicsArgs),
    /// Draw figures of a run as SVG and PNG
    Plot(plot::PlotArgs),
    /// Compare several runs in a table and in a figure
    Compare(compare::CompareArgs),
    /// Print how many updates the chains of a run of dsgld make at each agent, for another run to use
    Plan(plan::PlanArgs),
    /// Show MPI, HDF5, BLAS, cores and launcher, with warnings about slow or wrong settings
    Env(env::EnvArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write a page for each subcommand
    Man(manual::ManArgs),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::{CommandFactory, Parser};

    #[test]
    fn the_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_lists_all_exit_codes() {
        let help = Cli::command().render_long_help().to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let codes = [crate::cluster::EXIT_CODE, i32::from(exit_codes::STOPPED), i32::from(exit_codes::UNUSABLE)];
        assert!(codes.into_iter().all(|code| help.contains(&format!(". {code} "))), "{help}");
    }

    #[test]
    fn contradictory_arguments_are_usage_errors() {
        for typed in [
            "mpibayes",
            "mpibayes import -o data.h5",
            "mpibayes import a.csv",
            "mpibayes import a.csv --exposure years --offset rate -o data.h5",
            "mpibayes import images a --labels b --label last -o data.h5",
            "mpibayes import a.csv --test b.csv --test-fraction 0.2 -o data.h5",
            "mpibayes import table a.csv --label 0 -o data.h5",
            "mpibayes import a.csv --test-fraction 1 -o data.h5",
            "mpibayes import a.csv --test-fraction nan -o data.h5",
            "mpibayes summary",
            "mpibayes summary runs/a --json --get ece",
            "mpibayes run run.toml --set seed",
            "mpibayes resume",
            "mpibayes recalibrate",
            "mpibayes resume runs/a --steps more",
            "mpibayes resume runs/a --steps +0",
            "mpibayes resume runs/a --steps 5 --draws 5",
            "mpibayes plot",
            "mpibayes plot runs/a histogram",
            "mpibayes plot runs/a --size 640",
            "mpibayes summary runs/a --per age",
            "mpibayes summary runs/a --per age=0",
            "mpibayes plot runs/a --per =10",
            "mpibayes plot runs/a --size 640x0",
            "mpibayes plot runs/a --scale 0",
            "mpibayes plot runs/a --format pdf",
            "mpibayes plot runs/a --pair weights[0]",
            "mpibayes plot runs/a --against hours",
            "mpibayes compare runs/a runs/b --json --csv",
        ] {
            let usage = Cli::try_parse_from(typed.split(' ')).expect_err(typed);
            assert_eq!(usage.exit_code(), 2, "{typed}");
        }
        // The control: valid arguments.
        for typed in [
            "mpibayes import images a -o data.h5",
            "mpibayes import images a --labels b --test-images c --test-labels d -o data.h5",
            "mpibayes import a.csv --test-fraction 0.2 --seed 3 -o data.h5",
            "mpibayes import a.csv --label last --categorical 2,region -o data.h5",
            "mpibayes import table a.csv --test-fraction 0.2 --seed 3 --label 1 -o data.h5",
            "mpibayes summary runs/a --get ece",
            "mpibayes summary runs/a --per age=10 --per a=b=0.5",
            "mpibayes resume runs/a --steps +20_000 --strict",
            "mpibayes run run.toml --set seed=2 --set data=other.h5 --output runs/a",
            "mpibayes plot runs/a history posterior --size 640x480 --scale 1.5 --format png --pair a[0] b --against seconds",
            "mpibayes compare runs/a runs/b --against bytes --metric ece --output a.svg --csv",
        ] {
            Cli::try_parse_from(typed.split(' ')).expect(typed);
        }
    }
}
