//! The checkpoint that a job resumes from: the newest that is whole.

use super::error::JobError;
use super::ranks::Ranks;
use crate::cluster::codec::{CodecError, decode, encode};
use crate::cluster::{BoxError, Checkpoint, CheckpointError, StoredState};
use crate::results::{CheckpointParts, EventKind, ResultsError, RunFolder};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often rank 0 looks for the files of other ranks, and how long it waits in between.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// The store for the states of this job's agents. Every rank calls this.
pub(super) fn checkpoint_parts(ranks: &Ranks, folder: &RunFolder) -> CheckpointParts {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = blake3::hash(format!("{now} {}", std::process::id()).as_bytes());
    // The number of rank 0 is that of the job.
    let job = ranks.broadcast(&number.as_bytes()[..8]).try_into().map_or(0, u64::from_le_bytes);
    let is_shared = is_shared(ranks, folder.path(), job);
    if !is_shared {
        folder.print_message("note: not all ranks can use the folder of the run: rank 0 gathers their states at each checkpoint");
    }
    CheckpointParts::new(folder.path(), job, ranks.rank(), ranks.count(), is_shared)
}

/// Whether rank 0 sees what all ranks write to the folder of the run. Every rank calls this.
fn is_shared(ranks: &Ranks, folder: &Path, job: u64) -> bool {
    if !matches!(ranks, Ranks::Mpi(_)) || ranks.count() == 1 {
        return true;
    }
    // New names, because a network file system may remember that a file was not there.
    let probe = |rank: u32| folder.join(format!(".written-by-rank-{rank}-{job:016x}"));
    let written = fs::write(probe(ranks.rank()), "").is_ok();
    let all_written = !ranks.collect(&[u8::from(written)]).concat().contains(&0);
    let all_seen = all_written && ranks.is_root() && is_visible((0..ranks.count()).map(probe).collect());
    let is_shared = ranks.broadcast(&[u8::from(all_seen)]) == [1];
    drop(fs::remove_file(probe(ranks.rank())));
    is_shared
}

/// Whether these files appear within a second.
fn is_visible(mut files: Vec<PathBuf>) -> bool {
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        files.retain(|file| !file.exists());
        if files.is_empty() {
            return true;
        }
    }
    false
}

/// Why a checkpoint is not used.
#[derive(Serialize, Deserialize)]
enum Refused {
    /// It is damaged or incomplete.
    Damaged(String),
    /// The file system fails: the checkpoint may be whole.
    Unreadable(String),
}

/// The newest checkpoint in the folder whose parts are all there and undamaged; on rank 0, if there is one. Every rank calls this.
///
/// # Errors
/// If there are checkpoints and none is whole, or one cannot be read now.
pub(super) fn whole_checkpoint(
    ranks: &Ranks,
    folder: &RunFolder,
    parts: &CheckpointParts,
) -> Result<Option<Checkpoint>, JobError> {
    let mut damage = Vec::new();
    for path in [folder.checkpoint(), folder.previous_checkpoint()] {
        let is_previous = path == folder.previous_checkpoint();
        let read = if ranks.is_root() { read(&path) } else { Ok(None) };
        let states = read.as_ref().ok().and_then(Option::as_ref).map(Checkpoint::stored_states).unwrap_or_default();
        let verified = verify(ranks, &states, parts)?;
        let read = read.and_then(|saved| verified.map(|()| saved));
        // Rank 0 decides.
        let (outcome, found) = match read {
            Ok(Some(saved)) => (Ok(true), Some(saved)),
            Ok(None) => (Ok(false), None),
            Err(Refused::Damaged(cause)) => {
                damage.push(cause);
                (Ok(false), None)
            }
            Err(Refused::Unreadable(cause)) => {
                let has_previous = !is_previous && folder.previous_checkpoint().exists();
                (Err(JobError::UnreadableCheckpoint { cause, has_previous }), None)
            }
        };
        let is_found = ranks.agree(outcome)?;
        if ranks.broadcast(&[u8::from(is_found)]) == [1] {
            return ranks.agree(match found {
                Some(saved) => report_use(saved, folder, damage.first(), is_previous).map(Some),
                None => Ok(None),
            });
        }
    }
    ranks.agree(match damage.is_empty() {
        true => Ok(None),
        false => Err(JobError::NoWholeCheckpoint { folder: folder.path().to_owned(), damage: damage.join("; ") }),
    })
}

