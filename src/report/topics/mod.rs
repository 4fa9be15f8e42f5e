//! The topics of a run: top words and documents, shares of the tokens and coherence, and the arrays that pyLDAvis takes.

mod groups;
mod map;
mod page;
mod stability;

pub use groups::{DocumentGroups, GroupSizes};
pub use page::page;
pub use stability::{Match, MatchedTopic, Stability};

use super::error::{ReportError, Result};
use crate::data::Split;
use crate::job::topic_model::{Adopted, TopicModel};
use crate::lda::{Bag, Coherence, CoherenceCounts};
use crate::partial::PartialFile;
use crate::results::{Grid, GridFile};
use crate::text;
use groups::GroupTokens;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Documents that are read at a time.
const BLOCK: usize = 4096;
/// Documents that are named of a topic.
const TOP_DOCUMENTS: usize = 5;
/// Words that are named of a document.
const WORDS_OF_DOCUMENT: usize = 10;

/// The topics of one chain of a run.
#[derive(Debug, Serialize)]
pub struct TopicReport {
    /// The result file.
    pub run: PathBuf,
    /// The chain.
    pub chain: usize,
    /// The number of draws that are averaged.
    pub draws: usize,
    /// The number of training documents for shares, coherence and top documents.
    pub documents: usize,
    /// The number of their tokens.
    pub tokens: f64,
    /// Mean coherence by UMass.
    pub mean_umass: f64,
    /// Mean coherence by normalized pointwise mutual information.
    pub mean_npmi: f64,
    /// The groups of these documents, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupSizes>,
    /// The topics, the largest first.
    pub topics: Vec<Topic>,
}

/// A topic.
#[derive(Debug, Serialize)]
pub struct Topic {
    /// Its index.
    pub topic: usize,
    /// Its share of all tokens.
    pub share: f64,
    /// Its share of the tokens of each group of documents, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub share_of_groups: Vec<f64>,
    /// Its α, if the run has estimated one for each topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Its coherence by UMass.
    pub umass: f64,
    /// Its coherence by normalized pointwise mutual information.
    pub npmi: f64,
    /// Its top words, the most probable first.
    pub words: Vec<String>,
    /// The probabilities of these words.
    pub probabilities: Vec<f32>,
    /// The documents with the largest weights of the topic.
    pub documents: Vec<TopDocument>,
}

/// A document with a large weight of a topic.
#[derive(Debug, Serialize)]
pub struct TopDocument {
    /// Its number in the imported files, from 0.
    pub document: u64,
    /// The weight of the topic in it.
    pub weight: f64,
    /// The number of its tokens.
    pub tokens: u64,
    /// Its most frequent words.
    pub words: Vec<String>,
}

/// The documents with the largest weights of each topic, the largest first.
struct TopDocuments<'a> {
    model: &'a TopicModel,
    of_topics: Vec<Vec<TopDocument>>,
}

impl TopDocuments<'_> {
    /// Adds a document with its number and the weights of topics.
    fn add(&mut self, bag: Bag<'_>, document: u64, weights: impl IntoIterator<Item = f64>) {
        for (found, weight) in self.of_topics.iter_mut().zip(weights) {
            let place = found.partition_point(|other| other.weight >= weight);
            if place < TOP_DOCUMENTS {
                found.truncate(TOP_DOCUMENTS - 1);
                found.insert(
                    place,
                    TopDocument { document, weight, tokens: bag.tokens(), words: frequent_words(self.model, bag) },
                );
            }
        }
    }
}

/// The most frequent words of a document.
fn frequent_words(model: &TopicModel, bag: Bag<'_>) -> Vec<String> {
    let mut words: Vec<(u32, u32)> = bag.words.iter().copied().zip(bag.counts.iter().copied()).collect();
    words.sort_by_key(|&(word, count)| (std::cmp::Reverse(count), word));
    words.iter().take(WORDS_OF_DOCUMENT).map(|&(word, _)| model.words[word as usize].clone()).collect()
}

