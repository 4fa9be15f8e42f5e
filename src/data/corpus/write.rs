//! Writes a corpus: documents in their final order, then the metadata.

use super::limits::{NUMBERS_DIGEST, VERSION};
use crate::data::dataset::digest::ContentDigest;
use crate::data::dataset::growing::GrowingList;
use crate::data::dataset::layout::{Split, TOPICS};
use crate::data::dataset::write::create;
use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use crate::lda::{Bag, draw_scored_tokens};
use crate::partial::PartialFile;
use crate::random::{Purpose, Seed, Who};
use std::path::{Path, PathBuf};

/// Writes a corpus.
pub(super) struct CorpusWriter {
    // Declared before `partial`: fields are dropped in order, and the file must be closed before it is removed.
    splits: [Option<SplitWriter>; 2],
    test_documents: u64,
    /// Tokens that are to be predicted.
    scored: u64,
    file: hdf5::File,
    partial: PartialFile,
    path: PathBuf,
}

/// Writes the documents of a split.
struct SplitWriter {
    group: hdf5::Group,
    starts: GrowingList<u64>,
    words: GrowingList<u32>,
    counts: GrowingList<u32>,
    scored: Option<GrowingList<u32>>,
    numbers: GrowingList<u64>,
    entries: u64,
    tokens: u64,
    /// The tokens of the longest document.
    longest: u64,
    digest: blake3::Hasher,
    numbers_digest: blake3::Hasher,
}

impl SplitWriter {
    fn new(file: &hdf5::File, split: Split) -> hdf5::Result<Self> {
        let group = file.create_group(split.name())?;
        let mut starts = GrowingList::new(&group, "indptr")?;
        starts.push(0)?;
        let (words, counts) = (GrowingList::new(&group, "indices")?, GrowingList::new(&group, "values")?);
        let scored = (split == Split::Test).then(|| GrowingList::new(&group, "scored")).transpose()?;
        let numbers = GrowingList::new(&group, "document")?;
        Ok(Self {
            group,
            starts,
            words,
            counts,
            scored,
            numbers,
            entries: 0,
            tokens: 0,
            longest: 0,
            digest: blake3::Hasher::new(),
            numbers_digest: blake3::Hasher::new(),
        })
    }

    fn push(&mut self, number: u64, Bag { words, counts }: Bag, scored: &[u32]) -> hdf5::Result<()> {
        let entries = words.len() as u64;
        self.digest.update(&entries.to_le_bytes());
        for list in [words, counts, scored] {
            self.digest.update(bytemuck::cast_slice(list));
        }
        self.entries += entries;
        let tokens = counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        self.tokens += tokens;
        self.longest = self.longest.max(tokens);
        self.starts.push(self.entries)?;
        self.words.extend(words)?;
        self.counts.extend(counts)?;
        self.numbers.push(number)?;
        self.numbers_digest.update(&number.to_le_bytes());
        self.scored.as_mut().map_or(Ok(()), |list| list.extend(scored))
    }

    fn finish(mut self) -> hdf5::Result<blake3::Hash> {
        self.starts.flush()?;
        self.words.flush()?;
        self.counts.flush()?;
        self.numbers.flush()?;
        self.scored.as_mut().map_or(Ok(()), GrowingList::flush)?;
        self.group.new_attr::<u64>().create("tokens")?.write_scalar(&self.tokens)?;
        self.group.new_attr::<u64>().create("longest")?.write_scalar(&self.longest)?;
        hdf::write_text(&self.group, NUMBERS_DIGEST, self.numbers_digest.finalize().to_hex().as_str())?;
        Ok(self.digest.finalize())
    }
}

impl CorpusWriter {
    pub fn new(path: &Path) -> Result<Self> {
        let (file, partial) = create(path)?;
        Ok(Self { splits: [None, None], test_documents: 0, scored: 0, file, partial, path: path.to_path_buf() })
    }

    /// Adds a training document, with its number in the input.
    pub fn push_train(&mut self, number: u64, document: Bag) -> Result<()> {
        self.push(Split::Train, number, document, &[])
    }

    /// Adds a test document, a share of whose tokens, drawn by a seed, is to be predicted.
    pub fn push_test(&mut self, number: u64, document: Bag, share: f64, seed: Seed) -> Result<()> {
        let scored = draw_scored_tokens(document.counts, share, &mut seed.stream(Who::Run, number, Purpose::HeldOut));
        self.test_documents += 1;
        self.scored += scored.iter().map(|&count| u64::from(count)).sum::<u64>();
        self.push(Split::Test, number, document, &scored)
    }

    /// The number of tokens that are to be predicted.
    pub fn scored(&self) -> u64 {
        self.scored
    }

    /// Checks that there is something to predict if there are test documents.
    ///
    /// # Errors
    /// If not; `path` is the file that the error names.
    pub fn check_scored(&self, share: f64, path: &Path) -> Result<()> {
        if self.test_documents == 0 || self.scored > 0 {
            return Ok(());
        }
        let what = format!(
            "none of the tokens of the {} held-out documents would be scored, so that topics could not be judged: hold out more documents, or \
             score a larger share than {share} of their tokens",
            self.test_documents
        );
        Err(DataError::content(path, Place::File, what))
    }

    fn push(&mut self, split: Split, number: u64, document: Bag, scored: &[u32]) -> Result<()> {
        let failed = || DataError::hdf5(&self.path, "write");
        let writer = &mut self.splits[split as usize];
        let writer = match writer {
            Some(writer) => writer,
            None => writer.insert(SplitWriter::new(&self.file, split).map_err(failed())?),
        };
        writer.push(number, document, scored).map_err(failed())
    }

    /// Writes the description, with W and the words if they are known, and finishes the file.
    pub fn finish(self, size: u32, words: Option<&[String]>, source: &str) -> Result<()> {
        let Self { splits: [train, test], file, partial, path, .. } = self;
        let write = || -> hdf5::Result<()> {
            let mut digest = ContentDigest::default();
            digest.field(TOPICS.as_bytes());
            digest.field(&size.to_le_bytes());
            digest.field(words.unwrap_or_default().join("\0").as_bytes());
            for (split, writer) in [(Split::Train, train), (Split::Test, test)] {
                if let Some(writer) = writer {
                    digest.field(split.name().as_bytes());
                    digest.field(writer.finish()?.as_bytes());
                }
            }
            hdf::write_text(&file, "format", hdf::DATASET_FORMAT)?;
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
