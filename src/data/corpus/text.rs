//! Documents in text: where they stand, and what becomes of their words in two passes over them.

use super::bags::{DocumentSink, few};
use super::vocabulary::{Chosen, Counts, MOST_DISTINCT, StopWords, WordFilter, WordTotals, read_vocabulary};
use super::words::{LONGEST_WORD, Words};
use crate::data::error::{DataError, Place, Result};
use crate::data::readers::format::{Format, of_head};
use crate::data::readers::lines::{LONGEST, lines};
use crate::data::readers::source::{Source, read_error};
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Documents in text, and which of their words count.
#[derive(Clone, Debug)]
pub struct Text {
    /// Files, in each line a document, and folders, in each file of them and of the folders in them a document; plain or gzip.
    pub inputs: Vec<PathBuf>,
    /// Which words count.
    pub vocabulary: Vocabulary,
}

/// Which words of a text count.
#[derive(Clone, Debug)]
pub enum Vocabulary {
    /// Those of this file, one a line in the order of their numbers, plain or gzip.
    Given(PathBuf),
    /// Words of `shortest` to [`LONGEST_WORD`] characters, by how often they occur.
    Chosen {
        /// The fewest characters.
        shortest: usize,
        /// Among these.
        choice: WordFilter,
    },
}

/// What was found in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextReport {
    /// Documents that are a line of a file; blank lines too.
    pub lines: u64,
    /// Documents that are a file of a folder; those too that are left out.
    pub files: u64,
    /// Files of folders that are left out because they are no text.
    pub no_text: u64,
    /// The first of these.
    pub first_no_text: Option<PathBuf>,
    /// Documents with bytes that are not UTF-8 and were taken for Latin-1.
    pub not_utf_8: u64,
    /// What became of the words.
    pub words: VocabularyReport,
}

impl TextReport {
    /// How many documents there are, also without words.
    pub fn documents(&self) -> u64 {
        self.lines + self.files - self.no_text
    }
}

/// What became of the words of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabularyReport {
    /// A vocabulary was given.
    Given {
        /// Tokens of all words.
        tokens: u64,
        /// Words of the vocabulary that occur, and their tokens.
        found: WordTotals,
    },
    /// It was chosen.
    Chosen(Chosen),
}

impl Default for VocabularyReport {
    fn default() -> Self {
        Self::Chosen(Chosen::default())
    }
}

/// Where a document or several stand.
enum Piece {
    /// A document in each line.
    Lines(PathBuf),
    /// One in all.
    Whole(PathBuf),
}

impl Text {
    /// The files, in the order in which their documents are numbered: that of the inputs, and in a folder that of the bytes of paths.
    fn pieces(&self) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for input in &self.inputs {
            if !input.is_dir() {
                pieces.push(Piece::Lines(input.clone()));
                continue;
            }
            let is_shown =
                |entry: &walkdir::DirEntry| entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".");
            let mut files = Vec::new();
            for entry in walkdir::WalkDir::new(input).follow_links(true).into_iter().filter_entry(is_shown) {
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
            pieces.extend(files.into_iter().map(Piece::Whole));
        }
        Ok(pieces)
    }

    /// Hands over each document that has words of the vocabulary, and gives the vocabulary.
    ///
    /// # Errors
    /// When a file cannot be read or is no text, a document is too long, there are too many different words or none that count; and
    /// what `each` returns.
    pub(super) fn read(&self, each: &mut DocumentSink) -> Result<(Vec<String>, TextReport)> {
        let pieces = self.pieces()?;
        match &self.vocabulary {
            Vocabulary::Given(path) => {
                let vocabulary = read_vocabulary(path)?;
                let (found, Tokens { of_words, others }) = bags(&pieces, &vocabulary, &mut Words::new(1), each)?;
                let words = of_words.iter().filter(|&&tokens| tokens > 0).count() as u64;
                if words == 0 {
                    let what =
                        format!("none of the {} words of the vocabulary occurs: they must be in lower case", vocabulary.len());
                    return Err(DataError::content(path, Place::File, what));
                }
                let sum = WordTotals { words, tokens: of_words.iter().sum() };
                let found = TextReport { words: VocabularyReport::Given { tokens: sum.tokens + others, found: sum }, ..found };
                Ok((vocabulary, found))
            }
            Vocabulary::Chosen { shortest, choice } => {
                let mut words = Words::new(*shortest);
                let stop_words = choice.stop_words.read(&mut words)?;
                let mut counts = Counts::default();
                let found = documents(&pieces, &mut |number, text, path, place| {
                    let mut room = true;
                    let sound = words.each(text, |word| room &= counts.add(word, number));
                    if room {
                        return Ok(sound);
                    }
                    let what = format!(
                        "more than {MOST_DISTINCT} different words up to here: give those that count with --vocabulary, or import less"
                    );
                    Err(DataError::content(path, place, what))
                })?;
                let (vocabulary, chosen) = counts.choose(choice, &stop_words, found.documents());
                if vocabulary.is_empty() {
                    return Err(self.nothing_left(*shortest, choice, &found, chosen));
                }
                bags(&pieces, &vocabulary, &mut words, each)?;
                Ok((vocabulary, TextReport { words: VocabularyReport::Chosen(chosen), ..found }))
            }
        }
    }

    /// No word is kept.
    fn nothing_left(&self, shortest: usize, choice: &WordFilter, found: &TextReport, chosen: Chosen) -> DataError {
        let Chosen { seen, stopped, rare, common, .. } = chosen;
        let what = if seen.words == 0 {
            format!("no document has a word of {shortest} to {LONGEST_WORD} letters: is this text?")
        } else {
            format!(
                "none of the {} words is kept: {} are stop words, {} are in fewer than {} documents, {} in more than {} of them, which are \
                 {} in all; lower --least-documents, or raise --most-share",
                seen.words,
                stopped.words,
                rare.words,
                choice.least_documents,
                common.words,
                choice.most_share,
                found.documents()
            )
        };
        DataError::content(self.inputs.first().map_or(Path::new(""), PathBuf::as_path), Place::File, what)
    }

    /// What was done to the words, for people.
    pub(super) fn rule(&self) -> String {
        let Vocabulary::Chosen { shortest, choice } = &self.vocabulary else { return "as text".into() };
        let stop_words = match &choice.stop_words {
            StopWords::None => String::new(),
            StopWords::English => "no English stop words, ".into(),
            StopWords::File(path) => format!("no stop words of {}, ", crate::data::readers::source::file_name(path)),
        };
        format!(
            "as text (words of {shortest} letters or more, {stop_words}in at least {} documents and at most {} of all, the {} most frequent)",
            choice.least_documents, choice.most_share, choice.most_words
        )
    }
}

