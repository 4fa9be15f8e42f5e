//! The tokens of a set of documents in blocks, for sweeps with fixed topics.
//!
//! Within a block, tokens are sorted by word, and those of a word by document. Their topics are stored elsewhere, in document order. The
//! tokens of a document are met in the order of its words, so that a cursor for each document finds the topic of a token. A token needs
//! 2 bytes here and 2 bytes for its topic; lists of words and documents need about one more.

use super::documents::{DocumentSource, Documents};
use super::residence::{ArrayFile, Residence, StoredArray, array_in};
use std::error::Error;
use std::ops::Range;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The maximum number of topics: topics are `u16`, and so is their number, the mark for no topic.
pub const MAX_TOPICS: u32 = 65_534;
/// The maximum number of tokens of a document: counts within a document are `u16`.
pub const MAX_DOCUMENT_TOKENS: u64 = 65_535;

/// The most documents of a block if topics are few: the topics of their tokens then stay in the second-level cache.
const SMALL_BLOCK: usize = 2048;
/// The most documents of any block, for many topics, with which reading the row of a word takes longer. Numbers of documents within a block are
/// `u16`, and those of tokens `u32`.
const LARGE_BLOCK: usize = 8192;
/// The number of topics from which blocks are large.
const MANY_TOPICS: usize = 300;
/// The number of blocks that a set of documents has at least, if blocks do not become tiny: the units of work for threads. With many
/// topics, small blocks would read the rows of all words for few tokens each.
const MIN_BLOCKS_FEW_TOPICS: usize = 16;
/// The same with many topics.
const MIN_BLOCKS_MANY_TOPICS: usize = 4;
/// The minimum number of documents of a block.
const MIN_DOCUMENTS_IN_BLOCK: usize = 64;

/// The tokens of a set of documents, in blocks. The results of sweeps do not depend on the size of blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenBlocks {
    vocabulary: usize,
    documents: usize,
    tokens: usize,
    pub(super) blocks: Vec<TokenBlock>,
}

/// The tokens of consecutive documents.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TokenBlock {
    /// The number of the first document in the set.
    pub first_document: usize,
    /// In document order, document d of the block has the tokens `starts[d]..starts[d + 1]`.
    pub starts: StoredArray<u32>,
    /// Each word that occurs, and the end of its tokens in word order.
    pub word_ends: StoredArray<[u32; 2]>,
    /// The document of each token in word order.
    pub documents: StoredArray<u16>,
}

impl TokenBlock {
    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.documents.len()
    }
}

impl TokenBlocks {
    /// The tokens of these documents, for sweeps with K topics. A block of documents is read at a time.
    ///
    /// # Errors
    /// If documents cannot be read, there are too many topics, a document has too many tokens, or a temporary file cannot be written.
    pub fn new(documents: &dyn DocumentSource, topics: usize, residence: Residence) -> Result<Self> {
        let (blocks, largest) = match topics < MANY_TOPICS {
            true => (MIN_BLOCKS_FEW_TOPICS, SMALL_BLOCK),
            false => (MIN_BLOCKS_MANY_TOPICS, LARGE_BLOCK),
        };
        let block_size = documents.len().div_ceil(blocks).clamp(MIN_DOCUMENTS_IN_BLOCK, largest);
        Self::with_block_size(documents, topics, block_size, residence)
    }

    /// The same with a number of documents in a block.
    pub(super) fn with_block_size(
        documents: &dyn DocumentSource,
        topics: usize,
        block_size: usize,
        residence: Residence,
    ) -> Result<Self> {
        if topics > MAX_TOPICS as usize {
            return Err(format!("{topics} topics: at most {MAX_TOPICS} are supported").into());
        }
        let mut next = vec![0_u32; documents.vocabulary() as usize];
        let (all, block_size) = (documents.len(), block_size.clamp(1, LARGE_BLOCK));
        let mut read = (0..all).step_by(block_size).map(|first| {
            let read = documents.read(first..all.min(first + block_size))?;
            check_lengths(&read, first)?;
            Ok(TokenBlock::new(&read, first, &mut next))
        });
        let blocks = match residence {
            Residence::Memory => read.collect::<Result<Vec<_>>>(),
            Residence::Files => in_file(&mut read),
        }?;
        let tokens = blocks.iter().map(TokenBlock::len).sum();
        Ok(Self { vocabulary: next.len(), documents: all, tokens, blocks })
    }

    /// W, the size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The number of documents.
    pub fn documents(&self) -> usize {
        self.documents
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.tokens
    }

    /// The tokens of each document, in document order.
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        let firsts = self.blocks.iter().scan(0, |tokens, block| {
            let first = *tokens;
            *tokens += block.len();
            Some((first, block))
        });
        firsts.flat_map(|(first, block)| {
            block.starts.windows(2).map(move |span| first + span[0] as usize..first + span[1] as usize)
        })
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens == 0
    }
}

