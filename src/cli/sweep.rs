//! `mpibayes sweep`: carries out a grid of runs, alone or on all ranks of a job, and collects their results in one table.

use super::output::{print, print_error};
use super::run::{STOPPED, parse_override, reporting};
use super::termination::{self, CurrentRun, JobKind};
use crate::cluster::mpi::World;
use crate::config::sweep::{self, Sweep};
use crate::config::{ConfigError, Override, Registry, Run, RunFile};
use crate::job::{JobError, Ranks, check_sweep, notes_on_placement, start, threads_of};
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::report::summary::Summary;
use crate::results::{self, BYTES, HISTORY, METRICS, Reporting, ResultFile, RunFolder, Table, XAxis, config_file, result_file};
use crate::text;
use anyhow::{Context, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::IsTerminal;
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
    /// The folder in which the runs get their folders [default: runs/NAME for NAME.toml]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only list the runs and their states
    #[arg(long, conflicts_with_all = ["task", "collect", "csv"])]
    pub list: bool,
    /// Carry out only every M-th run, starting at the N-th [default: all; in a Slurm job array, the part of this task]
    #[arg(long, value_name = "N/M", value_parser = parse_part, conflicts_with_all = ["collect", "csv"])]
    pub task: Option<Part>,
    /// Run nothing: write the table of the finished runs, and list the missing ones
    #[arg(long)]
    pub collect: bool,
    /// The table [default: DIR/sweep.csv]
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// Under a launcher such as mpirun, add the host of rank 0 to each line of the log
    #[arg(long)]
    pub log_host: bool,
}

/// The part of a sweep that one job carries out: every `tasks`-th run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    task: usize,
    tasks: usize,
}

impl Part {
    fn has(self, number: usize) -> bool {
        number % self.tasks == self.task - 1
    }
}

fn parse_part(typed: &str) -> Result<Part, String> {
    let parts = typed.split_once('/').and_then(|(task, tasks)| Some((task.parse().ok()?, tasks.parse().ok()?)));
    match parts {
        Some((task, tasks)) if (1..=tasks).contains(&task) => Ok(Part { task, tasks }),
        _ => Err("write N/M with N from 1 to M, such as 2/8".into()),
    }
}

/// The part of this task of a Slurm job array; none outside of an array.
fn part_of_array(variable: impl Fn(&str) -> Option<usize>) -> anyhow::Result<Option<Part>> {
    let Some(id) = variable("SLURM_ARRAY_TASK_ID") else { return Ok(None) };
    let first = variable("SLURM_ARRAY_TASK_MIN").unwrap_or(id);
    let last = variable("SLURM_ARRAY_TASK_MAX").unwrap_or(id);
    let tasks = variable("SLURM_ARRAY_TASK_COUNT").unwrap_or(1);
    let step = variable("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
    let even =
        tasks > 0 && (first..=last).contains(&id) && (last - first) / step + 1 == tasks && (id - first).is_multiple_of(step);
    ensure!(
        even,
        "the tasks of this job array are not evenly numbered, so mpibayes cannot tell which runs are this one's: submit it with \
         --array=1-M, or give --task N/M"
    );
    Ok(Some(Part { task: (id - first) / step + 1, tasks }))
}

/// A run of a sweep as all ranks know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PlannedRun {
    /// From 0.
    number: usize,
    name: String,
    /// The validated run as TOML.
    config: String,
}

/// How a run of a sweep ended.
enum Ended {
    Finished,
    Stopped,
    Failed(String),
}

