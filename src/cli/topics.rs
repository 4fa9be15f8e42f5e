//! `mpibayes topics`: the topics of a finished run by their top words, how coherent they are, and arrays for other tools.

use super::output::print;
use super::summary::find;
use crate::config::RunSpec;
use crate::config::topics::{Adopted, TopicModel};
use crate::data::Split;
use crate::lda::{Coherence, CoherenceCounts};
use crate::partial::PartialFile;
use crate::report::text;
use crate::results::{Grid, GridFile, RunFile};
use anyhow::{Context, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Documents are read in blocks of this many.
const BLOCK: usize = 4096;

const EXAMPLES: &str = "\
Examples:
  mpibayes topics runs/first
  mpibayes topics runs/first --words 20 --json | jq '.topics[0].words'

  The five arrays that pyLDAvis.prepare() takes, by its names:
    mpibayes topics runs/first --arrays topics.h5

  The topic weights of each document:
    mpibayes predict runs/first corpus.h5 --split train -o weights.csv";

/// What can be typed after `mpibayes topics`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TopicsArgs {
    /// The folder of a finished run, or its result file
    pub run: PathBuf,
    /// How many words of each topic
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub words: u32,
    /// The chain: topics of different chains have no common order
    #[arg(long, value_name = "CHAIN", default_value_t = 0)]
    pub chain: usize,
    /// The corpus, where it is no longer in the place that the run had it from
    #[arg(long, value_name = "FILE.h5")]
    pub data: Option<PathBuf>,
    /// Judge the topics on so many training documents at most; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub documents: usize,
    /// Write topic_term_dists, doc_topic_dists, doc_lengths, vocab and term_frequency of all training documents to an HDF5 file
    #[arg(long, value_name = "FILE.h5", conflicts_with = "json")]
    pub arrays: Option<PathBuf>,
    /// Replace that file if it exists
    #[arg(short, long, requires = "arrays")]
    pub force: bool,
    /// Write JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// The topics, for programs.
#[derive(Debug, Serialize)]
struct Report {
    run: PathBuf,
    chain: usize,
    draws: usize,
    /// The training documents that shares and coherences are those of.
    documents: usize,
    mean_umass: f64,
    mean_npmi: f64,
    topics: Vec<Topic>,
}

#[derive(Debug, Serialize)]
struct Topic {
    topic: usize,
    /// Of the tokens.
    share: f64,
    umass: f64,
    npmi: f64,
    words: Vec<String>,
    probabilities: Vec<f32>,
}

/// Shows the topics, or writes the arrays.
///
/// # Errors
/// When there is no such run, it has no topics, or its corpus cannot be read.
pub fn run(args: &TopicsArgs) -> anyhow::Result<ExitCode> {
    let path = find(&args.run)?;
    let file = RunFile::open(&path)?;
    let model = TopicModel::read(&file, args.chain).with_context(|| format!("{}", path.display()))?;
    let corpus = match &args.data {
        Some(data) => data.clone(),
        None => {
            let spec = RunSpec::from_toml(&file.info().config)?;
            spec.data.context("the run is on no data")?.file
        }
    };
    let documents = model.adopt(&corpus).context("the corpus of the run: name it with --data")?;
    if let Some(output) = &args.arrays {
        return arrays(&model, &documents, output, args.force);
    }
    let report = report(args, &path, &model, &documents)?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&describe(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(args: &TopicsArgs, path: &Path, model: &TopicModel, documents: &Adopted) -> anyhow::Result<Report> {
    let all = documents.documents(Split::Train);
    let judged = if args.documents == 0 { all } else { args.documents.min(all) };
    let top_words: Vec<Vec<u32>> = (0..model.topics()).map(|topic| model.top_words(topic, args.words as usize)).collect();
    let mut counts = CoherenceCounts::new(&top_words);
    let mut tokens = vec![0.0; model.topics()];
    for first in (0..judged).step_by(BLOCK) {
        let block = documents.read(Split::Train, first..(first + BLOCK).min(judged))?;
        block.iter().for_each(|bag| counts.add(bag));
        for (weights, bag) in model.weights(&block, first as u64).rows().into_iter().zip(block.iter()) {
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
        .map(|((topic, words), coherence)| Topic {
            topic,
            share: tokens[topic] / sum,
            umass: coherence.umass,
            npmi: coherence.npmi,
            words: words.iter().map(|&word| model.words[word as usize].clone()).collect(),
            probabilities: words.iter().map(|&word| model.phi[(word as usize, topic)]).collect(),
        })
        .collect();
    topics.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.topic.cmp(&b.topic)));
    let (run, chain, draws) = (path.to_owned(), args.chain, model.draws);
    Ok(Report { run, chain, draws, documents: judged, mean_umass, mean_npmi, topics })
}

/// A number with so many digits after the point; `-` for none, such as the coherence of one word.
fn decimals(value: f64, digits: usize) -> String {
    if value.is_nan() { "-".into() } else { format!("{value:.digits$}") }
}

/// The topics in lines for people, the largest first.
fn describe(report: &Report) -> String {
    let of = |cell: &dyn Fn(&Topic) -> String| report.topics.iter().map(cell).collect::<Vec<_>>();
    let mut shown = format!(
        "{}: {} of chain {}, the mean of {}; shares of the tokens and coherence in {}\n",
        report.run.display(),
        text::counted(report.topics.len(), "topic"),
        report.chain,
        text::counted(report.draws, "draw"),
        text::counted(report.documents, "training document"),
    );
    let columns = [
        ("topic".to_owned(), of(&|topic| topic.topic.to_string())),
        ("share".into(), of(&|topic| format!("{:.2} %", 100.0 * topic.share))),
        ("NPMI".into(), of(&|topic| decimals(topic.npmi, 3))),
        ("UMass".into(), of(&|topic| decimals(topic.umass, 2))),
    ];
    let table = text::table(&columns);
    let words = std::iter::once("words".to_owned()).chain(report.topics.iter().map(|topic| topic.words.join(", ")));
    for (line, words) in table.lines().zip(words) {
        shown.push_str(&format!("{line}  {words}\n"));
    }
    shown.push_str(&format!("mean NPMI {}, mean UMass {}\n", decimals(report.mean_npmi, 3), decimals(report.mean_umass, 2)));
    shown
}

/// The arrays that pyLDAvis takes, of all training documents.
fn arrays(model: &TopicModel, documents: &Adopted, output: &Path, force: bool) -> anyhow::Result<ExitCode> {
    ensure!(force || !output.exists(), "{}: this file exists; choose another name, or replace it with --force", output.display());
    let all = documents.documents(Split::Train);
    let (topics, words) = (model.topics(), model.words.len());
    let mut grid = Grid {
        group: String::new(),
        dimensions: vec![("topic".into(), topics), ("word".into(), words), ("document".into(), all)],
        variables: Vec::new(),
        names: vec![("vocab".into(), 1, model.words.clone())],
    };
    let partial = PartialFile::new(output);
    // The only array that may be too large for memory.
    let mut file = GridFile::create(partial.path(), &grid, "doc_topic_dists", [2, 0])?;
    let mut lengths = Vec::with_capacity(all);
    let mut frequency = vec![0.0; words];
    for first in (0..all).step_by(BLOCK) {
        let block = documents.read(Split::Train, first..(first + BLOCK).min(all))?;
        file.push(model.weights(&block, first as u64).view())?;
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
    partial.commit().with_context(|| format!("{}: cannot write", output.display()))?;
    eprintln!(
        "mpibayes: {} × {} and {} in {}",
        text::counted(topics, "topic"),
        text::counted(words, "word"),
        text::counted(all, "document"),
        output.display()
    );
    Ok(ExitCode::SUCCESS)
}
