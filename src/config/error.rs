//! What can be wrong with a run file, and how it is reported.

use crate::settings::KeyError;
use std::path::PathBuf;

/// One mistake in a run file: where it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file with the line, or the override.
    pub place: String,
    /// The key, such as `method.rounds`; empty for the file as a whole.
    pub key: String,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The line in the file, from 1; overrides come after all lines.
    pub(super) line: usize,
}

impl Problem {
    /// The line in the file, from 1; overrides come after all lines.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, key, message, .. } = self;
        if key.is_empty() { write!(f, "{place}: {message}") } else { write!(f, "{place}: '{key}' {message}") }
    }
}

/// What is wrong with a run file or an override.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the run file {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is something else than a run file.
    #[error("{} is {found}", path.display())]
    NotARunFile {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        found: &'static str,
    },
    /// The file is not TOML.
    #[error("{}, line {line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What the TOML parser says.
        message: String,
    },
    /// The file is TOML, but does not describe a run: the first mistake, and how many there are.
    #[error("{}{}", .0.first().map(ToString::to_string).unwrap_or_default(), more(.0.len()))]
    Problems(Vec<Problem>),
    /// The key of an override does not lead to a value.
    #[error("--set {key}: {message}")]
    Override {
        /// What was typed before the '='.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// Settings that cannot be used.
    #[error("{}", list(.0))]
    Settings(Vec<KeyError>),
    /// A configuration that was stored with a run cannot be used.
    #[error("the stored configuration cannot be used: {}", list(.0))]
    Stored(Vec<KeyError>),
    /// A choice that cannot be made: an unknown name, or data that do not suit it.
    #[error("{0}")]
    Choice(String),
}

impl ConfigError {
    /// A value has no TOML form, such as an integer beyond 63 bits.
    pub fn unwritable(error: toml::ser::Error) -> Self {
        Self::Choice(format!("a value cannot be written as TOML: {error}"))
    }
}

/// Says where the other mistakes are listed.
fn more(problems: usize) -> String {
    match problems {
        0 | 1 => String::new(),
        problems => format!(" (the first of {problems} mistakes; `mpibayes check` lists all)"),
    }
}

fn list(errors: &[KeyError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
