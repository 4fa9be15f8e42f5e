//! Gamma variables of the cells of a table of topic-word counts, which become draws φ_k ~ Dirichlet(n_k + β) when they are normalized.
//!
//! Most cells have no tokens. For such a cell a gamma variable with shape β is G(1 + β) e^(−X), with X exponential with rate β (Stuart 1962,
//! for beta and gamma variables). Below `CUT`, e^(−X) is set to 0. The number of such cells until the next other one is geometric, so they
//! are skipped together. The skipped cells have 5e-10 of the prior mass of a topic.

use crate::random::Stream;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Gamma};

/// The largest X, −ln 5e-10.
const CUT: f64 = 21.416_413_017_506_358;

/// Draws the gamma variables of cells with the same prior.
#[derive(Clone, Copy, Debug)]
pub(super) struct GammaCells {
    beta: f64,
    /// −P(X ≤ CUT) = e^(−β CUT) − 1.
    minus_kept: f64,
}

impl GammaCells {
    /// For the prior β.
    pub fn new(beta: f64) -> Self {
        Self { beta, minus_kept: (-beta * CUT).exp_m1() }
    }

    /// Draws the gamma variables of a row of cells, with shapes n + β.
    pub fn draw(self, counts: &[i32], out: &mut [f32], stream: &mut Stream) {
        let mut skipped = self.skip(stream);
        for (out, &count) in out.iter_mut().zip(counts) {
            *out = if count > 0 {
                gamma(f64::from(count) + self.beta, stream) as f32
            } else if skipped > 0 {
                skipped -= 1;
                0.0
            } else {
                skipped = self.skip(stream);
                let x = -(stream.random::<f64>() * self.minus_kept).ln_1p() / self.beta;
                (gamma(1.0 + self.beta, stream) * (-x).exp()) as f32
            };
        }
    }

    /// The number of cells without tokens before the next that is not 0.
    fn skip(self, stream: &mut Stream) -> u64 {
        let exponential: f64 = Exp1.sample(stream);
        (exponential / (self.beta * CUT)) as u64
    }

    /// Draws φ_k of a topic without tokens: Dirichlet(β) over all words. Gamma variables that are all tiny are normalized by their logarithms.
    pub fn draw_empty_topic(self, out: &mut [f64], stream: &mut Stream) {
        let mut largest = f64::NEG_INFINITY;
        for out in &mut *out {
            let exponential: f64 = Exp1.sample(stream);
            *out = gamma(1.0 + self.beta, stream).ln() - exponential / self.beta;
            largest = largest.max(*out);
        }
        let mut sum = 0.0;
        for out in &mut *out {
            *out = (*out - largest).exp();
            sum += *out;
        }
        out.iter_mut().for_each(|out| *out /= sum);
    }
}

/// A gamma variable with this shape, at least 1.
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    // A finite shape above 0 is valid.
    Gamma::new(shape, 1.0).map_or(0.0, |gamma| gamma.sample(stream))
}

#[cfg(test)]
mod tests;
