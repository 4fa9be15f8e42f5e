//! The folder of a run: its configuration, its checkpoint while it lasts, its result file in the end; and who looks after it.
//!
//! `config.toml` and `data.digest` say which run it is. They are written when it is begun, the first one last, and never again;
//! a job holds a lock on the second one for as long as it works in the folder.

use super::error::{Result, ResultsError};
use super::{RunInfo, Samples, stop, write_run};
use crate::cluster::record::{Draws, Record, Row};
use crate::cluster::{self, Checkpoint, Keeper, Method, Outcome, Status, Then};
use crate::models::Part;
use crate::partial::PartialFile;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, IsTerminal, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Lines of progress, where there is no terminal, come no more often than this.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// The result file of the run in a folder: there once the run is over.
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

/// Whether the run in a folder is over.
pub fn is_finished(folder: &Path) -> bool {
    result_file(folder).exists()
}

/// A run's folder, looked after by rank 0.
pub struct RunFolder {
    path: PathBuf,
    checkpoint_every: Duration,
    saved_at: Instant,
    records: Vec<Record>,
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
}

/// How progress is shown: a bar on a terminal, a line now and then elsewhere.
enum Display {
    Bar(ProgressBar),
    Lines { last: Instant, done: u64 },
    Nothing,
}

impl RunFolder {
    /// The folder at `path`; `shows` says whether this process is the one that speaks.
    pub fn new(path: &Path, checkpoint_every: Duration, shows: bool) -> Self {
        let display = match (shows, std::io::stderr().is_terminal()) {
            (false, _) => Display::Nothing,
            (true, true) => {
                let bar = ProgressBar::no_length();
                if let Ok(style) = ProgressStyle::with_template("{bar:40} round {pos}/{len}  {elapsed} elapsed, {eta} left") {
                    bar.set_style(style);
                }
                Display::Bar(bar)
            }
            (true, false) => Display::Lines { last: Instant::now(), done: 0 },
        };
        Self {
            path: path.to_owned(),
            checkpoint_every,
            saved_at: Instant::now(),
            records: Vec::new(),
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
        let finished = is_finished(&self.path);
        let config = config_file(&self.path);
        match fs::read_to_string(&config) {
            Ok(config) => Ok(Some(Kept { config, data_digest: data_digest.trim_end().into(), finished })),
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(ResultsError::io(&config, "read")(cause)),
            Err(_) if finished || self.checkpoint().exists() => Err(ResultsError::Content {
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

    /// Says that there is nothing to do.
    pub fn already_finished(&self) {
        self.say(&format!("the run in {0} is finished; mpibayes summary {0} shows it", self.path.display()));
    }

    /// Says what begins, such as the method and the number of ranks, and where the run goes on if it was saved before.
    pub fn begin<M: Method>(&mut self, what: &str, saved: Option<&Checkpoint<M>>) {
        let since = saved.map(|saved| format!(", going on after {:.0} s of it", saved.seconds)).unwrap_or_default();
        self.say(&format!("{what}, in {}{since}", self.path.display()));
        self.saved_at = Instant::now();
    }

    /// Writes the result file of a run that is over, and takes the checkpoint away; says where things are.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn end(&mut self, outcome: &Outcome, info: &RunInfo, parts: &[Part]) -> Result<()> {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        if !outcome.finished {
            self.stopped = true;
            self.say(&format!("stopped and saved in {}; the same command goes on with it", self.path.display()));
            return Ok(());
        }
        let mut rows: Vec<Row> = Vec::new();
        let mut draws: Vec<Draws> = Vec::new();
        for record in std::mem::take(&mut self.records) {
            match record {
                Record::Row(row) => rows.push(row),
                Record::Draws(block) => draws.push(block),
            }
        }
        let traffic = outcome.traffic.0.iter().flat_map(|(purpose, flow)| {
            let purpose = purpose.replace(' ', "_");
            [(format!("{purpose}_messages"), flow.messages as f64), (format!("{purpose}_bytes"), flow.bytes as f64)]
        });
        rows.push(Row { table: "traffic".into(), step: 0, agent: None, values: traffic.collect() });
        let samples = if draws.is_empty() { Vec::new() } else { vec![Samples::assemble("posterior", parts, &draws)?] };
        write_run(&result_file(&self.path), info, &samples, &rows)?;
        let checkpoint = self.checkpoint();
        match fs::remove_file(&checkpoint) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(ResultsError::io(&checkpoint, "take away")(cause)),
            _ => {}
        }
        let (folder, file) = (self.path.display(), result_file(&self.path));
        self.say(&format!("finished after {:.1} s: {}; mpibayes summary {folder} shows it", outcome.seconds, file.display()));
        Ok(())
    }

    fn say(&self, text: &str) {
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
                bar.set_length(progress.total);
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

impl<M: Method> Keeper<M> for RunFolder {
    fn write(&mut self, records: Vec<Record>) {
        self.records.extend(records);
    }

    fn wants_rest(&mut self, status: Status) -> bool {
        self.show(status);
        if stop::asked() && !self.stopping {
            self.stopping = true;
            self.say("saving, then stopping: open tasks are done first");
        }
        self.stopping || self.saved_at.elapsed() >= self.checkpoint_every
    }

    fn rested(&mut self, mut checkpoint: Checkpoint<M>) -> cluster::Result<Then> {
        // A run that is over goes straight to its result file.
        if !checkpoint.finished {
            checkpoint.records.clone_from(&self.records);
            checkpoint.write(&self.checkpoint())?;
        }
        self.saved_at = Instant::now();
        Ok(if stop::asked() { Then::Stop } else { Then::GoOn })
    }
}
