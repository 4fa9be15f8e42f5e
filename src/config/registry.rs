//! The registry: the type that holds every model and method that a run file can name, each with what parses its settings.

use super::configured::{ConfiguredMethod, ConfiguredModel};
use crate::methods::{Corpus, DataKind, Table};
use crate::settings::{Key, KeyError, Mistake};
use std::sync::Arc;

/// Every model and method that a run file can name.
pub struct Registry {
    pub(super) models: Vec<ModelEntry>,
    pub(super) table_methods: Vec<MethodEntry<Table>>,
    pub(super) corpus_methods: Vec<MethodEntry<Corpus>>,
}

/// Parses the table of a model or a method; reports every mistake in it.
type Parse<T> = fn(toml::Table) -> Result<Arc<T>, Vec<KeyError>>;

/// A model under its name.
pub struct ModelEntry {
    pub(super) name: &'static str,
    pub(super) keys: fn() -> Vec<Key>,
    /// Values of a run file that suit the model better than their defaults.
    pub(super) suggested: fn() -> toml::Table,
    pub(super) parse: Parse<dyn ConfiguredModel>,
}

/// A method for one kind of data, under its name.
pub struct MethodEntry<D: DataKind> {
    pub(super) name: &'static str,
    pub(super) keys: fn() -> Vec<Key>,
    pub(super) parse: Parse<dyn ConfiguredMethod<D>>,
}

/// The value of `name` in the table of a model or a method.
///
/// # Errors
/// If it is missing or not a text.
pub(super) fn name_of<'a>(table: &'a toml::Table, known: &[&str]) -> Result<&'a str, KeyError> {
    match table.get("name") {
        Some(toml::Value::String(name)) => Ok(name),
        Some(value) => {
            Err(KeyError::invalid("name", format!("must be a text in quotes, not {value}. Choose one of: {}", known.join(", "))))
        }
        None => Err(KeyError::table(format!("has no name. Add name = \"...\" with one of: {}", known.join(", ")))),
    }
}

/// The error for a name that is not known.
pub(super) fn unknown_name(found: &str, known: &[&str]) -> KeyError {
    let known = known.iter().map(|&name| name.to_owned()).collect();
    KeyError::at("name", Mistake::UnknownWord { found: found.to_owned(), known })
}
