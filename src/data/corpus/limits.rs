//! The version of the layout of a corpus, and how large vocabularies and documents may be.

/// The version of the layout.
pub(crate) const VERSION: u32 = 5;
/// The most words that a vocabulary may have.
pub const MOST_WORDS: u32 = 1 << 31;
/// The most tokens of a document: what counts in single precision still tells apart.
pub const MOST_TOKENS: u64 = (1 << 24) - 1;
