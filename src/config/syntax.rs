//! What is wrong with a line that is not TOML, and how to write it instead.

use super::overrides::{TOO_LARGE, is_too_large};

/// A sentence on this line, of which the parser said this.
pub(super) fn explain(line: &str, parser: &str) -> String {
    let value = line.split_once('=').map_or(line, |(_, value)| value).trim();
    let says = |words: &str| parser.contains(words);
    let sentence = if line.ends_with('=') && value.is_empty() {
        "there is no value after `=`"
    } else if is_too_large(value) {
        TOO_LARGE
    } else if says("duplicate key") {
        "this key or table was given before: keep one of the two"
    } else if says("key with no value") {
        "a key and its value are written `key = value`"
    } else if says("unclosed table") {
        "the name of a table ends with `]`"
    } else if says("leading zero") {
        "a number does not begin with 0"
    } else if value.contains(['“', '”', '„', '‘', '’']) {
        "texts have straight quotes: \"hmc\""
    } else if value.starts_with(['"', '\'']) && says("invalid") && says("string") {
        "the text has no quote at its end, or a `\\` in it, which is written `\\\\`"
    } else if ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)) {
        "write true or false in lower case"
    } else if is_number_with_comma(value) {
        "numbers have a point and no commas: 0.5, 1000"
    } else if says("mantissa") {
        "a number has digits on both sides of its point: 0.5"
    } else if value.split_whitespace().count() > 1 && value.starts_with(|first: char| first.is_ascii_digit()) {
        "there is more than one value"
    } else if value.starts_with(|first: char| first.is_alphabetic() || "/.~_".contains(first)) && says("must be quoted") {
        "texts have quotes: \"hmc\""
    } else {
        parser
    };
    let sentence = sentence.replace('\n', " ");
    if line.is_empty() { sentence } else { format!("{sentence} (the line reads: {line})") }
}

/// Whether this is a number that would have a point or nothing instead of its commas: 0,5 or 1,000.
fn is_number_with_comma(value: &str) -> bool {
    let value = value.split('#').next().unwrap_or(value).trim();
    value.contains(',') && value.split(',').all(|digits| digits.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let message = text.parse::<toml::Table>().err().map_or_else(String::new, |error| error.message().to_owned());
        explain(text.lines().last().unwrap_or_default(), &message)
    }

    #[test]
    fn common_mistakes_are_explained() {
        for (text, sentence) in [
            ("step =", "there is no value after `=`"),
            ("agents = 99999999999999999999", TOO_LARGE),
            ("a = 1\na = 2", "this key or table was given before"),
            ("[model]\n[model]", "this key or table was given before"),
            ("agents 3", "a key and its value are written `key = value`"),
            ("[data", "the name of a table ends with `]`"),
            ("draws = 01", "a number does not begin with 0"),
            ("name = “hmc”", "texts have straight quotes"),
            ("name = \"hmc", "the text has no quote at its end"),
            ("file = \"C:\\data\"", "or a `\\` in it"),
            ("bias = True", "write true or false in lower case"),
            ("step = 0,5", "numbers have a point and no commas"),
            ("rounds = 1,000 # many", "numbers have a point and no commas"),
            ("step = .5", "a number has digits on both sides of its point"),
            ("agents = 3 4", "there is more than one value"),
            ("file = data/abc.h5", "texts have quotes"),
        ] {
            assert!(said(text).starts_with(sentence), "{text}: {}", said(text));
        }
        assert_eq!(said("draws = 1__0"), "`_` may only go between digits, expected nothing (the line reads: draws = 1__0)");
        assert_eq!(explain("", "it ends too early"), "it ends too early");
    }
}
