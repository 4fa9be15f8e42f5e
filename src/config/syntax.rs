//! What is wrong with a line that is not TOML, and how to write it instead.

use super::overrides::{TOO_LARGE, is_too_large};

/// A sentence on the line of which the parser said this.
pub(super) fn explain(line: &str, parser: &str) -> String {
    let sentence = sentence(without_comment(line), parser).replace('\n', " ");
    if line.is_empty() { sentence } else { format!("{sentence} (the line reads: {line})") }
}

fn sentence<'a>(line: &str, parser: &'a str) -> &'a str {
    let value = line.split_once('=').map_or(line, |(_, value)| value).trim();
    let says = |words: &str| parser.contains(words);
    if says("missing comma") {
        // The line may be the one after an array that was not closed.
        return "a comma is missing before this, or the array above has no `]` at its end";
    }
    if says("array") || says("inline table") {
        return parser;
    }
    if line.ends_with('=') && value.is_empty() {
        "there is no value after `=`"
    } else if is_too_large(value) {
        TOO_LARGE
    } else if says("duplicate key") {
        "this is given twice: keep one, with all keys of both if it is a table"
    } else if says("key with no value") {
        "a key and its value are written `key = value`"
    } else if says("unclosed table") && !line.contains(']') {
        "the name of a table ends with `]`"
    } else if says("leading zero") {
        "a number has no 0 before its other digits: write 1, not 01"
    } else if value.starts_with(['“', '”', '„', '‘', '’']) {
        "texts have straight quotes: \"hmc\""
    } else if value.starts_with(['"', '\'']) && says("invalid") && says("string") {
        "the text has no quote at its end, or a `\\` in it, which is written `\\\\`"
    } else if ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word) && value != *word) {
        "write true or false in lower case"
    } else if is_number_with_comma(value) {
        "numbers have a point and no commas: 0.5, 1000"
    } else if says("mantissa") && value.contains(|digit: char| digit.is_ascii_digit()) && is_number_without_digit(value) {
        "a number has digits on both sides of its point: 0.5"
    } else if value.starts_with(|first: char| first.is_ascii_digit()) && value.contains(' ') {
        "there is more than one value"
    } else if is_text(value) {
        "texts have quotes: \"hmc\""
    } else {
        parser
    }
}

/// The line up to a `#` that is not within quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let comment = line.char_indices().find(|&(_, character)| {
        match quote {
            Some(open) if open == character => quote = None,
            None if character == '"' || character == '\'' => quote = Some(character),
            _ => {}
        }
        character == '#' && quote.is_none()
    });
    line[..comment.map_or(line.len(), |(at, _)| at)].trim()
}

/// Whether this is a number that would have a point or nothing instead of its commas: 0,5 or 1,000.
fn is_number_with_comma(value: &str) -> bool {
    value.contains(',') && value.split(',').all(|digits| digits.parse::<f64>().is_ok())
}

/// Whether this is a number that lacks digits on one side of its point: .5 or 5.
fn is_number_without_digit(value: &str) -> bool {
    value.parse::<f64>().is_ok()
}

/// Whether this can only be meant as text: a word or a path.
fn is_text(value: &str) -> bool {
    let is_word =
        value.starts_with(|first: char| first.is_alphabetic() || "/.~_".contains(first)) && !value.contains(['"', '\'', '=']);
    is_word && value.parse::<f64>().is_err() && value != "true" && value != "false"
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What is said of a text, and of which of its lines, from 0.
    fn said(text: &str) -> (usize, String) {
        let error = text.parse::<toml::Table>().unwrap_err();
        let number = text[..error.span().unwrap().start].matches('\n').count();
        (number, explain(text.lines().nth(number).unwrap_or_default().trim(), error.message()))
    }

    #[test]
    fn common_mistakes_are_explained() {
        for (text, sentence) in [
            ("step =", "there is no value after `=`"),
            ("agents = 99999999999999999999", TOO_LARGE),
            ("a = 1\na = 2", "this is given twice"),
            ("[model]\n[model]", "this is given twice"),
            ("agents 3", "a key and its value are written `key = value`"),
            ("[data", "the name of a table ends with `]`"),
            ("draws = 01", "a number has no 0 before its other digits"),
            ("name = “hmc”", "texts have straight quotes"),
            ("name = \"hmc", "the text has no quote at its end"),
            ("file = \"C:\\data\"", "the text has no quote at its end, or a `\\` in it"),
            ("bias = True", "write true or false in lower case"),
            ("step = 0,5", "numbers have a point and no commas"),
            ("rounds = 1,000 # many", "numbers have a point and no commas"),
            ("step = .5 # it’s small", "a number has digits on both sides of its point"),
            ("agents = 3 4", "there is more than one value"),
            ("file = data/abc.h5", "texts have quotes"),
            ("file = ./abc.h5", "texts have quotes"),
            ("file = train.h5 # rows", "texts have quotes"),
            ("name = network", "texts have quotes"),
            ("trajectory = [4, 12\ncorrection = true", "a comma is missing before this, or the array above has no `]`"),
            ("a = [\n[0.1, 0.2]\n[0.3, 0.4]]", "a comma is missing before this"),
            ("a = [4, 12 6]", "a comma is missing before this"),
        ] {
            let (_, said) = said(text);
            assert!(said.starts_with(sentence), "{text}: {said}");
        }
        let (line, message) = said("a = 1\ndraws = 1__0 # many more");
        let expected = "`_` may only go between digits, expected nothing (the line reads: draws = 1__0 # many more)";
        assert_eq!((line, message.as_str()), (1, expected));
        assert!(said("[my data]\n").1.starts_with("unclosed table"), "the parser's own words, of a line that has its `]`");
        assert_eq!(explain("", "it ends too early"), "it ends too early");
    }
}
