//! `mpibayes topics`: the top words of a run's topics, their shares and coherence, and arrays for other tools.

use super::output::print;
use crate::config::Registry;
use crate::job::topic_model::TopicModel;
use crate::report::RunResults;
use crate::report::topics::{TopicOptions, TopicReport, write_arrays};
use crate::text;
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  mpibayes topics runs/first
  mpibayes topics runs/first --words 20 --json | jq '.topics[0].words'

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
    /// The most training documents to use for shares and coherence; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub documents: usize,
    /// Write topic_term_dists, doc_topic_dists, doc_lengths, vocab and term_frequency of all training documents to an HDF5 file
    #[arg(long, value_name = "FILE.h5", conflicts_with = "json")]
    pub arrays: Option<PathBuf>,
    /// Replace that file if it exists
    #[arg(short, long, requires = "arrays")]
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
    let corpus = model.adopt(&data).context("cannot use the corpus of the run; --data names another place")?;
    let own = &results.file.info().data_digest;
    if corpus.digest() != own {
        eprintln!(
            "mpibayes: note: {} (digest {}) is not the corpus of the run (digest {}): shares and coherence are those of its documents",
            data.display(),
            text::short_digest(corpus.digest()),
            text::short_digest(own)
        );
    }
    if let Some(output) = &args.arrays {
        let file = output.display();
        ensure!(args.force || !output.exists(), "{file}: this file exists; choose another name, or replace it with --force");
        let size = write_arrays(&model, &corpus, output)?;
        eprintln!("mpibayes: wrote {file}: {size}");
        return Ok(ExitCode::SUCCESS);
    }
    let options = TopicOptions { chain: args.chain, words: args.words as usize, documents: args.documents };
    let report = TopicReport::new(&results.path, &model, &corpus, options)?;
    print(&if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() })?;
    Ok(ExitCode::SUCCESS)
}
