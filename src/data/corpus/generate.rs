//! Synthetic documents with known topics: documents as a corpus or in UCI's bag-of-words format, and topics as a NumPy array.

use super::write::CorpusWriter;
use crate::data::error::Result;
use crate::data::readers::npy;
use crate::lda::{CorpusGenerator, Documents};
use crate::random::Seed;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// The number of documents that are generated at once.
const BATCH: u64 = 1000;

/// The total size of the generated documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneratedSize {
    /// The number of entries: pairs of a document and one of its words.
    pub entries: u64,
    /// The number of tokens.
    pub tokens: u64,
}

/// About how many tokens are generated in parallel. While they are written, the next ones wait and more are generated, so that memory holds
/// three times as many.
const TOKENS_TOGETHER: f64 = (1 << 23) as f64;

/// Writes the first documents of a generator as a corpus. Their order is random already; the first `held_out` are held out, and the share
/// `scored` of their tokens is to be predicted. `report` is called with the number of documents that are written.
///
/// # Errors
/// If the corpus cannot be written, or no token of the held-out documents would be scored. No partial output remains.
pub fn write_corpus(
    generator: &CorpusGenerator,
    documents: u64,
    (held_out, scored): (u64, f64),
    seed: Seed,
    output: &Path,
    mut report: impl FnMut(u64),
) -> Result<GeneratedSize> {
    let mut writer = CorpusWriter::new(output)?;
    let mut size = GeneratedSize::default();
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel::<Vec<(Range<u64>, Documents)>>(1);
        scope.spawn(move || {
            // At least one batch, at most 2^20.
            let together = BATCH * (TOKENS_TOGETHER / (generator.mean_tokens() * BATCH as f64)).clamp(1.0, 1_048_576.0) as u64;
            for first in (0..documents).step_by(together as usize) {
                let batches: Vec<Range<u64>> = batches(first..documents.min(first + together)).collect();
                let made = batches.into_par_iter().map(|batch| (batch.clone(), generator.documents(batch))).collect();
                // The writer has failed, and returns its error.
                if send.send(made).is_err() {
                    return;
                }
            }
        });
        for (batch, made) in receive.into_iter().flatten() {
            size.tokens += made.tokens();
            let end = batch.end;
            for (number, bag) in batch.zip(made.iter()) {
                size.entries += bag.words.len() as u64;
                match number < held_out {
                    true => writer.push_test(number, bag, scored, seed)?,
                    false => writer.push_train(number, bag)?,
                }
            }
            report(end);
        }
        Ok(())
    })?;
    let source = format!(
        "{documents} generated documents, seed {}, {} topics, {scored} of the tokens of {held_out} documents scored",
        seed.0,
        generator.topics()
    );
    writer.check_scored(scored, output)?;
    writer.finish(generator.vocabulary(), None, &source)?;
    Ok(size)
}

/// Ranges of at most [`BATCH`] documents.
fn batches(documents: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    documents.clone().step_by(BATCH as usize).map(move |first| first..documents.end.min(first + BATCH))
}

/// Writes the first documents of a generator in UCI's bag-of-words format. They are generated twice, because the header has the number of
/// entries.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_docword(generator: &CorpusGenerator, documents: u64, out: &mut impl Write) -> io::Result<GeneratedSize> {
    let mut size = GeneratedSize::default();
    for batch in batches(0..documents) {
        let drawn = generator.documents(batch);
        size.tokens += drawn.tokens();
        size.entries += drawn.iter().map(|bag| bag.words.len() as u64).sum::<u64>();
    }
    writeln!(out, "{documents}\n{}\n{}", generator.vocabulary(), size.entries)?;
    for batch in batches(0..documents) {
        for (number, bag) in batch.clone().zip(generator.documents(batch).iter()) {
            for (word, count) in bag.words.iter().zip(bag.counts) {
                writeln!(out, "{} {} {count}", number + 1, word + 1)?;
            }
        }
    }
    out.flush()?;
    Ok(size)
}

