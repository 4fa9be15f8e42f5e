//! One column of a text table, such as the dates of documents.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::fields::{Delimiter, Fields, Records};
use crate::data::readers::source::Source;
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
        Delimiter::Blanks => Delimiter::Character(b','),
        character => character,
    };
    let mut fields = Fields::default();
    if !records.advance(delimiter)? {
        return Err(DataError::content(path, Place::File, "the table has no header"));
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
        (Some(_), Some(_)) => return Err(wrong(format!("choose one of its columns: {}", header.join(", ")))),
    };
    let lines_of = |record: &[u8]| 1 + record.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let mut next_line = records.line() + lines_of(records.record());
    let mut rows = Vec::new();
    while records.advance(delimiter)? {
        for line in next_line..records.line() {
            if header.len() > 1 {
                let what = "this line is blank: a row without values has empty fields between its delimiters";
                return Err(DataError::content(path, Place::Line(line), what));
            }
            rows.push(String::new());
        }
        fields.split(records.record(), delimiter);
        if fields.len() != header.len() {
            return Err(records.record_error(format!("{} fields, and the header has {}", fields.len(), header.len())));
        }
        let value = fields.iter().nth(at).unwrap_or_default().trim_ascii();
        rows.push(String::from_utf8_lossy(value).into_owned());
        next_line = records.line() + lines_of(records.record());
    }
    Ok(TextColumn { name: column.clone(), rows })
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
    fn tables_whose_rows_cannot_be_counted_are_refused() {
        let says = |text: &str, name, says: &str| {
            let message = read(text, name).unwrap_err();
            assert!(message.contains(says), "{message}");
        };
        says("id,date\n1,2024\n", None, "choose one of its columns: id, date");
        says("id,date\n1,2024\n", Some("day"), "there is no column day; the columns are id, date");
        says("id,id\n1,2\n", Some("id"), "several columns are named id");
        says("id,date\n1,2024\n\n2,2025\n", Some("date"), "line 3: this line is blank");
        says("id,date\n1,2024\n2\n", Some("date"), "line 3: 1 fields, and the header has 2");
        says("", None, "empty");
    }
}
