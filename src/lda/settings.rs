//! The settings of latent Dirichlet allocation in run files.

use serde::{Deserialize, Serialize};

/// The settings of the model `lda`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LdaSettings {
    /// Number of topics K, from 1 to 65536.
    pub topics: u32,
    /// Dirichlet prior α of the topic weights of a document. Below 1, a document has few topics.
    pub alpha: f64,
    /// Dirichlet prior β of the word probabilities of a topic. Below 1, a topic has few words.
    pub beta: f64,
}

impl Default for LdaSettings {
    fn default() -> Self {
        Self { topics: 100, alpha: 0.1, beta: 0.01 }
    }
}

/// The maximum number of topics.
const MAX_TOPICS: u32 = 1 << 16;
/// The minimum of α and β; smaller values are lost when added to a count.
const MIN_PRIOR: f64 = 1e-12;

impl LdaSettings {
    /// The value of `name` in the `[model]` table.
    pub const NAME: &'static str = "lda";

    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// A message that says which setting is invalid and which values are allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MAX_TOPICS).contains(&self.topics) {
            return Err(format!("topics = {}: must be from 1 to {MAX_TOPICS}", self.topics));
        }
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} = {value}: must be positive"));
            }
            if value < MIN_PRIOR {
                return Err(format!("{name} = {value:e}: must be at least {MIN_PRIOR:e}"));
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
    fn priors_near_zero_are_refused() {
        let check = |alpha, beta| LdaSettings { alpha, beta, ..LdaSettings::default() }.check();
        assert_eq!(check(1e-12, 1e-12), Ok(()));
        assert_eq!(check(0.1, 9e-13).unwrap_err(), "beta = 9e-13: must be at least 1e-12");
        assert_eq!(check(1e-18, 0.1).unwrap_err(), "alpha = 1e-18: must be at least 1e-12");
        assert_eq!(check(f64::NAN, 0.1).unwrap_err(), "alpha = NaN: must be positive");
    }
}
