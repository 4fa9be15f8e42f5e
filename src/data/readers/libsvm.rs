//! Reads LIBSVM files: one row per line, with its label and its nonzero features as `index:value`.
//!
//! Indices count from 1 and ascend within a line. Blank lines and comments (from `#`) are skipped. Only one line is in memory.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::lines::{lines, quoted};
use crate::data::readers::source::Source;
use std::io::BufRead;
use std::path::Path;

/// The maximum number of features of a sparse dataset. A larger index is an error.
pub const MAX_FEATURES: u32 = 1 << 31;
/// How many bytes at the beginning of a file are used to detect its format.
const DETECTION_BYTES: u64 = 1 << 16;

/// A row of a LIBSVM file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LibsvmRow<'a> {
    /// The line, from 1.
    pub line: u64,
    /// The label; a number is without its leading `+`.
    pub label: &'a str,
    /// The columns of the nonzero values, from 0 and ascending.
    pub columns: &'a [u32],
    /// The values: finite and not zero.
    pub values: &'a [f64],
    /// The largest index in the row, from 1, including indices of zeros; 0 for a row without features.
    pub largest_index: u32,
}

/// The largest allowed index, and the reason for this limit.
#[derive(Clone, Copy, Debug)]
pub struct IndexLimit<'a> {
    /// The largest index.
    pub max: u32,
    /// What the limit is, for the error message.
    pub description: &'a str,
}

impl IndexLimit<'_> {
    /// The limit of all datasets, [`MAX_FEATURES`].
    pub const ANY: Self = Self { max: MAX_FEATURES, description: "the most features that a dataset may have" };
}

/// Whether a file, plain or gzip, begins with a label and `index:value` pairs.
///
/// # Errors
/// If the file cannot be read or is empty.
pub fn is_libsvm(path: &Path) -> Result<bool> {
    let head = Source::head(path, DETECTION_BYTES)?;
    // The last token may be cut off, unless the file ends here; the first line of data with features decides.
    let whole = (head.len() as u64) < DETECTION_BYTES;
    for line in head.split(|&byte| byte == b'\n') {
        let mut tokens = without_comment(line).split(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
        let (Some(label), Some(pair)) = (tokens.next(), tokens.next()) else { continue };
        let cut = !whole && pair.as_ptr_range().end == head.as_ptr_range().end;
        let is_pair = |pair: &[u8]| {
            let (index, value) = pair.split_at(pair.iter().position(|&byte| byte == b':').unwrap_or(pair.len()));
            let value = value.get(1..).and_then(|value| std::str::from_utf8(value).ok());
            let number = value.is_some_and(|value| value.parse::<f64>().is_ok() || cut);
            (index == b"qid" || (!index.is_empty() && index.iter().all(u8::is_ascii_digit))) && number
        };
        return Ok(!label.contains(&b':') && is_pair(pair));
    }
    Ok(false)
}

/// Calls `each` with every row.
///
/// # Errors
/// If the text cannot be read, has no rows, or a line is not a row; and those of `each`.
pub fn read_libsvm(source: Source<'_>, limit: IndexLimit, mut each: impl FnMut(LibsvmRow) -> Result<()>) -> Result<()> {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut rows = 0_u64;
    let Source { path, reader, .. } = source;
    let path = &path;
    each_row(reader, path, |line, bytes| {
        let wrong = |what: String| DataError::content(path, Place::Line(line), what);
        let (label, largest_index) = parse_row(bytes, limit, &mut columns, &mut values).map_err(wrong)?;
        rows += 1;
        each(LibsvmRow { line, label, columns: &columns, values: &values, largest_index })
    })?;
    if rows == 0 { Err(DataError::content(path, Place::File, "the file has no rows")) } else { Ok(()) }
}

fn without_comment(line: &[u8]) -> &[u8] {
    // Most lines have no comment, and `contains` is much faster than `split`.
    let line = if line.contains(&b'#') { line.split(|&byte| byte == b'#').next().unwrap_or(line) } else { line };
    line.trim_ascii()
}

/// Calls `each` with every line that is neither blank nor a comment, and with its number from 1.
fn each_row(reader: impl BufRead, path: &Path, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    lines(reader, path, |line, bytes| {
        let row = without_comment(bytes);
        if row.is_empty() { Ok(()) } else { each(line, row) }
    })
}

/// Removes the next token, and the blanks before it.
fn next_token<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (token, later) = text.split_at(end);
    *rest = later;
    token
}

