//! Fuzzes checkpoints: as they are, and with the checksum that the content has, so that the content itself is read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::cluster::Checkpoint;
use mpibayes::results::CheckpointParts;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let _ = Checkpoint::from_bytes(data);
    // Seeds are whole files.
    let content = data.strip_prefix(Checkpoint::MAGIC).and_then(|rest| rest.get(32..)).unwrap_or(data);
    let sealed = [Checkpoint::MAGIC, &blake3::hash(content).as_bytes()[..], content].concat();
    let Ok(mut checkpoint) = Checkpoint::from_bytes(&sealed) else { return };
    for state in checkpoint.stored_states() {
        assert!(CheckpointParts::new(Path::new("missing"), 1, 0, 1, true).verify(&state).is_err());
    }
    let _ = checkpoint.load_stored_states(&CheckpointParts::new(Path::new("missing"), 1, 0, 1, true));
    assert!(checkpoint.to_bytes().is_ok());
});
