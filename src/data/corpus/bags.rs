//! Readers of documents that are counted already: UCI's bag of words, Blei's lda-c, and matrices of Matrix Market.

use super::limits::{MOST_TOKENS, MOST_WORDS};
use crate::data::error::{DataError, Place, Result};
use crate::data::readers::lines::{lines, shown};
use crate::data::readers::source::Source;
use std::path::Path;

/// How counted documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BagFormat {
    /// UCI: three lines with the numbers of documents, words and entries, then lines `document word count`, counted from 1 and sorted by
    /// document.
    Docword,
    /// Blei's lda-c: a line `n word:count ...` for each document, with n different words, counted from 0.
    LdaC,
    /// Matrix Market, coordinates: a header, the numbers of rows, columns and entries, then lines as UCI's; rows are documents. Counts
    /// may be written as real numbers.
    MatrixMarket,
}

/// By so many bytes from its beginning a file's format is told.
const HEAD: u64 = 1 << 16;

impl BagFormat {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docword => "UCI bag of words",
            Self::LdaC => "lda-c",
            Self::MatrixMarket => "Matrix Market",
        }
    }

    /// The format of a file, plain or gzip; none where it is no counted documents.
    ///
    /// # Errors
    /// When the file cannot be read or is empty.
    pub fn detect(path: &Path) -> Result<Option<Self>> {
        let head = Source::head(path, HEAD)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
        if head.starts_with(b"%%MatrixMarket") {
            return Ok(Some(Self::MatrixMarket));
        }
        let whole = (head.len() as u64) < HEAD;
        let mut rows: Vec<&[u8]> = head.split(|&byte| byte == b'\n').collect();
        if !whole && rows.len() > 1 {
            rows.pop();
        }
        rows.retain(|row| !row.trim_ascii().is_empty());
        let numbers = |row: &[u8]| -> Option<Vec<u64>> { tokens(row).map(|token| number(token).ok()).collect() };
        let sizes = rows.iter().take(3).filter(|row| numbers(row).is_some_and(|numbers| numbers.len() == 1)).count();
        let entry = rows.get(3).and_then(|row| numbers(row)).map(|numbers| numbers.len());
        if sizes == 3 && entry == Some(3) {
            return Ok(Some(Self::Docword));
        }
        // The number in front must be that of the pairs, which no file of rows with labels keeps up.
        let is_bag = |row: &&[u8]| {
            let mut tokens = tokens(row);
            let count = tokens.next().and_then(|token| number(token).ok());
            let pairs: Option<Vec<_>> = tokens.map(|pair| pair_of(pair).ok()).collect();
            count.zip(pairs).is_some_and(|(count, pairs)| count == pairs.len() as u64)
        };
        let some = rows.iter().take(100).any(|row| row.contains(&b':'));
        Ok((some && rows.iter().take(100).all(is_bag)).then_some(Self::LdaC))
    }

    /// Hands over each document that has words; gives how many documents and words there are, as the file tells or as its words need.
    /// `most` is the size of the vocabulary that is known.
    ///
    /// # Errors
    /// When the text cannot be read or is not in this format: each with its line; and what `each` returns.
    pub fn read(self, source: Source<'_>, most: Option<u32>, each: &mut DocumentSink) -> Result<CorpusSize> {
        match self {
            Self::Docword | Self::MatrixMarket => read_triples(self, source, most, each),
            Self::LdaC => read_lda_c(source, most, each),
        }
    }
}

/// Takes a document: its number from 0, and its entries (word from 0, count) in any order.
pub type DocumentSink<'a> = dyn FnMut(u64, &mut Vec<(u32, u32)>) -> Result<()> + 'a;

fn tokens(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    row.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty())
}

fn number(token: &[u8]) -> std::result::Result<u64, String> {
    let parsed =
        std::str::from_utf8(token).ok().filter(|_| token.iter().all(u8::is_ascii_digit)).and_then(|token| token.parse().ok());
    parsed.ok_or_else(|| format!("{} is no whole number", shown(token)))
}

