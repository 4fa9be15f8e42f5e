//! The settings of D-SGLD.

use super::averaging::AveragingPhase;
use super::schedule::Schedule;
use super::updates_per_visit::{Balance, PlannedTrajectories, UpdatesPerVisit};
use crate::kernels::langevin::StepSize;
use crate::methods::common::scores::Estimator;
use crate::methods::common::settings::{MethodSettings, at_least_one, check_sleep};
use crate::methods::tuning::{check_ess, check_noise_share};
use crate::settings::{KeyError, in_range};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The most rounds in flight: every posted round is in each checkpoint, and keeps its numbers of updates.
pub(super) const MAX_ROUNDS_IN_FLIGHT: u64 = 1000;

/// Updates in a visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number, or a list with one number for each agent")]
pub enum Trajectory {
    /// The same number at every agent.
    Same(f64),
    /// One number for each agent.
    Each(Vec<f64>),
}

/// The settings of `dsgld`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct DsgldSettings {
    /// Number of chains (C). More chains than agents are allowed.
    pub chains: u32,
    /// Rounds, in each of which every chain makes a visit; with `schedule = "rotating"`, one group of chains, at one agent. Default: as many as
    /// `ess` needs with `step = "auto"`, otherwise 1000.
    pub rounds: Option<u64>,
    /// Updates in a visit (τ): a number, or a list with one number for each agent.
    pub trajectory: Trajectory,
    /// Rows in a minibatch, drawn anew for every update; a minimum with `step = "auto"`.
    pub batch: usize,
    /// Step size (ε_t): an update adds noise of variance ε_t, and ε_t/2 times the score. `"auto"` finds the mode of the posterior before
    /// the run, lets chains move in coordinates in which the posterior is close to a standard normal distribution, uses a control variate
    /// at the mode, and takes the largest step that changes no standard deviation by more than about 5 %. For models without a full matrix
    /// of curvature or with more than 2,000 parameters, chains start at points of high density that Adam and short chains find, with
    /// parameters scaled by the curvature there. A number such as 1e-5 is the step of all updates;
    /// `{ annealed = { a = 0.01, b = 1.0, c = 0.55 } }` is a (b + t)^-c after t updates of the chain.
    pub step: StepSize,
    /// Effective sample size of all chains together, for which `step = "auto"` finds rounds, burn-in and thinning. Models without a full
    /// matrix of curvature or with more than 2,000 parameters get a tenth of it, because their draws take more updates.
    pub ess: f64,
    /// Share of the variance of an update's noise that is not added, because the noise of minibatches and the finite step already
    /// contribute it; 0 if unknown. `step = "auto"` sets it.
    pub gradient_noise: f64,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that round on corrects the score of a minibatch by the
    /// score at a fixed point. No effect where `step = "auto"` finds a step.
    pub gradient: Estimator,
    /// Whether the score of a shard is divided by the share q_s of updates that are made there. Without it, the chains are biased toward small
    /// shards.
    pub correction: bool,
    /// How chains travel: `"permutation"`, `"cyclic"`, `"derangement"` (no chain stays at its agent, unless there are more chains than agents),
    /// `"rotating"` (one group of chains makes visits in each round, as in the paper on DSVGD), or `"categorical"` (for one chain).
    pub schedule: Schedule,
    /// Updates at the start of each chain that are left out. Default: ten relaxation times with `step = "auto"`, otherwise 1000.
    pub burn_in: Option<u64>,
    /// Keep every `thin`-th update after burn-in; 0 keeps no draws. If it shares a factor with `trajectory`, draws are always taken at the same
    /// few places of a visit. With annealed steps, early and late draws have the same weight. Default: the relaxation time, in which autocorrelations fall
    /// to 1/e, with `step = "auto"`, otherwise 7.
    pub thin: Option<u64>,
    /// Whether posterior means and standard deviations are computed from all updates after burn-in, weighted by step size, without
    /// storing draws.
    pub expectations: bool,
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
    /// Whether averaged chains get back the variance that averaging removes. Requires `trajectory = 1`; draws are states before averaging.
    pub noise_correction: bool,
    /// Whether chains travel through the server, as in Algorithm 1 of Ahn, Shahbaba and Welling (2014). Doubles the traffic.
    pub through_server: bool,
    /// Number of the latest states that predictions are averaged over when a round is evaluated.
    pub evaluation_window: usize,
    /// Whether every visit is written to the table `visits`: round, agent, chain, updates before the visit (`first`) and in it (`updates`), and
    /// the factor of the score (`scale`).
    pub log_visits: bool,
    /// Milliseconds that each agent sleeps per update, to imitate slow machines in experiments; one number for each agent.
    pub sleep_ms: Vec<f64>,
}

