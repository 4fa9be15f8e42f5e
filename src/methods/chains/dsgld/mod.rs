//! D-SGLD: distributed stochastic gradient Langevin dynamics, whose chains travel from shard to shard without passing the server.
//!
//! θ ← θ + (ε/2) {∇log p0(θ) + (N_s/q_s) ḡ_s(θ)} + N(0, ε I) at agent s, with ḡ_s the mean score of a minibatch of its N_s rows and q_s the
//! fraction of all updates that are made there (Ahn, Shahbaba & Welling 2014, "Distributed Stochastic Gradient MCMC", Prop. 3.1). A visit
//! is a number of updates, after which the chain moves to its next agent. Coupled chains pass on their mean instead of their state. With
//! one agent this is SGLD (Welling & Teh 2011).

mod agent;
mod averaging;
mod expectations;
mod schedule;
mod server;
mod settings;
mod task;
mod trajectories;

use averaging::can_split;
pub use averaging::{AveragingPhase, groups};
pub use expectations::EXPECTATIONS;
pub use schedule::{Schedule, agent_of, slots};
pub use settings::{DsgldSettings, Trajectory};
pub use task::{Dsgld, Report, Task, Visit, Visited};
pub use trajectories::{Balance, PlannedTrajectories, Trajectories, balanced};

use crate::cluster::{AgentId, Method, Result};
use crate::methods::common::kind::{Launcher, MethodKind, Needs};
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sgld::Sgld;
use crate::methods::transitions::transition::Transition;
use crate::number::Real;
use agent::DsgldAgent;
use server::{DsgldServer, ServerState};

impl<F: Real> Dsgld<Sgld<F>> {
    /// D-SGLD of a problem.
    pub fn sgld(problem: Problem<F>, settings: DsgldSettings) -> Self {
        let DsgldSettings { batch, step, gradient, .. } = settings;
        Self { agents: problem.agents, transition: Sgld { problem, batch, step, gradient }, settings }
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
            && let Some(pair) = self.coupling.windows(2).find(|pair| !can_split(self.chains, pair[0].groups, pair[1].groups))
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
        let longest = self.initial_trajectories().iter().chain(planned).copied().fold(1.0, f64::max).ceil();
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
        self.check_travel()
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let model = problem.model.clone();
        launcher.chains(Dsgld::sgld(problem, self.clone()), model)
    }
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
