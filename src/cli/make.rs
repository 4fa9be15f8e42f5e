//! `mpibayes data make`: generates synthetic data sets, tables as CSV and documents as datasets or UCI bag of words with their true topics.

use super::bar::{COUNT, progress_bar};
use super::output_file::{self, Content};
use crate::data::corpus::{Corpus, DEFAULT_SCORED, GeneratedSize, write_corpus, write_docword, write_topics};
use crate::data::{Generator, Split};
use crate::lda::{CorpusGenerator, CorpusGeneratorSettings};
use crate::methods::topics::EVALUATION_SWEEPS;
use crate::partial::PartialFile;
use crate::random::{Purpose, Seed, Who};
use crate::text;
use anyhow::{Context, anyhow, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Arguments of `mpibayes data make`.
#[derive(Debug, clap::Args)]
pub struct MakeArgs {
    /// The data set to generate
    #[arg(value_enum)]
    pub name: GeneratorName,
    /// The number of rows [default: that of the original data set]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: Option<u64>,
    /// The seed: the same seed generates the same file
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The file to write; compressed if its name ends in .gz. Documents become a dataset if it ends in .h5
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Replace the file if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Options for documents.
    #[command(flatten)]
    pub topics: TopicsArgs,
}

/// Options for synthetic documents.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Topics")]
pub struct TopicsArgs {
    /// The number of documents [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub documents: Option<u64>,
    /// The size of the vocabulary [default: 2000]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..))]
    pub words: Option<u32>,
    /// The number of topics [default: 20]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub topics: Option<u32>,
    /// The mean number of tokens of a document [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub tokens: Option<u32>,
    /// The parameter of the Dirichlet distribution of topics in a document: smaller values give fewer topics [default: 0.1]
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Test documents of a dataset [default: a tenth of the documents, at most 10,000]
    #[arg(long, value_name = "N")]
    pub test_documents: Option<u64>,
}

/// The standard deviation of the logarithm of a document's length: news and abstracts have about this one.
const LENGTH_SD: f64 = 0.6;
/// The similarity of topics: φ_k ~ Dir(100 · Zipf's law).
const CONCENTRATION: f64 = 100.0;
/// The most test documents of a dataset, unless a number is given: evaluations of more take long and tell little more.
const MAX_TEST_DOCUMENTS: u64 = 10_000;
/// The most probabilities of words in topics, 2 GiB of them.
const MAX_PROBABILITIES: u64 = 1 << 28;

impl TopicsArgs {
    /// Which options are given, with their names.
    fn given(&self) -> [(bool, &'static str); 6] {
        [
            (self.documents.is_some(), "--documents"),
            (self.words.is_some(), "--words"),
            (self.topics.is_some(), "--topics"),
            (self.tokens.is_some(), "--tokens"),
            (self.alpha.is_some(), "--alpha"),
            (self.test_documents.is_some(), "--test-documents"),
        ]
    }

    fn truth(&self, seed: Seed) -> anyhow::Result<CorpusGenerator> {
        let (vocabulary, topics) = (self.words.unwrap_or(2000), self.topics.unwrap_or(20));
        ensure!(
            u64::from(vocabulary) * u64::from(topics) <= MAX_PROBABILITIES,
            "{topics} topics of {vocabulary} words have more than {MAX_PROBABILITIES} probabilities: lower --topics or --words"
        );
        // The mean of a log-normal number with mean m and standard deviation s of its logarithm is exp(m + s²/2).
        let mean = f64::from(self.tokens.unwrap_or(100)).ln() - LENGTH_SD.powi(2) / 2.0;
        let alpha = self.alpha.unwrap_or(0.1);
        let settings =
            CorpusGeneratorSettings { vocabulary, topics, alpha, concentration: CONCENTRATION, log_length: (mean, LENGTH_SD) };
        CorpusGenerator::new(settings, seed).map_err(|what| anyhow!("--{what}"))
    }
}

/// A generator on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GeneratorName {
    /// Two normal classes in 20 dimensions; Bayes error 2.3 %
    Twonorm,
    /// Two normal classes in 20 dimensions, one inside the other; Bayes error 1.3 %
    Ringnorm,
    /// Three classes of mixed waves in 21 dimensions
    Waveform,
    /// A regression on 90 features with the size of YearPredictionMSD, but synthetic
    Year,
    /// Documents as a dataset or as UCI bag of words, with their true topics in a second file
    Topics,
}

impl GeneratorName {
    /// The generator of a table.
    fn of_rows(self) -> Option<Generator> {
        match self {
            Self::Twonorm => Some(Generator::Twonorm),
            Self::Ringnorm => Some(Generator::Ringnorm),
            Self::Waveform => Some(Generator::Waveform),
            Self::Year => Some(Generator::Year),
            Self::Topics => None,
        }
    }
}

/// Generates the data set and describes it, for people.
///
/// # Errors
/// When a file exists (unless `force`) or cannot be written, or options do not go together.
pub fn make(args: &MakeArgs) -> anyhow::Result<String> {
    match args.name.of_rows() {
        Some(generator) => {
            if let Some((_, option)) = args.topics.given().iter().find(|(given, _)| *given) {
                bail!("{option} is for documents (topics), and {} has rows: set their number with --rows", generator.name());
            }
            make_rows(args, generator)
        }
        None => {
            ensure!(args.rows.is_none(), "--rows is for tables, and topics has documents: set their number with --documents");
            make_topics(args)
        }
    }
}

fn make_rows(args: &MakeArgs, generator: Generator) -> anyhow::Result<String> {
    if is_hdf5(&args.output) {
        bail!("{}: {} is written as CSV: name a .csv file, and import it", args.output.display(), generator.name());
    }
    let output = &args.output;
    let rows = args.rows.unwrap_or_else(|| generator.rows());
    let size = written(args, output, |mut out| generator.write_csv(rows, Seed(args.seed), &mut out))?.0;
    let synthetic = if generator == Generator::Year { ", synthetic, with the size of YearPredictionMSD" } else { "" };
    let task = if generator == Generator::Year { " --task regression" } else { "" };
    Ok(format!(
        "wrote {} ({}): {} rows, {} features{synthetic}\nthen: mpibayes import {}{task} --test-fraction 0.2 -o datasets/{}{}.h5\n",
        output.display(),
        text::bytes(size),
        text::count(rows),
        generator.features(),
        output.display(),
        generator.name(),
        if generator == Generator::Year { "-synthetic" } else { "" }
    ))
}

fn make_topics(args: &MakeArgs) -> anyhow::Result<String> {
    let output = &args.output;
    let truth = args.topics.truth(Seed(args.seed))?;
    let documents = args.topics.documents.unwrap_or(20_000);
    let beside = beside(output);
    check(args, output)?;
    let is_dataset = is_hdf5(output);
    let test_documents = args.topics.test_documents;
    ensure!(
        is_dataset || test_documents.is_none(),
        "--test-documents is for datasets (-o FILE.h5): `mpibayes import` has this option for {}",
        output.display()
    );
    check(args, &beside)?;
    let ((size, GeneratedSize { entries, tokens }), perplexity, then) = if is_dataset {
        let held_out = test_documents.unwrap_or((documents / 10).min(MAX_TEST_DOCUMENTS));
        ensure!(held_out < documents, "--test-documents {held_out} of {documents} documents leave none to learn from");
        make_folder_of(output)?;
        let bar = progress_bar("documents", COUNT);
        bar.set_length(documents);
        let made = write_corpus(&truth, documents, (held_out, DEFAULT_SCORED), Seed(args.seed), output, |written| {
            bar.set_position(written)
        });
        bar.finish_and_clear();
        let then = format!("then: mpibayes init --data {} -o topics.toml", output.display());
        let made = made?;
        let perplexity = if held_out > 0 { describe_perplexity(&truth, output, Seed(args.seed))? } else { String::new() };
        ((length(output)?, made), perplexity, then)
    } else {
        let made = written(args, output, |mut out| write_docword(&truth, documents, &mut out))?;
        (made, String::new(), format!("then: mpibayes import {} --test-fraction 0.1 -o datasets/topics.h5", output.display()))
    };
    let (size_of_topics, ()) = written(args, &beside, |mut out| write_topics(&truth, &mut out))?;
    Ok(format!(
        "wrote {} ({}): {}, {} words, {} entries, {}\n\
         wrote {} ({}): their true topics, float64 {} × {}, a topic in each row\n\
         {perplexity}{then}\n",
        output.display(),
        text::bytes(size),
        text::counted(documents, "document"),
        text::count(truth.vocabulary()),
        text::count(entries),
        text::counted(tokens, "token"),
        beside.display(),
        text::bytes(size_of_topics),
        truth.topics(),
        truth.vocabulary(),
    ))
}

/// The perplexity of the true topics for the test documents of a corpus, as a line.
fn describe_perplexity(truth: &CorpusGenerator, corpus: &Path, seed: Seed) -> anyhow::Result<String> {
    let corpus = Corpus::open(corpus)?;
    let held_out = corpus.held_out(0..corpus.documents(Split::Test))?;
    let stream = |document| seed.stream(Who::Server, document, Purpose::Completion);
    let perplexity = held_out.perplexity(&truth.phi::<f32>(), truth.alpha(), EVALUATION_SWEEPS, stream);
    Ok(format!(
        "the true topics have a perplexity of {} on the test documents: no method can be much better\n",
        text::value(perplexity)
    ))
}

/// Where the topics of documents go: `topics.phi.npy` beside `topics.docword.txt.gz`.
fn beside(output: &Path) -> PathBuf {
    let mut stem = output.to_path_buf();
    for ending in ["gz", "txt", "docword", "h5"] {
        if stem.extension().is_some_and(|extension| extension == ending) {
            stem.set_extension("");
        }
    }
    let mut name = stem.into_os_string();
    name.push(".phi.npy");
    name.into()
}

/// Whether a file is HDF5, by its name.
fn is_hdf5(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "h5")
}

