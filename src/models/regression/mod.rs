//! What all regressions on a linear predictor share.
//!
//! Each regression is a file beside this folder, which adds the distribution of its targets.

pub mod block;
pub mod effects;
pub mod family;
pub mod linear_predictor;
pub mod log_scale;
pub(in crate::models) mod logistic_function;
pub mod model;
mod new_groups;
mod predictor_kernels;
pub mod prior;
pub mod settings;

#[cfg(test)]
mod tests;
