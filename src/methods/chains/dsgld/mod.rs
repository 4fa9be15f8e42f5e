//! D-SGLD: distributed stochastic gradient Langevin dynamics, whose chains travel from shard to shard, without passing the server unless
//! `through_server` is set.
//!
//! θ ← θ + (ε/2) {∇log p0(θ) + (N_s/q_s) ḡ_s(θ)} + N(0, ε I) at agent s, with ḡ_s the mean score of a minibatch of its N_s rows and q_s the
//! fraction of all updates that are made there (Ahn, Shahbaba & Welling 2014, "Distributed Stochastic Gradient MCMC", Prop. 3.1). A visit
//! is a number of updates, after which the chain moves to its next agent. Chains that are averaged pass on their mean instead of their state. With
//! one agent this is SGLD (Welling & Teh 2011).

mod agent;
mod averaging;
mod expectations;
mod reports;
mod schedule;
mod server;
mod settings;
mod task;
mod updates_per_visit;

use averaging::can_split;
pub use averaging::{AveragingPhase, groups};
pub use expectations::EXPECTATIONS;
pub use schedule::{Schedule, agent_of, slots};
pub use settings::{DsgldSettings, Trajectory};
pub use task::{Dsgld, GroupVisit, Report, Task, Visited};
pub use updates_per_visit::{Balance, PlannedTrajectories, UpdatesPerVisit, balanced};

use crate::cluster::{AgentId, Method, Result};
use crate::kernels::langevin::StepSize;
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::common::settings::{
    Length, MethodSettings, ResourceEstimate, Table, TableMethod, no_draws, one_for_each_agent,
};
use crate::methods::common::thinning::draws;
use crate::methods::transitions::sgld::Sgld;
use crate::methods::transitions::transition::Transition;
use crate::methods::tuning::{
    DrawCount, Found, LangevinSteps, Lengths, NoiseNeeds, TuningNeeds, VisitShare, idle_keys, langevin_steps, lengths,
};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use agent::DsgldAgent;
use server::{DsgldServer, ServerState};
use settings::MAX_ROUNDS_IN_FLIGHT;

impl<F: Real> Dsgld<Sgld<F>> {
    /// D-SGLD of a problem.
    pub fn sgld(problem: Problem<F>, settings: DsgldSettings) -> Self {
        let DsgldSettings { batch, step, gradient, gradient_noise, .. } = settings;
        Self { agents: problem.agents, transition: Sgld { problem, batch, step, gradient, gradient_noise }, settings }
    }
}

impl MethodSettings for DsgldSettings {
    type Data = Table;

