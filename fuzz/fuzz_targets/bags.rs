//! Fuzzes counted documents, in each of their formats.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::Source;
use mpibayes::data::corpus::{BagFormat, MAX_TOKENS};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    for format in [BagFormat::Docword, BagFormat::LdaC, BagFormat::MatrixMarket] {
        let Ok(source) = Source::of_bytes(Path::new("x"), data) else { return };
        let (mut last, mut largest) = (None, 0);
        let sizes = format.read(source, None, &mut |number, entries| {
            assert!(last < Some(number) && !entries.is_empty());
            last = Some(number);
            let tokens: u64 = entries.iter().map(|&(_, count)| u64::from(count)).sum();
            assert!(tokens <= MAX_TOKENS && entries.iter().all(|&(_, count)| count > 0));
            largest = entries.iter().fold(largest, |largest, &(word, _)| largest.max(word));
            Ok(())
        });
        if let Ok(sizes) = sizes {
            assert!(last.is_none_or(|last| last < sizes.documents && largest < sizes.words));
        }
    }
});
