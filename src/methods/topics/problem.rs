//! What agents infer of documents: topics, with their priors, and the documents that each agent alone can see.

use crate::cluster::{AgentId, BoxError};
use crate::lda::{Documents, Priors};
use std::sync::Arc;

/// Opens the documents of an agent, on the rank that hosts it.
pub type OpenDocuments = Arc<dyn Fn(AgentId) -> Result<Documents, BoxError> + Send + Sync>;

/// Latent Dirichlet allocation of documents that agents share.
#[derive(Clone)]
pub struct TopicProblem {
    /// How many agents there are.
    pub agents: u32,
    /// W.
    pub vocabulary: u32,
    /// K.
    pub topics: u32,
    /// α, for each topic of a document.
    pub alpha: f64,
    /// β, for each word of a topic.
    pub beta: f64,
    /// The documents of each agent.
    pub documents: OpenDocuments,
}

impl TopicProblem {
    /// W K, numbers in an array of topics.
    pub fn size(&self) -> usize {
        self.vocabulary as usize * self.topics as usize
    }

    /// α and β.
    pub fn priors(&self) -> Priors {
        Priors { alpha: self.alpha, beta: self.beta }
    }

    /// The documents of an agent.
    ///
    /// # Errors
    /// Where they cannot be read, or are of another vocabulary; or the problem itself is none.
    pub fn open(&self, agent: AgentId) -> Result<Documents, BoxError> {
        let Self { vocabulary, topics, alpha, beta, .. } = *self;
        if vocabulary == 0 || topics == 0 {
            return Err(format!("{vocabulary} words and {topics} topics: at least one of each").into());
        }
        if let Some((name, value)) =
            [("alpha", alpha), ("beta", beta)].into_iter().find(|(_, value)| !(value.is_finite() && *value > 0.0))
        {
            return Err(format!("{name} = {value}: must be a number above 0").into());
        }
        let documents = (self.documents)(agent)?;
        match documents.vocabulary() {
            words if words == self.vocabulary => Ok(documents),
            words => Err(format!("documents over {words} words for topics over {}", self.vocabulary).into()),
        }
    }
}
