//! The folder of a run: its configuration, its result file and, until it is finished, its checkpoint.
//!
//! `config.toml` and `data.digest` identify the run. They are written once, when the run begins, `config.toml` last. A job holds a lock
//! on `data.digest` while it uses the folder.

use super::error::{Result, ResultsError};
use super::grid::Grid;
use super::info::{RunInfo, RunState};
use super::read::RunFile;
use super::samples::SampleGroup;
use super::spool::{self, Collected};
use super::stop;
use super::write::RunWriter;
use crate::cluster::record::{Record, Row};
use crate::cluster::{
    self, AfterCheckpoint, AgentTime, Checkpoint, Outcome, Progress, Recorder, Status, StoredByRank, TimeSpent,
};
use crate::partial::PartialFile;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, IsTerminal, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The shortest time between two lines of progress if standard error is not a terminal.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// The first checkpoint of a job is not later than this, so that there are results to look at soon.
const FIRST_AFTER: Duration = Duration::from_secs(10);

/// The table of messages and bytes between ranks: columns `PURPOSE_messages` and `PURPOSE_bytes`.
pub const TRAFFIC: &str = "traffic";
/// The table of seconds by phase: a row of the server, which includes saving, and a row for each agent.
pub const PHASES: &str = "phases";
/// The time to the next checkpoint is at least this multiple of the time that saving takes.
const MOST_SAVING: f64 = 20.0;

/// Draws are also written between checkpoints if they take more than this many bytes, and more than this fraction of the file.
const PENDING_BYTES: usize = 64 << 20;
const PENDING_SHARE: u64 = 16;

/// The result file in the folder of a run, which exists from the first checkpoint on.
pub fn result_file(folder: &Path) -> PathBuf {
    folder.join("result.h5")
}

/// The checkpoint in the folder of a run, which exists until the run is finished.
pub fn checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.bin")
}

/// The resolved configuration in the folder of a run, which exists from the beginning.
pub fn config_file(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

/// Whether the run in a folder is finished, according to its result file.
///
/// # Errors
/// When there is a result file that cannot be read.
pub fn is_finished(folder: &Path) -> Result<bool> {
    let file = result_file(folder);
    Ok(file.exists() && RunFile::open(&file)?.info().state.finished)
}

/// The run that a folder holds, if any. Changes nothing, and does not need the folder to exist.
///
/// # Errors
/// If the folder is a file, cannot be read, or holds an incomplete run.
pub fn existing_run(folder: &Path) -> Result<Option<ExistingRun>> {
    let digest = folder.join(DIGEST);
    match fs::read_to_string(&digest) {
        Ok(data_digest) => run_with_digest(folder, &data_digest),
        Err(cause) if cause.kind() == ErrorKind::NotFound => run_with_digest(folder, ""),
        Err(cause) => Err(ResultsError::io(folder, "use it as a folder")(cause)),
    }
}

/// The run that a folder with this `data.digest` holds, if any.
fn run_with_digest(folder: &Path, data_digest: &str) -> Result<Option<ExistingRun>> {
    let finished = is_finished(folder)?;
    let config = config_file(folder);
    let exists = |path: PathBuf| path.try_exists().map_err(ResultsError::io(&path, "look for"));
    let holds_results = exists(result_file(folder))? || exists(checkpoint_file(folder))?;
    match fs::read_to_string(&config) {
        // A run without data has a digest, too: an empty line.
        Ok(_) if data_digest.is_empty() => Err(ResultsError::Content {
            path: config,
            what: "this is not the configuration of a run in this folder: choose another --output".into(),
        }),
        Ok(config) => Ok(Some(ExistingRun { config, data_digest: data_digest.trim_end().into(), finished, holds_results })),
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(&config, "read")(cause)),
        Err(_) if holds_results => Err(ResultsError::Content {
            path: folder.to_owned(),
            what: "the folder holds a run without its config.toml: choose another --output, or delete the folder".into(),
        }),
        Err(_) => Ok(None),
    }
}

/// The file with the digest of the data, which a job locks.
const DIGEST: &str = "data.digest";

