//! What rank 0 knows of a sweep: the states of its runs, the marks of those that failed, the messages, the table of results.

use super::planned::{Ended, PlannedRun};
use super::table::ResultTable;
use super::task_share::TaskShare;
use crate::cli::output::print_error;
use crate::config::sweep::Sweep;
use crate::config::{ConfigError, Registry, Run};
use crate::job::{CheckReport, FolderUse, JobError, check_sweep, folder_use, notes_on_sweep, with_extended_length};
use crate::report::RunResults;
use crate::report::summary::Summary;
use crate::results::{Reporting, ResultsError, config_file, job_using, why_ended};
use crate::text;
use anyhow::{Context, anyhow, bail};
use std::path::PathBuf;

/// The text of the mark of a run that was started. If the next job finds it, the job before died during this run.
const STARTED: &str = "started, and not ended yet";
/// What is said of such a run.
const ENDED_DURING_RUN: &str = "the job ended during this run";

/// A run whose settings and data were checked.
type CheckedRun = (Run, CheckReport);

/// The state of a sweep on rank 0.
pub(super) struct SweepState {
    pub sweep: Sweep,
    pub folder: PathBuf,
    /// The share of the runs that is this job's, if not all.
    pub share: Option<TaskShare>,
    /// How messages are printed.
    pub reporting: Reporting,
    pub table: ResultTable,
    /// How many runs are left to other jobs, which carry them out.
    pub left_to_other_jobs: usize,
    /// How many finished runs have results that cannot be read.
    pub unreadable: usize,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SweepRunState {
    Finished,
    /// The job of this name is carrying it out. It is this job itself only if Slurm has requeued it.
    Running {
        job: String,
    },
    Begun,
    Failed(String),
    NotBegun,
    /// Its folder cannot be used, for this reason.
    Unusable(String),
    /// Its folder holds another run.
    Refused {
        /// In a few words.
        why: String,
        /// With the folder, and what to do.
        error: String,
    },
}

impl SweepState {
    /// The file that marks a started or failed run, until the run stops or finishes.
    fn mark_file(&self, name: &str) -> PathBuf {
        self.folder.join("unfinished").join(format!("{name}.txt"))
    }

    /// All runs, after the same checks as `mpibayes check`.
    fn check_all(&self, registry: &Registry) -> anyhow::Result<Vec<CheckedRun>> {
        Ok(check_sweep(&self.sweep, registry).map_err(ConfigError::Problems)?)
    }

    /// The names of all runs with their states.
    fn states(&self, registry: &Registry) -> anyhow::Result<Vec<(String, SweepRunState)>> {
        let checked = self.check_all(registry)?;
        let named = self.sweep.points.iter().zip(&checked);
        Ok(named.map(|(point, run)| (point.name.clone(), self.state(&point.name, run, registry))).collect())
    }

    fn state(&self, name: &str, (run, report): &CheckedRun, registry: &Registry) -> SweepRunState {
        let folder = self.folder.join(name);
        let used = folder_use(run, report.data_identity(), &folder, registry);
        if let Err(JobError::Results(error)) = &used
            && let Some(why) = other_run(error)
        {
            return SweepRunState::Refused { why, error: error.to_string() };
        }
        if let Some(job) = job_using(&folder) {
            return SweepRunState::Running { job };
        }
        match (std::fs::read_to_string(self.mark_file(name)), used) {
            // Somebody may have completed a run that had failed.
            (_, Ok(FolderUse::Nothing)) => SweepRunState::Finished,
            (Ok(mark), _) => SweepRunState::Failed(match mark.trim_end() {
                // Under MPI a fault ends the whole job before the reason gets here; it is in the run's folder.
                STARTED => why_ended(&folder).unwrap_or_else(|| ENDED_DURING_RUN.to_owned()),
                why => why.to_owned(),
            }),
            (Err(_), Ok(FolderUse::Begin)) => SweepRunState::NotBegun,
            (Err(_), Ok(FolderUse::Resume)) => SweepRunState::Begun,
            (Err(_), Err(why)) => SweepRunState::Unusable(why.to_string()),
        }
    }

