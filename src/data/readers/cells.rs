//! The values of a row: numbers, dates, the numbers of texts, and the label.

use crate::data::error::NOT_UTF8;
use crate::data::readers::columns::Role;
use crate::data::readers::levels::Levels;
use arrow_array::types::Date32Type;
use arrow_cast::parse::{Parser, string_to_timestamp_nanos};

/// Fields that mean a missing value in all tables.
const MISSING: [&str; 9] = ["", "na", "n/a", "nan", "null", "?", ".", "<na>", "#n/a"];

/// The length of the longest of them.
const LONGEST_MISSING: usize = 4;

/// How the values of a table are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Notation {
    /// Further fields that mean a missing value, such as `-999` or `unknown`.
    missing_texts: Vec<String>,
    /// Those that are numbers, which may be written in several ways.
    missing_numbers: Vec<f64>,
    /// Whether numbers have a decimal comma, as in 2,5.
    pub decimal_comma: bool,
}

impl Notation {
    pub(crate) fn new(missing_texts: &[String], decimal_comma: bool) -> Self {
        let missing_numbers = missing_texts.iter().filter_map(|text| text.parse().ok()).collect();
        Self { missing_texts: missing_texts.to_vec(), missing_numbers, decimal_comma }
    }

    /// Whether a field stands for a value that is missing.
    pub(crate) fn means_missing(&self, field: &[u8]) -> bool {
        is_missing(field) || self.missing_texts.iter().any(|text| text.as_bytes() == field)
    }

    /// Parses a field as a finite number. The error says what is wrong with it.
    fn parse_number(&self, field: &str) -> std::result::Result<f64, String> {
        if !self.decimal_comma {
            return parse_number(field);
        }
        if field.contains('.') && field.parse::<f64>().is_ok() {
            return Err(format!("{field:?} has a point: numbers with a decimal comma have none, also not between thousands"));
        }
        parse_number(&field.replacen(',', ".", 1)).map_err(|what| if field.contains(',') { not_a_number(field) } else { what })
    }
}

/// Where the values of a record go.
pub(crate) struct Cells<'a> {
    pub features: std::slice::IterMut<'a, f64>,
    pub label: &'a mut Vec<u8>,
    pub levels: &'a mut [Levels],
    pub notation: &'a Notation,
    pub allow_missing: bool,
}

impl Cells<'_> {
    /// Stores a number; `None` if it stands for a missing value, which is not allowed.
    pub(crate) fn number(&mut self, value: f64) -> Option<()> {
        let is_missing = !self.notation.missing_numbers.is_empty() && self.notation.missing_numbers.contains(&value);
        let value = if !is_missing { Some(value) } else { self.allow_missing.then_some(f64::NAN) };
        self.store(value?)
    }

    /// Stores what is no number of the table: the number of a text, or the days of a date.
    pub(crate) fn store(&mut self, value: f64) -> Option<()> {
        *self.features.next()? = value;
        Some(())
    }

    /// Stores a field; `None` if it cannot be.
    pub(crate) fn field(&mut self, content: &[u8], role: Role) -> Option<()> {
        match role {
            role if role.is_feature() && self.allow_missing && self.notation.means_missing(content) => self.number(f64::NAN),
            Role::Feature => self.number(truth(content).or_else(|| self.notation.parse_number(text(content).ok()?).ok())?),
            Role::Date => self.store(parse_date(text(content).ok()?)?),
            Role::Text(_) if self.notation.means_missing(content) => None,
            Role::Text(levels) => {
                let code = self.levels.get_mut(levels)?.code(content).ok()?;
                self.store(f64::from(code))
            }
            // Labels of rows have no other form of a missing one.
            Role::Label if self.notation.means_missing(content) && !is_missing(content) => Some(()),
            Role::Label => {
                match text(content).ok().filter(|_| self.notation.decimal_comma) {
                    // Not a number in this notation.
                    Some(content) if content.contains('.') && content.parse::<f64>().is_ok() => return None,
                    Some(content) if content.contains(',') && self.notation.parse_number(content).is_ok() => {
                        self.label.extend_from_slice(content.replacen(',', ".", 1).as_bytes());
                    }
                    _ => self.label.extend_from_slice(content),
                }
                Some(())
            }
            Role::Dropped => Some(()),
        }
    }
}

