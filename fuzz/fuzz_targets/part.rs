//! Fuzzes parts of checkpoints: the place of a state, then the file in which it should be.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::cluster::{PartId, StateStore, StoredState};
use mpibayes::results::CheckpointParts;
use std::sync::LazyLock;

static RUN: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let run = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(run.path().join("checkpoint.parts")).expect("a folder");
    run
});

fuzz_target!(|data: &[u8]| {
    let Some((place, content)) = data.split_first_chunk::<16>() else { return };
    let number = |at: usize| place[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let (start, bytes) = (number(0), number(8));
    let part = PartId { job: 1, number: 1, rank: 0 };
    let file = RUN.path().join("checkpoint.parts").join("0000000000000001-1-rank-0.part");
    std::fs::write(file, content).expect("a file");
    let parts = CheckpointParts::new(RUN.path(), 1, 0, 1, true);
    let range = usize::try_from(start).ok().zip(usize::try_from(bytes).ok());
    let state = range.and_then(|(start, bytes)| content.get(start..start.checked_add(bytes)?));
    let hash = *blake3::hash(state.unwrap_or_default()).as_bytes();
    let stored = StoredState { part, start, bytes, hash };
    assert_eq!(parts.verify(&stored).is_ok(), state.is_some());
    assert_eq!(parts.load(&stored).ok().as_deref(), state);
});
