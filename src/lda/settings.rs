//! The settings of latent Dirichlet allocation that a run file can name.

use serde::{Deserialize, Serialize};

/// The keys of the `[model]` table `lda`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LdaSettings {
    /// K.
    pub topics: u32,
    /// α, for each topic of a document.
    pub alpha: f64,
    /// β, for each word of a topic.
    pub beta: f64,
}

impl Default for LdaSettings {
    fn default() -> Self {
        Self { topics: 100, alpha: 0.1, beta: 0.01 }
    }
}

/// The most topics that a model may have.
const MOST_TOPICS: u32 = 1 << 16;
/// The smallest α and β: smaller ones are as good as none, and are lost beside a count.
const LEAST_PRIOR: f64 = 1e-12;

impl LdaSettings {
    /// Its `name` in the table.
    pub const NAME: &'static str = "lda";

    /// Whether the settings can be run.
    ///
    /// # Errors
    /// A message that says which setting is out of its range.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MOST_TOPICS).contains(&self.topics) {
            return Err(format!("topics = {}: from 1 to {MOST_TOPICS}", self.topics));
        }
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} = {value}: must be a number above 0"));
            }
            if value < LEAST_PRIOR {
                return Err(format!("{name} = {value:e}: at least {LEAST_PRIOR:e}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn priors_that_are_as_good_as_none_are_refused() {
        let check = |alpha, beta| LdaSettings { alpha, beta, ..LdaSettings::default() }.check();
        assert_eq!(check(1e-12, 1e-12), Ok(()));
        assert_eq!(check(0.1, 9e-13).unwrap_err(), "beta = 9e-13: at least 1e-12");
        assert_eq!(check(1e-18, 0.1).unwrap_err(), "alpha = 1e-18: at least 1e-12");
        assert_eq!(check(f64::NAN, 0.1).unwrap_err(), "alpha = NaN: must be a number above 0");
    }
}
