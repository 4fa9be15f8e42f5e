//! The folder of a run: its configuration, its result file and, until it is finished, its checkpoint.
//!
//! A finished run may keep a checkpoint from shortly before its end, from which it can be made longer.
//!
//! `config.toml` and `data.digest` identify the run. They are written when the run begins, `config.toml` last, and `config.toml` again when it
//! is made longer. A job holds a lock on `data.digest` while it uses the folder.

mod end;
mod record;
mod save;
mod saver;
#[cfg(test)]
mod tests;

use super::display::{Display, Reporting};
use super::error::{Result, ResultsError};
use super::events::{self, Event, EventKind, events_file};
use super::existing::{
    ExistingRun, checkpoint_file, config_file, damaged_checkpoint_file, first_config_file, has_checkpoint, late_checkpoint_file,
    not_a_folder, previous_checkpoint_file, refuse_folder_of_runs, run_with_digest, tuning_copy_file, tuning_file,
};
use super::failed_saves::FailedSaves;
use super::grid::Grid;
use super::job_rows::{self, Saves};
use super::lock::{DIGEST_FILE, FolderLock};
use super::parts;
use super::stage::Stage;
use super::stop;
use crate::cluster::record::Row;
use crate::cluster::{PartId, Progress, StoredDraws, Timeline};
use crate::partial::PartialFile;
pub use save::SaveError;
use save::SavedCheckpoint;
use saver::Saver;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writes a file that exists as a whole or not at all.
fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    let partial = PartialFile::new(path);
    fs::write(partial.path(), content).map_err(ResultsError::io(partial.path(), "write"))?;
    partial.commit().map_err(ResultsError::io(path, "finish"))
}

/// Deletes a file, if it exists.
fn delete(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(path, "delete")(cause)),
        _ => Ok(()),
    }
}

/// The folder of a run, managed by rank 0.
pub struct RunFolder {
    path: PathBuf,
    /// The lock on the folder, once it is claimed.
    lock: Option<Arc<FolderLock>>,
    display: Display,
    /// Takes the spans of time of this process.
    timeline: Option<Arc<Timeline>>,
    /// Events that could not be written yet.
    unwritten_events: RefCell<Vec<Event>>,
    /// The hosts of the ranks.
    hosts: Vec<String>,

    /// Writes the result file and the checkpoints, once the run has begun.
    saver: Option<Saver>,
    /// The rows of all tables.
    rows: Vec<Row>,
    /// Draws in files of ranks that are not in the result file.
    stored: Vec<StoredDraws>,
    /// Files whose draws the result file already has; ranks may report them once more.
    collected: BTreeSet<PartId>,
    /// Arrays for the next save.
    grids: Vec<Grid>,
    large_grids: Vec<(String, PartialFile)>,
    /// Whether the result file has all draws and rows of tables.
    has_all_draws: bool,

    progress: Progress,
    /// The rounds that were done when this job began.
    done_before: u64,
    /// Seconds of the run so far.
    seconds: f64,
    checkpoint_every: Duration,
    /// The time of this job's last checkpoint, or of its start.
    saved_at: Instant,
    /// Whether this job has written a checkpoint.
    has_saved: bool,
    /// The last checkpoint that was saved, or that this job resumes from.
    last_saved: Option<SavedCheckpoint>,
    /// Failed attempts to save since the last one that succeeded.
    failed_saves: Option<FailedSaves>,
    /// Whether the run must stop because it cannot be saved.
    gives_up: bool,

    /// Seconds spent on saving: in total, and on the states and the result file for the last checkpoint.
    saving_seconds: f64,
    last_saving_seconds: f64,
    /// Seconds that the longest save of this job has taken.
    longest_save: f64,
    /// Seconds that the last write of the result file took.
    last_results_seconds: f64,
    /// What saving has taken in this job.
    saves: Saves,

    /// How many final rounds differ from those of a longer run, if the run can be made longer.
    last_rounds: Option<u64>,
    /// Whether a longer run could continue from the last checkpoint.
    is_extendable: bool,
    /// Whether the late checkpoint, from which a longer run could continue, has been taken or is being saved.
    has_late_checkpoint: bool,

    /// Whether the user was informed that the run will stop.
    stop_announced: bool,
    /// Since when the run is to stop and cannot be saved.
    stops_since: Option<Instant>,
    was_stopped: bool,
    /// Whether the run was stopped because it could not be saved.
    stopped_unsaved: bool,
}

