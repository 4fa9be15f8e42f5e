//! Import of documents: counted, put in random order, a part of them held out, and written as a corpus.

use super::bags::{BagFormat, CorpusSize, DocumentSink};
use super::limits::VERSION;
use super::shuffle::{Shuffle, Shuffled};
use super::text::{Text, TextReport, Vocabulary};
use super::vocabulary::read_vocabulary;
use crate::data::dataset::growing::GrowingList;
use crate::data::dataset::layout::FORMAT;
use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::TOPICS;
use crate::data::dataset::write::{ContentDigest, create};
use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use crate::data::readers::source::{Source, file_name};
use crate::lda::draw_scored_tokens;
use crate::random::{Purpose, Seed, Who};
use std::path::{Path, PathBuf};

/// What documents to import, and how.
#[derive(Clone, Debug)]
pub struct CorpusImport {
    /// The documents.
    pub input: Input,
    /// Which part of the documents is held out.
    pub held_out: TestDocuments,
    /// The share of a held-out document's tokens that is to be predicted.
    pub scored: f64,
    /// Of the order of documents, of which the first are held out, and of the tokens that are to be predicted.
    pub seed: Seed,
}

/// Where documents are, and how they are written.
#[derive(Clone, Debug)]
pub enum Input {
    /// Words that are counted already.
    Counted {
        /// The documents, plain or gzip.
        documents: PathBuf,
        /// How they are written.
        format: BagFormat,
        /// Their words, one a line, plain or gzip.
        vocabulary: Option<PathBuf>,
    },
    /// Text.
    Text(Text),
}

impl Input {
    /// Hands over each document that has words; the words, and how many documents and words there are.
    fn read(&self, each: &mut DocumentSink) -> Result<(Option<Vec<String>>, CorpusSize, Option<TextReport>)> {
        match self {
            Self::Counted { documents, format, vocabulary } => {
                let words = vocabulary.as_deref().map(read_vocabulary).transpose()?;
                let most = words.as_ref().map(|words| words.len() as u32);
                let sizes = format.read(Source::open(documents)?, most, each)?;
                Ok((words, sizes, None))
            }
            Self::Text(text) => {
                let (words, found) = text.read(each)?;
                let sizes = CorpusSize { documents: found.documents(), words: words.len() as u32 };
                Ok((Some(words), sizes, Some(found)))
            }
        }
    }

    /// The file of documents, or the first of several.
    fn first(&self) -> &Path {
        match self {
            Self::Counted { documents, .. } => documents,
            Self::Text(text) => text.inputs.first().map_or(Path::new(""), PathBuf::as_path),
        }
    }

    /// What is read, for people.
    fn source(&self) -> String {
        const SHOWN: usize = 3;
        let (documents, vocabulary, rule) = match self {
            Self::Counted { documents, vocabulary, .. } => (std::slice::from_ref(documents), vocabulary.as_ref(), String::new()),
            Self::Text(text) => {
                let vocabulary = match &text.vocabulary {
                    Vocabulary::Given(path) => Some(path),
                    Vocabulary::Chosen { .. } => None,
                };
                (text.inputs.as_slice(), vocabulary, format!(" {}", text.rule()))
            }
        };
        let mut files: Vec<String> = documents.iter().take(SHOWN).map(|path| file_name(path)).collect();
        if documents.len() > SHOWN {
            files.push(format!("{} more", documents.len() - SHOWN));
        }
        files.extend(vocabulary.map(|path| file_name(path)));
        format!("{}{rule}", files.join(", "))
    }
}

/// What an import found, beside what is in the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorpusReport {
    /// Documents that had no words and were left out.
    pub empty: u64,
    /// Tokens of the documents that are held out which are to be predicted.
    pub scored: u64,
    /// Of text.
    pub text: Option<TextReport>,
}

/// A part of the documents that have words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TestDocuments {
    /// So many.
    Number(u64),
    /// This share of them, rounded.
    Share(f64),
}

impl TestDocuments {
    fn of(self, documents: u64) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Share(share) => (share * documents as f64).round() as u64,
        }
    }
}

/// Imports documents into the corpus `output`; gives what it left out.
///
/// # Errors
/// When a file cannot be read or is not what it should be, there are too few documents, or the corpus cannot be written. Nothing half
/// written stays.
pub fn import_corpus(import: &CorpusImport, output: &Path) -> Result<CorpusReport> {
    let CorpusImport { input, held_out: part, scored, seed } = import;
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut shuffle = Shuffle::new(folder, *seed)?;
    let mut sorted = Sorted::default();
    let (words, CorpusSize { documents: all, words: size }, text) = input.read(&mut |number, entries| {
        sorted.take(entries);
        shuffle.push(number, &sorted.words, &sorted.counts)
    })?;
    let filled = shuffle.documents();
    let held_out = part.of(filled);
    if held_out == 0 && *part != TestDocuments::Number(0) {
        let what = format!("a share of {filled} documents that is none: hold out more of them");
        return Err(DataError::content(input.first(), Place::File, what));
    }
    if held_out >= filled {
        let what = match filled {
            0 => "no document has a word".to_owned(),
            _ => format!("{held_out} documents to hold out, of {filled} with words: leave some to learn from"),
        };
        return Err(DataError::content(input.first(), Place::File, what));
    }
    let mut writer = Writer::new(output)?;
    let (mut place, mut all_scored) = (0, 0);
    shuffle.finish(|document| {
        place += 1;
        if place > held_out {
            return writer.push(Split::Train, &document, &[]);
        }
        let mut stream = seed.stream(Who::Run, document.number, Purpose::HeldOut);
        let scored = draw_scored_tokens(&document.counts, *scored, &mut stream);
        all_scored += scored.iter().map(|&count| u64::from(count)).sum::<u64>();
        writer.push(Split::Test, &document, &scored)
    })?;
    if held_out > 0 && all_scored == 0 {
        let what = format!(
            "of the {held_out} documents to hold out no token would be scored, so that there is nothing to judge topics by: hold out \
             more documents, or score a larger share than {scored} of their tokens"
        );
        return Err(DataError::content(input.first(), Place::File, what));
    }
    let source = match held_out {
        0 => format!("{} in random order by seed {}", input.source(), seed.0),
        _ => format!(
            "{} in random order by seed {}, {scored} of the tokens of {held_out} documents scored",
            input.source(),
            seed.0
        ),
    };
    writer.finish(size, words.as_deref(), &source)?;
    Ok(CorpusReport { empty: all - filled, scored: all_scored, text })
}

