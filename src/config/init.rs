//! The starting run file that `mpibayes init` writes: every key with its default, and above it what it means.

use super::error::ConfigError;
use super::registry::Registry;
use super::run::{RunOf, method_defaults, named};
use super::run_file_kind::RunFileKind;
use super::sections::ClusterSettings;
use crate::settings::{Key, inline, keys};
use std::path::Path;
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
    let method = entry.parse_with(Table::new(), &method_defaults::<D>(registry, model)).map_err(ConfigError::Stored)?;
    let mut file = Table::new();
    // Two agents, unless the method takes only one.
    let ranks = if method.check_agents(2).is_ok() { 2 } else { 1 };
    file.insert("agents".into(), Value::from(ranks));
    if let Some(path) = data {
        file.insert("data".into(), Table::from_iter([("file".to_owned(), Value::from(path.display().to_string()))]).into());
    }
    file.insert("model".into(), named(model, Table::new()).into());
    file.insert("method".into(), named(method_name, Table::new()).into());
    file.insert("cluster".into(), Table::new().into());
    let run: RunOf<D> = RunOf::parse(file, registry).map_err(ConfigError::Stored)?;
    let mut values = run.to_table().map_err(ConfigError::unwritable)?;
    if let Some(Value::Table(values)) = values.get_mut("method") {
        // What follows from the number of agents is left open: somebody who changes that would keep a value for another number.
        let given = method.table().map_err(ConfigError::unwritable)?;
        values.retain(|key, _| key == "name" || given.contains_key(key));
    }

    let mut text = format!(
        "# A run of {method_name} on the model {model}: every key with its meaning and a starting value.\n\
         # Check it with `mpibayes check FILE`, start it with `mpibayes run FILE` or `mpirun -n {ranks} mpibayes run FILE`.\n"
    );
    text.extend(reasons.iter().map(|reason| format!("# {reason}\n")));
    text.push('\n');
    let sections = [
        ("data", D::data_keys(method.sharing())),
        ("model", D::model_keys(registry, model)),
        ("method", (entry.keys)()),
        ("evaluate", keys::<D::Evaluate>()),
        ("cluster", keys::<ClusterSettings>()),
    ];
    let sections: Vec<_> = sections.into_iter().map(|(name, keys)| (name, keys, values.remove(name))).collect();
    write_keys(&mut text, &keys::<D::RunSettings>(), values);
    for (name, keys, values) in sections {
        let Some(Value::Table(mut values)) = values else { continue };
        text.push_str(&format!("\n[{name}]\n"));
        if let Some(of_section) = values.remove("name") {
            text.push_str(&format!("name = {of_section}\n"));
        }
        write_keys(&mut text, &keys, values);
    }
    Ok(text)
}

/// Writes keys with their documentation and values.
fn write_keys(text: &mut String, keys: &[Key], values: Table) {
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