/// Whether a field stands for a value that is missing.
pub fn is_missing(field: &[u8]) -> bool {
    field.len() <= LONGEST_MISSING && MISSING.iter().any(|missing| field.eq_ignore_ascii_case(missing.as_bytes()))
}

/// 1 for true and 0 for false.
fn truth(field: &[u8]) -> Option<f64> {
    let is = |word: &str| field.eq_ignore_ascii_case(word.as_bytes());
    if is("true") { Some(1.0) } else { is("false").then_some(0.0) }
}

/// The days from 1970 to a date such as `2024-02-29`, or a time such as `2024-02-29 13:05`, as ISO 8601 has them.
pub(crate) fn parse_date(field: &str) -> Option<f64> {
    const NANOSECONDS_A_DAY: f64 = 86_400e9;
    let day = Date32Type::parse(field).filter(|_| field.len() <= "2024-02-29".len()).map(f64::from);
    // Times without seconds have one colon.
    let whole = if field.matches(':').count() == 1 { format!("{field}:00") } else { field.to_owned() };
    day.or_else(|| string_to_timestamp_nanos(&whole).ok().map(|time| time as f64 / NANOSECONDS_A_DAY))
}

/// What a message may propose to somebody who imports a table.
pub(crate) struct ImportHint<'a> {
    /// How the column is named in options.
    pub column: &'a str,
    /// Whether a text among numbers may stand for a missing value.
    pub may_be_missing: bool,
}

/// What is wrong with a field that [`Cells::field`] has refused.
pub(crate) fn mistake(field: &[u8], role: Role, levels: &[Levels], notation: &Notation, hint: Option<ImportHint<'_>>) -> String {
    let is_missing = notation.means_missing(field);
    let field = match text(field) {
        Ok(field) => field,
        Err(what) => return what,
    };
    match (role, hint) {
        (Role::Date, Some(_)) if is_missing => format!("{field:?} looks missing: leave such rows out with --missing drop"),
        (Role::Text(_), Some(_)) if is_missing => format!(
            "{field:?} looks missing: leave such rows out with --missing drop, or make it a level of its own with --missing mean-and-flag \
             if the column is one of --categorical"
        ),
        (_, Some(_)) if is_missing => format!(
            "{field:?} looks missing: leave such rows out with --missing drop, or fill them in with --missing mean-and-flag"
        ),
        (Role::Text(_) | Role::Date, None) if is_missing => format!("{field:?} looks missing"),
        (Role::Text(index), _) => levels[index].clone().code(field.as_bytes()).err().unwrap_or_default(),
        (Role::Date, _) => format!("{:?} is not a date: write 2024-02-29 for February 29, 2024", shortened(field)),
        (Role::Feature | Role::Label | Role::Dropped, hint) => match hint.filter(|_| is_word(field)) {
            Some(hint) => what_a_text_may_be(field, &hint),
            None => notation.parse_number(field).err().unwrap_or_default(),
        },
    }
}

/// Whether a field is a text that is no number in any notation.
pub(crate) fn is_word(field: &str) -> bool {
    let is_number = field.parse::<f64>().is_ok() || field.replacen(',', ".", 1).parse::<f64>().is_ok();
    !field.is_empty() && !is_number && !separates_thousands(field)
}

