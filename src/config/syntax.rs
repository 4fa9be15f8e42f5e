//! What is wrong with a line that is not TOML, and how to write it instead.

use super::overrides::{TOO_LARGE, is_too_large};
use std::borrow::Cow;

/// What is said of a number with a decimal comma or with separated thousands.
const NUMBER_WITH_COMMA: &str = "numbers have a point and no commas: 0.5, 1000";

/// Quotes that TOML does not know.
const QUOTES: [char; 5] = ['“', '”', '„', '‘', '’'];

/// What a line has after its `=`.
fn value_of(line: &str) -> &str {
    line.split_once('=').map_or(line, |(_, value)| value).trim()
}

/// A sentence on the line of which the parser said this.
pub(super) fn explain(line: &str, parser: &str) -> String {
    let sentence = sentence(without_comment(line), parser).replace('\n', " ");
    if line.is_empty() { sentence } else { format!("{sentence} (the line reads: {line})") }
}

/// What to say of a text without quotes.
fn quotes_are_missing(value: &str) -> String {
    let text = value.trim_end_matches(',');
    // Only single quotes keep a backslash.
    let quote = if text.contains('\\') { '\'' } else { '"' };
    format!("texts have quotes: {quote}{text}{quote}")
}

fn sentence<'a>(line: &str, parser: &'a str) -> Cow<'a, str> {
    let value = value_of(line);
    let says = |words: &str| parser.contains(words);
    if line.starts_with("//") || value.contains(" //") && !value.contains(['"', '\'']) {
        return "comments begin with #, not //".into();
    }
    if has_number_with_comma(value) {
        return NUMBER_WITH_COMMA.into();
    }
    // The line may be the one after an array or a table that was not closed.
    if says("missing comma") || says("must be quoted") && value.starts_with(['[', '{']) && entries(value).any(are_numbers) {
        return "a comma is missing before this, or the array or table above has no `]` or `}` at its end".into();
    }
    if says("inline table") && line.starts_with('[') {
        return "the table above has no `}` at its end".into();
    }
    if says("array") || says("inline table") {
        return parser.into();
    }
    let known = if line.ends_with('=') && value.is_empty() {
        "there is no value after `=`"
    } else if is_too_large(value) {
        TOO_LARGE
    } else if says("duplicate key") && line.starts_with('[') {
        "this is given twice: keep one, with all keys of both if it is a table"
    } else if says("duplicate key") {
        "this is given twice: keep one, with all keys of both if it is a table. If they belong to different tables, the name of one, such as \
         [method], is missing between them"
    } else if says("key with no value") {
        "a key and its value are written `key = value`"
    } else if says("unclosed table") && !line.contains(']') {
        "the name of a table ends with `]`"
    } else if says("leading zero") {
        "a number has no 0 before its other digits: write 1, not 01"
    } else if value.starts_with(QUOTES) {
        return format!("texts have straight quotes: \"{}\"", value.trim_matches(QUOTES)).into();
    } else if value.starts_with(['"', '\'']) && (says("string") || says("escaped")) {
        "the text has no quote at its end, or a `\\` in it, which is written `\\\\`"
    } else if ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word) && value != *word) {
        "write true or false in lower case"
    } else if has_switch(value) {
        "write true or false, not yes, no, on or off"
    } else if is_number_with_comma(value) {
        NUMBER_WITH_COMMA
    } else if says("mantissa") && value.parse::<f64>().is_ok() {
        "a number has digits on both sides of its point: 0.5"
    } else if has_broken_number(value)
        && (says("must be quoted") || says("invalid float") || says("overflow") || value.contains(['%', ';']))
    {
        "this is no number: a number has only digits, a point and an exponent, a list has commas, and texts have quotes: 0.95, [0.7, 0.3], \
         \"hmc\""
    } else if value.starts_with(|first: char| first.is_ascii_digit()) && value.contains(' ') {
        "there is more than one value"
    } else if is_text(value) {
        return quotes_are_missing(value).into();
    } else {
        parser
    };
    known.into()
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

/// Whether such a number is the value of a key of an inline table: `{ normal = 1,5 }`.
fn has_number_with_comma(value: &str) -> bool {
    let parts: Vec<&str> = value.split(',').collect();
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    value.starts_with('{')
        && parts.windows(2).any(|pair| {
            let first = pair[0].rsplit_once('=').map(|(_, first)| first);
            first.is_some_and(is_number) && is_number(pair[1].trim_end_matches([' ', '}']))
        })
}

