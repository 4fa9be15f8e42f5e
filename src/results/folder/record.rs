//! What happens to the folder during a run: records are collected, and saved from time to time.

use super::save::{Save, SaveError, Saved, SavedCheckpoint};
use super::saver::Saver;
use super::{RunFolder, write_whole};
use crate::cluster::record::Record;
use crate::cluster::{self, AfterCheckpoint, Checkpoint, Progress, Recorder, Status};
use crate::results::error::{Result, ResultsError};
use crate::results::events::{self, Event, EventKind, events_file};
use crate::results::existing::{first_config_file, result_file};
use crate::results::failed_saves::FailedSaves;
use crate::results::info::{RunInfo, RunState};
use crate::results::read::ResultFile;
use crate::results::samples::SampleGroup;
use crate::results::write::RunWriter;
use crate::results::{job_rows, parts, spool, stop};
use crate::text;
use std::fs;
use std::time::{Duration, Instant};

/// Reading a result file of this size takes a second or longer.
const BYTES_TO_ANNOUNCE: u64 = 1 << 30;

/// A job takes its first checkpoint after at most this time, so that there are results to look at soon.
const MAX_TIME_TO_FIRST_CHECKPOINT: Duration = Duration::from_secs(10);

/// How long a run that is asked to stop goes on trying to save, and the pause between attempts.
const TIME_TO_STOP: Duration = Duration::from_secs(20);
const PAUSE_WHILE_STOPPING: Duration = Duration::from_secs(2);
/// A run with a time limit leaves this many times the longest task, and the longest save, for stopping.
const MARGIN_OF_TASKS: f64 = 1.25;
const MARGIN_OF_SAVES: f64 = 2.0;
/// The time between checkpoints is at least this multiple of the time that the last one took.
const MIN_INTERVAL_PER_SAVING_TIME: f64 = 20.0;

/// Draws in memory are also written between checkpoints if they have more bytes than this, and more than the result file divided by
/// `RESULT_FILE_DIVISOR`. With more than twice as many the run waits until they are written.
const MAX_PENDING_BYTES: u64 = 64 << 20;
const RESULT_FILE_DIVISOR: u64 = 16;

