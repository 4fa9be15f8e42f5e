//! `mpibayes run`: starts or resumes the run that a run file describes.

use super::exit_codes::{STOPPED, UNUSABLE};
use super::job_args::{JobArgs, TimeLimit};
use super::output::print_error;
use super::output_file;
use super::termination::{self, CurrentRun, JobKind};
use crate::cluster::{Timeline, placement};
use crate::config::{ConfigError, Override, Registry, Run, RunFile};
use crate::job::{JobError, Ranks, check, start, with_extended_length};
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::report::judged_draws::JudgedDraws;
use crate::report::judgment::{Judgment, JudgmentOutcome};
use crate::results::RunFolder;
use anyhow::{Context as _, anyhow};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  mpibayes run my.toml                                     # in one process, with a thread for each core
  mpirun -n 8 mpibayes run my.toml --output runs/my        # with eight ranks
  mpibayes run my.toml --set seed=2 --set method.rounds=20 # with other values
  mpibayes run my.toml                                     # again: resumes a run that was stopped or killed";

/// Arguments of `mpibayes run`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// The run file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Replace a value of the run file, such as --set method.rounds=20. Can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// The folder for results and checkpoints [default: runs/NAME for NAME.toml]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// How one run is carried out.
    #[command(flatten)]
    pub one: OneRunArgs,
}

/// Arguments of commands that carry out one run.
#[derive(clap::Args, Debug)]
pub struct OneRunArgs {
    /// End with exit code 3 also if the chains have not mixed or the draws are biased, not only if they diverged
    #[arg(long)]
    pub strict: bool,
    /// Write what each thread of each rank does when, for ui.perfetto.dev or Chrome's tracing page
    #[arg(long, value_name = "FILE.json")]
    pub timeline: Option<PathBuf>,
    /// The time limit.
    #[command(flatten)]
    pub limit: TimeLimit,
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
}

/// The folder of a run: the given one, or one named after the run file.
pub(super) fn output(typed: Option<&Path>, file: &Path) -> anyhow::Result<PathBuf> {
    match typed {
        Some(output) => Ok(output.to_owned()),
        None => Ok(Path::new("runs")
            .join(file.file_stem().context("the run file has no name, so the folder of the run needs --output")?)),
    }
}

/// Parses the argument of `--set`.
pub(super) fn parse_override(typed: &str) -> Result<Override, String> {
    Override::parse(typed).ok_or_else(|| "write key=value, such as seed=2".into())
}

/// Carries out the run.
///
/// # Errors
/// On a single process, anything that is wrong with the run file, the data or the folder, or that ended the run. With several ranks
/// errors are printed here.
pub fn run(args: &RunArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    args.one.job.begin(Some(&args.one.limit));
    let output = output(args.output.as_deref(), &args.file)?;
    let read = || Ok(with_extended_length(read(args, registry)?, &output, registry)?);
    launch(registry, Some(&output), &args.one.job, read, |run, ranks| carry_out(run, registry, ranks, &output, &args.one))
}

/// Reads the run with `read` on rank 0, sends it to all ranks, and calls `carry_out` on each. If the job saves a run in `folder`,
/// that folder keeps a note of what ends the job early.
///
/// # Errors
/// On a single process, anything that is wrong. With several ranks errors are printed here.
pub(super) fn launch(
    registry: &Registry,
    folder: Option<&Path>,
    job: &JobArgs,
    read: impl FnOnce() -> anyhow::Result<Run>,
    carry_out: impl FnOnce(&Run, &Ranks) -> Result<ExitCode, JobError>,
) -> anyhow::Result<ExitCode> {
    let current = CurrentRun::new(folder);
    let Some(mut world) = job.start_mpi()? else {
        termination::note_faults(&current, JobKind::Run);
        let run = read()?;
        return match carry_out(&run, &Ranks::One) {
            Err(JobError::Fault(fault)) => fault.end_process(),
            other => Ok(other?),
        };
    };
    job.watch(&mut world, &current, JobKind::Run);
    // Rank 0 reads the file for all: the others might see another state of a shared file system, or none.
    let is_root = world.rank() == 0;
    let mut mine = None;
    let text = match is_root.then(read) {
        None => Ok(String::new()),
        Some(run) => run.and_then(|run| Ok(mine.insert(run).to_toml()?)).map_err(|error| format!("{error:#}")),
    };
    let outcome = world.agree(text).map_err(JobError::OnSomeRank).and_then(|text| {
        let text = world.broadcast_bytes(is_root.then(|| text.into_bytes()));
        let run = match mine {
            Some(run) => run,
            None => Run::from_toml(&String::from_utf8_lossy(&text), registry)?,
        };
        carry_out(&run, &Ranks::Mpi(&world))
    });
    let code = match outcome {
        Ok(code) => code,
        // All ranks know of it and leave together; one of them says so. The launcher may kill those that leave
        // last: `end` keeps them from reporting that.
        Err(error @ JobError::OnSomeRank(_)) => {
            termination::end();
            if is_root {
                print_error(&error.into());
            }
            ExitCode::FAILURE
        }
        // One rank that leaves alone would keep the others waiting.
        Err(error) => {
            print_error(&anyhow!("rank {}: {error}", world.rank()));
            world.abort(1)
        }
    };
    // Waits until rank 0 has written the results and its messages. Ending MPI would wait too, but with a busy core. Also, the exit code of
    // rank 0 is that of the job, and a launcher that sees another rank fail first might kill rank 0.
    drop(world.agree(Ok(())));
    Ok(if is_root { code } else { ExitCode::SUCCESS })
}

