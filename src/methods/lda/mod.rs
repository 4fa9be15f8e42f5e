//! Topic models on documents that are spread over agents.

pub mod adlda;
pub mod async_lda;
mod problem;
mod sgrld;
mod shard;

pub use problem::{OpenDocuments, TopicProblem};
pub use sgrld::{LocalSgrld, Sgrld};
pub use shard::SweepBy;
