//! Corpora: documents as bags of words in HDF5, for topic models.
//!
//! | object | type | content |
//! | --- | --- | --- |
//! | attribute `format` | text | `mpibayes-dataset` |
//! | attribute `version` | u32 | 5 |
//! | attribute `task` | text | `topics` |
//! | attribute `source`, `digest` | text | as in datasets of rows |
//! | `vocabulary/word` | text, words | the word with index w, for all w; absent if the input had only indices |
//! | `train/indptr`, `test/indptr` | u64, documents + 1 | the entries of document i are indptr\[i\] .. indptr\[i + 1\] of the following lists |
//! | `train/indices`, `test/indices` | u32, entries | word indices from 0, ascending within a document |
//! | `train/values`, `test/values` | u32, entries | the count of the word in the document, at least 1 |
//! | `test/scored` | u32, entries | how many of these tokens are to be predicted; the others are observed |
//! | `train/document`, `test/document` | u64, documents | the index of the document in the input, from 0 |
//! | attribute `words` of `vocabulary` | u32 | W, the size of the vocabulary |
//! | attribute `tokens` of `train`, `test` | u64 | the total number of tokens |
//! | attribute `longest` of `train`, `test` | u64 | the number of tokens of the longest document |
//! | attribute `document_digest` of `train`, `test` | text | BLAKE3 of `document`, which `digest` does not cover |
//!
//! Documents are in random order, so that any contiguous range is a random sample; the shard of an agent is such a range. In Python,
//! `scipy.sparse.csr_matrix((values, indices, indptr))` reads a group as a matrix.

mod bags;
mod generate;
mod import;
mod limits;
mod read;
mod shard;
mod shuffle;
mod stop_words;
mod text;
mod tokenizer;
mod verify;
mod vocabulary;
mod write;

pub use bags::{BagFormat, CorpusSize, DocumentSink};
pub use generate::{GeneratedSize, write_corpus, write_docword, write_topics};
pub use import::{CorpusImport, CorpusReport, Input, TestSize, import_corpus};
pub use limits::{DEFAULT_SCORED, MAX_TOKENS, MAX_WORDS};
pub use read::Corpus;
pub use shard::CorpusShard;
pub use text::{Text, TextReport, Vocabulary, VocabularyReport};
pub use tokenizer::{MAX_WORD_LENGTH, Tokenizer};
pub use vocabulary::{FilterReport, MAX_DISTINCT_WORDS, StopWords, WordFilter, WordTotals};

#[cfg(test)]
mod tests;
