//! The folder of a run: its configuration, its checkpoint while it lasts, its result file; and who looks after it.
//!
//! `config.toml` and `data.digest` say which run it is. They are written when it is begun, the first one last, and never again;
//! a job holds a lock on the second one for as long as it works in the folder.

use super::error::{Result, ResultsError};
use super::spool::{self, Collected};
use super::{Grid, RunFile, RunInfo, RunState, RunWriter, SampleGroup, stop};
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

/// Lines of progress, where there is no terminal, come no more often than this.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// The first checkpoint of a job comes no later than this: people look at what they have just started.
const FIRST_AFTER: Duration = Duration::from_secs(10);

/// The table of messages and bytes between ranks: columns `PURPOSE_messages` and `PURPOSE_bytes`.
pub const TRAFFIC: &str = "traffic";
/// The table of seconds by phase: a row of the server, which includes saving, and a row for each agent.
pub const PHASES: &str = "phases";
/// So many times as long as saving took is it until the next checkpoint, at least.
const MOST_SAVING: f64 = 20.0;

/// Draws are written between checkpoints too where more bytes of them wait than these, and than this share of the file.
const PENDING_BYTES: usize = 64 << 20;
const PENDING_SHARE: u64 = 16;

/// The result file of the run in a folder: there from the first checkpoint on.
pub fn result_file(folder: &Path) -> PathBuf {
    folder.join("result.h5")
}

/// The checkpoint of the run in a folder: there while the run is not over.
pub fn checkpoint_file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.bin")
}

/// The resolved configuration of the run in a folder: there from its beginning.
pub fn config_file(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

/// Whether the run in a folder is over: its result file says so.
///
/// # Errors
/// Where there is a result file, and it cannot be read.
pub fn is_finished(folder: &Path) -> Result<bool> {
    let file = result_file(folder);
    Ok(file.exists() && RunFile::open(&file)?.info().state.finished)
}

/// A run's folder, looked after by rank 0.
pub struct RunFolder {
    path: PathBuf,
    checkpoint_every: Duration,
    saved_at: Instant,
    /// Whether this job has saved the run yet.
    has_saved: bool,
    /// The result file, once the run has begun.
    writer: Option<RunWriter>,
    rows: Vec<Row>,
    progress: Progress,
    seconds: f64,
    /// Seconds that went into writing the result file, by this job; and the last time.
    saving: f64,
    last_saving: f64,
    /// What ranks have stored for this file since it was written last.
    stored: StoredByRank,
    display: Display,
    /// `data.digest`, locked; nothing before the folder is claimed.
    digest: Option<File>,
    /// Whether it was said that the run is being stopped.
    stopping: bool,
    stopped: bool,
}

/// What a folder says about the run in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The resolved configuration that it was begun with.
    pub config: String,
    /// The digest of the data that it was begun on; empty if it has none.
    pub data_digest: String,
    /// Whether it is over.
    pub finished: bool,
    /// Whether it got so far that something would be lost with it.
    pub holds_results: bool,
}

/// How progress is shown: a bar on a terminal, a line now and then elsewhere.
enum Display {
    Bar(ProgressBar),
    Lines { last: Instant, done: u64 },
    Nothing,
}

/// How a bar looks that knows its length; what is left is known once a round is done.
fn style() -> ProgressStyle {
    let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        if state.pos() > 0 && !state.eta().is_zero() {
            // A failure to write it would be that of the terminal.
            let _ = write!(text, ", {} left", HumanDuration(state.eta()));
        }
    };
    let template = ProgressStyle::with_template("{bar:40} round {pos}/{len}  {elapsed} elapsed{left}");
    template.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

