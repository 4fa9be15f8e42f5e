//! The version of the file layout of a corpus, the name of an attribute, and the maximum sizes of vocabularies and documents.

/// The version of the file layout.
pub(crate) const VERSION: u32 = crate::data::dataset::layout::DOCUMENTS_VERSION;
/// The attribute of a split with the digest of the list `document`.
pub(super) const NUMBERS_DIGEST: &str = "document_digest";
/// The maximum number of words in a vocabulary.
pub const MAX_WORDS: u32 = 1 << 31;
/// The maximum number of tokens in a document: single precision represents counts exactly up to here.
pub const MAX_TOKENS: u64 = (1 << 24) - 1;
/// The share of the tokens of test documents that is to be predicted from the others, unless it is given.
pub const DEFAULT_SCORED: f64 = 0.1;