impl Default for DsgldSettings {
    fn default() -> Self {
        Self {
            chains: 4,
            rounds: None,
            trajectory: Trajectory::Same(10.0),
            batch: 100,
            step: StepSize::default(),
            ess: 1000.0,
            gradient_noise: 0.0,
            gradient: Estimator::default(),
            correction: true,
            schedule: Schedule::default(),
            burn_in: None,
            thin: None,
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
    /// Rounds of the run.
    pub fn rounds(&self) -> u64 {
        self.rounds.unwrap_or(1000)
    }

    /// Updates at the start of each chain that are left out.
    pub fn burn_in(&self) -> u64 {
        self.burn_in.unwrap_or(1000)
    }

    /// Updates between draws; 0 for no draws.
    pub fn thin(&self) -> u64 {
        self.thin.unwrap_or(7)
    }

    /// What hinders that a step is found: it biases the chains, or the noise that they see changes during the run or is not known.
    pub(super) fn hinders_tuning(&self) -> Option<&'static str> {
        let initial = self.initial_updates_per_visit();
        let are_equal = initial.windows(2).all(|pair| pair[0] == pair[1]);
        let keys = [
            // The share of updates at an agent depends on the rows of all agents, which are not known where noise is measured.
            ("different trajectories with schedule = \"categorical\"", self.schedule == Schedule::Categorical && !are_equal),
            ("correction = false", !self.correction),
            ("plans", !self.plans.is_empty()),
            ("balance", self.balance.is_some()),
            ("coupling", !self.coupling.is_empty()),
        ];
        keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| key)
    }

    /// The updates of a chain in a visit, on average over agents with these τ_s. With the categorical schedule a lower bound: the frequencies
    /// of visits depend on the rows of the agents, which are not known here.
    pub(super) fn typical_visit(&self, updates: &[f64]) -> f64 {
        match self.schedule {
            Schedule::Categorical => updates.iter().copied().fold(f64::INFINITY, f64::min),
            _ => updates.iter().sum::<f64>() / updates.len() as f64,
        }
    }

    /// τ_s of `trajectory`, which holds until the first of `plans`.
    pub(super) fn updates_per_visit(&self, agents: u32) -> Result<UpdatesPerVisit, KeyError> {
        self.check_agents(agents)?;
        Ok(UpdatesPerVisit::new(match &self.trajectory {
            Trajectory::Same(updates) => vec![*updates; agents as usize],
            Trajectory::Each(updates) => updates.clone(),
        }))
    }

    /// Periods in which the updates per visit stay the same, until the first of `plans` and from each of `plans` to the next: the first round,
    /// the number of rounds, and the updates of [`Self::typical_visit`].
    fn periods(&self) -> impl Iterator<Item = (u64, f64, f64)> {
        let starts = std::iter::once((0, self.initial_updates_per_visit()))
            .chain(self.plans.iter().map(|planned| (planned.round, planned.updates.as_slice())));
        let ends = self.plans.iter().map(|planned| planned.round).chain([self.rounds()]);
        starts.zip(ends).map(|((start, updates), end)| (start, end.saturating_sub(start) as f64, self.typical_visit(updates)))
    }

