//! Reads tables of features with a label or target column: text (CSV, TSV, or separated by blanks), Parquet and Arrow.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::batches::Batches;
use crate::data::readers::cells::{Cells, ImportHint, Notation, is_missing, is_word, mistake, parse_leading_number, text};
use crate::data::readers::columns::{Column, Columns, Header, Role, TableLayout};
use crate::data::readers::decimal::parse_short;
use crate::data::readers::fields::{Delimiter, Fields, Records};
use crate::data::readers::format::{Format, detect};
use crate::data::readers::levels::Levels;
use crate::data::readers::source::Source;
use memchr::memchr;
use std::path::Path;

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The index of the row, from 0.
    pub index: u64,
    /// Where it is in the file.
    pub place: Place,
    /// The features: finite numbers, numbers of texts, or NaN if they are missing.
    pub features: &'a [f64],
    /// The label or target as text.
    pub label: &'a str,
    /// The texts of each column of texts, as far as they have been read.
    pub levels: &'a [Levels],
}

/// A table whose columns are known.
pub struct Table<'a> {
    input: Input<'a>,
    columns: Columns,
    levels: Vec<Levels>,
    notation: Notation,
    allow_missing: bool,
    is_import: bool,
    /// The value at which reading ended, if it could not be read.
    ended_at: Option<Unread>,
}

/// A value that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    /// The place of its column in the file.
    pub column: usize,
    /// Whether it stands for a missing one.
    pub is_missing: bool,
    /// Whether it is a text that is no number in any notation.
    pub is_word: bool,
}

impl Unread {
    fn of(column: usize, field: &[u8], notation: &Notation) -> Self {
        let is_missing = notation.means_missing(field);
        Self { column, is_missing, is_word: !is_missing && text(field).is_ok_and(is_word) }
    }
}

/// Where the rows are.
enum Input<'a> {
    Text(Records<'a>, Delimiter),
    Batches(Batches),
}

impl Input<'_> {
    fn path(&self) -> &Path {
        match self {
            Self::Text(records, _) => records.path(),
            Self::Batches(batches) => batches.path(),
        }
    }
}

impl Table<'static> {
    /// The names of all columns of a file, if it names them, whatever their types and whether or not they differ.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn names_in(path: &Path, layout: &TableLayout) -> Result<Option<Vec<String>>> {
        match detect(path) {
            Ok(Format::Batches(format)) => Batches::names(path, format).map(Some),
            _ => Ok(FirstLine::read(Source::open(path)?, layout)?.names),
        }
    }

    /// Opens a file, whose format is detected.
    ///
    /// # Errors
    /// If it cannot be read, has no rows, or does not have the columns that the layout names.
    pub fn open(path: &Path, layout: &TableLayout) -> Result<Self> {
        match detect(path) {
            Ok(Format::Batches(format)) => {
                let (batches, columns) = Batches::open(path, format, layout)?;
                Ok(Self::new(Input::Batches(batches), columns, layout))
            }
            _ => Self::of_text(Source::open(path)?, layout),
        }
    }
}

impl Table<'_> {
    /// The fields of the first line of a text, or the names of the columns of another file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn first_fields(path: &Path, layout: &TableLayout) -> Result<Vec<String>> {
        match detect(path) {
            Ok(Format::Batches(format)) => Batches::names(path, format),
            _ => Ok(FirstRecord::read(Source::open(path)?, layout)?.texts()),
        }
    }
}

impl<'a> Table<'a> {
    fn new(input: Input<'a>, columns: Columns, layout: &TableLayout) -> Self {
        let TableLayout { allow_missing, is_import, .. } = *layout;
        let levels = vec![Levels::default(); layout.texts.len()];
        let notation = Notation::new(&layout.na, layout.decimal_comma);
        Self { input, columns, levels, notation, allow_missing, is_import, ended_at: None }
    }

