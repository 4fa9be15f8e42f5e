//! How often something was how old: what asynchronous methods tell of what their agents and servers know of each other.

use serde::{Deserialize, Serialize};

/// Ages from this on are counted together.
const OLDEST: u64 = 1000;

/// How often each age occurred, from 0 on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ages(Vec<u64>);

impl Ages {
    /// Counts an age.
    pub fn count(&mut self, age: u64) {
        let place = age.min(OLDEST) as usize;
        self.0.resize(self.0.len().max(place + 1), 0);
        self.0[place] += 1;
    }

    /// The ages that occurred at least once in any of these, and how often in each.
    pub fn table<const N: usize>(all: [&Self; N]) -> impl Iterator<Item = (u64, [u64; N])> {
        let most = all.iter().map(|ages| ages.0.len()).max().unwrap_or(0);
        let row = move |age: usize| (age as u64, all.map(|ages| ages.0.get(age).copied().unwrap_or(0)));
        (0..most).map(row).filter(|(_, counts)| counts.iter().any(|&count| count > 0))
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
        assert_eq!(Ages::table([&one]).collect::<Vec<_>>(), [(0, [1]), (3, [2]), (OLDEST, [2])]);
        let both = [(0, [1, 0]), (2, [0, 1]), (3, [2, 0]), (OLDEST, [2, 0])];
        assert_eq!(Ages::table([&one, &other]).collect::<Vec<_>>(), both);
    }
}