/// Moves blocks to a temporary file, one after the other.
fn in_file(blocks: impl Iterator<Item = Result<TokenBlock>>) -> Result<Vec<TokenBlock>> {
    let (mut file, mut places) = (ArrayFile::new()?, Vec::new());
    for block in blocks {
        let TokenBlock { first_document, starts, word_ends, documents } = block?;
        places.push((first_document, file.append(&starts)?, file.append(&word_ends)?, file.append(&documents)?));
    }
    let file = file.map()?;
    let block = |(first_document, starts, word_ends, documents)| TokenBlock {
        first_document,
        starts: array_in(&file, starts),
        word_ends: array_in(&file, word_ends),
        documents: array_in(&file, documents),
    };
    Ok(places.into_iter().map(block).collect())
}

/// Checks that no document has too many tokens. The first one has the number `first`.
fn check_lengths(documents: &Documents, first: usize) -> Result<()> {
    match (first..).zip(documents.iter()).find(|(_, bag)| bag.tokens() > MAX_DOCUMENT_TOKENS) {
        None => Ok(()),
        Some((number, bag)) => Err(format!(
            "document {number} (from 0) of an agent has {} tokens: at most {MAX_DOCUMENT_TOKENS} are supported. Split it into several documents",
            bag.tokens()
        )
        .into()),
    }
}

impl TokenBlock {
    /// These documents, whose lengths have been checked. The first has the number `first_document` among all. `next` has an element for
    /// each word of the vocabulary, all 0.
    fn new(block: &Documents, first_document: usize, next: &mut [u32]) -> Self {
        // A block has at most 2^13 documents of fewer than 2^16 tokens.
        let mut starts = Vec::with_capacity(block.len() + 1);
        starts.push(0_u32);
        let (mut tokens, mut words) = (0, Vec::new());
        for bag in block.iter() {
            for (&word, &count) in bag.words.iter().zip(bag.counts) {
                let next = &mut next[word as usize];
                if *next == 0 {
                    words.push(word);
                }
                *next += count;
                tokens += count;
            }
            starts.push(tokens);
        }
        words.sort_unstable();
        let mut begin = 0;
        let mut word_ends = Vec::with_capacity(words.len());
        for &word in &words {
            let end = begin + std::mem::replace(&mut next[word as usize], begin);
            word_ends.push([word, end]);
            begin = end;
        }
        let mut document_of_token = vec![0_u16; tokens as usize];
        for (number, bag) in (0..).zip(block.iter()) {
            for (&word, &count) in bag.words.iter().zip(bag.counts) {
                let next = &mut next[word as usize];
                document_of_token[*next as usize..(*next + count) as usize].fill(number);
                *next += count;
            }
        }
        words.iter().for_each(|&word| next[word as usize] = 0);
        Self { first_document, starts: starts.into(), word_ends: word_ends.into(), documents: document_of_token.into() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_in_word_order_within_blocks() {
        let mut documents = Documents::new(4);
        documents.push(&[0, 2], &[2, 1]);
        documents.push(&[], &[]);
        documents.push(&[0, 3], &[1, 2]);
        documents.push(&[2], &[1]);
        let in_memory = TokenBlocks::with_block_size(&documents, 5, 3, Residence::Memory).unwrap();
        let blocks = TokenBlocks::with_block_size(&documents, 5, 3, Residence::Files).unwrap();
        assert_eq!(blocks, in_memory);
        assert_eq!((blocks.vocabulary(), blocks.documents(), blocks.len(), blocks.is_empty()), (4, 4, 7, false));
        let first = TokenBlock {
            first_document: 0,
            starts: vec![0, 3, 3, 6].into(),
            word_ends: vec![[0, 3], [2, 4], [3, 6]].into(),
            documents: vec![0, 0, 2, 0, 2, 2].into(),
        };
        let (starts, word_ends) = (vec![0, 1].into(), vec![[2, 1]].into());
        let second = TokenBlock { first_document: 3, starts, word_ends, documents: vec![0].into() };
        assert_eq!(blocks.blocks, [first, second]);
        assert_eq!(blocks.spans().collect::<Vec<_>>(), [0..3, 3..3, 3..6, 6..7]);
    }

    #[test]
    fn limits_are_errors() {
        let mut documents = Documents::new(2);
        documents.push(&[0], &[1]);
        documents.push(&[0, 1], &[65_535, 1]);
        let message = TokenBlocks::new(&documents, 3, Residence::Memory).unwrap_err().to_string();
        assert!(message.starts_with("document 1 (from 0) of an agent has 65536 tokens: at most 65535"), "{message}");
        let mut documents = Documents::new(2);
        documents.push(&[0, 1], &[65_534, 1]);
        assert_eq!(TokenBlocks::new(&documents, 3, Residence::Memory).unwrap().len(), 65_535);
        let message = TokenBlocks::new(&documents, 65_535, Residence::Memory).unwrap_err().to_string();
        assert_eq!(message, "65535 topics: at most 65534 are supported");
    }
}
