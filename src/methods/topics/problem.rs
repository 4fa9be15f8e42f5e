//! The problem of topic models: latent Dirichlet allocation, its priors, and the documents of each agent.

use crate::cluster::{AgentId, BoxError};
use crate::lda::{Alpha, DocumentSource, Documents, Priors, SeedWords};
use crate::number::Number;
use std::sync::Arc;

/// Opens the documents of an agent, on the rank that hosts it.
pub type OpenDocuments = Arc<dyn Fn(AgentId) -> Result<Box<dyn DocumentSource>, BoxError> + Send + Sync>;

/// Latent Dirichlet allocation of documents that are spread over agents.
#[derive(Clone)]
pub struct TopicProblem {
    /// The number of agents.
    pub agents: u32,
    /// W, the size of the vocabulary.
    pub vocabulary: u32,
    /// K, the number of topics.
    pub topics: u32,
    /// α, the prior count of each topic in a document.
    pub alpha: f64,
    /// β, the prior count of each word in a topic.
    pub beta: f64,
    /// Pseudo-counts of words that are known to belong to a topic.
    pub seed_words: Arc<SeedWords>,
    /// Opens the documents of an agent.
    pub documents: OpenDocuments,
}

impl TopicProblem {
    /// W K, the number of topic-word counts, without the priors that may follow them.
    pub fn size(&self) -> usize {
        self.vocabulary as usize * self.topics as usize
    }

    /// α and β of the settings, which a run may estimate anew.
    pub fn priors(&self) -> Priors {
        Priors { alpha: Alpha::Symmetric(self.alpha), beta: self.beta }
    }

    /// Splits an array into counts (W × K) and the priors that follow them.
    ///
    /// # Errors
    /// If the array has the wrong length.
    pub(super) fn split_priors<'a, N: Number>(&self, array: &'a [N]) -> Result<(&'a [N], Priors), BoxError> {
        let priors = array.split_at_checked(self.size()).and_then(|(counts, rest)| {
            // Exact, because the arrays of methods that send priors have `Number = i32`.
            let rest: Vec<i32> = rest.iter().map(|number| number.f64() as i32).collect();
            Some((counts, Priors::from_i32s(&rest, self.topics as usize)?))
        });
        priors.ok_or_else(|| {
            format!("an array of {} values cannot be {} topic-word counts and the priors after them", array.len(), self.size())
                .into()
        })
    }

    /// All documents of an agent at once.
    ///
    /// # Errors
    /// If they cannot be read or have another vocabulary, or if the problem is invalid.
    pub fn open(&self, agent: AgentId) -> Result<Documents, BoxError> {
        let source = self.source(agent)?;
        source.read(0..source.len())
    }

    /// The documents of an agent, to be read in parts.
    ///
    /// # Errors
    /// If they cannot be opened or have another vocabulary, or if the problem is invalid.
    pub fn source(&self, agent: AgentId) -> Result<Box<dyn DocumentSource>, BoxError> {
        let Self { vocabulary, topics, alpha, beta, .. } = *self;
        if vocabulary == 0 || topics == 0 {
            return Err(format!("{vocabulary} words and {topics} topics: there must be at least one of each").into());
        }
        if let Some((name, value)) =
            [("alpha", alpha), ("beta", beta)].into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0))
        {
            return Err(format!("{name} = {value}: must be a finite number above 0").into());
        }
        let documents = (self.documents)(agent)?;
        match documents.vocabulary() {
            words if words == self.vocabulary => Ok(documents),
            words => {
                Err(format!("the vocabulary of the documents has {words} words, that of the topics has {}", self.vocabulary)
                    .into())
            }
        }
    }
}
