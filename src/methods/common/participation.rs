//! Participation of agents in the rounds of a federated method, and the history row of a round.

use crate::cluster::record::HISTORY;
use crate::cluster::{AgentId, AgentReportOf, Context};
use crate::random::{Purpose, Who};
use crate::settings::KeyError;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Which agents take part in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Participation {
    /// One agent: 0, 1, ... in turn.
    #[default]
    RoundRobin,
    /// One agent: each once per cycle, in a new random order for every cycle.
    RandomPermutation,
    /// One agent, drawn uniformly.
    Random,
    /// All agents.
    All,
    /// This many different agents, drawn uniformly.
    Subset(u32),
}

/// Agents that are visited one at a time need more visits than these, unless each visit changes little.
const FEW_VISITS: u64 = 5;
/// The fewest rounds of a run whose rounds are not given.
const MIN_DEFAULT_ROUNDS: u64 = 10;

impl Participation {
    /// The agents of a round, ascending; rounds count from 0.
    pub fn agents(self, round: u64, agents: u32, cx: &Context) -> Vec<AgentId> {
        let place = round % u64::from(agents.max(1));
        let stream = |number| cx.stream(Who::Run, number, Purpose::Schedule);
        let permutation = |number| stream(number).permutation(agents as usize).into_iter().map(|agent| agent as AgentId);
        match self {
            Self::RoundRobin => vec![place as AgentId],
            Self::RandomPermutation => permutation(round / u64::from(agents.max(1))).skip(place as usize).take(1).collect(),
            Self::Random => vec![stream(round).random_range(0..agents.max(1))],
            Self::All => (0..agents).collect(),
            Self::Subset(size) => {
                let mut chosen: Vec<AgentId> = permutation(round).take(size as usize).collect();
                chosen.sort_unstable();
                chosen
            }
        }
    }

    /// The rounds that are given, or else as many as visit each agent often enough.
    pub fn rounds(self, given: Option<u64>, agents: u32) -> u64 {
        let enough = || FEW_VISITS.saturating_mul(u64::from(agents)).div_ceil(u64::from(self.size(agents).max(1)));
        given.unwrap_or_else(|| enough().max(MIN_DEFAULT_ROUNDS))
    }

    /// A remark if so few rounds leave out agents, whose data then count little or not at all, or visit each only a few times.
    pub fn note_on_rounds(self, rounds: u64, agents: u32) -> Option<String> {
        let visits = rounds.saturating_mul(u64::from(self.size(agents)));
        let note = || {
            let wanted = u64::from(agents).div_ceil(u64::from(self.size(agents).max(1)));
            format!("rounds = {rounds} visits {visits} of {agents} agents at most: set rounds = {wanted} or more")
        };
        let few = || {
            let each = visits / u64::from(agents.max(1));
            let longer = rounds.saturating_mul(FEW_VISITS).div_ceil(each.max(1));
            format!(
                "rounds = {rounds} visits each of {agents} agents about {each} times, which may be too few: compare with rounds = {longer}"
            )
        };
        match visits {
            _ if visits < u64::from(agents) => Some(note()),
            _ if self.size(agents) < agents && visits < FEW_VISITS.saturating_mul(u64::from(agents)) => Some(few()),
            _ => None,
        }
    }

    /// How many of `agents` take part in a round.
    pub fn size(self, agents: u32) -> u32 {
        match self {
            Self::RoundRobin | Self::RandomPermutation | Self::Random => 1,
            Self::All => agents,
            Self::Subset(size) => size.min(agents),
        }
    }

    /// Checks that one agent is visited in each round.
    ///
    /// # Errors
    /// If several agents take part in a round.
    pub fn check_one(self) -> Result<(), KeyError> {
        match self {
            Self::RoundRobin | Self::RandomPermutation | Self::Random => Ok(()),
            Self::All | Self::Subset(_) => {
                Err(KeyError::invalid("schedule", "must select one agent for each round; the method p_dsvgd takes several"))
            }
        }
    }

    /// Checks that at least one agent takes part.
    ///
    /// # Errors
    /// If no agent does.
    pub fn check(self) -> Result<(), KeyError> {
        match self {
            Self::Subset(0) => Err(KeyError::invalid("schedule.subset", "must be at least 1, not 0")),
            _ => Ok(()),
        }
    }

    /// Checks that there are enough agents for a round.
    ///
    /// # Errors
    /// If a round needs more agents than there are.
    pub fn check_agents(self, agents: u32) -> Result<(), KeyError> {
        match self {
            Self::Subset(size) if size > agents => {
                let sentence = format!("must be at most {agents}, the number of agents, not {size}");
                Err(KeyError::invalid("schedule.subset", sentence))
            }
            _ => Ok(()),
        }
    }
}

