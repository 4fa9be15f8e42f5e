//! D-SGLD for topic models: chains that travel between shards of documents, updated by stochastic gradient Riemannian Langevin dynamics.
//!
//! This file has the settings. The engine is [`chains::dsgld`](crate::methods::chains::dsgld); the update is [`Sgrld`].

use super::evaluation::MAX_ARRAYS;
use super::problem::TopicProblem;
use crate::kernels::langevin::StepSize;
use crate::lda::Sweeps;
use crate::methods::chains::dsgld::{AveragingPhase, Balance, Dsgld, DsgldSettings, PlannedTrajectories, Schedule, Trajectory};
use crate::methods::common::scores::Estimator;
use crate::methods::common::settings::{Corpus, DocumentBytes, MethodSettings, ResourceEstimate, TopicMethod, at_least_one};
use crate::methods::topics::{TopicArray, TopicPosterior};
use crate::methods::transitions::Sgrld;
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `dsgld` for topic models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct TopicDsgldSettings {
    /// Number of chains (C). More chains than agents are allowed.
    pub chains: u32,
    /// Rounds, in each of which every chain makes a visit; with `schedule = "rotating"`, one group of chains, at one agent.
    pub rounds: u64,
    /// Updates in a visit (τ): a number, or a list with one number for each agent.
    pub trajectory: Trajectory,
    /// Documents in a minibatch, drawn anew for every update.
    pub batch: usize,
    /// Step size (ε_t): an update adds noise of variance ε_t, and ε_t/2 times the score. A number such as 1e-5 is the step of all updates;
    /// `{ annealed = { a = 0.01, b = 1.0, c = 0.55 } }` is a (b + t)^-c after t updates of the chain.
    pub step: StepSize,
    /// `{ burn_in = 10, kept = 20 }`: Gibbs sweeps over each document of a minibatch, before and while topics are counted.
    pub sweeps: Sweeps,
    /// Whether the score of a shard is divided by the share q_s of updates that are made there. Without it, the chains are biased toward
    /// small shards.
    pub correction: bool,
    /// How chains travel: `"permutation"`, `"cyclic"`, `"derangement"` (no chain stays at its agent, unless there are more chains than agents),
    /// `"rotating"` (one group of chains makes visits in each round, as in the paper on DSVGD), or `"categorical"` (for one chain).
    pub schedule: Schedule,
    /// Updates of each chain before its first draw.
    pub burn_in: u64,
    /// Keep every `thin`-th update after burn-in. If it shares a factor with `trajectory`, draws cluster at the ends of visits. With
    /// annealed steps, early and late draws have the same weight.
    pub thin: u64,
    /// Rounds that may be in flight at the same time. 1 waits for the slowest agent after each round, as `through_server = true` always does.
    pub max_rounds_in_flight: u64,
    /// `{ threshold = 0.2, decay = 0.99, until = 100 }` adapts trajectories to the measured speeds of the agents until that round. Off by
    /// default.
    pub balance: Option<Balance>,
    /// `[{ round = 0, updates = [4, 12, 6, 3] }, ...]`: trajectories of all agents from given rounds on, instead of `balance`.
    /// `mpibayes plan RUN` prints those of an earlier run.
    pub plans: Vec<PlannedTrajectories>,
    /// `[{ groups = 1, rounds = 100 }, ...]`: phases in which chains are averaged within that many groups at the end of every visit.
    pub coupling: Vec<AveragingPhase>,
    /// Whether chains travel through the server, as in Algorithm 1 of the paper. Doubles the traffic.
    pub through_server: bool,
    /// Whether every visit is written to the table `visits`: round, agent, chain, updates before the visit (`first`) and in it (`updates`), and
    /// the factor of the score (`scale`).
    pub log_visits: bool,
    /// Milliseconds that each agent sleeps per update, to imitate slow machines in experiments; one number for each agent.
    pub sleep_ms: Vec<f64>,
}

impl Default for TopicDsgldSettings {
    /// The step size is that of Patterson & Teh 2013: 0.01 (1 + t/1000)^-0.6.
    fn default() -> Self {
        let DsgldSettings {
            chains,
            trajectory,
            correction,
            schedule,
            max_rounds_in_flight,
            balance,
            plans,
            coupling,
            through_server,
            log_visits,
            sleep_ms,
            ..
        } = DsgldSettings::default();
        Self {
            chains,
            rounds: 500,
            trajectory,
            batch: 50,
            step: StepSize::Annealed { a: 0.631, b: 1000.0, c: 0.6 },
            sweeps: Sweeps { burn_in: 10, kept: 20 },
            correction,
            schedule,
            burn_in: 1000,
            thin: 500,
            max_rounds_in_flight,
            balance,
            plans,
            coupling,
            through_server,
            log_visits,
            sleep_ms,
        }
    }
}

impl TopicDsgldSettings {
    /// The settings of the chains, without those of the transition.
    pub fn chains(&self) -> DsgldSettings {
        DsgldSettings {
            chains: self.chains,
            rounds: Some(self.rounds),
            trajectory: self.trajectory.clone(),
            batch: self.batch,
            step: self.step,
            ess: 1.0,
            gradient: Estimator::Plain,
            gradient_noise: 0.0,
            correction: self.correction,
            schedule: self.schedule,
            burn_in: Some(self.burn_in),
            thin: Some(self.thin),
            // The topics of different chains have no common order.
            expectations: false,
            max_rounds_in_flight: self.max_rounds_in_flight,
            balance: self.balance,
            plans: self.plans.clone(),
            coupling: self.coupling.clone(),
            // The noise of an update depends on the topics.
            noise_correction: false,
            through_server: self.through_server,
            // Every state is evaluated once.
            evaluation_window: self.chains as usize,
            log_visits: self.log_visits,
            sleep_ms: self.sleep_ms.clone(),
        }
    }

    /// The transition of the chains.
    pub fn transition<F: Real>(&self, problem: TopicProblem) -> Sgrld<F> {
        // An agent has fewer than 2^32 documents.
        Sgrld::new(problem, u32::try_from(self.batch).unwrap_or(u32::MAX), self.step, self.sweeps)
    }
}

impl MethodSettings for TopicDsgldSettings {
    type Data = Corpus;

    const NAME: &'static str = <DsgldSettings as MethodSettings>::NAME;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn check(&self) -> Result<(), KeyError> {
        in_range("chains", self.chains, self.chains <= MAX_ARRAYS, &format!("at most {MAX_ARRAYS}"))?;
        in_range("sweeps.kept", self.sweeps.kept, self.sweeps.kept > 0, "at least 1")?;
        at_least_one(&[("thin", self.thin)])?;
        if self.step == StepSize::Auto {
            return Err(KeyError::invalid(
                "step",
                "= \"auto\" is not possible for topic models. Choose { annealed = ... } or a number",
            ));
        }
        self.chains().check_without_agents()
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        self.chains().check_agents(agents)
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        // Documents are packed: an entry has one or two bytes for the word, and one for the number of tokens if there are several. While they
        // are read, the array grows by doubling.
        let document_bytes = DocumentBytes { document: 8, entry: 4, token: 0 };
        ResourceEstimate { document_bytes, ..self.chains().estimate(agents, parameters) }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        self.chains().notes(agents)
    }

    fn method<F: Real>(&self, problem: TopicProblem) -> TopicMethod {
        let (agents, settings) = (problem.agents, self.chains());
        let draws_from = settings.first_round_with_draws(agents);
        let method = Dsgld { agents, transition: self.transition::<F>(problem), settings };
        TopicMethod::new(method, TopicPosterior { array: TopicArray::Phi, draws_from, has_alphas: false })
    }
}
