//! Reads a corpus: its description when it is opened, and ranges of documents on request.

use super::limits::{MAX_TOKENS, MAX_WORDS, NUMBERS_DIGEST, VERSION};
use crate::data::dataset::layout::{Split, TOPICS, open_own};
use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use crate::lda::{Documents, HeldOut};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The number of documents per read. It bounds the memory of read buffers.
pub(super) const DOCUMENTS_PER_READ: usize = 1 << 16;

/// A corpus file, open for reading. Any number of processes may open it at once.
#[derive(Debug)]
pub struct Corpus {
    pub(super) path: PathBuf,
    pub(super) file: hdf5::File,
    digest: String,
    source: String,
    words: u32,
    splits: [SplitSize; 2],
}

/// The size of a split.
#[derive(Clone, Copy, Debug, Default)]
struct SplitSize {
    documents: usize,
    entries: usize,
    tokens: u64,
    /// The tokens of the longest document, if the file says so.
    longest: Option<u64>,
}

impl Corpus {
    /// Whether a file is a corpus; false if it cannot be read.
    pub fn is_corpus(path: &Path) -> bool {
        let task = || hdf::read_text(&*hdf::open(path).ok()?, "task").ok();
        std::fs::File::open(path).is_ok() && task().is_some_and(|task| task == TOPICS)
    }