/// How many tokens words have.
struct Tokens {
    /// Each of the vocabulary.
    of_words: Vec<u64>,
    /// All that it does not have.
    others: u64,
}

/// Hands over the words of documents by their numbers.
fn bags(pieces: &[Piece], vocabulary: &[String], words: &mut Words, each: &mut DocumentSink) -> Result<(TextReport, Tokens)> {
    let mut numbers: HashMap<&str, u32> = HashMap::with_capacity(vocabulary.len());
    for (number, word) in (0..).zip(vocabulary) {
        numbers.entry(word).or_insert(number);
    }
    let mut tokens = Tokens { of_words: vec![0; vocabulary.len()], others: 0 };
    let mut entries = Vec::new();
    let found = documents(pieces, &mut |number, text, path, place| {
        entries.clear();
        let sound = words.each(text, |word| match numbers.get(word) {
            Some(&word) => {
                tokens.of_words[word as usize] += 1;
                entries.push((word, 1));
            }
            None => tokens.others += 1,
        });
        few(0, entries.len() as u64).map_err(|what| DataError::content(path, place, what))?;
        if !entries.is_empty() {
            each(number, &mut entries)?;
        }
        Ok(sound)
    })?;
    Ok((found, tokens))
}

/// Takes a document: its number from 0, its bytes and where it stands; gives whether these are UTF-8.
type EachText<'a> = dyn FnMut(u64, &[u8], &Path, Place) -> Result<bool> + 'a;

/// Hands over all documents.
fn documents(pieces: &[Piece], each: &mut EachText) -> Result<TextReport> {
    let mut found = TextReport::default();
    let mut text = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Lines(path) => {
                let mut source = Source::open(path)?;
                let head = source.reader.fill_buf().map_err(|error| read_error(path, Place::File, error))?;
                if let Some(what) = no_text(head) {
                    return Err(DataError::content(path, Place::File, format!("this is {what}")));
                }
                lines(source.reader, path, |line, row| {
                    found.not_utf_8 += u64::from(!each(found.lines + found.files, row, path, Place::Line(line))?);
                    found.lines += 1;
                    Ok(())
                })?;
            }
            Piece::Whole(path) => {
                text.clear();
                // An empty file is no source.
                if std::fs::metadata(path).map_err(DataError::io(path, "read"))?.len() > 0 {
                    let read = Source::open(path)?.reader.take(LONGEST + 1).read_to_end(&mut text);
                    read.map_err(|error| read_error(path, Place::File, error))?;
                }
                if text.len() as u64 > LONGEST {
                    let what = format!("longer than {LONGEST} bytes: a file in a folder is a document; cut it into parts");
                    return Err(DataError::content(path, Place::File, what));
                }
                if no_text(&text).is_some() {
                    found.no_text += 1;
                    found.first_no_text.get_or_insert_with(|| path.clone());
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

/// What a file is that begins with these bytes, if it is no text that can be read here.
fn no_text(head: &[u8]) -> Option<&'static str> {
    /// Text may have a zero byte by accident, but hardly so early.
    const LOOKED_AT: usize = 8000;
    match of_head(head) {
        Format::Npy => Some("an NPY file, not text"),
        Format::Npz => Some("an NPZ or another ZIP file, not text: unpack it into a folder"),
        Format::Hdf5 => Some("an HDF5 file, not text"),
        Format::Other(what) => Some(what),
        _ if head.starts_with(b"%PDF-") => Some("a PDF file, not text: turn it into text (pdftotext)"),
        _ if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") => {
            Some("text in UTF-16: write it in UTF-8 (iconv -f UTF-16 -t UTF-8)")
        }
        _ if head.iter().take(LOOKED_AT).any(|&byte| byte == 0) => Some("no text: it has zero bytes"),
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
