//! The seed words of a run's topics, by their numbers in the vocabulary.

use crate::config::RunOf;
use crate::data::corpus::{Corpus as CorpusFile, Tokenizer};
use crate::data::{Split, listed};
use crate::lda::{MAX_SEED_TOKENS, SeedWords};
use crate::methods::Corpus;
use crate::settings::KeyError;
use crate::text;
use std::collections::HashMap;

/// The key of the seed words in `[model]`.
const SEED_WORDS: &str = "seed_words";

/// The most pseudo-counts in all, so that counts stay within the limits of their type.
const MAX_TOTAL: u64 = 1 << 30;

/// The seed words of a run, and remarks on them.
///
/// # Errors
/// The key of `[model]` that is wrong, and why.
pub(super) fn seed_words(run: &RunOf<Corpus>, corpus: &CorpusFile) -> Result<(SeedWords, Vec<String>), KeyError> {
    let wrong = |sentence: String| KeyError::invalid(SEED_WORDS, sentence);
    let model = &run.model;
    if model.seed_words.is_empty() {
        return Ok((SeedWords::default(), Vec::new()));
    }
    if !run.method.seeded_topics() {
        return Err(wrong(format!("work with the method lda only, not with {}", run.method.name())));
    }
    let vocabulary = corpus.vocabulary().map_err(|error| wrong(format!("cannot be looked up: {error}")))?;
    let Some(vocabulary) = vocabulary else {
        return Err(wrong(format!("cannot be looked up: {} has numbers of words, but no vocabulary", corpus.path().display())));
    };
    let mut numbers: HashMap<&str, u32> = HashMap::with_capacity(vocabulary.len());
    for (number, word) in (0..).zip(&vocabulary) {
        numbers.entry(word).or_insert(number);
    }
    let (mut cells, mut unknown, mut tokenizer) = (Vec::new(), Vec::new(), Tokenizer::new(1));
    for (topic, words) in (0..).zip(&model.seed_words) {
        let mut others = Vec::new();
        let before = cells.len();
        for word in words.split_whitespace() {
            // As imported text has it: in lower case and composed.
            let mut as_imported = Vec::new();
            tokenizer.each(word.as_bytes(), |token| as_imported.push(numbers.get(token)));
            let as_imported = if let [number] = as_imported[..] { number } else { None };
            match numbers.get(word).or(as_imported) {
                Some(&number) => cells.push((number, topic)),
                None => others.push(word.to_owned()),
            }
        }
        if cells.len() == before && !others.is_empty() {
            return Err(wrong(format!("of topic {topic} are not in the vocabulary: {}", listed(&others))));
        }
        unknown.append(&mut others);
    }
    let note =
        (!unknown.is_empty()).then(|| format!("seed words that are not in the vocabulary are left out: {}", listed(&unknown)));
    // At most 2^20.
    let mean = (corpus.tokens(Split::Train) / u64::from(corpus.words())).clamp(1, u64::from(MAX_SEED_TOKENS)) as i32;
    let tokens = model.seed_tokens.map_or(mean, u32::cast_signed);
    let found = SeedWords::new(cells, tokens);
    if found.total() > MAX_TOTAL {
        let total = text::count(found.total());
        return Err(wrong(format!(
            "have {total} pseudo-counts in all, at most {MAX_TOTAL} are supported: set a smaller seed_tokens"
        )));
    }
    Ok((found, note.into_iter().collect()))
}
