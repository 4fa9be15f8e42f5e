//! Overrides of a run file: `--set method.rounds=20`.

use super::error::ConfigError;

/// An override: a dotted key and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    key: String,
    value: String,
}

impl Override {
    /// From `key=value`.
    pub fn parse(typed: &str) -> Option<Self> {
        let (key, value) = typed.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        (!key.is_empty()).then(|| Self { key: key.into(), value: value.into() })
    }

    /// The parts of the key.
    pub(super) fn path(&self) -> Vec<String> {
        self.key.split('.').map(str::to_owned).collect()
    }

    /// Sets the value in the table of a run file.
    ///
    /// # Errors
    /// If the key does not lead to a value, or the value is not TOML.
    pub fn apply(&self, table: &mut toml::Table) -> Result<(), ConfigError> {
        let wrong = |message: String| ConfigError::Override { key: self.key.clone(), message };
        if is_too_large(&self.value) {
            return Err(wrong(TOO_LARGE.into()));
        }
        let value = match value(&self.value) {
            Some(value) => value,
            None if self.value.starts_with(['{', '[', '"']) => {
                return Err(wrong(format!("{} is not valid TOML: is a quote or a bracket missing?", self.value)));
            }
            // A value that is not TOML is a plain string, so that names need no quotes.
            None => toml::Value::String(self.value.clone()),
        };
        let path = self.path();
        if path.iter().any(String::is_empty) {
            return Err(wrong("its key has an empty part".into()));
        }
        set(table, &path, value).map_err(|part| {
            let depth = path.iter().position(|key| *key == part).unwrap_or(0);
            let table = path[depth + 1..].iter().rev().fold(self.value.clone(), |inner, key| format!("{{ {key} = {inner} }}"));
            wrong(format!("'{part}' is a value in the file. To replace it, write --set '{}={table}'", path[..=depth].join(".")))
        })
    }
}

impl std::fmt::Display for Override {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The message for a whole number beyond 63 bits, which TOML does not have.
pub(super) const TOO_LARGE: &str = "whole numbers are at most 9223372036854775807";

/// Whether a value is a whole number beyond 63 bits.
pub(super) fn is_too_large(value: &str) -> bool {
    let digits = value.trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && value.parse::<i64>().is_err()
}

/// A single value in TOML's notation.
fn value(text: &str) -> Option<toml::Value> {
    format!("value = {text}").parse::<toml::Table>().ok()?.remove("value")
}

/// Sets a value under a key of several parts, creating the tables on the way.
///
/// # Errors
/// The part of the key that is a value and not a table.
pub(super) fn set(table: &mut toml::Table, path: &[String], value: toml::Value) -> Result<(), String> {
    let Some((last, tables)) = path.split_last() else { return Ok(()) };
    let mut table = table;
    for part in tables {
        let next = table.entry(part.as_str()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        table = next.as_table_mut().ok_or_else(|| part.clone())?;
    }
    table.insert(last.clone(), value);
    Ok(())
}