    /// The total updates of a chain, with those of [`Self::typical_visit`] in each visit.
    pub(super) fn updates_of_chain(&self, agents: u32) -> f64 {
        let total: f64 = self.periods().map(|(_, rounds, updates)| updates * rounds).sum();
        total / f64::from(self.schedule.rounds_per_turn(self.chains, agents))
    }

    /// The rounds that burn-in lasts, with the updates of [`Self::typical_visit`] in each visit; at most those of the run.
    pub(super) fn rounds_of_burn_in(&self, agents: u32) -> f64 {
        let mut left = self.burn_in() as f64 * f64::from(self.schedule.rounds_per_turn(self.chains, agents));
        for (start, rounds, updates) in self.periods() {
            let needed = left / updates;
            if needed < rounds {
                return start as f64 + needed;
            }
            left -= rounds * updates;
        }
        self.rounds() as f64
    }

    /// The first round after which chains have draws, with the updates of [`Self::typical_visit`] in each visit.
    pub(crate) fn first_round_with_draws(&self, agents: u32) -> u64 {
        1 + self.rounds_of_burn_in(agents) as u64
    }

    /// τ_s of `trajectory`, which holds until the first of `plans`: one number for all agents, or one for each.
    pub(super) fn initial_updates_per_visit(&self) -> &[f64] {
        match &self.trajectory {
            Trajectory::Same(updates) => std::slice::from_ref(updates),
            Trajectory::Each(updates) => updates,
        }
    }

