//! What a chain learns before its first draw: a step size, and the variances of the parameters.
//!
//! The step size follows the acceptance all the time, and variances are estimated over windows of growing length between a first and a last
//! phase without them. From 500 iterations on the windows are those of Stan; a shorter burn-in shortens both phases in proportion.

use crate::cluster::Raw;
use serde::{Deserialize, Serialize};

/// The phases before the first window and after the last: a fraction of burn-in, and the most iterations.
const FIRST: (f64, u64) = (0.15, 75);
const LAST: (f64, u64) = (0.1, 50);
/// The iterations of the first window.
const WINDOW: u64 = 25;
/// In a shorter burn-in only the step size is adapted.
const MIN_BURN_IN: u64 = 20;

/// Dual averaging of the logarithm of the step size (Hoffman & Gelman 2014, section 3.2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepSize {
    /// The acceptance that is aimed at.
    target: f64,
    /// The value to which early steps are drawn: the logarithm of ten times the first step.
    origin: f64,
    updates: u64,
    /// The mean of the target minus the acceptance, as if ten zeros had come before, so that the first updates move the step little.
    error: f64,
    log_step: f64,
    log_mean_step: f64,
}

impl StepSize {
    const SHRINKAGE: f64 = 0.05;
    const DELAY: f64 = 10.0;
    const DECAY: f64 = 0.75;

    /// Begins at a step size.
    pub fn new(step: f64, target: f64) -> Self {
        Self { target, origin: (10.0 * step).ln(), updates: 0, error: 0.0, log_step: step.ln(), log_mean_step: step.ln() }
    }

    /// Takes the acceptance of a trajectory into account.
    pub fn update(&mut self, acceptance: f64) {
        self.updates += 1;
        let updates = self.updates as f64;
        let weight = 1.0 / (updates + Self::DELAY);
        self.error += weight * (self.target - acceptance - self.error);
        self.log_step = self.origin - updates.sqrt() / Self::SHRINKAGE * self.error;
        let weight = updates.powf(-Self::DECAY);
        self.log_mean_step += weight * (self.log_step - self.log_mean_step);
    }

    /// The step size to try next.
    pub fn current(&self) -> f64 {
        self.log_step.exp()
    }

    /// The step size when adaptation ends.
    pub fn found(&self) -> f64 {
        self.log_mean_step.exp()
    }
}

/// Running means and variances (Welford).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Variances {
    count: u64,
    mean: Raw<f64>,
    squares: Raw<f64>,
}

impl Variances {
    /// Of no values yet.
    pub fn new(dim: usize) -> Self {
        Self { count: 0, mean: Raw(vec![0.0; dim]), squares: Raw(vec![0.0; dim]) }
    }

    /// Adds a position.
    pub fn add(&mut self, position: &[f64]) {
        self.count += 1;
        let count = self.count as f64;
        for ((mean, squares), value) in self.mean.0.iter_mut().zip(&mut self.squares.0).zip(position) {
            let change = value - *mean;
            *mean += change / count;
            *squares += change * (value - *mean);
        }
    }

    /// The variances, if all are positive and finite. Unlike Stan's they are not shrunk toward 1e-3, so that they do not depend on the units
    /// of the parameters.
    pub fn estimate(&self) -> Option<Vec<f64>> {
        let variances: Vec<f64> = self.squares.0.iter().map(|squares| squares / (self.count as f64 - 1.0)).collect();
        variances.iter().all(|variance| variance.is_normal() && *variance > 0.0).then_some(variances)
    }
}

/// When variances are estimated during burn-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The iteration with which the first window begins.
    begin: u64,
    /// The iterations after which windows end.
    ends: Vec<u64>,
}

impl Windows {
    /// The windows of a burn-in of this many iterations.
    pub fn new(burn_in: u64) -> Self {
        let part = |(share, most): (f64, u64)| most.min((share * burn_in as f64) as u64);
        let begin = part(FIRST);
        if burn_in < MIN_BURN_IN {
            return Self { begin, ends: Vec::new() };
        }
        let end = burn_in - part(LAST);
        let (mut ends, mut window, mut last) = (Vec::new(), WINDOW, begin);
        while last < end {
            // A window that leaves too little for the next, twice as long, takes the rest.
            last = if last + 3 * window > end { end } else { last + window };
            ends.push(last);
            window *= 2;
        }
        Self { begin, ends }
    }

    /// Whether the position after `iterations` counts.
    pub fn contains(&self, iterations: u64) -> bool {
        iterations > self.begin && self.ends.last().is_some_and(|&end| iterations <= end)
    }

    /// Whether a window ends after `iterations`.
    pub fn ends_after(&self, iterations: u64) -> bool {
        self.ends.contains(&iterations)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_long_burn_ins_are_those_of_stan_and_short_burn_ins_have_few() {
        assert_eq!(Windows::new(1000), Windows { begin: 75, ends: vec![100, 150, 250, 450, 950] });
        assert_eq!(Windows::new(100), Windows { begin: 15, ends: vec![40, 90] });
        assert_eq!(Windows::new(0), Windows { begin: 0, ends: Vec::new() });
        assert_eq!(Windows::new(19).ends, [0; 0]);
        let windows = Windows::new(1000);
        assert!(windows.contains(76) && windows.contains(950) && !windows.contains(75) && !windows.contains(951));
        assert!(windows.ends_after(450) && !windows.ends_after(451));
    }

    #[test]
    fn the_step_settles_where_the_acceptance_is_the_target() {
        // Accepts e^-ε of all steps: 0.8 at ε = 0.223.
        let mut step = StepSize::new(3.0, 0.8);
        (0..2000).for_each(|_| step.update((-step.current()).exp()));
        assert!((step.found() - 0.223).abs() < 0.01, "{}", step.found());
    }

    #[test]
    fn variances_are_those_of_the_positions() {
        let mut variances = Variances::new(1);
        assert_eq!(variances.estimate(), None);
        [1.0, 2.0, 6.0].iter().for_each(|&value| variances.add(&[value]));
        assert!((variances.estimate().unwrap()[0] - 7.0).abs() < 1e-12);
        let mut constant = Variances::new(1);
        (0..9).for_each(|_| constant.add(&[2.0]));
        assert_eq!(constant.estimate(), None);
    }
}
