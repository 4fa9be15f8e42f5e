//! Reads text tables (CSV, TSV, or separated by blanks) of numeric features with a label or target column.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::decimal::parse_short;
use crate::data::readers::fields::{Delimiter, Fields, Records};
use crate::data::readers::levels::Levels;
use crate::data::readers::source::Source;
use memchr::memchr;
use std::path::PathBuf;

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// The last one.
    #[default]
    Last,
    /// This one, counting from 1.
    Number(usize),
    /// The column with this name in the header.
    Name(String),
    /// No column: rows to predict have no label.
    None,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Yes if none of its features is a number.
    #[default]
    Detect,
    /// Yes.
    Yes,
    /// No: it is a row of data.
    No,
}

/// The layout of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableLayout {
    /// The delimiter of fields; `None` to detect it from the first line.
    pub delimiter: Option<Delimiter>,
    /// Whether the first line names the columns.
    pub header: Header,
    /// The column of the label or target.
    pub label: Column,
    /// Columns that are left out.
    pub drop: Vec<Column>,
    /// Features whose values are texts. A row has the number of the text, see [`Table::levels`].
    pub texts: Vec<Column>,
    /// Whether features may be missing. A row has NaN there.
    pub allow_missing: bool,
    /// Whether messages propose options of `mpibayes import`.
    pub is_import: bool,
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The index of the row, from 0.
    pub index: u64,
    /// Its first line, from 1.
    pub line: u64,
    /// The features: finite numbers, numbers of texts, or NaN if they are missing.
    pub features: &'a [f64],
    /// The label or target as text.
    pub label: &'a str,
}

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Feature,
    /// A feature whose values are texts, those of the levels with this index.
    Text(usize),
    Label,
    Dropped,
}

impl Role {
    fn is_feature(self) -> bool {
        matches!(self, Self::Feature | Self::Text(_))
    }
}

/// The maximum number of names in a message.
const MAX_NAMES: usize = 20;
/// Fields that mean a missing value.
const MISSING: [&str; 6] = ["", "na", "n/a", "nan", "null", "?"];

/// A table whose columns are known.
pub struct Table<'a> {
    records: Records<'a>,
    delimiter: Delimiter,
    roles: Vec<Role>,
    /// Names of all columns, if the file has a header.
    names: Option<Vec<String>>,
    levels: Vec<Levels>,
    allow_missing: bool,
    is_import: bool,
    /// Whether reading ended at a value that is missing.
    ended_at_missing: bool,
}

/// Where the values of a record go.
struct Cells<'a> {
    features: std::slice::IterMut<'a, f64>,
    label: &'a mut Vec<u8>,
    levels: &'a mut [Levels],
    allow_missing: bool,
}