fn pair_of(token: &[u8]) -> std::result::Result<(u64, u64), String> {
    let Some(at) = token.iter().position(|&byte| byte == b':') else {
        return Err(format!("{} is not word:count, such as 17:2", shown(token)));
    };
    Ok((number(&token[..at])?, number(&token[at + 1..])?))
}

/// A count of tokens.
fn count_of(number: u64) -> std::result::Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("a count of {number}: at most {} are possible", u32::MAX))
}

/// A count of tokens that is written as a real number: `2`, `2.0`, `2e0`.
fn real_count(token: &[u8]) -> std::result::Result<u32, String> {
    let parsed: Option<f64> = std::str::from_utf8(token).ok().and_then(|token| token.parse().ok());
    match parsed {
        // Not of what is no number, either.
        Some(count) if (0.0..=f64::from(u32::MAX)).contains(&count) && count.fract() == 0.0 => Ok(count as u32),
        _ => {
            let most = u32::MAX;
            Err(format!(
                "{} is no whole number of tokens up to {most}: topics need counts, not weights such as tf-idf",
                shown(token)
            ))
        }
    }
}

/// The tokens of a document with so many more.
pub(super) fn few(tokens: u64, more: u64) -> std::result::Result<u64, String> {
    let sum = tokens + more;
    if sum > MOST_TOKENS { Err(format!("a document of more than {MOST_TOKENS} tokens: cut it into parts")) } else { Ok(sum) }
}

/// How many documents there are, also without words, and the size of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorpusSize {
    /// Documents.
    pub documents: u64,
    /// W.
    pub words: u32,
}

/// The sizes in front of triples, and how many of these there are.
fn sizes_of(numbers: &[u64], most: Option<u32>) -> std::result::Result<(CorpusSize, u64), String> {
    let &[documents, words, entries] = numbers else {
        return Err("expected the numbers of documents, words and entries".into());
    };
    let fits = u32::try_from(words).ok().filter(|words| (1..=MOST_WORDS).contains(words));
    let words = fits.ok_or_else(|| format!("{words} words: a vocabulary has from 1 to {MOST_WORDS}"))?;
    match most {
        Some(most) if most != words => {
            Err(format!("{words} words here, and {most} in the vocabulary: one of the files belongs to another corpus"))
        }
        _ => Ok((CorpusSize { documents, words }, entries)),
    }
}

/// Documents as triples, sorted by document, behind a header.
struct Triples<'a, 'b> {
    format: BagFormat,
    /// Whether counts are written as real numbers.
    real: bool,
    most: Option<u32>,
    header: Vec<u64>,
    sizes: Option<(CorpusSize, u64)>,
    /// Entries so far.
    seen: u64,
    /// The document that is being read, from 0, and its entries.
    document: u64,
    entries: Vec<(u32, u32)>,
    tokens: u64,
    each: &'a mut DocumentSink<'b>,
}

