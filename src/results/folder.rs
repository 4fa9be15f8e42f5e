//! The folder of a run: its configuration, its result file and, until it is finished, its checkpoint.
//!
//! A finished run may keep a checkpoint from shortly before its end, from which it can be made longer.
//!
//! `config.toml` and `data.digest` identify the run. They are written when the run begins, `config.toml` last, and `config.toml` again when it
//! is made longer. A job holds a lock on `data.digest` while it uses the folder.

use super::display::{Display, Reporting};
use super::error::{Result, ResultsError};
use super::events::{self, Event, EventKind, events_file};
use super::existing::{
    ExistingRun, checkpoint_file, config_file, damaged_checkpoint_file, first_config_file, late_checkpoint_file, not_a_folder,
    previous_checkpoint_file, result_file, run_with_digest, tuning_file,
};
use super::failed_saves::FailedSaves;
use super::grid::Grid;
use super::info::{RunInfo, RunState};
use super::job_rows::{self, Saves};
use super::lock::{DIGEST_FILE, FolderLock};
use super::parts;
use super::read::ResultFile;
use super::samples::SampleGroup;
use super::spool::{self, Collected};
use super::stop;
use super::write::RunWriter;
use crate::cluster::record::{Record, Row};
use crate::cluster::{
    self, AfterCheckpoint, Checkpoint, CheckpointError, Outcome, PartId, Progress, Recorder, Status, StoredByRank, Timeline,
};
use crate::partial::PartialFile;
use crate::text;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job takes its first checkpoint after at most this time, so that there are results to look at soon.
const MAX_TIME_TO_FIRST_CHECKPOINT: Duration = Duration::from_secs(10);

/// How long a run that is asked to stop goes on trying to save, and the pause between attempts.
const TIME_TO_STOP: Duration = Duration::from_secs(20);
const PAUSE_WHILE_STOPPING: Duration = Duration::from_secs(2);
/// How often a job that waits looks whether somebody asks it to stop.
const POLL: Duration = Duration::from_millis(100);
/// A run with a time limit leaves so many times the longest task, and the longest save, for stopping.
const MARGIN_OF_TASKS: f64 = 1.25;
const MARGIN_OF_SAVES: f64 = 2.0;
/// The time between checkpoints is at least this multiple of the time that the last one took.
const MIN_INTERVAL_PER_SAVING_TIME: f64 = 20.0;

/// Draws in memory are also written between checkpoints if they have more bytes than this, and more than the result file divided by
/// `RESULT_FILE_DIVISOR`.
const MAX_PENDING_BYTES: usize = 64 << 20;
const RESULT_FILE_DIVISOR: u64 = 16;

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
    checkpoint_every: Duration,
    /// The time of this job's last checkpoint, or of its start.
    saved_at: Instant,
    /// Whether this job has written a checkpoint.
    has_saved: bool,
    /// The last checkpoint that was saved, or that this job resumes from.
    last_saved: Option<SavedCheckpoint>,
    /// Attempts to save that have failed since.
    failed_saves: Option<FailedSaves>,
    /// Writes the result file, once the run has begun.
    writer: Option<RunWriter>,
    /// The rows of all tables.
    rows: Vec<Row>,
    progress: Progress,
    /// Seconds of the run so far.
    seconds: f64,
    /// Seconds spent on saving: in total, and on the states and the result file for the last checkpoint.
    saving_seconds: f64,
    last_saving_seconds: f64,
    /// Seconds that the longest save of this job has taken.
    longest_save: f64,
    /// Seconds that the result file has taken the last time.
    writing_seconds: f64,
    /// What saving has taken in this job.
    saves: Saves,
    /// The hosts of the ranks.
    hosts: Vec<String>,
    /// Events that could not be written yet.
    unwritten_events: RefCell<Vec<Event>>,
    /// Takes the spans of time of this process.
    timeline: Option<Arc<Timeline>>,
    /// Bytes of draws that ranks have stored since the result file was last written.
    stored: StoredByRank,
    /// Whether the result file has all draws and rows of tables.
    has_all_draws: bool,
    display: Display,
    /// The lock on the folder, once it is claimed.
    lock: Option<FolderLock>,
    /// How many final rounds differ from those of a longer run, if the run can be made longer.
    last_rounds: Option<u64>,
    /// Whether a longer run could continue from the last checkpoint.
    is_extendable: bool,
    /// Whether the late checkpoint, from which a longer run could continue, has been taken.
    has_late_checkpoint: bool,
    /// Whether the user was informed that the run will stop.
    stop_announced: bool,
    /// Since when the run is to stop and cannot be saved.
    stops_since: Option<Instant>,
    was_stopped: bool,
    /// Whether the run was stopped because it could not be saved.
    stopped_unsaved: bool,
}

