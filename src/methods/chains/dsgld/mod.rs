//! Distributed stochastic gradient Langevin dynamics: chains travel from shard to shard, past the server.
//!
//! θ ← θ + (ε/2) {∇log p0(θ) + (N_s/q_s) ḡ_s(θ)} + N(0, ε I) at agent s, with ḡ_s the mean score of a minibatch of its N_s rows and q_s
//! the share of all updates that are made there (Ahn, Shahbaba & Welling 2014, "Distributed Stochastic Gradient MCMC", Prop. 3.1). A
//! visit is some updates; then the chain goes on to its next agent. AveragingPhase chains leave their mean there instead. With one agent
//! this is SGLD (Welling & Teh 2011).

mod agent;
mod coupling;
mod expectations;
mod plan;
mod schedule;
mod server;

use coupling::splits;
pub use coupling::{AveragingPhase, groups};
pub use expectations::EXPECTATIONS;
pub use plan::{Balance, PlannedTrajectories, Trajectories, balanced};
pub use schedule::{Schedule, agent_of, slots};

use crate::cluster::{AgentId, Method, Result};
use crate::kernels::langevin::StepSize;
use crate::lda::Sweeps;
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one};
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sgld::Sgld;
use crate::methods::transitions::transition::Transition;
use crate::number::Real;
use agent::DsgldAgent;
use serde::{Deserialize, Serialize};
use server::{DsgldServer, ServerState};

/// More rounds than this are not under way at a time: what is posted cannot be planned anew, nor be left out of a checkpoint.
const MOST_AHEAD: u64 = 1000;

/// Chains that travel over agents.
#[derive(Clone)]
pub struct Dsgld<T> {
    /// S, the number of agents.
    pub agents: u32,
    /// How chains are updated.
    pub transition: T,
    /// How they travel, and what is kept of them. What the transition is made of has been read.
    pub settings: DsgldSettings,
}

impl<F: Real> Dsgld<Sgld<F>> {
    /// D-SGLD of a problem.
    pub fn sgld(problem: Problem<F>, settings: DsgldSettings) -> Self {
        let DsgldSettings { batch, step, gradient, .. } = settings;
        Self { agents: problem.agents, transition: Sgld { problem, batch, step, gradient }, settings }
    }
}

/// How many updates a visit makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Trajectory {
    /// As many at every agent.
    Same(f64),
    /// One number for each agent.
    Each(Vec<f64>),
}

/// The settings of `dsgld`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DsgldSettings {
    /// C.
    pub chains: u32,
    /// Visits that each chain makes; of groups of chains in turn, visits of all groups.
    pub rounds: u64,
    /// τ, updates in a visit.
    pub trajectory: Trajectory,
    /// Rows in a minibatch.
    pub batch: usize,
    /// ε_t, with t the chain's own count of updates.
    pub step: StepSize,
    /// How minibatches become scores.
    pub gradient: Estimator,
    /// Gibbs sweeps over each document of a minibatch, where topics are inferred.
    pub sweeps: Option<Sweeps>,
    /// Whether scores are scaled to the frequencies q_s; without, chains are drawn to small shards.
    pub correction: bool,
    /// How chains travel.
    pub schedule: Schedule,
    /// Updates before the first draw of each chain that is kept.
    pub burn_in: u64,
    /// Of the updates after those every so-many-th is kept; 0 for none.
    pub thin: u64,
    /// Whether posterior means and standard deviations are computed of all updates after the burn-in, weighted by step sizes, where
    /// they are made.
    pub expectations: bool,
    /// Rounds that are under way at a time.
    pub max_rounds_in_flight: u64,
    /// When trajectories are planned anew.
    pub balance: Option<Balance>,
    /// Trajectories from some rounds on, such as an earlier run has planned them.
    pub plans: Vec<PlannedTrajectories>,
    /// Which chains are averaged, one phase after the other.
    pub coupling: Vec<AveragingPhase>,
    /// Whether averaged chains get back, with noise that they share, the variance that averaging took.
    pub noise_correction: bool,
    /// Whether chains travel through the server, as in Algorithm 1 of the paper.
    pub through_server: bool,
    /// How many of the latest states, at the ends of evaluated rounds, predictions are averaged over.
    pub evaluation_window: usize,
    /// Whether every visit is written down: table `visits`.
    pub log_visits: bool,
    /// Milliseconds that agents sleep for each update: slow machines for experiments.
    pub sleep_ms: Vec<f64>,
}