    /// Checks all settings, as far as the number of agents does not matter.
    ///
    /// # Errors
    /// Names the key that is out of range.
    pub(crate) fn check_without_agents(&self) -> Result<(), KeyError> {
        at_least_one(&[
            ("chains", u64::from(self.chains)),
            ("rounds", self.rounds()),
            ("batch", self.batch as u64),
            ("max_rounds_in_flight", self.max_rounds_in_flight),
            ("evaluation_window", self.evaluation_window as u64),
        ])?;
        self.step.check()?;
        check_ess(self.ess)?;
        check_noise_share(self.gradient_noise)?;
        let initial = self.initial_updates_per_visit();
        let planned = || self.plans.iter().flat_map(|planned| &planned.updates);
        let visits = initial.iter().map(|updates| ("trajectory", updates)).chain(planned().map(|updates| ("plans", updates)));
        for (key, &updates) in visits {
            in_range(key, updates, (1.0..=1e9).contains(&updates), "from 1 to 1e9 updates")?;
        }
        check_sleep(&self.sleep_ms)?;
        let in_flight = self.max_rounds_in_flight;
        let most = format!("at most {MAX_ROUNDS_IN_FLIGHT}");
        in_range("max_rounds_in_flight", in_flight, in_flight <= MAX_ROUNDS_IN_FLIGHT, &most)?;
        let wrong = |key: &str, sentence: &str| Err(KeyError::invalid(key, sentence));
        if self.thin() == 0 && !self.expectations {
            return wrong("thin", "= 0 keeps no draws. Set expectations = true, or the run has no result");
        }
        if let Some(pair) = self.plans.windows(2).find(|pair| pair[0].round >= pair[1].round) {
            let (first, second) = (pair[0].round, pair[1].round);
            return wrong(
                "plans",
                &format!("has round {first} before round {second}. List rounds in ascending order, each once"),
            );
        }
        if let Some(late) = self.plans.iter().find(|planned| planned.round >= self.rounds()) {
            let (late, rounds) = (late.round, self.rounds());
            return wrong(
                "plans",
                &format!("has a round {late}, which does not exist: rounds count from 0, and rounds = {rounds}"),
            );
        }
        if self.noise_correction && self.coupling.is_empty() {
            return wrong("noise_correction", "= true has no effect without coupling. Set coupling, or remove this key");
        }
        if self.schedule == Schedule::Rotating && !self.coupling.is_empty() {
            let sentence = "= \"rotating\" lets one chain or a few make visits in a round, but coupling averages chains that visit in the same round. \
                 Remove one of the two";
            return wrong("schedule", sentence);
        }
        if self.schedule == Schedule::Categorical && self.chains != 1 {
            return wrong("schedule", &format!("= \"categorical\" is for one chain. Set chains = 1, not {}", self.chains));
        }
        if self.coupling.iter().any(|phase| phase.groups == 0 || phase.rounds == 0) {
            return wrong("coupling", "has a phase without groups or rounds; both must be at least 1");
        }
        if self.noise_correction && (initial.iter().chain(planned()).any(|updates| *updates != 1.0) || self.balance.is_some()) {
            return wrong(
                "noise_correction",
                "= true needs averages after every update: set trajectory and all plans to 1, and remove balance",
            );
        }
        if let Some(Balance { threshold, decay, .. }) = self.balance {
            in_range("balance.threshold", threshold, threshold > 0.0, "above 0")?;
            in_range("balance.decay", decay, (0.0..=1.0).contains(&decay), "from 0 to 1")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::methods::tuning::{Found, Measurement};

    fn planned(round: u64, updates: f64) -> PlannedTrajectories {
        PlannedTrajectories { round, updates: vec![updates; 2] }
    }

    #[test]
    fn draws_begin_when_the_planned_visits_have_made_the_updates_of_burn_in() {
        let first = |burn_in, plans| {
            let (trajectory, rounds, burn_in) = (Trajectory::Same(2.0), Some(100), Some(burn_in));
            DsgldSettings { trajectory, rounds, burn_in, plans, ..DsgldSettings::default() }.first_round_with_draws(2)
        };
        assert_eq!([first(0, vec![]), first(99, vec![]), first(100, vec![]), first(1000, vec![])], [1, 50, 51, 101]);
        let plans = vec![planned(50, 10.0), planned(60, 1.0)];
        // 100 updates in the first 50 rounds, 100 in the next 10, then 40.
        let numbers = [99, 100, 109, 110, 199, 200, 201, 240].map(|burn_in| first(burn_in, plans.clone()));
        assert_eq!(numbers, [50, 51, 51, 52, 60, 61, 62, 101]);
        assert_eq!(first(5, vec![planned(0, 10.0)]), 1);
    }

    #[test]
    fn chains_that_take_turns_need_more_rounds_of_burn_in() {
        let settings = DsgldSettings {
            chains: 6,
            schedule: Schedule::Rotating,
            trajectory: Trajectory::Same(10.0),
            burn_in: Some(40),
            ..DsgldSettings::default()
        };
        let turns = f64::from(settings.schedule.rounds_per_turn(6, 2));
        assert!(turns > 1.0 && settings.rounds_of_burn_in(2) == 4.0 * turns);
    }

    #[test]
    fn lengths_that_tuning_finds_leave_draws() {
        let measured = Measurement {
            minibatches: vec![100.0],
            shards: vec![1.0],
            curvature: 1.0,
            rows: 10.0,
            knows_only_scale: false,
            shortened: 1.0,
        };
        for (schedule, chains) in [(Schedule::Categorical, 1), (Schedule::Permutation, 2), (Schedule::Rotating, 2)] {
            for rounds in [None, Some(20)] {
                let different = Trajectory::Each(vec![1.0, 100.0]);
                let trajectory = if schedule == Schedule::Categorical { Trajectory::Same(50.0) } else { different.clone() };
                let settings = DsgldSettings { chains, schedule, trajectory, rounds, ..DsgldSettings::default() };
                assert!(settings.tuning().is_some());
                let tuned = settings.tuned(Found::Noise(&measured), 2);
                assert!(tuned.burn_in.is_some() && tuned.thin.is_some());
                tuned.check_agents(2).unwrap();
                // How often chains visit agents under this schedule is not known where noise is measured.
                let different = DsgldSettings { trajectory: different, ..settings };
                assert_eq!(different.tuning().is_some(), schedule != Schedule::Categorical);
            }
        }
    }
}
