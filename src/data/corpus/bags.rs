//! Readers of bags of words: UCI's bag of words, Blei's lda-c, and matrices of Matrix Market.

use super::limits::{MAX_TOKENS, MAX_WORDS};
use crate::data::error::{DataError, Place, Result};
use crate::data::readers::lines::{lines, quoted};
use crate::data::readers::source::Source;
use std::path::Path;

/// A file format of bags of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BagFormat {
    /// UCI: three lines with the numbers of documents, words and entries, then lines `document word count`, sorted by document. Documents
    /// and words count from 1.
    Docword,
    /// Blei's lda-c: a line `n word:count ...` for each document, with n different words. Words count from 0.
    LdaC,
    /// Matrix Market, coordinate format: a header, the numbers of rows, columns and entries, then lines as in UCI's format. Rows are
    /// documents. Counts may be written as real numbers.
    MatrixMarket,
}

/// How many bytes at the beginning of a file are used to detect its format.
const DETECTION_BYTES: u64 = 1 << 16;

impl BagFormat {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docword => "UCI bag of words",
            Self::LdaC => "lda-c",
            Self::MatrixMarket => "Matrix Market",
        }
    }

    /// Detects the format of a file, plain or gzip; `None` if it does not contain bags of words.
    ///
    /// # Errors
    /// If the file cannot be read or is empty.
    pub fn detect(path: &Path) -> Result<Option<Self>> {
        let head = Source::head(path, DETECTION_BYTES)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
        if head.starts_with(b"%%MatrixMarket") {
            return Ok(Some(Self::MatrixMarket));
        }
        let whole = (head.len() as u64) < DETECTION_BYTES;
        let mut rows: Vec<&[u8]> = head.split(|&byte| byte == b'\n').collect();
        if !whole && rows.len() > 1 {
            rows.pop();
        }
        rows.retain(|row| !row.trim_ascii().is_empty());
        let numbers = |row: &[u8]| -> Option<Vec<u64>> { tokens(row).map(|token| parse_number(token).ok()).collect() };
        let sizes = rows.iter().take(3).filter(|row| numbers(row).is_some_and(|numbers| numbers.len() == 1)).count();
        let entry = rows.get(3).and_then(|row| numbers(row)).map(|numbers| numbers.len());
        if sizes == 3 && entry == Some(3) {
            return Ok(Some(Self::Docword));
        }
        // The first number must be the number of pairs. In LIBSVM files, it is a label.
        let is_bag = |row: &&[u8]| {
            let mut tokens = tokens(row);
            let count = tokens.next().and_then(|token| parse_number(token).ok());
            let pairs: Option<Vec<_>> = tokens.map(|pair| parse_pair(pair).ok()).collect();
            count.zip(pairs).is_some_and(|(count, pairs)| count == pairs.len() as u64)
        };
        let has_pairs = rows.iter().take(100).any(|row| row.contains(&b':'));
        Ok((has_pairs && rows.iter().take(100).all(is_bag)).then_some(Self::LdaC))
    }

    /// Calls `each` with each document that has words. Returns the numbers of documents and words, from the header of the file or else from
    /// its content. `known_words` is the size of the vocabulary, if known.
    ///
    /// # Errors
    /// If the text cannot be read or is not in this format; and those of `each`.
    pub fn read(self, source: Source<'_>, known_words: Option<u32>, each: &mut DocumentSink) -> Result<CorpusSize> {
        match self {
            Self::Docword | Self::MatrixMarket => read_triples(self, source, known_words, each),
            Self::LdaC => read_lda_c(source, known_words, each),
        }
    }
}

/// Receives a document: its number from 0, and its entries (word from 0, count) in any order.
pub type DocumentSink<'a> = dyn FnMut(u64, &mut Vec<(u32, u32)>) -> Result<()> + 'a;

fn tokens(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    row.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
}

fn parse_number(token: &[u8]) -> std::result::Result<u64, String> {
    let parsed =
        std::str::from_utf8(token).ok().filter(|_| token.iter().all(u8::is_ascii_digit)).and_then(|token| token.parse().ok());
    parsed.ok_or_else(|| format!("{} is no whole number", quoted(token)))
}

fn parse_pair(token: &[u8]) -> std::result::Result<(u64, u64), String> {
    let Some(colon) = token.iter().position(|&byte| byte == b':') else {
        return Err(format!("{} is not word:count, such as 17:2", quoted(token)));
    };
    Ok((parse_number(&token[..colon])?, parse_number(&token[colon + 1..])?))
}