impl Default for DsgldSettings {
    fn default() -> Self {
        Self {
            chains: 4,
            rounds: 1000,
            trajectory: Trajectory::Same(10.0),
            batch: 100,
            step: StepSize::default(),
            gradient: Estimator::default(),
            sweeps: None,
            correction: true,
            schedule: Schedule::default(),
            burn_in: 1000,
            thin: 7,
            expectations: false,
            max_rounds_in_flight: 2,
            balance: None,
            plans: Vec::new(),
            coupling: Vec::new(),
            noise_correction: false,
            through_server: false,
            evaluation_window: 100,
            log_visits: false,
            sleep_ms: Vec::new(),
        }
    }
}

impl DsgldSettings {
    /// τ_s of each agent.
    fn trajectories(&self, agents: u32) -> Result<Trajectories, String> {
        self.check_for(agents)?;
        Ok(Trajectories::new(match &self.trajectory {
            Trajectory::Same(updates) => vec![*updates; agents as usize],
            Trajectory::Each(updates) => updates.clone(),
        }))
    }

    /// Updates that a chain makes in all, on average over agents; of a chain that stays longer where more rows are, which are not known
    /// here, as many as it makes at least.
    fn updates(&self, agents: u32) -> f64 {
        let in_visit = |updates: &[f64]| match self.schedule {
            Schedule::Categorical => updates.iter().copied().fold(f64::INFINITY, f64::min),
            _ => updates.iter().sum::<f64>() / updates.len() as f64,
        };
        // What holds from which round on, up to the last.
        let first = std::iter::once((0, in_visit(self.listed())));
        let planned = self.plans.iter().map(|planned| (planned.round, in_visit(&planned.updates)));
        let plans: Vec<(u64, f64)> = first.chain(planned).collect();
        let ends = plans.iter().skip(1).map(|plan| plan.0).chain([self.rounds]);
        let all: f64 = plans.iter().zip(ends).map(|(&(from, updates), to)| updates * to.saturating_sub(from) as f64).sum();
        all / f64::from(self.schedule.every(self.chains, agents))
    }

    /// The round behind which chains have draws, on average over agents.
    pub(crate) fn first_round_with_draws(&self, agents: u32) -> u64 {
        let share = (self.burn_in as f64 / self.updates(agents)).clamp(0.0, 1.0);
        1 + (share * self.rounds as f64) as u64
    }

    /// The trajectories as they are written.
    fn listed(&self) -> &[f64] {
        match &self.trajectory {
            Trajectory::Same(updates) => std::slice::from_ref(updates),
            Trajectory::Each(updates) => updates,
        }
    }
}