/// The checkpoint in a file, if there is one.
fn read(path: &Path) -> Result<Option<Checkpoint>, Refused> {
    Checkpoint::read(path).map_err(|cause| match cause {
        CheckpointError::Io { .. } => Refused::Unreadable(cause.to_string()),
        CheckpointError::Damaged { .. } | CheckpointError::Codec(_) => Refused::Damaged(cause.to_string()),
    })
}

/// Checks these states, which rank 0 knows. The ranks that share the folder share the work. The outcome on rank 0 is that of all ranks.
fn verify(ranks: &Ranks, states: &[StoredState], parts: &CheckpointParts) -> Result<Result<(), Refused>, JobError> {
    let unreadable = |error: CodecError| JobError::OnSomeRank(error.to_string());
    let states = encode("the places of states", &states).map_err(unreadable)?;
    let states: Vec<StoredState> = decode("the places of states", &ranks.broadcast(&states)).map_err(unreadable)?;
    let (rank, count) = if parts.is_shared() { (ranks.rank(), ranks.count()) } else { (0, 1) };
    let mut mine = states.iter().skip(rank as usize).step_by(count as usize);
    let verified = if ranks.is_root() || parts.is_shared() { mine.try_for_each(|state| parts.verify(state)) } else { Ok(()) };
    let refused = verified.err().map(|cause| match cause.may_be_temporary() {
        true => Refused::Unreadable(cause.to_string()),
        false => Refused::Damaged(cause.to_string()),
    });
    let of_ranks = ranks.collect(&encode("what a rank has found", &refused).map_err(unreadable)?);
    let of_ranks = of_ranks.iter().map(|bytes| decode::<Option<Refused>>("what a rank has found", bytes));
    let of_ranks: Vec<Option<Refused>> = of_ranks.collect::<Result<_, _>>().map_err(unreadable)?;
    // A checkpoint that may be whole is not given up because another rank has found damage.
    let first = of_ranks.into_iter().flatten().min_by_key(|refused| matches!(refused, Refused::Damaged(_)));
    Ok(first.map_or(Ok(()), Err))
}

/// Reports if the checkpoint is not the newest one, which is then set aside.
fn report_use(saved: Checkpoint, folder: &RunFolder, damage: Option<&String>, is_previous: bool) -> Result<Checkpoint, JobError> {
    let round = saved.progress.done;
    if let Some(damage) = damage {
        let text = format!("{damage}. The run resumes from the checkpoint before it, after round {round}");
        folder.warn(&text);
        folder.note(EventKind::FellBack, &text);
        folder.set_damaged_checkpoint_aside()?;
    } else if is_previous {
        folder.print_message(&format!(
            "note: checkpoint.bin is missing: the run resumes from checkpoint.previous.bin, after round {round}"
        ));
    }
    Ok(saved)
}

/// Reads the states of a checkpoint for ranks that do not see their parts.
///
/// # Errors
/// If one cannot be read.
pub(super) fn load_for_ranks(saved: Option<&mut Checkpoint>, parts: &CheckpointParts) -> Result<(), JobError> {
    let Some(saved) = saved.filter(|_| !parts.is_shared()) else { return Ok(()) };
    let unreadable = |cause: BoxError| JobError::UnreadableCheckpoint { cause: cause.to_string(), has_previous: false };
    saved.load_stored_states(parts).map_err(unreadable)
}

/// Checks that a checkpoint and its parts are whole, in one process.
///
/// # Errors
/// If they are not.
pub(super) fn check_checkpoint(path: &Path, folder: &RunFolder) -> Result<(), JobError> {
    let parts = CheckpointParts::new(folder.path(), 0, 0, 1, true);
    let states = Checkpoint::read(path)?.map(|saved| saved.stored_states()).unwrap_or_default();
    states.iter().try_for_each(|state| parts.verify(state)).map_err(|cause: ResultsError| cause.into())
}