/// Converts a count of tokens.
fn to_count(number: u64) -> std::result::Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("a count of {number}: at most {} are possible", u32::MAX))
}

/// Parses a count of tokens that is written as a real number: `2`, `2.0`, `2e0`.
fn parse_real_count(token: &[u8]) -> std::result::Result<u32, String> {
    let parsed: Option<f64> = std::str::from_utf8(token).ok().and_then(|token| token.parse().ok());
    match parsed {
        // NaN is not in the range.
        Some(count) if (0.0..=f64::from(u32::MAX)).contains(&count) && count.fract() == 0.0 => Ok(count as u32),
        _ => {
            let max = u32::MAX;
            Err(format!(
                "{} is no whole number of tokens up to {max}: topics need counts, not weights such as tf-idf",
                quoted(token)
            ))
        }
    }
}

/// Adds to the number of tokens of a document, up to [`MAX_TOKENS`].
pub(super) fn add_tokens(tokens: u64, more: u64) -> std::result::Result<u64, String> {
    let sum = tokens + more;
    if sum > MAX_TOKENS { Err(format!("a document of more than {MAX_TOKENS} tokens: cut it into parts")) } else { Ok(sum) }
}

/// The size of a corpus, including documents without words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorpusSize {
    /// The number of documents.
    pub documents: u64,
    /// W, the size of the vocabulary.
    pub words: u32,
}

/// The sizes in the header of triples, and the number of triples.
fn parse_sizes(numbers: &[u64], known_words: Option<u32>) -> std::result::Result<(CorpusSize, u64), String> {
    let &[documents, words, entries] = numbers else {
        return Err("expected the numbers of documents, words and entries".into());
    };
    let valid = u32::try_from(words).ok().filter(|words| (1..=MAX_WORDS).contains(words));
    let words = valid.ok_or_else(|| format!("{words} words: a vocabulary has from 1 to {MAX_WORDS}"))?;
    match known_words {
        Some(known_words) if known_words != words => {
            Err(format!("{words} words here, and {known_words} in the vocabulary: one of the files belongs to another corpus"))
        }
        _ => Ok((CorpusSize { documents, words }, entries)),
    }
}

/// Reads a header, then triples (document, word, count) sorted by document.
struct TripleReader<'a, 'b> {
    format: BagFormat,
    /// Whether counts are written as real numbers.
    real_counts: bool,
    known_words: Option<u32>,
    header: Vec<u64>,
    /// The size of the corpus and the number of entries, once the header has been read.
    sizes: Option<(CorpusSize, u64)>,
    /// The number of entries so far.
    entries_read: u64,
    /// The current document, from 0, and its entries and number of tokens.
    document: u64,
    entries: Vec<(u32, u32)>,
    tokens: u64,
    each: &'a mut DocumentSink<'b>,
}

impl TripleReader<'_, '_> {
    fn read_line(&mut self, line: u64, row: &[u8]) -> std::result::Result<(), LineError> {
        if self.format == BagFormat::MatrixMarket {
            if line == 1 {
                self.real_counts = has_real_counts(row)?;
                return Ok(());
            }
            if row.starts_with(b"%") {
                return Ok(());
            }
        }
        let mut row = tokens(row);
        let Some((sizes, expected)) = self.sizes else {
            // UCI's format has one size per line, Matrix Market all in one line.
            for token in row.take(4) {
                self.header.push(parse_number(token)?);
            }
            if self.header.len() >= 3 {
                self.sizes = Some(parse_sizes(&self.header, self.known_words)?);
            }
            return Ok(());
        };
        let Some(first) = row.next() else { return Ok(()) };
        let (Some(second), Some(third), None) = (row.next(), row.next(), row.next()) else {
            return Err(LineError::Content("expected three numbers: document, word, count".into()));
        };
        let (document, word) = (parse_number(first)?, parse_number(second)?);
        let count = if self.real_counts { parse_real_count(third)? } else { to_count(parse_number(third)?)? };
        if !(1..=sizes.documents).contains(&document) {
            return Err(LineError::Content(format!(
                "document {document}: the header promises documents 1 to {}",
                sizes.documents
            )));
        }
        let word = u32::try_from(word).ok().filter(|word| (1..=sizes.words).contains(word));
        let word =
            word.ok_or_else(|| format!("word {}: there are words 1 to {}", String::from_utf8_lossy(second), sizes.words))?;
        if document - 1 < self.document {
            return Err(LineError::Content(format!(
                "document {document} comes after document {}: sort the lines by document",
                self.document + 1
            )));
        }
        if document - 1 > self.document {
            self.finish_document().map_err(LineError::Sink)?;
            self.document = document - 1;
        }
        self.entries_read += 1;
        if self.entries_read > expected {
            return Err(LineError::Content(format!(
                "more entries than the {expected} that the header promises: fetch the file again"
            )));
        }
        self.tokens = add_tokens(self.tokens, count.into())?;
        if count > 0 {
            self.entries.push((word - 1, count));
        }
        Ok(())
    }

