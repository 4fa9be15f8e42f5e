//! The different texts of a column, numbered in the order in which they appear.

use std::collections::HashMap;

/// The most different texts of a column.
const MAX_LEVELS: usize = 100_000;

/// The different texts of a column.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    codes: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
}

impl Levels {
    /// These texts, numbered in their order.
    pub fn known(names: &[String]) -> Self {
        let codes = (0..).zip(names).map(|(code, name)| (name.as_bytes().into(), code)).collect();
        Self { codes, names: names.to_vec() }
    }

    /// The texts by their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a text; a new one gets the next number. The error says what is wrong with it.
    pub(crate) fn code(&mut self, content: &[u8]) -> Result<u32, String> {
        if let Some(&code) = self.codes.get(content) {
            return Ok(code);
        }
        let name = std::str::from_utf8(content).map_err(|_| "is not text (UTF-8)".to_owned())?;
        let code = u32::try_from(self.names.len()).ok().filter(|_| self.names.len() < MAX_LEVELS);
        let code = code.ok_or_else(|| format!("holds more than {MAX_LEVELS} different texts: leave it out with --drop"))?;
        self.codes.insert(content.into(), code);
        self.names.push(name.to_owned());
        Ok(code)
    }
}
