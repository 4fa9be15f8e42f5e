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
