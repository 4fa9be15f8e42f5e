//! Fuzzes LIBSVM files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::{IndexLimit, Source, read_libsvm};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(source) = Source::of_bytes(Path::new("x"), data) else { return };
    let _ = read_libsvm(source, IndexLimit::ANY, |row| {
        assert!(row.columns.is_sorted_by(|a, b| a < b) && row.columns.iter().all(|&column| column < row.largest_index));
        assert!(row.columns.len() == row.values.len() && row.values.iter().all(|value| value.is_finite() && *value != 0.0));
        Ok(())
    });
});