/// The folder of a run, managed by rank 0.
pub struct RunFolder {
    path: PathBuf,
    checkpoint_every: Duration,
    saved_at: Instant,
    /// Whether this job has written a checkpoint.
    has_saved: bool,
    /// The result file, once the run has begun.
    writer: Option<RunWriter>,
    rows: Vec<Row>,
    progress: Progress,
    seconds: f64,
    /// Seconds spent on writing the result file: in total, and the last time.
    saving: f64,
    last_saving: f64,
    /// Bytes of draws that ranks have stored since the result file was last written.
    stored: StoredByRank,
    display: Display,
    /// `data.digest`, locked, once the folder is claimed.
    digest: Option<File>,
    /// Whether the request to stop was reported.
    stopping: bool,
    stopped: bool,
}

/// The run that a folder holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingRun {
    /// Its resolved configuration.
    pub config: String,
    /// The digest of its data; empty if it has none.
    pub data_digest: String,
    /// Whether it is finished.
    pub finished: bool,
    /// Whether it has a result file or a checkpoint, which would be lost with the folder.
    pub holds_results: bool,
}

/// How progress is shown: a bar on a terminal, occasional lines otherwise.
enum Display {
    Bar(ProgressBar),
    Lines { last: Instant, done: u64 },
    Nothing,
}

/// The style of a progress bar with a known length; the remaining time is shown after the first round.
fn style() -> ProgressStyle {
    let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        if state.pos() > 0 && !state.eta().is_zero() {
            // If the terminal cannot be written, there is nothing to do about it.
            let _ = write!(text, ", {} left", HumanDuration(state.eta()));
        }
    };
    let template = ProgressStyle::with_template("{bar:40} round {pos}/{len}  {elapsed} elapsed{left}");
    template.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

