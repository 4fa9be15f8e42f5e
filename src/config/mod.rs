//! What was typed (TOML and overrides) becomes a validated run.

mod check;
pub mod keys;
mod open_data;
pub mod predictions;
pub mod predictor;
pub mod registry;
mod setup;
mod spec;
pub mod sweep;
mod template;
pub mod topics;
mod typed;

pub use check::{DataContent, DataReport, Report, check};
pub use registry::Registry;
pub use setup::{Carrier, Launch, RunError, launch};
pub use spec::{Assignment, ClusterSpec, ConfigError, DataSpec, DrawsBy, EvaluateSpec, Precision, RunSpec};
pub use template::template;
pub use typed::{Problem, Typed};
