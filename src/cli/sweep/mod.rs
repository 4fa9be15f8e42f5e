//! `mpibayes sweep`: carries out a grid of runs, alone or on all ranks of a job, and collects their results in one table.

mod planned;
mod state;
mod table;
mod task_share;

use self::planned::{Ended, PlannedRun};
use self::state::SweepState;
use self::table::ResultTable;
use self::task_share::{TaskShare, parse_task, share_in_array};
use super::exit_codes::STOPPED;
use super::job_args::{JobArgs, TimeLimit};
use super::output::{print, print_error};
use super::run::parse_override;
use super::termination::{self, CurrentRun, JobKind};
use crate::cluster::mpi::World;
use crate::config::{ConfigError, Override, Registry, Run, RunFile, sweep};
use crate::job::{JobError, Ranks, notes_on_placement, start, threads_of};
use crate::results::{self, EventKind, Reporting, RunFolder};
use anyhow::{anyhow, ensure};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLE: &str = "\
A sweep file is a run file with a [sweep] table. Its keys are those of --set, its values are lists:

  [sweep]
  method = [{ name = \"svgd\" }, { name = \"dsvgd\", local_steps = 100 }]
  seed = [1, 2, 3]

These are 6 runs, each in its own folder, such as runs/FILE/method=svgd,seed=1. The same command resumes an interrupted sweep. \
The tasks of a Slurm job array share the runs; --collect writes the table afterwards.

Examples:
  mpirun -n 8 mpibayes sweep my.toml
  mpibayes sweep my.toml --list
  mpibayes compare runs/my";

/// Arguments of `mpibayes sweep`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLE)]
pub struct SweepArgs {
    /// The run file with a [sweep]
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Replace a value that does not vary, such as --set method.rounds=20. Can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// The folder of the sweep, with a folder for each run [default: runs/NAME for NAME.toml]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only list the runs and their states
    #[arg(long, conflicts_with_all = ["task", "collect", "csv"])]
    pub list: bool,
    /// Carry out only every M-th run, starting at the N-th [default: all runs; in a Slurm job array, the share of the task]
    #[arg(long, value_name = "N/M", value_parser = parse_task, conflicts_with_all = ["collect", "csv"])]
    pub task: Option<TaskShare>,
    /// Run nothing: write the table of the finished runs, and list the missing ones (exit code 1 if any is missing)
    #[arg(long)]
    pub collect: bool,
    /// The table [default: DIR/sweep.csv]
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// The time limit.
    #[command(flatten)]
    pub limit: TimeLimit,
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
}

/// Runs the sweep, lists it, or gathers its table.
///
/// # Errors
/// If the file is wrong or the table cannot be written. In a single process, a run that fails is reported and the others continue. Under MPI, a
/// fault ends the job, and errors are printed here.
pub fn run(args: &SweepArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let looks_only = args.list || args.collect;
    if looks_only && !World::is_primary() {
        return Ok(ExitCode::SUCCESS);
    }
    args.job.begin((!looks_only).then_some(&args.limit));
    let mut world = if looks_only { None } else { args.job.start_mpi()? };
    let Some(world) = &mut world else { return alone(args, registry) };
    let current = CurrentRun::new(None);
    args.job.watch(world, &current, JobKind::Sweep);
    let is_root = world.rank() == 0;
    // Rank 0 reads the file and looks for finished runs: a shared file system may show the others an older state.
    let read = || -> anyhow::Result<_> {
        let mut state = open(args)?;
        let plan = state.plan(registry)?;
        let text = serde_json::to_vec(&plan)?;
        Ok((state, text))
    };
    let mut state = None;
    let mine = if is_root {
        read().map_err(|error| format!("{error:#}")).map(|(opened, text)| {
            state = Some(opened);
            text
        })
    } else {
        Ok(Vec::new())
    };
    let code = match world.agree(mine) {
        Err(error) => {
            if is_root {
                print_error(&anyhow!(error));
            }
            ExitCode::FAILURE
        }
        Ok(text) => {
            let text = world.broadcast_bytes(is_root.then_some(text));
            let done = serde_json::from_slice(&text).map_err(anyhow::Error::from);
            let done = done.and_then(|plan: Vec<PlannedRun>| {
                run_all(&plan, state.as_mut(), registry, &Ranks::Mpi(world), &args.folder()?, &current)
            });
            termination::end();
            done.unwrap_or_else(|error| {
                // One rank that leaves alone would keep the others waiting.
                print_error(&anyhow!("rank {}: {error:#}", world.rank()));
                world.abort(1)
            })
        }
    };
    drop(world.agree(Ok(())));
    Ok(if is_root { code } else { ExitCode::SUCCESS })
}

fn alone(args: &SweepArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let mut state = open(args)?;
    if args.list {
        print(&state.list(registry)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.collect {
        let (said, is_complete) = state.collect(registry)?;
        print(&said)?;
        return Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let plan = state.plan(registry)?;
    let folder = args.folder()?;
    let code = run_all(&plan, Some(&mut state), registry, &Ranks::One, &folder, &CurrentRun::new(None))?;
    if code == ExitCode::FAILURE {
        // A failed run may have left threads running.
        crate::cluster::end_process(1);
    }
    Ok(code)
}

impl SweepArgs {
    fn folder(&self) -> anyhow::Result<PathBuf> {
        super::run::output(self.output.as_deref(), &self.file)
    }
}

/// Reads the file of the sweep.
fn open(args: &SweepArgs) -> anyhow::Result<SweepState> {
    let typed = RunFile::read(&args.file, &args.set)?;
    let sweep = sweep::grid(&typed).map_err(ConfigError::Problems)?;
    let folder = args.folder()?;
    refuse_folder_of_run(&folder)?;
    let share = match (args.task, args.list || args.collect) {
        (Some(task), _) => Some(task),
        (None, true) => None,
        (None, false) => share_in_array(|name| std::env::var(name).ok()?.parse().ok())?,
    };
    ensure!(
        share.is_none() || args.csv.is_none(),
        "--csv has no effect in a task of a job array, which writes no table: give it to --collect"
    );
    let table = ResultTable::new(args.csv.clone().unwrap_or_else(|| folder.join("sweep.csv")), !args.list)?;
    Ok(SweepState { sweep, folder, share, reporting: args.job.reporting(), table, left_to_other_jobs: 0, unreadable: 0 })
}

/// Refuses a folder that cannot hold the runs of a sweep, because it is that of a run.
pub(super) fn refuse_folder_of_run(folder: &Path) -> anyhow::Result<()> {
    ensure!(
        !results::config_file(folder).exists(),
        "{}: this is the folder of a run, not of a sweep: choose another --output",
        folder.display()
    );
    Ok(())
}

/// Carries out the runs one after another, on all ranks together. Rank 0 passes the state of the sweep.
fn run_all(
    plan: &[PlannedRun],
    mut state: Option<&mut SweepState>,
    registry: &Registry,
    ranks: &Ranks,
    folder: &Path,
    current: &CurrentRun,
) -> anyhow::Result<ExitCode> {
    if let Some(first) = plan.first() {
        let threads = threads_of(Run::from_toml(&first.config, registry)?.cluster().threads, ranks);
        let notes = notes_on_placement(ranks, threads);
        state.iter().for_each(|state| notes.iter().for_each(|note| state.reporting.print(note)));
    }
    let mut failed = Vec::new();
    for run in plan {
        current.set(folder.join(&run.name));
        // All ranks stop before the same run.
        if ranks.broadcast(&[u8::from(results::asked_to_stop())]) == [1] {
            state.iter().for_each(|state| state.report_stop_before(run));
            return Ok(ExitCode::from(STOPPED));
        }
        if let Some(state) = &mut state {
            state.mark_started(run)?;
        }
        let reporting = state.as_ref().map_or(Reporting::Quiet, |state| state.reporting_of(run));
        let ended = run_one(run, registry, ranks, folder, reporting)?;
        if let Some(state) = &mut state {
            state.record_end(run, &ended)?;
        }
        match ended {
            Ended::Finished => {}
            Ended::Stopped => return Ok(ExitCode::from(STOPPED)),
            Ended::Failed(_) => failed.push(run.name.as_str()),
        }
    }
    let Some(state) = state else { return Ok(ExitCode::SUCCESS) };
    state.report_summary(plan.len(), &failed)?;
    Ok(if !failed.is_empty() || state.unreadable > 0 {
        ExitCode::FAILURE
    } else if state.left_to_other_jobs > 0 {
        ExitCode::from(STOPPED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Carries out one run. An error that all ranks know fails this run only; an error of this rank alone ends the job.
fn run_one(run: &PlannedRun, registry: &Registry, ranks: &Ranks, folder: &Path, reporting: Reporting) -> anyhow::Result<Ended> {
    let validated = Run::from_toml(&run.config, registry)?;
    let every = Duration::try_from_secs_f64(validated.cluster().checkpoint_every).unwrap_or(Duration::MAX);
    let mut folder = RunFolder::new(&folder.join(&run.name), every, reporting);
    let outcome = start(&validated, registry, ranks, &mut folder);
    // With several ranks, a fault ends the job, and is noted before.
    if let (Err(JobError::Fault(fault)), Ranks::One) = (&outcome, ranks) {
        folder.note(EventKind::Failed, &fault.to_string());
    }
    match (outcome, ranks) {
        (Ok(()), _) => {
            let stopped = ranks.broadcast(&[u8::from(folder.was_stopped())]) == [1];
            Ok(if stopped { Ended::Stopped } else { Ended::Finished })
        }
        (Err(error @ JobError::OnSomeRank(_)), _) | (Err(error), Ranks::One) => Ok(Ended::Failed(error.to_string())),
        // The other ranks may still be at work.
        (Err(error), Ranks::Mpi(_) | Ranks::Virtual(_)) => Err(anyhow!("{}: {error}", run.name)),
    }
}