/// Refuses to replace an existing file without `--force`.
fn check(args: &MakeArgs, output: &Path) -> anyhow::Result<()> {
    output_file::check(output, if is_hdf5(output) { Content::Hdf5 } else { Content::Text }, args.force, [])
}

/// Writes a file, which appears whole or not at all, compressed if its name says so; its size, and what `write` gives.
fn written<T>(
    args: &MakeArgs,
    output: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<T>,
) -> anyhow::Result<(u64, T)> {
    check(args, output)?;
    make_folder_of(output)?;
    let partial = PartialFile::new(output);
    let compressed = output.extension().is_some_and(|extension| extension == "gz");
    let written = to_file(partial.path(), compressed, write).and_then(|made| partial.commit().map(|()| made));
    let made = written.with_context(|| format!("{}: cannot write", output.display()))?;
    Ok((length(output)?, made))
}

fn make_folder_of(output: &Path) -> anyhow::Result<()> {
    let Some(folder) = output.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create this folder", folder.display()))
}

/// The bytes of a file.
fn length(file: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(file).with_context(|| file.display().to_string())?.len())
}

fn to_file<T>(path: &Path, compressed: bool, write: impl FnOnce(&mut dyn Write) -> std::io::Result<T>) -> std::io::Result<T> {
    let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
    let made = if compressed {
        // The encoder takes large pieces faster than small ones.
        let mut gzip = BufWriter::with_capacity(1 << 16, GzEncoder::new(&mut out, Compression::default()));
        let made = write(&mut gzip)?;
        gzip.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
        made
    } else {
        write(&mut out)?
    };
    out.flush()?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_lie_beside_their_documents() {
        for (output, topics) in [
            ("a/topics.docword.txt.gz", "a/topics.phi.npy"),
            ("docword.kos.txt", "docword.kos.phi.npy"),
            ("docword.txt.gz", "docword.phi.npy"),
            ("x", "x.phi.npy"),
            ("a/x.h5", "a/x.phi.npy"),
        ] {
            assert_eq!(beside(Path::new(output)), Path::new(topics));
        }
    }
}
