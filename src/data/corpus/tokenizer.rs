//! Splits text into words: runs of letters in lower case, in any script that separates its words.

use std::borrow::Cow;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The maximum number of characters of a word. A longer run of letters is encoded data, or text without spaces between its words.
pub const MAX_WORD_LENGTH: usize = 64;

/// Splits text into words: runs of letters (alphabetic characters with their combining marks), in NFC and in lower case. All other
/// characters separate words, including digits, hyphens and apostrophes.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    shortest: usize,
    /// The current word.
    word: String,
}

impl Tokenizer {
    /// A tokenizer for words of `shortest` to [`MAX_WORD_LENGTH`] characters. It skips other words.
    pub fn new(shortest: usize) -> Self {
        Self { shortest: shortest.max(1), word: String::new() }
    }

    /// Calls `each` with the words of a text in order. Returns whether the text is valid UTF-8; invalid bytes are read as Latin-1.
    pub fn each(&mut self, text: &[u8], mut each: impl FnMut(&str)) -> bool {
        let text = decode(text);
        let bytes = text.as_bytes();
        let class = |at: usize| bytes.get(at).map_or(Class::Other, |&byte| CLASSES[usize::from(byte)]);
        let mut at = 0;
        while at < bytes.len() {
            // Most words are of ASCII letters, and in lower case already.
            let start = at;
            let mut has_upper_case = false;
            while let letter @ (Class::LowerCase | Class::UpperCase) = class(at) {
                has_upper_case |= letter == Class::UpperCase;
                at += 1;
            }
            if class(at) == Class::NotAscii && text[at..].chars().next().is_some_and(belongs_to_words) {
                at = start + self.read_run(&text[start..], &mut each);
                continue;
            }
            if (self.shortest..=MAX_WORD_LENGTH).contains(&(at - start)) {
                let word = &text[start..at];
                if has_upper_case {
                    self.word.clear();
                    self.word.push_str(word);
                    self.word.make_ascii_lowercase();
                    each(&self.word);
                } else {
                    each(word);
                }
            }
            // The separator.
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
        matches!(text, Cow::Borrowed(_))
    }

    /// Reads a run of letters of any script at the start of a text, and calls `each` with the word if its length is in range. Returns the
    /// number of bytes read, at least 1.
    fn read_run(&mut self, text: &str, each: &mut impl FnMut(&str)) -> usize {
        match letter_run(text) {
            // A mark or an invisible character without a letter.
            0 => text.chars().next().map_or(1, char::len_utf8),
            length => {
                if self.normalize(&text[..length]) {
                    each(&self.word);
                }
                length
            }
        }
    }

    /// Sets `word` to the normalized form of a run of letters. Returns whether its length is in range.
    fn normalize(&mut self, run: &str) -> bool {
        let lengths = self.shortest..=MAX_WORD_LENGTH;
        self.word.clear();
        // A letter can consist of several code points.
        if run.chars().nth(4 * MAX_WORD_LENGTH).is_some() {
            return false;
        }
        self.word.extend(run.chars().filter(|&c| !is_invisible(c)));
        if is_nfc_quick(self.word.chars()) != IsNormalized::Yes {
            self.word = self.word.nfc().collect();
        }
        self.word = self.word.to_lowercase();
        lengths.contains(&self.word.chars().count())
    }
}

/// Decodes text as UTF-8, and each invalid byte as a character of Latin-1.
fn decode(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|&byte| char::from(byte)));
    }
    Cow::Owned(decoded)
}

/// The class of a byte of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    LowerCase,
    UpperCase,
    /// Any other ASCII character.
    Other,
    /// A part of another character.
    NotAscii,
}

/// The class of each byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        // Below 256.
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::LowerCase,
            b'A'..=b'Z' => Class::UpperCase,
            0..=127 => Class::Other,
            _ => Class::NotAscii,
        };
        byte += 1;
    }
    classes
};

/// The number of bytes of the letters at the start of the text, with what belongs to them.
fn letter_run(text: &str) -> usize {
    let mut characters = text.char_indices();
    if !characters.next().is_some_and(|(_, first)| first.is_alphabetic()) {
        return 0;
    }
    characters.find(|&(_, c)| !belongs_to_words(c)).map_or(text.len(), |(at, _)| at)
}

/// Whether a character that follows a letter belongs to its word.
fn belongs_to_words(c: char) -> bool {
    c.is_alphabetic() || is_combining_mark(c) || is_invisible(c)
}

/// Whether a character is an invisible part of a word: the soft hyphen, the zero-width non-joiner or the zero-width joiner.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: impl AsRef<[u8]>) -> Vec<String> {
        let mut words = Vec::new();
        Tokenizer::new(3).each(text.as_ref(), |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_runs_of_letters_in_lower_case() {
        for (text, expected) in [
            ("The cat, the CAT; a cat's-paw!", &["the", "cat", "the", "cat", "cat", "paw"][..]),
            ("mp3 covid19 3.14 don't x_y_zoo e-mail", &["covid", "don", "zoo", "mail"]),
            ("", &[]),
            (" \t12 ?! ", &[]),
            // A sigma at the end of a word has a different form.
            ("ÄRGER über Straße ΟΔΟΣ", &["ärger", "über", "straße", "οδο\u{3c2}"]),
            ("Москва — столица", &["москва", "столица"]),
            // The same word with a composed and a decomposed letter.
            ("caf\u{e9} cafe\u{301} CAFE\u{301}s", &["café", "café", "cafés"]),
            // Combining marks belong to their words.
            ("हिन्दी भाषा", &["हिन्दी", "भाषा"]),
            ("co\u{ad}op\u{ad}erate", &["cooperate"]),
            ("\u{301}\u{301}abc\u{200d} \u{ad}xyz", &["abc", "xyz"]),
            ("one\u{a0}two\u{2019}three\u{1f600}four", &["one", "two", "three", "four"]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lengths_count_characters() {
        let long = "ü".repeat(MAX_WORD_LENGTH);
        assert_eq!(words(format!("üü üüü {long} {long}ü ab abc {}", "z".repeat(MAX_WORD_LENGTH + 1))), ["üüü", &long, "abc"]);
        assert!(words("語".repeat(100_000)).is_empty());
        let mut all = Vec::new();
        Tokenizer::new(1).each(b"a bc", |word| all.push(word.to_owned()));
        assert_eq!(all, ["a", "bc"]);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_latin_1() {
        let mut found = Vec::new();
        let mut each = |text: &[u8]| {
            found.clear();
            let is_utf_8 = Tokenizer::new(3).each(text, |word| found.push(word.to_owned()));
            (is_utf_8, found.join(" "))
        };
        assert_eq!(each("naïve cafés".as_bytes()), (true, "naïve cafés".to_owned()));
        assert_eq!(each(b"na\xefve caf\xe9s"), (false, "naïve cafés".to_owned()));
        // Both encodings in one text, and bytes that are no letters in Latin-1.
        assert_eq!(each(b"\xc3\xa9t\xc3\xa9 \xe9t\xe9 don\x92ts\xff\0abc"), (false, "été été don tsÿ abc".to_owned()));
    }
}
