//! Fuzzes corpora.
//!
//! The HDF5 library can crash on them: fuzz with `-fork=1 -ignore_crashes=1`, and look for panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::Split;
use mpibayes::data::corpus::Corpus;
use std::sync::LazyLock;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fuzz_target!(|data: &[u8]| {
    let path = FOLDER.path().join("x.h5");
    std::fs::write(&path, data).expect("a file");
    let Ok(corpus) = Corpus::open(&path) else { return };
    let _ = corpus.vocabulary();
    for split in [Split::Train, Split::Test] {
        let all = 0..corpus.documents(split);
        let _ = (corpus.whole(split, all.clone()), corpus.numbers(split, all));
    }
    if corpus.documents(Split::Test) > 0 {
        let _ = corpus.held_out(0..corpus.documents(Split::Test));
    }
    let _ = corpus.verify(&mut |_| ());
});
