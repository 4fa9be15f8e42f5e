//! Settings: a table of a run file as a Rust type, with the documentation of its keys, and the mistakes that a table can contain.

mod read;

pub use read::read;

use documented::DocumentedFields;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type whose fields are the keys of a table; defaults come from `#[serde(default)]`.
pub trait Settings: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<S: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> Settings for S {}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it means, in one line.
    pub doc: String,
}

/// The keys of a table, in the order of the fields: the `///` of a field is the documentation of its key.
pub fn keys<S: DocumentedFields>() -> Vec<Key> {
    let one_line = |doc: &str| doc.split_whitespace().collect::<Vec<_>>().join(" ");
    S::FIELD_NAMES.iter().zip(S::FIELD_DOCS).map(|(name, doc)| Key { name, doc: one_line(doc) }).collect()
}

/// The table of these settings, with every default written out.
///
/// # Errors
/// If a value has no TOML form, such as an integer beyond 63 bits.
pub fn table<S: Settings>(settings: &S) -> Result<toml::Table, toml::ser::Error> {
    toml::Table::try_from(settings)
}

/// A mistake in a table: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// The keys that lead to it, starting in the table.
    pub path: Vec<String>,
    /// What is wrong there.
    pub mistake: Mistake,
}

/// What is wrong with a key or its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// There is no such key.
    UnknownKey {
        /// The keys that there are.
        known: Vec<String>,
    },
    /// This key is missing.
    MissingKey(String),
    /// The value is not one of the known words.
    UnknownWord {
        /// The value.
        found: String,
        /// The words.
        known: Vec<String>,
    },
    /// The value has another form than the ones that the key can have.
    WrongForm {
        /// The value.
        found: String,
        /// The forms, such as "a table".
        expected: String,
    },
    /// Anything else, which continues the name of the key: `must be positive` or `= 5 is too small`.
    Invalid(String),
}

impl KeyError {
    /// A mistake at a key of the table.
    pub fn at(key: &str, mistake: Mistake) -> Self {
        Self { path: vec![key.to_owned()], mistake }
    }

    /// A value of a key, such as `rounds` or `optimizer.plain.step`, that cannot be used; the sentence continues the name of the key.
    pub fn invalid(key: &str, sentence: impl Into<String>) -> Self {
        Self { path: key.split('.').map(str::to_owned).collect(), mistake: Mistake::Invalid(sentence.into()) }
    }

    /// A mistake of the table as a whole, or of several of its keys.
    pub fn table(sentence: impl Into<String>) -> Self {
        Self { path: Vec::new(), mistake: Mistake::Invalid(sentence.into()) }
    }

    /// The same mistake, seen from the table that contains this one under `key`.
    #[must_use]
    pub fn below(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self
    }
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.join(".");
        let separator = if path.is_empty() { "" } else { ": " };
        match &self.mistake {
            Mistake::UnknownKey { known } => write!(f, "`{path}` is not a key here; the keys are {}", known.join(", ")),
            Mistake::MissingKey(key) => write!(f, "{path}{separator}`{key}` is missing"),
            Mistake::UnknownWord { found, known } => write!(f, "{path}{separator}{}", unknown_word(found, known)),
            Mistake::WrongForm { found, expected } => write!(f, "{path}{separator}must be {expected}, not {found}"),
            Mistake::Invalid(sentence) if sentence.starts_with('=') => write!(f, "{path} {sentence}"),
            Mistake::Invalid(sentence) => write!(f, "{path}{separator}{sentence}"),
        }
    }
}

/// Checks that a value of a key is in its range: the caller has compared them, and describes the range.
///
/// # Errors
/// Unless `holds`.
pub fn in_range(key: &str, value: impl std::fmt::Display, holds: bool, range: &str) -> Result<(), KeyError> {
    if holds {
        return Ok(());
    }
    let mut shown = value.to_string();
    // Huge and tiny numbers with an exponent.
    if let (true, Ok(number)) = (shown.len() > 16, shown.parse::<f64>()) {
        shown = format!("{number:e}");
    }
    Err(KeyError::invalid(key, format!("must be {range}, not {shown}")))
}

/// A value as TOML in one line, small and large numbers with an exponent.
pub fn inline(value: &toml::Value) -> String {
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

/// The message for a word that is not one of the known ones.
pub fn unknown_word(found: &str, known: &[String]) -> String {
    format!("\"{found}\" is not known. {}Choose one of: {}", did_you_mean(found, known), known.join(", "))
}

/// `Did you mean "x"? `, with a space after it, for the known word that was probably meant; empty if there is none.
pub fn did_you_mean(found: &str, known: &[String]) -> String {
    let meant = nearest(found, known.iter().map(String::as_str));
    meant.map(|near| format!("Did you mean \"{near}\"? ")).unwrap_or_default()
}

/// The known word that was probably meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let normal = |word: &str| word.to_lowercase().replace('-', "_");
    let typed = normal(typed);
    let distances = known.into_iter().map(|word| (strsim::damerau_levenshtein(&typed, &normal(word)), word));
    let (distance, word) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters may be wrong, and at least one.
    let allowed = (word.chars().count().max(typed.chars().count()) / 3).max(1);
    (distance <= allowed).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_tolerates_typing_mistakes_and_nothing_else() {
        let known = ["local_steps", "rounds", "batch"];
        for (typed, meant) in [
            ("local_stps", Some("local_steps")),
            ("local-steps", Some("local_steps")),
            ("ronuds", Some("rounds")),
            ("Batch", Some("batch")),
            ("particles", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