/// The run in the run file, after the same checks as `mpibayes check`.
fn read(args: &RunArgs, registry: &Registry) -> Result<Run, ConfigError> {
    let checked = check(&RunFile::read(&args.file, &args.set)?, registry);
    checked.map(|(run, _)| run).map_err(ConfigError::Problems)
}

/// Carries out the run to its end, or until it is stopped.
pub(super) fn carry_out(
    run: &Run,
    registry: &Registry,
    ranks: &Ranks,
    output: &Path,
    args: &OneRunArgs,
) -> Result<ExitCode, JobError> {
    let every = Duration::try_from_secs_f64(run.cluster().checkpoint_every).unwrap_or(Duration::MAX);
    let mut folder = RunFolder::new(output, every, args.job.reporting());
    if let Some(path) = &args.timeline {
        let is_writable =
            if ranks.is_root() { output_file::check_replaces_same_kind(path, Timeline::BEGIN, "a timeline") } else { Ok(()) };
        // Only rank 0 checks the file; if it fails, no rank may begin.
        ranks.agree(is_writable.map_err(|error| JobError::Output(format!("--timeline {error:#}"))))?;
        folder.keep_timeline(Arc::new(Timeline::new(ranks.count())));
    }
    start(run, registry, ranks, &mut folder)?;
    if let Some(path) = &args.timeline {
        write_timeline(path, ranks, &folder);
    }
    termination::end();
    if folder.was_stopped() {
        return Ok(ExitCode::from(STOPPED));
    }
    let judgment = match ranks.is_root().then(|| judgment_of(output)) {
        Some(Err(error)) => {
            folder.print_message(&format!("error: the results cannot be read: {error:#}"));
            return Ok(ExitCode::FAILURE);
        }
        Some(Ok(judgment)) => judgment,
        None => None,
    };
    let Some(judgment) = judgment else { return Ok(ExitCode::SUCCESS) };
    folder.print_message(&judgment.text);
    Ok(exit_code(&judgment, args.strict))
}

/// The exit code for draws with this judgment.
pub(super) fn exit_code(judgment: &Judgment, is_strict: bool) -> ExitCode {
    let fails = judgment.outcome == JudgmentOutcome::Diverged || is_strict && judgment.outcome.is_unusable();
    if fails { ExitCode::from(UNUSABLE) } else { ExitCode::SUCCESS }
}

/// The judgment of a finished run; none if it has no draws of a posterior.
pub(super) fn judgment_of(output: &Path) -> anyhow::Result<Option<Judgment>> {
    Ok(JudgedDraws::of(&RunResults::open(output)?, false)?.and_then(|judged| judged.judgment))
}

/// Writes the timeline of all ranks. Every rank calls this.
fn write_timeline(path: &Path, ranks: &Ranks, folder: &RunFolder) {
    let Some(timeline) = folder.timeline() else { return };
    let of_ranks = ranks.collect(&timeline.to_bytes(ranks.rank(), placement::host()));
    if !ranks.is_root() || timeline.is_empty() {
        return;
    }
    let written = || -> anyhow::Result<String> {
        let (json, cut) = Timeline::to_json(&of_ranks)?;
        let partial = PartialFile::new(path);
        std::fs::write(partial.path(), json).and_then(|()| partial.commit())?;
        let cut = match cut.first() {
            Some(rank) => format!(" (cut short: rank {rank} had more spans of time than are kept)"),
            None => String::new(),
        };
        Ok(format!("timeline in {}{cut}: open it at ui.perfetto.dev", path.display()))
    };
    match written() {
        Ok(text) => folder.print_message(&text),
        // The run itself is fine.
        Err(error) => folder.warn(&format!("{}: cannot write the timeline: {error:#}", path.display())),
    }
}
