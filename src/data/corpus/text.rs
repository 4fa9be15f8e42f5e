//! Documents in text files.
//!
//! Without a given vocabulary they are read twice: to select the vocabulary, and to count its words.

use super::bags::{DocumentSink, add_tokens};
use super::tokenizer::{MAX_WORD_LENGTH, Tokenizer};
use super::vocabulary::{FilterReport, MAX_DISTINCT_WORDS, StopWords, WordCounts, WordFilter, WordTotals, read_vocabulary};
use crate::data::error::{DataError, Place, Result};
use crate::data::readers::format::{Format, JSON, SPREADSHEET, format_of};
use crate::data::readers::lines::{MAX_LINE, lines};
use crate::data::readers::source::{Source, read_error};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Text files, and the vocabulary by which their words are counted.
#[derive(Clone, Debug)]
pub struct Text {
    /// Files with a document per line, and folders whose files are documents, including subfolders; plain or gzip.
    pub inputs: Vec<PathBuf>,
    /// The vocabulary.
    pub vocabulary: Vocabulary,
}

/// The vocabulary of a text.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    /// The words of this file, plain or gzip: one per line in the order of their indices.
    Given(PathBuf),
    /// Words of `shortest` to [`MAX_WORD_LENGTH`] characters, selected by frequency.
    Chosen {
        /// The minimum number of characters.
        shortest: usize,
        /// Selects among these words.
        filter: WordFilter,
    },
}

/// The report of an import of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextReport {
    /// The number of documents that are lines, including blank lines.
    pub lines: u64,
    /// The number of files in folders, including files that are not text.
    pub files: u64,
    /// The number of files in folders that are left out because they are not text.
    pub not_text: u64,
    /// The first file that is not text.
    pub first_not_text: Option<PathBuf>,
    /// The number of documents with bytes that are not UTF-8 and were read as Latin-1.
    pub not_utf_8: u64,
    /// The words of the vocabulary, and those left out.
    pub words: VocabularyReport,
}

impl TextReport {
    /// The number of documents, including those without words.
    pub fn documents(&self) -> u64 {
        self.lines + self.files - self.not_text
    }
}

/// The words of a vocabulary in a text, and those left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabularyReport {
    /// A vocabulary was given.
    Given {
        /// The number of tokens of all words.
        tokens: u64,
        /// Words of the vocabulary that occur, and their tokens.
        found: WordTotals,
    },
    /// The vocabulary was selected.
    Chosen(FilterReport),
}

impl Default for VocabularyReport {
    fn default() -> Self {
        Self::Chosen(FilterReport::default())
    }
}

/// A file with documents.
enum DocumentFile {
    /// Each line is a document.
    Lines(PathBuf),
    /// The file is one document.
    Whole(PathBuf),
}

impl Text {
    /// The files in the order of their documents: inputs in the given order, and the files of a folder sorted by the bytes of their paths.
    fn document_files(&self) -> Result<Vec<DocumentFile>> {
        let mut document_files = Vec::new();
        for input in &self.inputs {
            if !input.is_dir() {
                document_files.push(DocumentFile::Lines(input.clone()));
                continue;
            }
            let is_not_hidden =
                |entry: &walkdir::DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
            let mut files = Vec::new();
            for entry in walkdir::WalkDir::new(input).follow_links(true).into_iter().filter_entry(is_not_hidden) {
                match entry {
                    Ok(entry) if entry.file_type().is_file() => files.push(entry.into_path()),
                    Ok(_) => {}
                    Err(error) => return Err(walk_error(input, error)),
                }
            }
            if files.is_empty() {
                let what = "there are no files in this folder, but perhaps hidden ones, which are passed over";
                return Err(DataError::content(input, Place::File, what));
            }
            files.sort_unstable_by(|one, other| one.as_os_str().as_encoded_bytes().cmp(other.as_os_str().as_encoded_bytes()));
            document_files.extend(files.into_iter().map(DocumentFile::Whole));
        }
        Ok(document_files)
    }