/// What to type if a column of numbers holds a text.
fn what_a_text_may_be(field: &str, ImportHint { column, may_be_missing }: &ImportHint<'_>) -> String {
    let shown = shortened(field);
    let missing = match may_be_missing {
        true => format!("if it stands for a missing value, say so with --na {shown:?}; else "),
        false => String::new(),
    };
    let date = match parse_date(field) {
        Some(_) => format!("read this column as dates with --date {column}, "),
        None if looks_like_date(field) => "if it is a date, write it as 2024-02-29; else ".into(),
        None if looks_like_amount(field) => "if it is a number with a unit, write the number alone; else ".into(),
        None => String::new(),
    };
    format!(
        "{shown:?} is not a number: {missing}{date}make indicators of this column with --categorical {column}, or effects \
         of groups with --group {column}, or leave it out with --drop {column}"
    )
}

/// Whether a field is three numbers with points, slashes or hyphens between, as in 31/12/2024.
fn looks_like_date(field: &str) -> bool {
    let is_number = |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    ['.', '/', '-'].iter().any(|separator| field.split(*separator).count() == 3 && field.split(*separator).all(is_number))
}

/// Whether a field is a number with a sign or a word before or after it, as in $100 or 30 kg.
fn looks_like_amount(field: &str) -> bool {
    let unit = |character: char| !character.is_ascii_digit() && !"+-.".contains(character);
    let number = field.trim_start_matches(unit).trim_end_matches(unit);
    number.parse::<f64>().is_ok() && (field.contains(' ') || field.contains(['$', '€', '£', '%']))
}

/// Parses the finite number at the start of these bytes; returns it and its length. The result has the same bits as that of `str::parse`,
/// which would have to know the length before.
pub(crate) fn parse_leading_number(bytes: &[u8]) -> Option<(f64, usize)> {
    fast_float2::parse_partial::<f64, _>(bytes).ok().filter(|(value, _)| value.is_finite())
}

/// Parses a field as a finite number. The error says what is wrong with it.
pub(crate) fn parse_number(field: &str) -> std::result::Result<f64, String> {
    match field.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(format!("{field:?} is not a finite number: remove the row or fill in a value")),
        Err(_) if field.is_empty() => Err("is missing: remove the row or fill in a value".to_owned()),
        Err(_) if separates_thousands(field) => Err(format!(
            "{field:?} is not a number: if the comma separates thousands, remove it; if it is a decimal comma, say so with --decimal comma"
        )),
        Err(_) if field.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            Err(format!("{field:?} is not a number: if numbers have a decimal comma, say so with --decimal comma"))
        }
        Err(_) => Err(not_a_number(field)),
    }
}

/// Whether a number may have commas between thousands: 1,000 or 12,345,678.
fn separates_thousands(field: &str) -> bool {
    let mut groups = field.trim_start_matches(['+', '-']).split('.').next().unwrap_or_default().split(',');
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().unwrap_or_default();
    let others: Vec<&str> = groups.collect();
    let is_first = (1..=3).contains(&first.len()) && is_digits(first) && first != "0";
    is_first && !others.is_empty() && others.iter().all(|group| group.len() == 3 && is_digits(group))
}

fn not_a_number(field: &str) -> String {
    format!("{:?} is not a number: correct it, or write numbers in place of texts", shortened(field))
}

/// Shortens a field for a message.
pub(crate) fn shortened(field: &str) -> String {
    const MAX_SHOWN: usize = 40;
    match field.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &field[..end]),
        None => field.to_owned(),
    }
}

/// A field as text.
pub(crate) fn text(field: &[u8]) -> std::result::Result<&str, String> {
    std::str::from_utf8(field).map_err(|_| NOT_UTF8.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_may_be_is_said_first() {
        let hint = ImportHint { column: "x", may_be_missing: false };
        for (field, says) in [
            ("31/12/2024", "if it is a date, write it as 2024-02-29; else make"),
            ("1.2.24", "if it is a date"),
            ("2024-02-29", "read this column as dates with --date x"),
            ("30 kg", "if it is a number with a unit, write the number alone; else make"),
            ("$100", "if it is a number with a unit"),
            ("north", "is not a number: make indicators"),
            ("a/b/c", "is not a number: make indicators"),
        ] {
            let said = what_a_text_may_be(field, &hint);
            assert!(said.contains(says), "{said}");
        }
    }
}
