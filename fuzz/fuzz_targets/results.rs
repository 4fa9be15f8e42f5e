//! Fuzzes result files.
//!
//! The HDF5 library can crash on them: fuzz with `-fork=1 -ignore_crashes=1`, and look for panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::results::ResultFile;
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|data: &[u8]| {
    let path = FOLDER.path().join("result.h5");
    std::fs::write(&path, data).expect("a file");
    let Ok(file) = ResultFile::open(&path) else { return };
    for table in file.tables().unwrap_or_default() {
        let _ = (file.table(&table), file.grid(&table));
    }
    for group in file.sample_groups().unwrap_or_default() {
        let _ = (file.lengths(&group), file.samples(&group), file.draws::<f64>(&group, &[(0, 0)]));
    }
});
