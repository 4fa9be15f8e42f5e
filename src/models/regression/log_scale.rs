//! Scales whose logarithms are parameters, and their prior: the noise, the dispersion, the standard deviation of groups.

use super::logistic_function::{sigmoid, softplus};
use crate::models::log_precision::clamped_exp;
use crate::random::Stream;

/// The prior of a scale: Student's t distribution with 3 degrees of freedom on the positive numbers, whose tails admit a scale far above the
/// typical one.
#[derive(Clone, Copy, Debug)]
pub struct ScalePrior {
    /// The typical scale.
    pub typical: f64,
}

impl ScalePrior {
    /// log(s²/(3 · typical²)).
    fn log_square(self, log: f64) -> f64 {
        2.0 * (log - self.typical.ln()) - 3_f64.ln()
    }

    /// log p(log s), up to a constant.
    pub fn log_density(self, log: f64) -> f64 {
        log - 2.0 * softplus(self.log_square(log))
    }

    /// The derivative of that.
    pub fn score(self, log: f64) -> f64 {
        1.0 - 4.0 * sigmoid(self.log_square(log))
    }

    /// Writes the logarithms of scales below the typical one.
    pub fn draw_initial(self, stream: &mut Stream, logs: &mut [f64]) {
        stream.normals(logs);
        logs.iter_mut().for_each(|log| *log = self.typical.ln() - 0.5 * log.abs());
    }
}

/// The scale with this logarithm, which is clamped so that scores stay finite.
pub fn scale_from_log(log: f64) -> f64 {
    clamped_exp(log)
}