impl RunFolder {
    /// The folder at `path`; `shows` says whether this process is the one that speaks.
    pub fn new(path: &Path, checkpoint_every: Duration, shows: bool) -> Self {
        let display = match (shows, std::io::stderr().is_terminal()) {
            (false, _) => Display::Nothing,
            (true, true) => {
                // Nothing is shown before the number of rounds is known.
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

    /// Makes the folder if there is none, keeps other jobs out of it while this value lives, and tells of the run in it.
    ///
    /// # Errors
    /// Where another job works in it, it holds parts of an unknown run, or the system refuses.
    pub fn claim(&mut self) -> Result<Option<Kept>> {
        fs::create_dir_all(&self.path).map_err(ResultsError::io(&self.path, "make the folder"))?;
        let path = self.path.join("data.digest");
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let mut digest = open.map_err(ResultsError::io(&path, "open"))?;
        match digest.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ResultsError::InUse { folder: self.path.clone() }),
            // Not every file system has locks, and a run needs none.
            Err(TryLockError::Error(cause))
                if cause.kind() == ErrorKind::Unsupported || cause.raw_os_error() == Some(libc::ENOLCK) => {}
            Err(TryLockError::Error(cause)) => return Err(ResultsError::io(&path, "lock")(cause)),
        }
        let mut data_digest = String::new();
        digest.read_to_string(&mut data_digest).map_err(ResultsError::io(&path, "read"))?;
        self.digest = Some(digest);
        let finished = is_finished(&self.path)?;
        let config = config_file(&self.path);
        let exists = |path: PathBuf| path.try_exists().map_err(ResultsError::io(&path, "look for"));
        let holds_results = exists(result_file(&self.path))? || exists(self.checkpoint())?;
        match fs::read_to_string(&config) {
            // A run without data has a digest too: an empty line.
            Ok(_) if data_digest.is_empty() => Err(ResultsError::Content {
                path: config,
                what: "this is not the configuration of a run that was begun here; choose another --output".into(),
            }),
            Ok(config) => Ok(Some(Kept { config, data_digest: data_digest.trim_end().into(), finished, holds_results })),
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(&config, "read")(cause)),
            Err(_) if holds_results => Err(ResultsError::Content {
                path: self.path.clone(),
                what: "the folder holds a run, but not the config.toml that says which; choose another --output, or delete it"
                    .into(),
            }),
            Err(_) => Ok(None),
        }
    }

