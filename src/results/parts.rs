//! Parts of checkpoints: files in the folder of a run in which each rank stores the states of its agents.
//!
//! A part is the bytes of the states, one after the other. The checkpoint that it belongs to has the places and the hashes of the states, so
//! that a run can be resumed on other ranks, and no part is used that a job has not completed.

use super::error::{Result, ResultsError};
use crate::cluster::{self, Rank, SavedState, StateStore, StoredState};
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Ranks with fewer bytes of states send them to rank 0, so that small runs have a single file.
const LEAST_BYTES: u64 = 1 << 20;
/// The same if there are many ranks, and rank 0 would receive much.
const LEAST_BYTES_OF_MANY: u64 = 1 << 16;
/// How many ranks are many.
const MANY_RANKS: u32 = 64;
/// States are read in pieces of this size where only their hash is of interest.
const PIECE: usize = 1 << 20;

/// Stores the states of this rank.
#[derive(Debug)]
pub struct CheckpointParts {
    run: PathBuf,
    rank: Rank,
    least_bytes: u64,
}

impl CheckpointParts {
    /// For the run in a folder, on one of so many ranks. If ranks do not share the folder, all states are sent to rank 0.
    pub fn new(run: &Path, rank: Rank, ranks: u32, is_shared: bool) -> Self {
        let least_bytes = match (is_shared, ranks) {
            (false, _) => u64::MAX,
            (true, ..MANY_RANKS) => LEAST_BYTES,
            (true, _) => LEAST_BYTES_OF_MANY,
        };
        Self { run: run.to_owned(), rank, least_bytes }
    }

    fn open(&self, state: &StoredState) -> Result<(PathBuf, BufReader<File>)> {
        let path = file_of(&self.run, state.checkpoint, state.rank);
        let mut file = File::open(&path).map_err(ResultsError::io(&path, "open"))?;
        let length = file.metadata().map_err(ResultsError::io(&path, "read"))?.len();
        // Before memory is reserved for what the checkpoint promises.
        if state.start.checked_add(state.bytes).is_none_or(|end| end > length) {
            return Err(ResultsError::Content { path, what: "this part of a checkpoint is truncated".into() });
        }
        file.seek(SeekFrom::Start(state.start)).map_err(ResultsError::io(&path, "read"))?;
        Ok((path, BufReader::with_capacity(PIECE, file)))
    }

    /// Checks that a state is there and undamaged.
    ///
    /// # Errors
    /// If it is not.
    pub fn verify(&self, state: &StoredState) -> Result<()> {
        let (path, file) = self.open(state)?;
        let mut hasher = blake3::Hasher::new();
        let read = std::io::copy(&mut file.take(state.bytes), &mut hasher).map_err(ResultsError::io(&path, "read"))?;
        check(path, read == state.bytes && *hasher.finalize().as_bytes() == state.hash)
    }

    fn write(&self, path: &Path, states: &[Vec<u8>]) -> std::io::Result<()> {
        match fs::create_dir(folder_of(&self.run)) {
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => return Err(cause),
            _ => {}
        }
        let mut file = File::create(path)?;
        states.iter().try_for_each(|state| file.write_all(state))?;
        file.sync_all()
    }
}

impl StateStore for CheckpointParts {
    fn save(&self, checkpoint: u64, states: Vec<Vec<u8>>) -> cluster::Result<Vec<SavedState>> {
        if states.iter().map(|state| state.len() as u64).sum::<u64>() < self.least_bytes {
            return Ok(states.into_iter().map(SavedState::Here).collect());
        }
        let path = file_of(&self.run, checkpoint, self.rank);
        self.write(&path, &states).map_err(ResultsError::io(&path, "write"))?;
        let starts = states.iter().scan(0, |end, state| {
            let start = *end;
            *end += state.len() as u64;
            Some(start)
        });
        let stored = starts.zip(&states).map(|(start, state)| {
            let (bytes, hash) = (state.len() as u64, *blake3::hash(state).as_bytes());
            SavedState::Stored(StoredState { checkpoint, rank: self.rank, start, bytes, hash })
        });
        Ok(stored.collect())
    }

    fn load(&self, state: &StoredState) -> cluster::Result<Vec<u8>> {
        let (path, mut file) = self.open(state)?;
        let mut bytes = vec![0; usize::try_from(state.bytes)?];
        file.read_exact(&mut bytes).map_err(ResultsError::io(&path, "read"))?;
        check(path, *blake3::hash(&bytes).as_bytes() == state.hash)?;
        Ok(bytes)
    }
}

fn check(path: PathBuf, is_whole: bool) -> Result<()> {
    let what = "this part of a checkpoint is damaged";
    if is_whole { Ok(()) } else { Err(ResultsError::Content { path, what: what.into() }) }
}

/// The folder with the parts of all ranks.
fn folder_of(run: &Path) -> PathBuf {
    run.join("checkpoint.parts")
}

fn file_of(run: &Path, checkpoint: u64, rank: Rank) -> PathBuf {
    folder_of(run).join(format!("{checkpoint}-rank-{rank}.part"))
}

