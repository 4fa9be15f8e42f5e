//! Documents as bags of words, one behind the other.

/// The words of a document, ascending and each once, and how often each occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bag<'a> {
    /// Numbers of words, from 0.
    pub words: &'a [u32],
    /// How many tokens each word has.
    pub counts: &'a [u32],
}

impl Bag<'_> {
    /// How many tokens the document has.
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
    /// None as yet, over a vocabulary of so many words.
    pub fn new(vocabulary: u32) -> Self {
        Self { vocabulary, starts: vec![0], words: Vec::new(), counts: Vec::new(), tokens: 0 }
    }

    /// The same, with room for so many documents and entries.
    pub fn with_capacity(vocabulary: u32, documents: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(documents + 1);
        starts.push(0);
        let [words, counts] = [Vec::with_capacity(entries), Vec::with_capacity(entries)];
        Self { vocabulary, starts, words, counts, tokens: 0 }
    }

    /// Appends a document: its words and how often each of them occurs. Words that do not occur are left out.
    ///
    /// # Panics
    /// When there are not as many counts as words, or words do not ascend below the size of the vocabulary.
    pub fn push(&mut self, words: &[u32], counts: &[u32]) {
        assert_eq!(words.len(), counts.len(), "words and counts differ in number");
        assert!(words.windows(2).all(|pair| pair[0] < pair[1]), "words do not ascend");
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

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tokens they have in all.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// A document.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn document(&self, number: usize) -> Bag<'_> {
        let entries = self.starts[number]..self.starts[number + 1];
        Bag { words: &self.words[entries.clone()], counts: &self.counts[entries] }
    }

    /// All documents, in order.
    pub fn iter(&self) -> impl Iterator<Item = Bag<'_>> + Clone {
        (0..self.len()).map(|number| self.document(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_back_as_they_were_pushed() {
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
    #[should_panic(expected = "words do not ascend")]
    fn a_word_that_comes_twice_is_refused() {
        Documents::new(5).push(&[2, 2], &[1, 1]);
    }
}
