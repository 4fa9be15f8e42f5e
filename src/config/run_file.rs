//! A run file as it was typed: its keys with their lines, overrides on top, and every mistake in it.

use super::error::{ConfigError, Problem};
use super::hints::Hints;
use super::overrides::{Override, set};
use super::registry::Registry;
use super::run::Run;
use super::sections::SWEEP;
use super::syntax;
use crate::settings::{KeyError, Mistake, nearest};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A run file that is valid TOML, with overrides applied; its keys are not checked yet.
#[derive(Clone, Debug)]
pub struct RunFile {
    path: PathBuf,
    table: toml::Table,
    /// Every key of the file with its line, from 1, in the order of writing.
    lines: Vec<(Vec<String>, usize)>,
    /// The keys that overrides set, each with its place for messages.
    overridden: Vec<(Vec<String>, String)>,
}

impl RunFile {
    /// Reads a run file and applies overrides.
    ///
    /// # Errors
    /// If the file cannot be read or is not TOML, or the key of an override does not lead to a value.
    pub fn read(path: &Path, overrides: &[Override]) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|cause| match cause.kind() {
            ErrorKind::IsADirectory => ConfigError::NotARunFile {
                path: path.to_owned(),
                found: "a folder. Name a run file; `mpibayes resume` continues the run in a folder",
            },
            ErrorKind::InvalidData => ConfigError::NotARunFile {
                path: path.to_owned(),
                found: "not text in UTF-8. Name a run file (`mpibayes init METHOD` writes one), or save it as UTF-8",
            },
            _ => ConfigError::Read { path: path.to_owned(), cause },
        })?;
        let has_key = |line: &str| line.contains('=') || line.trim_start().starts_with('[');
        let mut content = text.lines().filter(|line| !line.trim_start().starts_with('#')).peekable();
        if content.peek().is_some_and(|line| line.contains(',')) && !content.any(has_key) {
            return Err(ConfigError::NotARunFile {
                path: path.to_owned(),
                found: "no run file but probably a table: `mpibayes import` makes a dataset of it, and `mpibayes init METHOD` writes a run file",
            });
        }
        let not_toml = |cause: toml::de::Error| {
            let line = cause.span().map_or(1, |span| line_of(&text, span.start));
            let typed = text.lines().nth(line - 1).unwrap_or_default().trim();
            ConfigError::Syntax { path: path.to_owned(), line, message: syntax::explain(typed, cause.message()) }
        };
        let mut table: toml::Table = text.parse().map_err(not_toml)?;
        let spanned = toml::de::DeTable::parse(&text).map_err(not_toml)?;
        let mut lines = Vec::new();
        list_keys(spanned.get_ref(), &mut Vec::new(), &mut lines);
        lines.sort_by_key(|(_, at)| *at);
        let lines = lines.into_iter().map(|(key, at)| (key, line_of(&text, at))).collect();
        let mut overridden = Vec::new();
        for setting in overrides {
            setting.apply(&mut table)?;
            overridden.push((setting.path(), format!("--set {setting}")));
        }
        Ok(Self { path: path.to_owned(), table, lines, overridden })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content as a table.
    pub fn table(&self) -> &toml::Table {
        &self.table
    }

    /// The same file with another value of a key, which messages place at `place`. A table replaces the one in the file.
    ///
    /// # Errors
    /// The part of the key that is a value and not a table.
    pub(super) fn with(&self, path: &[String], value: toml::Value, place: String) -> Result<Self, String> {
        let mut with = self.clone();
        set(&mut with.table, path, value)?;
        with.overridden.push((path.to_vec(), place));
        Ok(with)
    }

    /// The same file without its `[sweep]`.
    pub(super) fn without_sweep(&self) -> Self {
        let mut without = self.clone();
        without.table.remove(SWEEP);
        without
    }

    /// The keys below a table, in the order of writing.
    pub(super) fn keys_below<'a>(&'a self, path: &'a [String]) -> impl Iterator<Item = &'a [String]> {
        self.lines.iter().map(|(key, _)| key.as_slice()).filter(move |key| key.len() > path.len() && key.starts_with(path))
    }

    /// The override that sets exactly this key.
    pub(super) fn override_of(&self, path: &[String]) -> Option<&str> {
        self.overridden.iter().find(|(key, _)| key == path).map(|(_, place)| place.as_str())
    }

    /// The overrides that set keys below a table.
    pub(super) fn overrides_below(&self, path: &[String]) -> impl Iterator<Item = &str> {
        let is_below = move |key: &[String]| key.len() > path.len() && key.starts_with(path);
        self.overridden.iter().filter(move |(key, _)| is_below(key)).map(|(_, place)| place.as_str())
    }

    /// A problem with a key, such as `["method", "rounds"]`.
    pub fn problem(&self, path: &[&str], message: impl Into<String>) -> Problem {
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        self.problem_at(&path, message.into())
    }

    pub(super) fn problem_at(&self, path: &[String], message: String) -> Problem {
        let is_in_file = self.lines.iter().any(|(key, _)| key == path);
        // An override of a key inside a table that the file does not have, or that it has changed.
        let within = |key: &Vec<String>| !path.is_empty() && key.starts_with(path) && (!is_in_file || path.len() > 1);
        let overridden = self.overridden.iter().rev().find(|(key, _)| path.starts_with(key) || within(key));
        let line = (1..=path.len()).rev().find_map(|len| self.lines.iter().find(|(key, _)| key == &path[..len]));
        let line = line.map(|(_, line)| *line);
        let place = match (overridden, line) {
            (Some((_, place)), _) => place.clone(),
            (None, Some(line)) => format!("{}, line {line}", self.path.display()),
            (None, None) => self.path.display().to_string(),
        };
        let line = if overridden.is_some() { usize::MAX } else { line.unwrap_or(0) };
        let message = if is_in_file || overridden.is_some() { message } else { of_default(&message).unwrap_or(message) };
        Problem { place, key: path.join("."), message, line }
    }

    /// The run, or every mistake in the file, in the order of its lines.
    ///
    /// # Errors
    /// A problem for each mistake.
    pub fn parse(&self, registry: &Registry) -> Result<Run, Vec<Problem>> {
        Run::parse(self.table.clone(), registry).map_err(|errors| {
            let hints = Hints::new(&self.table, registry);
            // A section whose name is mistyped is one mistake, not two.
            let unknown =
                errors.iter().filter(|error| matches!(error.mistake, Mistake::UnknownKey { .. }) && error.path.len() == 1);
            let mistyped: Vec<&str> = unknown.filter_map(|error| nearest(&error.path[0], ["model", "method"])).collect();
            let is_mistyped = |error: &KeyError| {
                error.path.is_empty() && matches!(&error.mistake, Mistake::MissingKey(key) if mistyped.contains(&key.as_str()))
            };
            let mut problems: Vec<Problem> = errors
                .iter()
                .filter(|error| !is_mistyped(error))
                .map(|error| self.problem_at(&error.path, hints.message(error, self.is_table(&error.path))))
                .collect();
            problems.sort_by_key(Problem::line);
            problems.dedup();
            problems
        })
    }

    /// The problem of a mistake in a section.
    pub fn problem_in(&self, section: &str, error: KeyError, registry: &Registry) -> Problem {
        let error = error.below(section);
        let message = Hints::new(&self.table, registry).message(&error, self.is_table(&error.path));
        self.problem_at(&error.path, message)
    }

    fn is_table(&self, at: &[String]) -> bool {
        let mut value = None;
        for key in at {
            value = value.map_or_else(|| self.table.get(key), |value: &toml::Value| value.get(key));
        }
        value.is_some_and(toml::Value::is_table)
    }
}

/// The message `= 2000 leaves no draws` for a key that is not in the file.
fn of_default(message: &str) -> Option<String> {
    let (value, rest) = message.strip_prefix("= ")?.split_once(' ')?;
    value.parse::<f64>().ok()?;
    Some(format!("= {value}, its default, {rest}"))
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

/// Every key with the byte at which it starts.
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
