//! `mpibayes import text` and `counts`: documents become the corpus that topic models read.

use super::args::{OutputArgs, share};
use crate::data::corpus::{
    BagFormat, Corpus, CorpusImport, CorpusReport, DEFAULT_SCORED, Input, StopWords, TestSize, Text, TextReport, Vocabulary,
    VocabularyReport, WordFilter, WordTotals, import_corpus,
};
use crate::data::{Format, Source, Split};
use crate::random::Seed;
use crate::text;
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};

/// The default of `--shortest`.
const DEFAULT_SHORTEST: u32 = 3;

/// Arguments of `mpibayes import counts`.
#[derive(Debug, clap::Args)]
pub struct CountsArgs {
    /// The word counts, plain or gzip
    pub file: PathBuf,
    /// The format of the file [default: detected in the content]
    #[arg(long, value_enum)]
    pub format: Option<CountsFormat>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// The words, one per line in the order of their numbers
    #[arg(long, value_name = "FILE")]
    pub vocabulary: Option<PathBuf>,
    #[command(flatten)]
    pub test: DocumentTestArgs,
}

/// Arguments of `mpibayes import text`.
#[derive(Debug, clap::Args)]
pub struct TextArgs {
    /// Files with one document per line, or folders with one document per file, plain or gzip
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub words: WordArgs,
    #[command(flatten)]
    pub test: DocumentTestArgs,
}

/// Which documents become test documents.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Test documents")]
pub struct DocumentTestArgs {
    /// This number of documents, drawn at random
    #[arg(long, value_name = "N", conflicts_with = "test_fraction")]
    pub test_documents: Option<u64>,
    /// This share of the documents, drawn at random
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub test_fraction: Option<f64>,
    /// The share of a test document's tokens to predict from the others [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub scored: Option<f64>,
    /// The seed of the order of documents, and of the choice of test documents and scored tokens [default: 1]
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Which words become the vocabulary.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Words")]
pub struct WordArgs {
    /// Use these words, one per line in the order of their numbers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["shortest", "stop_words", "least_documents", "most_share", "most_words"])]
    pub vocabulary: Option<PathBuf>,
    /// The fewest letters of a word [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shortest: Option<u32>,
    /// Leave out these words: `english`, or a file of words [default: none]
    #[arg(long, value_name = "FILE")]
    pub stop_words: Option<PathBuf>,
    /// Leave out words that occur in fewer documents [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub least_documents: Option<u64>,
    /// Leave out words that occur in a larger share of the documents [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share_or_all)]
    pub most_share: Option<f64>,
    /// Keep this number of words, the most frequent ones [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub most_words: Option<u32>,
}

/// A format of word counts on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CountsFormat {
    /// UCI bag of words: three sizes, then lines `document word count`
    Docword,
    /// Blei's lda-c: lines `n word:count ...`
    LdaC,
    /// A Matrix Market file of counts whose rows are documents
    MatrixMarket,
}

impl From<CountsFormat> for BagFormat {
    fn from(format: CountsFormat) -> Self {
        match format {
            CountsFormat::Docword => Self::Docword,
            CountsFormat::LdaC => Self::LdaC,
            CountsFormat::MatrixMarket => Self::MatrixMarket,
        }
    }
}

fn share_or_all(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("give a share above 0 and up to 1, such as 0.5".into()),
    }
}

impl CountsArgs {
    pub fn import(&self) -> anyhow::Result<String> {
        self.output.prepare([&self.file].into_iter().chain(&self.vocabulary).map(PathBuf::as_path))?;
        self.import_prepared()
    }

    /// Imports without checking the output: for callers of [`OutputArgs::prepare`].
    pub(super) fn import_prepared(&self) -> anyhow::Result<String> {
        let (file, detected) = (&self.file, detect(&self.file)?);
        let format = match (self.format.map(BagFormat::from), detected) {
            (Some(typed), Some(detected)) if typed != detected => {
                let (name, typed) = (detected.name(), typed.name());
                bail!(
                    "{}: this looks like {name}, not like {typed} as --format says: remove --format to import it as {name}",
                    file.display()
                )
            }
            (typed, detected) => typed.or(detected),
        };
        let Some(format) = format else {
            bail!(
                "{}: this looks like none of UCI bag of words, lda-c and Matrix Market: name the format with --format, or use \
                 `mpibayes import text` for text",
                file.display()
            );
        };
        let input = Input::Counted { documents: file.clone(), format, vocabulary: self.vocabulary.clone() };
        self.test.import(input, &self.output.output)
    }
}

