//! How often something was how old: what asynchronous methods tell of what their agents and servers know of each other.

use serde::{Deserialize, Serialize};

/// Ages from this on are counted together.
const OLDEST: u64 = 1000;

/// How often each age occurred, from 0 on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ages(Vec<u64>);

impl Ages {
    /// Counts an age.
    pub fn count(&mut self, age: u64) {
        let place = age.min(OLDEST) as usize;
        self.0.resize(self.0.len().max(place + 1), 0);
        self.0[place] += 1;
    }

    /// How often this age occurred.
    pub fn of(&self, age: u64) -> u64 {
        self.0.get(age as usize).copied().unwrap_or(0)
    }

    /// The ages that occurred at least once, here or in the other.
    pub fn with<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u64> + 'a {
        let most = self.0.len().max(other.0.len()) as u64;
        (0..most).filter(|&age| self.of(age) + other.of(age) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_counted_and_the_oldest_together() {
        let (mut one, mut other) = (Ages::default(), Ages::default());
        [0, 3, 3, OLDEST + 5, u64::MAX].into_iter().for_each(|age| one.count(age));
        other.count(2);
        assert_eq!([0, 1, 3, OLDEST, OLDEST + 5].map(|age| one.of(age)), [1, 0, 2, 2, 0]);
        assert_eq!(one.with(&other).collect::<Vec<_>>(), [0, 2, 3, OLDEST]);
        assert_eq!(other.with(&Ages::default()).collect::<Vec<_>>(), [2]);
    }
}
