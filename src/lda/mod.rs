//! Topic models: documents as bags of words, and what samplers do with them.
//!
//! Latent Dirichlet allocation: topics φ_k ~ Dir(β) over W words; a document's topic weights θ_d ~ Dir(α) over K topics; for each of
//! its tokens a topic z ~ θ_d, and a word w ~ φ_z (Blei, Ng & Jordan 2003).
//!
//! Where topics are an array they are W × K: the topics of a word lie together.

mod by_word;
mod coherence;
mod collapsed;
mod completion;
mod documents;
mod generate;
mod gibbs;
mod in_turn;
mod lanes;
mod priors;
mod settings;
mod sgrld;
mod table;

pub use by_word::WordSweep;
pub use coherence::{Coherence, CoherenceCounts};
pub use collapsed::{Tokens, TopicCounts, dense_sweep};
pub use completion::{Completion, CompletionScore, HeldOut, draw_scored_tokens};
pub use documents::{Bag, Documents};
pub use generate::{CorpusGenerator, CorpusGeneratorSettings};
pub use gibbs::{DocumentGibbs, Sweeps};
pub use in_turn::draw_topics_sequentially;
pub use priors::{PriorStatistics, Priors};
pub use settings::LdaSettings;
pub use sgrld::{ExpectedCounts, SgrldUpdate, sgrld_step};
pub use table::WordTable;

#[cfg(test)]
mod tests;