impl MethodKind for DsgldSettings {
    const NAME: &'static str = "dsgld";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("chains", "C, how many chains; more than agents are fine"),
        ("rounds", "visits that each chain makes; with the schedule rotating, of all groups in turn"),
        ("trajectory", "updates in a visit: a number, or a list with one for each agent"),
        ("batch", "rows, or documents, in a minibatch, fresh for every update"),
        (
            "step",
            "{ annealed = { a = 0.01, b = 1.0, c = 0.55 } }, a (b + t)^-c after t updates of the chain, or { constant = 1e-5 }: variance of the noise of an update, whose drift is half of it times the score",
        ),
        (
            "gradient",
            "\"plain\", or { control_variate = 100 }: from that round on the score of minibatches is corrected by that at a fixed point",
        ),
        ("sweeps", "{ burn_in = 10, kept = 20 }: Gibbs sweeps over each document of a minibatch; for topic models alone"),
        ("correction", "whether scores are scaled to how often a shard is used; false shows the bias"),
        (
            "schedule",
            "\"permutation\", \"cyclic\", \"derangement\" (no chain stays where it is, if there are no more chains than agents), \
             \"rotating\" (a group of chains moves in each round, at one agent, as DSVGD's paper has it), or \"categorical\" for one chain",
        ),
        ("burn_in", "updates of each chain before those that draws are taken of"),
        (
            "thin",
            "of the updates after those every so-many-th is kept, 0 for none; without a common factor with trajectory, or all draws are ends of visits. With annealed steps later draws count as much as earlier ones",
        ),
        (
            "expectations",
            "whether posterior means and standard deviations are computed of all updates after the burn-in, weighted by step sizes, without draws",
        ),
        ("max_rounds_in_flight", "rounds that are under way at a time: 1 waits for the slowest agent after each"),
        (
            "balance",
            "{ threshold = 0.2, decay = 0.99, until = 100 } plans trajectories by measured speeds up to that round; not by default",
        ),
        (
            "plans",
            "[{ round = 0, updates = [4, 12, 6, 3] }, ...]: trajectories from some rounds on, in place of balance; `mpibayes plan RUN` prints those of a run",
        ),
        ("coupling", "[{ groups = 1, rounds = 100 }, ...]: for so many rounds chains are averaged within so many groups"),
        (
            "noise_correction",
            "whether averaged chains get the variance back that averaging took; wants trajectory = 1. Draws are states before averaging",
        ),
        ("through_server", "whether chains travel through the server; twice the traffic"),
        ("evaluation_window", "how many of the latest states predictions are averaged over when a round is evaluated"),
        (
            "log_visits",
            "whether every visit is written down, in the table visits: round, agent, chain, updates before it and in it",
        ),
        ("sleep_ms", "milliseconds that each agent sleeps for an update: slow machines for experiments"),
    ];

    fn check_for(&self, agents: u32) -> Result<(), String> {
        let wrong = |count: usize, name: &str| format!("{name} lists {count} numbers for {agents} agents: one for each");
        if let Trajectory::Each(updates) = &self.trajectory
            && updates.len() != agents as usize
        {
            return Err(wrong(updates.len(), "trajectory"));
        }
        if !self.sleep_ms.is_empty() && self.sleep_ms.len() != agents as usize {
            return Err(wrong(self.sleep_ms.len(), "sleep_ms"));
        }
        if let Some(planned) = self.plans.iter().find(|planned| planned.updates.len() != agents as usize) {
            return Err(wrong(planned.updates.len(), &format!("plans: round {}", planned.round)));
        }
        let updates = self.updates(agents);
        if (self.burn_in.saturating_add(self.thin.max(1))) as f64 > updates {
            return Err(format!("burn_in = {} leaves no draws: a chain makes some {updates:.0} updates in all", self.burn_in));
        }
        if !self.coupling.is_empty() && self.chains > agents {
            return Err(format!("coupling wants every chain at an agent of its own: {} chains, {agents} agents", self.chains));
        }
        if self.through_server
            && let Some(pair) = self.coupling.windows(2).find(|pair| !splits(self.chains, pair[0].groups, pair[1].groups))
        {
            let [before, after] = [pair[0].groups, pair[1].groups];
            return Err(format!(
                "coupling: through the server groups can only be split, which {after} groups do not with {before}"
            ));
        }
        Ok(())
    }

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let chains = u64::from(self.chains);
        let moving = chains.div_ceil(u64::from(self.schedule.every(self.chains, agents)));
        let parameters = parameters as u64;
        let planned = self.plans.iter().flat_map(|planned| &planned.updates);
        let longest = self.listed().iter().chain(planned).copied().fold(1.0, f64::max).ceil();
        // As a float it is below 1e9, as settings are checked.
        let draws = if self.thin == 0 { 0 } else { (longest as u64).div_ceil(self.thin) };
        // A chain and what its score is made in; the sums of expectations are in double precision, and their totals travel.
        let own = 5 + if self.gradient == Estimator::Plain { 0 } else { 2 } + if self.expectations { 6 } else { 0 };
        Needs {
            particles: Some(chains),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            numbers_of_agent: Some(parameters.saturating_mul(own).saturating_add(parameters.saturating_mul(draws))),
            numbers_per_round: Some(moving.saturating_mul(parameters).saturating_mul(if self.through_server { 2 } else { 1 })),
            ..Needs::default()
        }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        let mut notes = Vec::new();
        // The first round with draws, and the last; as floats, for phases may be longer than any run.
        let rounds = self.rounds as f64;
        let from = self.burn_in as f64 / self.updates(agents) * rounds;
        if self.balance.is_some() && !self.plans.is_empty() {
            notes.push("plans are followed, and so balance plans nothing".into());
        } else if let Some(balance) = &self.balance
            && (balance.until as f64).min(rounds) > from
        {
            let until = balance.until.min(self.rounds);
            notes.push(format!(
                "balance plans until round {until}, and draws begin in about round {from:.0}: those in between come from plans that \
                 still change with measured speeds"
            ));
        }
        let coupled: f64 = self.coupling.iter().map(|phase| phase.rounds as f64).sum();
        if coupled.min(rounds) > from && !self.noise_correction {
            notes.push(format!(
                "chains are averaged until round {:.0}, and draws begin in about round {from:.0}: averaged chains are too little spread",
                coupled.min(rounds)
            ));
        }
        let turns = self.schedule.every(self.chains, agents);
        if self.schedule == Schedule::Rotating && self.max_rounds_in_flight < u64::from(turns) {
            notes.push(format!(
                "groups of chains take turns: with max_rounds_in_flight = {turns} all agents could compute at the same time"
            ));
        }
        if !self.correction && agents > 1 {
            notes.push("without correction chains are drawn to agents that make many updates on few rows".into());
        }
        notes
    }

    fn check(&self) -> Result<(), String> {
        if self.sweeps.is_some() {
            return Err("sweeps are those of documents: this model has none".into());
        }
        self.check_travel()
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let model = problem.model.clone();
        launcher.chains(Dsgld::sgld(problem, self.clone()), model)
    }
}

