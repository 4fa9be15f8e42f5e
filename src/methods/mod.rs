//! The distributed methods by family: a method that a run file can name has a file or folder of that name with its settings.
//!
//! Several methods share an engine: [`chains::coupled`] carries `sghmc`, `ec_sghmc`, `ec_sgld` and `easgd`; [`chains::dsgld`] carries
//! D-SGLD on tables and on topic models, whose settings are in [`topics::dsgld`]; [`particles::dsvgd`] carries `dsvgd`, `u_dsvgd` and
//! `p_dsvgd`; [`variational::pvi`] carries `pvi` and `gvi`. The updates of chains lie in [`transitions`], what all methods use in
//! [`common`].

pub mod chains;
pub mod common;
pub mod particles;
pub mod point;
pub mod topics;
pub mod transitions;
pub mod tuning;
pub mod variational;

pub use common::evaluation::{Evaluation, PARTICLE_PATHS, SPREAD_OVER_AGENTS};
pub use common::particles::Particles;
pub use common::problem::{LocalLoss, Problem};
pub use common::settings::{
    Corpus, DataKind, DocumentBytes, DrawKind, Length, MethodSettings, ResourceEstimate, Sharing, Table, TableMethod,
    TopicMethod, at_least_one,
};
pub use common::with_evaluation::{EvaluationTask, Evaluator, LocalEvaluator, Posterior, WithEvaluation};
pub use topics::{TopicArray, TopicPosterior};
pub use transitions::transition::{LocalTransition, Transition, Update};
