//! The settings of `lda`, and what they say of each sweep.

use super::Lda;
use crate::lda::{MAX_DOCUMENT_TOKENS, Residence, note_on_temporary_files};
use crate::methods::common::settings::{Corpus, DocumentBytes, MethodSettings, ResourceEstimate, TopicMethod};
use crate::methods::common::thinning::draws;
use crate::methods::topics::prior_updates::{OptimizePriors, PriorUpdates};
use crate::methods::topics::problem::TopicProblem;
use crate::methods::topics::sweeps::{SweepSettings, check_sweeps};
use crate::methods::topics::{TopicArray, TopicPosterior};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `lda`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LdaSamplerSettings {
    /// Sweeps over all tokens.
    pub rounds: u64,
    /// Sweeps that are discarded. Only later sweeps give draws and enter the average of predictions for held-out documents.
    pub burn_in: u64,
    /// Keep every `thin`-th sweep after burn-in as a draw: φ (W × K), with `optimize = "asymmetric"` followed by α of each topic.
    pub thin: u64,
    /// How φ is set before each sweep: `"drawn"` from its distribution given all topics, which has the posterior as its stationary
    /// distribution; `"collapsed"`, its mean given the topics before the sweep, where each token is left out of the counts, which needs fewer sweeps and is
    /// approximate; or `"auto"`, collapsed during burn-in and drawn afterwards. The first 12 sweeps are always collapsed, or all of burn-in if it is
    /// shorter, but at least one.
    pub phi: PhiUpdate,
    /// Which priors are estimated from the topics of all tokens, starting at the values of the model: `"none"`; `"alpha"`, one for all topics;
    /// `"both"`, also beta; or `"asymmetric"`, an alpha for each topic, and beta.
    pub optimize: OptimizePriors,
    /// Sweeps between estimates.
    pub optimize_every: u64,
    /// Sweeps before the first estimate. Earlier estimates of alpha would be far too large.
    pub optimize_after: u64,
    /// Whether tokens and topics are kept in memory, about 5 bytes per token. If false, they are kept in temporary files in the folder that the
    /// environment variable TMPDIR names, which must be on a disk; a sweep reads 5 and writes 2 bytes per token. The draws are the same.
    pub resident: bool,
}

/// How φ is set before a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhiUpdate {
    /// Collapsed during burn-in, drawn afterwards.
    #[default]
    Auto,
    /// From its distribution given the topics of all tokens.
    Drawn,
    /// Its mean given the topics of all other tokens.
    Collapsed,
}

impl Default for LdaSamplerSettings {
    fn default() -> Self {
        let SweepSettings { rounds, burn_in, thin, optimize, optimize_every, optimize_after, .. } = SweepSettings::default();
        Self { rounds, burn_in, thin, phi: PhiUpdate::default(), optimize, optimize_every, optimize_after, resident: true }
    }
}

/// The number of sweeps with a background, if burn-in is not shorter.
const BACKGROUND_SWEEPS: u64 = 12;
/// The background s of the first sweep, as a fraction of the mean number of tokens of a topic.
const FIRST_BACKGROUND: f64 = 1.0;
/// The background of the last of these sweeps, as a fraction of the first.
const LAST_BACKGROUND: f64 = 1.0 / 500.0;

impl LdaSamplerSettings {
    /// The background s, with which s p_w is added to φ, in the sweep after `done` sweeps, for this mean number of tokens of a topic.
    pub(super) fn background(&self, done: u64, tokens_of_topic: f64) -> f64 {
        let sweeps = BACKGROUND_SWEEPS.min(self.burn_in);
        if done >= sweeps {
            return 0.0;
        }
        let progress = done as f64 / (sweeps - 1).max(1) as f64;
        FIRST_BACKGROUND * tokens_of_topic * LAST_BACKGROUND.powf(progress)
    }

    /// Whether φ is drawn before the sweep after `done` sweeps. It never is before the first, when few documents have topics.
    pub(super) fn draws_phi(&self, done: u64) -> bool {
        let collapsed = match self.phi {
            PhiUpdate::Auto => self.burn_in,
            PhiUpdate::Drawn => BACKGROUND_SWEEPS.min(self.burn_in),
            PhiUpdate::Collapsed => return false,
        };
        done >= collapsed.max(1)
    }

    /// Where tokens and their topics are.
    pub(super) fn residence(&self) -> Residence {
        if self.resident { Residence::Memory } else { Residence::Files }
    }

    /// When priors are estimated.
    pub(super) fn prior_updates(&self) -> PriorUpdates {
        PriorUpdates { optimize: self.optimize, every: self.optimize_every, after: self.optimize_after }
    }
}

impl MethodSettings for LdaSamplerSettings {
    type Data = Corpus;

    const NAME: &'static str = "lda";

    const SEEDED_TOPICS: bool = true;

    const KEYS_WITHOUT_EFFECT_ON_RESULTS: &'static [&'static str] = &["resident"];

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn check(&self) -> Result<(), KeyError> {
        check_sweeps(self.rounds, self.burn_in, self.thin, self.prior_updates())
    }

    fn notes(&self, _agents: u32) -> Vec<String> {
        if self.resident { Vec::new() } else { note_on_temporary_files().into_iter().collect() }
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let parameters = parameters as u64;
        ResourceEstimate {
            rounds: Some(self.rounds),
            draws: Some(draws(self.rounds, self.burn_in, self.thin)),
            // The counts of all agents before and after a sweep, those of the agent, and the table of topics.
            values_of_agent: Some(parameters.saturating_mul(4)),
            // One array of counts to each agent, and one from it.
            values_per_round: Some(parameters.saturating_mul(2).saturating_mul(u64::from(agents))),
            // Counts are i32 and tables f32 with any dtype.
            bytes_of_value: Some(4),
            longest_document: Some(MAX_DOCUMENT_TOKENS),
            // Per token: document and topic, its part of the list of words, and a copy of its topic when the run is resumed. Not counted: up to
            // 20 bytes for each of the first 20 million tokens while they get initial topics.
            document_bytes: match self.residence() {
                Residence::Memory => DocumentBytes { document: 4, entry: 0, token: 7 },
                // Only when the run is resumed: the saved topics, once as bytes and once decoded.
                Residence::Files => DocumentBytes { document: 0, entry: 0, token: 4 },
            },
            ..ResourceEstimate::default()
        }
    }

    fn method<F: Real>(&self, problem: TopicProblem) -> TopicMethod {
        // Counts, from which evaluations take the mean of φ.
        let posterior = TopicPosterior {
            array: TopicArray::Counts,
            draws_from: self.burn_in.saturating_add(1),
            has_alphas: self.optimize == OptimizePriors::Asymmetric,
        };
        TopicMethod::new(Lda::new(problem, *self), posterior)
    }
}