    /// Opens a text, whose first line tells the columns.
    ///
    /// # Errors
    /// If the input has no rows, is not text, or does not have the columns that the layout names.
    pub fn of_text(source: Source<'a>, layout: &TableLayout) -> Result<Self> {
        let FirstLine { mut records, delimiter, mut columns, names } = FirstLine::read(source, layout)?;
        if let Some(names) = names {
            columns = columns.named(names, |what| records.record_error(what))?;
            if !records.advance(delimiter)? {
                return Err(DataError::content(records.path(), Place::File, NO_ROWS));
            }
        }
        Ok(Self::new(Input::Text(records, delimiter), columns, layout))
    }

    /// The names of all columns, if the table has a header.
    pub fn names(&self) -> Option<&[String]> {
        self.columns.names.as_deref()
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.columns.features()
    }

    /// For each feature, which of the columns of texts it is, if it is one.
    pub fn texts(&self) -> Vec<Option<usize>> {
        let text = |role: &Role| match role {
            Role::Feature | Role::Date => Some(None),
            Role::Text(index) => Some(Some(*index)),
            Role::Label | Role::Dropped => None,
        };
        self.columns.roles.iter().filter_map(text).collect()
    }

    /// The columns that are neither the label nor texts.
    pub(crate) fn other_columns(&self) -> Vec<usize> {
        let is_other = |&column: &usize| !matches!(self.columns.roles[column], Role::Label | Role::Text(_));
        (0..self.columns.roles.len()).filter(is_other).collect()
    }

    /// Whether a column holds features that are numbers.
    pub(crate) fn holds_numbers(&self, column: usize) -> bool {
        self.columns.roles.get(column) == Some(&Role::Feature)
    }

    /// Whether each feature is a date.
    pub fn dates(&self) -> Vec<bool> {
        self.columns.roles.iter().filter(|role| role.is_feature()).map(|&role| role == Role::Date).collect()
    }

