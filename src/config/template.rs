//! A starting run file: every key with its default, and above it what it means.

use super::check::built_model;
use super::keys::{Doc, Wrong};
use super::open_data::{OpenData, wrong_data};
use super::registry::{Makes, MethodEntry, ModelEntry, Over, Registry, toml_value};
use super::setup::facts;
use super::spec::{ClusterSpec, ConfigError, DataSpec, EvaluateSpec, RunSpec};
use crate::methods::Sharing;
use std::path::Path;

/// Where the data are where nothing is said about them.
const SOME_DATA: &str = "datasets/my.h5";
/// Keys outside of model and method that are for rows alone.
const OF_ROWS: &[&str] = &["temperature", "single", "average_from", "ksd", "particle_paths", "predictions"];
/// What others mean for documents.
const OF_DOCUMENTS: &[Doc] = &[
    ("precision", "\"f32\" or \"f64\"; topics want \"f32\""),
    ("agents", "how many agents share the documents; says nothing about ranks"),
    ("file", "a corpus made by `mpibayes import`"),
    ("partition", "how many documents each agent gets: \"equal\", or in proportions, { sizes = [0.7, 0.3] }"),
    (
        "every",
        "rounds between evaluations, on the documents that are held out, if there are any; 0 for none. One can take longer than a round",
    ),
];
/// What others mean where every agent sees all rows.
const OF_EVERYONE: &[Doc] =
    &[("agents", "K, how many chains or workers there are, each of which sees all data; says nothing about ranks")];
/// Comments are wrapped here.
const WIDTH: usize = 100;

/// A run file for a method; without a model, for the first one that suits the data, or the first one of all.
///
/// # Errors
/// Where there is no such method or model, the data cannot be opened, or no model suits them.
pub fn template(
    registry: &Registry,
    method: &str,
    model: Option<&str>,
    data: Option<&Path>,
) -> Result<String, super::setup::RunError> {
    let named = |name: &str| toml::Table::from_iter([("name".to_owned(), toml::Value::from(name))]);
    let unknown = |kind: &str, wrong: Wrong| ConfigError::Contradiction(format!("the {kind} {}", sentence(&wrong)));
    let data_open = data.map(OpenData::open).transpose()?;
    let facts = data_open.as_ref().and_then(OpenData::rows).map(|dataset| facts(dataset));
    let over = match (model, &data_open) {
        (Some(name), _) => registry.model(&named(name)).map_err(|wrong| unknown("model", wrong))?.makes.over(),
        (None, Some(data)) => data.over(),
        // What it is for, and rows where it is for both.
        (None, None) => registry.method_of_any(&named(method)).map_err(|wrong| unknown("method", wrong))?.starts.over(),
    };
    let method = registry.method(&named(method), over).map_err(|wrong| unknown("method", wrong))?;
    let suits = |entry: &ModelEntry| match entry.makes {
        Makes::Topics(_) => true,
        Makes::Rows(..) => facts.is_none() || built_model(entry, &named(entry.name()), facts).is_ok(),
    };
    let (model, brings_rows) = match model {
        Some(name) => {
            let entry = registry.model(&named(name)).map_err(|wrong| unknown("model", wrong))?;
            if let Some(data) = data_open.as_ref().filter(|data| data.over() != over) {
                let what = format!("{}: {}", data.path().display(), wrong_data(name, over));
                return Err(ConfigError::Contradiction(what).into());
            }
            match entry.makes {
                Makes::Topics(_) => (entry, false),
                Makes::Rows(..) => match built_model(&entry, &named(name), facts) {
                    Ok(built) => (entry, built.own_rows > 0),
                    // Without data it is not known yet whether they suit.
                    Err(_) if facts.is_none() => (entry, false),
                    Err(wrong) => {
                        return Err(ConfigError::Contradiction(format!("the model {name}: {}", sentence(&wrong))).into());
                    }
                },
            }
        }
        None => {
            let entries = registry.models().into_iter().filter_map(|name| registry.model(&named(name)).ok());
            let found = entries.into_iter().find(|entry| entry.makes.over() == over && suits(entry)).map(|entry| (entry, false));
            found.ok_or_else(|| ConfigError::Contradiction("no model suits these data".into()))?
        }
    };
    Ok(write(&method, &model, if brings_rows { None } else { Some(data.unwrap_or(Path::new(SOME_DATA))) }))
}

fn sentence(wrong: &Wrong) -> String {
    let text = wrong.to_string();
    text.strip_prefix("name: ").map_or(text.clone(), str::to_owned)
}

