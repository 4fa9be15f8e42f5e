//! Fuzzes IDX files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::{Idx, Source};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(mut idx) = Source::of_bytes(Path::new("x"), data).and_then(Idx::open) else { return };
    let size = idx.row_size();
    let _ = idx.rows(|row| {
        assert_eq!(row.len(), size);
        Ok(())
    });
});