/// Parses a row: returns its label and largest index, and replaces the contents of `columns` and `values`.
fn parse_row<'a>(
    mut rest: &'a [u8],
    limit: IndexLimit,
    columns: &mut Vec<u32>,
    values: &mut Vec<f64>,
) -> std::result::Result<(&'a str, u32), String> {
    columns.clear();
    values.clear();
    let label = parse_label(next_token(&mut rest))?;
    let mut last = 0_u32;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok((label, last));
        }
        let (index, value) = match parse_plain_pair(rest) {
            Some((index, value, length)) if (1..=limit.max).contains(&index) => {
                rest = &rest[length..];
                (index, value)
            }
            _ => parse_any_pair(next_token(&mut rest), limit)?,
        };
        if index <= last {
            let how = if index == last { "comes twice" } else { "comes after a larger one" };
            return Err(format!("index {index} {how} ({last} before it): indices must ascend within a line"));
        }
        last = index;
        // Zeros are not stored.
        if value != 0.0 {
            columns.push(index - 1);
            values.push(value);
        }
    }
}

/// Parses the usual form of a pair: up to nine digits, a colon and a decimal number. Returns index, value and length.
#[inline]
fn parse_plain_pair(text: &[u8]) -> Option<(u32, f64, usize)> {
    let (mut index, mut at) = (0_u32, 0);
    while let Some(digit) = digit(text, at) {
        if at == 9 {
            return None;
        }
        index = index * 10 + u32::from(digit);
        at += 1;
    }
    if at == 0 || text.get(at) != Some(&b':') {
        return None;
    }
    let (value, length) = parse_plain_number(&text[at + 1..])?;
    let end = at + 1 + length;
    text.get(end).is_none_or(u8::is_ascii_whitespace).then_some((index, value, end))
}

#[inline]
fn digit(text: &[u8], at: usize) -> Option<u8> {
    text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9)
}

/// 10^k, all exact in double precision.
const POWERS: [f64; 20] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19];
/// The number of digits that always fit into 64 bits.
const MAX_DIGITS: usize = 19;

/// Parses the number at the start of the text; returns it and its length. `None` unless it has no exponent and its digits are an integer
/// up to 2^53. This integer and the power of ten are exact in double precision, so their quotient is correctly rounded (Clinger 1990).
#[inline]
fn parse_plain_number(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let (mut mantissa, mut digits, mut decimals) = (0_u64, 0, 0);
    while let Some(digit) = digit(text, at) {
        if digits == MAX_DIGITS {
            return None;
        }
        (mantissa, digits, at) = (mantissa * 10 + u64::from(digit), digits + 1, at + 1);
    }
    if text.get(at) == Some(&b'.') {
        at += 1;
        while let Some(digit) = digit(text, at) {
            if digits == MAX_DIGITS {
                return None;
            }
            (mantissa, digits, at) = (mantissa * 10 + u64::from(digit), digits + 1, at + 1);
            decimals += 1;
        }
    }
    if digits == 0 || mantissa > 1 << 53 {
        return None;
    }
    let value = mantissa as f64 / POWERS[decimals];
    Some((if negative { -value } else { value }, at))
}

