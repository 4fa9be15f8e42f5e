//! The seed words of a run's topics, by their numbers in the vocabulary.

use crate::config::RunOf;
use crate::data::Split;
use crate::data::corpus::Corpus as CorpusFile;
use crate::lda::{MAX_SEED_TOKENS, SeedWords};
use crate::methods::Corpus;
use crate::settings::KeyError;
use std::collections::HashMap;

/// The key of the seed words in `[model]`.
const SEEDS: &str = "seeds";

/// The seed words of a run, and remarks on them.
///
/// # Errors
/// The key of `[model]` that is wrong, and why.
pub(super) fn seed_words(run: &RunOf<Corpus>, corpus: &CorpusFile) -> Result<(SeedWords, Vec<String>), KeyError> {
    let wrong = |sentence: String| KeyError::invalid(SEEDS, sentence);
    let model = &run.model;
    if model.seeds.is_empty() {
        return Ok((SeedWords::default(), Vec::new()));
    }
    if !run.method.seeded_topics() {
        return Err(wrong(format!("are for the method lda; {} does not take them", run.method.name())));
    }
    let vocabulary = corpus.vocabulary().map_err(|error| wrong(format!("need the vocabulary: {error}")))?;
    let Some(vocabulary) = vocabulary else {
        return Err(wrong(format!("need words, and {} has only their numbers", corpus.path().display())));
    };
    let numbers: HashMap<&str, u32> = vocabulary.iter().map(String::as_str).zip(0..).collect();
    let (mut cells, mut unknown) = (Vec::new(), Vec::new());
    for (topic, words) in (0..).zip(&model.seeds) {
        let (known, others): (Vec<&str>, Vec<&str>) = words.split_whitespace().partition(|word| numbers.contains_key(word));
        if known.is_empty() && !others.is_empty() {
            return Err(wrong(format!("of topic {topic} are not in the vocabulary: {}", others.join(", "))));
        }
        cells.extend(known.iter().map(|word| (numbers[word], topic)));
        unknown.extend(others);
    }
    let note =
        (!unknown.is_empty()).then(|| format!("{SEEDS} that are not in the vocabulary are left out: {}", unknown.join(", ")));
    // At most 2^24.
    let mean = (corpus.tokens(Split::Train) / u64::from(corpus.words())).clamp(1, u64::from(MAX_SEED_TOKENS)) as i32;
    let tokens = model.seed_tokens.map_or(mean, u32::cast_signed);
    Ok((SeedWords::new(cells, tokens), note.into_iter().collect()))
}
