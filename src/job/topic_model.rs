//! The topics of a run as its result file has them, and what they say of documents.

use super::error::{JobError, NOT_FINISHED};
use crate::config::{Registry, Run};
use crate::data::corpus::Corpus;
use crate::data::{DataError, Split};
use crate::lda::{Alpha, Bag, DocumentGibbs, Documents, LdaSettings, Sweeps, WordTable};
use crate::models::Part;
use crate::random::{Purpose, Seed, Who};
use crate::results::{Grid, HISTORY, POSTERIOR, ResultFile};
use ndarray::{Array1, Array2, Axis, s};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The name of the topics among a run's draws: φ (W × K).
pub const PHI: &str = "phi";
/// The name of α of each topic among a run's draws, where these are estimated.
pub(super) const ALPHA: &str = "alpha";
/// The group of the result file that has the words.
const VOCABULARY: &str = "vocabulary";
/// How long a document is sampled whose topics are asked for.
const SWEEPS: Sweeps = Sweeps { burn_in: 20, kept: 50 };

/// The words of a corpus by their numbers; where it has numbers alone, these.
///
/// # Errors
/// When they cannot be read.
pub(super) fn words(corpus: &Corpus) -> Result<Vec<String>, DataError> {
    Ok(corpus.vocabulary()?.unwrap_or_else(|| (0..corpus.words()).map(|word| format!("word_{word}")).collect()))
}

/// The words of a corpus as a result file ends with them.
///
/// # Errors
/// When they cannot be read.
pub(super) fn vocabulary(corpus: &Corpus) -> Result<Grid, DataError> {
    let words = words(corpus)?;
    Ok(Grid {
        group: VOCABULARY.into(),
        dimensions: vec![("word".into(), words.len())],
        variables: Vec::new(),
        names: vec![("words".into(), 0, words)],
    })
}

/// Topics: the mean of the draws of a chain, for topics of different chains have no common order.
#[derive(Clone, Debug)]
pub struct TopicModel {
    /// The words, by their numbers.
    pub words: Vec<String>,
    /// φ, W × K.
    pub phi: Array2<f32>,
    /// The corpus that the run used.
    pub corpus: PathBuf,
    /// How many draws it is the mean of.
    pub draws: usize,
    /// α: where the run has estimated it, what it was in the end, or for α of each topic their mean over the draws.
    alpha: Alpha,
    seed: Seed,
    /// φ ready for being drawn from.
    table: WordTable<f32>,
}

impl TopicModel {
    /// From the result file of a run, of one of its chains.
    ///
    /// # Errors
    /// When the run is on no documents or not over, or there is no such chain.
    pub fn read(file: &ResultFile, chain: usize, registry: &Registry) -> Result<Self, JobError> {
        let cannot = |what: String| JobError::Topics(what);
        let Run::Corpus(run) = Run::from_toml(&file.info().config, registry)? else {
            let model = &file.info().model;
            return Err(cannot(format!(
                "the run uses the model {model}: only runs of the model {} have topics",
                LdaSettings::NAME
            )));
        };
        let settings = run.model;
        let Some(grid) = file.grid(VOCABULARY)? else {
            return Err(cannot(NOT_FINISHED.into()));
        };
        let words = grid.list("words").to_vec();
        let lengths = file.lengths(POSTERIOR)?;
        let draws = match lengths.get(chain) {
            Some(&draws) if draws > 0 => draws,
            _ => {
                let chains = lengths.iter().enumerate().filter(|(_, draws)| **draws > 0).map(|(chain, _)| chain.to_string());
                let chains = chains.collect::<Vec<_>>().join(", ");
                return Err(cannot(format!("there is no chain {chain} with draws. Chains with draws: {chains}")));
            }
        };
        let (size, topics) = (words.len() * settings.topics as usize, settings.topics as usize);
        let mut mean = Array1::<f32>::zeros(file.shape(POSTERIOR)?.2.iter().map(Part::size).sum::<usize>());
        for draw in 0..draws {
            mean.scaled_add(1.0 / draws as f32, &file.draws::<f32>(POSTERIOR, &[(chain, draw)])?.row(0));
        }
        if mean.len() != size && mean.len() != size + topics {
            return Err(cannot("its topics do not fit its words".into()));
        }
        let alphas: Vec<f64> = mean.iter().skip(size).map(|&alpha| f64::from(alpha)).collect();
        let phi = mean.slice_move(s![..size]).into_shape_with_order((words.len(), topics));
        let phi = phi.map_err(|_| cannot("its topics do not fit its words".into()))?;
        let alpha = match alphas.is_empty() {
            true => {
                let history = file.find_table(HISTORY)?.unwrap_or_default();
                let estimated = history.column("alpha").and_then(|alpha| alpha.last().copied());
                Alpha::Symmetric(estimated.unwrap_or(settings.alpha))
            }
            false => Alpha::Asymmetric(alphas),
        };
        // As many as words, which are u32.
        let all: Vec<u32> = (0..words.len() as u32).collect();
        let mut table = WordTable::new(words.len() as u32, topics);
        table.set_relative_alpha(alpha.relative(topics));
        table.fill(std::iter::once(Bag { words: &all, counts: &[] }), |word, out| {
            out.iter_mut().zip(phi.row(word as usize)).for_each(|(out, phi)| *out = *phi);
        });
        let corpus = run.data.map(|data| data.file).unwrap_or_default();
        Ok(Self { words, phi, corpus, draws, alpha, seed: Seed(run.settings.seed), table })
    }

    /// α of each topic, if the run has estimated them.
    pub fn alphas(&self) -> Option<&[f64]> {
        match &self.alpha {
            Alpha::Symmetric(_) => None,
            Alpha::Asymmetric(alphas) => Some(alphas),
        }
    }

