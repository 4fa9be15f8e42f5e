//! One save of a run: draws and tables go to the result file, then the checkpoint is written.

use crate::cluster::record::{DrawBlock, Record, Row};
use crate::cluster::{Checkpoint, CheckpointError, PartId, Progress, StoredDraws};
use crate::partial::PartialFile;
use crate::results::error::{Result, ResultsError};
use crate::results::events::{self, Event, EventKind};
use crate::results::existing::{checkpoint_file, previous_checkpoint_file};
use crate::results::grid::Grid;
use crate::results::info::RunState;
use crate::results::lock::FolderLock;
use crate::results::spool::{self, StoredBlocks};
use crate::results::write::RunWriter;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What is saved, in one go.
pub(super) struct Save {
    pub folder: PathBuf,
    /// The lock on the folder, which must still be held when a file is replaced.
    pub lock: Option<Arc<FolderLock>>,
    pub state: RunState,
    pub hosts: Vec<String>,
    /// Events that are not in the file of events.
    pub unwritten_events: Vec<Event>,
    /// The rows of all tables.
    pub rows: Vec<Row>,
    /// Draws in memory.
    pub draws: Vec<DrawBlock>,
    /// Draws in files of ranks, which are deleted once the result file has them. Between checkpoints, when draws may be missing, there are none.
    pub stored: Option<Vec<StoredDraws>>,
    pub grids: Vec<Grid>,
    pub large_grids: Vec<(String, PartialFile)>,
    /// The checkpoint that is written after the result file, and what to remember of it.
    pub checkpoint: Option<(Checkpoint, SavedCheckpoint)>,
}

/// What there is to know of a checkpoint in the folder.
#[derive(Clone, Debug)]
pub(super) struct SavedCheckpoint {
    pub progress: Progress,
    pub parts: BTreeSet<PartId>,
    /// Whether it is the one from which a finished run could be made longer.
    pub is_late: bool,
    /// What ranks have written, and the seconds that the slowest needed.
    pub states_bytes: u64,
    pub states_seconds: f64,
}

impl SavedCheckpoint {
    pub fn of(checkpoint: &Checkpoint, is_late: bool) -> Self {
        let states = checkpoint.stored_states();
        Self {
            progress: checkpoint.progress,
            parts: states.iter().map(|state| state.part).collect(),
            is_late,
            states_bytes: states.iter().map(|state| state.bytes).sum(),
            states_seconds: checkpoint.saving_seconds,
        }
    }
}

/// Why a run is not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The result file cannot be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A rank could not write its states.
    #[error("{0}")]
    States(String),
    /// The thread that saves has panicked.
    #[error("panicked while saving: {0}")]
    Panic(String),
}

impl SaveError {
    /// Whether the cause may be gone later, without anything being done to the run.
    pub(super) fn may_be_temporary(&self) -> bool {
        match self {
            Self::Results(cause) => cause.may_be_temporary(),
            Self::Checkpoint(cause) => matches!(cause, CheckpointError::Io { .. }),
            Self::States(_) => true,
            Self::Panic(_) => false,
        }
    }
}

/// What came of a save.
pub(super) struct Saved {
    pub outcome: std::result::Result<(), SaveError>,
    /// The checkpoint, whether or not it could be written.
    pub checkpoint: Option<SavedCheckpoint>,
    /// Whether the result file has the draws of the files of ranks.
    pub has_collected: bool,
    /// The bytes of draws that were not written.
    pub unwritten_bytes: usize,
    /// Seconds for the result file, if its turn came, and for the checkpoint.
    pub results_seconds: Option<f64>,
    pub checkpoint_seconds: f64,
    pub since: Instant,
}

impl Saved {
    /// Nothing, because of a panic.
    pub fn panicked(panic: &(dyn std::any::Any + Send), since: Instant) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let outcome = Err(SaveError::Panic(text.unwrap_or("for an unknown reason").to_owned()));
        Self {
            outcome,
            checkpoint: None,
            has_collected: false,
            unwritten_bytes: 0,
            results_seconds: None,
            checkpoint_seconds: 0.0,
            since,
        }
    }
}

impl Save {
    /// Carries the save out. What cannot be written stays with the writer.
    pub fn carry_out(mut self, writer: &mut RunWriter) -> Saved {
        let since = Instant::now();
        self.draws.drain(..).for_each(|draws| writer.push(draws));
        self.grids.drain(..).for_each(|grid| writer.push_grid(grid));
        self.large_grids.drain(..).for_each(|(group, file)| writer.push_large_grid(&group, file));
        let checkpoint = self.checkpoint.as_ref().map(|(_, checkpoint)| checkpoint.clone());
        let (mut has_collected, mut results_seconds, mut checkpoint_seconds) = (false, None, 0.0);
        let mut save = || {
            if let Some(cause) = self.checkpoint.as_mut().and_then(|(checkpoint, _)| checkpoint.failure.take()) {
                return Err(SaveError::States(cause));
            }
            // Draws are written before the checkpoint: a resumed run discards later draws, but cannot restore missing ones.
            let written = self.write_results(writer);
            results_seconds = Some(since.elapsed().as_secs_f64());
            written?;
            has_collected = self.stored.is_some();
            let since = Instant::now();
            self.write_checkpoint(writer)?;
            checkpoint_seconds = since.elapsed().as_secs_f64();
            Ok(())
        };
        let outcome = save();
        Saved {
            outcome,
            checkpoint,
            has_collected,
            unwritten_bytes: writer.pending(),
            results_seconds,
            checkpoint_seconds,
            since,
        }
    }

    fn check_lock(&self) -> Result<()> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.check())
    }

    fn write_results(&self, writer: &mut RunWriter) -> Result<()> {
        self.check_lock()?;
        let mut events = events::read(&self.folder);
        events.extend(self.unwritten_events.iter().cloned());
        if self.state.finished {
            events.push(Event::now(EventKind::Finished, format!("finished after {:.1} s", self.state.seconds)));
        }
        writer.describe_job(self.hosts.clone(), events);
        let check = || self.check_lock();
        let (rows, state, stored) = (&self.rows, self.state, self.stored.as_deref());
        let written = match stored {
            None => writer.write_if(rows, state, &check),
            Some(stored) => writer.write_complete_if(rows, state, StoredBlocks::new(&self.folder, stored)?, &check),
        };
        written.map_err(|error| writer.cause_of(error))?;
        // A file that stays only takes room: its draws are known to be collected.
        spool::delete(&self.folder, stored.unwrap_or_default());
        Ok(())
    }

    fn write_checkpoint(&mut self, writer: &RunWriter) -> std::result::Result<(), SaveError> {
        let Some((mut checkpoint, _)) = self.checkpoint.take() else { return Ok(()) };
        checkpoint.records = self.rows.drain(..).map(Record::Row).collect();
        checkpoint.recorded_draws = writer.extents().clone();
        self.check_lock()?;
        Ok(checkpoint.write(&checkpoint_file(&self.folder), Some(&previous_checkpoint_file(&self.folder)))?)
    }
}