impl Triples<'_, '_> {
    fn line(&mut self, line: u64, row: &[u8]) -> std::result::Result<(), Wrong> {
        if self.format == BagFormat::MatrixMarket {
            if line == 1 {
                self.real = is_real(row)?;
                return Ok(());
            }
            if row.starts_with(b"%") {
                return Ok(());
            }
        }
        let mut row = tokens(row);
        let Some((sizes, promised)) = self.sizes else {
            // UCI's stand in a line each, Matrix Market's in one.
            for token in row.take(4) {
                self.header.push(number(token)?);
            }
            if self.header.len() >= 3 {
                self.sizes = Some(sizes_of(&self.header, self.most)?);
            }
            return Ok(());
        };
        let Some(first) = row.next() else { return Ok(()) };
        let (Some(second), Some(third), None) = (row.next(), row.next(), row.next()) else {
            return Err(Wrong::Text("expected three numbers: document, word, count".into()));
        };
        let (document, word) = (number(first)?, number(second)?);
        let count = if self.real { real_count(third)? } else { count_of(number(third)?)? };
        if !(1..=sizes.documents).contains(&document) {
            return Err(Wrong::Text(format!("document {document}: the header promises documents 1 to {}", sizes.documents)));
        }
        let word = u32::try_from(word).ok().filter(|word| (1..=sizes.words).contains(word));
        let word =
            word.ok_or_else(|| format!("word {}: there are words 1 to {}", String::from_utf8_lossy(second), sizes.words))?;
        if document - 1 < self.document {
            return Err(Wrong::Text(format!(
                "document {document} comes after document {}: sort the lines by document",
                self.document + 1
            )));
        }
        if document - 1 > self.document {
            self.hand_over().map_err(Wrong::Taken)?;
            self.document = document - 1;
        }
        self.seen += 1;
        if self.seen > promised {
            return Err(Wrong::Text(format!("more entries than the {promised} that the header promises: fetch the file again")));
        }
        self.tokens = few(self.tokens, count.into())?;
        if count > 0 {
            self.entries.push((word - 1, count));
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<()> {
        if !self.entries.is_empty() {
            (self.each)(self.document, &mut self.entries)?;
            self.entries.clear();
        }
        self.tokens = 0;
        Ok(())
    }
}

/// What is wrong in a line, or what the one who takes documents says.
enum Wrong {
    Text(String),
    Taken(DataError),
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Self::Text(what)
    }
}

/// Whether a matrix has real numbers, not integers.
fn is_real(header: &[u8]) -> std::result::Result<bool, String> {
    let words: Vec<String> = tokens(header).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["%%matrixmarket", "matrix", "coordinate", kind @ ("integer" | "real"), "general"] => Ok(*kind == "real"),
        _ => Err("expected %%MatrixMarket matrix coordinate integer general, or real: write the matrix of counts as such".into()),
    }
}

fn read_triples(format: BagFormat, source: Source<'_>, most: Option<u32>, each: &mut DocumentSink) -> Result<CorpusSize> {
    let Source { path, reader, .. } = source;
    let mut triples = Triples {
        format,
        real: false,
        most,
        header: Vec::new(),
        sizes: None,
        seen: 0,
        document: 0,
        entries: Vec::new(),
        tokens: 0,
        each,
    };
    lines(reader, &path, |line, row| {
        triples.line(line, row).map_err(|wrong| match wrong {
            Wrong::Text(what) => DataError::content(&path, Place::Line(line), what),
            Wrong::Taken(error) => error,
        })
    })?;
    let whole = |what: String| DataError::content(&path, Place::File, what);
    let Some((sizes, entries)) = triples.sizes else {
        return Err(whole("the file ends before the numbers of documents, words and entries".into()));
    };
    if triples.seen != entries {
        return Err(whole(format!("{} entries, and the header promises {entries}: fetch the file again", triples.seen)));
    }
    triples.hand_over()?;
    Ok(sizes)
}

fn read_lda_c(source: Source<'_>, most: Option<u32>, each: &mut DocumentSink) -> Result<CorpusSize> {
    let Source { path, reader, .. } = source;
    let mut entries = Vec::new();
    let mut sizes = CorpusSize { documents: 0, words: most.unwrap_or(0) };
    lines(reader, &path, |line, row| {
        let wrong = |what: String| DataError::content(&path, Place::Line(line), what);
        let mut row = tokens(row);
        let Some(first) = row.next() else { return Ok(()) };
        let promised = number(first).map_err(wrong)?;
        entries.clear();
        let mut tokens = 0;
        for token in row {
            let (word, count) = pair_of(token).map_err(wrong)?;
            let fits = u32::try_from(word).ok().filter(|&word| word < most.unwrap_or(MOST_WORDS));
            let Some(word) = fits else {
                return Err(wrong(format!("word {word}: there are words 0 to {}", most.unwrap_or(MOST_WORDS) - 1)));
            };
            sizes.words = sizes.words.max(word + 1);
            let count = count_of(count).map_err(wrong)?;
            tokens = few(tokens, count.into()).map_err(wrong)?;
            entries.push((word, count));
        }
        if entries.len() as u64 != promised {
            return Err(wrong(format!("{promised} words are promised, and {} come", entries.len())));
        }
        entries.retain(|&(_, count)| count > 0);
        sizes.documents += 1;
        if entries.is_empty() { Ok(()) } else { each(sizes.documents - 1, &mut entries) }
    })?;
    Ok(sizes)
}
