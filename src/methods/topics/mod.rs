//! Topic models (latent Dirichlet allocation) on documents that are spread over agents.

pub mod adlda;
pub mod async_lda;
pub mod dsgld;
mod evaluation;
pub mod lda;
mod prior_updates;
mod problem;
mod shard;
mod sweeps;

pub use crate::methods::transitions::{LocalSgrld, Sgrld};
pub use adlda::{AdLda, AdLdaSettings};
pub use async_lda::{AsyncLda, AsyncLdaSettings};
pub use dsgld::TopicDsgldSettings;
pub use evaluation::{EVALUATION_SWEEPS, OpenHeldOut, TopicArray, TopicEvaluation, TopicPosterior};
pub use lda::{Lda, LdaSamplerSettings, PhiUpdate};
pub use prior_updates::{AgentPriorStatistics, OptimizePriors};
pub use problem::{OpenDocuments, TopicProblem};
pub use shard::SweepReport;
pub use sweeps::{SweepBy, SweepSettings};