/// The entries of a document in ascending order, each word once.
#[derive(Default)]
struct Sorted {
    words: Vec<u32>,
    counts: Vec<u32>,
}

impl Sorted {
    fn take(&mut self, entries: &mut [(u32, u32)]) {
        entries.sort_unstable_by_key(|&(word, _)| word);
        self.words.clear();
        self.counts.clear();
        for &(word, count) in entries.iter() {
            match self.counts.last_mut() {
                // No more than the tokens of a document.
                Some(sum) if self.words.last() == Some(&word) => *sum += count,
                _ => {
                    self.words.push(word);
                    self.counts.push(count);
                }
            }
        }
    }
}

/// A corpus under construction.
struct Writer {
    // Before `partial`: fields are dropped in order, and the file is closed before it is removed.
    splits: [Option<Lists>; 2],
    file: hdf5::File,
    partial: crate::partial::PartialFile,
    path: PathBuf,
}

/// The documents of a split on their way into the file.
struct Lists {
    group: hdf5::Group,
    starts: GrowingList<u64>,
    words: GrowingList<u32>,
    counts: GrowingList<u32>,
    scored: Option<GrowingList<u32>>,
    numbers: GrowingList<u64>,
    entries: u64,
    tokens: u64,
    digest: blake3::Hasher,
}

impl Lists {
    fn new(file: &hdf5::File, split: Split) -> hdf5::Result<Self> {
        let group = file.create_group(split.name())?;
        let mut starts = GrowingList::new(&group, "indptr")?;
        starts.push(0)?;
        let (words, counts) = (GrowingList::new(&group, "indices")?, GrowingList::new(&group, "values")?);
        let scored = (split == Split::Test).then(|| GrowingList::new(&group, "scored")).transpose()?;
        let numbers = GrowingList::new(&group, "document")?;
        Ok(Self { group, starts, words, counts, scored, numbers, entries: 0, tokens: 0, digest: blake3::Hasher::new() })
    }

    fn push(&mut self, document: &Shuffled, scored: &[u32]) -> hdf5::Result<()> {
        let Shuffled { number, words, counts } = document;
        let entries = words.len() as u64;
        self.digest.update(&entries.to_le_bytes());
        for list in [words, counts, scored] {
            self.digest.update(bytemuck::cast_slice(list));
        }
        self.entries += entries;
        self.tokens += counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        self.starts.push(self.entries)?;
        self.words.extend(words)?;
        self.counts.extend(counts)?;
        self.numbers.push(*number)?;
        self.scored.as_mut().map_or(Ok(()), |list| list.extend(scored))
    }

    fn finish(mut self) -> hdf5::Result<blake3::Hash> {
        self.starts.flush()?;
        self.words.flush()?;
        self.counts.flush()?;
        self.numbers.flush()?;
        self.scored.as_mut().map_or(Ok(()), GrowingList::flush)?;
        self.group.new_attr::<u64>().create("tokens")?.write_scalar(&self.tokens)?;
        Ok(self.digest.finalize())
    }
}

impl Writer {
    fn new(path: &Path) -> Result<Self> {
        let (file, partial) = create(path)?;
        Ok(Self { splits: [None, None], file, partial, path: path.to_path_buf() })
    }

    fn push(&mut self, split: Split, document: &Shuffled, scored: &[u32]) -> Result<()> {
        let failed = || DataError::hdf5(&self.path, "write");
        let lists = &mut self.splits[split as usize];
        let lists = match lists {
            Some(lists) => lists,
            None => lists.insert(Lists::new(&self.file, split).map_err(failed())?),
        };
        lists.push(document, scored).map_err(failed())
    }

    fn finish(self, size: u32, words: Option<&[String]>, source: &str) -> Result<()> {
        let Self { splits: [train, test], file, partial, path } = self;
        let write = || -> hdf5::Result<()> {
            let mut digest = ContentDigest::default();
            digest.field(TOPICS.as_bytes());
            digest.field(&size.to_le_bytes());
            digest.field(words.unwrap_or_default().join("\0").as_bytes());
            for (split, lists) in [(Split::Train, train), (Split::Test, test)] {
                if let Some(lists) = lists {
                    digest.field(split.name().as_bytes());
                    digest.field(lists.finish()?.as_bytes());
                }
            }
            hdf::write_text(&file, "format", FORMAT)?;
            hdf::write_scalar(&file, "version", &VERSION)?;
            hdf::write_text(&file, "task", TOPICS)?;
            hdf::write_text(&file, "source", source)?;
            hdf::write_text(&file, "digest", &digest.finish())?;
            let vocabulary = file.create_group("vocabulary")?;
            hdf::write_scalar(&vocabulary, "words", &size)?;
            if let Some(words) = words {
                hdf::write_names(&vocabulary, "word", words)?;
            }
            file.flush()
        };
        write().map_err(DataError::hdf5(&path, "write"))?;
        file.close().map_err(DataError::hdf5(&path, "close"))?;
        partial.commit().map_err(DataError::io(&path, "finish"))
    }
}
