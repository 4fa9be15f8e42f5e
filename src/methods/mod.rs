//! The distributed methods: a file each, and one line each in [`crate::config::registry`].

mod ages;
pub mod async_sghmc;
pub mod dsgld;
pub mod dsvgd;
pub mod elastic;
pub mod evaluation;
pub mod fedavg;
pub mod federated;
mod kind;
pub mod lda;
pub mod monitored;
pub mod npv;
pub mod participation;
mod particles;
pub mod pmd;
pub mod predict;
pub mod problem;
pub mod pvi;
pub mod scores;
pub mod sgd;
pub mod sghmc;
pub mod sgld;
pub mod svgd;
mod thinning;
pub mod transition;

pub use evaluation::{Evaluation, HISTORY, SPREAD};
pub use kind::{DataKind, DocumentBytes, Launcher, MethodKind, Needs, Rows, Sharing, Shown, Texts, TopicArray};
pub use monitored::{Judge, LocalJudge, Monitored, MonitoredTask, Posterior};
pub use particles::Particles;
pub use problem::{LocalLoss, Problem};
pub use transition::{LocalTransition, Transition, Update};