    /// The runs of this job; those that failed earlier come last. All of them are checked before any begins.
    ///
    /// # Errors
    /// If a run is wrong, or its folder holds another one.
    pub fn plan(&mut self, registry: &Registry) -> anyhow::Result<Vec<PlannedRun>> {
        let mut plan = Vec::new();
        let mut again = Vec::new();
        let mut refused = Vec::new();
        let mut running = Vec::new();
        let checked = self.check_all(registry)?;
        let notes = notes_on_sweep(&self.sweep, checked.iter().map(|(_, report)| report));
        for (number, (checked, point)) in checked.iter().zip(&self.sweep.points).enumerate() {
            // The folders of other tasks' runs are left alone: those tasks may be starting them now.
            if self.share.is_some_and(|share| !share.carries_out(number)) {
                continue;
            }
            let state = self.state(&point.name, checked, registry);
            let asked = checked.0.clone();
            // A folder that cannot be read is reported when the run is started.
            let run = with_extended_length(asked.clone(), &self.folder.join(&point.name), registry).unwrap_or(asked);
            let config = run.to_toml().map_err(|cause| anyhow!("{}: {cause}", point.name))?;
            let planned = PlannedRun { number, name: point.name.clone(), config, is_finished: state == SweepRunState::Finished };
            match state {
                SweepRunState::Refused { error, .. } => refused.push(error),
                SweepRunState::Failed(_) => again.push(planned),
                SweepRunState::Running { job } => running.push((planned, job)),
                // A folder that cannot be used is reported when the run is started.
                SweepRunState::Finished | SweepRunState::Begun | SweepRunState::NotBegun | SweepRunState::Unusable(_) => {
                    plan.push(planned)
                }
            }
        }
        if !refused.is_empty() {
            refused.into_iter().for_each(|why| print_error(&anyhow!(why)));
            bail!("no run was begun");
        }
        plan.append(&mut again);
        let runs = self.sweep.points.len();
        let whose = match self.share {
            Some(share) => format!(", {} of them in task {}/{}", share.size(runs), share.task, share.tasks),
            None => String::new(),
        };
        let all = text::counted(runs, "run");
        self.sweep.notes.iter().chain(&notes).for_each(|note| self.reporting.print(&format!("note: {note}")));
        let keys = self.sweep.keys.join(", ");
        self.reporting.print(&format!("a sweep of {all} over {keys}{whose}, in {}", self.folder.display()));
        self.left_to_other_jobs = running.len();
        running
            .iter()
            .for_each(|(run, job)| self.reporting.print(&format!("{}: skipped: {job} is carrying it out", self.title(run))));
        Ok(plan)
    }

    /// `3/12 method=dsvgd seed=2`.
    fn title(&self, run: &PlannedRun) -> String {
        format!("{}/{} {}", run.number + 1, self.sweep.points.len(), run.name.replace(',', " "))
    }

    /// During a run, only its progress and its warnings are printed: its other messages would hide those of the sweep.
    pub fn reporting_of(&self, run: &PlannedRun) -> Reporting {
        Reporting::OneOfSeveral { title: self.title(run), as_of: Box::new(self.reporting.clone()) }
    }

    /// Marks a run as started, so that the next job knows if this one died during it.
    pub fn mark_started(&self, run: &PlannedRun) -> anyhow::Result<()> {
        if run.is_finished {
            return Ok(());
        }
        self.write_mark(&run.name, STARTED)
    }

    fn write_mark(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let mark = self.mark_file(name);
        let folder = mark.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create this folder", folder.display()))?;
        std::fs::write(&mark, format!("{text}\n")).with_context(|| format!("{}: cannot write", mark.display()))
    }