    /// Opens a corpus and reads its description, but no documents.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a corpus, has another version, or is inconsistent.
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
            let mut splits = [SplitSize::default(); 2];
            let mut consistent = (1..=MAX_WORDS).contains(&words);
            for split in [Split::Train, Split::Test] {
                if !file.link_exists(split.name()) {
                    continue;
                }
                let length = |name: &str| Ok::<_, hdf5::Error>(file.dataset(&split.list(name))?.size());
                let documents = length("indptr")?.saturating_sub(1);
                let entries = length("indices")?;
                consistent &= length("values")? == entries && length("document")? == documents;
                consistent &= split == Split::Train || length("scored")? == entries;
                let tokens = file.group(split.name())?.attr("tokens")?.read_scalar()?;
                // Files of earlier versions do not have it.
                let longest = file.group(split.name())?.attr("longest").and_then(|longest| longest.read_scalar()).ok();
                splits[split as usize] = SplitSize { documents, entries, tokens, longest };
            }
            Ok((words, splits, consistent))
        };
        let (words, splits, consistent) = describe().map_err(failed())?;
        if !consistent || splits[0].documents == 0 {
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

    /// A description of the import: file names, order and held-out documents.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// W, the size of the vocabulary.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// The number of documents of a split; 0 if the corpus does not have the split.
    pub fn documents(&self, split: Split) -> usize {
        self.splits[split as usize].documents
    }

    /// The number of tokens of a split.
    pub fn tokens(&self, split: Split) -> u64 {
        self.splits[split as usize].tokens
    }

    /// The number of tokens of the longest document of a split, if the file says so.
    pub fn longest(&self, split: Split) -> Option<u64> {
        self.splits[split as usize].longest
    }

    /// The number of entries of a split: pairs of a document and one of its words.
    pub fn entries(&self, split: Split) -> usize {
        self.splits[split as usize].entries
    }

    /// The words in the order of their indices; `None` if the input had only indices.
    ///
    /// # Errors
    /// If the file cannot be read.
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

    /// Reads a range of the training documents.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn train(&self, documents: Range<usize>) -> Result<Documents> {
        self.whole(Split::Train, documents)
    }

    /// Reads a range of the documents of a split, held-out documents with all of their tokens.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn whole(&self, split: Split, documents: Range<usize>) -> Result<Documents> {
        let entries = self.entry_range(split, &documents)?;
        let mut read = Documents::with_capacity(self.words, documents.len(), entries.len());
        self.read(split, documents, |words, counts, _| read.push(words, counts))?;
        Ok(read)
    }

    /// Reads a range of the held-out documents.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn held_out(&self, documents: Range<usize>) -> Result<HeldOut> {
        let [mut observed, mut scored] = [Documents::new(self.words), Documents::new(self.words)];
        let mut unscored = Vec::new();
        self.read(Split::Test, documents, |words, counts, scored_counts| {
            unscored.clear();
            unscored.extend(counts.iter().zip(scored_counts).map(|(count, scored)| count - scored));
            observed.push(words, &unscored);
            scored.push(words, scored_counts);
        })?;
        Ok(HeldOut { observed, scored })
    }

    /// The indices in the input of a range of documents of a split, from 0.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn numbers(&self, split: Split, documents: Range<usize>) -> Result<Vec<u64>> {
        let read = || Ok(self.file.dataset(&split.list("document"))?.read_slice_1d::<u64, _>(documents)?.to_vec());
        read().map_err(DataError::hdf5(&self.path, "read the numbers of documents"))
    }

    /// The digest of the indices of the documents in the input; none in files of earlier versions.
    pub(super) fn stated_digest_of_numbers(&self, split: Split) -> Option<String> {
        hdf::read_text(&*self.file.group(split.name()).ok()?, NUMBERS_DIGEST).ok()
    }

    fn damaged(&self, split: Split) -> DataError {
        let what = format!("the {} documents do not fit together: import them again", split.name());
        DataError::content(&self.path, Place::File, what)
    }

    /// A range of the list `indptr`, which holds the first entry of each document and, at its end, the number of entries.
    fn indptr(&self, split: Split, range: Range<usize>) -> Result<Vec<usize>> {
        let read = || Ok(self.file.dataset(&split.list("indptr"))?.read_slice_1d::<u64, _>(range)?.to_vec());
        let starts: Vec<u64> = read().map_err(DataError::hdf5(&self.path, "read documents"))?;
        let starts: Option<Vec<usize>> = starts.iter().map(|&start| usize::try_from(start).ok()).collect();
        let is_valid = |starts: &Vec<usize>| {
            starts.is_sorted() && starts.last().is_none_or(|&end| end <= self.splits[split as usize].entries)
        };
        starts.filter(is_valid).ok_or_else(|| self.damaged(split))
    }

    /// The entries of a range of documents.
    fn entry_range(&self, split: Split, documents: &Range<usize>) -> Result<Range<usize>> {
        if documents.is_empty() {
            return Ok(0..0);
        }
        let start = |document: usize| Ok(self.indptr(split, document..document + 1)?[0]);
        Ok(start(documents.start)?..start(documents.end)?)
    }

    /// Calls `each` with the words, counts and scored counts of each document. Training documents have no scored counts.
    fn read(&self, split: Split, documents: Range<usize>, mut each: impl FnMut(&[u32], &[u32], &[u32])) -> Result<()> {
        let Range { start, end } = documents;
        (start..end)
            .step_by(DOCUMENTS_PER_READ)
            .try_for_each(|first| self.read_block(split, first..end.min(first + DOCUMENTS_PER_READ), &mut each))
    }

    /// Like [`Self::read`], for documents that are read at once.
    fn read_block(&self, split: Split, documents: Range<usize>, each: &mut impl FnMut(&[u32], &[u32], &[u32])) -> Result<()> {
        let failed = || DataError::hdf5(&self.path, "read documents");
        let damaged = || self.damaged(split);
        let list = |name: &str| self.file.dataset(&split.list(name)).map_err(failed());
        let starts = self.indptr(split, documents.start..documents.end + 1)?;
        let (first, last) = (starts[0], starts[starts.len() - 1]);
        let values =
            |name: &str| -> Result<Vec<u32>> { Ok(list(name)?.read_slice_1d::<u32, _>(first..last).map_err(failed())?.to_vec()) };
        let (words, counts) = (values("indices")?, values("values")?);
        let scored = if split == Split::Test { values("scored")? } else { Vec::new() };
        if scored.iter().zip(&counts).any(|(scored, count)| scored > count) {
            return Err(damaged());
        }
        for entries in starts.windows(2) {
            let entries = entries[0] - first..entries[1] - first;
            let bag = &words[entries.clone()];
            let tokens: u64 = counts[entries.clone()].iter().map(|&count| u64::from(count)).sum();
            if tokens > MAX_TOKENS
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