    const NAME: &'static str = "dsgld";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        if let Trajectory::Each(updates) = &self.trajectory
            && updates.len() != agents as usize
        {
            return Err(one_for_each_agent("trajectory", updates.len(), agents));
        }
        if !self.sleep_ms.is_empty() && self.sleep_ms.len() != agents as usize {
            return Err(one_for_each_agent("sleep_ms", self.sleep_ms.len(), agents));
        }
        if let Some(planned) = self.plans.iter().find(|planned| planned.updates.len() != agents as usize) {
            let sentence = format!(
                "has {} updates from round {} on; must have one for each of the {agents} agents",
                planned.updates.len(),
                planned.round
            );
            return Err(KeyError::invalid("plans", sentence));
        }
        let updates = self.updates_of_chain(agents);
        let (burn_in, thin) = (self.burn_in(), self.thin());
        let tuning_finds_lengths = self.tuning().is_some() && [self.rounds, self.burn_in, self.thin].contains(&None);
        if !tuning_finds_lengths && burn_in.saturating_add(thin.max(1)) as f64 > updates {
            return Err(no_draws(burn_in, thin, updates as u64));
        }
        if !self.coupling.is_empty() && self.chains > agents {
            let sentence = format!("needs an agent for each chain: chains = {}, but agents = {agents}", self.chains);
            return Err(KeyError::invalid("coupling", sentence));
        }
        if self.through_server
            && let Some(pair) = self.coupling.windows(2).find(|pair| !can_split(self.chains, pair[0].groups, pair[1].groups))
        {
            let [before, after] = [pair[0].groups, pair[1].groups];
            let sentence = format!(
                "has a phase of {after} groups after one of {before}: with through_server = true, each group must lie within one of \
                 the phase before. Take a multiple of {before}"
            );
            return Err(KeyError::invalid("coupling", sentence));
        }
        Ok(())
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let chains = u64::from(self.chains);
        let moving = chains.div_ceil(u64::from(self.schedule.rounds_per_turn(self.chains, agents)));
        // Chains that travel through the server take two hops, also those that return to their agent.
        let hops = if self.through_server && agents > 1 { 2.0 } else { self.schedule.share_that_moves(agents) };
        let parameters = parameters as u64;
        let planned = self.plans.iter().flat_map(|planned| &planned.updates);
        // With `balance`, fast agents make longer visits and slow ones shorter visits: together they need as much.
        let longest = self.initial_updates_per_visit().iter().chain(planned).copied().fold(1.0, f64::max).ceil();
        let draws_of_visit = if self.thin() == 0 { 0 } else { (longest as u64).div_ceil(self.thin()) };
        // The chain and the buffers of its score; expectations are three vectors in double precision, each as large as two.
        let vectors: u64 = 5 + if self.gradient == Estimator::Plain { 0 } else { 2 } + if self.expectations { 6 } else { 0 };
        ResourceEstimate {
            particles: Some(chains),
            rounds: Some(self.rounds()),
            draws: Some(draws(self.updates_of_chain(agents) as u64, self.burn_in(), self.thin())),
            minibatch: Some(self.batch as u64),
            values_of_agent: Some(parameters.saturating_mul(vectors.saturating_add(draws_of_visit))),
            values_per_round: Some((moving.saturating_mul(parameters) as f64 * hops) as u64),
            ..ResourceEstimate::default()
        }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        let mut notes = idle_keys(self.tuning().is_some(), self.gradient, self.gradient_noise);
        if let (StepSize::Auto, Some(key)) = (self.step, self.hinders_tuning()) {
            notes.push(format!("step = \"auto\" is the preset annealed step here, because of {key}"));
        }
        // Floats, because phases may be longer than any run.
        let rounds = self.rounds() as f64;
        let from = self.rounds_of_burn_in(agents);
        if self.balance.is_some() && !self.plans.is_empty() {
            notes.push("plans is set, so balance has no effect".into());
        } else if let Some(balance) = &self.balance
            && (balance.until as f64).min(rounds) > from
        {
            let until = balance.until.min(self.rounds());
            notes.push(format!(
                "balance adapts trajectories until round {until}, but draws begin in about round {from:.0}: the draws in between depend on \
                 measured speeds"
            ));
        }
        let averaged: f64 = self.coupling.iter().map(|phase| phase.rounds as f64).sum();
        if averaged.min(rounds) > from && !self.noise_correction {
            notes.push(format!(
                "chains are averaged until round {:.0}, but draws begin in about round {from:.0}: the variance of averaged chains is too small",
                averaged.min(rounds)
            ));
        }
        let turns = self.schedule.rounds_per_turn(self.chains, agents);
        let most_in_flight = u64::from(turns).min(MAX_ROUNDS_IN_FLIGHT);
        let can_overlap = self.schedule == Schedule::Rotating && !self.through_server;
        if can_overlap && self.max_rounds_in_flight < most_in_flight {
            notes.push(format!(
                "groups of chains make visits in turn: set max_rounds_in_flight = {most_in_flight} to let as many agents as possible \
                 compute at the same time"
            ));
        }
        if !self.correction && agents > 1 {
            notes.push("correction = false: chains are biased toward agents that make many updates on few rows".into());
        }
        notes
    }

    fn check(&self) -> Result<(), KeyError> {
        self.check_without_agents()
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        let share = match self.schedule {
            Schedule::Categorical => VisitShare::ByRows,
            _ => VisitShare::Proportional(self.initial_updates_per_visit().to_vec()),
        };
        (self.step == StepSize::Auto && self.hinders_tuning().is_none()).then_some(TuningNeeds {
            noise: Some(NoiseNeeds { batch: self.batch, share, chains: Some(self.chains) }),
            rounds: self.rounds,
            draws: DrawCount::of_chains(self.ess, self.rounds, self.burn_in, self.thin),
        })
    }

    fn tuned(&self, found: Found, agents: u32) -> Self {
        let Found::Noise(measured) = found else { return self.clone() };
        let updates_per_visit = self.typical_visit(self.initial_updates_per_visit());
        let longest_visit = self.initial_updates_per_visit().iter().copied().fold(1.0, f64::max);
        let LangevinSteps { batch, step, supplied, relaxation } = langevin_steps(measured, self.batch, longest_visit);
        let draws = measured.draws(self.ess);
        let mut found = lengths(relaxation, draws, self.chains, (self.burn_in, self.thin));
        if self.thin.is_none() && updates_per_visit.fract() == 0.0 {
            // Draws would otherwise cluster at the ends of visits.
            let thin = (found.thin..).find(|thin| have_no_common_factor(*thin, updates_per_visit as u64)).unwrap_or(found.thin);
            found = lengths(relaxation, draws, self.chains, (self.burn_in, Some(thin)));
        }
        let turns = f64::from(self.schedule.rounds_per_turn(self.chains, agents));
        let updates_in = |rounds: u64| (rounds as f64 * updates_per_visit / turns) as u64;
        let Lengths { burn_in, thin, updates } = found.within(self.rounds.map(updates_in), (self.burn_in, self.thin));
        let rounds = self.rounds.unwrap_or((updates as f64 * turns / updates_per_visit).ceil() as u64);
        Self {
            batch,
            step: StepSize::Constant(step),
            gradient_noise: supplied,
            gradient: Estimator::Plain,
            rounds: Some(rounds),
            burn_in: Some(burn_in),
            thin: Some(thin),
            ..self.clone()
        }
    }

    fn length(&self, agents: u32) -> Option<Length> {
        let every = u64::from(self.schedule.rounds_per_turn(self.chains, agents));
        let last_rounds = self.max_rounds_in_flight.saturating_add(every) + 1;
        // The rounds in which trajectories adapt depend on the length of a run.
        self.balance.is_none().then_some(Length { key: "rounds", value: self.rounds(), last_rounds })
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::chains(Dsgld::sgld(problem, self.clone()))
    }
}

/// Whether two numbers have no factor above 1 in common.
fn have_no_common_factor(mut a: u64, mut b: u64) -> bool {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
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
