//! The reference of run files: every key with its default and its meaning, as Markdown, from the types that parse them.

use super::configured::ConfiguredMethod;
use super::error::ConfigError;
use super::registry::Registry;
use super::run::named;
use super::run_file_kind::{RunFileKind, data_table};
use super::sections::ClusterSettings;
use crate::methods::{Corpus, Table};
use crate::settings::{Key, inline, keys, read, table};
use std::sync::Arc;

const HEAD: &str = "\
# Keys of run files

A run file is TOML. `mpibayes init METHOD` writes one with all keys that suit, and `mpibayes check FILE` reports mistakes. A key without
a default here is optional: its meaning says what happens without it.

";

/// The reference of all run files, on tables and on corpora.
///
/// # Errors
/// If a default has no TOML form.
pub fn reference(registry: &Registry) -> Result<String, ConfigError> {
    Ok(HEAD.to_owned() + &part::<Table>(registry, "Runs on rows")? + &part::<Corpus>(registry, "Runs on documents")?)
}

/// The reference of run files for one kind of data.
fn part<D: RunFileKind>(registry: &Registry, title: &str) -> Result<String, ConfigError> {
    let (unwritable, stored) = (ConfigError::unwritable, |errors| ConfigError::Stored(errors));
    let mut text = format!("## {title}\n\n");
    section(&mut text, "### At the top", &keys::<D::RunSettings>(), &table(&D::RunSettings::default()).map_err(unwritable)?);
    let methods = D::methods(registry);
    let parsed: Vec<Arc<dyn ConfiguredMethod<D>>> =
        methods.iter().map(|entry| (entry.parse)(toml::Table::new()).map_err(stored)).collect::<Result<_, _>>()?;
    // The table `[data]` of the first method whose agents have shards has every key.
    let sharing = parsed.iter().map(|method| method.sharing()).max_by_key(|&sharing| D::data_keys(sharing).len());
    if let Some(sharing) = sharing {
        let file = toml::Table::from_iter([("file".to_owned(), toml::Value::from("datasets/my.h5"))]);
        let mut values = data_table::<D>(&D::parse_data(file, sharing).map_err(stored)?, sharing).map_err(unwritable)?;
        values.remove("file");
        section(&mut text, "### `[data]`", &D::data_keys(sharing), &values);
    }
    section(&mut text, "### `[evaluate]`", &keys::<D::Evaluate>(), &table(&D::Evaluate::default()).map_err(unwritable)?);
    let cluster: ClusterSettings = read(toml::Table::new()).map_err(stored)?;
    section(&mut text, "### `[cluster]`", &keys::<ClusterSettings>(), &table(&cluster).map_err(unwritable)?);
    for name in D::models(registry) {
        let settings = D::parse_model(registry, named(name, toml::Table::new())).map_err(stored)?;
        let values = D::model_table(&settings).map_err(unwritable)?;
        section(&mut text, &format!("### `[model] name = \"{name}\"`"), &D::model_keys(registry, name), &values);
        let others = other_defaults(&D::other_defaults(registry, name));
        if !others.is_empty() {
            text.push_str(&format!("With this model, other keys have other defaults: {}.\n\n", others.join(", ")));
        }
    }
    for (entry, method) in methods.iter().zip(&parsed) {
        let values = method.table().map_err(unwritable)?;
        section(&mut text, &format!("### `[method] name = \"{}\"`", entry.name), &(entry.keys)(), &values);
    }
    Ok(text)
}

/// Defaults that depend on the model, as they stand in a run file, with the paths of the keys.
fn other_defaults(defaults: &toml::Table) -> Vec<String> {
    let lines = |(key, value): (&String, &toml::Value)| match value {
        toml::Value::Table(section) => {
            section.iter().map(|(of_section, value)| format!("`{key}.{of_section} = {}`", inline(value))).collect()
        }
        value => vec![format!("`{key} = {}`", inline(value))],
    };
    defaults.iter().flat_map(lines).collect()
}

/// Adds the keys of a table of the run file.
fn section(text: &mut String, title: &str, keys: &[Key], values: &toml::Table) {
    text.push_str(&format!("{title}\n\n"));
    if keys.is_empty() {
        return text.push_str("No keys.\n\n");
    }
    text.push_str("| key | default | meaning |\n| --- | --- | --- |\n");
    for key in keys {
        let default = values.get(key.name).map(|value| format!("`{}`", inline(value))).unwrap_or_default();
        // A bar would end the cell.
        let meaning = key.doc.replace('|', "\\|");
        text.push_str(&format!("| `{}` | {default} | {meaning} |\n", key.name));
    }
    text.push('\n');
}
