//! Messages for mistakes in run files: what was probably meant, and where a key belongs.

use super::domain::Domain;
use super::entries::Registry;
use super::renamed::{new_key, new_value};
use super::run::is_on_corpus;
use super::sections::{ClusterSettings, CorpusEvaluation, CorpusRunSettings, TableEvaluation, TableRunSettings};
use crate::cluster::Collectives;
use crate::methods::{Corpus, Sharing, Table};
use crate::settings::{Key, KeyError, Mistake, nearest, unknown_word};
use documented::DocumentedFields;

/// The keys that a run file can have, and those that it could have with other data.
pub(super) struct Hints<'a> {
    registry: &'a Registry,
    /// The path of each section, with its keys.
    sections: Vec<(Vec<&'static str>, Vec<&'static str>)>,
    /// Keys of tables inside the default settings of the method, by their paths.
    nested: Vec<Vec<String>>,
    /// Keys of runs on other data or with other methods: the path of the section, the key, and who does not take it.
    foreign: Vec<(Vec<&'static str>, &'static str, String)>,
}

fn names(keys: Vec<Key>) -> Vec<&'static str> {
    keys.into_iter().map(|key| key.name).collect()
}

fn fields<S: DocumentedFields>() -> Vec<&'static str> {
    S::FIELD_NAMES.to_vec()
}

impl<'a> Hints<'a> {
    /// For the run file with this content.
    pub fn new(file: &toml::Table, registry: &'a Registry) -> Self {
        match is_on_corpus(file, registry) {
            false => Self::of::<Table>(
                file,
                registry,
                &[(vec![], fields::<CorpusRunSettings>()), (vec!["evaluate"], fields::<CorpusEvaluation>())],
            ),
            true => Self::of::<Corpus>(
                file,
                registry,
                &[(vec![], fields::<TableRunSettings>()), (vec!["evaluate"], fields::<TableEvaluation>())],
            ),
        }
    }

    fn of<D: Domain>(file: &toml::Table, registry: &'a Registry, other: &[(Vec<&'static str>, Vec<&'static str>)]) -> Self {
        let name = |section: &str| file.get(section)?.get("name")?.as_str();
        let method = D::methods(registry).iter().find(|entry| Some(entry.name) == name("method"));
        let defaults = method.and_then(|entry| (entry.parse)(toml::Table::new()).ok());
        let sharing = defaults.as_ref().map(|method| method.sharing()).unwrap_or_default();
        let sections = vec![
            (vec![], fields::<D::RunSettings>()),
            (vec!["data"], names(D::data_keys(sharing))),
            (vec!["model"], names(D::model_keys(registry, name("model").unwrap_or_default()))),
            (vec!["method"], method.map(|entry| names((entry.keys)())).unwrap_or_default()),
            (vec!["evaluate"], fields::<D::Evaluate>()),
            (vec!["cluster"], fields::<ClusterSettings>()),
            (vec!["cluster", "collectives"], fields::<Collectives>()),
        ];
        let nested = defaults.and_then(|method| method.table().ok()).map(|table| nested_keys("method", &table));
        let mut foreign: Vec<_> = other
            .iter()
            .flat_map(|(path, keys)| keys.iter().map(|&key| (path.clone(), key, format!("runs on {}", D::WORDS.kind))))
            .collect();
        if sharing == Sharing::Replicated {
            let whose = format!("{}: every agent sees all rows", name("method").unwrap_or_default());
            foreign.push((vec!["data"], "partition", whose));
        }
        Self { registry, sections, nested: nested.unwrap_or_default(), foreign }
    }

    /// What to say of a mistake, as a sentence that continues the name of its key.
    pub fn message(&self, error: &KeyError, is_table: bool) -> String {
        match &error.mistake {
            Mistake::Invalid(sentence) => sentence.clone(),
            Mistake::UnknownWord { found, known } => self.unknown_word(&error.path, found, known),
            Mistake::MissingKey(key) if error.path.is_empty() => {
                let names = if key == "model" { self.registry.models() } else { self.registry.methods() };
                format!("there is no [{key}]. Add [{key}] with name = \"...\", one of: {}", names.join(", "))
            }
            Mistake::MissingKey(key) => format!("lacks the key `{key}`"),
            Mistake::UnknownKey { known } => self.unknown_key(&error.path, known, is_table),
        }
    }

    fn unknown_word(&self, path: &[String], found: &str, known: &[String]) -> String {
        let renamed = path.split_last().and_then(|(key, section)| new_value(&section.join("."), key, found));
        match renamed {
            Some(new) => format!("= \"{found}\" is written \"{new}\" now"),
            None => format!("= {}", unknown_word(found, known)),
        }
    }

    fn unknown_key(&self, path: &[String], known: &[String], is_table: bool) -> String {
        let Some((key, section)) = path.split_last() else { return "is not a key".into() };
        if let Some(new) = new_key(&section.join("."), key) {
            return format!("is called `{new}` now");
        }
        let section: Vec<&str> = section.iter().map(String::as_str).collect();
        if let Some((.., whose)) = self.foreign.iter().find(|(of, name, _)| *of == section && name == key) {
            return format!("is not a key of {whose}. Remove it");
        }
        let is_section = is_table && section.is_empty();
        let not = if is_section { "is not a section of a run file" } else { "is not a key here" };
        let of = |section: &[&str]| match section {
            [] => "at the top of the file, above all tables".to_owned(),
            [one] => format!("in [{one}]"),
            [first, rest @ ..] => format!("in {} of [{first}]", rest.join(".")),
        };
        let others = || self.sections.iter().filter(|(other, _)| *other != section);
        // The right word in the wrong section says more than a similar word in the right one.
        if let Some((other, _)) = others().find(|(_, keys)| keys.contains(&key.as_str())) {
            return format!("{not}. Did you mean `{key}` {}?", of(other));
        }
        let sections = ["data", "model", "method", "evaluate", "cluster", "sweep"];
        let candidates: Vec<&str> = match is_section {
            true => sections.to_vec(),
            false => known.iter().map(String::as_str).collect(),
        };
        if let Some(near) = nearest(key, candidates.iter().copied()) {
            let near = if is_section { format!("[{near}]") } else { format!("`{near}`") };
            return format!("{not}. Did you mean {near}?");
        }
        if let Some([section, rest @ ..]) = self.nested.iter().find(|path| path.last() == Some(key)).map(Vec::as_slice) {
            return format!("{not}. Did you mean `{}` in [{section}]?", rest.join("."));
        }
        if let Some((kind, name)) = self.registry.owner_of(key) {
            return format!("{not}. It belongs to the {kind} \"{name}\"");
        }
        if let Some((near, other)) = others().find_map(|(of, keys)| Some((nearest(key, keys.iter().copied())?, of))) {
            return format!("{not}. Did you mean `{near}` {}?", of(other));
        }
        if candidates.is_empty() { not.to_owned() } else { format!("{not}. The keys are {}", candidates.join(", ")) }
    }
}

/// The keys of tables inside a table, by their paths.
fn nested_keys(section: &str, table: &toml::Table) -> Vec<Vec<String>> {
    fn walk(table: &toml::Table, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        for (key, value) in table {
            path.push(key.clone());
            if path.len() > 2 {
                found.push(path.clone());
            }
            if let toml::Value::Table(inner) = value {
                walk(inner, path, found);
            }
            path.pop();
        }
    }
    let mut found = Vec::new();
    walk(table, &mut vec![section.to_owned()], &mut found);
    found
}
