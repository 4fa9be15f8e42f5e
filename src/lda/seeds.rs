//! Seed words: words that are known to belong to a topic.
//!
//! A topic has prior tokens of its seed words, as if they had been counted in other documents: φ_k ~ Dirichlet(β + c_k), where c_kw is the
//! number of prior tokens for the seed words of topic k and 0 for all other words.

/// The prior tokens of all topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedWords {
    /// The words of each topic as pairs of a word and a topic, in ascending order.
    cells: Vec<(u32, u32)>,
    tokens: i32,
}

impl SeedWords {
    /// So many prior tokens of each of these words in its topic. Pairs of a word and a topic may repeat.
    pub fn new(words: impl IntoIterator<Item = (u32, u32)>, tokens: i32) -> Self {
        let mut cells: Vec<(u32, u32)> = words.into_iter().collect();
        cells.sort_unstable();
        cells.dedup();
        Self { cells, tokens }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The number of prior tokens of all topics.
    pub fn tokens(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.tokens.unsigned_abs())
    }

    /// Adds the prior tokens to the counts n_kw (W × K).
    ///
    /// # Panics
    /// If a word or topic is outside of them.
    pub fn add_to(&self, counts: &mut [i32], topics: usize) {
        self.places(topics).for_each(|place| counts[place] += self.tokens);
    }

    /// Takes the prior tokens out of the counts n_kw (W × K).
    ///
    /// # Panics
    /// If a word or topic is outside of them.
    pub fn remove_from(&self, counts: &mut [i32], topics: usize) {
        self.places(topics).for_each(|place| counts[place] -= self.tokens);
    }

    fn places(&self, topics: usize) -> impl Iterator<Item = usize> {
        self.cells.iter().map(move |&(word, topic)| word as usize * topics + topic as usize)
    }
}