/// Writes φ of a generator as an NPY file: float64, K × W, one topic per row.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_topics(generator: &CorpusGenerator, out: &mut impl Write) -> io::Result<()> {
    npy::write_header(out, generator.topics(), generator.vocabulary() as usize)?;
    for topic in 0..generator.topics() {
        generator.topic(topic).try_for_each(|phi| out.write_all(&phi.to_le_bytes()))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::bags::{BagFormat, CorpusSize};
    use super::*;
    use crate::data::{Npy, Source};
    use crate::lda::CorpusGeneratorSettings;
    use crate::random::Seed;
    use std::path::Path;

    const SETTINGS: CorpusGeneratorSettings =
        CorpusGeneratorSettings { vocabulary: 40, topics: 3, alpha: 0.4, concentration: 30.0, log_length: (3.0, 0.4) };

    fn docword(documents: u64, seed: u64) -> (Vec<u8>, GeneratedSize) {
        let mut out = Vec::new();
        let made = write_docword(&CorpusGenerator::new(SETTINGS, Seed(seed)).unwrap(), documents, &mut out).unwrap();
        (out, made)
    }

    #[test]
    fn words_are_as_frequent_as_the_topics_that_are_written_say() {
        const DOCUMENTS: u64 = 12_500;
        let (text, made) = docword(DOCUMENTS, 5);
        let (mut shares, mut seen) = (vec![Vec::new(); 40], GeneratedSize::default());
        let sizes = BagFormat::Docword.read(Source::of_bytes(Path::new("x"), &text).unwrap(), None, &mut |number, entries| {
            assert_eq!(number, shares[0].len() as u64);
            let tokens: u32 = entries.iter().map(|&(_, count)| count).sum();
            shares.iter_mut().for_each(|share| share.push(0.0));
            for &mut (word, count) in entries.iter_mut() {
                *shares[word as usize].last_mut().unwrap() = f64::from(count) / f64::from(tokens);
            }
            seen.entries += entries.len() as u64;
            seen.tokens += u64::from(tokens);
            Ok(())
        });
        assert_eq!((sizes.unwrap(), seen), (CorpusSize { documents: DOCUMENTS, words: 40 }, made));
        let mut written = Vec::new();
        write_topics(&CorpusGenerator::new(SETTINGS, Seed(5)).unwrap(), &mut written).unwrap();
        assert_eq!(written.len(), 128 + 3 * 40 * 8);
        let mut npy = Npy::open(Source::of_bytes(Path::new("x"), &written).unwrap()).unwrap();
        assert_eq!((npy.rows(), npy.row_shape()), (3, &[40][..]));
        let mut mean = vec![0.0; 40];
        npy.for_numbers(|topic, _| {
            assert!((topic.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            mean.iter_mut().zip(topic).for_each(|(mean, phi)| *mean += phi / 3.0);
            Ok(())
        })
        .unwrap();
        // Topics are equally common, so that the share of a word in a document has this mean.
        for (word, (shares, exact)) in shares.iter().zip(&mean).enumerate() {
            let n = shares.len() as f64;
            let found = shares.iter().sum::<f64>() / n;
            let error = (shares.iter().map(|share| (share - found).powi(2)).sum::<f64>() / n / n).sqrt();
            assert!((found - exact).abs() < 4.5 * error.max(1e-5), "word {word}: {found} ± {error}, not {exact}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_documents_and_fewer_are_the_first_of_more() {
        let (text, made) = docword(1100, 1);
        assert_eq!(
            (docword(1100, 1).0, made.entries),
            (text.clone(), text.iter().filter(|&&byte| byte == b'\n').count() as u64 - 3)
        );
        assert_ne!(docword(1100, 2).0, text);
        let body = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap().splitn(4, '\n').nth(3).unwrap().to_owned();
        assert!(body(&text).starts_with(&body(&docword(1003, 1).0)));
    }
}
