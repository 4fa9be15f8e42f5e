//! Documents as bags of words, in compressed sparse rows, and where they come from.

use std::error::Error;
use std::ops::Range;

/// Documents that are read in parts, such as those of an agent in a file.
#[allow(clippy::len_without_is_empty)]
pub trait DocumentSource: Send + Sync {
    /// W, the size of the vocabulary.
    fn vocabulary(&self) -> u32;

    /// The number of documents.
    fn len(&self) -> usize;

    /// Reads a range of them.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, documents: Range<usize>) -> Result<Documents, Box<dyn Error + Send + Sync>>;
}

/// A document: its distinct words in ascending order, and their counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bag<'a> {
    /// Word indices, from 0.
    pub words: &'a [u32],
    /// The number of tokens of each word.
    pub counts: &'a [u32],
}

impl Bag<'_> {
    /// The number of tokens of the document.
    pub fn tokens(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }
}

/// Documents over a vocabulary, in compressed sparse rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documents {
    vocabulary: u32,
    /// Document d has the entries `starts[d]..starts[d + 1]`.
    starts: Vec<usize>,
    words: Vec<u32>,
    counts: Vec<u32>,
    tokens: u64,
}

impl Documents {
    /// An empty set over a vocabulary of this size.
    pub fn new(vocabulary: u32) -> Self {
        Self { vocabulary, starts: vec![0], words: Vec::new(), counts: Vec::new(), tokens: 0 }
    }

    /// An empty set with memory for this number of documents and entries.
    pub fn with_capacity(vocabulary: u32, documents: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(documents + 1);
        starts.push(0);
        let [words, counts] = [Vec::with_capacity(entries), Vec::with_capacity(entries)];
        Self { vocabulary, starts, words, counts, tokens: 0 }
    }

    /// Removes all documents and keeps the memory. The next ones are over a vocabulary of this size.
    pub fn clear(&mut self, vocabulary: u32) {
        self.vocabulary = vocabulary;
        self.starts.truncate(1);
        self.words.clear();
        self.counts.clear();
        self.tokens = 0;
    }

    /// Appends a document with these words and counts. Words with a count of 0 are skipped.
    ///
    /// # Panics
    /// If the numbers of words and counts differ, or words are not ascending or outside the vocabulary.
    pub fn push(&mut self, words: &[u32], counts: &[u32]) {
        assert_eq!(words.len(), counts.len(), "the numbers of words and counts differ");
        assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "words are not in ascending order");
        assert!(words.last().is_none_or(|&last| last < self.vocabulary), "a word is not below {}", self.vocabulary);
        for (&word, &count) in words.iter().zip(counts).filter(|(_, count)| **count > 0) {
            self.words.push(word);
            self.counts.push(count);
            self.tokens += u64::from(count);
        }
        self.starts.push(self.words.len());
    }

    /// W, the size of the vocabulary.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The total number of tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The document with this index.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn document(&self, number: usize) -> Bag<'_> {
        let entries = self.starts[number]..self.starts[number + 1];
        Bag { words: &self.words[entries.clone()], counts: &self.counts[entries] }
    }

    /// All documents, in order.
    pub fn iter(&self) -> impl Iterator<Item = Bag<'_>> + Clone {
        (0..self.len()).map(|number| self.document(number))
    }
}

impl DocumentSource for Documents {
    fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn read(&self, documents: Range<usize>) -> Result<Documents, Box<dyn Error + Send + Sync>> {
        let mut read = Self::new(self.vocabulary);
        documents.map(|number| self.document(number)).for_each(|bag| read.push(bag.words, bag.counts));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_stored_as_pushed() {
        let mut documents = Documents::new(5);
        documents.push(&[0, 3, 4], &[2, 1, 7]);
        documents.push(&[], &[]);
        documents.push(&[1, 2], &[0, 4]);
        assert_eq!((documents.len(), documents.tokens(), documents.is_empty()), (3, 14, false));
        let bags: Vec<_> = documents.iter().map(|bag| (bag.words.to_vec(), bag.counts.to_vec(), bag.tokens())).collect();
        assert_eq!(bags, [(vec![0, 3, 4], vec![2, 1, 7], 10), (vec![], vec![], 0), (vec![2], vec![4], 4)]);
    }

    #[test]
    #[should_panic(expected = "a word is not below 5")]
    fn words_outside_of_the_vocabulary_are_refused() {
        Documents::new(5).push(&[2, 5], &[1, 1]);
    }

    #[test]
    #[should_panic(expected = "words are not in ascending order")]
    fn repeated_words_are_refused() {
        Documents::new(5).push(&[2, 2], &[1, 1]);
    }
}
