//! What happens to the folder after the last round: all results are written, and the checkpoints go.

use super::save::{Save, SaveError};
use super::{RunFolder, delete};
use crate::cluster::{Outcome, Progress};
use crate::partial::PartialFile;
use crate::results::error::{Result, ResultsError};
use crate::results::events::{EventKind, events_file};
use crate::results::existing::{damaged_checkpoint_file, result_file};
use crate::results::grid::Grid;
use crate::results::read::ResultFile;
use crate::results::{parts, spool, stop};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// How often a job that waits looks whether somebody asks it to stop.
const POLL: Duration = Duration::from_millis(100);

impl RunFolder {
    /// Adds arrays to the result file; an existing group is not changed.
    pub fn add_arrays(&mut self, grid: Grid) {
        self.grids.push(grid);
    }

    /// Adds a group of arrays, which are copied from a file of [`GridFile`](crate::results::GridFile).
    pub fn add_large_arrays(&mut self, group: &str, file: PartialFile) {
        self.large_grids.push((group.to_owned(), file));
    }

    /// Writes all draws of a completed run, before anything else is computed from them. Returns whether that was possible; if not, the run is
    /// stopped.
    ///
    /// # Errors
    /// When they cannot be written, and trying again would not help.
    pub fn write_draws_of_completed_run(&mut self, outcome: &Outcome) -> std::result::Result<bool, SaveError> {
        if !self.has_all_draws {
            self.has_all_draws = self.write_all_results(false, outcome.seconds)?;
        }
        Ok(self.has_all_draws)
    }

    /// Opens the result file of a completed run, whose draws are written.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open_results(&self) -> Result<ResultFile> {
        ResultFile::open(&result_file(&self.path))
    }

    /// Completes the result file of a finished run, and deletes its checkpoint or keeps it for a longer run. Prints that the run
    /// has finished, or that it was stopped.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn end(&mut self, outcome: &Outcome) -> std::result::Result<(), SaveError> {
        self.display.clear();
        if self.was_stopped {
            return Ok(());
        }
        if !outcome.finished {
            self.report_stop();
            return Ok(());
        }
        self.progress.done = self.progress.total;
        if !self.write_all_results(true, outcome.seconds)? {
            return Ok(());
        }
        drop(spool::clear(&self.path));
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

    /// Deletes the checkpoints of a finished run, or keeps the one from which it can be made longer. The run counts as
    /// finished once no checkpoint is left at its usual path.
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
            drop(self.delete_tuning());
        }
        // The rest only takes room.
        drop(delete(&damaged_checkpoint_file(&self.path)));
        drop(parts::clear(&self.path, &kept));
        Ok(())
    }

    /// Reports that the run was stopped before its end.
    fn report_stop(&mut self) {
        self.was_stopped = true;
        // The next job makes draws since the last checkpoint again: their files are deleted, unless another job has the folder by now.
        if self.lock.as_ref().is_some_and(|lock| lock.check().is_ok()) {
            drop(spool::clear(&self.path));
        }
        let (event, how) = match self.stopped_unsaved {
            false => (EventKind::Stopped, "and saved"),
            true => (EventKind::StoppedUnsaved, "without saving"),
        };
        let Progress { done, total } = self.progress;
        self.note(event, &format!("stopped {how} after round {done} of {total}"));
        let folder = self.path.display();
        // A script that starts the job again and again would never come to an end.
        let has_no_time = stop::time_limit().is_some() && done == self.done_before;
        let remark = if has_no_time { ". Give it more time: no round was finished within --max-time" } else { "" };
        self.print_message(&match self.stopped_unsaved {
            false => format!("stopped {how} in {folder}; the same command resumes it{remark}"),
            true => format!("stopped {how} in {folder}: with the same command {}", self.describe_resumption()),
        });
    }

    /// Writes tables and all draws to the result file. Tries again while the file system fails: for half an hour, or for a short time after a
    /// request to stop. Returns whether it succeeded; if not, the run is stopped.
    fn write_all_results(&mut self, finished: bool, seconds: f64) -> std::result::Result<bool, SaveError> {
        loop {
            let save = self.save(finished, seconds);
            self.begin_save(Save { stored: Some(self.stored.clone()), ..save });
            self.complete_save(true)?;
            if self.failed_saves.is_none() || self.gives_up {
                break;
            }
            while !self.is_time_to_try_again() {
                std::thread::sleep(POLL);
            }
        }
        if self.gives_up {
            self.stopped_unsaved = true;
            self.report_stop();
        }
        Ok(!self.gives_up)
    }
}
