//! The distributed methods: a file each, and one line each in [`crate::config::registry`].

pub mod dsgld;
pub mod dsvgd;
mod kind;
pub mod monitored;
mod particles;
pub mod predict;
pub mod problem;
pub mod sgld;
pub mod sites;
pub mod svgd;
pub mod transition;
pub mod u_dsvgd;
pub mod visit_order;

pub use kind::{Launcher, MethodKind, Needs};
pub use monitored::{Evaluation, HISTORY, Monitored, MonitoredTask, Posterior, SPREAD};
pub use particles::Particles;
pub use problem::{LocalLoss, Problem};
pub use transition::{LocalTransition, Transition, Update};