impl TextArgs {
    /// The arguments of an import without further options.
    pub(super) fn with_defaults(files: Vec<PathBuf>, output: OutputArgs, test: DocumentTestArgs) -> Self {
        Self { files, output, words: WordArgs::default(), test }
    }

    pub fn import(&self) -> anyhow::Result<String> {
        let words = self.words.vocabulary.iter().chain(&self.words.stop_words);
        self.output.prepare(self.files.iter().chain(words).map(PathBuf::as_path))?;
        self.import_prepared()
    }

    /// Imports without checking the output: for callers of [`OutputArgs::prepare`].
    pub(super) fn import_prepared(&self) -> anyhow::Result<String> {
        let input = Input::Text(Text { inputs: self.files.clone(), vocabulary: self.words.vocabulary()? });
        self.test.import(input, &self.output.output)
    }
}

impl WordArgs {
    fn vocabulary(&self) -> anyhow::Result<Vocabulary> {
        if let Some(words) = &self.vocabulary {
            return Ok(Vocabulary::Given(words.clone()));
        }
        let default = WordFilter::default();
        let filter = WordFilter {
            stop_words: match &self.stop_words {
                None => StopWords::None,
                Some(file) if file.as_os_str() == "english" => StopWords::English,
                Some(file) => {
                    ensure!(
                        file.exists(),
                        "{}: there is no such file of stop words; the only built-in list is `english`",
                        file.display()
                    );
                    StopWords::File(file.clone())
                }
            },
            least_documents: self.least_documents.unwrap_or(default.least_documents),
            most_share: self.most_share.unwrap_or(default.most_share),
            most_words: self.most_words.unwrap_or(default.most_words),
        };
        Ok(Vocabulary::Chosen { shortest: self.shortest.unwrap_or(DEFAULT_SHORTEST) as usize, filter })
    }
}

impl DocumentTestArgs {
    fn import(&self, input: Input, output: &Path) -> anyhow::Result<String> {
        if self.scored.is_some() && self.test_documents.is_none() && self.test_fraction.is_none() {
            bail!("--scored needs test documents: give --test-documents N or --test-fraction SHARE");
        }
        let import = CorpusImport {
            input,
            held_out: match (self.test_documents, self.test_fraction) {
                (Some(number), _) => TestSize::Number(number),
                (None, Some(share)) => TestSize::Share(share),
                (None, None) => TestSize::Number(0),
            },
            scored_share: self.scored.unwrap_or(DEFAULT_SCORED),
            seed: Seed(self.seed.unwrap_or(1)),
        };
        let report = import_corpus(&import, output)?;
        describe(output, &import.input, &report)
    }
}

/// The format of word counts that a file has, by its content; none if it has none of them.
///
/// # Errors
/// When the file cannot be read.
pub fn detect(path: &Path) -> anyhow::Result<Option<BagFormat>> {
    if crate::data::detect(path)? != Format::Table {
        return Ok(None);
    }
    Ok(BagFormat::detect(path)?)
}

/// Refuses a table with hardly any numbers, which probably is text. The first of several lines may be a header, so it does not count.
///
/// # Errors
/// For such a file, and when it cannot be read.
pub fn must_have_numbers(path: &Path) -> anyhow::Result<()> {
    const LINES: usize = 100;
    // A table with one column of numbers and seven columns of single words has this share; blanks separate fields too. Prose has fewer numbers.
    const MIN_SHARE: f64 = 0.125;
    let lines = Source::first_lines(path, LINES)?;
    ensure!(!lines.iter().any(|line| line.contains(&0)), "{}: this is not text, and no format that is known", path.display());
    let body = if lines.len() > 1 { &lines[1..] } else { &lines[..] };
    let fields = body.iter().flat_map(|line| line.split(|byte| b" \t,;|\"\r".contains(byte)));
    let is_number = |field: &[u8]| std::str::from_utf8(field).is_ok_and(|field| field.parse::<f64>().is_ok());
    let (mut all, mut numbers) = (0.0, 0.0);
    for field in fields.filter(|field| !field.is_empty()) {
        all += 1.0;
        numbers += f64::from(u8::from(is_number(field)));
    }
    if numbers < MIN_SHARE * all {
        bail!(
            "{}: hardly any field is a number: use `mpibayes import text` if each line is a document, `mpibayes import table` if each is \
             a row",
            path.display()
        );
    }
    Ok(())
}

