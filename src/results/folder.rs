//! The folder of a run: its configuration, its checkpoint while it lasts, its result file in the end; and who looks after it.

use super::{ResultsError, RunInfo, Samples, write_run};
use crate::cluster::record::{Draws, Record, Row};
use crate::cluster::{self, Checkpoint, Keeper, Method, Outcome, Status, Then};
use crate::models::Part;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Set by signals that ask the run to save itself and stop.
static STOP: AtomicBool = AtomicBool::new(false);

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

/// A run's folder, looked after by rank 0.
pub struct RunFolder {
    path: PathBuf,
    checkpoint_every: Duration,
    saved_at: Instant,
    records: Vec<Record>,
    display: Display,
}

/// How far the run in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is none.
    New,
    /// It was begun; where it was saved it goes on.
    Begun,
    /// It is over.
    Finished,
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
        Self { path: path.to_owned(), checkpoint_every, saved_at: Instant::now(), records: Vec::new(), display }
    }

    /// The checkpoint file.
    pub fn checkpoint(&self) -> PathBuf {
        checkpoint_file(&self.path)
    }

    fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// What the folder holds of the run with this resolved configuration.
    ///
    /// # Errors
    /// Where it holds a run with another configuration, or cannot be read.
    pub fn stage(&self, resolved: &str) -> Result<Stage, ResultsError> {
        let config = self.config();
        match std::fs::read_to_string(&config) {
            Ok(there) if there == resolved && result_file(&self.path).exists() => Ok(Stage::Finished),
            Ok(there) if there == resolved => Ok(Stage::Begun),
            Ok(there) => {
                let differs = resolved.lines().find(|line| !there.lines().any(|other| other == *line)).unwrap_or("fewer keys");
                Err(ResultsError::OtherRun { folder: self.path.clone(), differs: differs.into() })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Stage::New),
            Err(cause) => Err(ResultsError::io(&config, "read")(cause)),
        }
    }

    /// Makes the folder for this resolved configuration.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn claim(&self, resolved: &str) -> Result<(), ResultsError> {
        std::fs::create_dir_all(&self.path).map_err(ResultsError::io(&self.path, "make the folder"))?;
        let config = self.config();
        std::fs::write(&config, resolved).map_err(ResultsError::io(&config, "write"))
    }

    /// Says that there is nothing to do.
    pub fn already_finished(&self) {
        self.say(&format!("the run in {0} is finished; mpibayes summary {0} shows it", self.path.display()));
    }

    /// Takes up what the checkpoint holds, if there is one, and listens to signals from now on.
    pub fn begin<M: Method>(&mut self, saved: Option<&Checkpoint<M>>) {
        if let Some(saved) = saved {
            self.say(&format!("going on with the run in {} after {:.0} s of it", self.path.display(), saved.seconds));
        }
        for signal in [libc::SIGUSR1, libc::SIGTERM, libc::SIGINT] {
            // SAFETY: the handler only stores to an atomic.
            unsafe { libc::signal(signal, ask_to_stop as *const () as libc::sighandler_t) };
        }
        self.saved_at = Instant::now();
    }

    /// Writes the result file of a run that is over, and takes the checkpoint away; says where things are.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn end(&mut self, outcome: &Outcome, info: &RunInfo, parts: &[Part]) -> Result<(), ResultsError> {
        if let Display::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        if !outcome.finished {
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
        match std::fs::remove_file(&checkpoint) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(ResultsError::io(&checkpoint, "take away")(cause)),
            _ => Ok(()),
        }
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

extern "C" fn ask_to_stop(_signal: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

impl<M: Method> Keeper<M> for RunFolder {
    fn write(&mut self, records: Vec<Record>) {
        self.records.extend(records);
    }

    fn wants_rest(&mut self, status: Status) -> bool {
        self.show(status);
        STOP.load(Ordering::Relaxed) || self.saved_at.elapsed() >= self.checkpoint_every
    }

    fn rested(&mut self, mut checkpoint: Checkpoint<M>) -> cluster::Result<Then> {
        // A run that is over goes straight to its result file.
        if !checkpoint.finished {
            checkpoint.records.clone_from(&self.records);
            checkpoint.write(&self.checkpoint())?;
        }
        self.saved_at = Instant::now();
        Ok(if STOP.load(Ordering::Relaxed) { Then::Stop } else { Then::GoOn })
    }
}
