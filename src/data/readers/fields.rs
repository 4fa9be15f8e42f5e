//! Splits text tables into records and fields: streaming, with quotes as in RFC 4180 and any common delimiter.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::{Source, read_error};
use memchr::memchr;
use std::io::{ErrorKind, Read};

/// The initial size of the read buffer.
const INITIAL_BUFFER: usize = 1 << 18;
/// The maximum number of bytes of a record. Longer records come from unclosed quotes or from other kinds of files.
pub(crate) const MAX_RECORD: usize = 1 << 26;

/// The delimiter of the fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// This character; blanks around a field are ignored.
    Character(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

impl Delimiter {
    /// Parses a delimiter that a user typed, by name or as a character; `None` if it could be part of a number or text.
    pub fn named(typed: &str) -> Option<Self> {
        match typed {
            "comma" => Some(Self::Character(b',')),
            "semicolon" => Some(Self::Character(b';')),
            "tab" | "\\t" => Some(Self::Character(b'\t')),
            "blanks" | " " => Some(Self::Blanks),
            _ => match *typed.as_bytes() {
                [byte] if b"\t,;:|!#$%&*/<=>?@^_~".contains(&byte) => Some(Self::Character(byte)),
                _ => None,
            },
        }
    }

    /// The name in messages.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Blanks => "blanks".into(),
            Self::Character(b'\t') => "tabs".into(),
            Self::Character(b',') => "commas".into(),
            Self::Character(b';') => "semicolons".into(),
            Self::Character(byte) => format!("{:?}", char::from(byte)),
        }
    }

    /// Detects the delimiter from the first line. The order matters: fields between semicolons may have decimal commas, text between tabs
    /// may have commas, and blanks occur everywhere.
    pub(crate) fn detect(line: &[u8]) -> Self {
        let mut quoted = false;
        let mut seen = [false; 256];
        for &byte in line {
            quoted ^= byte == b'"';
            seen[usize::from(byte)] |= !quoted;
        }
        let has_no_empty_field = || line.split(|&byte| byte == b'\t').all(|field| !field.trim_ascii().is_empty());
        match [b';', b'\t', b','].into_iter().find(|&byte| seen[usize::from(byte)]) {
            // Tabs that align columns or end lines are blanks.
            Some(b'\t') if !has_no_empty_field() => Self::Blanks,
            Some(byte) => Self::Character(byte),
            None => Self::Blanks,
        }
    }

    fn ends_field(self, byte: u8) -> bool {
        match self {
            Self::Character(delimiter) => byte == delimiter,
            Self::Blanks => byte == b' ' || byte == b'\t',
        }
    }
}

/// The state of the parser within a field. A quote is special only at the start of a field; two quotes within quotes mean one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Plain,
    Quoted,
    /// After a quote within quotes, which ends the field or is the first of two.
    Quote,
}

impl State {
    /// The state after `byte`, and whether the byte belongs to the field.
    fn step(self, byte: u8, delimiter: Delimiter) -> (Self, bool) {
        match (self, byte) {
            (Self::Quoted, b'"') => (Self::Quote, false),
            (Self::Quoted, _) => (Self::Quoted, true),
            (Self::Quote, b'"') => (Self::Quoted, true),
            _ if delimiter.ends_field(byte) => (Self::Start, false),
            (Self::Start, b'"') => (Self::Quoted, false),
            (Self::Start, b' ' | b'\t') => (Self::Start, true),
            _ => (Self::Plain, true),
        }
    }
}

/// The fields of a record, unquoted.
#[derive(Default)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Whether text follows a closing quote. Then a quote is missing, and lines may have been joined.
    text_after_quote: bool,
}

impl Fields {
    pub(crate) fn split(&mut self, record: &[u8], delimiter: Delimiter) {
        self.bytes.clear();
        self.ends.clear();
        self.text_after_quote = false;
        let mut state = State::Start;
        let mut closed = false;
        for &byte in record {
            let (next, belongs) = state.step(byte, delimiter);
            // Blanks may follow a closing quote.
            closed = (closed || state == State::Quote) && next == State::Plain;
            self.text_after_quote |= closed && !byte.is_ascii_whitespace();
            if belongs {
                self.bytes.push(byte);
            } else if next == State::Start && !(delimiter == Delimiter::Blanks && state == State::Start) {
                self.ends.push(self.bytes.len());
            }
            state = next;
        }
        if !(delimiter == Delimiter::Blanks && state == State::Start) {
            self.ends.push(self.bytes.len());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether text follows a closing quote.
    pub(crate) fn has_text_after_quote(&self) -> bool {
        self.text_after_quote
    }

    /// The fields without the blanks around them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default().trim_ascii())
    }
}

/// Reads the records of a text file one by one through a buffer.
pub(crate) struct Records<'a> {
    source: Source<'a>,
    buffer: Vec<u8>,
    /// Positions in the buffer: the start and end of the current record, the start of the next, and the end of the data.
    start: usize,
    end: usize,
    next: usize,
    filled: usize,
    at_eof: bool,
    line: u64,
    next_line: u64,
}

