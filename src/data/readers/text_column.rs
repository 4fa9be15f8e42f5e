//! One column of a text table, such as the dates of documents.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::fields::{Delimiter, Fields, Records};
use crate::data::readers::lines::lines;
use crate::data::readers::source::Source;
use crate::text::counted;
use std::path::Path;

/// A column with its name and the text of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// Its name in the header.
    pub name: String,
    /// The text of each row without blanks around it, empty if there is none.
    pub rows: Vec<String>,
}

/// Reads a column of a text table with a header, plain or gzip, with commas, semicolons or tabs between its fields. A table of a single
/// column may have blank lines, which are rows without a value. Without a `name`, the table must have a single column.
///
/// # Errors
/// If the file cannot be read, has no such column or several of that name, or has a row of another length than the header.
pub fn read_text_column(path: &Path, name: Option<&str>) -> Result<TextColumn> {
    let mut records = Records::new(Source::open(path)?)?;
    let header_line = records.peek()?.to_vec();
    let delimiter = match Delimiter::detect(&header_line) {
        // Times and names have blanks.
        Delimiter::Blanks if header_line.contains(&b'\t') => Delimiter::Character(b'\t'),
        Delimiter::Blanks => Delimiter::Character(b','),
        character => character,
    };
    let mut fields = Fields::default();
    if !records.advance(delimiter)? {
        let what = "the file has only blank lines: a header with the names of columns is needed";
        return Err(DataError::content(path, Place::File, what));
    }
    fields.split(records.record(), delimiter);
    let header: Vec<String> = fields.iter().map(|field| String::from_utf8_lossy(field.trim_ascii()).into_owned()).collect();
    let wrong = |what: String| DataError::content(path, Place::File, what);
    let mut found = header.iter().enumerate().filter(|(_, column)| name.is_none_or(|name| *column == name));
    let (at, column) = match (found.next(), found.next()) {
        (Some(one), None) => one,
        (None, _) => {
            return Err(wrong(format!("there is no column {}; the columns are {}", name.unwrap_or_default(), header.join(", "))));
        }
        (Some(_), Some(_)) if name.is_some() => {
            return Err(wrong(format!("several columns are named {}", name.unwrap_or_default())));
        }
        (Some(_), Some(_)) => return Err(wrong(format!("choose one of its columns with --column: {}", header.join(", ")))),
    };
    let mut column = TextColumn { name: column.clone(), rows: Vec::new() };
    if header.len() == 1 {
        read_lines(path, delimiter, &mut column.rows)?;
        return Ok(column);
    }
    let lines_of = |record: &[u8]| 1 + record.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let mut next_line = records.line() + lines_of(records.record());
    while records.advance(delimiter)? {
        if next_line < records.line() {
            let what = "this line is blank: a row without values has empty fields between its delimiters";
            return Err(DataError::content(path, Place::Line(next_line), what));
        }
        fields.split(records.record(), delimiter);
        if fields.has_text_after_quote() {
            return Err(records.record_error("text follows a closing quote: a quote within a field is written twice"));
        }
        if fields.len() != header.len() {
            let what = format!("{}, but the header has {}: make all lines alike", counted(fields.len(), "field"), header.len());
            return Err(records.record_error(what));
        }
        column.rows.push(value(&fields, at).map_err(|what| records.record_error(what))?);
        next_line = records.line() + lines_of(records.record());
    }
    Ok(column)
}

/// The text of a field.
fn value(fields: &Fields, at: usize) -> std::result::Result<String, &'static str> {
    let field = fields.iter().nth(at).unwrap_or_default().trim_ascii();
    let text = str::from_utf8(field).map_err(|_| "the text is not UTF-8: save the table as UTF-8")?;
    Ok(text.to_owned())
}

/// Reads the rows of a table of a single column, each a line, after the header.
fn read_lines(path: &Path, delimiter: Delimiter, rows: &mut Vec<String>) -> Result<()> {
    let (mut fields, mut has_header) = (Fields::default(), false);
    lines(Source::open(path)?.reader, path, |line, row| {
        let wrong = |what: String| DataError::content(path, Place::Line(line), what);
        fields.split(row, delimiter);
        if fields.len() > 1 {
            return Err(wrong(format!("{} fields, but the header has 1: make all lines alike", fields.len())));
        }
        let is_header = !has_header && !row.trim_ascii().is_empty();
        if has_header {
            rows.push(value(&fields, 0).map_err(|what| wrong(what.to_owned()))?);
        }
        has_header |= is_header;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str, name: Option<&str>) -> std::result::Result<TextColumn, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        read_text_column(&path, name).map_err(|error| error.to_string())
    }

    #[test]
    fn a_column_is_read_by_its_name_and_blank_lines_of_a_single_one_are_rows() {
        let column = |name: &str, rows: &[&str]| {
            Ok(TextColumn { name: name.into(), rows: rows.iter().map(|row| (*row).into()).collect() })
        };
        assert_eq!(
            read("date\n2024-05-17 10:30\n\n\"2024-06-01\"\n", None),
            column("date", &["2024-05-17 10:30", "", "2024-06-01"])
        );
        let several = "id, date ,text\n1,2024,\"a\n\nb, c\"\n2,,x\n";
        assert_eq!(read(several, Some("date")), column("date", &["2024", ""]));
        assert_eq!(read("id;date\n1;2,5\n", Some("date")), column("date", &["2,5"]));
        assert_eq!(read("id\tdate\n1\ta b\n", Some("date")), column("date", &["a b"]));
    }

    #[test]
    fn blank_lines_at_the_end_of_a_single_column_are_rows() {
        for (text, rows) in
            [("date\na\n\n\n", 3), ("date\na\n\nb", 3), ("date\na\n", 1), ("date\na", 1), ("date\r\na\r\n\r\n", 2)]
        {
            assert_eq!(read(text, None).unwrap().rows.len(), rows, "{text:?}");
        }
    }

    #[test]
    fn tables_whose_rows_cannot_be_counted_are_refused() {
        let says = |text: &str, name, says: &str| {
            let message = read(text, name).unwrap_err();
            assert!(message.contains(says), "{message}");
        };
        says("id,date\n1,2024\n", None, "choose one of its columns with --column: id, date");
        says("id,date\n1,2024\n", Some("day"), "there is no column day; the columns are id, date");
        says("id,id\n1,2\n", Some("id"), "several columns are named id");
        says("id,date\n1,2024\n\n2,2025\n", Some("date"), "line 3: this line is blank");
        says("id,date\n1,2024\n2\n", Some("date"), "line 3: 1 field, but the header has 2: make all lines alike");
        says("id,text,date\n1,\"Hello,2024\n2,\"World,2024\n", Some("date"), "text follows a closing quote");
        says("", None, "empty");
        says("\n\n", None, "the file has only blank lines");
    }
}
