//! Corpora: documents as bags of words in HDF5, for topic models.
//!
//! | object | type | content |
//! | --- | --- | --- |
//! | attribute `format` | text | `mpibayes-dataset` |
//! | attribute `version` | u32 | 5 |
//! | attribute `task` | text | `topics` |
//! | attribute `source`, `digest` | text | as in datasets of rows |
//! | `vocabulary/word` | text, words | the words by their numbers; absent, words have numbers alone |
//! | `train/indptr`, `test/indptr` | u64, documents + 1 | document i has the entries indptr\[i\] .. indptr\[i + 1\] of the next lists |
//! | `train/indices`, `test/indices` | u32, entries | numbers of words from 0, ascending within a document |
//! | `train/values`, `test/values` | u32, entries | how many tokens of the document are that word, at least 1 |
//! | `test/scored` | u32, entries | how many of these are to be predicted; the others may be seen |
//! | `train/document`, `test/document` | u64, documents | where the document stood in the input, from 0 |
//! | attribute `words` of `vocabulary` | u32 | W |
//! | attribute `tokens` of `train`, `test` | u64 | how many tokens there are in all |
//!
//! Documents are in random order: any stretch of them is a fair sample, so that an agent's shard is one stretch. With
//! `scipy.sparse.csr_matrix((values, indices, indptr))` a group is a matrix.

mod bags;
mod generate;
mod import;
mod limits;
mod read;
mod shuffle;
mod stop_words;
mod text;
mod vocabulary;
mod words;

pub use bags::{BagFormat, CorpusSize, DocumentSink};
pub use generate::{GeneratedSize, write_docword, write_topics};
pub use import::{CorpusImport, CorpusReport, Input, TestDocuments, import_corpus};
pub use limits::{MOST_TOKENS, MOST_WORDS};
pub use read::Corpus;
pub use text::{Text, TextReport, Vocabulary, VocabularyReport};
pub use vocabulary::{Chosen, MOST_DISTINCT, StopWords, WordFilter, WordTotals};
pub use words::{LONGEST_WORD, Words};

#[cfg(test)]
mod tests;
