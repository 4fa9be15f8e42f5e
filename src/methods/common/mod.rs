//! What several methods share: the problem that agents share, participation, evaluation.

pub mod evaluation;
pub mod full_scores;
pub mod participation;
pub mod particles;
pub mod predict;
pub mod problem;
pub mod rounds;
pub mod scores;
pub mod settings;
pub mod shard_scores;
pub mod staleness;
pub mod thinning;
pub mod with_evaluation;
