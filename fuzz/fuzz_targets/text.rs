//! Fuzzes the words of text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::corpus::{LONGEST_WORD, Words};

fuzz_target!(|data: &[u8]| {
    let mut words = Words::new(2);
    let mut found = Vec::new();
    let sound = words.each(data, |word| found.push(word.to_owned()));
    assert_eq!(sound, std::str::from_utf8(data).is_ok());
    for word in &found {
        assert!((2..=LONGEST_WORD).contains(&word.chars().count()));
        assert!(!word.chars().any(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c.is_whitespace()));
    }
});
