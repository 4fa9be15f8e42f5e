//! State of a particle method's server: the rounds done and the particles after them.

use crate::cluster::{Context, Progress, Raw};
use crate::methods::common::problem::Problem;
use crate::number::Real;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Rounds done and the particles after them (N × d, row-major; empty before the first round).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Particles<F: Real> {
    /// Rounds done.
    pub round: u64,
    /// The particles.
    pub theta: Raw<F>,
}

impl<F: Real> Particles<F> {
    /// Particles before the first round.
    pub fn initial(theta: Array2<F>) -> Self {
        Self { round: 0, theta: raw(theta) }
    }

    /// Ends a round with these particles, and records them as the posterior after the last of `rounds`.
    pub fn end_round(&mut self, theta: Vec<F>, problem: &Problem<F>, rounds: u64, cx: &mut Context) {
        *self = Self { round: self.round + 1, theta: Raw(theta) };
        if self.round == rounds {
            let (dim, mut parameters) = (problem.model.dim(), Vec::with_capacity(self.theta.0.len()));
            self.theta.0.chunks_exact(dim).for_each(|particle| problem.model.append_parameters(particle, &mut parameters));
            cx.record("posterior", 0, 0, dim, &parameters);
        }
    }

    /// Progress in a run of this many rounds.
    pub fn progress(&self, rounds: u64) -> Progress {
        Progress { done: self.round, total: rounds }
    }

    /// The round and its particles, as [`Posterior`](crate::methods::Posterior) returns them.
    pub fn posterior(&self) -> (u64, &[F]) {
        (self.round, &self.theta.0)
    }
}

/// A matrix in the form in which it is saved, row-major.
pub fn raw<F: Real>(matrix: Array2<F>) -> Raw<F> {
    Raw(matrix.into_raw_vec_and_offset().0)
}
