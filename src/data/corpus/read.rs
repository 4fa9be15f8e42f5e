//! Reading a corpus: its description at once, its documents by their places.

use super::limits::{MOST_TOKENS, MOST_WORDS, VERSION};
use crate::data::dataset::layout::{Split, TOPICS, open_own};
use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use crate::lda::{Documents, HeldOut};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Documents that are read at once: their lists are in memory a second time then.
pub(super) const DOCUMENTS_AT_ONCE: usize = 1 << 16;

/// A corpus file, open for reading; any number of processes may have it open at once.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    file: hdf5::File,
    digest: String,
    source: String,
    words: u32,
    splits: [Size; 2],
}

/// What a split has of everything.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    documents: usize,
    entries: usize,
    tokens: u64,
}

impl Corpus {
    /// Whether a file is one of ours that holds documents; other files are left to others to complain about.
    pub fn is_one(path: &Path) -> bool {
        let task = || hdf::read_text(&*hdf::open(path).ok()?, "task").ok();
        std::fs::File::open(path).is_ok() && task().is_some_and(|task| task == TOPICS)
    }

    /// Opens a corpus and reads its description, but no documents.
    ///
    /// # Errors
    /// When the file cannot be opened, is no corpus of this program, is of another version, or contradicts itself.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, task) = open_own(path, "corpus")?;
        let wrong = |what: String| DataError::content(path, Place::File, what);
        let failed = || DataError::hdf5(path, "read the description");
        let text = |name| hdf::read_text(&file, name).map_err(failed());
        if task != TOPICS {
            return Err(wrong(format!("this dataset has rows, for {task}: a topic model needs documents")));
        }
        let version: u32 = file.attr("version").and_then(|at| at.read_scalar()).map_err(failed())?;
        if version != VERSION {
            return Err(wrong(format!(
                "corpus version {version}, this program reads version {VERSION}: import the documents again"
            )));
        }
        let describe = || -> hdf5::Result<_> {
            let words: u32 = file.group("vocabulary")?.attr("words")?.read_scalar()?;
            let mut splits = [Size::default(); 2];
            let mut sound = (1..=MOST_WORDS).contains(&words);
            for split in [Split::Train, Split::Test] {
                if !file.link_exists(split.name()) {
                    continue;
                }
                let length = |name: &str| Ok::<_, hdf5::Error>(file.dataset(&split.list(name))?.size());
                let documents = length("indptr")?.saturating_sub(1);
                let entries = length("indices")?;
                sound &= length("values")? == entries && length("document")? == documents;
                sound &= split == Split::Train || length("scored")? == entries;
                let tokens = file.group(split.name())?.attr("tokens")?.read_scalar()?;
                splits[split as usize] = Size { documents, entries, tokens };
            }
            Ok((words, splits, sound))
        };
        let (words, splits, sound) = describe().map_err(failed())?;
        if !sound || splits[0].documents == 0 {
            return Err(wrong("the lists of the documents do not fit together, or there are none: import them again".into()));
        }
        let (digest, source) = (text("digest")?, text("source")?);
        Ok(Self { path: path.to_path_buf(), file, digest, source, words, splits })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// BLAKE3 of the content: equal digests mean equal documents.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Names of the imported files, for people.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// W, the size of the vocabulary.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// How many documents a split has; 0 if the corpus does not have it.
    pub fn documents(&self, split: Split) -> usize {
        self.splits[split as usize].documents
    }

    /// How many tokens a split has.
    pub fn tokens(&self, split: Split) -> u64 {
        self.splits[split as usize].tokens
    }

    /// How many different words the documents of a split have, in all.
    pub fn entries(&self, split: Split) -> usize {
        self.splits[split as usize].entries
    }

