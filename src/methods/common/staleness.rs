//! Histograms of staleness: how many exchanges or steps old the information was that an agent or the server of an asynchronous method used.

use serde::{Deserialize, Serialize};

/// Values from this one on are counted together.
const MAX: u64 = 1000;

/// How often each staleness occurred: counts for 0, 1, 2, ...
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Staleness(Vec<u64>);

impl Staleness {
    /// Counts one occurrence.
    pub fn count(&mut self, staleness: u64) {
        let bin = staleness.min(MAX) as usize;
        self.0.resize(self.0.len().max(bin + 1), 0);
        self.0[bin] += 1;
    }

    /// The values that occurred in any of these histograms, with their counts in each.
    pub fn table<const N: usize>(histograms: [&Self; N]) -> impl Iterator<Item = (u64, [u64; N])> {
        let bins = histograms.iter().map(|histogram| histogram.0.len()).max().unwrap_or(0);
        let row = move |bin: usize| (bin as u64, histograms.map(|histogram| histogram.0.get(bin).copied().unwrap_or(0)));
        (0..bins).map(row).filter(|(_, counts)| counts.iter().any(|&count| count > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_the_largest_share_a_bin() {
        let (mut one, mut other) = (Staleness::default(), Staleness::default());
        [0, 3, 3, MAX + 5, u64::MAX].into_iter().for_each(|staleness| one.count(staleness));
        other.count(2);
        assert_eq!(Staleness::table([&one]).collect::<Vec<_>>(), [(0, [1]), (3, [2]), (MAX, [2])]);
        let both = [(0, [1, 0]), (2, [0, 1]), (3, [2, 0]), (MAX, [2, 0])];
        assert_eq!(Staleness::table([&one, &other]).collect::<Vec<_>>(), both);
    }
}
