//! Fuzzes NPZ archives and the arrays in them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::Npz;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(mut npz) = Npz::open(Path::new("x"), Cursor::new(data)) else { return };
    for name in npz.names().into_iter().take(4) {
        if let Ok(mut array) = npz.array(&name) {
            let _ = if array.is_bytes() { array.for_bytes(|_, _| Ok(())) } else { array.for_numbers(|_, _| Ok(())) };
        }
    }
});
