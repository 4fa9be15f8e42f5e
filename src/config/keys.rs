//! The keys of settings as serde knows them, and the reading of a table that tells all that is wrong with it at once.

use serde::de::value::Error as Nothing;
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_path_to_error::Segment;

/// A key, and what it means.
pub type Doc = (&'static str, &'static str);
/// What each key of a table means, in the order in which people should read them.
pub type Docs = &'static [Doc];

/// The keys of a struct, in its order; none for what is no struct, such as a map.
pub fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // Asking is all that is wanted: there is no value to give.
    drop(T::deserialize(Asking { fields: &mut fields }));
    fields
}

/// A source of no values that writes down which keys it is asked for.
struct Asking<'a> {
    fields: &'a mut &'static [&'static str],
}

impl<'de> Deserializer<'de> for Asking<'_> {
    type Error = Nothing;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
        Err(de::Error::custom("no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Nothing> {
        *self.fields = fields;
        Err(de::Error::custom("no value"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Nothing> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// Something wrong with a table: where in it, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The keys that lead there, from the table on.
    pub at: Vec<String>,
    /// What.
    pub what: What,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The last key is unknown; these are known there.
    Key(Vec<String>),
    /// A key is missing.
    Missing(String),
    /// The value is none of these words.
    Word {
        /// What was typed.
        typed: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Anything else, as a sentence.
    Other(String),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = self.at.join(".");
        match &self.what {
            What::Key(known) => write!(f, "`{at}` is no key; there are: {}", known.join(", ")),
            What::Missing(key) => write!(f, "{at}{}`{key}` is missing", if at.is_empty() { "" } else { ": " }),
            What::Word { typed, known } => write!(f, "{at}: {}", word_sentence(typed, known)),
            What::Other(sentence) => write!(f, "{at}{}{sentence}", if at.is_empty() { "" } else { ": " }),
        }
    }
}

/// What to say of a word that is none of the known ones.
pub fn word_sentence(typed: &str, known: &[String]) -> String {
    let meant = nearest(typed, known.iter().map(String::as_str)).map(|near| format!(" did you mean \"{near}\"?"));
    format!("\"{typed}\" is unknown;{} there are: {}", meant.unwrap_or_default(), known.join(", "))
}

/// So many mistakes are enough for a day.
const MOST: usize = 50;

/// Settings out of a table. What cannot be read is written down and taken out, and the rest read again; without mistakes there is a
/// value.
pub fn read_all<S: DeserializeOwned>(mut table: toml::Table) -> (Option<S>, Vec<Wrong>) {
    let mut wrongs = Vec::new();
    let mut taken: Vec<Vec<String>> = Vec::new();
    while wrongs.len() < MOST {
        let error = match serde_path_to_error::deserialize::<_, S>(toml::Value::Table(table.clone())) {
            Ok(settings) => return (wrongs.is_empty().then_some(settings), wrongs),
            Err(error) => error,
        };
        let mut at = path(&table, error.path());
        let message = error.inner().message().to_owned();
        let what = read_message(&message, value_at(&table, &at));
        match &what {
            What::Missing(key) => {
                let mut missing = at.clone();
                missing.push(key.clone());
                if !taken.contains(&missing) {
                    wrongs.push(Wrong { at: at.clone(), what });
                }
            }
            What::Key(_) => {
                let key = quoted(&message).into_iter().next().unwrap_or_default();
                // The table of an externally tagged enum may not be on the path.
                at = find(&table, &at, &key);
                wrongs.push(Wrong { at: at.clone(), what });
            }
            // That a table is too empty now is no mistake of whoever typed it; if it was one before, the next look will tell.
            What::Other(_) if taken.iter().any(|taken| taken.len() > at.len() && taken.starts_with(&at)) => {}
            _ => wrongs.push(Wrong { at: at.clone(), what }),
        }
        if at.is_empty() || !take(&mut table, &at) {
            break;
        }
        taken.push(at);
    }
    (None, wrongs)
}

/// The keys of the deepest value that serde was reading.
fn path(table: &toml::Table, path: &serde_path_to_error::Path) -> Vec<String> {
    let mut keys = Vec::new();
    let mut at = Some(table);
    for segment in path.iter() {
        let key = match segment {
            Segment::Map { key } => key,
            Segment::Enum { variant } => variant,
            // Lists are named as a whole.
            Segment::Seq { .. } | Segment::Unknown => break,
        };
        match at.and_then(|table| table.get(key)) {
            Some(value) => {
                keys.push(key.clone());
                at = value.as_table();
            }
            None => break,
        }
    }
    keys
}

fn value_at<'a>(table: &'a toml::Table, at: &[String]) -> Option<&'a toml::Value> {
    let (last, before) = at.split_last()?;
    let table = before.iter().try_fold(table, |table, key| table.get(key)?.as_table())?;
    table.get(last)
}

/// Where below a place the key is: there, or one table deeper.
fn find(table: &toml::Table, at: &[String], key: &str) -> Vec<String> {
    let mut place = at.to_vec();
    if place.last().is_some_and(|last| last == key) && value_at(table, &place).is_some() {
        return place;
    }
    let here = if at.is_empty() { Some(table) } else { value_at(table, at).and_then(toml::Value::as_table) };
    if let Some(here) = here
        && !here.contains_key(key)
        && let Some((inner, _)) = here.iter().find(|(_, value)| value.as_table().is_some_and(|inner| inner.contains_key(key)))
    {
        place.push(inner.clone());
    }
    place.push(key.to_owned());
    place
}

fn take(table: &mut toml::Table, at: &[String]) -> bool {
    let Some((last, before)) = at.split_last() else { return false };
    let table = before.iter().try_fold(table, |table, key| table.get_mut(key)?.as_table_mut());
    table.is_some_and(|table| table.remove(last).is_some())
}

/// What stands between backticks.
fn quoted(message: &str) -> Vec<String> {
    message.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// serde's own sentences, in the words of people who write run files.
fn read_message(message: &str, value: Option<&toml::Value>) -> What {
    let names = || quoted(message).into_iter().skip(1).collect();
    let first = || quoted(message).into_iter().next().unwrap_or_default();
    if message.starts_with("unknown field") {
        return What::Key(names());
    }
    if message.starts_with("missing field") {
        return What::Missing(first());
    }
    if message.starts_with("unknown variant") {
        return What::Word { typed: first(), known: names() };
    }
    let other = || What::Other(message.lines().next().unwrap_or_default().to_owned());
    let Some((_, expected)) = message.rsplit_once(", expected ") else { return other() };
    if !message.starts_with("invalid ") {
        return other();
    }
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or above".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "path string" => "a text in quotes".to_owned(),
        "a sequence" => "a list, such as [1, 2]".to_owned(),
        "a map" => "a table".to_owned(),
        expected if expected.starts_with("struct ") => "a table".to_owned(),
        expected => expected.to_owned(),
    };
    match value {
        Some(toml::Value::Table(_)) => What::Other(format!("must be {expected}, not a table")),
        Some(value) => What::Other(format!("must be {expected}, not {value}")),
        None => other(),
    }
}

/// The known word that was probably meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let typed = plain(typed);
    let (distance, word) = known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&typed, &plain(word)), word))
        .min_by_key(|(distance, _)| *distance)?;
    // A third of the letters, and at least one, may be wrong.
    (distance <= (word.chars().count().max(typed.chars().count()) / 3).max(1)).then_some(word)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        count: u32,
        #[serde(default)]
        share: f64,
        #[serde(default)]
        kind: Kind,
        inner: Option<Inner>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Kind {
        #[default]
        Plain,
        Deep {
            floor: f64,
        },
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        on: bool,
    }

    fn wrongs(text: &str) -> Vec<(String, What)> {
        let (value, wrongs) = read_all::<Outer>(text.parse().unwrap());
        assert_eq!(value.is_none(), !wrongs.is_empty());
        wrongs.into_iter().map(|wrong| (wrong.at.join("."), wrong.what)).collect()
    }

    #[test]
    fn all_keys_are_known_and_maps_have_none() {
        assert_eq!(fields_of::<Outer>(), ["count", "share", "kind", "inner"]);
        assert!(fields_of::<toml::Table>().is_empty());
    }

    #[test]
    fn all_mistakes_are_found_at_once_and_no_others() {
        assert_eq!(wrongs("count = 1\nkind = { deep = { floor = 1 } }\n[inner]\non = true\n"), []);
        let found = wrongs("count = -1\nshaer = 2\nkind = { deep = { flor = 1, floor = 2 } }\n[inner]\non = 1\n");
        let places: Vec<&str> = found.iter().map(|found| found.0.as_str()).collect();
        assert_eq!(places.len(), 4, "{found:?}");
        for place in ["count", "shaer", "kind.deep.flor", "inner.on"] {
            assert!(places.contains(&place), "{place} in {found:?}");
        }
        let missing = |key: &str| What::Missing(key.into());
        assert_eq!(wrongs(""), [(String::new(), missing("count"))]);
        assert_eq!(wrongs("count = 1\ninner = {}\n"), [("inner".into(), missing("on"))]);
        let flor = What::Key(vec!["floor".into()]);
        let two = [("kind.deep.flor".into(), flor), ("kind.deep".into(), missing("floor"))];
        assert_eq!(wrongs("count = 1\nkind = { deep = { flor = 1 } }\n"), two);
        assert!(matches!(wrongs("count = 1\nkind = {}\n").as_slice(), [(at, What::Other(_))] if at == "kind"));
        let word = What::Word { typed: "plian".into(), known: vec!["plain".into(), "deep".into()] };
        assert_eq!(wrongs("count = 1\nkind = \"plian\"\n"), [("kind".into(), word)]);
        let said = |text: &str| match &wrongs(text)[0].1 {
            What::Other(said) => said.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(said("count = \"x\""), "must be a whole number, 0 or above, not \"x\"");
        assert_eq!(said("count = 1\ninner = 3"), "must be a table, not 3");
    }

    #[test]
    fn the_nearest_word_is_near() {
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
