//! The settings of latent Dirichlet allocation in run files.

use super::token_blocks::MAX_TOPICS;
use crate::settings::{KeyError, in_range};
use serde::{Deserialize, Serialize};

/// The settings of the model `lda`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LdaSettings {
    /// Number of topics K, from 1 to 65534.
    pub topics: u32,
    /// Dirichlet prior α of the topic weights of a document. Below 1, a document has few topics.
    pub alpha: f64,
    /// Dirichlet prior β of the word probabilities of a topic. Below 1, a topic has few words.
    pub beta: f64,
    /// Seed words of the first topics, for the method `lda`: for each topic a string of words that belong to it, or an empty string.
    pub seed_words: Vec<String>,
    /// Pseudo-counts of a seed word in its topic: the larger, the less likely is it that the documents move the word out of the topic. If not
    /// set, the mean count of a word in the training documents.
    pub seed_tokens: Option<u32>,
}

impl Default for LdaSettings {
    fn default() -> Self {
        Self { topics: 100, alpha: 0.1, beta: 0.01, seed_words: Vec::new(), seed_tokens: None }
    }
}

/// The minimum of α and β; smaller values are lost when added to a count.
const MIN_PRIOR: f64 = 1e-12;
/// The maximum of α and β; sums of larger values would overflow in single precision.
const MAX_PRIOR: f64 = 1e12;
/// The most pseudo-counts of a seed word, so that counts stay far from the limits of their type.
pub const MAX_SEED_TOKENS: u32 = 1 << 20;

impl LdaSettings {
    /// The value of `name` in the `[model]` table.
    pub const NAME: &'static str = "lda";

    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// The key that is wrong, and which values are allowed.
    pub fn check(&self) -> Result<(), KeyError> {
        let range = format!("from 1 to {MAX_TOPICS}");
        in_range("topics", self.topics, (1..=MAX_TOPICS).contains(&self.topics), &range)?;
        for (key, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            in_range(key, value, (MIN_PRIOR..=MAX_PRIOR).contains(&value), &format!("from {MIN_PRIOR:e} to {MAX_PRIOR:e}"))?;
        }
        if self.seed_words.len() > self.topics as usize {
            let sentence = format!("are for {} topics, and there are only {}", self.seed_words.len(), self.topics);
            return Err(KeyError::invalid("seed_words", sentence));
        }
        if let Some(tokens) = self.seed_tokens {
            if self.seed_words.is_empty() {
                return Err(KeyError::invalid("seed_tokens", "is for seed_words, and there are none"));
            }
            in_range("seed_tokens", tokens, (1..=MAX_SEED_TOKENS).contains(&tokens), &format!("from 1 to {MAX_SEED_TOKENS}"))?;
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
        let message = |alpha, beta| check(alpha, beta).unwrap_err().to_string();
        assert_eq!(message(0.1, 0.0), "beta: must be from 1e-12 to 1e12, not 0");
        assert_eq!(message(0.1, -1.0), "beta: must be from 1e-12 to 1e12, not -1");
        assert_eq!(message(f64::NAN, 0.1), "alpha: must be from 1e-12 to 1e12, not NaN");
    }
}
