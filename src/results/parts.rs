//! Parts of checkpoints: files in the folder of a run in which each rank stores the states of its agents.
//!
//! A part is the bytes of the states, one after the other. The checkpoint has the offset and the hash of each state. A run can therefore be
//! resumed on other ranks, and parts of incomplete checkpoints are never used.

use super::delete_files::delete_files;
use super::error::{Result, ResultsError};
use crate::cluster::{self, NotSaved, PartId, Rank, SavedState, StateStore, StoredState, WriteState};
use crate::partial::sync_folder_of;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Ranks with fewer bytes of states send them to rank 0, so that small runs have a single file.
const LEAST_BYTES: u64 = 1 << 20;
/// The same if there are many ranks, and rank 0 would receive much.
const LEAST_BYTES_OF_MANY: u64 = 1 << 16;
/// How many ranks are many.
const MANY_RANKS: u32 = 64;
/// The size of buffers for reading and writing.
const PIECE: usize = 1 << 20;

/// Stores the states of this rank.
#[derive(Debug)]
pub struct CheckpointParts {
    run: PathBuf,
    rank: Rank,
    job: u64,
    /// The number of the next part.
    next: AtomicU64,
    is_shared: bool,
    least_bytes: u64,
}

impl CheckpointParts {
    /// For the run in a folder, on one of this many ranks of the job with this random number. If ranks do not share the folder, all states are
    /// sent to rank 0.
    pub fn new(run: &Path, job: u64, rank: Rank, ranks: u32, is_shared: bool) -> Self {
        let least_bytes = match (is_shared, ranks) {
            (false, _) => u64::MAX,
            (true, ..MANY_RANKS) => LEAST_BYTES,
            (true, _) => LEAST_BYTES_OF_MANY,
        };
        Self { run: run.to_owned(), rank, job, next: AtomicU64::new(1), is_shared, least_bytes }
    }

    /// The random number of the job.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// Whether all ranks use the folder.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn open(&self, state: &StoredState) -> Result<(PathBuf, BufReader<File>)> {
        let path = file_of(&self.run, state.part);
        let mut file = match File::open(&path) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return Err(ResultsError::Content { path, what: "this part of a checkpoint is missing".into() });
            }
            opened => opened.map_err(ResultsError::io(&path, "open"))?,
        };
        let length = file.metadata().map_err(ResultsError::io(&path, "read"))?.len();
        // Before memory is reserved for what the checkpoint promises.
        if state.start.checked_add(state.bytes).is_none_or(|end| end > length) {
            return Err(ResultsError::Content { path, what: "this part of a checkpoint is truncated".into() });
        }
        file.seek(SeekFrom::Start(state.start)).map_err(ResultsError::io(&path, "read"))?;
        let piece = usize::try_from(state.bytes).unwrap_or(PIECE).min(PIECE);
        Ok((path, BufReader::with_capacity(piece, file)))
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
}

impl StateStore for CheckpointParts {
    fn save(&self, states: Vec<WriteState>) -> std::result::Result<Vec<SavedState>, NotSaved> {
        let id = PartId { job: self.job, number: self.next.fetch_add(1, Ordering::Relaxed), rank: self.rank };
        let mut part = PartWriter::new(file_of(&self.run, id), self.least_bytes);
        let mut written = Vec::with_capacity(states.len());
        for write in states {
            let start = part.length;
            let outcome = write(&mut part);
            part.check_written()?;
            outcome.map_err(NotSaved::State)?;
            let hash = *part.hasher.finalize().as_bytes();
            part.hasher.reset();
            written.push(StoredState { part: id, start, bytes: part.length - start, hash });
        }
        match part.finish()? {
            // The buffer has all of the states.
            Some(buffer) => {
                let here = |state: &StoredState| buffer[state.start as usize..][..state.bytes as usize].to_vec();
                Ok(written.iter().map(|state| SavedState::Here(here(state))).collect())
            }
            None => Ok(written.into_iter().map(SavedState::Stored).collect()),
        }
    }

    fn load(&self, state: &StoredState) -> cluster::Result<Vec<u8>> {
        let (path, mut file) = self.open(state)?;
        let mut bytes = vec![0; usize::try_from(state.bytes)?];
        file.read_exact(&mut bytes).map_err(ResultsError::io(&path, "read"))?;
        check(path, *blake3::hash(&bytes).as_bytes() == state.hash)?;
        Ok(bytes)
    }
}

/// Writes a part. A short one stays in memory.
struct PartWriter {
    path: PathBuf,
    least_bytes: u64,
    buffer: Vec<u8>,
    /// The file, once the states do not stay in memory.
    file: Option<File>,
    /// The number of bytes so far.
    length: u64,
    hasher: blake3::Hasher,
    /// Why the file cannot be written.
    failure: Option<std::io::Error>,
    is_finished: bool,
}