/// Runs the sweep, lists it, or gathers its table.
///
/// # Errors
/// If the file is wrong or the table cannot be written. A run that fails is reported; the others continue.
pub fn run(args: &SweepArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let looks_only = args.list || args.collect;
    if looks_only && !World::is_primary() {
        return Ok(ExitCode::SUCCESS);
    }
    results::listen();
    let world = if !looks_only && World::is_launched() { Some(World::start()?) } else { None };
    let Some(world) = &world else { return alone(args, registry) };
    let is_root = world.rank() == 0;
    let current = CurrentRun::new(None);
    termination::report_when_terminated(world, &current, JobKind::Sweep);
    // Rank 0 reads the file and looks for finished runs: a shared file system may show the others an older state.
    let read = || -> anyhow::Result<_> {
        let state = SweepState::open(args)?;
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
    let mut state = SweepState::open(args)?;
    if args.list {
        state.check_all(registry)?;
        print(&state.list())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.collect {
        return state.collect();
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
            return state.as_ref().map_or(Ok(ExitCode::from(STOPPED)), |state| state.stopped(run));
        }
        if let Some(state) = &mut state {
            state.begin(run)?;
        }
        let ended = run_one(run, registry, ranks, folder)?;
        if let Some(state) = &mut state {
            state.end(run, &ended)?;
        }
        match ended {
            Ended::Finished => {}
            Ended::Stopped => return Ok(ExitCode::from(STOPPED)),
            Ended::Failed(_) => failed.push(run.name.as_str()),
        }
    }
    let Some(state) = state else { return Ok(ExitCode::SUCCESS) };
    state.finish(plan.len(), &failed)?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Carries out one run. An error that all ranks know fails this run only; an error of this rank alone ends the job.
fn run_one(run: &PlannedRun, registry: &Registry, ranks: &Ranks, folder: &Path) -> anyhow::Result<Ended> {
    let validated = Run::from_toml(&run.config, registry)?;
    let every = Duration::try_from_secs_f64(validated.cluster().checkpoint_every).unwrap_or(Duration::MAX);
    // The lines of the runs would hide those of the sweep. A progress bar does not.
    let shows = World::is_primary() && std::io::stderr().is_terminal();
    let reporting = if shows { Reporting::Direct } else { Reporting::Quiet };
    let mut folder = RunFolder::new(&folder.join(&run.name), every, reporting);
    let outcome = start(&validated, registry, ranks, &mut folder);
    let stopped = ranks.broadcast(&[u8::from(folder.was_stopped())]) == [1];
    match (outcome, ranks) {
        (Ok(()), _) if stopped => Ok(Ended::Stopped),
        (Ok(()), _) => Ok(Ended::Finished),
        (Err(error @ JobError::OnSomeRank(_)), _) | (Err(error), Ranks::One) => Ok(Ended::Failed(error.to_string())),
        (Err(error), Ranks::Mpi(_) | Ranks::Virtual(_)) => Err(error.into()),
    }
}

/// The state of a sweep on rank 0: which runs are done, messages, the table of results.
struct SweepState {
    sweep: Sweep,
    folder: PathBuf,
    part: Option<Part>,
    csv: PathBuf,
    /// How messages are printed.
    reporting: Reporting,
    /// The rows of finished runs, by the number of the run.
    rows: BTreeMap<usize, Vec<Row>>,
    /// Names of columns, in the order in which they came.
    columns: Vec<String>,
}

/// The first column of the table.
const FIRST_COLUMN: &str = "run";

/// Checks that no other file is replaced by the table.
fn check_table(path: &Path) -> anyhow::Result<()> {
    let Ok(text) = std::fs::read(path) else {
        ensure!(!path.is_dir(), "{}: this is a folder: name a file for the table", path.display());
        return Ok(());
    };
    let is_table = text.is_empty() || text.starts_with(format!("{FIRST_COLUMN},").as_bytes());
    ensure!(
        is_table,
        "{}: this file is not the table of a sweep, so it is not replaced: give --csv another name",
        path.display()
    );
    Ok(())
}

/// A line of the table.
struct Row {
    step: u64,
    last: bool,
    values: Vec<(String, f64)>,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Finished,
    Begun,
    Failed(String),
    Missing,
}

impl SweepState {
    fn open(args: &SweepArgs) -> anyhow::Result<Self> {
        let typed = RunFile::read(&args.file, &args.set)?;
        let sweep = sweep::grid(&typed).map_err(ConfigError::Problems)?;
        let folder = args.folder()?;
        let part = match (args.task, args.list || args.collect) {
            (Some(task), _) => Some(task),
            (None, true) => None,
            (None, false) => part_of_array(|name| std::env::var(name).ok()?.parse().ok())?,
        };
        let csv = args.csv.clone().unwrap_or_else(|| folder.join("sweep.csv"));
        check_table(&csv)?;
        let reporting = reporting(args.log_host);
        Ok(Self { sweep, folder, part, csv, reporting, rows: BTreeMap::new(), columns: Vec::new() })
    }

    /// The file that marks a started or failed run, until the run is saved or finished.
    fn mark(&self, name: &str) -> PathBuf {
        self.folder.join("failed").join(format!("{name}.txt"))
    }

    fn state(&self, name: &str) -> State {
        let folder = self.folder.join(name);
        match std::fs::read_to_string(self.mark(name)) {
            // First: a folder may hold a finished run of other settings, which this one was refused for.
            Ok(why) => State::Failed(why.trim_end().to_owned()),
            // An unreadable file is reported when the run is started.
            Err(_) if results::is_finished(&folder).unwrap_or(false) => State::Finished,
            Err(_) if config_file(&folder).exists() => State::Begun,
            Err(_) => State::Missing,
        }
    }

    /// All runs, after the same checks as `mpibayes check`.
    fn check_all(&self, registry: &Registry) -> anyhow::Result<Vec<Run>> {
        let checked = check_sweep(&self.sweep, registry).map_err(ConfigError::Problems)?;
        Ok(checked.into_iter().map(|(run, _)| run).collect())
    }

    /// The runs of this job that are not finished, those that failed before last. All of them are checked before any begins.
    fn plan(&self, registry: &Registry) -> anyhow::Result<Vec<PlannedRun>> {
        let mut plan = Vec::new();
        let mut again = Vec::new();
        for (number, run) in self.check_all(registry)?.into_iter().enumerate() {
            let point = &self.sweep.points[number];
            let config = run.to_toml().map_err(|cause| anyhow!("{}: {cause}", point.name))?;
            if self.part.is_some_and(|share| !share.has(number)) {
                continue;
            }
            let planned = PlannedRun { number, name: point.name.clone(), config };
            match self.state(&point.name) {
                State::Failed(_) => again.push(planned),
                // A finished run is looked at too: it must be the one that is asked for.
                State::Finished | State::Begun | State::Missing => plan.push(planned),
            }
        }
        plan.append(&mut again);
        let part = self.part;
        let whose =
            part.map_or_else(String::new, |part| format!(", {} of them in task {}/{}", plan.len(), part.task, part.tasks));
        let all = text::counted(self.sweep.points.len(), "run");
        self.sweep.notes.iter().for_each(|note| eprintln!("mpibayes: note: {note}"));
        let keys = self.sweep.keys.join(", ");
        self.reporting.print(&format!("a sweep of {all} over {keys}{whose}, in {}", self.folder.display()));
        Ok(plan)
    }

    /// `3/12 method=dsvgd seed=2`.
    fn title(&self, run: &PlannedRun) -> String {
        format!("{}/{} {}", run.number + 1, self.sweep.points.len(), run.name.replace(',', " "))
    }

    /// Marks a run as started, so that the next job knows if this one died during it.
    fn begin(&self, run: &PlannedRun) -> anyhow::Result<()> {
        if self.state(&run.name) == State::Finished {
            return Ok(());
        }
        self.write_mark(&run.name, "the job ended during this run")
    }

    fn write_mark(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let mark = self.mark(name);
        let folder = mark.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create this folder", folder.display()))?;
        std::fs::write(&mark, format!("{text}\n")).with_context(|| format!("{}: cannot write", mark.display()))
    }

    fn end(&mut self, run: &PlannedRun, ended: &Ended) -> anyhow::Result<()> {
        let title = self.title(run);
        if let Ended::Failed(why) = ended {
            self.write_mark(&run.name, why)?;
            self.reporting.print(&format!("{title}: failed: {why}"));
            return Ok(());
        }
        let mark = self.mark(&run.name);
        match std::fs::remove_file(&mark) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                return Err(cause).with_context(|| format!("{}: cannot remove", mark.display()));
            }
            _ => {}
        }
        // Goes if nothing else is in it.
        drop(mark.parent().map(std::fs::remove_dir));
        if matches!(ended, Ended::Stopped) {
            return self.stopped(run).map(drop);
        }
        self.read_results(run.number)?;
        self.reporting.print(&format!("{title}: finished{}", self.headline(run)));
        // The tasks of an array would overwrite each other's tables.
        if self.part.is_none() { self.write_csv() } else { Ok(()) }
    }

    fn stopped(&self, run: &PlannedRun) -> anyhow::Result<ExitCode> {
        self.reporting.print(&format!("{}: stopped. The same command resumes it", self.title(run)));
        Ok(ExitCode::from(STOPPED))
    }

    fn finish(&self, runs: usize, failed: &[&str]) -> anyhow::Result<()> {
        let table = match self.part {
            Some(_) => "`mpibayes sweep FILE.toml --collect` writes the table".into(),
            None => self.csv.display().to_string(),
        };
        self.reporting.print(&format!("{} finished, {} failed; {table}", runs - failed.len(), failed.len()));
        for name in failed {
            self.reporting.print(&format!("failed: {name}"));
        }
        if self.part.is_none() && runs - failed.len() > 1 {
            self.reporting.print(&format!("`mpibayes compare {}` compares the runs", self.folder.display()));
        }
        if self.part.is_none() { self.write_csv() } else { Ok(()) }
    }

    /// The time, the accuracy or RMSE, and the judgment.
    fn headline(&self, run: &PlannedRun) -> String {
        let last = self.rows.get(&run.number).and_then(|rows| rows.last());
        let seconds = last.and_then(|row| row.values.iter().find(|value| value.0 == "seconds"));
        let mut text = seconds.map_or_else(String::new, |(_, seconds)| format!(" after {}", text::seconds(*seconds)));
        // A result file that cannot be read is reported elsewhere.
        let summary = RunResults::open(&self.folder.join(&run.name)).and_then(|run| Summary::of(&run, false));
        let Ok(summary) = summary else { return text };
        let metrics = summary.best_metrics();
        if let Some((name, value)) = metrics.iter().find(|(name, _)| ["accuracy", "rmse"].contains(&name.as_str())) {
            text.push_str(&format!(", {name} {}", text::value(*value)));
        }
        text + &summary.judgment.map_or_else(String::new, |judgment| format!("; draws: {}", judgment.outcome.name()))
    }

    /// Reads the results of a run.
    fn read_results(&mut self, number: usize) -> anyhow::Result<()> {
        let Some(point) = self.sweep.points.get(number) else { bail!("there is no run {number}") };
        let file = ResultFile::open(&result_file(&self.folder.join(&point.name)))?;
        let tables = file.tables()?;
        let table = |name: &str| tables.iter().any(|table| table == name).then(|| file.table(name)).transpose();
        let metrics = table(METRICS)?.unwrap_or_default();
        let mut rows = rows_of(&metrics);
        if let Some(bytes) = file.positions(&metrics, XAxis::Bytes)? {
            rows.iter_mut().zip(bytes).for_each(|(row, bytes)| row.values.push((BYTES.to_owned(), bytes)));
        }
        if rows.is_empty() {
            // Without test rows, the end of the history.
            rows.extend(table(HISTORY)?.and_then(|history| rows_of(&history).pop()));
        }
        if let Some(last) = rows.last_mut() {
            last.last = true;
            if let Some(traffic) = table("traffic")? {
                for kind in ["messages", "bytes"] {
                    let of_kind = traffic.columns.iter().filter(|(name, _)| name.ends_with(&format!("_{kind}")));
                    // The sum of nothing is -0.
                    last.values
                        .push((format!("{kind}_between_ranks"), 0.0 + of_kind.flat_map(|(_, values)| values).sum::<f64>()));
                }
            }
        }
        for (name, _) in rows.iter().flat_map(|row| &row.values) {
            if !self.columns.contains(name) {
                self.columns.push(name.clone());
            }
        }
        self.rows.insert(number, rows);
        Ok(())
    }

    fn write_csv(&self) -> anyhow::Result<()> {
        let place = || format!("{}: cannot write", self.csv.display());
        if let Some(folder) = self.csv.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(place)?;
        }
        let partial = PartialFile::new(&self.csv);
        let mut csv = csv::Writer::from_path(partial.path()).with_context(place)?;
        let fixed = ["step".to_owned(), "final".to_owned()];
        let first = [FIRST_COLUMN.to_owned()];
        csv.write_record(first.iter().chain(&self.sweep.keys).chain(&fixed).chain(&self.columns)).with_context(place)?;
        for (&number, rows) in &self.rows {
            let point = &self.sweep.points[number];
            for row in rows {
                let mut cells = vec![point.name.clone()];
                cells.extend(point.labels.iter().cloned());
                cells.extend([row.step.to_string(), u8::from(row.last).to_string()]);
                cells.extend(self.columns.iter().map(|name| {
                    let value = row.values.iter().find(|value| value.0 == *name).map(|value| value.1);
                    value.filter(|value| !value.is_nan()).map_or_else(String::new, |value| value.to_string())
                }));
                csv.write_record(&cells).with_context(place)?;
            }
        }
        csv.flush().with_context(place)?;
        drop(csv);
        partial.commit().with_context(place)
    }

    /// Writes the table of the finished runs, and lists the missing ones.
    fn collect(&mut self) -> anyhow::Result<ExitCode> {
        let mut missing = Vec::new();
        for number in 0..self.sweep.points.len() {
            let name = self.sweep.points[number].name.clone();
            match self.state(&name) {
                State::Finished => self.read_results(number)?,
                state => missing.push((name, state.to_string())),
            }
        }
        self.write_csv()?;
        let all = text::counted(self.sweep.points.len(), "run");
        let mut said = format!("wrote {}: {} of {all}\n", self.csv.display(), text::count(self.rows.len()));
        if !missing.is_empty() {
            said.push_str("missing:\n");
            said.push_str(&text::pairs(&missing));
        }
        print(&said)?;
        Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn list(&self) -> String {
        let names = self.sweep.points.iter().map(|point| (point.name.as_str(), self.state(&point.name).to_string()));
        let all = text::counted(self.sweep.points.len(), "run");
        format!(
            "{all} over {}, in {}\n{}",
            self.sweep.keys.join(", "),
            self.folder.display(),
            text::pairs(&names.collect::<Vec<_>>())
        )
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::Begun => f.write_str("begun"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Missing => f.write_str("not begun"),
        }
    }
}