    /// The words by their numbers; none where the input had numbers alone.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn vocabulary(&self) -> Result<Option<Vec<String>>> {
        let read = || -> hdf5::Result<_> {
            let vocabulary = self.file.group("vocabulary")?;
            vocabulary.link_exists("word").then(|| hdf::read_names(&vocabulary, "word")).transpose()
        };
        let words = read().map_err(DataError::hdf5(&self.path, "read the vocabulary"))?;
        match words {
            Some(words) if words.len() != self.words as usize => {
                let what = format!("{} words in a vocabulary of {}: import the documents again", words.len(), self.words);
                Err(DataError::content(&self.path, Place::File, what))
            }
            words => Ok(words),
        }
    }

    /// Reads a stretch of the training documents.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn train(&self, documents: Range<usize>) -> Result<Documents> {
        self.whole(Split::Train, documents)
    }

    /// Reads a stretch of the documents of a split, those that are held out with all of their tokens.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn whole(&self, split: Split, documents: Range<usize>) -> Result<Documents> {
        let entries = self.stretch(split, &documents)?;
        let mut read = Documents::with_capacity(self.words, documents.len(), entries.len());
        self.read(split, documents, |words, counts, _| read.push(words, counts))?;
        Ok(read)
    }

    /// Reads a stretch of the documents that are held out.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn held_out(&self, documents: Range<usize>) -> Result<HeldOut> {
        let [mut observed, mut scored] = [Documents::new(self.words), Documents::new(self.words)];
        let mut rest = Vec::new();
        self.read(Split::Test, documents, |words, counts, of_these| {
            rest.clear();
            rest.extend(counts.iter().zip(of_these).map(|(count, scored)| count - scored));
            observed.push(words, &rest);
            scored.push(words, of_these);
        })?;
        Ok(HeldOut { observed, scored })
    }

    /// Where documents of a split stood in the input, from 0.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn numbers(&self, split: Split, documents: Range<usize>) -> Result<Vec<u64>> {
        let read = || Ok(self.file.dataset(&split.list("document"))?.read_slice_1d::<u64, _>(documents)?.to_vec());
        read().map_err(DataError::hdf5(&self.path, "read the numbers of documents"))
    }

    fn damaged(&self, split: Split) -> DataError {
        let what = format!("the {} documents do not fit together: import them again", split.name());
        DataError::content(&self.path, Place::File, what)
    }

    /// Where the entries of documents begin, and behind them where the last ones end.
    fn indptr(&self, split: Split, places: Range<usize>) -> Result<Vec<usize>> {
        let read = || Ok(self.file.dataset(&split.list("indptr"))?.read_slice_1d::<u64, _>(places)?.to_vec());
        let starts: Vec<u64> = read().map_err(DataError::hdf5(&self.path, "read documents"))?;
        let starts: Option<Vec<usize>> = starts.iter().map(|&start| usize::try_from(start).ok()).collect();
        let within = |starts: &Vec<usize>| {
            starts.is_sorted() && starts.last().is_none_or(|&end| end <= self.splits[split as usize].entries)
        };
        starts.filter(within).ok_or_else(|| self.damaged(split))
    }

    /// The entries of a stretch of documents.
    fn stretch(&self, split: Split, documents: &Range<usize>) -> Result<Range<usize>> {
        if documents.is_empty() {
            return Ok(0..0);
        }
        let start = |document: usize| Ok(self.indptr(split, document..document + 1)?[0]);
        Ok(start(documents.start)?..start(documents.end)?)
    }

    /// Hands over each of the documents: words, counts, and of test documents how many are scored.
    fn read(&self, split: Split, documents: Range<usize>, mut each: impl FnMut(&[u32], &[u32], &[u32])) -> Result<()> {
        let Range { start, end } = documents;
        (start..end)
            .step_by(DOCUMENTS_AT_ONCE)
            .try_for_each(|first| self.read_block(split, first..end.min(first + DOCUMENTS_AT_ONCE), &mut each))
    }

    /// The same of documents that are read at once.
    fn read_block(&self, split: Split, documents: Range<usize>, each: &mut impl FnMut(&[u32], &[u32], &[u32])) -> Result<()> {
        let failed = || DataError::hdf5(&self.path, "read documents");
        let damaged = || self.damaged(split);
        let list = |name: &str| self.file.dataset(&split.list(name)).map_err(failed());
        let starts = self.indptr(split, documents.start..documents.end + 1)?;
        let (first, last) = (starts[0], starts[starts.len() - 1]);
        let numbers =
            |name: &str| -> Result<Vec<u32>> { Ok(list(name)?.read_slice_1d::<u32, _>(first..last).map_err(failed())?.to_vec()) };
        let (words, counts) = (numbers("indices")?, numbers("values")?);
        let scored = if split == Split::Test { numbers("scored")? } else { Vec::new() };
        if scored.iter().zip(&counts).any(|(scored, count)| scored > count) {
            return Err(damaged());
        }
        for entries in starts.windows(2) {
            let entries = entries[0] - first..entries[1] - first;
            let bag = &words[entries.clone()];
            let tokens: u64 = counts[entries.clone()].iter().map(|&count| u64::from(count)).sum();
            if tokens > MOST_TOKENS
                || bag.windows(2).any(|pair| pair[0] >= pair[1])
                || bag.last().is_some_and(|&word| word >= self.words)
            {
                return Err(damaged());
            }
            each(bag, &counts[entries.clone()], scored.get(entries).unwrap_or_default());
        }
        Ok(())
    }
}
