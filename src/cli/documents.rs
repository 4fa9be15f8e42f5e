//! `mpibayes import` of documents: what turns counted words and text into the corpus that topic models read.

use crate::data::corpus::{
    BagFormat, Choice, Corpus, CorpusFound, CorpusImport, Input, Part, StopWords, Sum, Text, TextFound, Vocabulary, WordsFound,
    import_corpus,
};
use crate::data::{Format, Source, Split, detect};
use crate::random::Seed;
use crate::report::text;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// The fewest letters of a word.
const SHORTEST: u32 = 3;

/// What can be typed of documents after `mpibayes import`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Documents")]
pub struct DocumentArgs {
    /// The words of counted documents, one a line in the order of their numbers; or those that count in documents in text
    #[arg(long, value_name = "FILE", conflicts_with = "images")]
    pub vocabulary: Option<PathBuf>,
    /// Hold out so many documents, drawn at random
    #[arg(long, value_name = "N", conflicts_with_all = ["images", "test", "test_fraction", "test_rows"])]
    pub test_documents: Option<u64>,
    /// The share of a held-out document's tokens that is to be predicted from the others [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = super::import::share, conflicts_with = "images")]
    pub scored: Option<f64>,

    /// Of text.
    #[command(flatten)]
    pub text: TextArgs,
}

/// What can be typed of documents in text.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Documents in text")]
pub struct TextArgs {
    /// The fewest letters of a word [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shortest: Option<u32>,
    /// Words to leave out: `english`, or a file of them [default: none]
    #[arg(long, value_name = "FILE")]
    pub stop_words: Option<PathBuf>,
    /// Leave out words that occur in fewer documents [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub least_documents: Option<u64>,
    /// Leave out words that occur in a larger share of the documents [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = up_to_all)]
    pub most_share: Option<f64>,
    /// Keep so many words, those that occur most often [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub most_words: Option<u32>,
}

fn up_to_all(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("give a share above 0 and up to 1, such as 0.5".into()),
    }
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

impl TextArgs {
    /// Those that are given, each with what it is typed as.
    pub fn given(&self) -> [(bool, &'static str); 5] {
        [
            (self.shortest.is_some(), "--shortest"),
            (self.stop_words.is_some(), "--stop-words"),
            (self.least_documents.is_some(), "--least-documents"),
            (self.most_share.is_some(), "--most-share"),
            (self.most_words.is_some(), "--most-words"),
        ]
    }

    /// The words that count; `given` is a vocabulary.
    fn vocabulary(&self, given: Option<&Path>) -> anyhow::Result<Vocabulary> {
        if let Some(given) = given {
            if let Some((_, option)) = self.given().iter().find(|(given, _)| *given) {
                bail!("{option} is for words that are chosen from the text: --vocabulary says which words count");
            }
            return Ok(Vocabulary::Given(given.to_path_buf()));
        }
        let default = Choice::default();
        let choice = Choice {
            stop_words: match &self.stop_words {
                None => StopWords::None,
                Some(file) if file.as_os_str() == "english" => StopWords::English,
                Some(file) if !file.exists() => {
                    bail!(
                        "{}: there is no such file of stop words, and of lists of its own mpibayes has `english`",
                        file.display()
                    )
                }
                Some(file) => StopWords::File(file.clone()),
            },
            least_documents: self.least_documents.unwrap_or(default.least_documents),
            most_share: self.most_share.unwrap_or(default.most_share),
            most_words: self.most_words.unwrap_or(default.most_words),
        };
        Ok(Vocabulary::Chosen { shortest: self.shortest.unwrap_or(SHORTEST) as usize, choice })
    }
}

/// How documents are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// Words that are counted already.
    Counted(BagFormat),
    /// Text.
    Text,
}

/// How files hold documents: as is typed, or as the content of the only one shows; none for a file of rows. A folder is text.
///
/// # Errors
/// When the file cannot be read, or is not what is typed.
pub fn format(files: &[PathBuf], typed: Option<DocumentFormat>) -> anyhow::Result<Option<DocumentFormat>> {
    let typed = match (typed, files) {
        (Some(DocumentFormat::Text), _) => return Ok(Some(DocumentFormat::Text)),
        (None, folders) if folders.iter().all(|file| file.is_dir()) => return Ok(Some(DocumentFormat::Text)),
        (Some(DocumentFormat::Counted(typed)), _) => Some(typed),
        (None, _) => None,
    };
    let [file] = files else { return Ok(None) };
    if detect(file)? != Format::Table {
        return Ok(None);
    }
    let found = BagFormat::detect(file)?;
    match (typed, found) {
        (Some(typed), Some(found)) if typed != found => {
            bail!("{}: this looks like {}, not like {} as --format says", file.display(), found.name(), typed.name())
        }
        (typed, found) => Ok(typed.or(found).map(DocumentFormat::Counted)),
    }
}

/// Refuses a file for rows that looks like text: hardly a field is a number. The first line may be a header.
///
/// # Errors
/// For such a file, and when it cannot be read.
pub fn must_have_numbers(path: &Path) -> anyhow::Result<()> {
    const LINES: usize = 100;
    const LEAST_SHARE: f64 = 0.125;
    let lines = Source::first_lines(path, LINES)?;
    let body = if lines.len() > 1 { &lines[1..] } else { &lines[..] };
    let fields = body.iter().flat_map(|line| line.split(|byte| b" \t,;|\"\r".contains(byte)));
    let is_number = |field: &[u8]| std::str::from_utf8(field).is_ok_and(|field| field.parse::<f64>().is_ok());
    let (mut all, mut numbers) = (0.0, 0.0);
    for field in fields.filter(|field| !field.is_empty()) {
        all += 1.0;
        numbers += f64::from(u8::from(is_number(field)));
    }
    if numbers < LEAST_SHARE * all {
        let what = "hardly a field is a number: if each line is a document, say --format text; if these are rows, --format csv";
        bail!("{}: {what}", path.display());
    }
    Ok(())
}

