//! Fuzzes datasets of rows.
//!
//! The HDF5 library can crash on them: fuzz with `-fork=1 -ignore_crashes=1`, and look for panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::{Dataset, Split};
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|data: &[u8]| {
    let path = FOLDER.path().join("x.h5");
    std::fs::write(&path, data).expect("a file");
    let Ok(dataset) = Dataset::open(&path) else { return };
    let _ = dataset.feature_names();
    for split in [Split::Train, Split::Test] {
        let rows: Vec<usize> = (0..dataset.rows(split)).collect();
        let _ = dataset.targets(split);
        if let Ok(shard) = dataset.read_rows::<f64>(split, &rows) {
            assert_eq!(shard.y().len(), rows.len());
        }
    }
    let _ = dataset.verify(&mut |_| ());
});
