//! Messages for mistakes in run files: what was probably meant, and where a key belongs.

use super::other_names::meant_by;
use super::registry::Registry;
use super::renamed::{new_key, new_value};
use super::run::is_on_corpus;
use super::run_file_kind::RunFileKind;
use super::sections::ClusterSettings;
use crate::cluster::Collectives;
use crate::methods::{Corpus, Sharing, Table};
use crate::settings::{Key, KeyError, Mistake, did_you_mean, keys, nearest, unknown_word};

/// The keys that a run file can have, and those that it could have with other data.
pub(super) struct Hints<'a> {
    registry: &'a Registry,
    sections: Vec<Section>,
    /// Keys of tables inside the default settings of the method, by their paths.
    nested: Vec<Vec<String>>,
    foreign: Vec<Foreign>,
    /// The values of `name` in `[model]` and `[method]`.
    names: [(&'static str, String); 2],
}

/// A section of a run file.
struct Section {
    path: Vec<&'static str>,
    keys: Vec<Key>,
}

impl Section {
    fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known.name == key)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

/// Keys of runs on other data or with other methods.
struct Foreign {
    section: Section,
    /// The runs that do not take these keys.
    refused_by: String,
}

impl<'a> Hints<'a> {
    /// For the run file with this content.
    pub fn new(file: &toml::Table, registry: &'a Registry) -> Self {
        match is_on_corpus(file, registry) {
            false => Self::of::<Table, Corpus>(file, registry),
            true => Self::of::<Corpus, Table>(file, registry),
        }
    }

    /// For a run on data of kind `D`, which is not of kind `O`.
    fn of<D: RunFileKind, O: RunFileKind>(file: &toml::Table, registry: &'a Registry) -> Self {
        let name = |section: &str| file.get(section)?.get("name")?.as_str();
        let method = D::methods(registry).iter().find(|entry| Some(entry.name) == name("method"));
        let defaults = method.and_then(|entry| (entry.parse)(toml::Table::new()).ok());
        let sharing = defaults.as_ref().map(|method| method.sharing()).unwrap_or_default();
        let section = |path: &[&'static str], keys| Section { path: path.to_vec(), keys };
        let sections = vec![
            section(&[], keys::<D::RunSettings>()),
            section(&["data"], D::data_keys(sharing)),
            section(&["model"], D::model_keys(registry, name("model").unwrap_or_default())),
            section(&["method"], method.map(|entry| (entry.keys)()).unwrap_or_default()),
            section(&["evaluate"], keys::<D::Evaluate>()),
            section(&["cluster"], keys::<ClusterSettings>()),
            section(&["cluster", "collectives"], keys::<Collectives>()),
        ];
        let nested = defaults.and_then(|method| method.table().ok()).map(|table| nested_keys("method", &table));
        let same_method = O::methods(registry).iter().find(|entry| Some(entry.name) == name("method"));
        let mut foreign: Vec<Foreign> = [
            section(&[], keys::<O::RunSettings>()),
            section(&["evaluate"], keys::<O::Evaluate>()),
            section(&["method"], same_method.map(|entry| (entry.keys)()).unwrap_or_default()),
        ]
        .into_iter()
        .map(|section| Foreign { section, refused_by: format!("runs on {}", D::WORDS.kind) })
        .collect();
        if sharing == Sharing::Replicated {
            let known = D::data_keys(sharing);
            let is_unknown = |key: &Key| known.iter().all(|other| other.name != key.name);
            let of_shards = D::data_keys(Sharing::Split).into_iter().filter(is_unknown).collect();
            let refused_by = format!("{}: every agent sees all rows", name("method").unwrap_or_default());
            foreign.push(Foreign { section: section(&["data"], of_shards), refused_by });
        }
        let names = ["model", "method"].map(|section| (section, name(section).unwrap_or_default().to_owned()));
        Self { registry, sections, nested: nested.unwrap_or_default(), foreign, names }
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
            Mistake::WrongForm { found, expected } => self.wrong_form(&error.path, found, expected),
            Mistake::UnknownKey { known } => self.unknown_key(&error.path, known, is_table),
        }
    }

    /// The message for a value of the wrong form: it quotes the documentation of the key, which shows the right forms.
    fn wrong_form(&self, path: &[String], found: &str, expected: &str) -> String {
        match self.documented(path) {
            Some(Key { name, doc }) if expected.starts_with("a list") => {
                // A single number may be meant as a list of one.
                let example = if found.parse::<f64>().is_ok() { format!("[{found}]") } else { "[...]".into() };
                format!("= {found} is not understood: a list is written {example}. `{name}`: {doc}")
            }
            Some(Key { name, doc }) => format!("= {found} is not understood. `{name}`: {doc}"),
            None => format!("must be {expected}, not {found}"),
        }
    }

    /// The key at a path, with its documentation.
    fn documented(&self, path: &[String]) -> Option<&Key> {
        let (key, path) = path.split_last()?;
        let section = self.sections.iter().find(|section| section.path == path)?;
        section.keys.iter().find(|known| known.name == key)
    }

    fn unknown_word(&self, path: &[String], found: &str, known: &[String]) -> String {
        let renamed = path.split_last().and_then(|(key, section)| new_value(&section.join("."), key, found));
        match renamed {
            Some(new) => format!("= \"{found}\" is written \"{new}\" now"),
            None => match self.documented(path).filter(|key| key.doc.contains('{')) {
                // Some of the words need settings, which the documentation shows.
                Some(Key { name, doc }) => format!("= \"{found}\" is not known. {}`{name}`: {doc}", did_you_mean(found, known)),
                None => format!("= {}", unknown_word(found, known)),
            },
        }
    }

    /// What a key of this name in a section is called here, if other programs use the name.
    fn meant(&self, key: &str, section: &[&str]) -> Option<String> {
        let in_section = |place: &Section, name: &str| {
            let Key { name, doc } = place.keys.iter().find(|known| known.name == name)?;
            let place = if place.path == section { String::new() } else { format!(" {}", in_words(&place.path)) };
            Some(format!("Did you mean `{name}`{place}? It is: {doc}"))
        };
        let here = || self.sections.iter().find(|place| place.path == section);
        let others = || self.sections.iter().filter(|place| place.path != section);
        let names = meant_by(key);
        let found_here =
            names.iter().find_map(|name| here().and_then(|place| in_section(place, name)).or_else(|| self.nested(name)));
        found_here.or_else(|| names.iter().find_map(|name| others().find_map(|place| in_section(place, name))))
    }

    /// A question about a key inside the default settings of the method.
    fn nested(&self, key: &str) -> Option<String> {
        let [section, rest @ ..] = self.nested.iter().find(|path| path.last().is_some_and(|last| last == key))?.as_slice() else {
            return None;
        };
        Some(format!("Did you mean `{}` in [{section}]?", rest.join(".")))
    }

    fn unknown_key(&self, path: &[String], known: &[String], is_table: bool) -> String {
        let Some((key, section)) = path.split_last() else { return "is not a key".into() };
        let name = |of: &str| self.names.iter().find(|(section, _)| *section == of).map_or("", |(_, name)| name);
        if let Some(new) = new_key(&section.join("."), name(section.first().map_or("", String::as_str)), key) {
            return format!("is called `{new}` now");
        }
        let section: Vec<&str> = section.iter().map(String::as_str).collect();
        if let Some(Foreign { refused_by, .. }) =
            self.foreign.iter().find(|foreign| foreign.section.path == section && foreign.section.has(key))
        {
            return format!("is not a key of {refused_by}. Remove it");
        }
        let is_section = is_table && section.is_empty();
        let not = match section[..] {
            _ if is_section => "is not a section of a run file".to_owned(),
            [section] if !name(section).is_empty() => format!("is not a key of {}", name(section)),
            _ => "is not a key here".to_owned(),
        };
        let others = || self.sections.iter().filter(|other| other.path != section);
        // The right word in the wrong section says more than a similar word in the right one.
        if let Some(other) = others().find(|other| other.has(key)) {
            let dotted = [other.path.join("."), key.clone()].join(".");
            let elsewhere = if section.is_empty() { format!(", or `{dotted}` in [sweep] and --set") } else { String::new() };
            return format!("{not}. Did you mean `{key}` {}{elsewhere}?", in_words(&other.path));
        }
        if let Some(meant) = self.meant(key, &section) {
            return format!("{not}. {meant}");
        }
        if let Some(nested) = self.nested(key) {
            return format!("{not}. {nested}");
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
        if let Some((kind, name)) = self.registry.owner_of(key) {
            let of_file = self.names.iter().find(|(section, _)| *section == kind).map_or("", |(_, name)| name);
            let keys =
                self.sections.iter().find(|of| of.path == [kind] && section == [kind]).into_iter().flat_map(Section::names);
            let keys = keys.collect::<Vec<_>>().join(", ");
            return match keys.is_empty() {
                true => format!("{not}. It is a key of the {kind} {name}"),
                false => format!("{not}. Other {kind}s have it, such as {name}; the keys of {of_file} are {keys}"),
            };
        }
        if let Some((near, other)) = others().find_map(|other| Some((nearest(key, other.names())?, other))) {
            return format!("{not}. Did you mean `{near}` {}?", in_words(&other.path));
        }
        match candidates.as_slice() {
            [] => not,
            _ if is_section => format!("{not}. The sections are [{}]", candidates.join("], [")),
            _ => format!("{not}. The keys are {}", candidates.join(", ")),
        }
    }
}

/// The dotted name of a key, such as `method.draws`, if a run file can have it; none for keys of `[cluster.collectives]`.
pub(crate) fn dotted_key(key: &str, registry: &Registry) -> Option<String> {
    if key == "data" {
        return Some("data.file".into());
    }
    // Where a model and a method both have the key, that of the model is meant more often.
    let sections = registry.documentation();
    let of = |kind: &str| {
        let is_of_kind = |name: &str| name.split(' ').next() == Some(kind);
        sections.iter().any(|(name, keys)| is_of_kind(name) && keys.iter().any(|known| known.name == key))
    };
    if of("run") {
        return Some(key.to_owned());
    }
    let kind = ["cluster", "evaluate", "model", "method", "data"].into_iter().find(|kind| of(kind))?;
    Some(format!("{kind}.{key}"))
}

/// Where the keys of a section are written.
fn in_words(section: &[&str]) -> String {
    match section {
        [] => "at the top of the file, above all tables".to_owned(),
        _ => format!("in [{}]", section.join(".")),
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
