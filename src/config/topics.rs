//! What a run's topics need beside their numbers: the vocabulary that its result file ends with.

use crate::data::DataError;
use crate::data::corpus::Corpus;
use crate::results::Grid;

/// The name of the topics among a run's draws: φ (W × K).
pub const PHI: &str = "phi";
/// The group of the result file that has the words.
pub const VOCABULARY: &str = "vocabulary";

/// The words of a corpus by their numbers; where it has numbers alone, these.
///
/// # Errors
/// When they cannot be read.
pub fn vocabulary(corpus: &Corpus) -> Result<Grid, DataError> {
    let words = corpus.vocabulary()?.unwrap_or_else(|| (0..corpus.words()).map(|word| format!("word_{word}")).collect());
    Ok(Grid {
        group: VOCABULARY.into(),
        dimensions: vec![("word".into(), words.len())],
        variables: Vec::new(),
        names: vec![("words".into(), 0, words)],
    })
}