/// Parses a pair in any notation.
fn parse_any_pair(pair: &[u8], limit: IndexLimit) -> std::result::Result<(u32, f64), String> {
    let (index, at) = parse_leading_digits(pair);
    if at == 0 || pair.get(at) != Some(&b':') {
        return Err(if pair.starts_with(b"qid:") {
            "has a qid: rankings are not supported; remove the qid: pairs to read the labels as they are".into()
        } else {
            format!("{} is not index:value, such as 3:0.5", quoted(pair))
        });
    }
    let index = match index.and_then(|index| u32::try_from(index).ok()) {
        Some(0) => return Err(format!("{}: indices count from 1", quoted(pair))),
        Some(index) if index <= limit.max => index,
        _ => return Err(format!("{}: the index is above {}, {}", quoted(pair), limit.max, limit.description)),
    };
    let value = parse_value(&pair[at + 1..]).map_err(|what| format!("{}: the value {what}", quoted(pair)))?;
    Ok((index, value))
}

/// Checks a label.
fn parse_label(token: &[u8]) -> std::result::Result<&str, String> {
    let label = std::str::from_utf8(token).map_err(|_| format!("the label {} is not text (UTF-8)", quoted(token)))?;
    if label.contains(':') {
        return Err(format!("begins with {}, not with a label", quoted(token)));
    }
    if label.contains(',') {
        return Err(format!(
            "{} are several labels: a row has one. `mpibayes import table` imports tables with commas",
            quoted(token)
        ));
    }
    Ok(match label.strip_prefix('+') {
        Some(number) if number.starts_with(|first: char| first.is_ascii_digit() || first == '.') => number,
        _ => label,
    })
}

/// The value of the leading digits, `None` if too large, and the number of digits.
fn parse_leading_digits(text: &[u8]) -> (Option<u64>, usize) {
    let mut number = Some(0_u64);
    let mut digits = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.and_then(|number| number.checked_mul(10)?.checked_add(u64::from(digit)));
        digits += 1;
    }
    (number, digits)
}

fn parse_value(text: &[u8]) -> std::result::Result<f64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(number) if number.is_infinite() && text.iter().any(u8::is_ascii_digit) => {
            Err("is beyond double precision: scale the column before importing".into())
        }
        Some(_) => Err("is not a finite number: remove the pair or fill in a value".into()),
        None if text.is_empty() => Err("is missing".into()),
        None => Err("is not a number".into()),
    }
}

/// Counts the rows without parsing them.
pub(crate) fn count_rows(path: &Path) -> Result<usize> {
    let mut rows = 0;
    each_row(Source::open(path)?.reader, path, |_, _| {
        rows += 1;
        Ok(())
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use rand::RngExt;

    #[test]
    fn values_are_those_of_the_standard_library() {
        let mut stream = Seed(1).stream(Who::Run, 0, Purpose::Synthetic);
        let mut texts: Vec<String> =
            ["0", "-0", "1", "1.", ".5", "+3", "-7.25", "1e3", "1E-3", "123456789012345", "0.000000000000001"]
                .into_iter()
                .chain(["1234567890123456", "0.1234567890123456", "9007199254740993", "1e308", "5e-324", "1e-400", "00012.50"])
                .map(str::to_owned)
                .collect();
        for _ in 0..20_000 {
            let (digits, point) = (stream.random_range(1..25), stream.random_range(0..25));
            let mut text: String = (0..digits).map(|_| char::from(b'0' + stream.random_range(0..10_u8))).collect();
            if point <= digits {
                text.insert(point, '.');
            }
            if text != "." {
                texts.push(if stream.random() { format!("-{text}") } else { text });
            }
        }
        for text in texts {
            let (mut columns, mut values) = (Vec::new(), Vec::new());
            let line = format!("1 7:{text} 9:1");
            assert_eq!(parse_row(line.as_bytes(), IndexLimit::ANY, &mut columns, &mut values).unwrap(), ("1", 9));
            let kept = if values.len() == 2 { values[0] } else { 0.0 };
            assert_eq!(kept, text.parse::<f64>().unwrap(), "{text}");
        }
        for (text, says) in [
            ("", "missing"),
            ("x", "not a number"),
            ("1.2.3", "not a number"),
            ("1e999", "beyond double"),
            ("nan", "finite"),
            ("-inf", "finite"),
        ] {
            assert!(parse_value(text.as_bytes()).unwrap_err().contains(says), "{text}");
        }
    }
}
