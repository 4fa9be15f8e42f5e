//! Dense ReLU networks of any depth for regression and classification, with matrix products by BLAS.
//!
//! θ = [W1, b1, W2, b2, ...], with W_l (inputs × outputs) row-major. Weights and biases have the prior N(0, 1/λ).
//! Classification: softmax cross-entropy. Regression is either Gaussian, y ~ N(f(x), 1/γ) with the network's output f, a last parameter
//! log γ, and γ ~ Gamma(shape, rate); or it has Huber's loss.
//! Liu & Wang 2016 (section 5) and Kassab & Simeone (arXiv 2009.06419) use one hidden layer.

mod dense;
pub(in crate::models) mod losses;
mod model;
mod settings;
#[cfg(test)]
mod tests;

pub(in crate::models) use losses::Likelihood;
pub use losses::Loss;
pub use model::Network;
pub use settings::NetworkSettings;
