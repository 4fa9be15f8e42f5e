//! The different texts of a column, numbered in the order in which they appear.

use crate::data::error::NOT_UTF8;
use std::collections::HashMap;

/// The most different texts of a column.
const MAX_LEVELS: usize = 100_000;

/// The different texts of a column.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    codes: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
    /// The first texts as numbers, which are compared faster than they are hashed.
    packed: Vec<u64>,
}

/// This many texts are looked up as numbers.
const MAX_PACKED: usize = 32;
/// Not the number of a text.
const NOT_PACKED: u64 = u64::MAX;

/// A text of at most seven bytes as a number.
fn packed(content: &[u8]) -> u64 {
    let length = content.len();
    if length > 7 {
        return NOT_PACKED;
    }
    let mut bytes = [0; 8];
    bytes[..length].copy_from_slice(content);
    // At most 7.
    bytes[7] = length as u8;
    u64::from_le_bytes(bytes)
}

/// A word with a capital letter and small ones.
fn capitalized(word: &str) -> String {
    word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1).flat_map(char::to_lowercase)).collect()
}

/// How programs also write a text: whole numbers with gaps are often written with decimals, and truth values in several ways.
pub(crate) fn other_spellings(text: &str) -> Vec<String> {
    if ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return vec![text.to_lowercase(), text.to_uppercase(), capitalized(text)];
    }
    match text.strip_suffix(".0") {
        Some(whole) if whole.parse::<i64>().is_ok() => vec![whole.to_owned()],
        None if text.parse::<i64>().is_ok() => vec![format!("{text}.0")],
        _ => Vec::new(),
    }
}

impl Levels {
    /// These texts, numbered in their order; their other spellings have the same numbers.
    pub fn known(names: &[String]) -> Self {
        let mut codes: HashMap<Box<[u8]>, u32> = HashMap::new();
        for (code, name) in (0..).zip(names) {
            codes.insert(name.as_bytes().into(), code);
            for spelling in other_spellings(name) {
                codes.entry(spelling.into_bytes().into()).or_insert(code);
            }
        }
        let packed = names.iter().take(MAX_PACKED).map(|name| packed(name.as_bytes())).collect();
        Self { codes, names: names.to_vec(), packed }
    }

    /// The texts by their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a text that is known.
    pub fn find(&self, content: &[u8]) -> Option<u32> {
        self.codes.get(content).copied()
    }

    /// The number of a text; a new one gets the next number. The error says what is wrong with it.
    pub(crate) fn code(&mut self, content: &[u8]) -> Result<u32, String> {
        let number = packed(content);
        if number != NOT_PACKED
            && let Some(place) = self.packed.iter().position(|&other| other == number)
        {
            // At most `MAX_PACKED`.
            return Ok(place as u32);
        }
        if let Some(&code) = self.codes.get(content) {
            return Ok(code);
        }
        let name = std::str::from_utf8(content).map_err(|_| NOT_UTF8.to_owned())?;
        let code = u32::try_from(self.names.len()).ok().filter(|_| self.names.len() < MAX_LEVELS);
        let code = code.ok_or_else(|| format!("holds more than {MAX_LEVELS} different texts: leave it out with --drop"))?;
        self.codes.insert(content.into(), code);
        if self.packed.len() < MAX_PACKED {
            self.packed.push(number);
        }
        self.names.push(name.to_owned());
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn texts_of_all_lengths_keep_their_numbers() {
        let mut levels = Levels::default();
        let texts: Vec<String> = (0..100_usize).map(|i| "x\0y".repeat(i % 5) + &(i / 2).to_string()).collect();
        let mut different: Vec<&String> = Vec::new();
        for text in texts.iter().chain(&texts) {
            let place = different.iter().position(|other| *other == text).unwrap_or_else(|| {
                different.push(text);
                different.len() - 1
            });
            assert_eq!(levels.code(text.as_bytes()).unwrap() as usize, place, "{text:?}");
        }
        assert!(different.len() > MAX_PACKED && levels.names().iter().eq(different.iter().copied()));
        let mut known = Levels::known(levels.names());
        assert!(texts.iter().all(|text| known.code(text.as_bytes()) == levels.code(text.as_bytes())));
    }
}