    fn finish_document(&mut self) -> Result<()> {
        if !self.entries.is_empty() {
            (self.each)(self.document, &mut self.entries)?;
            self.entries.clear();
        }
        self.tokens = 0;
        Ok(())
    }
}

/// An error in a line, or an error of the [`DocumentSink`].
enum LineError {
    Content(String),
    Sink(DataError),
}

impl From<String> for LineError {
    fn from(what: String) -> Self {
        Self::Content(what)
    }
}

/// Whether the header of a matrix declares real numbers rather than integers.
fn has_real_counts(header: &[u8]) -> std::result::Result<bool, String> {
    let words: Vec<String> = tokens(header).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["%%matrixmarket", "matrix", "coordinate", kind @ ("integer" | "real"), "general"] => Ok(*kind == "real"),
        _ => Err("expected %%MatrixMarket matrix coordinate integer general, or real: write the matrix of counts as such".into()),
    }
}

fn read_triples(format: BagFormat, source: Source<'_>, known_words: Option<u32>, each: &mut DocumentSink) -> Result<CorpusSize> {
    let Source { path, reader, .. } = source;
    let mut triples = TripleReader {
        format,
        real_counts: false,
        known_words,
        header: Vec::new(),
        sizes: None,
        entries_read: 0,
        document: 0,
        entries: Vec::new(),
        tokens: 0,
        each,
    };
    lines(reader, &path, |line, row| {
        triples.read_line(line, row).map_err(|error| match error {
            LineError::Content(what) => DataError::content(&path, Place::Line(line), what),
            LineError::Sink(error) => error,
        })
    })?;
    let file_error = |what: String| DataError::content(&path, Place::File, what);
    let Some((sizes, entries)) = triples.sizes else {
        return Err(file_error("the file ends before the numbers of documents, words and entries".into()));
    };
    if triples.entries_read != entries {
        return Err(file_error(format!(
            "{} entries, and the header promises {entries}: fetch the file again",
            triples.entries_read
        )));
    }
    triples.finish_document()?;
    Ok(sizes)
}

fn read_lda_c(source: Source<'_>, known_words: Option<u32>, each: &mut DocumentSink) -> Result<CorpusSize> {
    let Source { path, reader, .. } = source;
    let mut entries = Vec::new();
    let mut sizes = CorpusSize { documents: 0, words: known_words.unwrap_or(0) };
    lines(reader, &path, |line, row| {
        let line_error = |what: String| DataError::content(&path, Place::Line(line), what);
        let mut row = tokens(row);
        let Some(first) = row.next() else { return Ok(()) };
        let expected = parse_number(first).map_err(line_error)?;
        entries.clear();
        let mut tokens = 0;
        for token in row {
            let (word, count) = parse_pair(token).map_err(line_error)?;
            let valid = u32::try_from(word).ok().filter(|&word| word < known_words.unwrap_or(MAX_WORDS));
            let Some(word) = valid else {
                return Err(line_error(format!("word {word}: there are words 0 to {}", known_words.unwrap_or(MAX_WORDS) - 1)));
            };
            sizes.words = sizes.words.max(word + 1);
            let count = to_count(count).map_err(line_error)?;
            tokens = add_tokens(tokens, count.into()).map_err(line_error)?;
            entries.push((word, count));
        }
        if entries.len() as u64 != expected {
            let what = format!("the line begins with {expected}, but has {} word:count pairs: correct the number", entries.len());
            return Err(line_error(what));
        }
        entries.retain(|&(_, count)| count > 0);
        sizes.documents += 1;
        if entries.is_empty() { Ok(()) } else { each(sizes.documents - 1, &mut entries) }
    })?;
    Ok(sizes)
}