    /// Writes down which run is begun in the folder, which must be claimed.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn keep(&mut self, config: &str, data_digest: &str) -> Result<()> {
        if let Some(file) = &mut self.digest {
            // In place, for it is locked; until there is a configuration, nobody asks what it holds.
            let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{data_digest}"));
            written.and_then(|()| file.sync_all()).map_err(ResultsError::io(&self.path.join("data.digest"), "write"))?;
        }
        let path = config_file(&self.path);
        let partial = PartialFile::new(&path);
        fs::write(partial.path(), config).map_err(ResultsError::io(partial.path(), "write"))?;
        partial.commit().map_err(ResultsError::io(&path, "finish"))
    }

    /// Whether the run was saved and stopped before it was over.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Says that another run was begun in the folder, of which nothing came.
    pub fn gives_way(&self) {
        self.say(&format!(
            "{}: a run that was begun here ended before its first checkpoint; this one takes its place",
            self.path.display()
        ));
    }

    /// Says that there is nothing to do.
    pub fn already_finished(&self) {
        self.say(&format!("the run in {0} is finished; mpibayes summary {0} shows it", self.path.display()));
    }

    /// Says what begins, such as the method and the number of ranks, and where the run goes on if it was saved before; its result
    /// file will hold these groups of draws.
    ///
    /// # Errors
    /// Where the groups cannot be those of a result file, or the draws of the saved run are gone.
    pub fn begin(&mut self, what: &str, saved: Option<&Checkpoint>, info: RunInfo, groups: Vec<SampleGroup>) -> Result<()> {
        let drawn = saved.map(|saved| saved.drawn.clone()).unwrap_or_default();
        self.progress = saved.map(|saved| saved.progress).unwrap_or_default();
        self.saving = saved.map_or(0.0, |saved| seconds_of_saving(&saved.records));
        spool::clear(&self.path)?;
        self.writer = Some(RunWriter::new(&result_file(&self.path), info, groups, drawn)?);
        let since = saved.map(|saved| format!(", going on after {:.0} s of it", saved.seconds)).unwrap_or_default();
        self.say(&format!("{what}, in {}{since}", self.path.display()));
        self.saved_at = Instant::now();
        Ok(())
    }

    /// Writes what has come so far into the result file.
    fn flush(&mut self, finished: bool, seconds: f64, at_rest: Option<Collected>) -> Result<()> {
        let Progress { done, total } = self.progress;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let since = Instant::now();
        let state = RunState { finished, done, total, seconds };
        let written = match at_rest {
            Some(more) => writer.write_at_rest(&self.rows, state, more),
            None => writer.write(&self.rows, state),
        };
        self.last_saving = since.elapsed().as_secs_f64();
        self.saving += self.last_saving;
        written
    }

    /// The same with the run at rest, where nothing is under way any more and ranks' own files of draws are closed.
    fn flush_all(&mut self, finished: bool, seconds: f64) -> Result<()> {
        let more = Collected::new(&self.path, &self.stored)?;
        self.flush(finished, seconds, Some(more))?;
        if !self.stored.is_empty() {
            self.stored.clear();
            spool::clear(&self.path)?;
        }
        Ok(())
    }

    /// Takes arrays for the result file; see [`RunWriter::push_grid`].
    pub fn keep_grid(&mut self, grid: Grid) {
        if let Some(writer) = &mut self.writer {
            writer.push_grid(grid);
        }
    }

    /// The result file of a run that is over, with all its draws.
    ///
    /// # Errors
    /// Where it cannot be written or read.
    pub fn drawn(&mut self, outcome: &Outcome) -> Result<RunFile> {
        self.flush_all(false, outcome.seconds)?;
        RunFile::open(&result_file(&self.path))
    }

    /// Completes the result file of a run that is over, and takes the checkpoint away; says where things are.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn end(&mut self, outcome: &Outcome) -> Result<()> {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        if !outcome.finished {
            self.stopped = true;
            self.say(&format!("stopped and saved in {}; the same command goes on with it", self.path.display()));
            return Ok(());
        }
        self.progress.done = self.progress.total;
        self.flush_all(true, outcome.seconds)?;
        let checkpoint = self.checkpoint();
        match fs::remove_file(&checkpoint) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&checkpoint, "take away")(cause)),
            _ => {}
        }
        let (folder, file) = (self.path.display(), result_file(&self.path));
        self.say(&format!("finished after {:.1} s: {}; mpibayes summary {folder} shows it", outcome.seconds, file.display()));
        Ok(())
    }

    /// What travelled so far and where the time went, in place of what was noted down before.
    fn account(&mut self, checkpoint: &Checkpoint) {
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

    /// Tells people something, unless they want to hear nothing.
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
                    // What jobs before have done says nothing of the speed of this one.
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
            self.say("saving, then stopping: open tasks are done first");
        }
        let every = if self.has_saved { self.checkpoint_every } else { self.checkpoint_every.min(FIRST_AFTER) };
        // A large file takes long to copy.
        let every = every.max(Duration::from_secs_f64(MOST_SAVING * self.last_saving));
        self.stopping || self.saved_at.elapsed() >= every
    }

    fn on_checkpoint(&mut self, mut checkpoint: Checkpoint) -> cluster::Result<AfterCheckpoint> {
        self.progress = checkpoint.progress;
        self.stored = std::mem::take(&mut checkpoint.stored);
        self.stored.retain(|_, stored| *stored > 0);
        self.account(&checkpoint);
        // A run that is over goes straight to its result file.
        if !checkpoint.finished {
            // The draws first: those behind the checkpoint's are cut off where the run goes on.
            self.flush_all(false, checkpoint.seconds)?;
            checkpoint.records = self.rows.iter().cloned().map(Record::Row).collect();
            checkpoint.drawn = self.writer.as_ref().map(|writer| writer.extents().clone()).unwrap_or_default();
            checkpoint.write(&self.checkpoint())?;
        }
        (self.saved_at, self.has_saved) = (Instant::now(), true);
        Ok(if stop::asked() { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue })
    }
}

/// What the jobs before a checkpoint have taken for saving.
fn seconds_of_saving(records: &[Record]) -> f64 {
    let row = |record: &Record| match record {
        Record::Row(row) if row.table == PHASES => row.values.iter().find(|value| value.0 == "saving").map(|value| value.1),
        Record::Row(_) | Record::Draws(_) => None,
    };
    records.iter().find_map(row).unwrap_or(0.0)
}
