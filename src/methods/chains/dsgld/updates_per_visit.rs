//! Updates per visit at each agent (trajectory lengths): fixed, or adapted so that visits to fast and slow agents take the same time.

use crate::cluster::{Context, Raw};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Adaptation of the updates per visit to measured delays (Ahn, Shahbaba & Welling 2014, section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Balance {
    /// The updates per visit are adapted again once any agent's seconds per update differ by more than this fraction from those at the last
    /// adaptation.
    pub threshold: f64,
    /// After r finished rounds, they may be adapted with probability decay^r.
    pub decay: f64,
    /// From this round on, they stay the same.
    pub until: u64,
}

impl Default for Balance {
    fn default() -> Self {
        Self { threshold: 0.2, decay: 0.99, until: 100 }
    }
}

/// Updates per visit at all agents from a given round on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTrajectories {
    /// The round, from 0.
    pub round: u64,
    /// τ_s of each agent.
    pub updates: Vec<f64>,
}

/// The weight of a new measurement in the moving average of an agent's seconds per update.
const NEW_WEIGHT: f64 = 0.3;

/// The current number of updates per visit at each agent, and the measured delays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdatesPerVisit {
    /// τ_s, the mean number of updates in a visit to each agent.
    mean: Vec<f64>,
    /// The mean over agents at the start of the run. Adaptation keeps it, unless a slow agent would make less than one update: it makes one,
    /// and the mean grows.
    target_mean: f64,
    /// The fraction of an update, from 0 to below 1, that rounding carries over to a chain's next visit to an agent (chains × agents).
    /// With one value for all chains, a chain could be rounded the same way in all its visits to an agent.
    carry: Raw<f64>,
    /// d_s, seconds per update.
    delays: Vec<Option<f64>>,
    /// The delays at the last adaptation, if there was one.
    adapted_to: Option<Vec<f64>>,
}

impl UpdatesPerVisit {
    /// These mean numbers of updates, one for each agent; values below 1 are replaced by 1.
    pub fn new(mean: Vec<f64>) -> Self {
        let mean: Vec<f64> = mean.into_iter().map(|mean| mean.max(1.0)).collect();
        let target_mean = mean.iter().sum::<f64>() / mean.len() as f64;
        Self { carry: Raw(Vec::new()), delays: vec![None; mean.len()], adapted_to: None, target_mean, mean }
    }

    /// τ_s.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// q_s, the fraction of all updates that each agent makes, given the relative frequencies of visits.
    pub fn update_fractions(&self, visits: &[f64]) -> Vec<f64> {
        let updates: Vec<f64> = self.mean.iter().zip(visits).map(|(mean, visits)| mean * visits).collect();
        let total: f64 = updates.iter().sum();
        updates.into_iter().map(|updates| updates / total).collect()
    }

    /// Draws each chain's carry at each agent, so that visits have τ_s updates in expectation.
    pub fn draw_carries(&mut self, chains: u32, cx: &Context) {
        for chain in 0..chains {
            let mut stream = cx.stream(Who::Chain(chain), 0, Purpose::Planning);
            self.carry.0.extend(self.mean.iter().map(|_| stream.random::<f64>()));
        }
    }

    /// The number of updates of a chain's next visit to an agent. The remainder of rounding is carried to a later visit.
    pub fn next_visit(&mut self, chain: u32, agent: usize) -> u64 {
        let carry = &mut self.carry.0[chain as usize * self.mean.len() + agent];
        let exact = *carry + self.mean[agent];
        // At most 1e9 updates for each agent, of which f64 and u64 hold any sum.
        let whole = exact.floor();
        *carry = exact - whole;
        whole as u64
    }

    /// Replaces τ_s by the planned numbers.
    pub fn set_planned(&mut self, planned: &PlannedTrajectories) {
        self.mean.clone_from(&planned.updates);
    }

