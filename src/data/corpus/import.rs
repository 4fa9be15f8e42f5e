//! Imports documents: counts their words, shuffles them, holds a part of them out, and writes a corpus.

use super::bags::{BagFormat, CorpusSize, DocumentSink};
use super::shuffle::Shuffle;
use super::text::{Text, TextReport, Vocabulary};
use super::vocabulary::read_vocabulary;
use super::write::CorpusWriter;
use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::{Source, file_name};
use crate::lda::Bag;
use crate::partial::folder_of;
use crate::random::Seed;
use crate::text;
use std::path::{Path, PathBuf};

/// What documents to import, and how.
#[derive(Clone, Debug)]
pub struct CorpusImport {
    /// The documents.
    pub input: Input,
    /// How many documents are held out.
    pub held_out: TestSize,
    /// The fraction of the tokens of a held-out document that is to be predicted.
    pub scored_share: f64,
    /// The seed of the order of documents, the first of which are held out, and of the choice of tokens to predict.
    pub seed: Seed,
}

/// The files of documents, and their format.
#[derive(Clone, Debug)]
pub enum Input {
    /// Bags of words.
    Counted {
        /// The file, plain or gzip.
        documents: PathBuf,
        /// The format of the file.
        format: BagFormat,
        /// The file of the vocabulary: one word per line, plain or gzip.
        vocabulary: Option<PathBuf>,
    },
    /// Text.
    Text(Text),
}

impl Input {
    /// Calls `each` with each document that has words. Returns the vocabulary if known, the numbers of documents and words, and the report on text.
    fn read(&self, each: &mut DocumentSink) -> Result<(Option<Vec<String>>, CorpusSize, Option<TextReport>)> {
        match self {
            Self::Counted { documents, format, vocabulary } => {
                let words = vocabulary.as_deref().map(read_vocabulary).transpose()?;
                let known_words = words.as_ref().map(|words| words.len() as u32);
                let sizes = format.read(Source::open(documents)?, known_words, each)?;
                Ok((words, sizes, None))
            }
            Self::Text(text) => {
                let (words, found) = text.read(each)?;
                let sizes = CorpusSize { documents: found.documents(), words: words.len() as u32 };
                Ok((Some(words), sizes, Some(found)))
            }
        }
    }

    /// The first file of documents.
    fn first_file(&self) -> &Path {
        match self {
            Self::Counted { documents, .. } => documents,
            Self::Text(text) => text.inputs.first().map_or(Path::new(""), PathBuf::as_path),
        }
    }

    /// Describes the input: file names, and the selection of words.
    fn describe(&self) -> String {
        const MAX_FILES: usize = 3;
        let (documents, vocabulary, rule) = match self {
            Self::Counted { documents, vocabulary, .. } => (std::slice::from_ref(documents), vocabulary.as_ref(), String::new()),
            Self::Text(text) => {
                let vocabulary = match &text.vocabulary {
                    Vocabulary::Given(path) => Some(path),
                    Vocabulary::Chosen { .. } => None,
                };
                (text.inputs.as_slice(), vocabulary, format!(" {}", text.rule()))
            }
        };
        let mut files: Vec<String> = documents.iter().take(MAX_FILES).map(|path| file_name(path)).collect();
        if documents.len() > MAX_FILES {
            files.push(format!("{} more", documents.len() - MAX_FILES));
        }
        files.extend(vocabulary.map(|path| file_name(path)));
        format!("{}{rule}", files.join(", "))
    }
}

/// The report of an import: what is not in the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusReport {
    /// The number of documents without words, which are left out.
    pub empty: u64,
    /// The number of tokens of held-out documents that are to be predicted.
    pub scored_tokens: u64,
    /// The report on text input.
    pub text: Option<TextReport>,
}

/// How many of the documents with words are held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TestSize {
    /// This number.
    Number(u64),
    /// This fraction, rounded to whole documents.
    Share(f64),
}

impl TestSize {
    fn count(self, documents: u64) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Share(share) => (share * documents as f64).round() as u64,
        }
    }
}

/// Imports documents into the corpus `output`.
///
/// # Errors
/// If a file cannot be read or is not what it should be, there are too few documents, or the corpus cannot be written. No partial
/// output remains.
pub fn import_corpus(import: &CorpusImport, output: &Path) -> Result<CorpusReport> {
    let CorpusImport { input, held_out: requested, scored_share, seed } = import;
    let mut shuffle = Shuffle::new(folder_of(output), *seed)?;
    let mut sorted = SortedEntries::default();
    let (words, CorpusSize { documents, words: vocabulary_size }, text_report) = input.read(&mut |number, entries| {
        sorted.set(entries);
        shuffle.push(number, &sorted.words, &sorted.counts)
    })?;
    let non_empty = shuffle.documents();
    let held_out = requested.count(non_empty);
    if held_out == 0 && *requested != TestSize::Number(0) {
        let what =
            format!("--test-fraction: this share of {} rounds to none: give a larger one", text::counted(non_empty, "document"));
        return Err(DataError::content(input.first_file(), Place::File, what));
    }
    if held_out >= non_empty {
        let what = match non_empty {
            0 => "no document has a word".to_owned(),
            _ => format!("{held_out} documents to hold out, of {non_empty} with words: leave some to learn from"),
        };
        return Err(DataError::content(input.first_file(), Place::File, what));
    }
    let mut writer = CorpusWriter::new(output)?;
    let mut written = 0;
    shuffle.finish(|document| {
        written += 1;
        let bag = Bag { words: &document.words, counts: &document.counts };
        match written <= held_out {
            true => writer.push_test(document.number, bag, *scored_share, *seed),
            false => writer.push_train(document.number, bag),
        }
    })?;
    writer.check_scored(*scored_share, input.first_file())?;
    let scored_tokens = writer.scored();
    let source = match held_out {
        0 => format!("{} in random order by seed {}", input.describe(), seed.0),
        _ => format!(
            "{} in random order by seed {}, {scored_share} of the tokens of {held_out} documents scored",
            input.describe(),
            seed.0
        ),
    };
    writer.finish(vocabulary_size, words.as_deref(), &source)?;
    Ok(CorpusReport { empty: documents - non_empty, scored_tokens, text: text_report })
}

/// The entries of a document, sorted by word and without duplicates.
#[derive(Default)]
struct SortedEntries {
    words: Vec<u32>,
    counts: Vec<u32>,
}

impl SortedEntries {
    fn set(&mut self, entries: &mut [(u32, u32)]) {
        entries.sort_unstable_by_key(|&(word, _)| word);
        self.words.clear();
        self.counts.clear();
        for &(word, count) in entries.iter() {
            match self.counts.last_mut() {
                // A document has at most `MAX_TOKENS` tokens: readers refuse longer ones.
                Some(sum) if self.words.last() == Some(&word) => *sum += count,
                _ => {
                    self.words.push(word);
                    self.counts.push(count);
                }
            }
        }
    }
}
