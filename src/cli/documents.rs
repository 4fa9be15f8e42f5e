//! `mpibayes import` of documents: what turns counted words into the corpus that topic models read.

use super::text;
use crate::data::corpus::{BagFormat, Corpus, CorpusImport, Part, import_corpus};
use crate::data::{Format, Split, detect};
use crate::random::Seed;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// What can be typed of documents after `mpibayes import`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Documents")]
pub struct DocumentArgs {
    /// The words of counted documents, one a line in the order of their numbers
    #[arg(long, value_name = "FILE", conflicts_with = "images")]
    pub vocabulary: Option<PathBuf>,
    /// Hold out so many documents, drawn at random
    #[arg(long, value_name = "N", conflicts_with_all = ["images", "test", "test_fraction", "test_rows"])]
    pub test_documents: Option<u64>,
    /// The share of a held-out document's tokens that is to be predicted from the others [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = super::import::share, conflicts_with = "images")]
    pub scored: Option<f64>,
}

impl DocumentArgs {
    /// Those that are given, each with what it is typed as.
    pub fn given(&self) -> [(bool, &'static str); 3] {
        [
            (self.vocabulary.is_some(), "--vocabulary"),
            (self.test_documents.is_some(), "--test-documents"),
            (self.scored.is_some(), "--scored"),
        ]
    }
}

/// How a file holds documents: as is typed, or as its content shows; none for a file of rows.
///
/// # Errors
/// When the file cannot be read, or is not what is typed.
pub fn format(path: &Path, typed: Option<BagFormat>) -> anyhow::Result<Option<BagFormat>> {
    if detect(path)? != Format::Table {
        return Ok(None);
    }
    let found = BagFormat::detect(path)?;
    match (typed, found) {
        (Some(typed), Some(found)) if typed != found => {
            bail!("{}: this looks like {}, not like {} as --format says", path.display(), found.name(), typed.name())
        }
        (typed, found) => Ok(typed.or(found)),
    }
}

/// Imports documents, and describes the corpus that was made, in lines for people.
///
/// # Errors
/// As those of [`import_corpus`].
pub fn import(
    documents: &Path,
    format: BagFormat,
    args: &DocumentArgs,
    test_fraction: Option<f64>,
    seed: Option<u64>,
    output: &Path,
) -> anyhow::Result<String> {
    if args.scored.is_some() && args.test_documents.is_none() && test_fraction.is_none() {
        bail!("--scored is for documents that are held out: say how many with --test-documents N");
    }
    let import = CorpusImport {
        documents: documents.to_path_buf(),
        format,
        vocabulary: args.vocabulary.clone(),
        held_out: match (args.test_documents, test_fraction) {
            (Some(number), _) => Part::Number(number),
            (None, Some(share)) => Part::Share(share),
            (None, None) => Part::Number(0),
        },
        scored: args.scored.unwrap_or(0.1),
        seed: Seed(seed.unwrap_or(1)),
    };
    let empty = import_corpus(&import, output)?;
    describe(output, empty)
}

fn describe(path: &Path, empty: u64) -> anyhow::Result<String> {
    let corpus = Corpus::open(path)?;
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let split = |split| {
        let (documents, tokens) = (corpus.documents(split) as u64, corpus.tokens(split));
        format!("{}, {}", text::counted(documents, "document"), text::counted(tokens, "token"))
    };
    let named = if corpus.vocabulary()?.is_some() { "" } else { ", which have numbers alone: give them with --vocabulary" };
    let mut lines = vec![("task", "topics".to_owned()), ("train", split(Split::Train))];
    lines.push(match corpus.documents(Split::Test) {
        0 => ("test", "none: runs cannot judge topics; hold some out with --test-documents N".into()),
        _ => ("test", split(Split::Test)),
    });
    lines.push(("words", format!("{}{named}", text::count(u64::from(corpus.words())))));
    if empty > 0 {
        lines.push(("left out", format!("{} without a word", text::counted(empty, "document"))));
    }
    lines.push(("digest", corpus.digest().chars().take(super::DIGEST_SHOWN).collect()));
    Ok(format!("wrote {} ({})\n{}", path.display(), text::bytes(size), text::pairs(&lines)))
}
