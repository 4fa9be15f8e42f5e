//! Fuzzes the tokenizer of text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpibayes::data::corpus::{MAX_WORD_LENGTH, Tokenizer};

fuzz_target!(|data: &[u8]| {
    let mut tokenizer = Tokenizer::new(2);
    let mut found = Vec::new();
    let is_utf_8 = tokenizer.each(data, |word| found.push(word.to_owned()));
    assert_eq!(is_utf_8, std::str::from_utf8(data).is_ok());
    for word in &found {
        assert!((2..=MAX_WORD_LENGTH).contains(&word.chars().count()));
        assert!(!word.chars().any(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c.is_whitespace()));
    }
});
