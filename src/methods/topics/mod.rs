//! Topic models on documents that are spread over agents.

pub mod adlda;
pub mod async_lda;
mod evaluation;
mod problem;
mod settings;
mod shard;

pub use crate::methods::transitions::{LocalSgrld, Sgrld};
pub use adlda::AdLda;
pub use async_lda::AsyncLda;
pub use evaluation::{EVALUATION_SWEEPS, OpenHeldOut, TopicEvaluation};
pub use problem::{OpenDocuments, TopicProblem};
pub use settings::{AdLdaSettings, AsyncLdaSettings, Optimise, SweepSettings, TopicDsgldSettings};
pub use shard::{PriorEvidence, SweepBy, Told};