impl RunFolder {
    /// The folder at `path`. Only one process of a job should report.
    pub fn new(path: &Path, checkpoint_every: Duration, reporting: Reporting) -> Self {
        Self {
            path: path.to_owned(),
            lock: None,
            display: Display::new(reporting),
            timeline: None,
            unwritten_events: RefCell::new(Vec::new()),
            hosts: Vec::new(),
            saver: None,
            rows: Vec::new(),
            stored: Vec::new(),
            collected: BTreeSet::new(),
            grids: Vec::new(),
            large_grids: Vec::new(),
            has_all_draws: false,
            progress: Progress::default(),
            done_before: 0,
            seconds: 0.0,
            checkpoint_every,
            saved_at: Instant::now(),
            has_saved: false,
            last_saved: None,
            failed_saves: None,
            gives_up: false,
            saving_seconds: 0.0,
            last_saving_seconds: 0.0,
            longest_save: 0.0,
            last_results_seconds: 0.0,
            saves: Saves::default(),
            last_rounds: None,
            is_extendable: false,
            has_late_checkpoint: false,
            stop_announced: false,
            stops_since: None,
            was_stopped: false,
            stopped_unsaved: false,
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the spans of time of this process during the run.
    pub fn keep_timeline(&mut self, timeline: Arc<Timeline>) {
        self.timeline = Some(timeline);
    }

    /// The timeline of this process, if it is kept.
    pub fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timeline.as_ref()
    }

    /// Writes down what happened to the run. Only on rank 0.
    pub fn note(&self, event: EventKind, text: &str) {
        let mut unwritten = self.unwritten_events.borrow_mut();
        unwritten.push(Event::now(event, text.to_owned()));
        // While the disk is full, events wait.
        let written = unwritten.iter().take_while(|event| events::append(&self.path, event).is_ok()).count();
        unwritten.drain(..written);
    }

    /// Writes down the error that ends the job, if this job has begun or resumed the run and the folder is still its own. Only on rank 0.
    pub fn note_failure(&self, cause: &dyn std::fmt::Display) {
        if self.saver.is_some() && self.lock.as_ref().is_some_and(|lock| lock.check().is_ok()) {
            self.note(EventKind::Failed, &cause.to_string());
        }
    }

    /// Prints a warning, also for a run that is one of several.
    pub fn warn(&self, text: &str) {
        self.display.announce(&format!("warning: {text}"));
    }

    /// Prints a message on standard error if this process reports on the run.
    pub fn print_message(&self, text: &str) {
        self.display.print(text);
    }

    /// The newest checkpoint.
    pub fn checkpoint(&self) -> PathBuf {
        checkpoint_file(&self.path)
    }

    /// The checkpoint before the newest.
    pub fn previous_checkpoint(&self) -> PathBuf {
        previous_checkpoint_file(&self.path)
    }

    /// Sets the newest checkpoint aside, because it is damaged. The one before it stays in its place.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn set_damaged_checkpoint_aside(&self) -> Result<()> {
        let (from, to) = (self.checkpoint(), damaged_checkpoint_file(&self.path));
        match fs::rename(&from, to) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(&from, "rename")(cause)),
            _ => Ok(()),
        }
    }

    /// Creates the folder if needed, and returns the run that it holds, if any. The folder is locked against other jobs until this value
    /// is dropped.
    ///
    /// # Errors
    /// When another job uses the folder, a file that identifies the run is missing, the folder holds folders of other runs, or the file system
    /// fails.
    pub fn claim(&mut self) -> Result<Option<ExistingRun>> {
        if self.path.is_file() {
            return Err(not_a_folder(&self.path));
        }
        refuse_folder_of_runs(&self.path)?;
        fs::create_dir_all(&self.path).map_err(ResultsError::io(&self.path, "create the folder"))?;
        let mut lock = FolderLock::acquire(&self.path, &|text| self.warn(text))?;
        if let Some(lost) = &lock.lost {
            let text = format!("the folder was used by {lost}, which shows no sign of life: this job takes it over");
            self.warn(&text);
            self.note(EventKind::TakenOver, &text);
        }
        let mut data_digest = String::new();
        let path = self.path.join(DIGEST_FILE);
        lock.digest.read_to_string(&mut data_digest).map_err(ResultsError::io(&path, "read"))?;
        self.lock = Some(Arc::new(lock));
        run_with_digest(&self.path, &data_digest)
    }

    /// Writes the files that identify a new run. The folder must be claimed.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn record_run(&mut self, config: &str, data_digest: &str) -> Result<()> {
        let path = config_file(&self.path);
        // What happened to a run that began with this configuration and data and has no checkpoint yet still counts.
        let has_other_data =
            || fs::read_to_string(self.path.join(DIGEST_FILE)).is_ok_and(|former| former.trim_end() != data_digest);
        if fs::read_to_string(&path).map_or(path.exists(), |former| former != config || has_other_data()) {
            delete(&events_file(&self.path))?;
        }
        delete(&path)?;
        self.delete_tuning()?;
        delete(&self.late_checkpoint())?;
        delete(&first_config_file(&self.path))?;
        delete(&damaged_checkpoint_file(&self.path))?;
        parts::clear(&self.path, &BTreeSet::new())?;
        if let Some(lock) = &self.lock {
            let mut file = &lock.digest;
            // Written in place, because the file is locked. A partial digest does no harm: without a configuration it is not used.
            let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{data_digest}"));
            written.and_then(|()| file.sync_all()).map_err(ResultsError::io(&self.path.join(DIGEST_FILE), "write"))?;
        }
        write_whole(&path, config.as_bytes())
    }

    /// The file with what was found before the run.
    pub fn tuning(&self) -> PathBuf {
        tuning_file(&self.path)
    }

    /// Keeps what was found before the run, and a copy of it, for jobs that resume it.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn keep_tuning(&self, found: &[u8]) -> Result<()> {
        write_whole(&tuning_copy_file(&self.path), found)?;
        write_whole(&self.tuning(), found)
    }

    /// The file and the copy with what was found before the run that this job resumes, as far as they are there.
    ///
    /// # Errors
    /// When there is one and none can be read.
    pub fn kept_tuning(&self) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let (mut kept, mut unreadable) = (Vec::new(), None);
        for path in [self.tuning(), tuning_copy_file(&self.path)] {
            match fs::read(&path) {
                Ok(found) => kept.push((path, found)),
                Err(cause) if cause.kind() == ErrorKind::NotFound => {}
                Err(cause) => drop(unreadable.get_or_insert(ResultsError::io(&path, "read")(cause))),
            }
        }
        match unreadable {
            Some(cause) if kept.is_empty() => Err(cause),
            _ => Ok(kept),
        }
    }

    fn delete_tuning(&self) -> Result<()> {
        delete(&self.tuning())?;
        delete(&tuning_copy_file(&self.path))
    }

    /// Keeps the state of the run from shortly before its end, so that it can be made longer. The last rounds differ from those of a longer
    /// run.
    pub fn keep_late_checkpoint(&mut self, last_rounds: u64) {
        self.last_rounds = Some(last_rounds);
    }

    /// The checkpoint from which the finished run in the folder can be made longer.
    pub fn late_checkpoint(&self) -> PathBuf {
        late_checkpoint_file(&self.path)
    }

    /// Whether the finished run in the folder can be made longer.
    pub fn can_be_extended(&self) -> bool {
        self.late_checkpoint().exists()
    }

    /// Makes the finished run in the folder one that continues with another configuration. The folder must be claimed.
    ///
    /// # Errors
    /// When the file system fails. The run is then still finished, or resumes to its former end.
    pub fn extend(&self, config: &str) -> Result<()> {
        // The run file that began the run still stands for it.
        let (now, first) = (config_file(&self.path), first_config_file(&self.path));
        if !first.try_exists().map_err(ResultsError::io(&first, "look for"))? {
            write_whole(&first, &fs::read(&now).map_err(ResultsError::io(&now, "read"))?)?;
        }
        let (from, to) = (self.late_checkpoint(), self.checkpoint());
        fs::rename(&from, to).map_err(ResultsError::io(&from, "rename"))?;
        write_whole(&now, config.as_bytes())
    }

    /// The rounds that are done, and all rounds.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Seconds that agents have worked, all together, until the last checkpoint.
    pub fn seconds_of_agents(&self) -> f64 {
        let rows = self.rows.iter().filter(|row| row.table == job_rows::PHASES && row.agent.is_some());
        rows.flat_map(|row| &row.values).map(|value| value.1).sum()
    }

    /// Whether the run was stopped before its end, saved or not.
    pub fn was_stopped(&self) -> bool {
        self.was_stopped
    }

    /// Prints that the run replaces one that ended without results.
    pub fn report_replacement(&self) {
        self.print_message(&format!("{}: replacing a run that ended before its first checkpoint", self.path.display()));
    }

    /// Prints that the run is already finished.
    pub fn report_finished(&self) {
        self.print_message(&format!(
            "the run in {0} is finished; see its results with `mpibayes summary {0}`",
            self.path.display()
        ));
    }

    /// Shows the progress of a stage before the first round or after the last one.
    pub fn show_stage(&mut self, stage: Stage, progress: Progress) {
        self.display.show(stage.name(), progress);
    }

    /// Whether a stage must end: the job was asked to stop, or has less time left than the longest step of the stage may take.
    pub fn must_end_stage(&self, longest_step: f64) -> bool {
        stop::asked() || stop::time_left().is_some_and(|left| left < self.time_to_stop_in(longest_step))
    }

    /// Ends the display of a stage. If it was not completed, the run is stopped.
    pub fn end_stage(&mut self, stage: Stage, is_complete: bool) {
        self.display.end_stage();
        if is_complete {
            return;
        }
        self.was_stopped = true;
        let folder = self.path.display().to_string();
        match stage {
            Stage::Preparation => {
                let (began, begins) = if has_checkpoint(&self.path) { ("resumed", "resumes") } else { ("began", "begins") };
                self.print_message(&format!("stopped before the run {began}; the same command {begins} it in {folder}"));
            }
            Stage::Gradients | Stage::LogLikelihoods => {
                let what = format!("while computing {}, after the last round", stage.name());
                // Of all ranks, rank 0 holds the lock.
                if self.lock.is_some() {
                    self.note(EventKind::Stopped, &format!("stopped {what}"));
                }
                let resumption = self.describe_resumption();
                let remark = if stop::time_limit().is_some() { ". If this happens again, give it more time" } else { "" };
                self.print_message(&format!(
                    "stopped in {folder} {what}. Rounds since the last checkpoint are repeated: with the same command {resumption}{remark}"
                ));
            }
        }
    }
}
