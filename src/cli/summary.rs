//! `mpibayes summary`: the results of a run, as text, as JSON, or a single metric.

use super::import::interval;
use super::output::print;
use super::output_file::{self, Content};
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::report::coefficients::{CoefficientOptions, Interval, IntervalKind, Per};
use crate::report::operation::Operation;
use crate::report::summary::Summary;
use crate::text;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes summary runs/first
  mpibayes summary runs/first --interval 0.95 --kind hdi
  mpibayes summary runs/first --per age=10 --per income=1000
  mpibayes summary runs/first --draws coefficients.csv
  mpibayes summary runs/first --json > first.json
  mpibayes summary runs/first --rounds
  mpibayes summary runs/first --ranks
  mpibayes summary runs/first --get accuracy
  mpibayes summary runs/first --get judgment               # right, undecided, biased, ...";

/// Arguments of `mpibayes summary`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SummaryArgs {
    /// The folder of a run, or its result file
    pub run: PathBuf,
    /// Print JSON with all rows of all tables
    #[arg(long, conflicts_with = "get")]
    pub json: bool,
    /// Assess and show every parameter of the posterior, not only the worst ones
    #[arg(long, conflicts_with = "get")]
    pub all: bool,
    /// The share of the posterior in the intervals of coefficients [default: 0.9]
    #[arg(long, value_name = "SHARE", value_parser = interval, conflicts_with = "get")]
    pub interval: Option<f64>,
    /// Which interval with this share [default: quantile]
    #[arg(long, value_enum, conflicts_with = "get")]
    pub kind: Option<IntervalKind>,
    /// Give the coefficient for a change of a column by this many of its units, such as `age=10`; can be repeated
    #[arg(long, value_name = "COLUMN=UNITS", value_parser = per, conflicts_with = "get")]
    pub per: Vec<Per>,
    /// Also write the draws of all coefficients in the units of the data into this file, with the chain and the number of each draw
    #[arg(long, value_name = "FILE.csv", conflicts_with = "get")]
    pub draws: Option<PathBuf>,
    /// Replace the file of --draws if it exists
    #[arg(short, long, requires = "draws")]
    pub force: bool,
    /// Show metrics and history by round, and what agents received and sent
    #[arg(long, conflicts_with_all = ["json", "get", "all", "interval", "kind", "per", "draws", "ranks"])]
    pub rounds: bool,
    /// Show how the run was carried out: what each rank did with its time, messages, what saving took, and what happened
    #[arg(long, conflicts_with_all = ["json", "get", "all", "interval", "kind", "per", "draws"])]
    pub ranks: bool,
    /// Print only this final metric, such as accuracy, log_likelihood or ece; or `judgment`: whether the draws can be used
    /// (`none` if there are no draws)
    #[arg(long, value_name = "METRIC")]
    pub get: Option<String>,
}

fn write_draws(summary: &Summary, path: &Path, args: &SummaryArgs) -> anyhow::Result<()> {
    let place = || format!("{}: cannot write", path.display());
    let Some(coefficients) = &summary.coefficients else {
        bail!("--draws: this run has no coefficients in the units of the data; its result file has all draws")
    };
    output_file::check(path, Content::Text, args.force, [args.run.as_path()])?;
    let partial = PartialFile::new(path);
    coefficients.write_draws(File::create(partial.path()).with_context(place)?).with_context(place)?;
    partial.commit().with_context(place)?;
    eprintln!("mpibayes: draws of {} in {}", text::counted(coefficients.rows.len(), "coefficient"), path.display());
    Ok(())
}

/// A column and a number of its units.
pub(super) fn per(typed: &str) -> Result<Per, String> {
    let parts = typed.rsplit_once('=').map(|(column, units)| (column.trim(), units.trim().parse::<f64>()));
    match parts {
        Some((column, Ok(units))) if !column.is_empty() && units.is_finite() && units > 0.0 => {
            Ok(Per { column: column.to_owned(), units })
        }
        _ => Err("give a column and a positive number of its units, such as age=10".into()),
    }
}

/// Prints the summary.
///
/// # Errors
/// When there is no such run, its results cannot be read, or it has no such metric.
pub fn run(args: &SummaryArgs) -> anyhow::Result<ExitCode> {
    let results = RunResults::open(&args.run)?;
    if args.ranks {
        print(&Operation::of(&results)?.text()).context("cannot print the summary")?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = CoefficientOptions {
        interval: Interval::chosen(args.interval, args.kind),
        per: args.per.clone(),
        draws: args.draws.is_some(),
        ..CoefficientOptions::default()
    };
    let summary = Summary::with_coefficients(&results, args.all, &options)?;
    ensure!(
        args.per.is_empty() || summary.coefficients.is_some(),
        "--per: this run has no coefficients in the units of the data"
    );
    if let Some(path) = &args.draws {
        write_draws(&summary, path, args)?;
    }
    let text = match &args.get {
        _ if args.json => serde_json::to_string_pretty(&summary)? + "\n",
        Some(name) => summary.metric(name)? + "\n",
        None if args.rounds => summary.rounds_text(),
        None => summary.text(args.all),
    };
    print(&text).context("cannot print the summary")?;
    Ok(ExitCode::SUCCESS)
}
