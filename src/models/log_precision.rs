//! Precisions that are sampled on the log scale.

/// Log-precisions are clamped to ± this value before they are exponentiated, so that scores stay finite.
pub const MAX_LOG_PRECISION: f64 = 30.0;

/// e^v of a log-precision or another logarithm v, which is clamped to ± [`MAX_LOG_PRECISION`].
pub fn clamped_exp(log: f64) -> f64 {
    log.clamp(-MAX_LOG_PRECISION, MAX_LOG_PRECISION).exp()
}
