//! The settings of a method: the keys of its `[method]` table, and the method that they make for a problem.

use crate::cluster::{AnyMethod, Method, erase};
use crate::methods::common::evaluation::Evaluation;
use crate::methods::common::problem::Problem;
use crate::methods::common::with_evaluation::{Evaluator, Posterior, WithEvaluation};
use crate::methods::topics::{TopicEvaluation, TopicPosterior, TopicProblem};
use crate::methods::tuning::{Found, TuningNeeds};
use crate::models::Model;
use crate::number::Real;
#[cfg(doc)]
use crate::settings::keys;
use crate::settings::{Key, KeyError, Settings, in_range};

/// The settings of a method that a run file can name: the keys of its `[method]` table, each with a default.
pub trait MethodSettings: Settings {
    /// The kind of data that the method is for: [`Table`] or [`Corpus`].
    type Data: DataKind;

    /// Its `name` in the run file. A method for the other kind of data may have the same name.
    const NAME: &'static str;

    /// Who holds which training rows.
    const SHARING: Sharing = Sharing::Split;

    /// Whether its draws are meant to follow the posterior. Optimizers keep points that are not.
    const SAMPLES: bool = true;

    /// Whether a method for documents takes seed words of topics.
    const SEEDED_TOPICS: bool = false;

    /// The keys of `[method]` that change no result: a run may be resumed with other values of them.
    const KEYS_WITHOUT_EFFECT_ON_RESULTS: &'static [&'static str] = &[];

    /// The documentation of its keys, which `mpibayes init` writes into a run file: [`settings::keys::<Self>()`](keys) for a type that
    /// derives [`DocumentedFields`](documented::DocumentedFields).
    fn keys() -> Vec<Key> {
        Vec::new()
    }

    /// Checks the settings on their own.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    fn check(&self) -> Result<(), KeyError>;

    /// These settings with the defaults that depend on the number of agents.
    fn for_agents(&self, _agents: u32) -> Self {
        self.clone()
    }

    /// Checks the settings for this number of agents.
    ///
    /// # Errors
    /// The key that is wrong, and why. The key `agents` is that of the run.
    fn check_agents(&self, _agents: u32) -> Result<(), KeyError> {
        Ok(())
    }

    /// Checks that a model for tables provides what these settings need.
    ///
    /// # Errors
    /// The key that is wrong, and why.
    fn check_model(&self, _model: &dyn Model<f64>) -> Result<(), KeyError> {
        Ok(())
    }

    /// What a run needs, as far as it is known before it starts.
    fn estimate(&self, _agents: u32, _parameters: usize) -> ResourceEstimate {
        ResourceEstimate::default()
    }

    /// Remarks on settings that are allowed but perhaps not meant.
    fn notes(&self, _agents: u32) -> Vec<String> {
        Vec::new()
    }

    /// What must be found before the run; none if the settings leave nothing to be found.
    fn tuning(&self) -> Option<TuningNeeds> {
        None
    }

    /// These settings with everything that the run file leaves open: as what was found suggests, or preset values where nothing can be
    /// found.
    fn tuned(&self, _found: Found, _agents: u32) -> Self {
        self.clone()
    }

    /// How a finished run can be made longer; none if its course depends on its length.
    fn length(&self, _agents: u32) -> Option<Length> {
        None
    }

    /// The method for a problem.
    fn method<F: Real>(&self, problem: <Self::Data as DataKind>::Problem<F>) -> <Self::Data as DataKind>::Method<F>;
}

/// The length of a run that can be made longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// The key that sets it: `steps`.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// The rounds at the end of a run, by its progress, in which it differs from a longer one: what it would do next is not begun.
    pub last_rounds: u64,
}

/// A kind of data, and so of what is inferred from them.
pub trait DataKind: Sized + Send + Sync + 'static {
    /// The inference problem that agents share.
    type Problem<F: Real>;
    /// A method for such problems.
    type Method<F: Real>;
}

/// Rows of features and targets: the parameters of a [`Model`] are inferred.
#[derive(Clone, Copy, Debug)]
pub enum Table {}

/// Documents: topics are inferred.
#[derive(Clone, Copy, Debug)]
pub enum Corpus {}

impl DataKind for Table {
    type Problem<F: Real> = Problem<F>;
    type Method<F: Real> = TableMethod<F>;
}

impl DataKind for Corpus {
    type Problem<F: Real> = TopicProblem;
    type Method<F: Real> = TopicMethod;
}

/// Turns a method into what drivers run, under the name that the run file gives it and with evaluation by `E`, if any.
type Start<E> = Box<dyn FnOnce(&'static str, Option<E>) -> AnyMethod + Send>;

fn start<M, E>(method: M) -> Start<E>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    E: Evaluator<M::Number>,
{
    Box::new(move |name, evaluation| match evaluation {
        Some(evaluator) => erase(WithEvaluation { inner: method, evaluator }, name),
        None => erase(method, name),
    })
}

/// A method for tables, ready to start.
pub struct TableMethod<F> {
    draws: DrawKind,
    start: Start<Evaluation<F>>,
}

/// What the draws of a method for tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawKind {
    /// One set of particles, which have no order: R-hat and effective sample size are not defined.
    Particles,
    /// Such particles, which are draws from a normal distribution that is fitted to the posterior.
    FittedNormal,
    /// Markov chains.
    Chains,
}