impl RunFolder {
    /// Begins a run, or resumes a saved one, whose result file has these groups of draws. The headline is printed; it names the method
    /// and the number of ranks.
    ///
    /// # Errors
    /// When the groups have invalid names, or the draws of the saved run are missing.
    pub fn begin(&mut self, headline: &str, saved: Option<&Checkpoint>, info: RunInfo, groups: Vec<SampleGroup>) -> Result<()> {
        // Later draws of an interrupted job are discarded.
        let recorded_draws = saved.map(|saved| saved.recorded_draws.clone()).unwrap_or_default();
        self.progress = saved.map(|saved| saved.progress).unwrap_or_default();
        self.done_before = self.progress.done;
        self.last_saved = saved.map(|saved| SavedCheckpoint::of(saved, false));
        let rows = saved.iter().flat_map(|saved| &saved.records).filter_map(|record| match record {
            Record::Row(row) => Some(row),
            Record::Draws(_) => None,
        });
        self.saving_seconds = job_rows::saving_seconds(rows);
        self.is_extendable = saved.is_some() && self.is_before_last_rounds(self.progress);
        spool::clear(&self.path)?;
        let bytes = fs::metadata(result_file(&self.path)).map_or(0, |file| file.len());
        if !recorded_draws.is_empty() && bytes >= BYTES_TO_ANNOUNCE {
            self.print_message(&format!("reading the {} of results so far, to see whether they are whole", text::bytes(bytes)));
        }
        let former = saved.and_then(|_| ResultFile::open(&result_file(&self.path)).ok());
        // Whichever job writes the file, it has the time at which the first one began.
        let created_at = former.as_ref().map_or(info.created_at, |former| former.info().created_at.clone());
        let former_events = former.map(|former| former.events()).unwrap_or_default();
        let info = RunInfo { created_at, ..info };
        let writer = RunWriter::new(&result_file(&self.path), info, groups, recorded_draws)?;
        self.saver = Some(Saver::start(writer).map_err(ResultsError::io(&self.path, "start a thread that saves"))?);
        let resuming = saved.map(|saved| {
            let Progress { done, total } = saved.progress;
            // The checkpoint of a run that was made longer may have its former end.
            let of = if first_config_file(&self.path).exists() { String::new() } else { format!(" of {total}") };
            format!(", resuming after round {done}{of} and {:.0} s", saved.seconds)
        });
        self.restore_events(&former_events);
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

    /// Writes down again what happened before a finished run is made longer, which its result file has.
    fn restore_events(&self, former: &[Event]) {
        if former.len() > events::read(&self.path).len() {
            // As for all events, a failure does not matter.
            drop(write_whole(&events_file(&self.path), events::to_lines(former).as_bytes()));
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

    /// A save of all tables and draws in memory, with the draws that ranks have stored if they are given.
    pub(super) fn save(&mut self, finished: bool, seconds: f64) -> Save {
        let Progress { done, total } = self.progress;
        Save {
            folder: self.path.clone(),
            lock: self.lock.clone(),
            state: RunState { finished, done, total, seconds },
            hosts: self.hosts.clone(),
            unwritten_events: self.unwritten_events.borrow().clone(),
            rows: self.rows.clone(),
            draws: Vec::new(),
            stored: None,
            grids: std::mem::take(&mut self.grids),
            large_grids: std::mem::take(&mut self.large_grids),
            checkpoint: None,
        }
    }

    /// Begins a save. No other may be in progress.
    pub(super) fn begin_save(&mut self, save: Save) {
        if let Some(saver) = &mut self.saver {
            saver.begin(save);
        }
    }

    /// Takes note of the save in progress if it is over, or once it is over.
    pub(super) fn complete_save(&mut self, waits: bool) -> std::result::Result<(), SaveError> {
        let saved = self.saver.as_mut().and_then(|saver| if waits { saver.wait() } else { saver.poll() });
        saved.map_or(Ok(()), |saved| self.complete(saved))
    }

    /// When the save in progress began, if there is one.
    fn save_began(&self) -> Option<Instant> {
        self.saver.as_ref().and_then(Saver::began)
    }

    /// Takes note of what came of a save.
    fn complete(&mut self, saved: Saved) -> std::result::Result<(), SaveError> {
        let Saved { outcome, checkpoint, has_collected, results_seconds, checkpoint_seconds, since, .. } = saved;
        if has_collected {
            self.collected.extend(self.stored.drain(..).map(|draws| draws.part));
        }
        if let Some(timeline) = &self.timeline {
            timeline.add_save(since);
        }
        self.last_results_seconds = results_seconds.unwrap_or(self.last_results_seconds);
        let results_seconds = results_seconds.unwrap_or(0.0);
        let states_seconds = checkpoint.as_ref().map_or(0.0, |checkpoint| checkpoint.states_seconds);
        let seconds = states_seconds + results_seconds + checkpoint_seconds;
        self.saving_seconds += seconds;
        self.longest_save = self.longest_save.max(seconds);
        if let Err(cause) = outcome {
            if let Some(checkpoint) = checkpoint {
                self.has_late_checkpoint &= !checkpoint.is_late;
                // The parts of ranks would take room.
                parts::delete(&self.path, &checkpoint.parts);
            }
            if !cause.may_be_temporary() {
                return Err(cause);
            }
            self.gives_up = self.count_failed_save(&cause);
            return Ok(());
        }
        self.report_recovery();
        let Some(checkpoint) = checkpoint else { return Ok(()) };
        let size = |path| fs::metadata(path).map_or(0, |file| file.len());
        self.saves.count += 1;
        self.saves.states_seconds += states_seconds;
        self.saves.results_seconds += results_seconds;
        self.saves.checkpoint_seconds += checkpoint_seconds;
        self.saves.states_bytes = checkpoint.states_bytes;
        self.saves.results_bytes = size(result_file(&self.path));
        self.saves.checkpoint_bytes = size(self.checkpoint());
        // What grows with draws and states; the rest is a matter of milliseconds.
        self.last_saving_seconds = results_seconds + states_seconds;
        self.is_extendable = self.is_before_last_rounds(checkpoint.progress);
        let kept = checkpoint.parts.iter().chain(self.last_saved.iter().flat_map(|before| &before.parts)).copied().collect();
        // Other parts only take room. None is newer: ranks store states again only after this save is completed.
        drop(parts::clear(&self.path, &kept));
        self.last_saved = Some(checkpoint);
        (self.saved_at, self.has_saved) = (Instant::now(), true);
        Ok(())
    }

    /// Counts and reports a failed attempt to save. Returns whether the run must stop: it could not be saved for long, or somebody has asked
    /// for it some time ago.
    pub(super) fn count_failed_save(&mut self, cause: &dyn std::fmt::Display) -> bool {
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
                if self.progress.left() > 0 { "goes on, and " } else { "" },
                self.describe_resumption()
            ));
        }
        must_stop
    }