/// Writes the history row of a round: when it ended, which agent was visited or how many took part, and the means of their metrics.
pub fn log_round<N, const C: usize>(round: u64, names: [&str; C], reports: &[AgentReportOf<[f64; C], N>], cx: &mut Context) {
    let mut columns = vec![("seconds", cx.seconds())];
    match reports {
        [only] => columns.push(("visited", f64::from(only.from))),
        _ => columns.push(("agents", reports.len() as f64)),
    }
    for (place, name) in names.into_iter().enumerate() {
        let sum: f64 = reports.iter().map(|reported| reported.report[place]).sum();
        columns.push((name, sum / reports.len() as f64));
    }
    cx.log_row(HISTORY, round, columns);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Seed;

    #[test]
    fn too_few_rounds_are_noted() {
        let note = |participation: Participation, rounds| participation.note_on_rounds(rounds, 20);
        let few = note(Participation::RoundRobin, 10);
        assert_eq!(few.as_deref(), Some("rounds = 10 visits 10 of 20 agents at most: set rounds = 20 or more"));
        assert!(note(Participation::Subset(5), 3).unwrap().ends_with("rounds = 4 or more"));
        assert_eq!([note(Participation::RoundRobin, 100), note(Participation::All, 1)], [None, None]);
        let few = note(Participation::RoundRobin, 40).unwrap();
        assert!(few.contains("each of 20 agents about 2 times") && few.ends_with("rounds = 100"), "{few}");
    }

    #[test]
    fn default_rounds_visit_each_agent_often_enough() {
        for participation in [Participation::RoundRobin, Participation::All, Participation::Subset(3)] {
            for agents in [1, 2, 5, 20] {
                let rounds = participation.rounds(None, agents);
                assert_eq!(participation.note_on_rounds(rounds, agents), None, "{participation:?}, {agents} agents");
            }
        }
        assert_eq!([1, 2, 5].map(|agents| Participation::RoundRobin.rounds(None, agents)), [10, 10, 25]);
        assert_eq!(Participation::All.rounds(None, 20), 10);
    }

    #[test]
    fn sequential_schedules_visit_all_agents_equally_often() {
        let (agents, cycles) = (5, 4000);
        let cx = Context::detached(Seed(3));
        let visited =
            |order: Participation| (0..cycles * 5).map(|round| order.agents(round, agents, &cx)[0]).collect::<Vec<u32>>();
        assert_eq!(visited(Participation::RoundRobin)[..7], [0, 1, 2, 3, 4, 0, 1]);
        let permuted = visited(Participation::RandomPermutation);
        for cycle in permuted.chunks(5) {
            let mut cycle = cycle.to_vec();
            cycle.sort_unstable();
            assert_eq!(cycle, [0, 1, 2, 3, 4]);
        }
        assert!(permuted[..5] != permuted[5..10] || permuted[..5] != permuted[10..15]);
        for order in [Participation::RandomPermutation, Participation::Random] {
            // How often each agent is the first of a cycle: chi-square with 4 degrees of freedom exceeds 30 with probability 5e-6.
            let mut first = [0.0_f64; 5];
            visited(order).chunks(5).for_each(|cycle| first[cycle[0] as usize] += 1.0);
            let chi: f64 = first.iter().map(|count| (count - 800.0).powi(2) / 800.0).sum();
            assert!(chi < 30.0, "{order:?}: {first:?}");
        }
        assert_eq!(Participation::Random.agents(9, 1, &cx), [0]);
    }

    #[test]
    fn subsets_are_ascending_and_fair() {
        let cx = Context::detached(Seed(4));
        let rounds = 3000_u32;
        let mut counts = [0.0_f64; 10];
        for round in 0..rounds {
            let chosen = Participation::Subset(3).agents(u64::from(round), 10, &cx);
            assert!(chosen.len() == 3 && chosen.is_sorted_by(|a, b| a < b), "{chosen:?}");
            chosen.iter().for_each(|&agent| counts[agent as usize] += 1.0);
        }
        // Counts have mean 900 and variance 630, and 9/10 of the sum of squares is chi-square with 9 degrees of freedom: the sum exceeds
        // 50 with probability 4e-7.
        let chi: f64 = counts.iter().map(|count| (count - 900.0).powi(2) / 630.0).sum();
        assert!(chi < 50.0, "{counts:?}");
        assert_eq!(Participation::All.agents(7, 4, &cx), [0, 1, 2, 3]);
        assert!(
            Participation::Subset(0).check().is_err()
                && Participation::Subset(5).check_agents(4).unwrap_err().to_string().contains("at most 4")
        );
        assert!(Participation::All.check_one().is_err() && Participation::Random.check_one().is_ok());
    }
}