/// What a report of topics covers.
#[derive(Clone, Copy, Debug)]
pub struct TopicOptions<'a> {
    /// The chain: topics of different chains have no common order.
    pub chain: usize,
    /// Top words of each topic.
    pub words: usize,
    /// The most training documents to use for shares, coherence and top documents; 0 for all.
    pub documents: usize,
    /// Groups of documents to report shares of.
    pub groups: Option<&'a DocumentGroups>,
}

impl TopicReport {
    /// Computes shares and coherence of the topics of a run.
    ///
    /// # Errors
    /// When the documents cannot be read, or one has no row in the table of groups.
    pub fn new(run: &Path, model: &TopicModel, corpus: &Adopted, options: TopicOptions<'_>) -> Result<Self> {
        let all = corpus.documents(Split::Train);
        let documents = if options.documents == 0 { all } else { options.documents.min(all) };
        let top_words: Vec<Vec<u32>> = (0..model.topics()).map(|topic| model.top_words(topic, options.words)).collect();
        let mut counts = CoherenceCounts::new(&top_words);
        let mut tokens = vec![0.0; model.topics()];
        let mut of_groups = options.groups.map(|groups| GroupTokens::new(groups, model.topics()));
        let mut found = TopDocuments { model, of_topics: (0..model.topics()).map(|_| Vec::new()).collect() };
        for first in (0..documents).step_by(BLOCK) {
            let range = first..(first + BLOCK).min(documents);
            let (block, numbers) = (corpus.read(Split::Train, range.clone())?, corpus.numbers(Split::Train, range)?);
            block.iter().for_each(|bag| counts.add(bag));
            for ((weights, bag), number) in model.weights(&block, first as u64).rows().into_iter().zip(block.iter()).zip(numbers)
            {
                found.add(bag, number, weights.iter().copied());
                if let Some(of_groups) = &mut of_groups {
                    of_groups.add(number, bag.tokens() as f64, weights.iter().copied())?;
                }
                tokens.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * bag.tokens() as f64);
            }
        }
        let sum: f64 = tokens.iter().sum();
        let coherences = counts.finish();
        let mean = |of: fn(&Coherence) -> f64| coherences.iter().map(of).sum::<f64>() / coherences.len() as f64;
        let (mean_umass, mean_npmi) = (mean(|of| of.umass), mean(|of| of.npmi));
        let mut topics: Vec<Topic> = top_words
            .iter()
            .enumerate()
            .zip(&coherences)
            .zip(found.of_topics)
            .map(|(((topic, words), coherence), documents)| Topic {
                topic,
                share: tokens[topic] / sum,
                share_of_groups: of_groups.as_ref().map(|groups| groups.shares(topic)).unwrap_or_default(),
                alpha: model.alphas().map(|alphas| alphas[topic]),
                umass: coherence.umass,
                npmi: coherence.npmi,
                words: words.iter().map(|&word| model.words[word as usize].clone()).collect(),
                probabilities: words.iter().map(|&word| model.phi[(word as usize, topic)]).collect(),
                documents,
            })
            .collect();
        topics.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.topic.cmp(&b.topic)));
        let (run, chain, draws) = (run.to_owned(), options.chain, model.draws);
        let groups = of_groups.map(GroupTokens::into_sizes);
        Ok(Self { run, chain, draws, documents, tokens: sum, mean_umass, mean_npmi, groups, topics })
    }
}

/// A number with this many decimals; `-` for NaN, such as the coherence of a single word.
fn decimals(value: f64, decimals: usize) -> String {
    if value.is_nan() { "-".into() } else { format!("{value:.decimals$}") }
}