    /// Calls `each` with each document that has words of the vocabulary. Returns the vocabulary.
    ///
    /// # Errors
    /// If a file cannot be read or is not text, a document is too long, there are too many different words or none that count; and
    /// what `each` returns.
    pub(super) fn read(&self, each: &mut DocumentSink) -> Result<(Vec<String>, TextReport)> {
        let document_files = self.document_files()?;
        match &self.vocabulary {
            Vocabulary::Given(path) => {
                let vocabulary = read_vocabulary(path)?;
                let (found, TokenCounts { by_word, outside_vocabulary }) =
                    read_bags(&document_files, &vocabulary, &mut Tokenizer::new(1), each)?;
                let words = by_word.iter().filter(|&&tokens| tokens > 0).count() as u64;
                if words == 0 {
                    let what = format!(
                        "none of the {} words of the vocabulary occurs in the documents, whose words are in lower case",
                        vocabulary.len()
                    );
                    return Err(DataError::content(path, Place::File, what));
                }
                let sum = WordTotals { words, tokens: by_word.iter().sum() };
                let found = TextReport {
                    words: VocabularyReport::Given { tokens: sum.tokens + outside_vocabulary, found: sum },
                    ..found
                };
                Ok((vocabulary, found))
            }
            Vocabulary::Chosen { shortest, filter } => {
                let mut tokenizer = Tokenizer::new(*shortest);
                let stop_words = filter.stop_words.read(&mut tokenizer)?;
                let mut counts = WordCounts::default();
                let found = for_each_document(&document_files, &mut |number, text, path, place| {
                    let mut counted = true;
                    let is_utf_8 = tokenizer.each(text, |word| counted &= counts.add(word, number));
                    if counted {
                        return Ok(is_utf_8);
                    }
                    let what = format!(
                        "more than {MAX_DISTINCT_WORDS} different words up to here: give those that count with --vocabulary, or import less"
                    );
                    Err(DataError::content(path, place, what))
                })?;
                let (vocabulary, report) = counts.select(filter, &stop_words, found.documents());
                if vocabulary.is_empty() {
                    return Err(self.no_words_left(*shortest, filter, &found, report));
                }
                read_bags(&document_files, &vocabulary, &mut tokenizer, each)?;
                Ok((vocabulary, TextReport { words: VocabularyReport::Chosen(report), ..found }))
            }
        }
    }

    /// The error if the filter leaves out all words.
    fn no_words_left(&self, shortest: usize, filter: &WordFilter, found: &TextReport, report: FilterReport) -> DataError {
        let FilterReport { seen, stop_words, rare, common, .. } = report;
        let what = if seen.words == 0 {
            format!("no document has a word of {shortest} to {MAX_WORD_LENGTH} letters: is this text?")
        } else {
            format!(
                "none of the {} words of {} is kept: {} are stop words, {} are in fewer than {} documents, {} in more than {} of them: {}",
                seen.words,
                crate::text::counted(found.documents(), "document"),
                stop_words.words,
                rare.words,
                filter.least_documents,
                common.words,
                filter.most_share,
                if stop_words.words > rare.words.max(common.words) {
                    "choose other --stop-words"
                } else if rare.words >= common.words {
                    "lower --least-documents"
                } else {
                    "raise --most-share"
                }
            )
        };
        DataError::content(self.inputs.first().map_or(Path::new(""), PathBuf::as_path), Place::File, what)
    }

    /// Describes the selection of words, for the description of the corpus.
    pub(super) fn rule(&self) -> String {
        let Vocabulary::Chosen { shortest, filter } = &self.vocabulary else { return "as text".into() };
        let stop_words = match &filter.stop_words {
            StopWords::None => String::new(),
            StopWords::English => "no English stop words, ".into(),
            StopWords::File(path) => format!("no stop words of {}, ", crate::data::readers::source::file_name(path)),
        };
        format!(
            "as text (words of {shortest} letters or more, {stop_words}in at least {} documents and at most {} of all, the {} most frequent)",
            filter.least_documents, filter.most_share, filter.most_words
        )
    }
}

/// Numbers of tokens.
struct TokenCounts {
    /// Of each word of the vocabulary.
    by_word: Vec<u64>,
    /// Of all other words.
    outside_vocabulary: u64,
}

