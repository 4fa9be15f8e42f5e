//! `mpibayes recalibrate`: moves the draws of a finished run to the mean and the covariance of the posterior.

use super::job_args::JobArgs;
use super::run::{judgment_of, launch};
use crate::config::{Registry, Run};
use crate::job::{JobError, RECALIBRATION, Ranks, recalibrate};
use crate::metrics::recalibration::Recalibration;
use crate::report::RunResults;
use crate::report::judgment::JudgmentOutcome;
use crate::report::trajectories::Trajectories;
use crate::results::{RunFolder, existing_run};
use anyhow::{Context as _, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  mpirun -n 8 mpibayes recalibrate runs/my                 # into runs/my-recalibrated";

/// Arguments of `mpibayes recalibrate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RecalibrateArgs {
    /// The folder of a finished run
    #[arg(value_name = "RUN")]
    pub folder: PathBuf,
    /// The folder for the moved draws [default: RUN-recalibrated]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
}

/// Recalibrates the draws.
///
/// # Errors
/// On a single process, anything that is wrong with the run, its data or the folder, or the reason why the draws are better left as they
/// are. With several ranks errors are printed.
pub fn run(args: &RecalibrateArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    args.job.begin(None);
    let output = output(args)?;
    let read = || read(&args.folder, &output, registry);
    launch(registry, Some(&output), &args.job, read, |run, ranks| carry_out(run, &args.folder, &output, ranks, &args.job))
}

/// The folder for the moved draws.
fn output(args: &RecalibrateArgs) -> anyhow::Result<PathBuf> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let name = args.folder.file_name().context("the folder of the run has no name, so that of the moved draws needs --output")?;
    let mut name = name.to_owned();
    name.push("-recalibrated");
    Ok(args.folder.with_file_name(name))
}

/// The run, if its draws can and need to be moved.
fn read(folder: &Path, output: &Path, registry: &Registry) -> anyhow::Result<Run> {
    ensure!(!folder.is_file(), "{}: this is a file: name the folder of the run", folder.display());
    ensure!(
        !existing_run(output)?.is_some_and(|kept| kept.holds_results),
        "{} holds a run already: choose another --output, or delete it",
        output.display()
    );
    let results = RunResults::open(folder)?;
    ensure!(results.is_finished(), "{}: the run is not finished. `mpibayes resume {0}` resumes it", folder.display());
    ensure!(!results.file.has(RECALIBRATION), "{}: these draws were recalibrated already", folder.display());
    let run = Run::from_toml(&results.file.info().config, registry)?;
    ensure!(matches!(run, Run::Table(_)), "cannot recalibrate: topics have no common coordinates");
    ensure!(
        Trajectories::of(&results.file)?.is_none(),
        "nothing to recalibrate: the steps of {} have no bias. Take a longer run, or a method.acceptance closer to 1 if trajectories diverged",
        results.file.info().method
    );
    let Some(judgment) = judgment_of(folder)? else { bail!("{}: the run has no draws of a posterior", folder.display()) };
    match judgment.outcome {
        JudgmentOutcome::Diverged | JudgmentOutcome::NotMixed | JudgmentOutcome::Predictions => {
            bail!("cannot recalibrate: the run is {}", judgment.text)
        }
        JudgmentOutcome::Right => bail!("nothing to recalibrate: the run is {}", judgment.text),
        JudgmentOutcome::Biased | JudgmentOutcome::Undecided | JudgmentOutcome::Unknown => {}
    }
    Ok(run)
}

fn carry_out(run: &Run, from: &Path, output: &Path, ranks: &Ranks, job: &JobArgs) -> Result<ExitCode, JobError> {
    let mut folder = RunFolder::new(output, Duration::MAX, job.reporting());
    let open = || RunResults::open(from).map_err(|error| JobError::Recalibration(error.to_string()));
    let results = ranks.agree(ranks.is_root().then(open).transpose())?;
    let moved = recalibrate(run, results.as_ref().map(|results| &results.file), ranks, &mut folder)?;
    if let Some(moved) = moved {
        folder.print_message(&description(&moved));
        if let Ok(Some(judgment)) = judgment_of(output) {
            folder.print_message(&judgment.text);
        }
        folder.print_message(&format!("written to {0}; see it with `mpibayes summary {0}`", output.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// How draws were moved, in one line.
fn description(moved: &Recalibration) -> String {
    let Recalibration { rounds, sd_ratios, shifts, checked, .. } = moved;
    let (least, largest) =
        sd_ratios.iter().fold((f64::INFINITY, 0.0_f64), |(least, largest), &ratio| (least.min(ratio), largest.max(ratio)));
    let shift = shifts.iter().fold(0.0_f64, |largest, shift| largest.max(shift.abs()));
    let gradients = (rounds + 2) * checked.draws.nrows();
    format!(
        "moved the draws: sds were {least:.2} to {largest:.2} times what they are now, means up to {shift:.2} sds off ({gradients} gradients \
         of all rows)"
    )
}
