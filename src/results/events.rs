//! What happened to a run: its stops and resumes, attempts to save that failed, checkpoints that were damaged.
//!
//! The file `events.jsonl` in the folder of a run has a line of JSON for each event. It is written at once, so that the events of a job that
//! was killed are kept.

use super::lock::this_job;
use crate::text;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// So much of the file is read at most.
const MAX_BYTES: u64 = 64 << 20;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run began.
    Began,
    /// A job resumed the run.
    Resumed,
    /// The run was saved and stopped.
    Stopped,
    /// The run was stopped without saving.
    StoppedUnsaved,
    /// The run ended with all results.
    Finished,
    /// The first attempt to save that failed since the run was last saved.
    NotSaved,
    /// The run was saved after that.
    SavedAgain,
    /// A job took the folder over from another one that was lost.
    TakenOver,
    /// The launcher ended a job, because it was interrupted or a rank was lost.
    Terminated,
    /// A job ended because nothing was heard from a rank.
    RankSilent,
    /// An error ended a job.
    Failed,
    /// The newest checkpoint was damaged or unreadable, and the run continued from the one before.
    FellBack,
}

/// Something that happened to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When: ISO 8601, UTC.
    pub time: String,
    /// The job and its host: `Slurm job 42 on node7`.
    pub job: String,
    /// What happened.
    pub event: EventKind,
    /// The same in words.
    pub text: String,
}

impl Event {
    /// An event of this job that happens now.
    pub fn now(event: EventKind, text: String) -> Self {
        Self { time: text::iso_time_now(), job: this_job(), event, text }
    }
}

/// The file of events in the folder of a run.
pub fn events_file(folder: &Path) -> PathBuf {
    folder.join("events.jsonl")
}

/// Writes down what happened to the run in a folder, from any rank that sees it.
pub fn note_event(folder: &Path, event: EventKind, text: String) {
    // The job is ending, and the next one reports that it did not stop by itself.
    drop(append(folder, &Event::now(event, text)));
}

/// Whether the last thing that happened to the run in a folder is an error that ended its job, at this time (ISO 8601, UTC) or later.
pub fn has_failed(folder: &Path, since: &str) -> bool {
    read(folder).last().is_some_and(|event| event.event == EventKind::Failed && event.time.as_str() >= since)
}

/// Why the last job of the run in a folder ended, if it did not end in order and that is known.
pub fn why_ended(folder: &Path) -> Option<String> {
    let is_end = |event: &Event| matches!(event.event, EventKind::Failed | EventKind::RankSilent | EventKind::Terminated);
    let mut ends: Vec<Event> = read(folder).into_iter().rev().take_while(is_end).collect();
    // The launcher ends the other ranks after an error.
    ends.sort_by_key(|event| event.event == EventKind::Terminated);
    ends.into_iter().next().map(|event| event.text)
}

/// Adds an event to the file.
///
/// # Errors
/// When the file system fails.
pub(super) fn append(folder: &Path, event: &Event) -> std::io::Result<()> {
    let line = serde_json::to_string(event)?;
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(events_file(folder))?;
    // If a full disk has cut the last line short, this one begins on a new line.
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.read_exact_at(&mut last, file.metadata()?.len().saturating_sub(1))?;
    }
    let begin = if last == *b"\n" { "" } else { "\n" };
    file.write_all(format!("{begin}{line}\n").as_bytes())
}

/// The events in the file. Lines that cannot be read, such as one that a full disk cut short, are left out, and a file that cannot be read has
/// none: a run does not depend on them.
pub(super) fn read(folder: &Path) -> Vec<Event> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(events_file(folder)) {
        drop(file.take(MAX_BYTES).read_to_end(&mut bytes));
    }
    from_lines(&String::from_utf8_lossy(&bytes))
}

/// The events in a result file and those in its folder, which knows more during the run, and after a job that was killed.
pub(super) fn with_those_in_folder(mut all: Vec<Event>, folder: &Path) -> Vec<Event> {
    let more: Vec<Event> = read(folder).into_iter().filter(|event| !all.contains(event)).collect();
    all.extend(more);
    all
}

/// The events in these lines.
pub(super) fn from_lines(lines: &str) -> Vec<Event> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The events as lines.
pub(super) fn to_lines(events: &[Event]) -> String {
    events.iter().filter_map(|event| serde_json::to_string(event).ok()).map(|line| line + "\n").collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written_and_damage_costs_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).is_empty());
        let events = [EventKind::Began, EventKind::Stopped].map(|kind| Event::now(kind, format!("{kind:?}\nis \"said\"")));
        append(folder.path(), &events[0]).unwrap();
        std::fs::OpenOptions::new().append(true).open(events_file(folder.path())).unwrap().write_all(b"{\"time\":").unwrap();
        append(folder.path(), &events[1]).unwrap();
        assert_eq!(read(folder.path()), events);
        assert_eq!(from_lines(&to_lines(&events)), events);
    }
}
