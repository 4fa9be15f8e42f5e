//! Vocabularies of text: given as a list, or chosen among the words that occur by how often they do.

use super::limits::MOST_WORDS;
use super::stop_words;
use super::words::Words;
use crate::data::error::{DataError, Place, Result};
use crate::data::readers::lines::lines;
use crate::data::readers::source::Source;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The most different words that are counted: with some 150 bytes for each of them, memory is bounded.
pub const MOST_DISTINCT: u32 = 1 << 24;

/// Words that are left out whatever their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopWords {
    /// None.
    None,
    /// Some 200 of English.
    English,
    /// Those in a file, between blanks or in lines.
    File(PathBuf),
}

impl StopWords {
    /// These words, found as those of documents are.
    pub(super) fn read(&self, words: &mut Words) -> Result<HashSet<String>> {
        let mut found = HashSet::new();
        let mut take = |text: &[u8]| {
            words.each(text, |word| {
                found.insert(word.to_owned());
            })
        };
        match self {
            Self::None => {}
            Self::English => {
                take(stop_words::ENGLISH.as_bytes());
            }
            Self::File(path) => lines(Source::open(path)?.reader, path, |_, row| {
                take(row);
                Ok(())
            })?,
        }
        Ok(found)
    }
}

/// Which words of a text become its vocabulary: the defaults are those of gensim's `filter_extremes`.
#[derive(Clone, Debug, PartialEq)]
pub struct WordFilter {
    /// Left out first.
    pub stop_words: StopWords,
    /// Words in fewer documents are left out.
    pub least_documents: u64,
    /// Words in a larger share of the documents are left out.
    pub most_share: f64,
    /// Of what is then there, so many words with the most tokens are kept.
    pub most_words: u32,
}

impl Default for WordFilter {
    fn default() -> Self {
        Self { stop_words: StopWords::None, least_documents: 5, most_share: 0.5, most_words: 100_000 }
    }
}

/// Words, and how many tokens they have in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordTotals {
    /// Different words.
    pub words: u64,
    /// Tokens.
    pub tokens: u64,
}

impl WordTotals {
    fn add(&mut self, tokens: u64) {
        self.words += 1;
        self.tokens += tokens;
    }
}

/// What a [`WordFilter`] kept and left out; a word is counted where it is left out first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// All words.
    pub seen: WordTotals,
    /// Stop words.
    pub stopped: WordTotals,
    /// Words in too few documents.
    pub rare: WordTotals,
    /// Words in too large a share of the documents.
    pub common: WordTotals,
    /// Words beyond those with the most tokens.
    pub beyond: WordTotals,
    /// The vocabulary.
    pub kept: WordTotals,
}

/// How often a word occurs.
struct Seen {
    documents: u64,
    tokens: u64,
    /// The document where it was seen last.
    last: u64,
}

/// The words of documents, counted.
#[derive(Default)]
pub(super) struct Counts {
    numbers: HashMap<Box<str>, u32>,
    seen: Vec<Seen>,
}

impl Counts {
    /// Counts a token in a document; documents come one after another. Gives whether there is room for the word.
    pub fn add(&mut self, word: &str, document: u64) -> bool {
        if let Some(&number) = self.numbers.get(word) {
            let seen = &mut self.seen[number as usize];
            seen.tokens += 1;
            seen.documents += u64::from(seen.last != document);
            seen.last = document;
            return true;
        }
        let number = self.seen.len() as u32;
        if number == MOST_DISTINCT {
            return false;
        }
        self.numbers.insert(word.into(), number);
        self.seen.push(Seen { documents: 1, tokens: 1, last: document });
        true
    }

    /// The vocabulary in the order of code points, which is that of the alphabet in English.
    pub fn choose(self, choice: &WordFilter, stop_words: &HashSet<String>, documents: u64) -> (Vec<String>, Chosen) {
        let Self { numbers, seen } = self;
        let mut chosen = Chosen::default();
        let mut kept = Vec::new();
        for (word, number) in numbers {
            let Seen { documents: within, tokens, .. } = seen[number as usize];
            chosen.seen.add(tokens);
            let sum = if stop_words.contains(&*word) {
                &mut chosen.stopped
            } else if within < choice.least_documents {
                &mut chosen.rare
            } else if within as f64 > choice.most_share * documents as f64 {
                &mut chosen.common
            } else {
                kept.push((word, tokens));
                continue;
            };
            sum.add(tokens);
        }
        // Of words that are as frequent the first are kept.
        kept.sort_unstable_by(|(one, tokens), (other, of_other)| of_other.cmp(tokens).then_with(|| one.cmp(other)));
        let most = kept.len().min(choice.most_words as usize);
        kept.drain(most..).for_each(|(_, tokens)| chosen.beyond.add(tokens));
        kept.iter().for_each(|&(_, tokens)| chosen.kept.add(tokens));
        let mut kept: Vec<String> = kept.into_iter().map(|(word, _)| word.into()).collect();
        kept.sort_unstable();
        (kept, chosen)
    }
}

/// The words of a vocabulary, one a line and each once; the last line may be empty.
pub(super) fn read_vocabulary(path: &Path) -> Result<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut empty = None;
    lines(Source::open(path)?.reader, path, |line, row| {
        let wrong = |line, what: String| Err(DataError::content(path, Place::Line(line), what));
        let Ok(word) = std::str::from_utf8(row).map(str::trim) else { return wrong(line, "this is not text (UTF-8)".into()) };
        match empty {
            _ if word.is_empty() => {
                empty = empty.or(Some(line));
                Ok(())
            }
            Some(empty) => {
                wrong(empty, "this line is empty: a vocabulary has a word in each line, in the order of their numbers".into())
            }
            // HDF5's texts end at a zero.
            None if word.contains('\0') => wrong(line, "this word has a zero byte: is this a text file?".into()),
            None if words.len() as u64 == u64::from(MOST_WORDS) => wrong(line, format!("more than {MOST_WORDS} words")),
            None => {
                words.push(word.to_owned());
                Ok(())
            }
        }
    })?;
    if words.is_empty() {
        return Err(DataError::content(path, Place::File, "there are no words"));
    }
    if let Some((first, again)) = twice(&words) {
        // Words are in the lines 1, 2, ...
        let line = |number: u32| u64::from(number) + 1;
        let what = format!("{:?} is in line {} already: a vocabulary has each word once", words[again as usize], line(first));
        return Err(DataError::content(path, Place::Line(line(again)), what));
    }
    Ok(words)
}

/// The first word that was there before, and where: their numbers.
fn twice(words: &[String]) -> Option<(u32, u32)> {
    // Fewer than 2^31.
    let mut numbers: Vec<u32> = (0..words.len() as u32).collect();
    numbers.sort_unstable_by_key(|&number| (&words[number as usize], number));
    let pairs = numbers.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|&(one, other)| words[one as usize] == words[other as usize]).min_by_key(|&(_, again)| again)
}