fn write(method: &MethodEntry, model: &ModelEntry, data: Option<&Path>) -> String {
    let mut text = format!(
        "# A run of {} on the model {}: every key, its default or what suits the model, and its meaning.\n\
         # To see what it takes: mpibayes check FILE. To start it: mpibayes run FILE, or mpirun -n 4 mpibayes run FILE\n\n",
        method.name(),
        model.name()
    );
    // The tables of model and method are written from their own defaults.
    let defaults = "[model]\n[method]\n".parse::<toml::Table>().ok().and_then(|table| table.try_into::<RunSpec>().ok());
    let defaults = defaults.and_then(|spec| toml::Table::try_from(spec).ok()).unwrap_or_default();
    // Values that replace defaults: of the top level, or of a table.
    let advised = |table: Option<&str>, values: &mut toml::Table| {
        // Two, unless that is too many for it.
        let agents = [("agents", if (method.check_for)(&toml::Table::new(), 2).is_ok() { "2" } else { "1" })];
        for (key, value) in agents.iter().chain(model.advice) {
            let (of, key) = key.split_once('.').map_or((None, *key), |(of, key)| (Some(of), key));
            if let (true, true, Some(value)) = (of == table, values.contains_key(key), toml_value(value)) {
                values.insert(key.to_owned(), value);
            }
        }
    };
    let part = |name: &str| defaults.get(name).and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let tables = ["data", "model", "method", "evaluate", "cluster"];
    let kind = (model.makes.over(), method.sharing);
    let top: Vec<_> = said_of(kind, RunSpec::DOCS).into_iter().filter(|(key, _)| !tables.contains(key)).collect();
    let mut values = defaults.clone();
    advised(None, &mut values);
    keys(&mut text, &top, &[], &values);
    if let Some(file) = data {
        text.push_str("\n[data]\n");
        let file = toml::Value::from(file.display().to_string());
        keys(
            &mut text,
            &said_of(kind, DataSpec::DOCS),
            &[],
            &toml::Table::from_iter([("file".to_owned(), file), ("partition".to_owned(), "equal".into())]),
        );
    }
    text.push_str(&format!("\n[model]\nname = \"{}\"\n", model.name()));
    keys(&mut text, model.docs, (model.fields)(), &(model.resolve)(&toml::Table::new()).unwrap_or_default());
    text.push_str(&format!("\n[method]\nname = \"{}\"\n", method.name()));
    let mut values = (method.resolve)(&toml::Table::new()).unwrap_or_default();
    advised(Some("method"), &mut values);
    keys(&mut text, method.docs, (method.fields)(), &values);
    for (name, docs) in [("evaluate", EvaluateSpec::DOCS), ("cluster", ClusterSpec::DOCS)] {
        text.push_str(&format!("\n[{name}]\n"));
        let mut values = part(name);
        advised(Some(name), &mut values);
        keys(&mut text, &said_of(kind, docs), &[], &values);
    }
    text
}

/// The keys that mean something for such data that are seen by these, and what they mean there.
fn said_of((over, sharing): (Over, Sharing), docs: &[Doc]) -> Vec<Doc> {
    let (others, left_out): (&[Doc], &[&str]) = match (over, sharing) {
        (Over::Texts, _) => (OF_DOCUMENTS, OF_ROWS),
        (Over::Rows, Sharing::Everyone) => (OF_EVERYONE, &["partition"]),
        (Over::Rows, Sharing::Dealt) => (&[], &[]),
    };
    let said = |(key, doc): &Doc| {
        let other = others.iter().find(|other| other.0 == *key);
        (*key, other.map_or(*doc, |other| other.1))
    };
    docs.iter().filter(|(key, _)| !left_out.contains(key)).map(said).collect()
}

/// Keys with their meaning and default: those that are described, then those that serde knows of, then those that it writes.
fn keys(text: &mut String, docs: &[Doc], fields: &[&str], defaults: &toml::Table) {
    let mut done: Vec<&str> = Vec::new();
    let described = docs.iter().map(|&(key, doc)| (key, Some(doc)));
    let others = fields.iter().copied().chain(defaults.keys().map(String::as_str)).map(|key| (key, None));
    let only_described = fields.is_empty() && !docs.is_empty();
    for (key, doc) in described.chain(others.filter(|_| !only_described)) {
        if done.contains(&key) {
            continue;
        }
        done.push(key);
        if let Some(doc) = doc {
            comment(text, doc);
        }
        match defaults.get(key) {
            Some(value) => text.push_str(&format!("{key} = {}\n", inline(value))),
            None => text.push_str(&format!("# {key} =\n")),
        }
    }
}

fn comment(text: &mut String, doc: &str) {
    let mut line = String::from("#");
    for word in doc.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

/// A value in one line, small numbers with an exponent.
fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) if *number != 0.0 && !(1e-3..1e15).contains(&number.abs()) => format!("{number:e}"),
        toml::Value::Table(table) if table.is_empty() => "{}".into(),
        toml::Value::Table(table) => {
            let pairs: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        value => value.to_string(),
    }
}