    /// A hash of φ, α and the seed.
    pub fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(bytemuck::cast_slice(self.phi.as_standard_layout().as_slice().unwrap_or_default()));
        for alpha in self.alpha.of_topics(self.topics()) {
            hasher.update(&alpha.to_le_bytes());
        }
        hasher.update(&self.seed.0.to_le_bytes());
        hasher.finalize()
    }

    /// K.
    pub fn topics(&self) -> usize {
        self.phi.ncols()
    }

    /// The top words of a topic by their numbers, the most probable first.
    ///
    /// # Panics
    /// When there is no such topic.
    pub fn top_words(&self, topic: usize, count: usize) -> Vec<u32> {
        let phi = self.phi.column(topic);
        // As many as words, which are u32.
        let mut words: Vec<u32> = (0..self.words.len() as u32).collect();
        let count = count.min(words.len());
        let before = |a: &u32, b: &u32| phi[*b as usize].total_cmp(&phi[*a as usize]).then(a.cmp(b));
        if count > 0 && count < words.len() {
            words.select_nth_unstable_by(count - 1, before);
        }
        words.truncate(count);
        words.sort_unstable_by(before);
        words
    }

    /// The topic weights of documents, which have these numbers (D × K).
    pub fn weights(&self, documents: &Documents, first: u64) -> Array2<f64> {
        let topics = self.topics();
        let mut weights = Array2::zeros((documents.len(), topics));
        weights.axis_iter_mut(Axis(0)).into_par_iter().enumerate().for_each_init(
            || (DocumentGibbs::new(topics, self.alpha.mean()), vec![0.0; topics]),
            |(gibbs, weights), (document, mut row)| {
                let mut stream = self.seed.stream(Who::Run, first + document as u64, Purpose::Completion);
                gibbs.weights(documents.document(document), &self.table, SWEEPS, &mut stream, weights);
                row.iter_mut().zip(weights).for_each(|(row, weight)| *row = *weight);
            },
        );
        weights
    }

    /// The similarities of these topics (rows) and those of another run (columns), Σ_w √(p_w q_w) over the words that both have.
    ///
    /// # Errors
    /// When they have no word in common.
    pub fn similarities(&self, other: &Self) -> Result<Array2<f64>, JobError> {
        let numbers = numbers_among(&self.words, &other.words);
        let common: Vec<(usize, usize)> =
            numbers.iter().enumerate().filter_map(|(there, here)| Some((usize::try_from((*here)?).ok()?, there))).collect();
        if common.is_empty() {
            return Err(JobError::Topics("the runs have no word in common".into()));
        }
        let (here, there): (Vec<usize>, Vec<usize>) = common.into_iter().unzip();
        let roots = |phi: &Array2<f32>, words: &[usize]| phi.select(Axis(0), words).mapv_into(|phi| phi.max(0.0).sqrt());
        Ok(roots(&self.phi, &here).t().dot(&roots(&other.phi, &there)).mapv(f64::from))
    }

    /// The documents that a corpus holds, by the words of these topics.
    ///
    /// # Errors
    /// When it cannot be read, or has no word in common with the topics.
    pub fn adopt(&self, path: &Path) -> Result<Adopted, JobError> {
        let corpus = Corpus::open(path)?;
        let there = words(&corpus)?;
        let numbers = numbers_among(&self.words, &there);
        if numbers.iter().all(Option::is_none) {
            let what = format!("{}: it has no word in common with the topics", path.display());
            return Err(JobError::Topics(what));
        }
        Ok(Adopted { vocabulary: self.words.len() as u32, corpus, numbers })
    }
}

/// The numbers among `known` of the words that are `there`. Of a word that has several the first counts, unless the lists are the same.
fn numbers_among(known: &[String], there: &[String]) -> Vec<Option<u32>> {
    if known == there {
        // As many as words, which are u32.
        return (0..there.len() as u32).map(Some).collect();
    }
    let mut numbers: HashMap<&String, u32> = HashMap::with_capacity(known.len());
    for (number, word) in (0..).zip(known) {
        numbers.entry(word).or_insert(number);
    }
    there.iter().map(|word| numbers.get(word).copied()).collect()
}

/// Documents of another corpus, read with the words that topics have; other words are left out.
pub struct Adopted {
    corpus: Corpus,
    vocabulary: u32,
    numbers: Vec<Option<u32>>,
}

impl Adopted {
    /// The digest of the corpus.
    pub fn digest(&self) -> &str {
        self.corpus.digest()
    }

    /// How many documents a split has.
    pub fn documents(&self, split: Split) -> usize {
        self.corpus.documents(split)
    }

    /// Where documents stood in the input, from 0.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn numbers(&self, split: Split, documents: Range<usize>) -> Result<Vec<u64>, DataError> {
        self.corpus.numbers(split, documents)
    }

    /// Reads documents, those that are held out with all of their tokens.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(&self, split: Split, documents: Range<usize>) -> Result<Documents, DataError> {
        let mut read = Documents::new(self.vocabulary);
        for bag in self.corpus.whole(split, documents)?.iter() {
            let known =
                bag.words.iter().zip(bag.counts).filter_map(|(&word, &count)| Some((self.numbers[word as usize]?, count)));
            let mut known: Vec<(u32, u32)> = known.collect();
            known.sort_unstable();
            // A corpus of an older program may have a word under several numbers.
            known.dedup_by(|(word, count), (kept, sum)| {
                let same = word == kept;
                *sum += if same { *count } else { 0 };
                same
            });
            let (words, counts): (Vec<u32>, Vec<u32>) = known.into_iter().unzip();
            read.push(&words, &counts);
        }
        Ok(read)
    }
}
