//! How many updates a chain makes at each agent: fixed, or so that fast and slow agents take the same time.

use crate::cluster::{Context, Raw};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// When trajectories are planned anew from measured delays (Ahn, Shahbaba & Welling 2014, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Balance {
    /// The plan changes when an agent's seconds per update are off the planned ones by more than this share.
    pub threshold: f64,
    /// In round r the plan may change with probability decay^r.
    pub decay: f64,
    /// Rounds that are posted from this one on follow the plan that then stands.
    pub until: u64,
}

impl Default for Balance {
    fn default() -> Self {
        Self { threshold: 0.2, decay: 0.99, until: 100 }
    }
}

/// Trajectories from some round on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTrajectories {
    /// The round, from 0.
    pub round: u64,
    /// τ_s of each agent.
    pub updates: Vec<f64>,
}

/// The weight of a new measurement in the moving average of an agent's seconds per update.
const NEW: f64 = 0.3;

/// The plan of all agents, and what it was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectories {
    /// τ_s, updates in a visit on average; whole numbers of them are made in each.
    mean: Vec<f64>,
    /// Their mean as it was asked for.
    asked: f64,
    /// Chains × agents: what of an update each chain is owed at each agent, from 0 to below 1. For each of them apart, or chains that
    /// come in turn would be rounded always alike.
    owed: Raw<f64>,
    /// d_s, seconds per update.
    delays: Vec<Option<f64>>,
    /// Those that the plan was made from; none as long as it is the first one.
    planned: Option<Vec<f64>>,
}

impl Trajectories {
    /// These numbers of updates, one for each agent; a visit makes at least one.
    pub fn new(mean: Vec<f64>) -> Self {
        let mean: Vec<f64> = mean.into_iter().map(|mean| mean.max(1.0)).collect();
        let asked = mean.iter().sum::<f64>() / mean.len() as f64;
        Self { owed: Raw(Vec::new()), delays: vec![None; mean.len()], planned: None, asked, mean }
    }

    /// τ_s.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// q_s: the share of all updates that each agent makes, where visits to the agents are as frequent as this.
    pub fn shares(&self, visits: &[f64]) -> Vec<f64> {
        let updates: Vec<f64> = self.mean.iter().zip(visits).map(|(mean, visits)| mean * visits).collect();
        let total: f64 = updates.iter().sum();
        updates.into_iter().map(|updates| updates / total).collect()
    }

    /// Starts so many chains, each with a random part of an update at each agent: visits then have τ_s updates in expectation.
    pub fn begin(&mut self, chains: u32, cx: &Context) {
        for chain in 0..chains {
            let mut stream = cx.stream(Who::Chain(chain), 0, Purpose::Planning);
            self.owed.0.extend(self.mean.iter().map(|_| stream.random::<f64>()));
        }
    }

    /// The whole number of updates of a chain's next visit to an agent: what is left over by rounding comes in a later one.
    pub fn next(&mut self, chain: u32, agent: usize) -> u64 {
        let owed = &mut self.owed.0[chain as usize * self.mean.len() + agent];
        let planned = *owed + self.mean[agent];
        // Below 2^53, as settings are checked.
        let whole = planned.floor();
        *owed = planned - whole;
        whole as u64
    }

    /// Goes on with these trajectories.
    pub fn follow(&mut self, planned: &PlannedTrajectories) {
        self.mean.clone_from(&planned.updates);
    }

    /// Takes a visit's seconds into account.
    pub fn measured(&mut self, agent: usize, seconds: f64, updates: u64) {
        let delay = seconds / updates.max(1) as f64;
        let known = &mut self.delays[agent];
        *known = Some(known.map_or(delay, |known| known + NEW * (delay - known)));
    }

    /// Plans anew if delays are off the planned ones by more than the threshold; whether they were.
    pub fn adapt(&mut self, threshold: f64) -> bool {
        let Some(delays) = self.delays.iter().copied().collect::<Option<Vec<f64>>>() else { return false };
        if delays.iter().any(|delay| *delay <= 0.0 || !delay.is_finite()) {
            return false;
        }
        let off =
            |planned: &Vec<f64>| delays.iter().zip(planned).any(|(delay, planned)| (delay / planned - 1.0).abs() > threshold);
        if !self.planned.as_ref().is_none_or(off) {
            return false;
        }
        self.mean = balanced(&delays, self.asked).into_iter().map(|mean| mean.max(1.0)).collect();
        self.planned = Some(delays);
        true
    }
}

/// τ_s = q_s τ S with q_s ∝ 1/d_s: every visit takes the same time, and a visit has τ updates on average.
pub fn balanced(delays: &[f64], mean: f64) -> Vec<f64> {
    let speeds: f64 = delays.iter().map(|delay| 1.0 / delay).sum();
    delays.iter().map(|delay| mean * delays.len() as f64 / (delay * speeds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 1 of the paper.
    #[test]
    fn plans_are_those_of_the_paper() {
        let delays = [3.0, 1.0, 2.0, 4.0];
        for (mean, exact) in [(25.0 / 4.0, [4.0, 12.0, 6.0, 3.0]), (75.0 / 16.0, [3.0, 9.0, 4.5, 2.25])] {
            let plan = balanced(&delays, mean);
            assert!(plan.iter().zip(exact).all(|(plan, exact)| (plan - exact).abs() < 1e-12), "{plan:?}");
        }
    }

    #[test]
    fn what_rounding_leaves_comes_later() {
        let mut plan = Trajectories::new(vec![4.0, 2.25, 0.25]);
        plan.owed = Raw(vec![0.9, 0.0, 0.5, 0.0, 0.5, 0.0]);
        let mut made = |chain, agent| (0..8).map(|_| plan.next(chain, agent)).collect::<Vec<u64>>();
        assert_eq!((made(0, 0), made(1, 0)), (vec![4; 8], vec![4; 8]));
        assert_eq!(made(0, 1), [2, 2, 2, 3, 2, 2, 2, 3]);
        assert_eq!(made(1, 1), [2, 3, 2, 2, 2, 3, 2, 2]);
        // A visit without an update would be none: such plans are raised to 1.
        assert_eq!(made(0, 2), [1; 8]);
    }

    #[test]
    fn plans_follow_delays_beyond_the_threshold() {
        let mut plan = Trajectories::new(vec![10.0, 10.0]);
        assert!(!plan.adapt(0.2), "nothing is known yet");
        plan.measured(0, 1.0, 10);
        assert!(!plan.adapt(0.2), "nothing is known of the other agent");
        plan.measured(1, 3.0, 10);
        assert!(plan.adapt(0.2));
        assert!((plan.mean()[0] - 15.0).abs() < 1e-12 && (plan.shares(&[1.0; 2])[1] - 0.25).abs() < 1e-12);
        assert!(!plan.adapt(0.2), "as planned");
        plan.measured(1, 6.0, 10);
        assert!(plan.adapt(0.2), "a third of the way from 0.3 to 0.6 is more than a fifth of 0.3");
    }
}
