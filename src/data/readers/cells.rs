//! The values of a row: numbers, dates, the numbers of texts, and the label.

use crate::data::readers::columns::Role;
use crate::data::readers::levels::Levels;
use arrow_array::types::Date32Type;
use arrow_cast::parse::{Parser, string_to_timestamp_nanos};

/// Fields that mean a missing value.
const MISSING: [&str; 6] = ["", "na", "n/a", "nan", "null", "?"];

/// The length of the longest of them.
const LONGEST_MISSING: usize = 4;

/// Where the values of a record go.
pub(crate) struct Cells<'a> {
    pub features: std::slice::IterMut<'a, f64>,
    pub label: &'a mut Vec<u8>,
    pub levels: &'a mut [Levels],
    pub allow_missing: bool,
}

impl Cells<'_> {
    /// Stores a number.
    pub(crate) fn number(&mut self, value: f64) -> Option<()> {
        *self.features.next()? = value;
        Some(())
    }

    /// Stores a field; `None` if it cannot be.
    pub(crate) fn field(&mut self, content: &[u8], role: Role) -> Option<()> {
        match role {
            role if role.is_feature() && self.allow_missing && is_missing(content) => self.number(f64::NAN),
            Role::Feature => self.number(parse_number(text(content).ok()?).ok()?),
            Role::Date => self.number(parse_date(text(content).ok()?)?),
            Role::Text(_) if is_missing(content) => None,
            Role::Text(levels) => {
                let code = self.levels.get_mut(levels)?.code(content).ok()?;
                self.number(f64::from(code))
            }
            Role::Label => {
                self.label.extend_from_slice(content);
                Some(())
            }
            Role::Dropped => Some(()),
        }
    }
}

/// Whether a field stands for a value that is missing.
pub(crate) fn is_missing(field: &[u8]) -> bool {
    field.len() <= LONGEST_MISSING && MISSING.iter().any(|missing| field.eq_ignore_ascii_case(missing.as_bytes()))
}

/// The days from 1970 to a date such as `2024-02-29`, or a time such as `2024-02-29 13:05`, as ISO 8601 has them.
pub(crate) fn parse_date(field: &str) -> Option<f64> {
    const NANOSECONDS_A_DAY: f64 = 86_400e9;
    let day = Date32Type::parse(field).filter(|_| field.len() <= "2024-02-29".len()).map(f64::from);
    // Times without seconds have one colon.
    let whole = if field.matches(':').count() == 1 { format!("{field}:00") } else { field.to_owned() };
    day.or_else(|| string_to_timestamp_nanos(&whole).ok().map(|time| time as f64 / NANOSECONDS_A_DAY))
}

/// What is wrong with a field that [`Cells::field`] has refused. `option` names its column in options.
pub(crate) fn mistake(field: &[u8], role: Role, levels: &[Levels], option: &str, is_import: bool) -> String {
    let field = match text(field) {
        Ok(field) => field,
        Err(what) => return what,
    };
    match role {
        Role::Text(_) | Role::Date if is_import && is_missing(field.as_bytes()) => {
            format!("{field:?} looks missing: leave such rows out with --missing drop")
        }
        _ if is_import && is_missing(field.as_bytes()) => format!(
            "{field:?} looks missing: leave such rows out with --missing drop, or fill them in with --missing mean-and-flag"
        ),
        Role::Text(_) | Role::Date if is_missing(field.as_bytes()) => format!("{field:?} looks missing"),
        Role::Text(index) => levels[index].clone().code(field.as_bytes()).err().unwrap_or_default(),
        Role::Date => format!("{:?} is not a date such as 2024-02-29", shortened(field)),
        Role::Feature | Role::Label | Role::Dropped => {
            let is_text = field.parse::<f64>().is_err() && field.replacen(',', ".", 1).parse::<f64>().is_err();
            if is_import && is_text && !field.is_empty() {
                let date = if parse_date(field).is_some() {
                    format!("read this column as dates with --date {option}, ")
                } else {
                    String::new()
                };
                return format!(
                    "{:?} is not a number: {date}make indicators of this column with --categorical {option}, or leave it out with --drop \
                     {option}",
                    shortened(field)
                );
            }
            parse_number(field).err().unwrap_or_default()
        }
    }
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
        Err(_) if field.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            Err(format!("{field:?} is not a number: write decimals with a point"))
        }
        Err(_) => Err(format!("{:?} is not a number: code texts as numbers, or remove the column", shortened(field))),
    }
}

/// Shortens a field for a message.
fn shortened(field: &str) -> String {
    const MAX_SHOWN: usize = 40;
    match field.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &field[..end]),
        None => field.to_owned(),
    }
}

/// A field as text.
pub(crate) fn text(field: &[u8]) -> std::result::Result<&str, String> {
    std::str::from_utf8(field).map_err(|_| "is not text (UTF-8)".to_owned())
}