impl DsgldSettings {
    /// What chains can be run with, whatever their transition is.
    pub(crate) fn check_travel(&self) -> Result<(), String> {
        at_least_one(&[
            ("chains", u64::from(self.chains)),
            ("rounds", self.rounds),
            ("batch", self.batch as u64),
            ("max_rounds_in_flight", self.max_rounds_in_flight),
            ("evaluation_window", self.evaluation_window as u64),
        ])?;
        self.step.check().map_err(|error| error.to_string())?;
        let trajectories = self.listed();
        if let Some(wrong) = trajectories.iter().find(|updates| !(1.0..=1e9).contains(*updates)) {
            return Err(format!("trajectory = {wrong}: a visit makes from 1 to 1e9 updates"));
        }
        if let Some(wrong) = self.sleep_ms.iter().find(|sleep| !(0.0..=1e6).contains(*sleep)) {
            return Err(format!("sleep_ms = {wrong}: must lie between 0 and 1e6"));
        }
        if self.max_rounds_in_flight > MOST_AHEAD {
            return Err(format!(
                "max_rounds_in_flight = {}: at most {MOST_AHEAD} rounds can be under way",
                self.max_rounds_in_flight
            ));
        }
        if self.thin == 0 && !self.expectations {
            return Err("thin = 0 keeps no draws: then set expectations = true, or nothing comes out".into());
        }
        let planned = || self.plans.iter().flat_map(|planned| &planned.updates);
        if let Some(wrong) = planned().find(|updates| !(1.0..=1e9).contains(*updates)) {
            return Err(format!("plans: {wrong} updates: a visit makes from 1 to 1e9"));
        }
        if let Some(pair) = self.plans.windows(2).find(|pair| pair[0].round >= pair[1].round) {
            return Err(format!(
                "plans: round {} comes before round {}: in ascending order, each once",
                pair[0].round, pair[1].round
            ));
        }
        if let Some(late) = self.plans.iter().find(|planned| planned.round >= self.rounds) {
            return Err(format!("plans: round {} is none of the {} rounds, which count from 0", late.round, self.rounds));
        }
        if self.noise_correction && self.coupling.is_empty() {
            return Err("noise_correction is for chains that are averaged, and coupling averages none".into());
        }
        if self.schedule == Schedule::Rotating && !self.coupling.is_empty() {
            return Err("schedule = \"rotating\" moves a group of chains in each round: coupling wants all of them".into());
        }
        if self.schedule == Schedule::Categorical && self.chains != 1 {
            return Err(format!("schedule = \"categorical\" is for one chain: there are {}, which would meet", self.chains));
        }
        if self.coupling.iter().any(|phase| phase.groups == 0 || phase.rounds == 0) {
            return Err("coupling: groups and rounds of a phase must be at least 1".into());
        }
        if self.noise_correction
            && (trajectories.iter().chain(planned()).any(|updates| *updates != 1.0) || self.balance.is_some())
        {
            return Err(
                "noise_correction wants chains that are averaged after every update: trajectory = 1, without balance".into()
            );
        }
        if let Some(Balance { threshold, decay, .. }) = self.balance
            && !(threshold > 0.0 && (0.0..=1.0).contains(&decay))
        {
            return Err(format!("balance: threshold = {threshold} must be above 0, and decay = {decay} lie between 0 and 1"));
        }
        Ok(())
    }
}

