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
    /// Defaults of keys outside of `[model]` that differ for this model.
    pub(super) other_defaults: fn() -> toml::Table,
    pub(super) parse: Parse<dyn ConfiguredModel>,
}

/// A method for one kind of data, under its name.
pub struct MethodEntry<D: DataKind> {
    pub(super) name: &'static str,
    pub(super) keys: fn() -> Vec<Key>,
    pub(super) parse: Parse<dyn ConfiguredMethod<D>>,
}

impl<D: DataKind> MethodEntry<D> {
    /// Parses the settings of the method. A key that the table does not set has its value in `defaults`, if the method has such a key, and
    /// otherwise the method's own default.
    pub(super) fn parse_with(
        &self,
        mut table: toml::Table,
        defaults: &toml::Table,
    ) -> Result<Arc<dyn ConfiguredMethod<D>>, Vec<KeyError>> {
        let keys = (self.keys)();
        let mut defaults = defaults.clone();
        defaults.retain(|key, _| keys.iter().any(|known| known.name == key));
        fill(&mut table, &defaults);
        (self.parse)(table)
    }
}

/// Adds the defaults of the keys that the table does not set. A table inside is completed in the same way, unless it has a key that its
/// default does not have: it is then another variant, such as another optimizer.
pub(super) fn fill(table: &mut toml::Table, defaults: &toml::Table) {
    for (key, default) in defaults {
        match (table.get_mut(key), default) {
            (None, _) => {
                table.insert(key.clone(), default.clone());
            }
            (Some(toml::Value::Table(inner)), toml::Value::Table(defaults)) => {
                if inner.keys().all(|key| defaults.contains_key(key)) {
                    fill(inner, defaults);
                }
            }
            (Some(_), _) => {}
        }
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn defaults_complete_a_table_but_not_another_alternative() {
        let defaults: toml::Table = "optimizer = { adagrad = { step = 1e-3, fudge = 1e-6 } }".parse().unwrap();
        for (given, filled) in [
            ("", "optimizer = { adagrad = { step = 1e-3, fudge = 1e-6 } }"),
            ("optimizer = { adagrad = { step = 0.1 } }", "optimizer = { adagrad = { step = 0.1, fudge = 1e-6 } }"),
            ("optimizer = { plain = { step = 0.1 } }", "optimizer = { plain = { step = 0.1 } }"),
            ("optimizer = 3", "optimizer = 3"),
        ] {
            let mut table: toml::Table = given.parse().unwrap();
            fill(&mut table, &defaults);
            assert_eq!(table, filled.parse::<toml::Table>().unwrap(), "{given}");
        }
    }
}
