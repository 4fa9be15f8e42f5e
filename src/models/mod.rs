//! Log-densities with gradients, batched over particles: the [`Model`] trait and the built-in models.

mod batch;
pub mod convolutional;
mod error;
pub mod gaussian;
pub mod gaussian_mean;
pub mod linear;
mod log_precision;
pub mod logistic;
mod model;
pub mod multinomial;
pub mod negative_binomial;
pub mod network;
pub mod ordinal;
pub mod poisson;
pub mod regression;
mod scaling;
mod scratch;
mod settings;
pub mod student_t;
#[cfg(test)]
mod tests;
pub mod toy;
mod waves;
mod whitened;
mod whitening;

pub use batch::Batch;
pub use error::ModelError;
pub use model::{CurvatureSupport, Model, Output, Part};
pub use scaling::Scaling;
pub use scratch::{Buffer, Scratch};
pub use settings::{BuiltModel, DataSchema, ModelSettings, require_data};
pub use whitened::Whitened;
pub use whitening::Whitening;