impl Cells<'_> {
    /// Stores a number.
    fn number(&mut self, value: f64) -> Option<()> {
        *self.features.next()? = value;
        Some(())
    }

    /// Stores a field; `None` if it cannot be.
    fn field(&mut self, content: &[u8], role: Role) -> Option<()> {
        match role {
            Role::Feature | Role::Text(_) if self.allow_missing && is_missing(content) => self.number(f64::NAN),
            Role::Feature => self.number(parse_number(text(content).ok()?).ok()?),
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
    MISSING.iter().any(|missing| field.eq_ignore_ascii_case(missing.as_bytes()))
}

impl<'a> Table<'a> {
    /// Determines the columns from the first line.
    ///
    /// # Errors
    /// If the input has no rows, is not text, or does not have the columns that the layout names.
    pub fn open(source: Source<'a>, layout: &TableLayout) -> Result<Self> {
        let path = source.path.clone();
        let mut records = Records::new(source)?;
        let line = records.peek()?;
        if line.contains(&0) {
            let what = "this is no text: give a table of numbers in text, or say what it is with --format";
            return Err(DataError::content(&path, Place::File, what));
        }
        if memchr(b'\r', line).is_some() {
            let what = "lines end in a carriage return alone, as on old Macs: save the file with other line ends";
            return Err(DataError::content(&path, Place::File, what));
        }
        let delimiter = layout.delimiter.unwrap_or_else(|| Delimiter::detect(line));
        let empty = || DataError::content(&path, Place::File, "the file has no rows");
        if !records.advance(delimiter)? {
            return Err(empty());
        }
        let mut fields = Fields::default();
        fields.split(records.record(), delimiter);
        let width = fields.len();
        if width < 2 && layout.label != Column::None {
            let between = delimiter.name();
            let what = format!("only one column between {between}: a label and at least one feature are needed; see --delimiter");
            return Err(records.record_error(what));
        }
        let column = |column: &Column| match *column {
            Column::None => Err(DataError::Request("no column cannot be left out".into())),
            Column::Last => Ok(width - 1),
            Column::Number(number) if (1..=width).contains(&number) => Ok(number - 1),
            Column::Number(number) => {
                Err(records.record_error(format!("there is no column {number}: the file has columns 1 to {width}")))
            }
            Column::Name(_) if layout.header == Header::No => {
                let what = "a column can be named only if the file has a header: give its number";
                Err(DataError::Request(what.into()))
            }
            Column::Name(ref name) => fields.iter().position(|field| field == name.as_bytes()).ok_or_else(|| {
                let names: Vec<_> = fields.iter().take(MAX_NAMES).map(String::from_utf8_lossy).collect();
                let more = if width > MAX_NAMES { ", ..." } else { "" };
                let names = names.join(", ");
                records.record_error(format!("no column is called {name:?} here; there are {names}{more}; or give its number"))
            }),
        };
        let label = if layout.label == Column::None { None } else { Some(column(&layout.label)?) };
        let mut roles = vec![Role::Feature; width];
        for dropped in &layout.drop {
            roles[column(dropped)?] = Role::Dropped;
        }
        for (index, text) in layout.texts.iter().enumerate() {
            let place = column(text)?;
            if roles[place] != Role::Feature || label == Some(place) {
                let is_label = if label == Some(place) { "the label: choose another one with --label" } else { "named twice" };
                let name = fields.iter().nth(place).map(String::from_utf8_lossy).unwrap_or_default();
                return Err(DataError::Request(format!("column {} ({name}) is {is_label}", place + 1)));
            }
            roles[place] = Role::Text(index);
        }
        if let Some(label) = label {
            if roles[label] == Role::Dropped {
                let what = format!("column {} is to be both the label and left out: choose", label + 1);
                return Err(DataError::Request(what));
            }
            roles[label] = Role::Label;
        }
        let numbers = roles.iter().filter(|&&role| role == Role::Feature).count();
        if numbers + layout.texts.len() == 0 {
            return Err(DataError::Request("all columns but the label are left out: no feature remains".into()));
        }
        let uses_names =
            layout.drop.iter().chain(&layout.texts).chain([&layout.label]).any(|column| matches!(column, Column::Name(_)));
        let has_header = match layout.header {
            Header::Yes => true,
            Header::No => false,
            Header::Detect if uses_names => true,
            Header::Detect => {
                let is_number = |field: &[u8]| text(field).is_ok_and(|field| field.parse::<f64>().is_ok());
                let found = fields.iter().zip(&roles).filter(|&(field, &role)| role == Role::Feature && is_number(field)).count();
                let of_features =
                    || fields.iter().zip(&roles).filter(|&(_, &role)| role == Role::Feature).map(|(field, _)| field);
                if let Some(field) = of_features().find(|field| is_missing(field)) {
                    let field = String::from_utf8_lossy(field);
                    let what = format!(
                        "{field:?} in the first line is neither a name nor a number: fill in a value or remove the row, or say with \
                         --header that it is a name"
                    );
                    return Err(records.record_error(what));
                }
                // pandas writes 0, 1, 2, ... for columns without names.
                let is_numbered = of_features().zip(0..).all(|(field, number)| field == number.to_string().as_bytes());
                if numbers > 2 && is_numbered {
                    let what = "the first line counts the columns: say with --header yes that these are names, or with --header no \
                                that it is a row of data";
                    return Err(records.record_error(what));
                }
                if found > 0 && found < numbers {
                    let what = format!(
                        "{found} of {numbers} features are numbers: neither a header nor a row of data; say which it is \
                         with --header, or leave columns out with --drop"
                    );
                    return Err(records.record_error(what));
                }
                found == 0
            }
        };
        let mut names = None;
        if has_header {
            let name = |(field, column)| {
                let name = text(field).map(str::to_owned);
                name.map_err(|what| records.record_error(format!("the name of column {column} {what}")))
            };
            let all = fields.iter().zip(1..).map(name).collect::<Result<Vec<String>>>()?;
            let used = |&(place, _): &(usize, &String)| roles[place] != Role::Dropped;
            for (place, name) in all.iter().enumerate().filter(used) {
                if all.iter().enumerate().filter(used).any(|(other, same)| other < place && same == name) {
                    return Err(records.record_error(format!(
                        "two columns are called {name:?}: rename one, or leave it out with --drop NUMBER"
                    )));
                }
            }
            names = Some(all);
            if !records.advance(delimiter)? {
                return Err(empty());
            }
        }
        let levels = vec![Levels::default(); layout.texts.len()];
        let TableLayout { allow_missing, is_import, .. } = *layout;
        Ok(Self { records, delimiter, roles, names, levels, allow_missing, is_import, ended_at_missing: false })
    }

    /// The names of all columns, if the table has a header.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.roles.iter().filter(|role| role.is_feature()).count()
    }

    /// For each feature, which of the columns of texts it is, if it is one.
    pub fn texts(&self) -> Vec<Option<usize>> {
        let text = |role: &Role| match role {
            Role::Feature => Some(None),
            Role::Text(index) => Some(Some(*index)),
            Role::Label | Role::Dropped => None,
        };
        self.roles.iter().filter_map(text).collect()
    }

    /// The place of a column among the features, if it is one.
    ///
    /// # Errors
    /// If there is no such column.
    pub(crate) fn feature_place(&self, column: &Column) -> Result<Option<usize>> {
        let width = self.roles.len();
        let place = match column {
            Column::Last => Some(width - 1),
            Column::Number(number) => number.checked_sub(1).filter(|&place| place < width),
            Column::Name(name) => self.names.as_ref().and_then(|names| names.iter().position(|other| other == name)),
            Column::None => None,
        };
        let place = place.ok_or_else(|| {
            let what = match (column, &self.names) {
                (Column::Name(name), Some(names)) => format!("no column is called {name:?}; there are {}", names.join(", ")),
                (Column::Name(_), None) => "a column can be named only if the file has a header: give its number".into(),
                _ => format!("there is no such column: the file has columns 1 to {width}"),
            };
            self.records.record_error(what)
        })?;
        let is_feature = self.roles[place].is_feature();
        Ok(is_feature.then(|| self.roles[..place].iter().filter(|role| role.is_feature()).count()))
    }

    /// The texts of each column of texts, as far as they have been read.
    pub fn levels(&self) -> &[Levels] {
        &self.levels
    }

    /// The table with texts that are known before it is read.
    #[must_use]
    pub fn with_levels(self, levels: Vec<Levels>) -> Self {
        Self { levels, ..self }
    }

    /// Whether reading ended at a value that is missing.
    pub(crate) fn ended_at_missing(&self) -> bool {
        self.ended_at_missing
    }

    /// The names of the features: the header's, or `x1`, `x2`, ... by column.
    pub fn feature_names(&self) -> Vec<String> {
        let name = |column: usize| match &self.names {
            Some(names) => names[column].clone(),
            None => format!("x{}", column + 1),
        };
        (0..self.roles.len()).filter(|&column| self.roles[column].is_feature()).map(name).collect()
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.records.path().to_path_buf()
    }

    /// Checks that a test table has the same columns as the training table.
    pub(crate) fn check_columns_match(&self, train: &Self) -> Result<()> {
        let (width, training, theirs) = (self.roles.len(), train.roles.len(), train.records.path().display());
        let what = if width != training {
            format!("{width} columns, but {theirs} has {training}")
        } else if self.roles != train.roles || (self.names.is_some() && train.names.is_some() && self.names != train.names) {
            format!("the columns have other names than, or another order than, those of {theirs}")
        } else {
            return Ok(());
        };
        let what = format!("{what}: the two files do not belong together");
        Err(DataError::content(self.records.path(), Place::Line(1), what))
    }

    /// Counts the rows.
    pub(crate) fn count(mut self) -> Result<usize> {
        let mut rows = 1;
        while self.records.advance(self.delimiter)? {
            rows += 1;
        }
        Ok(rows)
    }

    /// Calls `each` with every remaining row.
    ///
    /// # Errors
    /// If a record has a different number of fields than the first line, a feature is not a finite number, or the input cannot be read; and
    /// those of `each`.
    pub fn rows(&mut self, mut each: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        let mut features = vec![0.0; self.features()];
        let mut label = Vec::new();
        let mut fields = Fields::default();
        for index in 0.. {
            let record = self.records.record();
            label.clear();
            let (allow_missing, levels) = (self.allow_missing, &mut self.levels[..]);
            let cells = Cells { features: features.iter_mut(), label: &mut label, levels, allow_missing };
            let read = match self.delimiter {
                Delimiter::Character(delimiter) => read_delimited(record, delimiter, &self.roles, cells),
                Delimiter::Blanks => read_blank_separated(record, &self.roles, cells),
            };
            if read.is_none() {
                label.clear();
                fields.split(record, self.delimiter);
                self.read_any(&fields, &mut features, &mut label).map_err(|what| self.records.record_error(what))?;
            }
            let label = text(&label).map_err(|what| self.records.record_error(format!("the label {what}")))?;
            each(Row { index, line: self.records.line(), features: &features, label })?;
            if !self.records.advance(self.delimiter)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads a record with any quotes. The error says what is wrong with it.
    fn read_any(&mut self, fields: &Fields, features: &mut [f64], label: &mut Vec<u8>) -> std::result::Result<(), String> {
        if fields.has_text_after_quote() {
            return Err("text stands behind a closing quote: a quote is missing here or in a line before".into());
        }
        if fields.len() != self.roles.len() {
            let (count, width) = (fields.len(), self.roles.len());
            return Err(format!("{count} fields, but the first line has {width}: make all lines alike"));
        }
        let (allow_missing, levels) = (self.allow_missing, &mut self.levels[..]);
        let mut cells = Cells { features: features.iter_mut(), label, levels, allow_missing };
        for ((field, &role), place) in fields.iter().zip(&self.roles).zip(0..) {
            if cells.field(field, role).is_none() {
                self.ended_at_missing = is_missing(field);
                return Err(self.mistake(place, role, field));
            }
        }
        Ok(())
    }

    /// What is wrong with a field.
    fn mistake(&self, place: usize, role: Role, field: &[u8]) -> String {
        let name = self.names.as_ref().map(|names| names[place].clone());
        let column = match &name {
            Some(name) => format!("column {} ({name})", place + 1),
            None => format!("column {}", place + 1),
        };
        // Names with blanks or commas would need quotes.
        let is_plain = |name: &String| name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) && !name.is_empty();
        let option = name.filter(is_plain).unwrap_or_else(|| (place + 1).to_string());
        let what = match (text(field), role) {
            (Err(what), _) => what,
            (Ok(field), _) if self.is_import && is_missing(field.as_bytes()) => format!(
                "{field:?} looks missing: leave such rows out with --missing drop, or fill them in with --missing mean-and-flag"
            ),
            (Ok(field), Role::Text(_)) if is_missing(field.as_bytes()) => format!("{field:?} looks missing"),
            (Ok(_), Role::Text(levels)) => self.levels[levels].clone().code(field).err().unwrap_or_default(),
            (Ok(field), _) => match parse_number(field).err().unwrap_or_default() {
                what if self.is_import && what.contains("code texts as numbers") => format!(
                    "{:?} is not a number: make indicators of this column with --categorical {option}, or leave it out with --drop \
                     {option}",
                    shortened(field)
                ),
                what => what,
            },
        };
        format!("{column}: {what}")
    }
}

/// Reads a record without quotes within quoted fields; `None` if it has such quotes, or has an error. Then [`Table::read_any`] reads it.
fn read_delimited(record: &[u8], delimiter: u8, roles: &[Role], mut cells: Cells<'_>) -> Option<()> {
    let mut at = 0;
    for &role in roles {
        if role == Role::Feature
            && let Some((value, end)) = parse_short(record, at, delimiter)
        {
            cells.number(value)?;
            at = end + 1;
            continue;
        }
        let field = record.get(at..)?;
        let number = if role == Role::Feature { parse_leading_number(field) } else { None };
        let length = match number {
            Some((value, length)) if field.get(length).is_none_or(|&byte| byte == delimiter) => {
                cells.number(value)?;
                length
            }
            _ => {
                let (content, length) = match field.split_first() {
                    // A quoted field without quotes in it.
                    Some((b'"', rest)) => {
                        let length = memchr(b'"', rest)?;
                        if rest.get(length + 1).is_some_and(|&byte| byte != delimiter) {
                            return None;
                        }
                        (rest.get(..length)?, length + 2)
                    }
                    _ => {
                        let length = memchr(delimiter, field).unwrap_or(field.len());
                        (field.get(..length)?, length)
                    }
                };
                cells.field(content.trim_ascii(), role)?;
                length
            }
        };
        at += length + 1;
    }
    (at == record.len() + 1).then_some(())
}

/// Like [`read_delimited`], for fields separated by blanks.
fn read_blank_separated(record: &[u8], roles: &[Role], mut cells: Cells<'_>) -> Option<()> {
    let mut rest = record.trim_ascii_end();
    for &role in roles {
        rest = rest.trim_ascii_start();
        if role == Role::Feature
            && let Some((value, length)) = parse_short(rest, 0, b' ').or_else(|| parse_leading_number(rest))
            && rest.get(length).is_none_or(|&byte| byte == b' ' || byte == b'\t')
        {
            cells.number(value)?;
            rest = rest.get(length..)?;
            continue;
        }
        let length = rest.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(rest.len());
        let (content, after) = rest.split_at_checked(length)?;
        if content.is_empty() || content.first() == Some(&b'"') {
            return None;
        }
        cells.field(content, role)?;
        rest = after;
    }
    rest.is_empty().then_some(())
}

/// Parses the finite number at the start of these bytes; returns it and its length. The result has the same bits as that of `str::parse`,
/// which would have to know the length before.
fn parse_leading_number(bytes: &[u8]) -> Option<(f64, usize)> {
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
fn text(field: &[u8]) -> std::result::Result<&str, String> {
    std::str::from_utf8(field).map_err(|_| "is not text (UTF-8)".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use rand::RngExt;

    /// Reads `field` before another one without [`Table::read_any`].
    fn read(field: &str, delimiter: Delimiter, between: &str) -> Option<u64> {
        let record = format!("{field}{between}0");
        let roles = [Role::Feature, Role::Label];
        let (mut features, mut label) = (vec![0.0], Vec::new());
        let cells = Cells { features: features.iter_mut(), label: &mut label, levels: &mut [], allow_missing: false };
        let read = match delimiter {
            Delimiter::Character(byte) => read_delimited(record.as_bytes(), byte, &roles, cells),
            Delimiter::Blanks => read_blank_separated(record.as_bytes(), &roles, cells),
        };
        read.map(|()| features[0].to_bits())
    }

    #[test]
    fn numbers_are_those_of_the_standard_library_to_the_bit() {
        let mut random = Seed(1).stream(Who::Run, 0, Purpose::Synthetic);
        let mut digits = |most: usize| -> String {
            let count = random.random_range(0..=most);
            (0..count).map(|_| char::from(b'0' + random.random_range(0..10_u8))).collect()
        };
        let mut fields: Vec<String> = [
            "-0",
            "+1",
            "1.",
            ".5",
            "1e5",
            "1E-5",
            "5e-324",
            "2.4703282292062327e-324",
            "1.7976931348623157e308",
            "9007199254740993",
        ]
        .map(str::to_owned)
        .to_vec();
        for round in 0..40_000 {
            let sign = ["", "-", "+"][round % 3];
            let exponent = match round % 4 {
                0 => format!("e{}", digits(3)),
                1 => format!("E-{}", digits(3)),
                _ => String::new(),
            };
            fields.push(format!("{sign}{}.{}{exponent}", digits(21), digits(21)));
            fields.push(format!("{sign}{}", digits(25)));
            fields.push(f64::from_bits(digits(20).parse().unwrap_or(1)).to_string());
        }
        let mut numbers = 0;
        for field in fields.iter().filter(|field| !field.is_empty()) {
            let expected = field.parse::<f64>().ok().filter(|value| value.is_finite()).map(f64::to_bits);
            let comma = Delimiter::Character(b',');
            for (delimiter, between) in [(comma, ","), (comma, " , "), (Delimiter::Blanks, " "), (Delimiter::Blanks, "\t ")] {
                assert_eq!(read(field, delimiter, between), expected, "{field:?} {between:?}");
            }
            numbers += usize::from(expected.is_some());
        }
        assert!(numbers > 80_000, "{numbers}");
    }

    /// [`Table::read_any`] accepts and rejects the same fields as the faster readers.
    #[test]
    fn quoted_fields_read_as_others() {
        let read = |text: &str| {
            let mut rows = Vec::new();
            let mut table = Table::open(Source::of_bytes("x".as_ref(), text.as_bytes())?, &TableLayout::default())?;
            table.rows(|row| {
                rows.push((row.index, row.line, row.features.to_vec(), row.label.to_owned()));
                Ok(())
            })?;
            Ok::<_, DataError>(rows)
        };
        let plain = read("1,2.5,a\n-3,4,b\n").unwrap();
        assert_eq!(plain, [(0, 1, vec![1.0, 2.5], "a".into()), (1, 2, vec![-3.0, 4.0], "b".into())]);
        for same in [
            "\"1\",\"2.5\",\"a\"\n\"-3\",4,\"b\"\n",
            "1, 2.5 ,a\r\n -3\t,4,b\r\n",
            "1;2.5;a\n-3;4;b",
            "1\t2.5\ta\n-3\t4\tb",
            "1  2.5 a \n -3\t4 b",
        ] {
            assert_eq!(read(same).unwrap(), plain, "{same:?}");
        }
        for (text, says) in [
            ("1,2,a\n1,\"x\",b\n", "line 2: column 2: \"x\" is not a number"),
            ("1,2,a\n\"1\",\"\",b\n", "line 2: column 2: is missing"),
            ("1;2;a\n1;2,5;b\n", "line 2: column 2: \"2,5\" is not a number: write decimals with a point"),
            ("1,2,\"a\"\n1,2,\"b\",\n", "line 2: 4 fields, but the first line has 3"),
            ("1,2,\"a\"\n1,\"2\"3,b\n", "line 2: text stands behind a closing quote"),
            ("1,2,\"a\"\n1,\"2\"\"\",b\n", "line 2: column 2: \"2\\\"\" is not a number"),
            ("1,2,\"a\n2,3,\"b\"\n", "line 1: text stands behind a closing quote"),
            ("0,1,2,kind\n5,6,7,a\n", "line 1: the first line counts the columns: say with --header"),
            ("NA,a\n2,b\n", "line 1: \"NA\" in the first line is neither a name nor a number"),
            ("x,x,y\n2,3,b\n", "line 1: two columns are called \"x\""),
            ("1 2 a\n1 2\n", "line 2: 2 fields, but the first line has 3"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
    }
}