    /// Whether the pause after a failed attempt to save is over.
    pub(super) fn is_time_to_try_again(&self) -> bool {
        self.failed_saves.is_none_or(|failed| failed.is_over(pause(failed), Instant::now()))
    }

    /// Reports that the run is saved after attempts that have failed, if there were any.
    pub(super) fn report_recovery(&mut self) {
        self.gives_up = false;
        if self.failed_saves.take().is_some() {
            self.display.announce("the run is saved again");
            self.note(EventKind::SavedAgain, "the run was saved again");
        }
    }

    /// What the next job does with the run.
    pub(super) fn describe_resumption(&self) -> String {
        match &self.last_saved {
            Some(_) if !result_file(&self.path).exists() => "it resumes if result.h5, which is gone, is restored".into(),
            Some(saved) => format!("it resumes after round {}", saved.progress.done),
            None => "it starts again".into(),
        }
    }

    /// How long it may take to end the tasks in progress and to save the run, somewhat longer than the longest so far. At most half of the time
    /// limit: a job that was suspended for a while has long tasks that say nothing.
    pub(super) fn time_to_stop_in(&self, longest_response: f64) -> Duration {
        // The save in progress comes before the last one.
        let in_progress = self.save_began().map_or(0.0, |since| self.longest_save.max(since.elapsed().as_secs_f64()));
        let seconds = MARGIN_OF_TASKS * longest_response + MARGIN_OF_SAVES * self.longest_save + in_progress;
        let retries = if self.failed_saves.is_some() { TIME_TO_STOP } else { Duration::ZERO };
        let longest = stop::time_limit().map_or(Duration::MAX, |limit| limit / 2);
        (stop::LEAST_MARGIN + retries + Duration::try_from_secs_f64(seconds).unwrap_or(longest)).min(longest)
    }

    /// Whether a state is from before the last rounds, in which a longer run would differ.
    fn is_before_last_rounds(&self, progress: Progress) -> bool {
        self.last_rounds.is_some_and(|last| progress.left() >= last)
    }

    /// Whether to take the checkpoint from which the run can be made longer. It must precede the last rounds, and the tasks in progress are
    /// completed before it is taken. It is left out if writing the result file takes more than a twentieth of the run's time.
    fn is_time_for_late_checkpoint(&self) -> bool {
        let Some(last) = self.last_rounds.filter(|_| !self.has_late_checkpoint) else { return false };
        let (least_left, most_left) = (last.saturating_mul(2), last.saturating_mul(3).saturating_add(self.progress.total / 100));
        let is_cheap = MIN_INTERVAL_PER_SAVING_TIME * self.last_results_seconds <= self.seconds;
        is_cheap && (least_left..=most_left).contains(&self.progress.left())
    }
}