impl RunFolder {
    /// The folder at `path`; progress is shown if `shows`, in the process that speaks for the job.
    pub fn new(path: &Path, checkpoint_every: Duration, shows: bool) -> Self {
        let display = match (shows, std::io::stderr().is_terminal()) {
            (false, _) => Display::Nothing,
            (true, true) => {
                // The bar stays hidden until the number of rounds is known.
                let bar = ProgressBar::no_length();
                bar.set_style(ProgressStyle::with_template("").unwrap_or_else(|_| ProgressStyle::default_bar()));
                Display::Bar(bar)
            }
            (true, false) => Display::Lines { last: Instant::now(), done: 0 },
        };
        Self {
            path: path.to_owned(),
            checkpoint_every,
            saved_at: Instant::now(),
            has_saved: false,
            writer: None,
            rows: Vec::new(),
            progress: Progress::default(),
            seconds: 0.0,
            saving: 0.0,
            last_saving: 0.0,
            stored: StoredByRank::new(),
            display,
            digest: None,
            stopping: false,
            stopped: false,
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint file.
    pub fn checkpoint(&self) -> PathBuf {
        checkpoint_file(&self.path)
    }

    /// Creates the folder if needed, locks it against other jobs while this value lives, and returns the run that it holds, if any.
    ///
    /// # Errors
    /// When another job uses the folder, it holds an incomplete run, or the file system fails.
    pub fn claim(&mut self) -> Result<Option<ExistingRun>> {
        fs::create_dir_all(&self.path).map_err(ResultsError::io(&self.path, "create the folder"))?;
        let path = self.path.join(DIGEST);
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let mut digest = open.map_err(ResultsError::io(&path, "open"))?;
        match digest.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ResultsError::InUse { folder: self.path.clone() }),
            // Some file systems have no locks; the run works without one.
            Err(TryLockError::Error(cause))
                if cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK) => {}
            Err(TryLockError::Error(cause)) => return Err(ResultsError::io(&path, "lock")(cause)),
        }
        let mut data_digest = String::new();
        digest.read_to_string(&mut data_digest).map_err(ResultsError::io(&path, "read"))?;
        self.digest = Some(digest);
        run_with_digest(&self.path, &data_digest)
    }

    /// Records which run is begun in the folder, which must be claimed.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn record_run(&mut self, config: &str, data_digest: &str) -> Result<()> {
        let path = config_file(&self.path);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&path, "delete")(cause)),
            _ => {}
        }
        if let Some(file) = &mut self.digest {
            // Written in place, because the file is locked. Without a configuration nobody reads it.
            let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{data_digest}"));
            written.and_then(|()| file.sync_all()).map_err(ResultsError::io(&self.path.join(DIGEST), "write"))?;
        }
        let partial = PartialFile::new(&path);
        fs::write(partial.path(), config).map_err(ResultsError::io(partial.path(), "write"))?;
        partial.commit().map_err(ResultsError::io(&path, "finish"))
    }

    /// Whether the run was saved and stopped before its end.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Reports that the run replaces one that ended without results.
    pub fn report_replacement(&self) {
        self.say(&format!("{}: replacing a run that ended before its first checkpoint", self.path.display()));
    }

    /// Reports that the run is already finished.
    pub fn report_finished(&self) {
        self.say(&format!("the run in {0} is finished; see its results with `mpibayes summary {0}`", self.path.display()));
    }

    /// Begins a run or resumes a saved one, and reports `what` begins, such as the method and the number of ranks. The result file will
    /// have these groups of draws.
    ///
    /// # Errors
    /// When the groups have invalid names, or the draws of the saved run are missing.
    pub fn begin(&mut self, what: &str, saved: Option<&Checkpoint>, info: RunInfo, groups: Vec<SampleGroup>) -> Result<()> {
        let drawn = saved.map(|saved| saved.drawn.clone()).unwrap_or_default();
        self.progress = saved.map(|saved| saved.progress).unwrap_or_default();
        self.saving = saved.map_or(0.0, |saved| seconds_of_saving(&saved.records));
        spool::clear(&self.path)?;
        self.writer = Some(RunWriter::new(&result_file(&self.path), info, groups, drawn)?);
        let since = saved.map(|saved| format!(", resuming after {:.0} s", saved.seconds)).unwrap_or_default();
        self.say(&format!("{what}, in {}{since}", self.path.display()));
        self.saved_at = Instant::now();
        Ok(())
    }

    /// Writes the results so far to the result file.
    fn flush(&mut self, finished: bool, seconds: f64, more: Option<Collected>) -> Result<()> {
        let Progress { done, total } = self.progress;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let since = Instant::now();
        let state = RunState { finished, done, total, seconds };
        let written = match more {
            Some(more) => writer.write_complete(&self.rows, state, more),
            None => writer.write(&self.rows, state),
        };
        self.last_saving = since.elapsed().as_secs_f64();
        self.saving += self.last_saving;
        written
    }

    /// The same at a checkpoint, when nothing is in flight and the ranks' own files of draws are closed.
    fn flush_all(&mut self, finished: bool, seconds: f64) -> Result<()> {
        let more = Collected::new(&self.path, &self.stored)?;
        self.flush(finished, seconds, Some(more))?;
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

    /// Writes all draws of a completed run, and opens the result file.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub fn with_all_draws(&mut self, outcome: &Outcome) -> Result<RunFile> {
        self.flush_all(false, outcome.seconds)?;
        RunFile::open(&result_file(&self.path))
    }

    /// Completes the result file, deletes the checkpoint, and reports the result file; or reports that the run was stopped.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn end(&mut self, outcome: &Outcome) -> Result<()> {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        if !outcome.finished {
            self.stopped = true;
            self.say(&format!("stopped and saved in {}; the same command resumes it", self.path.display()));
            return Ok(());
        }
        self.progress.done = self.progress.total;
        self.flush_all(true, outcome.seconds)?;
        let checkpoint = self.checkpoint();
        match fs::remove_file(&checkpoint) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&checkpoint, "delete")(cause)),
            _ => {}
        }
        let (folder, file) = (self.path.display(), result_file(&self.path));
        self.say(&format!(
            "finished after {:.1} s: {}; see it with `mpibayes summary {folder}`",
            outcome.seconds,
            file.display()
        ));
        Ok(())
    }

    /// Replaces the rows of traffic and time by those of a checkpoint.
    fn update_totals(&mut self, checkpoint: &Checkpoint) {
        self.rows.retain(|row| row.table != TRAFFIC && row.table != PHASES);
        let traffic = checkpoint.traffic.0.iter().flat_map(|(purpose, flow)| {
            let purpose = purpose.replace(' ', "_");
            [(format!("{purpose}_messages"), flow.messages as f64), (format!("{purpose}_bytes"), flow.bytes as f64)]
        });
        self.rows.push(Row { table: TRAFFIC.into(), step: 0, agent: None, values: traffic.collect() });
        let mut phases = |agent, values: &[(&str, f64)]| {
            let values = values.iter().map(|&(name, seconds)| (name.to_owned(), seconds)).collect();
            self.rows.push(Row { table: PHASES.into(), step: 0, agent, values });
        };
        let TimeSpent { server, server_monitoring, .. } = checkpoint.spent;
        phases(None, &[("server", server), ("evaluation", server_monitoring), ("saving", self.saving)]);
        for (&agent, spent) in &checkpoint.spent.agents {
            let AgentTime { tasks, after_report, monitoring } = *spent;
            phases(Some(agent), &[("tasks", tasks), ("after_report", after_report), ("evaluation", monitoring)]);
        }
    }

    /// Prints a message on standard error if this process reports progress.
    pub fn say(&self, text: &str) {
        match &self.display {
            Display::Bar(bar) => bar.suspend(|| eprintln!("mpibayes: {text}")),
            Display::Lines { .. } => eprintln!("mpibayes: {text}"),
            Display::Nothing => {}
        }
    }

    fn show(&mut self, status: Status) {
        let progress = status.progress;
        match &mut self.display {
            Display::Bar(bar) => {
                if bar.length() != Some(progress.total) {
                    bar.set_length(progress.total);
                    bar.set_style(style());
                    bar.set_position(progress.done);
                    // Rounds of earlier jobs must not enter the estimate of the remaining time.
                    bar.reset_eta();
                }
                bar.set_position(progress.done);
            }
            Display::Lines { last, done } if progress.done > *done && last.elapsed() >= LINE_EVERY => {
                (*last, *done) = (Instant::now(), progress.done);
                eprintln!("mpibayes: round {} of {}, {:.0} s", progress.done, progress.total, status.seconds);
            }
            Display::Lines { .. } | Display::Nothing => {}
        }
    }
}