/// Imports documents, and describes the corpus that was made, in lines for people.
///
/// # Errors
/// As those of [`import_corpus`].
pub fn import(
    files: &[PathBuf],
    format: DocumentFormat,
    args: &DocumentArgs,
    test_fraction: Option<f64>,
    seed: Option<u64>,
    output: &Path,
) -> anyhow::Result<String> {
    if args.scored.is_some() && args.test_documents.is_none() && test_fraction.is_none() {
        bail!("--scored is for documents that are held out: say how many with --test-documents N");
    }
    let input = match format {
        DocumentFormat::Counted(format) => {
            Input::Counted { documents: files.first().cloned().unwrap_or_default(), format, vocabulary: args.vocabulary.clone() }
        }
        DocumentFormat::Text => {
            Input::Text(Text { inputs: files.to_vec(), vocabulary: args.text.vocabulary(args.vocabulary.as_deref())? })
        }
    };
    let import = CorpusImport {
        input,
        held_out: match (args.test_documents, test_fraction) {
            (Some(number), _) => Part::Number(number),
            (None, Some(share)) => Part::Share(share),
            (None, None) => Part::Number(0),
        },
        scored: args.scored.unwrap_or(0.1),
        seed: Seed(seed.unwrap_or(1)),
    };
    let found = import_corpus(&import, output)?;
    describe(output, &import.input, &found)
}

fn describe(path: &Path, input: &Input, found: &CorpusFound) -> anyhow::Result<String> {
    let corpus = Corpus::open(path)?;
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let split = |split| {
        let (documents, tokens) = (corpus.documents(split) as u64, corpus.tokens(split));
        format!("{}, {}", text::counted(documents, "document"), text::counted(tokens, "token"))
    };
    let named = if corpus.vocabulary()?.is_some() { "" } else { ", which have numbers alone: give them with --vocabulary" };
    let mut lines = vec![("task", "topics".to_owned())];
    if let (Input::Text(text), Some(found)) = (input, &found.text) {
        lines.extend(describe_text(text, found));
    }
    lines.push(("train", split(Split::Train)));
    lines.push(match corpus.documents(Split::Test) {
        0 => ("test", "none: runs cannot judge topics; hold some out with --test-documents N".into()),
        _ => ("test", format!("{}, {} of them scored", split(Split::Test), text::count(found.scored))),
    });
    lines.push(("words", format!("{}{named}", text::count(u64::from(corpus.words())))));
    if found.empty > 0 {
        lines.push(("left out", format!("{} without a word", text::counted(found.empty, "document"))));
    }
    lines.push(("digest", text::short_digest(corpus.digest()).to_owned()));
    Ok(format!("wrote {} ({})\n{}", path.display(), text::bytes(size), text::pairs(&lines)))
}

/// What was read of a text, and what was left out of it.
fn describe_text(text: &Text, found: &TextFound) -> Vec<(&'static str, String)> {
    let documents = [(found.lines, "a line each"), (found.files - found.no_text, "a file each")];
    let documents = documents.iter().filter(|(number, _)| *number > 0);
    let documents: Vec<String> =
        documents.map(|(number, how)| format!("{}, {how}", text::counted(*number, "document"))).collect();
    let mut lines = vec![("text", documents.join("; "))];
    if let (1.., Some(first)) = (found.no_text, &found.first_no_text) {
        lines.push(("no text", format!("{}, left out; the first is {}", text::counted(found.no_text, "file"), first.display())));
    }
    if found.not_utf_8 > 0 {
        let what = "with bytes that are not UTF-8, taken for Latin-1";
        lines.push(("Latin-1", format!("{} {what}", text::counted(found.not_utf_8, "document"))));
    }
    let sum = |sum: Sum| format!("{}, {}", text::counted(sum.words, "word"), text::counted(sum.tokens, "token"));
    match (found.words, &text.vocabulary) {
        (WordsFound::Chosen(chosen), Vocabulary::Chosen { shortest, choice }) => {
            lines.push(("seen", format!("{}, of {shortest} letters or more", sum(chosen.seen))));
            let least = text::count(choice.least_documents);
            for (dropped, why) in [
                (chosen.stopped, "stop words".to_owned()),
                (chosen.rare, format!("in fewer than {least} documents (--least-documents)")),
                (chosen.common, format!("in more than {} of the documents (--most-share)", choice.most_share)),
                (chosen.beyond, format!("beyond the {} most frequent (--most-words)", text::count(choice.most_words))),
            ] {
                if dropped.words > 0 {
                    lines.push(("dropped", format!("{}: {why}", sum(dropped))));
                }
            }
            lines.push(("kept", sum(chosen.kept)));
        }
        (WordsFound::Given { tokens, found }, _) => {
            lines.push(("seen", text::counted(tokens, "token")));
            lines.push(("kept", format!("{} of the vocabulary", sum(found))));
        }
        _ => {}
    }
    lines
}
