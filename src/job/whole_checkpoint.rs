//! The checkpoint that a job resumes from: the newest that is whole.

use super::error::JobError;
use super::ranks::Ranks;
use crate::cluster::codec::{CodecError, decode, encode};
use crate::cluster::{Checkpoint, StoredState};
use crate::results::{CheckpointParts, ResultsError, RunFolder};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a rank looks for a file of rank 0, and how long it waits in between.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// The newest checkpoint in the folder whose parts are all there and undamaged; on rank 0, if there is one. Every rank calls this.
///
/// # Errors
/// If there are checkpoints and none is whole.
pub(super) fn whole_checkpoint(
    ranks: &Ranks,
    folder: &RunFolder,
    parts: &CheckpointParts,
) -> Result<Option<Checkpoint>, JobError> {
    let mut damage = Vec::new();
    for path in [folder.checkpoint(), folder.previous_checkpoint()] {
        let mut read = None;
        match if ranks.is_root() { Checkpoint::read(&path) } else { Ok(None) } {
            Ok(found) => read = found,
            Err(cause) => damage.push(cause.to_string()),
        }
        let states = read.as_ref().map(Checkpoint::stored_states).unwrap_or_default();
        if let Err(cause) = verify(ranks, &states, parts) {
            damage.push(cause.to_string());
            read = None;
        }
        // Only rank 0 has read it.
        if ranks.broadcast(&[u8::from(read.is_some())]) == [1] {
            return ranks.agree(match (damage.first(), read) {
                (Some(damage), Some(previous)) => fall_back(folder, damage, previous).map(Some),
                (_, newest) => Ok(newest),
            });
        }
    }
    ranks.agree(match damage.is_empty() {
        true => Ok(None),
        false => Err(JobError::NoWholeCheckpoint { folder: folder.path().to_owned(), damage: damage.join("; ") }),
    })
}

/// Checks these states, which rank 0 knows. The ranks share the work.
fn verify(ranks: &Ranks, states: &[StoredState], parts: &CheckpointParts) -> Result<(), JobError> {
    let unreadable = |error: CodecError| JobError::OnSomeRank(error.to_string());
    let states = encode("the places of states", &states).map_err(unreadable)?;
    let states: Vec<StoredState> = decode("the places of states", &ranks.broadcast(&states)).map_err(unreadable)?;
    let mut mine = states.iter().skip(ranks.rank() as usize).step_by(ranks.count() as usize);
    ranks.agree(mine.try_for_each(|state| parts.verify(state)).map_err(JobError::from))
}

/// Says that the run resumes from the checkpoint before the newest one, which is set aside.
fn fall_back(folder: &RunFolder, damage: &str, previous: Checkpoint) -> Result<Checkpoint, JobError> {
    let round = previous.progress.done;
    folder.print_message(&format!("warning: {damage}. The run resumes from the checkpoint before it, after round {round}"));
    folder.set_damaged_checkpoint_aside()?;
    Ok(previous)
}

/// Whether all ranks see the folder of the run. Every rank calls this.
///
/// # Errors
/// If rank 0 cannot write to it.
pub(super) fn is_shared(ranks: &Ranks, folder: &RunFolder) -> Result<bool, JobError> {
    if ranks.count() == 1 {
        return Ok(true);
    }
    // A new name, because a network file system may remember that a file was not there.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = ranks.broadcast(format!(".seen-by-all-{}-{now}", std::process::id()).as_bytes());
    let path = folder.path().join(String::from_utf8_lossy(&name).as_ref());
    let created = if ranks.is_root() { fs::write(&path, "") } else { Ok(()) };
    ranks.agree(created.map_err(ResultsError::io(&path, "write")).map_err(JobError::from))?;
    let is_seen = (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        path.exists()
    });
    let seen = ranks.collect(&[u8::from(is_seen)]).concat();
    if ranks.is_root() {
        // An empty file more or less does no harm.
        drop(fs::remove_file(&path));
    }
    Ok(ranks.broadcast(&[u8::from(!seen.contains(&0))]) == [1])
}