impl Recorder for RunFolder {
    fn write(&mut self, records: Vec<Record>) -> cluster::Result<()> {
        for record in records {
            match (record, &mut self.writer) {
                (Record::Row(row), _) => self.rows.push(row),
                (Record::Draws(draws), Some(writer)) => writer.push(draws),
                (Record::Draws(_), None) => {}
            }
        }
        let pending = self.writer.as_ref().map_or(0, RunWriter::pending);
        if pending > PENDING_BYTES {
            let size = fs::metadata(result_file(&self.path)).map_or(0, |file| file.len());
            if pending as u64 > size / PENDING_SHARE {
                self.flush(false, self.seconds, None)?;
            }
        }
        Ok(())
    }

    fn wants_checkpoint(&mut self, status: Status) -> bool {
        (self.progress, self.seconds) = (status.progress, status.seconds);
        self.show(status);
        if stop::asked() && !self.stopping {
            self.stopping = true;
            self.say("saving, then stopping, after the tasks in progress");
        }
        let every = if self.has_saved { self.checkpoint_every } else { self.checkpoint_every.min(FIRST_AFTER) };
        // Large files take long to copy, so that checkpoints become rarer.
        let every = every.max(Duration::from_secs_f64(MOST_SAVING * self.last_saving));
        self.stopping || self.saved_at.elapsed() >= every
    }

    fn on_checkpoint(&mut self, mut checkpoint: Checkpoint) -> cluster::Result<AfterCheckpoint> {
        self.progress = checkpoint.progress;
        self.stored = std::mem::take(&mut checkpoint.stored);
        self.stored.retain(|_, stored| *stored > 0);
        self.update_totals(&checkpoint);
        // A completed run needs no checkpoint.
        if !checkpoint.finished {
            // Draws are written first: a run that resumes discards draws that are later than its checkpoint.
            self.flush_all(false, checkpoint.seconds)?;
            checkpoint.records = self.rows.iter().cloned().map(Record::Row).collect();
            checkpoint.drawn = self.writer.as_ref().map(|writer| writer.extents().clone()).unwrap_or_default();
            checkpoint.write(&self.checkpoint())?;
        }
        (self.saved_at, self.has_saved) = (Instant::now(), true);
        Ok(if stop::asked() { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue })
    }
}

/// The seconds that earlier jobs have spent on saving.
fn seconds_of_saving(records: &[Record]) -> f64 {
    let row = |record: &Record| match record {
        Record::Row(row) if row.table == PHASES => row.values.iter().find(|value| value.0 == "saving").map(|value| value.1),
        Record::Row(_) | Record::Draws(_) => None,
    };
    records.iter().find_map(row).unwrap_or(0.0)
}