/// The number of the checkpoint that a file is part of, by its name.
fn checkpoint_of(name: &str) -> Option<u64> {
    let (checkpoint, rank) = name.strip_suffix(".part")?.split_once("-rank-")?;
    rank.parse::<Rank>().ok()?;
    checkpoint.parse().ok()
}

/// Deletes the parts of all checkpoints but those with these numbers, and their folder if it is then empty.
pub(super) fn clear(run: &Path, kept: &[u64]) -> Result<()> {
    let folder = folder_of(run);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(ResultsError::io(&folder, "list")(cause)),
    };
    for entry in entries {
        let path = entry.map_err(ResultsError::io(&folder, "list"))?.path();
        let checkpoint = path.file_name().and_then(|name| checkpoint_of(name.to_str()?));
        if checkpoint.is_some_and(|checkpoint| !kept.contains(&checkpoint)) {
            fs::remove_file(&path).map_err(ResultsError::io(&path, "delete"))?;
        }
    }
    match fs::remove_dir(&folder) {
        Err(cause) if ![ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&cause.kind()) => {
            Err(ResultsError::io(&folder, "delete")(cause))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn large(byte: u8) -> Vec<u8> {
        (0..LEAST_BYTES as usize).map(|at| (at / 7) as u8 ^ byte).collect()
    }

    fn stored(saved: &SavedState) -> StoredState {
        let SavedState::Stored(state) = saved else { unreachable!("a large state is stored in a part") };
        state.clone()
    }

    #[test]
    fn large_states_are_stored_and_found_by_any_rank() {
        let run = tempfile::tempdir().unwrap();
        let states = vec![vec![1, 2, 3], large(5), Vec::new(), large(9)];
        let saved = CheckpointParts::new(run.path(), 3, 4, true).save(12, states.clone()).unwrap();
        assert!(run.path().join("checkpoint.parts/12-rank-3.part").exists());
        let other = CheckpointParts::new(run.path(), 0, 1, true);
        for (saved, state) in saved.iter().zip(states) {
            other.verify(&stored(saved)).unwrap();
            assert_eq!(other.load(&stored(saved)).unwrap(), state);
        }
    }

    #[test]
    fn small_states_and_those_of_ranks_without_the_folder_are_sent() {
        let run = tempfile::tempdir().unwrap();
        let sent = |ranks, is_shared, states: Vec<Vec<u8>>| {
            let saved = CheckpointParts::new(run.path(), 0, ranks, is_shared).save(1, states.clone()).unwrap();
            saved == states.into_iter().map(SavedState::Here).collect::<Vec<_>>()
        };
        assert!(sent(2, true, vec![vec![7; 1 << 17]; 7]) && sent(2, false, vec![large(1)]));
        assert!(!run.path().join("checkpoint.parts").exists());
        assert!(!sent(MANY_RANKS, true, vec![vec![7; 1 << 17]; 7]));
    }

    #[test]
    fn damaged_truncated_and_missing_parts_are_refused() {
        let run = tempfile::tempdir().unwrap();
        let parts = CheckpointParts::new(run.path(), 0, 1, true);
        let saved = parts.save(1, vec![large(1), large(2)]).unwrap();
        let [first, second] = [&saved[0], &saved[1]].map(stored);
        let path = file_of(run.path(), 1, 0);
        let whole = fs::read(&path).unwrap();
        let both = |state: &StoredState| {
            let of = |result: cluster::Result<()>| result.err().map(|error| error.to_string());
            (of(parts.verify(state).map_err(Into::into)), of(parts.load(state).map(drop)))
        };
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&path, flipped).unwrap();
        assert_eq!(both(&first), (None, None));
        let (verified, loaded) = both(&second);
        assert!(verified == loaded && verified.unwrap().contains("1-rank-0.part: this part of a checkpoint is damaged"));
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let (verified, loaded) = both(&second);
        assert!(verified == loaded && verified.unwrap().contains("truncated"));
        let hostile = StoredState { start: u64::MAX, bytes: u64::MAX, ..second.clone() };
        assert!(both(&hostile).1.unwrap().contains("truncated"));
        fs::remove_file(&path).unwrap();
        assert!(both(&second).1.unwrap().contains("cannot open"));
    }

    #[test]
    fn only_parts_of_other_checkpoints_are_deleted() {
        let run = tempfile::tempdir().unwrap();
        clear(run.path(), &[]).unwrap();
        for checkpoint in 1..=3 {
            CheckpointParts::new(run.path(), 0, 1, true).save(checkpoint, vec![large(0)]).unwrap();
        }
        let foreign = folder_of(run.path()).join("thesis.tex");
        fs::write(&foreign, "years of work").unwrap();
        clear(run.path(), &[3, 2]).unwrap();
        let there = |checkpoint| file_of(run.path(), checkpoint, 0).exists();
        assert_eq!([1, 2, 3].map(there), [false, true, true]);
        clear(run.path(), &[]).unwrap();
        assert!(foreign.exists() && !there(3));
        fs::remove_file(foreign).unwrap();
        clear(run.path(), &[]).unwrap();
        assert!(!folder_of(run.path()).exists());
    }
}