impl Recorder for RunFolder {
    fn write(&mut self, records: Vec<Record>) -> cluster::Result<()> {
        self.has_all_draws = false;
        for record in records {
            match (record, &mut self.saver) {
                (Record::Row(row), _) => self.rows.push(row),
                (Record::Draws(draws), Some(saver)) => saver.push(draws),
                (Record::Draws(_), None) => {}
            }
        }
        let pending = |folder: &Self| folder.saver.as_ref().map_or(0, Saver::pending) as u64;
        // After a failure, the next attempt is that of a checkpoint.
        if pending(self) > MAX_PENDING_BYTES && self.failed_saves.is_none() {
            let size = fs::metadata(result_file(&self.path)).map_or(0, |file| file.len());
            let most = MAX_PENDING_BYTES.max(size / RESULT_FILE_DIVISOR);
            self.complete_save(pending(self) > 2 * most)?;
            if pending(self) > most && self.save_began().is_none() && self.failed_saves.is_none() {
                let save = self.save(false, self.seconds);
                self.begin_save(save);
            }
        }
        Ok(())
    }

    fn wants_checkpoint(&mut self, status: Status) -> cluster::Result<bool> {
        (self.progress, self.seconds) = (status.progress, status.seconds);
        self.display.show("round", status.progress);
        if let Some(left) =
            stop::time_left().filter(|left| !self.stop_announced && *left < self.time_to_stop_in(status.longest_response))
        {
            stop::ask_to_stop();
            self.display.announce(&format!("the time limit is {} away", text::seconds(left.as_secs_f64())));
        }
        if stop::asked() && !self.stop_announced {
            self.stop_announced = true;
            // After SIGTERM there may be no time to save.
            if !stop::was_terminated() && stop::claim_announcement() {
                self.display.announce("saving, then stopping, after the tasks in progress");
            }
        }
        let is_urgent = |folder: &Self| folder.stop_announced || folder.is_time_for_late_checkpoint();
        self.complete_save(is_urgent(self))?;
        if self.save_began().is_some() {
            return Ok(false);
        }
        let every = if self.has_saved { self.checkpoint_every } else { self.checkpoint_every.min(MAX_TIME_TO_FIRST_CHECKPOINT) };
        // The longer a checkpoint takes, the rarer are checkpoints.
        let every = every.max(Duration::from_secs_f64(MIN_INTERVAL_PER_SAVING_TIME * self.last_saving_seconds));
        // In the last rounds, the checkpoint from which the run could be made longer is kept.
        let is_allowed = !self.is_extendable || self.is_before_last_rounds(self.progress);
        Ok(match self.failed_saves {
            Some(_) => self.gives_up || (self.stop_announced || is_allowed) && self.is_time_to_try_again(),
            None => is_urgent(self) || is_allowed && self.saved_at.elapsed() >= every,
        })
    }

    fn on_checkpoint(&mut self, mut checkpoint: Checkpoint) -> cluster::Result<AfterCheckpoint> {
        self.complete_save(true)?;
        self.progress = checkpoint.progress;
        self.has_all_draws = false;
        self.stored = std::mem::take(&mut checkpoint.stored);
        // A network file system may still show a file to its rank after it was deleted.
        let reported = self.stored.iter().map(|draws| draws.part).collect();
        self.stored.retain(|draws| !self.collected.contains(&draws.part));
        self.collected = &self.collected & &reported;
        self.hosts = checkpoint.ranks.values().map(|rank| rank.usage.host.clone()).collect();
        job_rows::replace(&mut self.rows, &checkpoint, self.saves, self.saving_seconds);
        // A finished run needs no checkpoint; `end` writes its results.
        if checkpoint.finished {
            return Ok(AfterCheckpoint::Stop);
        }
        let is_late = self.is_time_for_late_checkpoint();
        self.has_late_checkpoint |= is_late;
        let about = SavedCheckpoint::of(&checkpoint, is_late);
        let save = self.save(false, checkpoint.seconds);
        self.begin_save(Save { stored: Some(self.stored.clone()), checkpoint: Some((checkpoint, about)), ..save });
        // A run that must stop waits for this save; others go on meanwhile.
        if stop::asked() || self.gives_up {
            self.complete_save(true)?;
            let is_saved = self.failed_saves.is_none();
            let stops = if is_saved { stop::asked() } else { self.gives_up };
            if stops {
                self.stopped_unsaved = !is_saved;
                return Ok(AfterCheckpoint::Stop);
            }
        }
        Ok(AfterCheckpoint::Continue)
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
