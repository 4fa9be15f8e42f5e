//! `mpibayes compare`: several runs in one table and one figure.

use super::drawing;
use super::import::interval;
use super::output::print;
use super::picture::{Axis, BandArgs, PictureArgs};
use super::several_runs::SeveralRuns;
use super::summary::per;
use crate::report::RunResults;
use crate::report::agreement::{self, Agreement, Reference};
use crate::report::coefficients::{CoefficientOptions, Interval, IntervalKind, Per};
use crate::report::comparison::Comparison;
use crate::report::side_by_side::{self, CoefficientsOfRun};
use crate::results::XAxis;
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes compare runs/dsvgd runs/svgd
  mpibayes compare runs/dsvgd runs/svgd --reference runs/hmc
  mpibayes compare runs/groups runs/pooled --coefficients --per age=10 --interval 0.95
  mpibayes compare runs/groups runs/pooled --coefficients --output coefficients.svg --parameter age
  mpibayes compare runs/* --reliability --output reliability.svg
  mpibayes compare runs/* --metric log_likelihood --against seconds --output comparison.svg
  mpibayes compare runs/sweep --output sweep.svg --band range
  mpibayes compare runs/* --csv > runs.csv";

/// Arguments of `mpibayes compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// The folders of runs or sweeps, or result files
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub runs: Vec<PathBuf>,
    /// Compare the posteriors of the runs with that of this one, such as a run of hmc
    #[arg(long, value_name = "RUN", conflicts_with_all = ["metric", "against", "output"])]
    pub reference: Option<PathBuf>,
    /// Show the coefficients of regressions side by side, in the units of the data; models, priors and data may differ
    #[arg(long, conflicts_with_all = ["reference", "metric", "against", "each_run"])]
    pub coefficients: bool,
    /// The share of the posterior in the intervals of coefficients [default: 0.9]
    #[arg(long, value_name = "SHARE", value_parser = interval, requires = "coefficients")]
    pub interval: Option<f64>,
    /// Which interval with this share [default: quantile]
    #[arg(long, value_enum, requires = "coefficients")]
    pub kind: Option<IntervalKind>,
    /// Give the coefficient for a change of a column by this many of its units, such as `age=10`; can be repeated
    #[arg(long, value_name = "COLUMN=UNITS", value_parser = per, requires = "coefficients")]
    pub per: Vec<Per>,
    /// Also show the effects of single groups
    #[arg(long, requires = "coefficients")]
    pub all: bool,
    /// Draw only this term of coefficients, such as `clinic` or `clinic[West]`; can be repeated
    #[arg(long, value_name = "TERM", requires_all = ["coefficients", "output"])]
    pub parameter: Vec<String>,
    /// Draw accuracy by confidence, with one curve for all runs that differ only in the seed
    #[arg(long, conflicts_with_all = ["reference", "coefficients", "metric", "against"], requires = "output")]
    pub reliability: bool,
    /// The metric to draw [default: the first of accuracy, rmse, perplexity and log_likelihood that a run has]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// The horizontal axis of the figure [default: round; seconds if a round of one run is more work than one of another]
    #[arg(long, value_name = "AXIS")]
    pub against: Option<Axis>,
    /// Draw into this file: the metric, or what --coefficients or --reliability compares. A name without .svg or .png makes both
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Size and formats.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The band around a mean.
    #[command(flatten)]
    pub band: BandArgs,
    /// List each run, instead of mean and standard deviation over the runs that differ only in the seed
    #[arg(long, conflicts_with_all = ["json", "csv", "reference"])]
    pub each_run: bool,
    /// Print the table as JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the table as CSV, with a line for each run
    #[arg(long)]
    pub csv: bool,
}

/// Prints the coefficients of the runs side by side, and draws their figure.
fn compare_coefficients(args: &CompareArgs, comparison: &Comparison, runs: &[RunResults]) -> anyhow::Result<()> {
    let interval = Interval::chosen(args.interval, args.kind);
    let options = CoefficientOptions { interval, per: args.per.clone(), ..CoefficientOptions::default() };
    let named = comparison.runs.iter().map(|entry| entry.run.as_str()).zip(runs);
    let read = CoefficientsOfRun::read(named, &options)?;
    let text = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&read)? + "\n",
        (_, true) => side_by_side::csv(&read)?,
        _ => side_by_side::table(&read, args.all),
    };
    let draw = |output: &PathBuf| drawing::draw_coefficients(comparison, &read, &args.parameter, args.all, &args.picture, output);
    let notes = args.output.as_ref().map(draw).transpose()?.unwrap_or_default();
    print(&text).context("cannot print the coefficients")?;
    report(&notes);
    Ok(())
}

/// Prints notes on standard error: standard output may be a table for another program.
fn report(notes: &[String]) {
    notes.iter().for_each(|note| eprintln!("mpibayes: {note}"));
}

/// Draws a metric, and returns what to report about it.
fn draw_metric(args: &CompareArgs, comparison: &Comparison, runs: &[RunResults], output: &Path) -> anyhow::Result<Vec<String>> {
    let axis = args.against.map_or_else(|| comparison.default_axis(), XAxis::from);
    if args.against.is_none() && axis == XAxis::Seconds {
        eprintln!("mpibayes: drawn against time, because rounds of these runs are not the same amount of work: see --against");
    }
    drawing::draw_comparison(comparison, runs, args.metric.as_deref(), axis, args.band.band, &args.picture, output)
}

/// Prints the table, and draws the figure.
///
/// # Errors
/// When there is no such run, no run has the metric, or a file cannot be written.
pub fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    args.picture.check(args.output.as_deref())?;
    let SeveralRuns { paths, results: runs } = SeveralRuns::open(&args.runs)?;
    ensure!(
        args.runs.len() > 1 || runs.len() > 1 || args.reference.is_some(),
        "one run is nothing to compare: give another one, or --reference RUN to compare posteriors"
    );
    let comparison = Comparison::of(&paths, &runs)?;
    for entry in comparison.runs.iter().filter(|entry| !entry.finished) {
        eprintln!(
            "mpibayes: {}: this run is not finished: its results so far are compared, but do not enter means over finished runs",
            entry.run
        );
    }
    if let Some(metric) = &args.metric {
        comparison.check_metric(&runs, metric)?;
    }
    if args.coefficients {
        compare_coefficients(args, &comparison, &runs)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(reference) = &args.reference {
        let names = comparison.runs.iter().map(|entry| entry.run.as_str());
        let name = reference.display().to_string();
        let results = RunResults::open(reference)?;
        if !results.file.info().state.finished {
            eprintln!("mpibayes: {name}: this run is not finished: its results so far are compared");
        }
        let reference = Reference::read(&results)?;
        let mut compared = Vec::new();
        for (name, run) in names.zip(&runs) {
            match run.file.has_posterior()? || runs.len() == 1 {
                true => compared.push((name, run)),
                false => eprintln!("mpibayes: left out: {name}: it has no draws of a posterior"),
            }
        }
        let agreements = Agreement::of(compared, &reference)?;
        let text = match (args.json, args.csv) {
            (true, _) => serde_json::to_string_pretty(&agreements)? + "\n",
            (_, true) => agreement::csv(&agreements)?,
            _ => agreement::table(&agreements, &name, &reference),
        };
        print(&text).context("cannot print the comparison")?;
        return Ok(ExitCode::SUCCESS);
    }
    let table = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&comparison)? + "\n",
        (_, true) => comparison.csv()?,
        _ if args.output.is_none() && !comparison.metrics.is_empty() => {
            comparison.table(args.each_run) + "\n  --output FILE.svg draws a figure\n"
        }
        _ => comparison.table(args.each_run),
    };
    match &args.output {
        // Drawn before the table is printed, so that a failure prints nothing but its error.
        Some(output) => {
            let notes = match args.reliability {
                true => drawing::draw_reliability(&comparison, &runs, &args.picture, output)?,
                false => draw_metric(args, &comparison, &runs, output)?,
            };
            print(&table).context("cannot print the comparison")?;
            report(&notes);
        }
        None => print(&table).context("cannot print the comparison")?,
    }
    Ok(ExitCode::SUCCESS)
}
