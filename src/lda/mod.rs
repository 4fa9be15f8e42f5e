//! Latent Dirichlet allocation (LDA): documents as bags of words, Gibbs samplers, SGRLD, evaluation and synthetic corpora.
//!
//! Topics φ_k ~ Dir(β) over W words; the topic weights of a document θ_d ~ Dir(α) over K topics; for each token of the document a topic
//! z ~ θ_d and a word w ~ φ_z (Blei, Ng & Jordan 2003).
//!
//! Arrays of topics are W × K: the topics of a word are contiguous.

mod by_word;
mod coherence;
mod collapsed;
mod completion;
mod dirichlet;
mod documents;
mod fixed_sweep;
mod generate;
mod gibbs;
mod lanes;
mod packed_documents;
mod priors;
mod residence;
mod seed_words;
mod sequential;
mod settings;
mod sgrld;
mod table;
mod token_blocks;
mod topic_table;

pub use by_word::WordSweep;
pub use coherence::{Coherence, CoherenceCounts};
pub use collapsed::{Tokens, TopicCounts, dense_sweep};
pub use completion::{Completion, CompletionScore, HeldOut, draw_scored_tokens};
pub use documents::{Bag, DocumentSource, Documents};
pub use fixed_sweep::FixedSweep;
pub use generate::{CorpusGenerator, CorpusGeneratorSettings};
pub use gibbs::{DocumentGibbs, Sweeps};
pub use packed_documents::PackedDocuments;
pub use priors::{Alpha, PriorStatistics, Priors};
pub use residence::{AssignedTopics, Residence, note_on_temporary_files};
pub use seed_words::SeedWords;
pub use sequential::draw_topics_sequentially;
pub use settings::{LdaSettings, MAX_SEED_TOKENS};
pub use sgrld::{ExpectedCounts, SgrldUpdate, sgrld_step};
pub use table::WordTable;
pub use token_blocks::{MAX_DOCUMENT_TOKENS, MAX_TOPICS, TokenBlocks};
pub use topic_table::TopicTable;

#[cfg(test)]
mod tests;
