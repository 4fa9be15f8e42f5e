//! What the servers of particle methods keep and save: how many rounds are done, and the particles after them.

use crate::cluster::{Progress, Raw};
use crate::number::Real;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Rounds done, and the particles after them (N × d, row-major; empty where there are none yet).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Particles<F: Real> {
    /// Rounds done.
    pub round: u64,
    /// The particles.
    pub theta: Raw<F>,
}

impl<F: Real> Default for Particles<F> {
    fn default() -> Self {
        Self { round: 0, theta: Raw(Vec::new()) }
    }
}

impl<F: Real> Particles<F> {
    /// Before the first round.
    pub fn initial(theta: Array2<F>) -> Self {
        Self { round: 0, theta: raw(theta) }
    }

    /// Of so many rounds.
    pub fn progress(&self, rounds: u64) -> Progress {
        Progress { done: self.round, total: rounds }
    }

    /// As evaluations ask for them.
    pub fn posterior(&self) -> (u64, &[F]) {
        (self.round, &self.theta.0)
    }
}

/// A matrix as it is saved, row-major.
pub fn raw<F: Real>(matrix: Array2<F>) -> Raw<F> {
    Raw(matrix.into_raw_vec_and_offset().0)
}
