//! Posterior means and standard deviations without draws: agents accumulate moments of the states, the server combines them at the end.

use crate::cluster::{Raw, Result};
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// The groups of draws with the posterior mean and the posterior standard deviation, one vector each.
pub const EXPECTATIONS: [&str; 2] = ["posterior_mean", "posterior_sd"];

/// The weighted mean of the states at an agent and their weighted squared deviations from it (West 1979, "Updating mean and variance
/// estimates: an improved method"). Empty before the first state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Expectations {
    weight: f64,
    mean: Raw<f64>,
    squares: Raw<f64>,
}

impl Default for Expectations {
    fn default() -> Self {
        Self { weight: 0.0, mean: Raw(Vec::new()), squares: Raw(Vec::new()) }
    }
}

impl Expectations {
    /// Adds a state; `weight` must be above 0.
    pub fn add<F: Real>(&mut self, state: &[F], weight: f64) {
        self.mean.0.resize(state.len(), 0.0);
        self.squares.0.resize(state.len(), 0.0);
        self.weight += weight;
        let fraction = weight / self.weight;
        for ((mean, squares), state) in self.mean.0.iter_mut().zip(&mut self.squares.0).zip(state) {
            let deviation = state.f64() - *mean;
            *mean += fraction * deviation;
            *squares += weight * deviation * (state.f64() - *mean);
        }
    }

    /// The sum of all weights.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The weighted sum of the states (length `dim`).
    pub fn sum<F: Real>(&self, dim: usize) -> Vec<F> {
        let mut sum = vec![F::zero(); dim];
        sum.iter_mut().zip(&self.mean.0).for_each(|(sum, mean)| *sum = F::of(mean * self.weight));
        sum
    }

    /// The weighted squared deviations of the states from the mean over all agents.
    ///
    /// # Errors
    /// If the mean has the wrong length.
    pub fn squares_about<F: Real>(&self, mean: &[F]) -> Result<Vec<F>> {
        if !self.mean.0.is_empty() && self.mean.0.len() != mean.len() {
            return Err(format!("the mean has {} values, the model {} parameters", mean.len(), self.mean.0.len()).into());
        }
        let mut about = vec![F::zero(); mean.len()];
        for (about, ((all, own), squares)) in about.iter_mut().zip(mean.iter().zip(&self.mean.0).zip(&self.squares.0)) {
            *about = F::of(squares + self.weight * (own - all.f64()).powi(2));
        }
        Ok(about)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_agents_are_the_weighted_moments_of_all_states() {
        let (a, b) = ([1e6 + 1.0, -3.0], [1e6 + 4.0, 5.0]);
        let states = [(a, 1.0), (b, 0.5), ([1e6 - 2.0, 0.0], 2.0), ([1e6, 1.0], 0.25)];
        let mut agents = [Expectations::default(), Expectations::default(), Expectations::default()];
        for (place, (state, weight)) in states.iter().enumerate() {
            agents[place % 2].add::<f64>(state, *weight);
        }
        let total: f64 = agents.iter().map(Expectations::weight).sum();
        assert_eq!(total, 3.75);
        let over_all =
            |sums: Vec<Vec<f64>>| -> Vec<f64> { (0..2).map(|j| sums.iter().map(|sum| sum[j]).sum::<f64>() / total).collect() };
        let mean = over_all(agents.iter().map(|agent| agent.sum(2)).collect());
        let variance = over_all(agents.iter().map(|agent| agent.squares_about(&mean).unwrap()).collect());
        for j in 0..2 {
            let exact = states.iter().map(|(state, weight)| weight * (state[j] - 1e6)).sum::<f64>() / total + 1e6;
            let spread = states.iter().map(|(state, weight)| weight * (state[j] - exact).powi(2)).sum::<f64>() / total;
            assert!((mean[j] - exact).abs() < 1e-9 * exact.abs().max(1.0), "{mean:?}");
            assert!((variance[j] - spread).abs() < 1e-7 * spread, "{variance:?}");
        }
        assert!(agents[0].squares_about(&[0.0]).is_err());
    }
}
