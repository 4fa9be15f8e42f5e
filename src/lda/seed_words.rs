//! Seed words: words that are known to belong to a topic.
//!
//! A topic has pseudo-counts of its seed words, as if other documents had these tokens: φ_k ~ Dirichlet(β + c_k), where c_kw is the same
//! number for all seed words of topic k, and 0 for all other words.

use super::priors::PriorStatistics;

/// The pseudo-counts of all topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedWords {
    /// Pairs of a word and a topic, in ascending order.
    cells: Vec<(u32, u32)>,
    /// The pseudo-count of each of them.
    count: i32,
}

impl SeedWords {
    /// Gives each pair of a word and a topic this pseudo-count. Pairs may repeat.
    pub fn new(words: impl IntoIterator<Item = (u32, u32)>, count: i32) -> Self {
        let mut cells: Vec<(u32, u32)> = words.into_iter().collect();
        cells.sort_unstable();
        cells.dedup();
        Self { cells, count }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The sum of all pseudo-counts.
    pub fn total(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.count.unsigned_abs())
    }

    /// The statistics of the pseudo-counts, which counts that include them have for the estimate of β.
    pub fn statistics(&self) -> PriorStatistics {
        let topics = self.cells.iter().map(|&(_, topic)| topic as usize + 1).max().unwrap_or(0);
        let mut words = vec![0; topics];
        self.cells.iter().for_each(|&(_, topic)| words[topic as usize] += 1);
        PriorStatistics::of_pseudo_counts(self.count.unsigned_abs(), &words)
    }

    /// Adds the pseudo-counts to the counts n_kw (W × K).
    ///
    /// # Panics
    /// If a word or topic is outside of them.
    pub fn add_to(&self, counts: &mut [i32], topics: usize) {
        let places = self.cells.iter().map(|&(word, topic)| word as usize * topics + topic as usize);
        places.for_each(|place| counts[place] += self.count);
    }
}