/// A checkpoint in the folder.
struct SavedCheckpoint {
    /// The rounds that were done.
    round: u64,
    parts: BTreeSet<PartId>,
}

impl SavedCheckpoint {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self { round: checkpoint.progress.done, parts: checkpoint.stored_states().iter().map(|state| state.part).collect() }
    }
}

impl RunFolder {
    /// The folder at `path`. Only one process of a job should report.
    pub fn new(path: &Path, checkpoint_every: Duration, reporting: Reporting) -> Self {
        Self {
            path: path.to_owned(),
            checkpoint_every,
            saved_at: Instant::now(),
            has_saved: false,
            last_saved: None,
            failed_saves: None,
            writer: None,
            rows: Vec::new(),
            progress: Progress::default(),
            seconds: 0.0,
            saving_seconds: 0.0,
            last_saving_seconds: 0.0,
            longest_save: 0.0,
            writing_seconds: 0.0,
            saves: Saves::default(),
            hosts: Vec::new(),
            unwritten_events: RefCell::new(Vec::new()),
            timeline: None,
            stored: StoredByRank::new(),
            has_all_draws: false,
            display: Display::new(reporting),
            lock: None,
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

    /// What takes the spans of time of this process.
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
    /// When another job uses the folder, it holds an incomplete run, or the file system fails.
    pub fn claim(&mut self) -> Result<Option<ExistingRun>> {
        if self.path.is_file() {
            return Err(not_a_folder(&self.path));
        }
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
        self.lock = Some(lock);
        run_with_digest(&self.path, &data_digest)
    }

    /// Writes the files that identify a new run. The folder must be claimed.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn record_run(&mut self, config: &str, data_digest: &str) -> Result<()> {
        let path = config_file(&self.path);
        // What happened to a run that began with this configuration and has no checkpoint yet still counts.
        if fs::read_to_string(&path).map_or(path.exists(), |former| former != config) {
            delete(&events_file(&self.path))?;
        }
        delete(&path)?;
        delete(&self.tuning())?;
        delete(&self.late_checkpoint())?;
        delete(&first_config_file(&self.path))?;
        delete(&damaged_checkpoint_file(&self.path))?;
        parts::clear(&self.path, &BTreeSet::new())?;
        if let Some(FolderLock { digest: file, .. }) = &mut self.lock {
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

    /// Keeps what was found before the run, for jobs that resume it.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn keep_tuning(&self, found: &[u8]) -> Result<()> {
        write_whole(&self.tuning(), found)
    }

    /// What was found before the run that this job resumes, if anything.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn kept_tuning(&self) -> Result<Option<Vec<u8>>> {
        let path = self.tuning();
        match fs::read(&path) {
            Ok(found) => Ok(Some(found)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(ResultsError::io(&path, "read")(cause)),
        }
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

    /// Begins a run, or resumes a saved one, whose result file has these groups of draws. The headline is printed; it names the method
    /// and the number of ranks.
    ///
    /// # Errors
    /// When the groups have invalid names, or the draws of the saved run are missing.
    pub fn begin(&mut self, headline: &str, saved: Option<&Checkpoint>, info: RunInfo, groups: Vec<SampleGroup>) -> Result<()> {
        // Later draws of an interrupted job are discarded.
        let recorded_draws = saved.map(|saved| saved.recorded_draws.clone()).unwrap_or_default();
        self.progress = saved.map(|saved| saved.progress).unwrap_or_default();
        self.last_saved = saved.map(SavedCheckpoint::of);
        let rows = saved.iter().flat_map(|saved| &saved.records).filter_map(|record| match record {
            Record::Row(row) => Some(row),
            Record::Draws(_) => None,
        });
        self.saving_seconds = job_rows::saving_seconds(rows);
        self.is_extendable = saved.is_some() && self.is_before_last_rounds();
        spool::clear(&self.path)?;
        self.writer = Some(RunWriter::new(&result_file(&self.path), info, groups, recorded_draws)?);
        let resuming = saved.map(|saved| {
            let Progress { done, total } = saved.progress;
            format!(", resuming after round {done} of {total} and {:.0} s", saved.seconds)
        });
        if saved.is_some() {
            self.restore_events();
        }
        let (event, text) = match &resuming {
            None => (EventKind::Began, headline.to_owned()),
            Some(resuming) => (EventKind::Resumed, format!("{headline}{resuming}{}", self.end_of_last_job())),
        };
        self.note(event, &text);
        let resuming = resuming.unwrap_or_default();
        self.print_message(&format!("{headline}, in {}{resuming}", self.path.display()));
        self.saved_at = Instant::now();
        Ok(())
    }

    /// Copies what happened before a finished run is made longer from its result file.
    fn restore_events(&self) {
        let all = ResultFile::open(&result_file(&self.path)).map(|file| file.events()).unwrap_or_default();
        if all.len() > events::read(&self.path).len() {
            // As for all events, a failure does not matter.
            drop(write_whole(&events_file(&self.path), events::to_lines(&all).as_bytes()));
        }
    }

    /// What to say of the job before, if it did not end in order.
    fn end_of_last_job(&self) -> String {
        let events = events::read(&self.path);
        // What this job has noted already.
        let last = events.iter().rev().find(|event| !matches!(event.event, EventKind::FellBack | EventKind::TakenOver));
        let was_running = |event: &&Event| {
            matches!(event.event, EventKind::Began | EventKind::Resumed | EventKind::NotSaved | EventKind::SavedAgain)
        };
        last.filter(was_running).map_or_else(String::new, |event| format!("; {} was killed or has crashed", event.job))
    }

    /// Writes tables and draws in memory to the result file, and the draws that ranks have stored in files if they are given.
    fn write_results(&mut self, finished: bool, seconds: f64, stored_draws: Option<Collected>) -> Result<()> {
        let Progress { done, total } = self.progress;
        let lock = self.lock.as_ref();
        let check = || lock.map_or(Ok(()), FolderLock::check);
        check()?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let since = Instant::now();
        let mut events = events::read(&self.path);
        events.extend(self.unwritten_events.borrow().iter().cloned());
        events.extend(finished.then(|| Event::now(EventKind::Finished, format!("finished after {seconds:.1} s"))));
        writer.describe_job(self.hosts.clone(), events);
        let state = RunState { finished, done, total, seconds };
        let written = match stored_draws {
            Some(stored_draws) => writer.write_complete_if(&self.rows, state, stored_draws, &check),
            None => writer.write_if(&self.rows, state, &check),
        };
        self.writing_seconds = since.elapsed().as_secs_f64();
        written
    }

    /// Writes tables and all draws to the result file, and deletes the ranks' files of draws. Only at a checkpoint, when these files are
    /// closed.
    fn write_all_results(&mut self, finished: bool, seconds: f64) -> Result<()> {
        let stored_draws = Collected::new(&self.path, &self.stored)?;
        self.write_results(finished, seconds, Some(stored_draws))?;
        if !self.stored.is_empty() {
            self.stored.clear();
            spool::clear(&self.path)?;
        }
        Ok(())
    }

    /// Adds arrays to the result file; see [`RunWriter::push_grid`].
    pub fn add_arrays(&mut self, grid: Grid) {
        if let Some(writer) = &mut self.writer {
            writer.push_grid(grid);
        }
    }

    /// Adds arrays that lie in a file of their own; see [`RunWriter::push_large_grid`].
    pub fn add_large_arrays(&mut self, group: &str, file: PartialFile) {
        if let Some(writer) = &mut self.writer {
            writer.push_large_grid(group, file);
        }
    }

    /// Writes all draws of a completed run, before anything else is computed from them. Returns whether that was possible; if not, the run is
    /// stopped.
    ///
    /// # Errors
    /// When the draws are inconsistent.
    pub fn write_draws_of_completed_run(&mut self, outcome: &Outcome) -> Result<bool> {
        let written = self.write_all_draws(outcome);
        self.written_or_stopped(written)
    }

    fn write_all_draws(&mut self, outcome: &Outcome) -> Result<()> {
        if !self.has_all_draws {
            self.write_all_results_patiently(false, outcome.seconds)?;
            self.has_all_draws = true;
        }
        Ok(())
    }

    /// Whether results were written. If the file system still fails, the run is stopped.
    fn written_or_stopped(&mut self, written: Result<()>) -> Result<bool> {
        match written {
            Err(cause) if cause.may_pass() => {
                self.stopped_unsaved = true;
                self.report_stop();
                Ok(false)
            }
            written => written.map(|()| true),
        }
    }

    /// Writes all draws of a completed run, and opens the result file.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub fn file_with_all_draws(&mut self, outcome: &Outcome) -> Result<ResultFile> {
        self.write_all_draws(outcome)?;
        ResultFile::open(&result_file(&self.path))
    }

    /// Completes the result file of a finished run, and deletes its checkpoint or keeps it for a longer run. Prints that the run
    /// has finished, or that it was stopped.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn end(&mut self, outcome: &Outcome) -> Result<()> {
        self.display.clear();
        if !outcome.finished {
            self.report_stop();
            return Ok(());
        }
        self.progress.done = self.progress.total;
        let written = self.write_all_results_patiently(true, outcome.seconds);
        if !self.written_or_stopped(written)? {
            return Ok(());
        }
        self.end_checkpoints()?;
        // The result file has all of them.
        drop(delete(&events_file(&self.path)));
        let (folder, file) = (self.path.display(), result_file(&self.path));
        self.print_message(&format!(
            "finished after {:.1} s: {}; see it with `mpibayes summary {folder}`",
            outcome.seconds,
            file.display()
        ));
        Ok(())
    }

    /// Deletes the checkpoints of a finished run, or keeps the one from which it can be made longer. Without a checkpoint in its place, the run
    /// is finished.
    fn end_checkpoints(&self) -> Result<()> {
        let (newest, previous) = (self.checkpoint(), self.previous_checkpoint());
        // The newest is missing if the run has resumed from the one before and was not saved since.
        let last = if newest.exists() {
            delete(&previous)?;
            newest
        } else {
            previous
        };
        let mut kept = BTreeSet::new();
        if self.is_extendable {
            fs::rename(&last, self.late_checkpoint()).map_err(ResultsError::io(&last, "rename"))?;
            kept.extend(self.last_saved.iter().flat_map(|saved| &saved.parts));
        } else {
            delete(&last)?;
            drop(delete(&self.tuning()));
        }
        // The rest only takes room.
        drop(delete(&damaged_checkpoint_file(&self.path)));
        drop(parts::clear(&self.path, &kept));
        Ok(())
    }

    /// Reports that the run was stopped before its end.
    fn report_stop(&mut self) {
        self.was_stopped = true;
        let (event, how) = match self.stopped_unsaved {
            false => (EventKind::Stopped, "and saved"),
            true => (EventKind::StoppedUnsaved, "without saving"),
        };
        let Progress { done, total } = self.progress;
        self.note(event, &format!("stopped {how} after round {done} of {total}"));
        let folder = self.path.display();
        self.print_message(&match self.stopped_unsaved {
            false => format!("stopped {how} in {folder}; the same command resumes it"),
            true => format!("stopped {how} in {folder}: with the same command {}", self.describe_resumption()),
        });
    }

    /// Saves the run as it is in a checkpoint.
    fn save(&mut self, checkpoint: &mut Checkpoint) -> cluster::Result<()> {
        if let Some(cause) = checkpoint.failure.take() {
            return Err(cause.into());
        }
        // Draws are written before the checkpoint: a resumed run discards later draws, but cannot restore missing ones.
        self.write_all_results(false, checkpoint.seconds)?;
        checkpoint.records = self.rows.iter().cloned().map(Record::Row).collect();
        checkpoint.recorded_draws = self.writer.as_ref().map(|writer| writer.extents().clone()).unwrap_or_default();
        let since = Instant::now();
        self.lock.as_ref().map_or(Ok(()), FolderLock::check)?;
        checkpoint.write(&self.checkpoint(), Some(&self.previous_checkpoint()))?;
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        self.saves.count += 1;
        self.saves.states_seconds += checkpoint.saving_seconds;
        self.saves.results_seconds += self.writing_seconds;
        self.saves.checkpoint_seconds += since.elapsed().as_secs_f64();
        self.saves.states_bytes = checkpoint.stored_states().iter().map(|state| state.bytes).sum();
        self.saves.results_bytes = size(&result_file(&self.path));
        self.saves.checkpoint_bytes = size(&self.checkpoint());
        Ok(())
    }

    /// The same after the last round, repeated while the file system fails.
    ///
    /// # Errors
    /// If it still fails after half an hour, or some time after a request to stop.
    fn write_all_results_patiently(&mut self, finished: bool, seconds: f64) -> Result<()> {
        while let Err(cause) = self.write_all_results(finished, seconds) {
            if !cause.may_pass() || self.count_failed_save(&cause) {
                return Err(cause);
            }
            while !self.is_time_to_try_again() {
                std::thread::sleep(POLL);
            }
        }
        self.report_recovery();
        Ok(())
    }

    /// Counts and reports a failed attempt to save. Returns whether the run must stop: it could not be saved for long, or somebody has asked
    /// for it some time ago.
    fn count_failed_save(&mut self, cause: &dyn std::fmt::Display) -> bool {
        let now = Instant::now();
        let failed = match &mut self.failed_saves {
            Some(failed) => {
                failed.another(now);
                *failed
            }
            none => {
                let first = *none.insert(FailedSaves::first(now));
                self.note(EventKind::NotSaved, &format!("the run could not be saved: {cause}"));
                first
            }
        };
        if stop::asked() {
            self.stops_since.get_or_insert(now);
        }
        let is_late = self.stops_since.is_some_and(|since| now.saturating_duration_since(since) >= TIME_TO_STOP)
            || stop::time_left().is_some_and(|left| left < PAUSE_WHILE_STOPPING);
        let must_stop = failed.is_hopeless(now) || stop::was_terminated() || is_late;
        if must_stop {
            self.warn(&format!("the run cannot be saved: {cause}"));
        } else {
            let seconds = pause(failed).as_secs();
            self.warn(&format!(
                "the run cannot be saved: {cause}. It {}tries again after {seconds} s; if its job ends before, {}",
                if self.rounds_left() > 0 { "goes on, and " } else { "" },
                self.describe_resumption()
            ));
        }
        must_stop
    }

    /// Whether the pause after a failed attempt to save is over.
    fn is_time_to_try_again(&self) -> bool {
        self.failed_saves.is_none_or(|failed| failed.is_over(pause(failed), Instant::now()))
    }

    /// Reports that the run is saved after attempts that have failed, if there were any.
    fn report_recovery(&mut self) {
        if self.failed_saves.take().is_some() {
            self.display.announce("the run is saved again");
            self.note(EventKind::SavedAgain, "the run was saved again");
        }
    }

    /// Prints a warning, also for a run that is one of several.
    pub fn warn(&self, text: &str) {
        self.display.announce(&format!("warning: {text}"));
    }

    /// What the next job does with the run.
    fn describe_resumption(&self) -> String {
        match &self.last_saved {
            Some(saved) => format!("it resumes after round {}", saved.round),
            None => "it starts again".into(),
        }
    }

    /// How long it may take to end the tasks in progress and to save the run, somewhat longer than the longest so far. At most half of the time
    /// limit: a job that was suspended for a while has long tasks that say nothing.
    fn time_to_stop_in(&self, status: Status) -> Duration {
        let seconds = MARGIN_OF_TASKS * status.longest_response + MARGIN_OF_SAVES * self.longest_save;
        let retries = if self.failed_saves.is_some() { TIME_TO_STOP } else { Duration::ZERO };
        let longest = stop::time_limit().map_or(Duration::MAX, |limit| limit / 2);
        (stop::LEAST_MARGIN + retries + Duration::try_from_secs_f64(seconds).unwrap_or(longest)).min(longest)
    }

    /// Rounds that are still to be done.
    fn rounds_left(&self) -> u64 {
        self.progress.total.saturating_sub(self.progress.done)
    }

    /// Whether the state is from before the last rounds, in which a longer run would differ.
    fn is_before_last_rounds(&self) -> bool {
        self.last_rounds.is_some_and(|last| self.rounds_left() >= last)
    }

    /// Whether to take the checkpoint from which the run can be made longer. It must precede the last rounds, and the tasks in progress are
    /// completed before it is taken. Runs whose result file takes long to write have none.
    fn is_time_for_late_checkpoint(&self) -> bool {
        let Some(last) = self.last_rounds.filter(|_| !self.has_late_checkpoint) else { return false };
        let (least_left, most_left) = (last.saturating_mul(2), last.saturating_mul(3).saturating_add(self.progress.total / 100));
        let is_cheap = MIN_INTERVAL_PER_SAVING_TIME * self.writing_seconds <= self.seconds;
        is_cheap && (least_left..=most_left).contains(&self.rounds_left())
    }

    /// Prints a message on standard error if this process reports on the run.
    pub fn print_message(&self, text: &str) {
        self.display.print(text);
    }

    /// Shows the progress of what is found before the run.
    pub fn show_preparation(&mut self, progress: Progress) {
        self.display.show("preparing", progress);
    }

    /// Shows the progress of the log-likelihoods of rows, which are computed after the last round.
    pub fn show_pointwise(&mut self, progress: Progress) {
        self.display.show("log-likelihoods of rows", progress);
    }

    /// Ends the display of preparation. If it did not finish, the run is stopped before it has begun.
    pub fn end_preparation(&mut self, finished: bool) {
        self.display.end_stage();
        if !finished {
            self.was_stopped = true;
            self.print_message(&format!("stopped before the run began; the same command begins it in {}", self.path.display()));
        }
    }
}

impl Recorder for RunFolder {
    fn write(&mut self, records: Vec<Record>) -> cluster::Result<()> {
        self.has_all_draws = false;
        for record in records {
            match (record, &mut self.writer) {
                (Record::Row(row), _) => self.rows.push(row),
                (Record::Draws(draws), Some(writer)) => writer.push(draws),
                (Record::Draws(_), None) => {}
            }
        }
        let pending = self.writer.as_ref().map_or(0, RunWriter::pending);
        if pending > MAX_PENDING_BYTES {
            let size = fs::metadata(result_file(&self.path)).map_or(0, |file| file.len());
            // After a failure, the next checkpoint writes them or stops the run.
            if self.failed_saves.is_none() && pending as u64 > size / RESULT_FILE_DIVISOR {
                let written = self.write_results(false, self.seconds, None);
                self.saving_seconds += self.writing_seconds;
                match written {
                    Err(cause) if cause.may_pass() => {
                        self.count_failed_save(&cause);
                    }
                    written => written?,
                }
            }
        }
        Ok(())
    }

