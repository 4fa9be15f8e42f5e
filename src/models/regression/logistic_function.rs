//! The logistic function of a single number, and its logarithm, without overflow and cancellation.

/// σ(z) = 1/(1 + e^−z).
pub fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// log(1 + e^z) = −log σ(−z).
pub fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// log σ(z).
pub fn log_sigmoid(z: f64) -> f64 {
    -softplus(-z)
}
