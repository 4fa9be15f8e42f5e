//! Fuzzes NPY arrays.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::{Npy, Source};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(mut npy) = Source::of_bytes(Path::new("x"), data).and_then(Npy::open) else { return };
    let (rows, size) = (npy.rows(), npy.row_size());
    let mut next = 1;
    let read = npy.for_numbers(|row, record| {
        assert!(row.len() == size && row.iter().all(|value| value.is_finite()));
        assert_eq!(record, next);
        next += 1;
        Ok(())
    });
    assert!(read.is_err() || next == rows as u64 + 1);
});