impl<F: Real> TableMethod<F> {
    /// A method whose draws are particles.
    pub fn particles<M: Method<Number = F>>(method: M) -> Self
    where
        M::Server: Posterior<F>,
    {
        Self { draws: DrawKind::Particles, start: start(method) }
    }

    /// A method whose draws come from a normal distribution that it fits to the posterior.
    pub fn fitted_normal<M: Method<Number = F>>(method: M) -> Self
    where
        M::Server: Posterior<F>,
    {
        Self { draws: DrawKind::FittedNormal, start: start(method) }
    }

    /// A method whose draws are Markov chains.
    pub fn chains<M: Method<Number = F>>(method: M) -> Self
    where
        M::Server: Posterior<F>,
    {
        Self { draws: DrawKind::Chains, start: start(method) }
    }

    /// What its draws are.
    pub fn draws(&self) -> DrawKind {
        self.draws
    }

    /// The method as drivers run it.
    pub fn start(self, name: &'static str, evaluation: Option<Evaluation<F>>) -> AnyMethod {
        (self.start)(name, evaluation)
    }
}

/// A method for topic models, ready to start.
pub struct TopicMethod {
    posterior: TopicPosterior,
    start: Start<TopicEvaluation>,
}

impl TopicMethod {
    /// A method whose draws are topics.
    pub fn new<M: Method>(method: M, posterior: TopicPosterior) -> Self
    where
        M::Server: Posterior<M::Number>,
    {
        Self { posterior, start: start(method) }
    }

    /// What its posterior consists of.
    pub fn posterior(&self) -> TopicPosterior {
        self.posterior
    }

    /// The method as drivers run it.
    pub fn start(self, name: &'static str, evaluation: Option<TopicEvaluation>) -> AnyMethod {
        (self.start)(name, evaluation)
    }
}

/// Who holds which training rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Every row is at exactly one agent.
    #[default]
    Split,
    /// Every agent sees all rows; the agents of a rank share one copy.
    Replicated,
}

impl Sharing {
    /// How many shards there are for this number of agents.
    pub fn shards(self, agents: usize) -> usize {
        match self {
            Self::Split => agents,
            Self::Replicated => 1,
        }
    }

    /// The shard of an agent.
    pub fn shard<N: Default>(self, agent: N) -> N {
        match self {
            Self::Split => agent,
            Self::Replicated => N::default(),
        }
    }
}

/// What a run needs, as far as it is known before it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceEstimate {
    /// Particles or chains.
    pub particles: Option<u64>,
    /// Rounds.
    pub rounds: Option<u64>,
    /// Draws of each chain, if the settings say so. Not set for particles, each of which is one draw.
    pub draws: Option<u64>,
    /// Rows in a minibatch of an agent.
    pub minibatch: Option<u64>,
    /// Bytes of a value, if they do not follow from the run's dtype.
    pub bytes_of_value: Option<u64>,
    /// The most tokens of a document, if they are limited.
    pub longest_document: Option<u64>,
    /// Memory of an agent for its documents.
    pub document_bytes: DocumentBytes,
    /// Values in an agent's working memory, beside its rows.
    pub values_of_agent: Option<u64>,
    /// Values sent in a round if every agent has a rank of its own.
    pub values_per_round: Option<u64>,
}

/// Bytes of documents at an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentBytes {
    /// For each document.
    pub document: u64,
    /// For each distinct word of a document.
    pub entry: u64,
    /// For each token.
    pub token: u64,
}

/// Checks that counts are at least 1.
///
/// # Errors
/// Names the first that is 0.
pub fn at_least_one(counts: &[(&str, u64)]) -> Result<(), KeyError> {
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((key, _)) => Err(KeyError::invalid(key, "must be at least 1, not 0")),
        None => Ok(()),
    }
}

/// Checks that one agent has all data, as a centralized method needs.
///
/// # Errors
/// Names `agents`, a top-level key of the run file.
pub fn one_agent(method: &str, agents: u32) -> Result<(), KeyError> {
    in_range("agents", agents, agents == 1, &format!("1 for {method}, which is centralized: one agent has all data"))
}

/// The error for a run that keeps no draws: of `total` updates, none or fewer than `thin` follow `burn_in`.
pub fn no_draws(burn_in: u64, thin: u64, total: u64) -> KeyError {
    match total.saturating_sub(burn_in) {
        0 => KeyError::invalid(
            "burn_in",
            format!("= {burn_in} leaves no draws: there are {total} updates. Set burn_in below {total}"),
        ),
        after => KeyError::invalid(
            "thin",
            format!("= {thin} keeps no draws: there are {after} updates after burn_in = {burn_in}. Set thin to at most {after}"),
        ),
    }
}

/// The error for a list that does not have one number for each agent.
pub fn one_for_each_agent(key: &str, numbers: usize, agents: u32) -> KeyError {
    KeyError::invalid(key, format!("has {numbers} numbers; must have one for each of the {agents} agents"))
}

/// Checks the times that agents sleep to imitate slow machines.
///
/// # Errors
/// If one is not from 0 to a million milliseconds.
pub fn check_sleep(sleep_ms: &[f64]) -> Result<(), KeyError> {
    sleep_ms.iter().try_for_each(|&sleep| in_range("sleep_ms", sleep, (0.0..=1e6).contains(&sleep), "from 0 to 1e6"))
}
