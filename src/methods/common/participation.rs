//! Which agents take part in a round.

use crate::cluster::{AgentId, Context};
use crate::random::{Purpose, Who};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Which agents take part in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Participation {
    /// One after the other.
    #[default]
    RoundRobin,
    /// One; each once in as many rounds as there are agents, in a fresh random order each time.
    RandomPermutation,
    /// Any one.
    Random,
    /// All of them.
    All,
    /// So many, any.
    Subset(u32),
}

impl Participation {
    /// What it means, for people, where one agent is visited in each round.
    pub const ONE: &'static str = "in which order agents are visited: \"round_robin\", \"random_permutation\" (all in a fresh random order, again and \
         again) or \"random\"";

    /// What it means, for people, where several agents may take part.
    pub const ANY: &'static str = "who takes part in a round: \"all\", { subset = 20 } (so many, drawn afresh each time), or one agent: \"round_robin\", \
         \"random_permutation\" or \"random\"";

    /// The agents of this round, which counts from 0; ascending.
    pub fn agents(self, round: u64, agents: u32, cx: &Context) -> Vec<AgentId> {
        let place = round % u64::from(agents.max(1));
        let stream = |turn| cx.stream(Who::Run, turn, Purpose::Schedule);
        let permutation = |turn| stream(turn).permutation(agents as usize).into_iter().map(|agent| agent as AgentId);
        // Below the number of agents, in each case.
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

    /// How many agents take part in a round, of so many.
    pub fn size(self, agents: u32) -> u32 {
        match self {
            Self::RoundRobin | Self::RandomPermutation | Self::Random => 1,
            Self::All => agents,
            Self::Subset(size) => size.min(agents),
        }
    }

    /// Whether one agent is visited in each round.
    ///
    /// # Errors
    /// A message that says who visits several.
    pub fn check_one(self) -> Result<(), String> {
        match self {
            Self::RoundRobin | Self::RandomPermutation | Self::Random => Ok(()),
            Self::All | Self::Subset(_) => {
                Err("schedule: particles visit one agent after another here; p-dsvgd has several in a round".into())
            }
        }
    }

    /// Whether somebody takes part.
    ///
    /// # Errors
    /// A message that says who should.
    pub fn check(self) -> Result<(), String> {
        match self {
            Self::Subset(0) => Err("schedule: { subset = 0 } leaves nobody; take at least 1".into()),
            _ => Ok(()),
        }
    }

    /// Whether there are as many agents as should take part.
    ///
    /// # Errors
    /// A message that says how many there are.
    pub fn check_for(self, agents: u32) -> Result<(), String> {
        match self {
            Self::Subset(size) if size > agents => {
                Err(format!("schedule: {{ subset = {size} }} of {agents} agents; take at most {agents}, or \"all\""))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Seed;

    #[test]
    fn orders_visit_all_agents_equally_often() {
        let (agents, turns) = (5, 4000);
        let cx = Context::detached(Seed(3));
        let visited =
            |order: Participation| (0..turns * 5).map(|round| order.agents(round, agents, &cx)[0]).collect::<Vec<u32>>();
        assert_eq!(visited(Participation::RoundRobin)[..7], [0, 1, 2, 3, 4, 0, 1]);
        let permuted = visited(Participation::RandomPermutation);
        for turn in permuted.chunks(5) {
            let mut turn = turn.to_vec();
            turn.sort_unstable();
            assert_eq!(turn, [0, 1, 2, 3, 4]);
        }
        assert!(permuted[..5] != permuted[5..10] || permuted[..5] != permuted[10..15]);
        for order in [Participation::RandomPermutation, Participation::Random] {
            // How often an agent is first of a turn: chi-square with 4 degrees of freedom, above 30 in 5 cases of a million.
            let mut first = [0.0_f64; 5];
            visited(order).chunks(5).for_each(|turn| first[turn[0] as usize] += 1.0);
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
        // Means 900 with variance 630; 10 z² sum to chi-square with 9 degrees of freedom times 10/9: above 50 in 4 cases of 10 million.
        let chi: f64 = counts.iter().map(|count| (count - 900.0).powi(2) / 630.0).sum();
        assert!(chi < 50.0, "{counts:?}");
        assert_eq!(Participation::All.agents(7, 4, &cx), [0, 1, 2, 3]);
        assert!(
            Participation::Subset(0).check().is_err() && Participation::Subset(5).check_for(4).unwrap_err().contains("at most 4")
        );
        assert!(Participation::All.check_one().is_err() && Participation::Random.check_one().is_ok());
    }
}
