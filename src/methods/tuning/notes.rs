//! Notes on keys that have no effect beside automatic steps.

use crate::methods::common::scores::Estimator;

/// Notes on given keys that automatic steps replace.
pub fn idle_keys(is_tuned: bool, gradient: Estimator, gradient_noise: f64) -> Vec<String> {
    let keys = [("gradient", gradient != Estimator::Plain), ("gradient_noise", gradient_noise != 0.0)];
    let idle = keys.into_iter().filter(|(_, is_given)| is_tuned && *is_given);
    idle.map(|(key, _)| format!("{key} has no effect beside step = \"auto\" where a step can be found")).collect()
}
