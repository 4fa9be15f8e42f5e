//! The distributed methods: a file or folder for each method that a run file can name, by family.

pub mod chains;
pub mod common;
pub mod particles;
pub mod point;
pub mod topics;
pub mod transitions;
pub mod variational;

pub use common::evaluation::{Evaluation, PARTICLE_PATHS, SPREAD};
pub use common::particles::Particles;
pub use common::problem::{LocalLoss, Problem};
pub use common::settings::{
    Corpus, DataKind, DocumentBytes, Draws, MethodSettings, ResourceEstimate, Sharing, Table, TableMethod, TopicMethod,
};
pub use common::with_evaluation::{EvaluationTask, Evaluator, LocalEvaluator, Posterior, WithEvaluation};
pub use topics::{TopicArray, TopicPosterior};
pub use transitions::transition::{LocalTransition, Transition, Update};