    /// Updates an agent's delay with the duration of a visit.
    pub fn add_measurement(&mut self, agent: usize, seconds: f64, updates: u64) {
        let delay = seconds / updates.max(1) as f64;
        let average = &mut self.delays[agent];
        *average = Some(average.map_or(delay, |average| average + NEW_WEIGHT * (delay - average)));
    }

    /// Adapts τ_s once all agents have a delay, and again if one of these has changed by more than this fraction since the last adaptation.
    /// Returns whether it did.
    pub fn adapt(&mut self, threshold: f64) -> bool {
        let Some(delays) = self.delays.iter().copied().collect::<Option<Vec<f64>>>() else { return false };
        if delays.iter().any(|delay| *delay <= 0.0 || !delay.is_finite()) {
            return false;
        }
        let differs = |old: &Vec<f64>| delays.iter().zip(old).any(|(delay, old)| (delay / old - 1.0).abs() > threshold);
        let is_due = self.adapted_to.as_ref().is_none_or(differs);
        if !is_due {
            return false;
        }
        self.mean = balanced(&delays, self.target_mean).into_iter().map(|mean| mean.max(1.0)).collect();
        self.adapted_to = Some(delays);
        true
    }
}

/// τ_s = q_s τ S with q_s ∝ 1/d_s for S agents: all visits take the same time, and have τ updates on average.
pub fn balanced(delays: &[f64], mean: f64) -> Vec<f64> {
    let speeds: f64 = delays.iter().map(|delay| 1.0 / delay).sum();
    delays.iter().map(|delay| mean * delays.len() as f64 / (delay * speeds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 1 of the paper.
    #[test]
    fn balanced_updates_per_visit_are_those_of_the_paper() {
        let delays = [3.0, 1.0, 2.0, 4.0];
        for (mean, exact) in [(25.0 / 4.0, [4.0, 12.0, 6.0, 3.0]), (75.0 / 16.0, [3.0, 9.0, 4.5, 2.25])] {
            let numbers = balanced(&delays, mean);
            assert!(numbers.iter().zip(exact).all(|(number, exact)| (number - exact).abs() < 1e-12), "{numbers:?}");
        }
    }

    #[test]
    fn remainders_of_rounding_are_carried_over() {
        let mut numbers = UpdatesPerVisit::new(vec![4.0, 2.25, 0.25]);
        numbers.carry = Raw(vec![0.9, 0.0, 0.5, 0.0, 0.5, 0.0]);
        let mut made = |chain, agent| (0..8).map(|_| numbers.next_visit(chain, agent)).collect::<Vec<u64>>();
        assert_eq!((made(0, 0), made(1, 0)), (vec![4; 8], vec![4; 8]));
        assert_eq!(made(0, 1), [2, 2, 2, 3, 2, 2, 2, 3]);
        assert_eq!(made(1, 1), [2, 3, 2, 2, 2, 3, 2, 2]);
        // A visit makes at least one update.
        assert_eq!(made(0, 2), [1; 8]);
    }

    #[test]
    fn updates_per_visit_adapt_to_delays_beyond_the_threshold() {
        let mut numbers = UpdatesPerVisit::new(vec![10.0, 10.0]);
        assert!(!numbers.adapt(0.2), "no delay is measured yet");
        numbers.add_measurement(0, 1.0, 10);
        assert!(!numbers.adapt(0.2), "the other agent has no measured delay");
        numbers.add_measurement(1, 3.0, 10);
        assert!(numbers.adapt(0.2));
        assert!((numbers.mean()[0] - 15.0).abs() < 1e-12 && (numbers.update_fractions(&[1.0; 2])[1] - 0.25).abs() < 1e-12);
        assert!(!numbers.adapt(0.2), "delays are as planned");
        numbers.add_measurement(1, 6.0, 10);
        assert!(numbers.adapt(0.2), "0.3 of the way from 0.3 to 0.6 seconds is more than a fifth of 0.3");
    }
}
