//! A method as a run file names it: settings that make it for a problem, and what starts it then.

use crate::cluster::Method;
use crate::methods::common::problem::Problem;
use crate::methods::common::with_evaluation::Posterior;
use crate::methods::topics::TopicProblem;
use crate::models::Model;
use crate::number::Real;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What data are made of, and so what is inferred of them.
pub trait DataKind: 'static {
    /// The problem that agents share.
    type Problem<F: Real>;
}

/// Rows of features and targets: a [`Model`]'s parameters are inferred.
pub enum Rows {}

/// Documents: topics are inferred.
pub enum Texts {}

impl DataKind for Rows {
    type Problem<F: Real> = Problem<F>;
}

impl DataKind for Texts {
    type Problem<F: Real> = TopicProblem;
}

/// Who sees which training rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Every row is at one agent.
    #[default]
    Dealt,
    /// Every row is at every agent; those of a rank share them.
    Everyone,
}

impl Sharing {
    /// Among how many rows are dealt, where there are so many agents.
    pub fn owners(self, agents: usize) -> usize {
        match self {
            Self::Dealt => agents,
            Self::Everyone => 1,
        }
    }

    /// Which of them has the rows of this agent.
    pub fn owner<N: Default>(self, agent: N) -> N {
        match self {
            Self::Dealt => agent,
            Self::Everyone => N::default(),
        }
    }
}

/// The settings of a method that a run file can name: the keys of its `[method]` table, each with a default.
pub trait MethodKind<D: DataKind = Rows>: Serialize + DeserializeOwned + 'static {
    /// Its `name` in the table; methods for other data may have the same one.
    const NAME: &'static str;

    /// Values that replace defaults which it shares with a method for other data, as `--set` takes them.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[];

    /// Who sees which training rows.
    const SHARING: Sharing = Sharing::Dealt;

    /// What each key means, in the order in which people should read them: what `mpibayes init` writes beside them.
    const DOCS: &'static [(&'static str, &'static str)] = &[];

    /// What a run takes, as far as it can be told beforehand: what `mpibayes check` says, for so many agents and parameters.
    fn needs(&self, _agents: u32, _parameters: usize) -> Needs {
        Needs::default()
    }

    /// What is allowed, but perhaps not meant, with so many agents: `mpibayes check` says it.
    fn notes(&self, _agents: u32) -> Vec<String> {
        Vec::new()
    }

    /// Whether the settings can be run.
    ///
    /// # Errors
    /// A message that says which setting is out of its range.
    fn check(&self) -> Result<(), String>;

    /// Whether they can be run with so many agents.
    ///
    /// # Errors
    /// A message that says which setting does not fit.
    fn check_for(&self, _agents: u32) -> Result<(), String> {
        Ok(())
    }

    /// Makes the method for a problem and hands it to the launcher.
    fn launch<F: Real, L: Launcher<F>>(&self, problem: D::Problem<F>, launcher: L) -> L::Outcome;
}

/// What a run takes, as far as it can be told beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Particles or chains.
    pub particles: Option<u64>,
    /// Rounds.
    pub rounds: Option<u64>,
    /// Rows that an agent's minibatch asks for.
    pub minibatch: Option<u64>,
    /// Bytes of a number, where they are not those of the run's precision.
    pub bytes_of_number: Option<u64>,
    /// What an agent takes for its documents.
    pub of_documents: DocumentBytes,
    /// Numbers that an agent keeps and works on, beside its rows.
    pub numbers_of_agent: Option<u64>,
    /// Numbers that travel in a round where every agent has a rank of its own.
    pub numbers_per_round: Option<u64>,
}

/// Bytes that documents take at an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentBytes {
    /// Each of them.
    pub document: u64,
    /// Each different word of a document.
    pub entry: u64,
    /// Each token.
    pub token: u64,
}

/// What starts a method once it is made.
pub trait Launcher<F: Real> {
    /// How it went.
    type Outcome;

    /// Runs a particle method to its end, with evaluation where there are test rows.
    fn particles<M: Method<Number = F>>(self, method: M, model: Arc<dyn Model<F>>) -> Self::Outcome
    where
        M::Server: Posterior<F>;

    /// The same of a method whose draws are those of chains.
    fn chains<M: Method<Number = F>>(self, method: M, model: Arc<dyn Model<F>>) -> Self::Outcome
    where
        M::Server: Posterior<F>;

    /// Runs a method whose draws are topics (W × K) to its end, with evaluation where there are documents that are held out.
    fn topics<M: Method>(self, method: M, shown: Shown) -> Self::Outcome
    where
        M::Server: Posterior<M::Number>;
}

/// What an array of topics holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicArray {
    /// φ up to a factor for each topic (W × K).
    Phi,
    /// The counts n_kw (W × K), and behind them the words of the priors, [`crate::lda::Priors`]: φ_kw = (n_kw + β)/(n_k + W β).
    Counts,
}

/// What the posterior of a method for topics is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// What an array of topics holds.
    pub array: TopicArray,
    /// The round with the first draw.
    pub draws_from: u64,
}

/// The first of these counts that is 0.
///
/// # Errors
/// Names it.
pub fn at_least_one(counts: &[(&str, u64)]) -> Result<(), String> {
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((name, _)) => Err(format!("{name} = 0: must be at least 1")),
        None => Ok(()),
    }
}

/// Whether one agent has all data, as a centralised method wants it.
///
/// # Errors
/// A message that says what to set.
pub fn centralised(method: &str, agents: u32) -> Result<(), String> {
    match agents {
        1 => Ok(()),
        _ => Err(format!("{method} is centralised: one agent has all data; set agents = 1, not {agents}")),
    }
}
