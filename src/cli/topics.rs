//! `mpibayes topics`: the top words of a run's topics, their shares and coherence, a page for a browser, and arrays for other tools.

use super::output::print;
use super::output_file::{self, Content};
use crate::config::Registry;
use crate::job::topic_model::TopicModel;
use crate::partial::PartialFile;
use crate::report::RunResults;
use crate::report::topics::{DocumentGroups, Stability, TopicOptions, TopicReport, page, write_arrays};
use crate::text;
use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes topics runs/first
  mpibayes topics runs/first --words 20 --json | jq '.topics[0].words'
  mpibayes topics runs/first --html topics.html            # a map, words by relevance, top documents

  How the shares of the topics change over time, or differ between sources:
    mpibayes topics runs/first --by dates.csv --html topics.html

  Whether other seeds find the same topics:
    mpibayes topics runs/seed-1 --stability runs/seed-2 runs/seed-3

  The five arrays that pyLDAvis.prepare() takes, under its names:
    mpibayes topics runs/first --arrays topics.h5

  The topic weights of each document:
    mpibayes predict runs/first corpus.h5 --split train -o weights.csv";

/// Arguments of `mpibayes topics`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TopicsArgs {
    /// The folder of a finished run, or its result file
    pub run: PathBuf,
    /// Top words of each topic
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub words: u32,
    /// The chain: topics of different chains have no common order
    #[arg(long, value_name = "CHAIN", default_value_t = 0)]
    pub chain: usize,
    /// The corpus, if it is no longer where the run found it
    #[arg(long, value_name = "FILE.h5")]
    pub data: Option<PathBuf>,
    /// Use at most this many training documents for shares, coherence and top documents; 0 uses all
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub documents: usize,
    /// Shares of the topics in groups of documents: a CSV file with a header and a row for each imported document, in their order. Dates
    /// (2024-05-17) are grouped by days, months or years
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["stability", "arrays"])]
    pub by: Option<PathBuf>,
    /// The column of that file, if it has several
    #[arg(long, value_name = "NAME", requires = "by")]
    pub column: Option<String>,
    /// Match the topics one to one with those of the first chain of other runs, and print how similar they are
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["html", "arrays"])]
    pub stability: Vec<PathBuf>,
    /// Write a page for a browser: a map of the topics, their words by relevance, and their top documents
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["json", "arrays"])]
    pub html: Option<PathBuf>,
    /// Write topic_term_dists, doc_topic_dists, doc_lengths, vocab and term_frequency of all training documents to an HDF5 file
    #[arg(long, value_name = "FILE.h5", conflicts_with = "json")]
    pub arrays: Option<PathBuf>,
    /// Replace the file of --html or --arrays if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the topics, or writes the arrays.
///
/// # Errors
/// When there is no such run, it has no topics, or its corpus cannot be read.
pub fn run(args: &TopicsArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let results = RunResults::open(&args.run)?;
    let model = TopicModel::read(&results.file, args.chain, registry).with_context(|| format!("{}", results.path.display()))?;
    let data = args.data.clone().or_else(|| results.dataset().map(PathBuf::from)).context("the run has no data")?;
    let corpus = model.adopt(&data).context(match args.data {
        Some(_) => "cannot use the corpus that --data names",
        None => "cannot use the corpus of the run (if it was moved, say where it is with --data)",
    })?;
    let own = &results.file.info().data_digest;
    if corpus.digest() != own {
        eprintln!(
            "mpibayes: note: {} (digest {}) is not the corpus of the run (digest {}): shares and coherence are those of its documents",
            data.display(),
            text::short_digest(corpus.digest()),
            text::short_digest(own)
        );
    }
    let output = args.arrays.as_ref().or(args.html.as_ref());
    if let Some(output) = output {
        let content = if args.arrays.is_some() { Content::Hdf5 } else { Content::Text };
        output_file::check(output, content, args.force, [args.run.as_path(), &data].into_iter().chain(args.by.as_deref()))?;
    }
    if let Some(output) = &args.arrays {
        let size = write_arrays(&model, &corpus, output)?;
        eprintln!("mpibayes: wrote {}: {size}", output.display());
        return Ok(ExitCode::SUCCESS);
    }
    // Read before the documents, which take longer.
    let others = args.stability.iter().map(|run| {
        let results = RunResults::open(run)?;
        let other = TopicModel::read(&results.file, 0, registry).with_context(|| format!("{}", results.path.display()))?;
        Ok((run.display().to_string(), other))
    });
    let others = others.collect::<anyhow::Result<Vec<_>>>()?;
    let groups = args.by.as_ref().map(|path| DocumentGroups::read(path, args.column.as_deref())).transpose()?;
    if let Some(groups) = &groups {
        groups.check(&corpus)?;
    }
    let (words, groups) = (args.words as usize, groups.as_ref());
    let options = TopicOptions { chain: args.chain, words, documents: args.documents, groups };
    let report = TopicReport::new(&results.path, &model, &corpus, options)?;
    if !others.is_empty() {
        let stability = Stability::new(&report.topics, &model, others)?;
        print(&if args.json { serde_json::to_string_pretty(&stability)? + "\n" } else { stability.to_string() })?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(output) = &args.html {
        let place = || format!("{}: cannot write", output.display());
        let partial = PartialFile::new(output);
        std::fs::write(partial.path(), page(&report, &model)?).with_context(place)?;
        partial.commit().with_context(place)?;
        eprintln!("mpibayes: wrote {}: open it in a browser", output.display());
        return Ok(ExitCode::SUCCESS);
    }
    print(&if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() })?;
    Ok(ExitCode::SUCCESS)
}
