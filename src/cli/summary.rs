//! `mpibayes summary`: the results of a run, as text, as JSON, or a single metric.

use super::import::share;
use super::output::print;
use crate::report::RunResults;
use crate::report::coefficients::{Interval, IntervalKind};
use crate::report::summary::Summary;
use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes summary runs/first
  mpibayes summary runs/first --interval 0.95 --kind hdi
  mpibayes summary runs/first --json > first.json
  mpibayes summary runs/first --get accuracy";

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
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "get")]
    pub interval: Option<f64>,
    /// Which interval with this share [default: quantile]
    #[arg(long, value_enum, conflicts_with = "get")]
    pub kind: Option<IntervalKind>,
    /// Print only this final metric, such as accuracy, log_likelihood or ece
    #[arg(long, value_name = "METRIC")]
    pub get: Option<String>,
}

/// Prints the summary.
///
/// # Errors
/// When there is no such run, its results cannot be read, or it has no such metric.
pub fn run(args: &SummaryArgs) -> anyhow::Result<ExitCode> {
    let interval = Interval::chosen(args.interval, args.kind);
    let summary = Summary::with_interval(&RunResults::open(&args.run)?, args.all, interval)?;
    let text = match &args.get {
        _ if args.json => serde_json::to_string_pretty(&summary)? + "\n",
        Some(name) => summary.metric(name)? + "\n",
        None => summary.text(args.all),
    };
    print(&text).context("cannot print the summary")?;
    Ok(ExitCode::SUCCESS)
}