    fn wants_checkpoint(&mut self, status: Status) -> bool {
        (self.progress, self.seconds) = (status.progress, status.seconds);
        self.display.show("round", status.progress);
        if let Some(left) = stop::time_left().filter(|left| !self.stop_announced && *left < self.time_to_stop_in(status)) {
            stop::ask_to_stop();
            self.display.announce(&format!("the time limit is {} away", text::seconds(left.as_secs_f64())));
        }
        if stop::asked() && !self.stop_announced {
            self.stop_announced = true;
            // After SIGTERM there may be no time to save.
            if !stop::was_terminated() {
                self.display.announce("saving, then stopping, after the tasks in progress");
            }
        }
        let every = if self.has_saved { self.checkpoint_every } else { self.checkpoint_every.min(MAX_TIME_TO_FIRST_CHECKPOINT) };
        // The longer a checkpoint takes, the rarer are checkpoints.
        let every = every.max(Duration::from_secs_f64(MIN_INTERVAL_PER_SAVING_TIME * self.last_saving_seconds));
        // In the last rounds, the checkpoint from which the run could be made longer is kept.
        let is_allowed = !self.is_extendable || self.is_before_last_rounds();
        match self.failed_saves {
            Some(_) => (self.stop_announced || is_allowed) && self.is_time_to_try_again(),
            None => self.stop_announced || is_allowed && self.saved_at.elapsed() >= every || self.is_time_for_late_checkpoint(),
        }
    }

