//! `mpibayes judge`: judges the draws that a run has so far.

use super::job_args::JobArgs;
use super::output::print;
use super::run::{exit_code, launch};
use crate::config::{Registry, Run, RunOf};
use crate::job::{JobError, Ranks, TEMPERATURE, measure_draws_so_far, with_draws_to_judge};
use crate::methods::Table;
use crate::methods::common::full_scores::SCORES;
use crate::report::RunResults;
use crate::report::judged_draws::JudgedDraws;
use crate::results::RunFolder;
use std::cell::Cell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  mpibayes judge runs/my                                   # while the run goes on, or after it was stopped
  mpirun -n 8 mpibayes judge runs/my --strict              # with eight ranks; exit code 3 if the draws should not be used";

/// Arguments of `mpibayes judge`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct JudgeArgs {
    /// The folder of the run, or its result file
    pub run: PathBuf,
    /// Show every parameter of the posterior, not only some
    #[arg(long)]
    pub all: bool,
    /// Print JSON with all parameters
    #[arg(long)]
    pub json: bool,
    /// End with exit code 3 also if the chains have not mixed or the draws are biased, not only if they diverged
    #[arg(long)]
    pub strict: bool,
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
}

/// Judges the draws.
///
/// # Errors
/// On a single process, anything that is wrong with the run or its data. With several ranks errors are printed.
pub fn run(args: &JudgeArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    args.job.begin(None);
    // Rank 0 opens the file once: a run that goes on may replace it at any time.
    let opened = Cell::new(None);
    let read = || {
        let results = RunResults::open(&args.run)?;
        let run = Run::from_toml(&results.file.info().config, registry)?;
        opened.set(Some(results));
        Ok(run)
    };
    // Nothing is saved, so no folder keeps a note of what ends this job.
    launch(registry, None, &args.job, read, |run, ranks| carry_out(run, opened.take(), ranks, args))
}

fn carry_out(run: &Run, mut results: Option<RunResults>, ranks: &Ranks, args: &JudgeArgs) -> Result<ExitCode, JobError> {
    let run = ranks.agree(with_draws_to_judge(run, results.as_ref().map(|results| &results.file)))?;
    let is_measured = results.as_ref().is_some_and(|results| is_measured(run, results));
    if ranks.broadcast(&[u8::from(is_measured)]) != [1] {
        // Only rank 0 reads it, and nothing is saved: the folder belongs to the job that carries out the run.
        let path = results.as_ref().and_then(|results| results.path.parent()).unwrap_or(&args.run);
        let mut folder = RunFolder::new(path, Duration::MAX, args.job.reporting());
        let measured = measure_draws_so_far(run, results.as_ref().map(|results| &results.file), ranks, &mut folder)?;
        if let Some(results) = &mut results {
            results.file.add_arrays(measured);
        }
    }
    let judged = results.map(|results| JudgedDraws::of(&results, args.all || args.json)).transpose();
    let judged = judged.map_err(|error| JobError::Judgment(error.to_string()));
    let Some(Some(judged)) = ranks.agree(judged)? else { return Ok(ExitCode::SUCCESS) };
    let text = match args.json {
        true => serde_json::to_string_pretty(&judged).map_err(|error| JobError::Judgment(error.to_string()))? + "\n",
        false => judged.text(args.all),
    };
    print(&text).map_err(|error| JobError::Output(format!("cannot print the judgment: {error}")))?;
    Ok(judged.judgment.map_or(ExitCode::SUCCESS, |judgment| exit_code(&judgment, args.strict)))
}

/// Whether the run has measured its draws, as far as they can be measured.
fn is_measured(run: &RunOf<Table>, RunResults { file, .. }: &RunResults) -> bool {
    file.has(SCORES) || file.has(TEMPERATURE) || file.info().state.finished && run.evaluate.bias
}
