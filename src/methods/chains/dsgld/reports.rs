//! The rounds in which chains report their states for evaluations.

/// The rounds, from 0, whose visits report states: the last visit of each chain before an evaluation.
#[derive(Clone, Copy)]
pub(super) struct ReportingRounds {
    /// The number of rounds of the run.
    pub rounds: u64,
    /// Rounds between evaluations; 0 for none.
    pub evaluate_every: u64,
    /// The number of rounds in which each chain makes one visit.
    pub rounds_per_turn: u64,
}

impl ReportingRounds {
    /// Whether an evaluation comes after this round, before its chains make another visit.
    pub fn contain(self, round: u64) -> bool {
        let next_visit = round.saturating_add(self.rounds_per_turn);
        self.evaluate_every > 0 && (next_visit >= self.rounds || next_visit / self.evaluate_every > round / self.evaluate_every)
    }

    /// Whether this is the first of these rounds from round `since` on.
    pub fn first_since(self, since: u64, round: u64) -> bool {
        round >= since && self.contain(round) && !(since..round).any(|earlier| self.contain(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(rounds: u64, evaluate_every: u64, rounds_per_turn: u64) -> Vec<u64> {
        let reporting = ReportingRounds { rounds, evaluate_every, rounds_per_turn };
        (0..rounds).filter(|&round| reporting.contain(round)).collect()
    }

    /// The rounds from `since` on that are the first.
    fn firsts(since: u64, reporting: ReportingRounds) -> Vec<u64> {
        (0..reporting.rounds).filter(|&round| reporting.first_since(since, round)).collect()
    }

    #[test]
    fn each_chain_reports_before_an_evaluation() {
        assert_eq!(all(25, 10, 1), [9, 19, 24]);
        assert_eq!(all(25, 10, 4), [6, 7, 8, 9, 16, 17, 18, 19, 21, 22, 23, 24]);
        assert_eq!(all(5, 100, 2), [3, 4]);
        assert!(all(25, 0, 4).is_empty());
    }

    /// States of burn-in are forgotten once, however many rounds report before an evaluation.
    #[test]
    fn one_round_is_the_first_with_draws() {
        let in_turn = ReportingRounds { rounds: 40, evaluate_every: 10, rounds_per_turn: 4 };
        assert_eq!(firsts(14, in_turn), [16]);
        assert_eq!(firsts(17, in_turn), [17]);
        assert_eq!(firsts(0, in_turn), [6]);
        assert!(firsts(40, in_turn).is_empty());
        assert_eq!(firsts(17, ReportingRounds { rounds: 25, evaluate_every: 10, rounds_per_turn: 1 }), [19]);
        assert_eq!(firsts(2, ReportingRounds { rounds: 8, evaluate_every: 100, rounds_per_turn: 3 }), [5]);
    }
}