    fn on_checkpoint(&mut self, mut checkpoint: Checkpoint) -> cluster::Result<AfterCheckpoint> {
        self.progress = checkpoint.progress;
        self.has_all_draws = false;
        self.stored = std::mem::take(&mut checkpoint.stored);
        self.stored.retain(|_, stored| *stored > 0);
        self.hosts = checkpoint.ranks.values().map(|rank| rank.usage.host.clone()).collect();
        job_rows::replace(&mut self.rows, &checkpoint, self.saves, self.saving_seconds);
        // A finished run needs no checkpoint; `end` writes its results.
        if !checkpoint.finished {
            let since = Instant::now();
            let now = SavedCheckpoint::of(&checkpoint);
            let saved = self.save(&mut checkpoint);
            let saving_seconds = checkpoint.saving_seconds + since.elapsed().as_secs_f64();
            self.longest_save = self.longest_save.max(saving_seconds);
            self.saving_seconds += saving_seconds;
            if let Err(cause) = saved {
                // The parts of other ranks would take room.
                parts::delete(&self.path, &now.parts);
                if !may_pass(cause.as_ref()) {
                    return Err(cause);
                }
                self.stopped_unsaved = self.count_failed_save(&cause);
                return Ok(if self.stopped_unsaved { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue });
            }
            self.has_late_checkpoint |= self.is_time_for_late_checkpoint();
            self.is_extendable = self.is_before_last_rounds();
            let kept = now.parts.iter().chain(self.last_saved.iter().flat_map(|before| &before.parts)).copied().collect();
            // Other parts only take room.
            drop(parts::clear(&self.path, &kept));
            self.last_saved = Some(now);
            self.report_recovery();
            // What grows with draws and states; the rest is a matter of milliseconds.
            self.last_saving_seconds = self.writing_seconds + checkpoint.saving_seconds;
        }
        (self.saved_at, self.has_saved) = (Instant::now(), true);
        Ok(if stop::asked() { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue })
    }
}

/// The pause after a failed attempt to save.
fn pause(failed: FailedSaves) -> Duration {
    match (stop::was_terminated(), stop::asked()) {
        (true, _) => Duration::ZERO,
        (false, true) => PAUSE_WHILE_STOPPING,
        (false, false) => failed.wait(),
    }
}

/// Whether a failure to save may pass. Those of other ranks arrive as text, and are always failures to write a file.
fn may_pass(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    if let Some(cause) = cause.downcast_ref::<ResultsError>() {
        return cause.may_pass();
    }
    cause.downcast_ref::<CheckpointError>().is_none_or(|cause| matches!(cause, CheckpointError::Io { .. }))
}