/// Calls `each` with the bag of words of each document that has words of the vocabulary.
fn read_bags(
    document_files: &[DocumentFile],
    vocabulary: &[String],
    tokenizer: &mut Tokenizer,
    each: &mut DocumentSink,
) -> Result<(TextReport, TokenCounts)> {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::with_capacity_and_hasher(vocabulary.len(), FxBuildHasher);
    for (number, word) in (0..).zip(vocabulary) {
        numbers.entry(word).or_insert(number);
    }
    let mut tokens = TokenCounts { by_word: vec![0; vocabulary.len()], outside_vocabulary: 0 };
    let mut entries = Vec::new();
    let found = for_each_document(document_files, &mut |number, text, path, place| {
        entries.clear();
        let is_utf_8 = tokenizer.each(text, |word| match numbers.get(word) {
            Some(&word) => {
                tokens.by_word[word as usize] += 1;
                entries.push((word, 1));
            }
            None => tokens.outside_vocabulary += 1,
        });
        add_tokens(0, entries.len() as u64).map_err(|what| DataError::content(path, place, what))?;
        if !entries.is_empty() {
            each(number, &mut entries)?;
        }
        Ok(is_utf_8)
    })?;
    Ok((found, tokens))
}

/// Receives a document: its number from 0, its bytes, and its file and place. Returns whether the bytes are UTF-8.
type TextSink<'a> = dyn FnMut(u64, &[u8], &Path, Place) -> Result<bool> + 'a;

/// Calls `each` with all documents.
fn for_each_document(document_files: &[DocumentFile], each: &mut TextSink) -> Result<TextReport> {
    let mut found = TextReport::default();
    let mut text = Vec::new();
    for file in document_files {
        match file {
            DocumentFile::Lines(path) => {
                let mut source = Source::open(path)?;
                let head = source.reader.fill_buf().map_err(|error| read_error(path, Place::File, error))?;
                if let Some(what) = reason_not_text(head) {
                    return Err(DataError::content(path, Place::File, format!("this is {what}")));
                }
                lines(source.reader, path, |line, row| {
                    found.not_utf_8 += u64::from(!each(found.lines + found.files, row, path, Place::Line(line))?);
                    found.lines += 1;
                    Ok(())
                })?;
            }
            DocumentFile::Whole(path) => {
                text.clear();
                // `Source::open` refuses empty files.
                if std::fs::metadata(path).map_err(DataError::io(path, "read"))?.len() > 0 {
                    let read = Source::open(path)?.reader.take(MAX_LINE + 1).read_to_end(&mut text);
                    read.map_err(|error| read_error(path, Place::File, error))?;
                }
                if text.len() as u64 > MAX_LINE {
                    let what = format!("longer than {MAX_LINE} bytes: a file in a folder is a document; cut it into parts");
                    return Err(DataError::content(path, Place::File, what));
                }
                if reason_not_text(&text).is_some() {
                    found.not_text += 1;
                    found.first_not_text.get_or_insert_with(|| path.clone());
                } else {
                    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
                    found.not_utf_8 += u64::from(!each(found.lines + found.files, text, path, Place::File)?);
                }
                found.files += 1;
            }
        }
    }
    Ok(found)
}

/// If a file that begins with these bytes is not readable text, what it is instead.
fn reason_not_text(head: &[u8]) -> Option<&'static str> {
    /// A zero byte within this many bytes means that a file is not text.
    const CHECKED_BYTES: usize = 8000;
    match format_of(head) {
        Format::Npy => Some("an NPY file, not text"),
        Format::Npz => Some("an NPZ or another ZIP file, not text: unpack it into a folder"),
        Format::Hdf5 => Some("an HDF5 file, not text"),
        Format::Other(SPREADSHEET) => Some("an office document, not text: save it as plain text"),
        Format::Other(what) if what != JSON => Some(what),
        _ if head.starts_with(b"%PDF-") => Some("a PDF file, not text: turn it into text (pdftotext)"),
        _ if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") => {
            Some("text in UTF-16: write it in UTF-8 (iconv -f UTF-16 -t UTF-8)")
        }
        _ if head.iter().take(CHECKED_BYTES).any(|&byte| byte == 0) => Some("no text: it has zero bytes"),
        _ => None,
    }
}

fn walk_error(folder: &Path, error: walkdir::Error) -> DataError {
    let path = error.path().unwrap_or(folder).to_path_buf();
    match error.into_io_error() {
        Some(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            DataError::content(&path, Place::File, "this link leads nowhere: remove it")
        }
        Some(error) => DataError::io(&path, "read")(error),
        None => DataError::content(&path, Place::File, "this link leads to a folder that it lies in: remove it"),
    }
}