impl PartWriter {
    fn new(path: PathBuf, least_bytes: u64) -> Self {
        let hasher = blake3::Hasher::new();
        Self { path, least_bytes, buffer: Vec::new(), file: None, length: 0, hasher, failure: None, is_finished: false }
    }

    fn flush_buffer(&mut self) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir(folder).or_else(|cause| match cause.kind() {
                        ErrorKind::AlreadyExists => Ok(()),
                        _ => Err(cause),
                    })?;
                }
                none.insert(File::create(&self.path)?)
            }
        };
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.length += bytes.len() as u64;
        self.hasher.update(bytes);
        if self.file.is_none() && self.length < self.least_bytes {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        if bytes.len() < PIECE {
            self.buffer.extend_from_slice(bytes);
            return if self.buffer.len() < PIECE { Ok(()) } else { self.flush_buffer() };
        }
        // Large states are not copied.
        self.flush_buffer()?;
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
    }

    /// Whether everything could be written.
    fn check_written(&mut self) -> std::result::Result<(), NotSaved> {
        let failed = ResultsError::io(&self.path, "write");
        self.failure.take().map_or(Ok(()), |cause| Err(NotSaved::Store(failed(cause).into())))
    }

    /// Completes the file, or returns the bytes if they are few.
    fn finish(mut self) -> std::result::Result<Option<Vec<u8>>, NotSaved> {
        if self.length < self.least_bytes {
            return Ok(Some(std::mem::take(&mut self.buffer)));
        }
        let synced = self.flush_buffer().and_then(|()| self.file.as_ref().map_or(Ok(()), File::sync_all));
        let synced = synced.and_then(|()| sync_folder_of(&self.path));
        self.failure = synced.err();
        self.check_written()?;
        self.is_finished = true;
        Ok(None)
    }
}

