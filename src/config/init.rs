//! The starting run file that `mpibayes init` writes: every key with its default, and above it what it means.

use super::configured::ConfiguredMethod;
use super::error::ConfigError;
use super::registry::Registry;
use super::run::named;
use super::run_file_kind::{RunFileKind, data_table};
use super::sections::ClusterSettings;
use crate::settings::{Key, inline, keys, read, table};
use std::path::Path;
use std::sync::Arc;
use toml::{Table, Value};

/// Comments are wrapped at this column.
const WIDTH: usize = 100;
/// The data file where none is given.
const SOME_DATA: &str = "datasets/my.h5";

/// What a starting run file is for.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The method.
    pub method: &'a str,
    /// The model.
    pub model: &'a str,
    /// The data file; none for a model that brings its own data.
    pub data: Option<&'a Path>,
    /// Why these were chosen, in sentences, if the user did not choose.
    pub reasons: &'a [String],
}

impl Default for Choice<'_> {
    fn default() -> Self {
        Self { method: "", model: "", data: Some(Path::new(SOME_DATA)), reasons: &[] }
    }
}

/// A run file for a method and a model on this kind of data.
///
/// # Errors
/// If there is no such method, or a default has no TOML form.
pub fn template<D: RunFileKind>(registry: &Registry, choice: Choice) -> Result<String, ConfigError> {
    let Choice { method: method_name, model, data, reasons } = choice;
    let entry = D::methods(registry).iter().find(|entry| entry.name == method_name);
    let entry = entry.ok_or_else(|| ConfigError::Choice(format!("there is no method {method_name}")))?;
    let stored = |errors| ConfigError::Stored(errors);
    let method: Arc<dyn ConfiguredMethod<D>> = (entry.parse)(Table::new()).map_err(stored)?;
    let sharing = method.sharing();
    let unwritable = ConfigError::unwritable;
    let model_settings = D::model(registry, named(model, Table::new())).map_err(stored)?;
    let suggested = D::suggested(registry, model);

    let mut top = table(&D::RunSettings::default()).map_err(unwritable)?;
    // Two agents, unless the method takes only one.
    top.insert("agents".into(), Value::from(if method.check_agents(2).is_ok() { 2 } else { 1 }));
    let mut text = format!(
        "# A run of {method_name} on the model {model}: every key with its meaning and a starting value.\n\
         # Check it with `mpibayes check FILE`, start it with `mpibayes run FILE` or `mpirun -n 4 mpibayes run FILE`.\n"
    );
    text.extend(reasons.iter().map(|reason| format!("# {reason}\n")));
    text.push('\n');
    section(&mut text, &keys::<D::RunSettings>(), top, Some(&suggested));
    if let Some(file) = data {
        text.push_str("\n[data]\n");
        let values = Table::from_iter([("file".to_owned(), Value::from(file.display().to_string()))]);
        let data = D::data(values, sharing).map_err(stored)?;
        section(&mut text, &D::data_keys(sharing), data_table::<D>(&data, sharing).map_err(unwritable)?, None);
    }
    text.push_str(&format!("\n[model]\nname = \"{model}\"\n"));
    section(&mut text, &D::model_keys(registry, model), D::model_table(&model_settings).map_err(unwritable)?, None);
    text.push_str(&format!("\n[method]\nname = \"{method_name}\"\n"));
    let suggested_table = |name: &str| suggested.get(name).and_then(Value::as_table);
    section(&mut text, &(entry.keys)(), method.table().map_err(unwritable)?, suggested_table("method"));
    text.push_str("\n[evaluate]\n");
    let evaluate = table(&D::Evaluate::default()).map_err(unwritable)?;
    section(&mut text, &keys::<D::Evaluate>(), evaluate, suggested_table("evaluate"));
    text.push_str("\n[cluster]\n");
    let cluster: ClusterSettings = read(Table::new()).map_err(stored)?;
    section(&mut text, &keys::<ClusterSettings>(), table(&cluster).map_err(unwritable)?, None);
    Ok(text)
}

/// Writes the keys of a section with their documentation and values, where `suggested` replaces defaults.
fn section(text: &mut String, keys: &[Key], mut values: Table, suggested: Option<&Table>) {
    for (key, value) in suggested.into_iter().flatten() {
        if values.contains_key(key) {
            values.insert(key.clone(), value.clone());
        }
    }
    // A type without documented keys still shows its defaults.
    let others = values.keys().filter(|key| keys.iter().all(|known| known.name != key.as_str()));
    let documented = keys.iter().map(|key| (key.name, key.doc.as_str()));
    for (key, doc) in documented.chain(others.map(|key| (key.as_str(), ""))) {
        comment(text, doc);
        match values.get(key) {
            Some(value) => text.push_str(&format!("{key} = {}\n", inline(value))),
            None => text.push_str(&format!("# {key} =\n")),
        }
    }
}

/// Writes a comment, wrapped; nothing for an empty one.
fn comment(text: &mut String, doc: &str) {
    let mut line = String::new();
    for word in doc.split(' ').filter(|word| !word.is_empty()) {
        if line.chars().count() + 3 + word.chars().count() > WIDTH {
            text.push_str(&format!("#{line}\n"));
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    if !line.is_empty() {
        text.push_str(&format!("#{line}\n"));
    }
}
