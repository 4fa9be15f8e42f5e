//! Text as words: runs of letters in lower case, in any script that puts something between its words.

use std::borrow::Cow;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The most characters of a word: a longer run of letters is encoded data, or text without spaces between its words.
pub const LONGEST_WORD: usize = 64;

/// What finds the words of a text: runs of letters (alphabetic characters, and the marks on them), composed (NFC) and in lower case.
/// Everything else stands between words, digits, hyphens and apostrophes too.
#[derive(Clone, Debug)]
pub struct Words {
    shortest: usize,
    /// The word in hand.
    word: String,
}

impl Words {
    /// Words of `shortest` to [`LONGEST_WORD`] characters; others are passed over.
    pub fn new(shortest: usize) -> Self {
        Self { shortest, word: String::new() }
    }

    /// Hands over the words of a text in order; gives whether all of it was UTF-8. Bytes that are not are taken for Latin-1.
    pub fn each(&mut self, text: &[u8], mut each: impl FnMut(&str)) -> bool {
        let text = decoded(text);
        let mut rest: &str = &text;
        while let Some(start) = first_letter(rest) {
            let (end, ascii) = run(&rest[start..]);
            let (word, after) = rest[start..].split_at(end);
            rest = after;
            if self.take(word, ascii) {
                each(&self.word);
            }
        }
        matches!(text, Cow::Borrowed(_))
    }

    /// Takes a run of letters as it is written everywhere; whether it is a word.
    fn take(&mut self, run: &str, ascii: bool) -> bool {
        let lengths = self.shortest..=LONGEST_WORD;
        self.word.clear();
        if ascii {
            if lengths.contains(&run.len()) {
                self.word.push_str(run);
                self.word.make_ascii_lowercase();
            }
            return !self.word.is_empty();
        }
        // Some letters are written as one with several marks.
        if run.chars().nth(4 * LONGEST_WORD).is_some() {
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

/// Text, whatever its bytes are: where they are not UTF-8, each is a character of Latin-1.
fn decoded(text: &[u8]) -> Cow<'_, str> {
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

/// Where the first letter stands.
fn first_letter(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_alphabetic() {
            return Some(at);
        }
        at += match text[at..].chars().next() {
            Some(c) if !c.is_ascii() => {
                if c.is_alphabetic() {
                    return Some(at);
                }
                c.len_utf8()
            }
            _ => 1,
        };
    }
    None
}

/// How many bytes the letters in front take, and whether all are ASCII.
fn run(text: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let (mut at, mut ascii) = (0, true);
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_alphabetic() {
            at += 1;
        } else if byte.is_ascii() {
            break;
        } else {
            match text[at..].chars().next() {
                Some(c) if c.is_alphabetic() || is_combining_mark(c) || is_invisible(c) => at += c.len_utf8(),
                _ => break,
            }
            ascii = false;
        }
    }
    (at, ascii)
}

/// Characters that stand inside of words and do not show: the soft hyphen, and what separates or joins the shapes of letters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: impl AsRef<[u8]>) -> Vec<String> {
        let mut words = Vec::new();
        Words::new(3).each(text.as_ref(), |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_runs_of_letters_in_lower_case() {
        for (text, expected) in [
            ("The cat, the CAT; a cat's-paw!", &["the", "cat", "the", "cat", "cat", "paw"][..]),
            ("mp3 covid19 3.14 don't x_y_zoo e-mail", &["covid", "don", "zoo", "mail"]),
            ("", &[]),
            (" \t12 ?! ", &[]),
            // A sigma that ends a word has a form of its own.
            ("ÄRGER über Straße ΟΔΟΣ", &["ärger", "über", "straße", "οδο\u{3c2}"]),
            ("Москва — столица", &["москва", "столица"]),
            // The same word, with a letter composed and not.
            ("caf\u{e9} cafe\u{301} CAFE\u{301}s", &["café", "café", "cafés"]),
            // Signs that are no letters, and yet belong to their words.
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
        let long = "ü".repeat(LONGEST_WORD);
        assert_eq!(words(format!("üü üüü {long} {long}ü ab abc {}", "z".repeat(LONGEST_WORD + 1))), ["üüü", &long, "abc"]);
        assert!(words("語".repeat(100_000)).is_empty());
        let mut all = Vec::new();
        Words::new(1).each(b"a bc", |word| all.push(word.to_owned()));
        assert_eq!(all, ["a", "bc"]);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_latin_1() {
        let mut found = Vec::new();
        let mut each = |text: &[u8]| {
            found.clear();
            let sound = Words::new(3).each(text, |word| found.push(word.to_owned()));
            (sound, found.join(" "))
        };
        assert_eq!(each("naïve cafés".as_bytes()), (true, "naïve cafés".to_owned()));
        assert_eq!(each(b"na\xefve caf\xe9s"), (false, "naïve cafés".to_owned()));
        // Both in one text, and what Latin-1 has no letter for.
        assert_eq!(each(b"\xc3\xa9t\xc3\xa9 \xe9t\xe9 don\x92ts\xff\0abc"), (false, "été été don tsÿ abc".to_owned()));
    }
}