    /// The places among the features of the columns that the layout wants located.
    pub fn located(&self) -> Vec<usize> {
        self.columns.located.iter().map(|&column| self.columns.feature_place(column)).collect()
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

    /// The value at which reading ended, if it could not be read.
    pub(crate) fn ended_at(&self) -> Option<Unread> {
        self.ended_at
    }

    /// The names of the features: the header's, or `x1`, `x2`, ... by column.
    pub fn feature_names(&self) -> Vec<String> {
        let name = |column: usize| match self.names() {
            Some(names) => names[column].clone(),
            None => format!("x{}", column + 1),
        };
        let roles = self.columns.roles.iter().enumerate();
        roles.filter(|(_, role)| role.is_feature()).map(|(column, _)| name(column)).collect()
    }

    /// How a user names each feature in options.
    pub(crate) fn feature_options(&self) -> Vec<String> {
        let roles = self.columns.roles.iter().enumerate();
        roles.filter(|(_, role)| role.is_feature()).map(|(column, _)| self.columns.described(column).1).collect()
    }

    /// How a user names a column in options.
    pub(crate) fn option(&self, column: usize) -> String {
        self.columns.described(column).1
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Checks that another table, of test rows or of further rows, has the same columns as the training table.
    pub(crate) fn check_columns_match(&self, train: &Self) -> Result<()> {
        let (Columns { roles, names, .. }, theirs) = (&self.columns, &train.columns);
        let (width, training, path) = (roles.len(), theirs.roles.len(), train.path().display());
        let what = if width != training {
            format!("{width} columns, but {path} has {training}")
        } else if *roles != theirs.roles || (names.is_some() && theirs.names.is_some() && *names != theirs.names) {
            format!("the columns have other names than, or another order than, those of {path}")
        } else {
            return Ok(());
        };
        let what = format!("{what}: the two files do not belong together");
        let place = if matches!(self.input, Input::Text(..)) { Place::Line(1) } else { Place::File };
        Err(DataError::content(self.path(), place, what))
    }

    /// Counts the rows.
    pub(crate) fn count(self) -> Result<usize> {
        match self.input {
            Input::Batches(batches) => batches.count(),
            Input::Text(mut records, delimiter) => {
                let mut rows = 1;
                while records.advance(delimiter)? {
                    rows += 1;
                }
                Ok(rows)
            }
        }
    }

    /// Calls `each` with every remaining row.
    ///
    /// # Errors
    /// If a record has a different number of fields than the first line, a feature is not a finite number, or the input cannot be read; and
    /// those of `each`.
    pub fn rows(&mut self, mut each: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        let mut features = vec![0.0; self.features()];
        let mut label = Vec::new();
        let (columns, levels, notation) = (&self.columns, &mut self.levels, &self.notation);
        let (allow_missing, is_import) = (self.allow_missing, self.is_import);
        let described = |row: u64, place: usize, field: &[u8], levels: &[Levels]| {
            let (column, option) = columns.described(place);
            let options = is_import.then_some(ImportHint { column: &option, may_be_missing: row > 0 });
            format!("{column}: {}", mistake(field, columns.roles[place], levels, notation, options))
        };
        match &mut self.input {
            Input::Batches(batches) => batches.rows(&columns.roles, |row, place| {
                label.clear();
                let mut cells = Cells { features: features.iter_mut(), label: &mut label, levels, notation, allow_missing };
                if let Err((column, field)) = row.store(&mut cells) {
                    self.ended_at = Some(Unread::of(column, &field, notation));
                    return Err(DataError::content(row.path, place, described(row.index, column, &field, levels)));
                }
                let label = text(&label).map_err(|what| DataError::content(row.path, place, format!("the label {what}")))?;
                each(Row { index: row.index, place, features: &features, label, levels })
            }),
            Input::Text(records, delimiter) => {
                let mut fields = Fields::default();
                for index in 0.. {
                    let record = records.record();
                    label.clear();
                    let cells = Cells { features: features.iter_mut(), label: &mut label, levels, notation, allow_missing };
                    let read = match *delimiter {
                        Delimiter::Character(delimiter) => read_delimited(record, delimiter, &columns.roles, cells),
                        Delimiter::Blanks => read_blank_separated(record, &columns.roles, cells),
                    };
                    if read.is_none() {
                        label.clear();
                        fields.split(record, *delimiter);
                        let cells = Cells { features: features.iter_mut(), label: &mut label, levels, notation, allow_missing };
                        if let Err(wrong) = read_any(&fields, &columns.roles, cells) {
                            let what = match wrong {
                                Wrong::Record(what) => what,
                                Wrong::Field(place, field) => {
                                    self.ended_at = Some(Unread::of(place, field, notation));
                                    described(index, place, field, levels)
                                }
                            };
                            return Err(records.record_error(what));
                        }
                    }
                    let label = text(&label).map_err(|what| records.record_error(format!("the label {what}")))?;
                    each(Row { index, place: Place::Line(records.line()), features: &features, label, levels })?;
                    if !records.advance(*delimiter)? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
}

/// What a file without rows says.
const NO_ROWS: &str = "the file has no rows";

/// The first record of a text.
struct FirstRecord<'a> {
    /// At this record.
    records: Records<'a>,
    delimiter: Delimiter,
    fields: Fields,
}

/// What the first line of a text tells about the table.
struct FirstLine<'a> {
    /// At this line.
    records: Records<'a>,
    delimiter: Delimiter,
    columns: Columns,
    /// The names of all columns, if the line has them.
    names: Option<Vec<String>>,
}

impl<'a> FirstRecord<'a> {
    fn read(source: Source<'a>, layout: &TableLayout) -> Result<Self> {
        let path = source.path.clone();
        let mut records = Records::new(source)?;
        let line = records.peek()?;
        if line.contains(&0) {
            let what = "this is not text: give a table of numbers in text. Images are imported with `mpibayes import images`";
            return Err(DataError::content(&path, Place::File, what));
        }
        if memchr(b'\r', line).is_some() {
            let what = "lines end in a carriage return alone, as on old Macs: save the file with other line ends";
            return Err(DataError::content(&path, Place::File, what));
        }
        let delimiter = layout.delimiter.unwrap_or_else(|| Delimiter::detect(line));
        if !records.advance(delimiter)? {
            return Err(DataError::content(&path, Place::File, NO_ROWS));
        }
        let mut fields = Fields::default();
        fields.split(records.record(), delimiter);
        Ok(Self { records, delimiter, fields })
    }

    fn texts(&self) -> Vec<String> {
        self.fields.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()
    }
}

impl<'a> FirstLine<'a> {
    fn read(source: Source<'a>, layout: &TableLayout) -> Result<Self> {
        let first = FirstRecord::read(source, layout)?;
        let names = first.texts();
        let FirstRecord { records, delimiter, fields } = first;
        if names.len() < 2 && layout.label != Column::None {
            let between = delimiter.name();
            let what = format!("only one column between {between}: a label and at least one feature are needed; see --delimiter");
            return Err(records.record_error(what));
        }
        let columns = layout.columns(&names, |what| records.record_error(what))?;
        if has_header(layout, &fields, &columns.roles, &records)? {
            let check = |(field, column)| match text(field) {
                Ok(_) => Ok(()),
                Err(what) => Err(records.record_error(format!("the name of column {column} {what}"))),
            };
            fields.iter().zip(1..).try_for_each(check)?;
            return Ok(Self { records, delimiter, columns, names: Some(names) });
        }
        Ok(Self { records, delimiter, columns, names: None })
    }
}

/// What cannot be read: a whole record, or the field of a column.
enum Wrong<'a> {
    Record(String),
    Field(usize, &'a [u8]),
}

/// Whether the first line of a text names the columns.
fn has_header(layout: &TableLayout, fields: &Fields, roles: &[Role], records: &Records) -> Result<bool> {
    match layout.header {
        Header::Yes => return Ok(true),
        Header::No => return Ok(false),
        Header::Detect if layout.uses_names() => return Ok(true),
        Header::Detect => {}
    }
    let numbers = || fields.iter().zip(roles).filter(|&(_, &role)| role == Role::Feature).map(|(field, _)| field);
    let is_number = |field: &&[u8]| text(field).is_ok_and(|field| is_number(field, layout.decimal_comma));
    let (found, count) = (numbers().filter(is_number).count(), numbers().count());
    // pandas and R write row numbers without a name.
    let is_unnamed = |&(place, field): &(usize, &[u8])| place == 0 && field.is_empty() && found == 0 && count > 1;
    if let Some((_, field)) = numbers().enumerate().find(|found| is_missing(found.1) && !is_unnamed(found)) {
        let field = String::from_utf8_lossy(field);
        let what = format!(
            "{field:?} in the first line is neither a name nor a number: fill in a value or remove the row, or say with --header that it \
             is a name"
        );
        return Err(records.record_error(what));
    }
    if count == 0 {
        let what = "no feature is a number, so that nothing tells whether the first line names the columns: say with --header yes that it \
                    does, or with --header no that it is a row of data";
        return Err(records.record_error(what));
    }
    // pandas writes 0, 1, 2, ... for columns without names.
    let is_numbered = numbers().zip(0..).all(|(field, number)| field == number.to_string().as_bytes());
    if count > 2 && is_numbered {
        let what = "the first line counts the columns: say with --header yes that these are names, or with --header no that it is a row \
                    of data";
        return Err(records.record_error(what));
    }
    if found > 0 && found < count {
        let what = format!(
            "{found} of {count} features are numbers: neither a header nor a row of data; say which it is with --header. `mpibayes import` can \
             leave columns out with --drop"
        );
        return Err(records.record_error(what));
    }
    Ok(found == 0)
}

fn is_number(field: &str, decimal_comma: bool) -> bool {
    field.parse::<f64>().is_ok() || decimal_comma && field.replacen(',', ".", 1).parse::<f64>().is_ok()
}

/// Reads a record with any quotes.
fn read_any<'f>(fields: &'f Fields, roles: &[Role], mut cells: Cells<'_>) -> std::result::Result<(), Wrong<'f>> {
    if fields.has_text_after_quote() {
        return Err(Wrong::Record("text stands behind a closing quote: a quote is missing here or in a line before".into()));
    }
    if fields.len() != roles.len() {
        let (count, width) = (fields.len(), roles.len());
        return Err(Wrong::Record(format!(
            "{}, but the first line has {width}: make all lines alike",
            crate::text::counted(count, "field")
        )));
    }
    for ((field, &role), place) in fields.iter().zip(roles).zip(0..) {
        cells.field(field, role).ok_or(Wrong::Field(place, field))?;
    }
    Ok(())
}

/// Reads a record without quotes within quoted fields; `None` if it has such quotes, or has an error. Then [`read_any`] reads it.
fn read_delimited(record: &[u8], delimiter: u8, roles: &[Role], mut cells: Cells<'_>) -> Option<()> {
    let (mut at, has_points) = (0, !cells.notation.decimal_comma);
    for &role in roles {
        if has_points
            && role == Role::Feature
            && let Some((value, end)) = parse_short(record, at, delimiter)
        {
            cells.number(value)?;
            at = end + 1;
            continue;
        }
        let field = record.get(at..)?;
        let number = if has_points && role == Role::Feature { parse_leading_number(field) } else { None };
        let length = match number {
            Some((value, length)) if field.get(length).is_none_or(|&byte| byte == delimiter) => {
                cells.number(value)?;
                length
            }
            _ => {
                // Fields that are quoted after a blank are left to `read_any`.
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
                        let content = field.get(..length)?;
                        if content.trim_ascii_start().first() == Some(&b'"') {
                            return None;
                        }
                        (content, length)
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
    let (mut rest, has_points) = (record.trim_ascii_end(), !cells.notation.decimal_comma);
    for &role in roles {
        rest = rest.trim_ascii_start();
        if has_points
            && role == Role::Feature
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use rand::RngExt;

    /// Reads `field` before another one without [`read_any`].
    fn read(field: &str, delimiter: Delimiter, between: &str) -> Option<u64> {
        let record = format!("{field}{between}0");
        let roles = [Role::Feature, Role::Label];
        let (mut features, mut label) = (vec![0.0], Vec::new());
        let cells = Cells {
            features: features.iter_mut(),
            label: &mut label,
            levels: &mut [],
            notation: &Notation::default(),
            allow_missing: false,
        };
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

    /// [`read_any`] accepts and rejects the same fields as the faster readers.
    #[test]
    fn quoted_fields_read_as_others() {
        let read = |text: &str| {
            let mut rows = Vec::new();
            let mut table = Table::of_text(Source::of_bytes("x".as_ref(), text.as_bytes())?, &TableLayout::default())?;
            table.rows(|row| {
                rows.push((row.index, row.place, row.features.to_vec(), row.label.to_owned()));
                Ok(())
            })?;
            Ok::<_, DataError>(rows)
        };
        let plain = read("1,2.5,a\n-3,4,b\n").unwrap();
        assert_eq!(plain, [(0, Place::Line(1), vec![1.0, 2.5], "a".into()), (1, Place::Line(2), vec![-3.0, 4.0], "b".into())]);
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
            ("1;2;a\n1;2,5;b\n", "line 2: column 2: \"2,5\" is not a number: if numbers have a decimal comma"),
            ("1;2;a\n1;1,000;b\n", "\"1,000\" is not a number: if the comma separates thousands, remove it"),
            ("1;2;a\n1;-12,345,678.5;b\n", "\"-12,345,678.5\" is not a number: if the comma separates thousands"),
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