impl<'a> Records<'a> {
    /// Starts before the first record, after a byte order mark.
    pub(crate) fn new(source: Source<'a>) -> Result<Self> {
        let buffer = vec![0; INITIAL_BUFFER];
        let mut records = Self { source, buffer, start: 0, end: 0, next: 0, filled: 0, at_eof: false, line: 1, next_line: 1 };
        while records.filled < 3 && !records.at_eof {
            records.fill()?;
        }
        let head = &records.buffer[..records.filled];
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(records.record_error("the text is UTF-16: save it as UTF-8"));
        }
        if head.starts_with(&[0xef, 0xbb, 0xbf]) {
            records.start = 3;
            records.next = 3;
        }
        Ok(records)
    }

    /// The first line of the next record, without line end; empty at the end of the file.
    pub(crate) fn peek(&mut self) -> Result<&[u8]> {
        loop {
            self.start = self.next;
            let (length, found) = match self.line_end(0)? {
                Some(length) => (length, true),
                None => (self.filled - self.start, false),
            };
            let blank = self.buffer[self.start..self.start + length].trim_ascii().is_empty();
            if !(blank && found) {
                return Ok(self.buffer[self.start..self.start + length].trim_ascii_end());
            }
            self.next = self.start + length + 1;
            self.next_line += 1;
        }
    }

    /// Advances to the next record, skipping empty lines. Returns false at the end of the file.
    pub(crate) fn advance(&mut self, delimiter: Delimiter) -> Result<bool> {
        loop {
            self.start = self.next;
            self.line = self.next_line;
            let mut state = State::Start;
            let mut scanned = 0;
            let length = loop {
                let (length, last) = match self.line_end(scanned)? {
                    Some(length) => (length, false),
                    None => (self.filled - self.start, true),
                };
                let line = &self.buffer[self.start + scanned..self.start + length];
                self.next_line += 1;
                if state == State::Quoted || memchr(b'"', line).is_some() {
                    state = line.iter().fold(state, |state, &byte| state.step(byte, delimiter).0);
                }
                if state != State::Quoted {
                    self.next = self.start + length + usize::from(!last);
                    break length;
                }
                if last {
                    return Err(self.record_error("a quote that opens in this record is never closed: close it, or remove it"));
                }
                scanned = length + 1;
            };
            let record = &self.buffer[self.start..self.start + length];
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            self.end = self.start + record.len();
            if !record.trim_ascii().is_empty() {
                return Ok(true);
            }
            if self.at_eof && self.next >= self.filled {
                return Ok(false);
            }
        }
    }

    /// The current record, without line end.
    pub(crate) fn record(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The first line of the current record, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.source.path
    }

    /// An error in the current record.
    pub(crate) fn record_error(&self, what: impl Into<String>) -> DataError {
        DataError::content(&self.source.path, Place::Line(self.line), what)
    }

    /// The offset in the record of the first line end after `scanned` bytes; `None` if the file ends before.
    fn line_end(&mut self, mut scanned: usize) -> Result<Option<usize>> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.start + scanned..self.filled]) {
                return Ok(Some(scanned + at));
            }
            scanned = self.filled - self.start;
            if self.at_eof {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Reads more data, keeping the current record.
    fn fill(&mut self) -> Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            // `next` is not before `start`.
            self.next -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            if self.filled >= MAX_RECORD {
                let what = "a record of more than 64 MiB: this is no text table, or a quote is not closed";
                return Err(DataError::content(&self.source.path, Place::Line(self.next_line), what));
            }
            self.buffer.resize(2 * self.filled, 0);
        }
        loop {
            match self.source.reader.read(&mut self.buffer[self.filled..]) {
                Ok(read) => {
                    self.filled += read;
                    self.at_eof = read == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(read_error(&self.source.path, Place::Line(self.next_line), error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use rand::RngExt;
    use std::path::Path;

    fn records(text: &[u8], delimiter: Delimiter) -> Result<Vec<Vec<Vec<u8>>>> {
        let mut records = Records::new(Source::of_bytes(Path::new("x.csv"), text)?)?;
        let (mut all, mut fields) = (Vec::new(), Fields::default());
        while records.advance(delimiter)? {
            fields.split(records.record(), delimiter);
            all.push(fields.iter().map(<[u8]>::to_vec).collect());
        }
        Ok(all)
    }

    /// Compares random texts of special bytes with the `csv` crate, which also ends records at single carriage returns, and does not skip
    /// blanks before a quote.
    #[test]
    fn records_and_fields_are_those_of_the_csv_crate() {
        let mut random = Seed(5).stream(Who::Run, 0, Purpose::Partition);
        let (mut same, mut quoted) = (0, 0);
        for _ in 0..20_000 {
            let length = random.random_range(1..40);
            let text: Vec<u8> = (0..length).map(|_| b"ab1,,\"\"\n\n "[random.random_range(0..10)]).collect();
            let mut text = String::from_utf8(text).unwrap();
            while text.contains(" \"") {
                text = text.replace(" \"", "\"");
            }
            let text = text.replace('\n', if length % 2 == 0 { "\r\n" } else { "\n" });
            let Ok(ours) = records(text.as_bytes(), Delimiter::Character(b',')) else {
                // The crate accepts an open quote at the end of the file; here it is an error.
                continue;
            };
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let theirs: Vec<Vec<Vec<u8>>> = reader
                .byte_records()
                .map(|record| record.unwrap().iter().map(|field| field.trim_ascii().to_vec()).collect())
                // We skip lines of blanks too.
                .filter(|record: &Vec<Vec<u8>>| record.len() > 1 || !record[0].is_empty())
                .collect();
            let ours: Vec<_> = ours.into_iter().filter(|record| record.len() > 1 || !record[0].is_empty()).collect();
            assert_eq!(ours, theirs, "{text:?}");
            same += 1;
            quoted += usize::from(text.contains(",\"") && !ours.is_empty());
        }
        assert!(same > 10_000 && quoted > 1_000, "{same} {quoted}");
    }

    #[test]
    fn records_longer_than_the_window_and_lines_of_any_place_are_whole() {
        let long = "7".repeat(3 * INITIAL_BUFFER);
        let mut text = format!("{long},1\n");
        (0..INITIAL_BUFFER).for_each(|i| text.push_str(&format!("{i},{}\n", i % 3)));
        let all = records(text.as_bytes(), Delimiter::Character(b',')).unwrap();
        assert_eq!((all.len(), all[0][0].len()), (INITIAL_BUFFER + 1, long.len()));
        assert!(all[1..].iter().enumerate().all(|(i, record)| record[0] == i.to_string().as_bytes()));
    }

    /// Found by fuzzing: bytes that were scanned before the buffer moved are scanned again.
    #[test]
    fn empty_lines_may_come_first() {
        for before in 0..5 {
            for text in ["1,2", "1,2\n3,4\n"] {
                let text = "\n".repeat(before) + text;
                let mut records = Records::new(Source::of_bytes(Path::new("x.csv"), text.as_bytes()).unwrap()).unwrap();
                assert_eq!(records.peek().unwrap(), b"1,2");
                assert!(records.advance(Delimiter::Character(b',')).unwrap());
                assert_eq!((records.record(), records.line()), (&b"1,2"[..], before as u64 + 1));
            }
        }
    }

    #[test]
    fn delimiters_are_detected() {
        for (line, delimiter) in [
            ("1,2,3", Delimiter::Character(b',')),
            ("1, 2, 3", Delimiter::Character(b',')),
            ("1,5;2,5", Delimiter::Character(b';')),
            ("\"a;b\",c", Delimiter::Character(b',')),
            ("a b\tc, d", Delimiter::Character(b'\t')),
            ("1.0 \t2.0 \t3", Delimiter::Character(b'\t')),
            ("1.0\t\t2.0", Delimiter::Blanks),
            ("  1 2  3 ", Delimiter::Blanks),
            ("alone", Delimiter::Blanks),
        ] {
            assert_eq!(Delimiter::detect(line.as_bytes()), delimiter, "{line:?}");
        }
        assert_eq!(Delimiter::named("|"), Some(Delimiter::Character(b'|')));
        assert!(["", "e", "1", ".", "-", "\"", "::"].iter().all(|typed| Delimiter::named(typed).is_none()));
    }

    #[test]
    fn a_quote_may_hold_lines_and_must_close() {
        let text = b"\"a\r\nb\"\"c\" , x\n\n2,3";
        assert_eq!(records(text, Delimiter::Character(b',')).unwrap(), [[&b"a\r\nb\"c"[..], b"x"], [b"2", b"3"]]);
        assert_eq!(records(b"1, \"a, b\" ,2", Delimiter::Character(b',')).unwrap(), [[&b"1"[..], b"a, b", b"2"]]);
        assert_eq!(records(b" \"a b\"  c\t\n", Delimiter::Blanks).unwrap(), [[b"a b".to_vec(), b"c".to_vec()]]);
        let message = records(b"1,2\n3,\"4\n5,6\n", Delimiter::Character(b',')).unwrap_err().to_string();
        assert!(message.contains("x.csv, line 2: a quote"), "{message}");
    }
}