/// Whether a value, or that of a key of an inline table, is another word for true or false.
fn has_switch(value: &str) -> bool {
    value.split(['{', ',', '}']).any(|part| {
        let word = part.rsplit('=').next().unwrap_or(part).trim();
        ["yes", "no", "on", "off"].iter().any(|switch| word.eq_ignore_ascii_case(switch))
    })
}

/// The entries of a value: itself, the values of an inline table, or the entries of a list.
fn entries(value: &str) -> impl Iterator<Item = &str> {
    value.split(['{', '[', ',']).map(|part| part.rsplit('=').next().unwrap_or(part).trim_matches([' ', ']', '}']))
}

/// Whether this is more than one number, with blanks between, as `12 6` in `[4, 12 6]`.
fn are_numbers(entry: &str) -> bool {
    entry.contains(' ') && entry.split_whitespace().all(|word| word.parse::<f64>().is_ok())
}

/// Whether an entry begins like a number but is none.
fn has_broken_number(value: &str) -> bool {
    entries(value).any(|entry| {
        let number = entry.trim_start_matches(['+', '-']);
        number.starts_with(|first: char| first.is_ascii_digit()) && number.parse::<f64>().is_err() && !are_numbers(number)
    })
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
            (
                "a = 1\na = 2",
                "this is given twice: keep one, with all keys of both if it is a table. If they belong to different tables",
            ),
            ("[model]\n[model]", "this is given twice: keep one, with all keys of both if it is a table (the line reads"),
            ("agents 3", "a key and its value are written `key = value`"),
            ("[data", "the name of a table ends with `]`"),
            ("draws = 01", "a number has no 0 before its other digits"),
            ("name = “svgd”", "texts have straight quotes: \"svgd\""),
            ("draws = 200 // a comment", "comments begin with #"),
            ("// a comment", "comments begin with #"),
            ("draws = 2_00k", "this is no number"),
            ("name = \"hmc", "the text has no quote at its end"),
            ("file = \"C:\\data\"", "the text has no quote at its end, or a `\\` in it"),
            ("bias = True", "write true or false in lower case"),
            ("step = 0,5", "numbers have a point and no commas"),
            ("rounds = 1,000 # many", "numbers have a point and no commas"),
            ("prior = { normal = 1,5 }", NUMBER_WITH_COMMA),
            ("prior = { normal = 1,000 } # wide", NUMBER_WITH_COMMA),
            ("partition = { dirichlet = 0,5, least = 2 }", NUMBER_WITH_COMMA),
            ("intercept = yes", "write true or false, not yes"),
            ("intercept = no", "write true or false, not yes"),
            ("intercept = On # always", "write true or false, not yes"),
            ("intercept = off", "write true or false, not yes"),
            ("method = { name = \"dsvgd\", whitened = yes }", "write true or false, not yes"),
            ("acceptance = 95%", "this is no number"),
            ("acceptance = 95 %", "this is no number"),
            ("chains = 4;", "this is no number"),
            ("center = -4;", "this is no number"),
            ("sizes = [0.7; 0.3]", "this is no number"),
            ("sizes = [ 70%, 30% ]", "this is no number"),
            ("method = { acceptance = 95% }", "this is no number"),
            ("file = 2024/rows.h5", "this is no number"),
            ("step = .5 # it’s small", "a number has digits on both sides of its point"),
            ("agents = 3 4", "there is more than one value"),
            ("file = data/abc.h5", "texts have quotes"),
            ("file = ./abc.h5", "texts have quotes: \"./abc.h5\""),
            ("file = a\\b.h5", "texts have quotes: 'a\\b.h5'"),
            ("file = train.h5 # rows", "texts have quotes"),
            ("name = network", "texts have quotes: \"network\""),
            (
                "trajectory = [4, 12\ncorrection = true",
                "a comma is missing before this, or the array or table above has no `]` or `}`",
            ),
            ("prior = { normal = 1.5\nintercept = true", "a comma is missing before this"),
            ("prior = { normal = 1.5\n[method]\nname = \"hmc\"", "the table above has no `}`"),
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