/// Writes a table of topics with their top words at the end of each line.
fn write_with_words<'a>(
    f: &mut std::fmt::Formatter<'_>,
    columns: &[(String, Vec<String>)],
    words: impl Iterator<Item = &'a [String]>,
) -> std::fmt::Result {
    let words = std::iter::once("top words".to_owned()).chain(words.map(|words| words.join(", ")));
    text::table(columns).lines().zip(words).try_for_each(|(line, words)| writeln!(f, "{line}  {words}"))
}

impl std::fmt::Display for TopicReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{}: {} of chain {}, averaged over {}; token share and coherence on {}",
            self.run.display(),
            text::counted(self.topics.len(), "topic"),
            self.chain,
            text::counted(self.draws, "draw"),
            text::counted(self.documents, "training document"),
        )?;
        if let Some(groups) = &self.groups {
            writeln!(f, "{groups}")?;
        }
        let cells = |cell: &dyn Fn(&Topic) -> String| self.topics.iter().map(cell).collect::<Vec<_>>();
        let mut columns = vec![
            ("topic".to_owned(), cells(&|topic| topic.topic.to_string())),
            ("share".into(), cells(&|topic| format!("{:.2} %", 100.0 * topic.share))),
            ("NPMI".into(), cells(&|topic| decimals(topic.npmi, 3))),
            ("UMass".into(), cells(&|topic| decimals(topic.umass, 2))),
        ];
        if self.topics.iter().any(|topic| topic.alpha.is_some()) {
            columns.push(("alpha".into(), cells(&|topic| topic.alpha.map_or_else(|| "-".into(), text::value))));
        }
        if let Some(groups) = &self.groups {
            let shares: Vec<&[f64]> = self.topics.iter().map(|topic| &topic.share_of_groups[..]).collect();
            columns.extend(groups::columns(groups, &shares));
        }
        write_with_words(f, &columns, self.topics.iter().map(|topic| &topic.words[..]))?;
        writeln!(f, "mean NPMI {}, mean UMass {}", decimals(self.mean_npmi, 3), decimals(self.mean_umass, 2))
    }
}

/// Writes the arrays that pyLDAvis takes, for all training documents, and returns their size in words.
///
/// # Errors
/// When the documents cannot be read, or the file cannot be written.
pub fn write_arrays(model: &TopicModel, corpus: &Adopted, output: &Path) -> Result<String> {
    let all = corpus.documents(Split::Train);
    let (topics, words) = (model.topics(), model.words.len());
    let mut grid = Grid {
        group: String::new(),
        dimensions: vec![("topic".into(), topics), ("word".into(), words), ("document".into(), all)],
        variables: Vec::new(),
        names: vec![("vocab".into(), 1, model.words.clone())],
    };
    let partial = PartialFile::new(output);
    // This is the only array that may be too large for memory.
    let mut file = GridFile::create(partial.path(), &grid, "doc_topic_dists", &[2, 0])?;
    let mut lengths = Vec::with_capacity(all);
    let mut frequency = vec![0.0; words];
    for first in (0..all).step_by(BLOCK) {
        let block = corpus.read(Split::Train, first..(first + BLOCK).min(all))?;
        file.write(&[first, 0], model.weights(&block, first as u64).view().into_dyn())?;
        for bag in block.iter() {
            lengths.push(bag.tokens() as f64);
            bag.words.iter().zip(bag.counts).for_each(|(&word, &count)| frequency[word as usize] += f64::from(count));
        }
    }
    grid.variables = vec![
        ("topic_term_dists".into(), vec![0, 1], model.phi.t().iter().map(|&phi| f64::from(phi)).collect()),
        ("doc_lengths".into(), vec![2], lengths),
        ("term_frequency".into(), vec![1], frequency),
    ];
    file.finish(&grid)?;
    partial.commit().map_err(ReportError::write(output))?;
    let [topics, words, all] = [(topics, "topic"), (words, "word"), (all, "document")].map(|(n, noun)| text::counted(n, noun));
    Ok(format!("{topics}, {words}, {all}"))
}