fn describe(path: &Path, input: &Input, report: &CorpusReport) -> anyhow::Result<String> {
    let corpus = Corpus::open(path)?;
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let size_of = |split| {
        let (documents, tokens) = (corpus.documents(split) as u64, corpus.tokens(split));
        format!("{}, {}", text::counted(documents, "document"), text::counted(tokens, "token"))
    };
    let without_names = if corpus.vocabulary()?.is_some() {
        ""
    } else {
        ", without names: give them with `mpibayes import counts --vocabulary FILE`"
    };
    let mut lines = vec![("task", "topics".to_owned())];
    if let (Input::Text(text), Some(text_report)) = (input, &report.text) {
        lines.extend(describe_text(text, text_report));
    }
    lines.push(("train", size_of(Split::Train)));
    lines.push(match corpus.documents(Split::Test) {
        0 => ("test", "none, so runs cannot evaluate topics: import again with --test-fraction SHARE".into()),
        _ => ("test", format!("{}, {} of them scored", size_of(Split::Test), text::count(report.scored_tokens))),
    });
    lines.push(("words", format!("{}{without_names}", text::count(corpus.words()))));
    if report.empty > 0 {
        lines.push(("left out", format!("{} without a word", text::counted(report.empty, "document"))));
    }
    lines.push(("digest", text::short_digest(corpus.digest()).to_owned()));
    let note = note_on_words(input, report).map_or_else(String::new, |note| format!("note: {note}\n"));
    Ok(format!("wrote {} ({})\n{}{note}", path.display(), text::bytes(size), text::pairs(&lines)))
}

/// A note if `--most-share` drops more distinct words than are kept.
fn note_on_words(input: &Input, report: &CorpusReport) -> Option<String> {
    let VocabularyReport::Chosen(chosen) = &report.text.as_ref()?.words else { return None };
    let Input::Text(Text { vocabulary: Vocabulary::Chosen { filter, .. }, .. }) = input else { return None };
    let (common, kept) = (chosen.common.words, chosen.kept.words);
    (common > kept).then(|| {
        let (common, kept, share) = (text::count(common), text::count(kept), filter.most_share);
        format!(
            "{common} words are left out by --most-share {share}, more than the {kept} that are kept: raise it (at most 1), unless they \
             are stop words"
        )
    })
}

/// What the text contains, and which of its words are left out.
fn describe_text(input: &Text, text_report: &TextReport) -> Vec<(&'static str, String)> {
    let documents = [(text_report.lines, "one per line"), (text_report.files - text_report.not_text, "one per file")];
    let documents = documents.iter().filter(|(number, _)| *number > 0);
    let documents: Vec<String> =
        documents.map(|(number, how)| format!("{}, {how}", text::counted(*number, "document"))).collect();
    let mut lines = vec![("text", documents.join("; "))];
    if let (1.., Some(first)) = (text_report.not_text, &text_report.first_not_text) {
        lines.push((
            "skipped",
            format!("{} without text; the first is {}", text::counted(text_report.not_text, "file"), first.display()),
        ));
    }
    if text_report.not_utf_8 > 0 {
        let what = "with bytes that are not UTF-8, read as Latin-1";
        lines.push(("Latin-1", format!("{} {what}", text::counted(text_report.not_utf_8, "document"))));
    }
    let in_words =
        |totals: WordTotals| format!("{}, {}", text::counted(totals.words, "word"), text::counted(totals.tokens, "token"));
    match (text_report.words, &input.vocabulary) {
        (VocabularyReport::Chosen(chosen), Vocabulary::Chosen { shortest, filter }) => {
            lines.push(("seen", format!("{}, of {shortest} letters or more", in_words(chosen.seen))));
            let least = text::count(filter.least_documents);
            for (dropped, why) in [
                (chosen.stop_words, "stop words".to_owned()),
                (chosen.rare, format!("in fewer than {least} documents (--least-documents)")),
                (chosen.common, format!("in more than {} of the documents (--most-share)", filter.most_share)),
                (chosen.over_limit, format!("beyond the {} most frequent (--most-words)", text::count(filter.most_words))),
            ] {
                if dropped.words > 0 {
                    lines.push(("dropped", format!("{}: {why}", in_words(dropped))));
                }
            }
            lines.push(("kept", in_words(chosen.kept)));
        }
        (VocabularyReport::Given { tokens, found: totals }, _) => {
            lines.push(("seen", text::counted(tokens, "token")));
            lines.push(("kept", format!("{} of the vocabulary", in_words(totals))));
        }
        _ => {}
    }
    lines
}