    /// Takes note of how a run has ended.
    pub fn record_end(&mut self, run: &PlannedRun, ended: &Ended) -> anyhow::Result<()> {
        let title = self.title(run);
        if let Ended::Failed(why) = ended {
            self.write_mark(&run.name, why)?;
            self.reporting.print(&format!("{title}: failed: {why}"));
            return Ok(());
        }
        let mark = self.mark_file(&run.name);
        match std::fs::remove_file(&mark) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                return Err(cause).with_context(|| format!("{}: cannot remove", mark.display()));
            }
            _ => {}
        }
        // Removes the folder of marks if it is empty. Another task of a job array may be about to write into it.
        if self.share.is_none() {
            drop(mark.parent().map(std::fs::remove_dir));
        }
        if matches!(ended, Ended::Stopped) {
            self.reporting.print(&format!("{title}: stopped. The same command resumes it"));
            return Ok(());
        }
        let summary = match self.add(run.number, &run.name) {
            Ok(summary) => summary,
            Err(error) => {
                self.unreadable += 1;
                self.reporting.print(&format!("{title}: its results cannot be read: {error:#}"));
                return Ok(());
            }
        };
        let already = if run.is_finished { " already" } else { "" };
        self.reporting.print(&format!("{title}: finished{already}{}", self.headline(run.number, &summary)));
        // The tasks of an array would overwrite each other's tables. Runs that had finished before are in the table at the end.
        if self.share.is_none() && !run.is_finished { self.table.write(&self.sweep) } else { Ok(()) }
    }

    /// Reports that the job stops before this run.
    pub fn report_stop_before(&self, run: &PlannedRun) {
        self.reporting.print(&format!(
            "{}: not started, because the job was asked to stop. The same command continues the sweep",
            self.title(run)
        ));
    }

    /// Writes the table, and reports how many runs have finished.
    pub fn report_summary(&self, runs: usize, failed: &[&str]) -> anyhow::Result<()> {
        // Without results of our own, keep the table that an earlier job wrote.
        let writes_table = self.share.is_none() && self.table.runs() > 0;
        if writes_table {
            self.table.write(&self.sweep)?;
        }
        let table = match self.share {
            Some(_) => "`mpibayes sweep FILE.toml --collect` writes the table".into(),
            None if writes_table => format!("the table is {}", self.table.path().display()),
            None => "no table was written".into(),
        };
        let unreadable = match self.unreadable {
            0 => String::new(),
            count => format!(", {count} of them with results that cannot be read"),
        };
        self.reporting.print(&format!("{} finished{unreadable}, {} failed; {table}", runs - failed.len(), failed.len()));
        for name in failed {
            self.reporting.print(&format!("failed: {name}"));
        }
        if self.left_to_other_jobs > 0 {
            let runs = text::counted(self.left_to_other_jobs, "run");
            self.reporting.print(&format!("{runs} left to other jobs: run the command again when those jobs have ended"));
        }
        if self.share.is_none() && runs - failed.len() > 1 {
            self.reporting.print(&format!("`mpibayes compare {}` compares the runs", self.folder.display()));
        }
        Ok(())
    }

    /// Adds the results of a run to the table.
    fn add(&mut self, number: usize, name: &str) -> anyhow::Result<Summary> {
        let results = RunResults::open(&self.folder.join(name))?;
        let summary = Summary::of(&results, false)?;
        self.table.add(number, &results.file, &summary)?;
        Ok(summary)
    }

    /// The time, the accuracy or RMSE, and the judgment.
    fn headline(&self, number: usize, summary: &Summary) -> String {
        let seconds = self.table.seconds(number);
        let mut text = seconds.map_or_else(String::new, |seconds| format!(" after {}", text::seconds(seconds)));
        let metrics = summary.best_metrics();
        if let Some((name, value)) = metrics.iter().find(|(name, _)| ["accuracy", "rmse"].contains(&name.as_str())) {
            text.push_str(&format!(", {name} {}", text::value(*value)));
        }
        if let Some(judgment) = &summary.judgment {
            text.push_str(&format!("; draws: {}", judgment.outcome.name()));
        }
        text
    }

    /// Writes the table of the finished runs. Returns what to print, and whether the table has all runs.
    pub fn collect(&mut self, registry: &Registry) -> anyhow::Result<(String, bool)> {
        let mut not_in_table = Vec::new();
        for (number, (name, state)) in self.states(registry)?.into_iter().enumerate() {
            match state {
                SweepRunState::Finished => {
                    if let Err(error) = self.add(number, &name) {
                        not_in_table.push((name, format!("its results cannot be read: {error:#}")));
                    }
                }
                state => not_in_table.push((name, state.to_string())),
            }
        }
        let all = text::counted(self.sweep.points.len(), "run");
        let mut said = match self.table.runs() {
            // Without results of our own, keep the table that an earlier job wrote.
            0 => "there are no results: no table was written\n".to_owned(),
            runs => {
                self.table.write(&self.sweep)?;
                format!("wrote {}: {} of {all}\n", self.table.path().display(), text::count(runs))
            }
        };
        if !not_in_table.is_empty() {
            said.push_str("missing:\n");
            said.push_str(&text::pairs(&not_in_table));
        }
        said.push_str(&self.note_on_others());
        Ok((said, not_in_table.is_empty()))
    }

    /// The runs with their states.
    pub fn list(&self, registry: &Registry) -> anyhow::Result<String> {
        let states = self.states(registry)?;
        let is_refused = |(_, state): &(String, SweepRunState)| matches!(state, SweepRunState::Refused { .. });
        let refused = match states.iter().filter(|state| is_refused(state)).count() {
            0 => String::new(),
            1 => "note: one folder holds another run: choose another --output, or delete that folder\n".to_owned(),
            count => format!("note: {count} folders hold other runs: choose another --output, or delete those folders\n"),
        };
        let lines: Vec<_> = states.into_iter().map(|(name, state)| (name, state.to_string())).collect();
        let all = text::counted(lines.len(), "run");
        let (keys, folder) = (self.sweep.keys.join(", "), self.folder.display());
        Ok(format!("{all} over {keys}, in {folder}\n{}{refused}{}", text::pairs(&lines), self.note_on_others()))
    }

    /// A note on runs in the folder that are not runs of this sweep, if there are any.
    fn note_on_others(&self) -> String {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter(|entry| config_file(&entry.path()).exists()).map(|entry| entry.file_name());
        let others = names.filter(|name| self.sweep.points.iter().all(|point| name != point.name.as_str())).count();
        let folder = self.folder.display();
        match others {
            0 => String::new(),
            1 => format!(
                "note: {folder} also holds a run that is not in this sweep file, perhaps because its keys or values were changed. It is left as it is\n"
            ),
            _ => format!(
                "note: {folder} also holds {others} runs that are not in this sweep file, perhaps because its keys or values were changed. They are left as they are\n"
            ),
        }
    }
}

/// How the run in the folder differs from the wanted one, if it does.
fn other_run(error: &ResultsError) -> Option<String> {
    match error {
        ResultsError::OtherRun { differs, .. } => Some(format!("other settings: {differs}")),
        ResultsError::OtherData { .. } => Some("begun on other data".to_owned()),
        _ => None,
    }
}

impl std::fmt::Display for SweepRunState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::Running { job } => write!(f, "running: {job}"),
            Self::Begun => f.write_str("begun"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::NotBegun => f.write_str("not begun"),
            Self::Unusable(why) => write!(f, "cannot be used: {why}"),
            Self::Refused { why, .. } => f.write_str(why),
        }
    }
}
