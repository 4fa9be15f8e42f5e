//! What was typed (TOML and overrides) becomes a validated run.

pub mod predictions;
mod registry;
mod setup;
mod spec;

pub use registry::Registry;
pub use setup::{Carrier, Launch, RunError, launch};
pub use spec::{Assignment, ClusterSpec, ConfigError, DataSpec, EvaluateSpec, Precision, RunSpec};
