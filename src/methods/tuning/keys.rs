//! The keys around automatic steps that several methods share: checks, and notes on those without effect.

use crate::methods::common::scores::Estimator;
use crate::settings::{KeyError, in_range};

/// Checks the effective sample size that lengths are found for.
///
/// # Errors
/// Names the key if it is out of range.
pub fn check_ess(ess: f64) -> Result<(), KeyError> {
    in_range("ess", ess, (1.0..=1e9).contains(&ess), "from 1 to 1e9")
}

/// Checks the share of the noise of Langevin steps that is not added.
///
/// # Errors
/// Names the key if it is out of range.
pub fn check_noise_share(share: f64) -> Result<(), KeyError> {
    in_range("gradient_noise", share, (0.0..1.0).contains(&share), "at least 0 and below 1")
}

/// Notes on given keys that automatic steps replace.
pub fn idle_keys(is_tuned: bool, gradient: Estimator, gradient_noise: f64) -> Vec<String> {
    let keys = [("gradient", gradient != Estimator::Plain), ("gradient_noise", gradient_noise != 0.0)];
    let idle = keys.into_iter().filter(|(_, is_given)| is_tuned && *is_given);
    idle.map(|(key, _)| format!("{key} has no effect beside step = \"auto\" where a step can be found")).collect()
}
