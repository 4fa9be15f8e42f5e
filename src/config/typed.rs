//! A run file as it was typed: its keys with their lines, overrides on top, and everything that is wrong with them.

use super::keys::{What, Wrong, fields_of, nearest, read_all, word_sentence};
use super::registry::{MethodEntry, ModelEntry, Registry};
use super::spec::{Assignment, ClusterSpec, ConfigError, DataSpec, EvaluateSpec, RunSpec};
use crate::cluster::Collectives;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// One thing that is wrong with a run: where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file with the line, or the override.
    pub place: String,
    /// The key, such as `[method] rounds`; empty where it is about no key.
    pub key: String,
    /// What is wrong, and what would be right.
    pub what: String,
    line: usize,
}

impl Problem {
    /// Its line in the file; overrides come after all lines.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, key, what, .. } = self;
        if key.is_empty() { write!(f, "{place}: {what}") } else { write!(f, "{place}: {key}: {what}") }
    }
}

/// A run file that is TOML, whatever its keys may be, with overrides laid on top.
#[derive(Clone, Debug)]
pub struct Typed {
    path: PathBuf,
    table: toml::Table,
    /// Every key of the file with its line, from 1, in the order of writing.
    lines: Vec<(Vec<String>, usize)>,
    /// What was laid on top, and where that was typed.
    laid: Vec<(Vec<String>, String)>,
}

