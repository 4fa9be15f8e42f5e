//! Log-densities with gradients, batched over particles: the [`Model`] trait and the built-in models.

mod batch;
mod error;
pub mod gaussian;
pub mod gaussian_mean;
pub(crate) mod layout;
pub mod linear;
mod linear_predictor;
mod log_precision;
pub mod logistic;
mod model;
pub mod network;
mod scaling;
mod scratch;
mod settings;
#[cfg(test)]
mod tests;
pub mod toy;
mod whitened;
mod whitening;

pub use batch::Batch;
pub use error::ModelError;
pub use model::{CurvatureSupport, Model, Output, Part};
pub use scaling::Scaling;
pub use scratch::Scratch;
pub use settings::{BuiltModel, DataSchema, ModelSettings, require_data};
pub use whitened::Whitened;
pub use whitening::Whitening;