/// What an agent is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Say how many rows it has.
    Rows,
    /// Move the chains that are there.
    Visit(Visit),
    /// Give the weighted sum of the states that were there.
    Sum,
    /// Give their weighted squares about this mean.
    Squares,
}

impl Task {
    /// How many updates an agent is asked for: what a simulated cluster needs to know.
    pub fn updates(&self, agent: AgentId) -> u64 {
        let Self::Visit(visit) = self else { return 0 };
        visit.stops.iter().find(|stop| stop.agent == agent).map_or(0, |stop| stop.updates)
    }
}

/// A visit of the chains of a group, each at an agent of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Visit {
    round: u64,
    stops: Vec<Stop>,
    /// Whether nobody waits for the states.
    is_last: bool,
    /// Whether the server wants to see the states.
    shown: bool,
}

/// What an agent does in a visit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Stop {
    agent: AgentId,
    chain: u32,
    /// The chain's count of updates.
    first: u64,
    updates: u64,
    /// What the score of the shard is multiplied by: 1/q_s.
    scale: f64,
    /// How many chains' states the handed body is the sum of, and the first of these chains; 0 where nothing is handed.
    shared: u32,
    leader: u32,
}

/// What an agent tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Report<F: Real> {
    /// Its rows.
    Rows(u64),
    /// Of a visit.
    Visited(Visited<F>),
    /// The weight of all states that were there.
    Expected(f64),
}

/// What is told of a visit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Visited<F: Real> {
    chain: u32,
    updates: u64,
    step: f64,
    /// Whether something other than updates took time, such as the fixed point of a control variate.
    fixed: bool,
    /// The state, if it was asked for.
    state: crate::cluster::Raw<F>,
}

impl<T: Transition> Method for Dsgld<T> {
    const NAME: &'static str = "dsgld";
    type Number = T::Number;
    type Task = Task;
    type Report = Report<T::Number>;
    type Server = DsgldServer<T>;
    type Agent = DsgldAgent<T>;

    fn agents(&self) -> u32 {
        self.agents
    }

    fn server(&self, saved: Option<ServerState<T::Number>>) -> Result<DsgldServer<T>> {
        DsgldServer::new(self, saved)
    }

    fn agent(&self, id: AgentId, saved: Option<agent::StateOf<T>>) -> Result<DsgldAgent<T>> {
        DsgldAgent::new(self, id, saved)
    }
}