impl Write for PartWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes).map(|()| bytes.len()).inspect_err(|cause| {
            // The serializer does not pass on the cause.
            self.failure = Some(std::io::Error::new(cause.kind(), cause.to_string()));
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for PartWriter {
    fn drop(&mut self) {
        // An incomplete part would take room on a full disk.
        if self.file.take().is_some() && !self.is_finished {
            drop(fs::remove_file(&self.path));
        }
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

fn file_of(run: &Path, part: PartId) -> PathBuf {
    folder_of(run).join(name_of(part))
}

/// The name of the file with this part.
pub(super) fn name_of(PartId { job, number, rank }: PartId) -> String {
    format!("{job:016x}-{number}-rank-{rank}.part")
}

/// The part that a file of this name has.
pub(super) fn part_of(name: &str) -> Option<PartId> {
    let (checkpoint, rank) = name.strip_suffix(".part")?.split_once("-rank-")?;
    let (job, number) = checkpoint.split_once('-')?;
    let part = PartId { job: u64::from_str_radix(job, 16).ok()?, number: number.parse().ok()?, rank: rank.parse().ok()? };
    (name_of(part) == name).then_some(part)
}

/// Deletes these parts, as far as that is possible.
pub(super) fn delete(run: &Path, parts: &BTreeSet<PartId>) {
    parts.iter().for_each(|part| drop(fs::remove_file(file_of(run, *part))));
}

/// Deletes all parts but these, and their folder if it is then empty.
pub(super) fn clear(run: &Path, kept: &BTreeSet<PartId>) -> Result<()> {
    let is_other = |name: &str| part_of(name).is_some_and(|part| !kept.contains(&part));
    delete_files(&folder_of(run), is_other)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const JOB: u64 = 0xab_cdef;

    fn large(byte: u8) -> Vec<u8> {
        (0..LEAST_BYTES as usize).map(|at| (at / 7) as u8 ^ byte).collect()
    }

    /// The parts of one of this many ranks.
    fn parts(run: &tempfile::TempDir, rank: Rank, ranks: u32) -> CheckpointParts {
        CheckpointParts::new(run.path(), JOB, rank, ranks, true)
    }

    fn file(run: &tempfile::TempDir, number: u64) -> PathBuf {
        file_of(run.path(), PartId { job: JOB, number, rank: 0 })
    }

    /// Saves states that are written in two pieces each.
    fn save(parts: &CheckpointParts, states: &[Vec<u8>]) -> Vec<SavedState> {
        let write = |state: &Vec<u8>| -> WriteState<'static> {
            let (first, second) = state.split_at(state.len() / 3);
            let [first, second] = [first.to_vec(), second.to_vec()];
            Box::new(move |to| Ok(to.write_all(&first).and_then(|()| to.write_all(&second))?))
        };
        parts.save(states.iter().map(write).collect()).unwrap()
    }

    fn stored(saved: &SavedState) -> StoredState {
        let SavedState::Stored(state) = saved else { unreachable!("a large state is stored in a part") };
        state.clone()
    }

    #[test]
    fn large_states_are_stored_and_found_by_any_rank() {
        let run = tempfile::tempdir().unwrap();
        let states = vec![vec![1, 2, 3], large(5), Vec::new(), large(9)];
        let saved = save(&parts(&run, 3, 4), &states);
        assert!(run.path().join("checkpoint.parts/0000000000abcdef-1-rank-3.part").exists());
        let other = parts(&run, 0, 1);
        for (saved, state) in saved.iter().zip(states) {
            other.verify(&stored(saved)).unwrap();
            assert_eq!(other.load(&stored(saved)).unwrap(), state);
        }
    }

    #[test]
    fn small_states_and_those_of_ranks_without_the_folder_are_sent() {
        let run = tempfile::tempdir().unwrap();
        let sent = |ranks, is_shared, states: Vec<Vec<u8>>| {
            let saved = save(&CheckpointParts::new(run.path(), JOB, 0, ranks, is_shared), &states);
            saved == states.into_iter().map(SavedState::Here).collect::<Vec<_>>()
        };
        assert!(sent(2, true, vec![vec![7; 1 << 17]; 7]) && sent(2, false, vec![large(1)]));
        assert!(!run.path().join("checkpoint.parts").exists());
        assert!(!sent(MANY_RANKS, true, vec![vec![7; 1 << 17]; 7]));
    }

    #[test]
    fn what_cannot_be_written_leaves_no_file_and_is_told_from_what_a_state_does_wrong() {
        let run = tempfile::tempdir().unwrap();
        let parts = parts(&run, 0, 1);
        let save = |states: Vec<WriteState>| parts.save(states).unwrap_err();
        let write = |bytes: Vec<u8>| -> WriteState<'static> { Box::new(move |to| Ok(to.write_all(&bytes)?)) };
        let wrong = || -> WriteState<'static> { Box::new(|_| Err("wrong".into())) };
        assert!(matches!(save(vec![write(large(1)), wrong()]), NotSaved::State(cause) if cause.to_string() == "wrong"));
        assert!(folder_of(run.path()).exists() && !file(&run, 1).exists());
        fs::remove_dir(folder_of(run.path())).unwrap();
        fs::write(folder_of(run.path()), "a file in the way").unwrap();
        let NotSaved::Store(cause) = save(vec![write(vec![1]), write(large(1))]) else { unreachable!("the store fails") };
        assert!(cause.to_string().contains("-2-rank-0.part: cannot write"), "{cause}");
    }

    #[test]
    fn damaged_truncated_and_missing_parts_are_refused() {
        let run = tempfile::tempdir().unwrap();
        let parts = parts(&run, 0, 1);
        let saved = save(&parts, &[large(1), large(2)]);
        let [first, second] = [&saved[0], &saved[1]].map(stored);
        let path = file(&run, 1);
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
        assert!(verified == loaded && verified.unwrap().contains("rank-0.part: this part of a checkpoint is damaged"));
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let (verified, loaded) = both(&second);
        assert!(verified == loaded && verified.unwrap().contains("truncated"));
        let hostile = StoredState { start: u64::MAX, bytes: u64::MAX, ..second.clone() };
        assert!(both(&hostile).1.unwrap().contains("truncated"));
        fs::remove_file(&path).unwrap();
        assert!(both(&second).1.unwrap().contains("missing"));
    }

    #[test]
    fn only_other_parts_are_deleted() {
        let run = tempfile::tempdir().unwrap();
        clear(run.path(), &BTreeSet::new()).unwrap();
        let parts = parts(&run, 0, 1);
        let ids: Vec<PartId> = (0..3).map(|_| stored(&save(&parts, &[large(0)])[0]).part).collect();
        let foreign = ["thesis.tex", "1-rank-0.part", "00-1-rank-0.part"].map(|name| folder_of(run.path()).join(name));
        foreign.iter().for_each(|foreign| fs::write(foreign, "years of work").unwrap());
        clear(run.path(), &BTreeSet::from([ids[2], ids[1]])).unwrap();
        let there = |number| file(&run, number).exists();
        assert_eq!([1, 2, 3].map(there), [false, true, true]);
        clear(run.path(), &BTreeSet::new()).unwrap();
        assert!(foreign.iter().all(|foreign| foreign.exists()) && !there(3));
        foreign.iter().for_each(|foreign| fs::remove_file(foreign).unwrap());
        clear(run.path(), &BTreeSet::new()).unwrap();
        assert!(!folder_of(run.path()).exists());
    }
}
