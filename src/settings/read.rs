//! Reads settings from a TOML table and reports all mistakes at once, each with the path of its key.
//!
//! serde reports a mistake through the error type of its data format. This format's error type keeps what serde says in fields, so
//! that nobody has to parse an error message.

use super::{KeyError, Mistake, inline};
use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::fmt::Display;
use toml::Value;

/// At most this many mistakes are reported.
const MAX_MISTAKES: usize = 50;

/// The settings in a table, or every mistake in it. A table without mistakes is deserialized exactly once.
///
/// # Errors
/// One error for each mistake, in no particular order.
pub fn read<S: DeserializeOwned>(mut table: toml::Table) -> Result<S, Vec<KeyError>> {
    let mut errors: Vec<KeyError> = Vec::new();
    let mut removed: Vec<Vec<String>> = Vec::new();
    while errors.len() < MAX_MISTAKES {
        // Only a table with mistakes is read again, without the key that was wrong.
        let error = match S::deserialize(TomlValue(Value::Table(table.clone()))) {
            Ok(settings) if errors.is_empty() => return Ok(settings),
            Ok(_) => break,
            Err(error) => error,
        };
        let path = error.path.clone();
        if !is_consequence(&error, &removed) {
            errors.push(error);
        }
        match remove(&mut table, &path) {
            Some(path) => removed.push(path),
            None => break,
        }
    }
    Err(errors)
}

/// Whether a mistake is only there because a key was removed.
fn is_consequence(error: &KeyError, removed: &[Vec<String>]) -> bool {
    match &error.mistake {
        Mistake::MissingKey(key) => removed.iter().any(|path| path.split_last() == Some((key, &error.path))),
        Mistake::Invalid(_) | Mistake::WrongForm { .. } => {
            removed.iter().any(|path| path.len() > error.path.len() && path.starts_with(&error.path))
        }
        Mistake::UnknownKey { .. } | Mistake::UnknownWord { .. } => false,
    }
}

/// Removes the value at a path, or the list that contains it. Returns the path of what was removed.
fn remove(mut table: &mut toml::Table, path: &[String]) -> Option<Vec<String>> {
    for (depth, key) in path.iter().enumerate() {
        let is_last = depth + 1 == path.len();
        if is_last || table.get(key)?.is_array() {
            table.remove(key)?;
            return Some(path[..=depth].to_vec());
        }
        table = table.get_mut(key)?.as_table_mut()?;
    }
    None
}

impl de::Error for KeyError {
    fn custom<T: Display>(message: T) -> Self {
        Self::table(message.to_string())
    }

    fn invalid_type(found: Unexpected, expected: &dyn Expected) -> Self {
        let expected = in_words(&expected.to_string());
        match expected.starts_with("a table") || expected.starts_with("a list") {
            true => wrong_form(shown(found), expected),
            false => Self::table(format!("must be {expected}, not {}", shown(found))),
        }
    }

    fn invalid_value(found: Unexpected, expected: &dyn Expected) -> Self {
        let largest = match expected.to_string().as_str() {
            "u8" => u64::from(u8::MAX),
            "u16" => u64::from(u16::MAX),
            "u32" => u64::from(u32::MAX),
            _ => u64::MAX,
        };
        match found {
            Unexpected::Signed(value) if u64::try_from(value).is_ok_and(|value| value > largest) => {
                Self::table(format!("must be at most {largest}, not {value}"))
            }
            found => Self::invalid_type(found, expected),
        }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::table(format!("has {length} values; {expected} is needed"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|&word| word.to_owned()).collect();
        Self { path: Vec::new(), mistake: Mistake::UnknownWord { found: variant.to_owned(), known } }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.iter().map(|&key| key.to_owned()).collect();
        Self::at(field, Mistake::UnknownKey { known })
    }

    fn missing_field(field: &'static str) -> Self {
        Self { path: Vec::new(), mistake: Mistake::MissingKey(field.to_owned()) }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::at(field, Mistake::Invalid("is there twice".into()))
    }
}

impl std::error::Error for KeyError {}

fn wrong_form(found: String, expected: String) -> KeyError {
    KeyError { path: Vec::new(), mistake: Mistake::WrongForm { found, expected } }
}

/// What serde expects, in words for people who write run files.
fn in_words(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or larger".into(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" | "path string" => "text in quotes".into(),
        "a sequence" => "a list, such as [1, 2]".into(),
        "a map" => "a table".into(),
        struct_name if struct_name.starts_with("struct ") => "a table".into(),
        other => other.into(),
    }
}