impl Typed {
    /// Reads a run file and lays overrides on top.
    ///
    /// # Errors
    /// Where the file cannot be read or is not TOML, or an override leads nowhere.
    pub fn read(path: &Path, overrides: &[Assignment]) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|cause| match cause.kind() {
            ErrorKind::IsADirectory => ConfigError::NoRunFile {
                path: path.to_owned(),
                is: "a folder: name a run file, such as the config.toml of a run's folder",
            },
            ErrorKind::InvalidData => {
                ConfigError::NoRunFile { path: path.to_owned(), is: "no text: name a run file; mpibayes init METHOD writes one" }
            }
            _ => ConfigError::Read { path: path.to_owned(), cause },
        })?;
        let syntax = |cause: toml::de::Error| {
            let line = cause.span().map_or(1, |span| line_of(&text, span.start));
            let typed = text.lines().nth(line - 1).unwrap_or_default().trim();
            let what = match typed {
                "" => cause.message().to_owned(),
                typed => format!("{} (the line reads: {typed})", cause.message()),
            };
            ConfigError::Syntax { path: path.to_owned(), line, what: what.replace('\n', " ") }
        };
        let mut table: toml::Table = text.parse().map_err(syntax)?;
        let spanned = toml::de::DeTable::parse(&text).map_err(syntax)?;
        let mut lines = Vec::new();
        list_keys(spanned.get_ref(), &mut Vec::new(), &mut lines);
        lines.sort_by_key(|(_, at)| *at);
        let lines = lines.into_iter().map(|(key, at)| (key, line_of(&text, at))).collect();
        let mut laid = Vec::new();
        for assignment in overrides {
            assignment.apply(&mut table)?;
            laid.push((assignment.keys(), format!("--set {assignment}")));
        }
        Ok(Self { path: path.to_owned(), table, lines, laid })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was typed, as a table.
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// The same with another value of a key, typed at this place; a table replaces the one that is there.
    ///
    /// # Errors
    /// Where the key leads through a value that is no table; names it.
    pub(super) fn with(&self, key: &[String], value: toml::Value, place: String) -> Result<Self, String> {
        let mut with = self.clone();
        super::spec::lay(&mut with.table, key, value)?;
        with.laid.push((key.to_vec(), place));
        Ok(with)
    }

    /// The same without its `[sweep]`.
    pub(super) fn without_sweep(&self) -> Self {
        let mut without = self.clone();
        without.table.remove(super::sweep::TABLE);
        without
    }

    /// The keys below a table of the file, in the order of writing.
    pub(super) fn keys_below<'a>(&'a self, at: &'a [String]) -> impl Iterator<Item = &'a [String]> {
        self.lines.iter().map(|(key, _)| key.as_slice()).filter(move |key| key.len() > at.len() && key.starts_with(at))
    }

    /// The override that sets this very key.
    pub(super) fn laid_on(&self, at: &[String]) -> Option<&str> {
        self.laid.iter().find(|(key, _)| key == at).map(|(_, place)| place.as_str())
    }

    /// Something wrong with a key, such as `["method", "rounds"]`.
    pub fn problem(&self, at: &[&str], what: impl Into<String>) -> Problem {
        let at: Vec<String> = at.iter().map(|&key| key.to_owned()).collect();
        self.problem_at(&at, what.into())
    }

    pub(super) fn problem_at(&self, at: &[String], what: String) -> Problem {
        let laid = self.laid.iter().rev().find(|(key, _)| at.starts_with(key));
        let line = (1..=at.len()).rev().find_map(|len| self.lines.iter().find(|(key, _)| key == &at[..len]));
        let line = line.map_or(0, |(_, line)| *line);
        let place = match laid {
            Some((_, place)) => place.clone(),
            None if line > 0 => format!("{}, line {line}", self.path.display()),
            None => self.path.display().to_string(),
        };
        let line = if laid.is_some() { usize::MAX } else { line };
        Problem { place, key: self.shown(at), what, line }
    }

    /// A key as people write it: `[method] kde.lse`.
    fn shown(&self, at: &[String]) -> String {
        match at {
            [] => String::new(),
            [key] if self.table.get(key).is_some_and(toml::Value::is_table) => format!("[{key}]"),
            [key] => key.clone(),
            [table, rest @ ..] => format!("[{table}] {}", rest.join(".")),
        }
    }

    /// The run with every default, or all that is wrong with what was typed, in the order of its lines.
    ///
    /// # Errors
    /// A problem for each mistake.
    pub fn resolve(&self, registry: &Registry) -> Result<RunSpec, Vec<Problem>> {
        let mut wrongs: Vec<Wrong> = Vec::new();
        let mut table = self.table.clone();
        if table.remove(super::sweep::TABLE).is_some() {
            let what = format!("this file describes a sweep: mpibayes sweep {}", self.path.display());
            wrongs.push(Wrong { at: vec![super::sweep::TABLE.into()], what: What::Other(what) });
        }
        let part = |name: &str| table.get(name).and_then(toml::Value::as_table);
        let (spec, mut own) = read_all::<RunSpec>(table.clone());
        wrongs.append(&mut own);
        // The reading ends at the first of these.
        for key in ["model", "method"] {
            let missing = Wrong { at: Vec::new(), what: What::Missing(key.into()) };
            if !table.contains_key(key) && !wrongs.contains(&missing) {
                wrongs.push(missing);
            }
        }
        if let Some(spec) = &spec {
            wrongs.extend(spec.out_of_range());
        }
        let under = |table: &'static str| {
            move |mut wrong: Wrong| {
                wrong.at.insert(0, table.into());
                wrong
            }
        };
        let model = part("model").map(|table| (registry.model(table), table));
        let method_of = |table| match &model {
            Some((Ok(entry), _)) => registry.method(table, entry.makes.over()),
            // Whether they go together is not known yet.
            _ => registry.method_of_any(table),
        };
        let method = part("method").map(|table| (method_of(table), table));
        let mut resolved = (None, None);
        match &model {
            Some((Ok(entry), table)) => match (entry.resolve)(table) {
                Ok(table) => resolved.0 = Some(table),
                Err(more) => wrongs.extend(more.into_iter().map(under("model"))),
            },
            Some((Err(wrong), _)) => wrongs.push(under("model")(wrong.clone())),
            None => {}
        }
        match &method {
            Some((Ok(entry), table)) => match (entry.resolve)(table) {
                Ok(table) => resolved.1 = Some(table),
                Err(more) => wrongs.extend(more.into_iter().map(under("method"))),
            },
            Some((Err(wrong), _)) => wrongs.push(under("method")(wrong.clone())),
            None => {}
        }
        if let (Some(spec), (Some(model), Some(method)), true) = (spec, resolved, wrongs.is_empty()) {
            return Ok(RunSpec { model, method, ..spec });
        }
        let model = model.and_then(|(entry, _)| entry.ok());
        let method = method.and_then(|(entry, _)| entry.ok());
        let known = Known::new(registry, model.as_ref(), method.as_ref());
        let mut problems: Vec<Problem> =
            wrongs.iter().map(|wrong| self.problem_at(&wrong.at, known.sentence(wrong, self.is_table(&wrong.at)))).collect();
        problems.sort_by_key(|problem| problem.line);
        problems.dedup();
        Err(problems)
    }

    fn is_table(&self, at: &[String]) -> bool {
        let mut value = None;
        for key in at {
            value = value.map_or_else(|| self.table.get(key), |value: &toml::Value| value.get(key));
        }
        value.is_some_and(toml::Value::is_table)
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

/// Every key with the byte where it begins.
fn list_keys(table: &toml::de::DeTable<'_>, at: &mut Vec<String>, lines: &mut Vec<(Vec<String>, usize)>) {
    for (key, value) in table.iter() {
        at.push(key.get_ref().to_string());
        lines.push((at.clone(), key.span().start));
        if let toml::de::DeValue::Table(inner) = value.get_ref() {
            list_keys(inner, at, lines);
        }
        at.pop();
    }
}

/// The keys that a run file may have, for suggestions.
struct Known<'a> {
    registry: &'a Registry,
    /// Each table with its keys.
    tables: Vec<(Vec<&'static str>, &'static [&'static str])>,
    /// The defaults of model and method, whose tables lie deeper.
    deep: Vec<Vec<String>>,
}

impl<'a> Known<'a> {
    fn new(registry: &'a Registry, model: Option<&ModelEntry>, method: Option<&MethodEntry>) -> Self {
        let mut tables: Vec<(Vec<&'static str>, _)> = vec![
            (vec![], fields_of::<RunSpec>()),
            (vec!["data"], fields_of::<DataSpec>()),
            (vec!["evaluate"], fields_of::<EvaluateSpec>()),
            (vec!["cluster"], fields_of::<ClusterSpec>()),
            (vec!["cluster", "collectives"], fields_of::<Collectives>()),
        ];
        let mut deep = Vec::new();
        if let Some(entry) = model {
            tables.push((vec!["model"], (entry.fields)()));
            deep.extend((entry.resolve)(&toml::Table::new()).ok().into_iter().flat_map(|table| deep_keys("model", &table)));
        }
        if let Some(entry) = method {
            tables.push((vec!["method"], (entry.fields)()));
            deep.extend((entry.resolve)(&toml::Table::new()).ok().into_iter().flat_map(|table| deep_keys("method", &table)));
        }
        Self { registry, tables, deep }
    }

    /// What to say of a mistake.
    fn sentence(&self, wrong: &Wrong, is_table: bool) -> String {
        match &wrong.what {
            What::Other(sentence) => sentence.clone(),
            What::Word { typed, known } => word_sentence(typed, known),
            What::Missing(key) if wrong.at.is_empty() => {
                let names = match key.as_str() {
                    "model" => self.registry.models(),
                    _ => self.registry.methods(),
                };
                format!("there is no [{key}]: add [{key}] with name = \"...\"; there are: {}", names.join(", "))
            }
            What::Missing(key) => format!("`{key}` is missing"),
            What::Key(known) => self.key_sentence(&wrong.at, known, is_table),
        }
    }

    fn key_sentence(&self, at: &[String], known: &[String], is_table: bool) -> String {
        let Some((key, place)) = at.split_last() else { return "there is no such key".into() };
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        let there = |table: &[&str]| match table {
            [] => "the top of the file, above all tables".to_owned(),
            [one] => format!("[{one}]"),
            [first, rest @ ..] => format!("{} of [{first}]", rest.join(".")),
        };
        let no = if is_table && place.is_empty() { "there is no such table" } else { "there is no such key" };
        let others = || self.tables.iter().filter(|(table, _)| *table != place);
        // The right word in the wrong table says more than a similar word in the right one.
        if let Some((table, _)) = others().find(|(_, keys)| keys.contains(&key.as_str())) {
            return format!("{no} here; did you mean `{key}` in {}?", there(table));
        }
        if let Some(near) = nearest(key, known.iter().map(String::as_str)) {
            let near = if is_table && place.is_empty() { format!("[{near}]") } else { format!("`{near}`") };
            return format!("{no}; did you mean {near}?");
        }
        if let Some(deep) = self.deep.iter().find(|deep| deep.last() == Some(key))
            && let [table, rest @ ..] = deep.as_slice()
        {
            return format!("{no} here; did you mean `{}` in [{table}]?", rest.join("."));
        }
        if let Some((kind, name)) = self.registry.other_with(key) {
            return format!("{no}; it belongs to the {kind} `{name}`");
        }
        if let Some((near, table)) = others().find_map(|(table, keys)| Some((nearest(key, keys.iter().copied())?, table))) {
            return format!("{no}; did you mean `{near}` in {}?", there(table));
        }
        if known.is_empty() { no.to_owned() } else { format!("{no}; there are: {}", known.join(", ")) }
    }
}

/// The keys of tables inside a table.
fn deep_keys(name: &str, table: &toml::Table) -> Vec<Vec<String>> {
    fn walk(table: &toml::Table, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        for (key, value) in table {
            at.push(key.clone());
            if at.len() > 2 {
                found.push(at.clone());
            }
            if let toml::Value::Table(inner) = value {
                walk(inner, at, found);
            }
            at.pop();
        }
    }
    let mut found = Vec::new();
    walk(table, &mut vec![name.to_owned()], &mut found);
    found
}
