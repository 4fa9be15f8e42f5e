//! Vocabularies of text: read from a file, or selected by the frequency of words.

use super::limits::MAX_WORDS;
use super::stop_words;
use super::tokenizer::Tokenizer;
use crate::data::error::{DataError, NOT_UTF8, Place, Result};
use crate::data::readers::lines::lines;
use crate::data::readers::source::Source;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The maximum number of different words that are counted. It bounds memory: a word takes about 150 bytes.
pub const MAX_DISTINCT_WORDS: u32 = 1 << 24;

/// Words that are left out regardless of their frequency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopWords {
    /// No words.
    None,
    /// About 200 English words.
    English,
    /// The words of a text file.
    File(PathBuf),
}

impl StopWords {
    /// The stop words, split by the tokenizer of the documents.
    pub(super) fn read(&self, tokenizer: &mut Tokenizer) -> Result<HashSet<String>> {
        let mut found = HashSet::new();
        let mut add = |text: &[u8]| {
            tokenizer.each(text, |word| {
                found.insert(word.to_owned());
            })
        };
        match self {
            Self::None => {}
            Self::English => {
                add(stop_words::ENGLISH.as_bytes());
            }
            Self::File(path) => lines(Source::open(path)?.reader, path, |_, row| {
                add(row);
                Ok(())
            })?,
        }
        Ok(found)
    }
}

/// Selects the vocabulary of documents. The default numbers are those of gensim's `filter_extremes`, which however keeps the words in the most
/// documents instead of those with the most tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct WordFilter {
    /// Words that are left out first.
    pub stop_words: StopWords,
    /// Words in fewer documents are left out.
    pub least_documents: u64,
    /// Words in a larger share of the documents are left out.
    pub most_share: f64,
    /// The maximum size of the vocabulary: of the remaining words, those with the most tokens are kept.
    pub most_words: u32,
}

impl Default for WordFilter {
    fn default() -> Self {
        Self { stop_words: StopWords::None, least_documents: 5, most_share: 0.5, most_words: 100_000 }
    }
}

/// A number of different words, and the number of their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordTotals {
    /// The number of different words.
    pub words: u64,
    /// The number of tokens.
    pub tokens: u64,
}

impl WordTotals {
    fn add(&mut self, tokens: u64) {
        self.words += 1;
        self.tokens += tokens;
    }
}

/// The words that a [`WordFilter`] kept and left out. A word is counted under the first rule that leaves it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterReport {
    /// All words.
    pub seen: WordTotals,
    /// Stop words.
    pub stop_words: WordTotals,
    /// Words in too few documents.
    pub rare: WordTotals,
    /// Words in too large a share of the documents.
    pub common: WordTotals,
    /// Words beyond the maximum size of the vocabulary.
    pub over_limit: WordTotals,
    /// The vocabulary.
    pub kept: WordTotals,
}

/// The counts of a word.
struct WordCount {
    documents: u64,
    tokens: u64,
    /// The last document with this word.
    last_document: u64,
}

/// Counts the words of documents.
#[derive(Default)]
pub(super) struct WordCounts {
    /// The place of each word in `counts`.
    places: FxHashMap<Box<str>, u32>,
    counts: Vec<WordCount>,
}

impl WordCounts {
    /// Counts a token. Calls for one document must be consecutive. Returns false if there are too many different words.
    pub fn add(&mut self, word: &str, document: u64) -> bool {
        if let Some(&place) = self.places.get(word) {
            let count = &mut self.counts[place as usize];
            count.tokens += 1;
            count.documents += u64::from(count.last_document != document);
            count.last_document = document;
            return true;
        }
        let place = self.counts.len() as u32;
        if place == MAX_DISTINCT_WORDS {
            return false;
        }
        self.places.insert(word.into(), place);
        self.counts.push(WordCount { documents: 1, tokens: 1, last_document: document });
        true
    }

    /// Selects the vocabulary, sorted by code points.
    pub fn select(self, filter: &WordFilter, stop_words: &HashSet<String>, documents: u64) -> (Vec<String>, FilterReport) {
        let Self { places, counts } = self;
        let mut report = FilterReport::default();
        let mut kept = Vec::new();
        for (word, place) in places {
            let WordCount { documents: documents_with_word, tokens, .. } = counts[place as usize];
            report.seen.add(tokens);
            let left_out = if stop_words.contains(&*word) {
                &mut report.stop_words
            } else if documents_with_word < filter.least_documents {
                &mut report.rare
            } else if documents_with_word as f64 / documents as f64 > filter.most_share {
                &mut report.common
            } else {
                kept.push((word, tokens));
                continue;
            };
            left_out.add(tokens);
        }
        // Among equally frequent words, those that sort first are kept.
        kept.sort_unstable_by(|(one, tokens), (other, other_tokens)| other_tokens.cmp(tokens).then_with(|| one.cmp(other)));
        let size = kept.len().min(filter.most_words as usize);
        kept.drain(size..).for_each(|(_, tokens)| report.over_limit.add(tokens));
        kept.iter().for_each(|&(_, tokens)| report.kept.add(tokens));
        let mut kept: Vec<String> = kept.into_iter().map(|(word, _)| word.into()).collect();
        kept.sort_unstable();
        (kept, report)
    }
}

/// Reads a vocabulary: one word per line. A repeated word is an error. Empty lines are allowed at the end.
pub(super) fn read_vocabulary(path: &Path) -> Result<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut empty_line = None;
    lines(Source::open(path)?.reader, path, |line, row| {
        let content_error = |line, what: String| Err(DataError::content(path, Place::Line(line), what));
        let Ok(word) = std::str::from_utf8(row).map(str::trim) else {
            return content_error(line, format!("this {NOT_UTF8}"));
        };
        match empty_line {
            _ if word.is_empty() => {
                empty_line = empty_line.or(Some(line));
                Ok(())
            }
            Some(empty_line) => content_error(
                empty_line,
                "this line is empty: each line of a vocabulary has the word with the next number".into(),
            ),
            // Strings in HDF5 end at a zero byte.
            None if word.contains('\0') => content_error(line, "this word has a zero byte: is this a text file?".into()),
            None if words.len() as u64 == u64::from(MAX_WORDS) => content_error(line, format!("more than {MAX_WORDS} words")),
            None => {
                words.push(word.to_owned());
                Ok(())
            }
        }
    })?;
    if words.is_empty() {
        return Err(DataError::content(path, Place::File, "there are no words"));
    }
    if let Some((first, second)) = first_duplicate(&words) {
        // Word numbers count from 0, lines from 1.
        let line = |number: u32| u64::from(number) + 1;
        let what = format!("{:?} is in line {} already: a vocabulary has each word once", words[second as usize], line(first));
        return Err(DataError::content(path, Place::Line(line(second)), what));
    }
    Ok(words)
}

/// The first word that repeats an earlier one: the numbers of the earlier word and of this one.
fn first_duplicate(words: &[String]) -> Option<(u32, u32)> {
    // There are at most 2^31 words.
    let mut numbers: Vec<u32> = (0..words.len() as u32).collect();
    numbers.sort_unstable_by_key(|&number| (&words[number as usize], number));
    let pairs = numbers.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|&(one, other)| words[one as usize] == words[other as usize]).min_by_key(|&(_, second)| second)
}