/// A value as it was typed, for a message.
fn shown(found: Unexpected) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => Value::Float(value).to_string(),
        Unexpected::Str(text) => format!("\"{text}\""),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// A TOML value as a source of data for serde.
struct TomlValue(Value);

impl<'de> Deserializer<'de> for TomlValue {
    type Error = KeyError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeyError> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(values) => visitor.visit_seq(List { values: values.into_iter(), next: 0 }),
            Value::Table(table) => visitor.visit_map(Entries { entries: table.into_iter(), current: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, KeyError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, KeyError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, KeyError> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(Word { word, content: None }),
            Value::Table(table) if table.len() == 1 && table.keys().all(|word| words.contains(&word.as_str())) => {
                let (word, content) = table.into_iter().next().ok_or_else(|| KeyError::table("is an empty table"))?;
                visitor.visit_enum(Word { word, content: Some(content) })
            }
            value => Err(wrong_form(inline(&value), format!("one of {}", words.join(", ")))),
        }
    }

    /// serde would also accept a list of values in the order of the fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, KeyError> {
        match self.0 {
            Value::Array(_) => Err(wrong_form("a list".into(), "a table".into())),
            value => Self(value).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// The values of a list. Mistakes in a value get its position, from 0.
struct List {
    values: std::vec::IntoIter<Value>,
    next: usize,
}

impl<'de> SeqAccess<'de> for List {
    type Error = KeyError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, KeyError> {
        let position = self.next.to_string();
        self.next += 1;
        let value = self.values.next().map(|value| seed.deserialize(TomlValue(value)));
        value.transpose().map_err(|error| error.below(&position))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

/// The entries of a table. Mistakes in a value get the path of its key.
struct Entries {
    entries: toml::map::IntoIter<String, Value>,
    current: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = KeyError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, KeyError> {
        self.current = self.entries.next();
        let key = self.current.as_ref().map(|(key, _)| StrDeserializer::<KeyError>::new(key));
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, KeyError> {
        let (key, value) = self.current.take().ok_or_else(|| KeyError::table("a value was read before its key"))?;
        seed.deserialize(TomlValue(value)).map_err(|error| error.below(&key))
    }
}

/// A word of an enum: alone (`"word"`), or with settings of its own (`{ word = ... }`).
struct Word {
    word: String,
    content: Option<Value>,
}

impl Word {
    /// The settings of a word that needs some.
    fn content(self) -> Result<(String, TomlValue), KeyError> {
        match self.content {
            Some(content) => Ok((self.word, TomlValue(content))),
            None => Err(wrong_form(format!("\"{}\"", self.word), format!("a table: {{ {} = ... }}", self.word))),
        }
    }
}

impl<'de> EnumAccess<'de> for Word {
    type Error = KeyError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), KeyError> {
        let word: StringDeserializer<KeyError> = self.word.clone().into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word {
    type Error = KeyError;

    fn unit_variant(self) -> Result<(), KeyError> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(KeyError::table(format!("\"{0}\" has no settings: write \"{0}\"", self.word))),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, KeyError> {
        let (word, content) = self.content()?;
        seed.deserialize(content).map_err(|error| error.below(&word))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, KeyError> {
        let (word, content) = self.content()?;
        content.deserialize_seq(visitor).map_err(|error| error.below(&word))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, KeyError> {
        let (word, content) = self.content()?;
        content.deserialize_map(visitor).map_err(|error| error.below(&word))
    }
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
        #[serde(default)]
        items: Vec<Inner>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Kind {
        #[default]
        Plain,
        Deep {
            floor: f64,
        },
        Sites(Inner),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        on: bool,
    }

    fn mistakes(text: &str) -> Vec<(String, Mistake)> {
        let errors = read::<Outer>(text.parse().unwrap()).err().unwrap_or_default();
        errors.into_iter().map(|error| (error.path.join("."), error.mistake)).collect()
    }

    #[test]
    fn a_correct_table_has_no_mistakes() {
        assert_eq!(mistakes("count = 1\nshare = 2\nkind = { deep = { floor = 1 } }\n[inner]\non = true\n"), []);
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_their_paths() {
        let found = mistakes("count = -1\nshaer = 2\nkind = { deep = { flor = 1, floor = 2 } }\n[inner]\non = 1\n");
        let paths: Vec<&str> = found.iter().map(|found| found.0.as_str()).collect();
        assert_eq!(paths.len(), 4, "{found:?}");
        for path in ["count", "shaer", "kind.deep.flor", "inner.on"] {
            assert!(paths.contains(&path), "{path} in {found:?}");
        }
    }

    #[test]
    fn a_missing_key_is_reported_with_the_path_of_its_table() {
        let missing = |key: &str| Mistake::MissingKey(key.into());
        assert_eq!(mistakes(""), [(String::new(), missing("count"))]);
        assert_eq!(mistakes("count = 1\ninner = {}\n"), [("inner".into(), missing("on"))]);
        let unknown = Mistake::UnknownKey { known: vec!["floor".into()] };
        let both = [("kind.deep.flor".into(), unknown), ("kind.deep".into(), missing("floor"))];
        assert_eq!(mistakes("count = 1\nkind = { deep = { flor = 1 } }\n"), both);
    }

    #[test]
    fn mistakes_in_lists_have_a_position_and_hide_no_others() {
        let found = mistakes("count = -1\nitems = [{ on = true }, { no = 1 }]\nzzz = 1\n");
        let paths: Vec<&str> = found.iter().map(|found| found.0.as_str()).collect();
        assert_eq!(paths, ["count", "items.1.no", "zzz"], "{found:?}");
        let found = mistakes("count = 1\ninner = [true]\n");
        let form = Mistake::WrongForm { found: "a list".into(), expected: "a table".into() };
        assert_eq!(found, [("inner".into(), form)]);
        let found = mistakes("count = 5000000000\n");
        assert_eq!(found, [("count".into(), Mistake::Invalid("must be at most 4294967295, not 5000000000".into()))]);
    }

    #[test]
    fn a_removed_key_causes_no_further_mistake() {
        let found = mistakes("count = \"x\"\n");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn values_of_the_wrong_kind_are_named_in_plain_words() {
        for (text, path, sentence) in [
            ("count = \"x\"", "count", "must be a whole number, 0 or larger, not \"x\""),
            ("count = -3", "count", "must be a whole number, 0 or larger, not -3"),
            ("count = 1\nshare = [1]", "share", "must be a number, not a list"),
            ("count = 1\nkind = { plain = 1 }", "kind", "\"plain\" has no settings: write \"plain\""),
        ] {
            assert_eq!(mistakes(text), [(path.to_owned(), Mistake::Invalid(sentence.into()))], "{text}");
        }
        let form = |found: &str, expected: &str| Mistake::WrongForm { found: found.into(), expected: expected.into() };
        assert_eq!(mistakes("count = 1\ninner = 3"), [("inner".into(), form("3", "a table"))]);
        assert_eq!(mistakes("count = 1\nkind = \"sites\""), [("kind".into(), form("\"sites\"", "a table: { sites = ... }"))]);
        let known: Vec<String> = vec!["plain".into(), "deep".into(), "sites".into()];
        for found in ["{}", "7", "{ depe = 1 }", "{ deep = { floor = 1 }, plain = 2 }"] {
            let form = Mistake::WrongForm { found: found.into(), expected: "one of plain, deep, sites".into() };
            assert_eq!(mistakes(&format!("count = 1\nkind = {found}")), [("kind".into(), form)], "{found}");
        }
        let word = Mistake::UnknownWord { found: "plian".into(), known };
        assert_eq!(mistakes("count = 1\nkind = \"plian\"\n"), [("kind".into(), word)]);
    }
}
