//! When to try again after a run could not be saved: the disk was full, or a network file system did not answer.

use std::time::{Duration, Instant};

const FIRST_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The run is stopped after this time, but not before this many attempts: with long tasks they are rare.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
const LEAST_ATTEMPTS: u32 = 5;

/// Attempts to save that have failed in succession.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedSaves {
    since: Instant,
    wait: Duration,
    last: Instant,
    attempts: u32,
}

impl FailedSaves {
    /// The first failure.
    pub fn first(now: Instant) -> Self {
        Self { since: now, wait: FIRST_WAIT, last: now, attempts: 1 }
    }

    /// Counts another failure.
    pub fn another(&mut self, now: Instant) {
        (self.wait, self.last) = ((2 * self.wait).min(LONGEST_WAIT), now);
        self.attempts += 1;
    }

    /// The usual pause before the next attempt.
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// Whether this pause after the last attempt is over.
    pub fn is_over(&self, pause: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= pause
    }

    /// Whether to give up.
    pub fn is_hopeless(&self, now: Instant) -> bool {
        self.attempts >= LEAST_ATTEMPTS && now.saturating_duration_since(self.since) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_and_end() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut failed = FailedSaves::first(begin);
        assert!(!failed.is_over(failed.wait(), at(4)) && failed.is_over(failed.wait(), at(5)));
        let mut now = 0;
        let mut attempts = 0;
        while !failed.is_hopeless(at(now)) {
            now += failed.wait().as_secs();
            failed.another(at(now));
            attempts += 1;
        }
        assert!(!failed.is_over(failed.wait(), at(now + 59)) && failed.is_over(failed.wait(), at(now + 60)));
        assert_eq!((now, attempts), (1815, 33));
        // Tasks of an hour.
        let mut rare = FailedSaves::first(begin);
        (1..4).for_each(|hour| rare.another(at(3600 * hour)));
        assert!(!rare.is_hopeless(at(4 * 3600)));
        rare.another(at(4 * 3600));
        assert!(rare.is_hopeless(at(4 * 3600)));
    }
}