/// The rows of a table that are no single agent's.
fn rows_of(table: &Table) -> Vec<Row> {
    let all = (0..table.rows()).filter(|&row| table.agent[row].is_none());
    let values = |row: usize| table.columns.iter().map(|(name, values)| (name.clone(), values[row])).collect();
    all.map(|row| Row { step: table.step[row], last: false, values: values(row) }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_tasks_cover_every_run_once() {
        for tasks in 1..5 {
            let parts: Vec<Part> = (1..=tasks).map(|task| parse_part(&format!("{task}/{tasks}")).unwrap()).collect();
            for number in 0..10 {
                assert_eq!(parts.iter().filter(|part| part.has(number)).count(), 1);
            }
        }
        assert!(parse_part("2/3").unwrap().has(1) && parse_part("2/3").unwrap().has(4));
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2"] {
            assert!(parse_part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_task_of_a_slurm_array_knows_its_part() {
        let of = |id: usize, min: usize, max: usize, step: usize, count: usize| {
            part_of_array(|name| match name.strip_prefix("SLURM_ARRAY_TASK_").unwrap() {
                "ID" => Some(id),
                "MIN" => Some(min),
                "MAX" => Some(max),
                "STEP" => Some(step),
                "COUNT" => Some(count),
                other => panic!("{other}"),
            })
        };
        assert_eq!(of(3, 1, 4, 1, 4).unwrap(), Some(Part { task: 3, tasks: 4 }));
        assert_eq!(of(0, 0, 7, 1, 8).unwrap(), Some(Part { task: 1, tasks: 8 }));
        assert_eq!(of(6, 2, 8, 2, 4).unwrap(), Some(Part { task: 3, tasks: 4 }));
        assert!(of(5, 1, 9, 1, 3).unwrap_err().to_string().contains("--array=1-M"));
        assert_eq!(part_of_array(|_| None).unwrap(), None);
    }
}
