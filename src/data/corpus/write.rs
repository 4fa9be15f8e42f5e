//! Writes a corpus: documents in their final order, and at last the description.

use super::limits::VERSION;
use crate::data::dataset::growing::GrowingList;
use crate::data::dataset::layout::{FORMAT, Split, TOPICS};
use crate::data::dataset::write::{ContentDigest, create};
use crate::data::error::{DataError, Result};
use crate::data::hdf;
use crate::lda::Bag;
use crate::partial::PartialFile;
use std::path::{Path, PathBuf};

/// Writes a corpus.
pub(super) struct CorpusWriter {
    // Declared before `partial`: fields are dropped in order, and the file must be closed before it is removed.
    splits: [Option<SplitWriter>; 2],
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
    digest: blake3::Hasher,
}

impl SplitWriter {
    fn new(file: &hdf5::File, split: Split) -> hdf5::Result<Self> {
        let group = file.create_group(split.name())?;
        let mut starts = GrowingList::new(&group, "indptr")?;
        starts.push(0)?;
        let (words, counts) = (GrowingList::new(&group, "indices")?, GrowingList::new(&group, "values")?);
        let scored = (split == Split::Test).then(|| GrowingList::new(&group, "scored")).transpose()?;
        let numbers = GrowingList::new(&group, "document")?;
        Ok(Self { group, starts, words, counts, scored, numbers, entries: 0, tokens: 0, digest: blake3::Hasher::new() })
    }

    fn push(&mut self, number: u64, Bag { words, counts }: Bag, scored: &[u32]) -> hdf5::Result<()> {
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
        self.numbers.push(number)?;
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

impl CorpusWriter {
    pub fn new(path: &Path) -> Result<Self> {
        let (file, partial) = create(path)?;
        Ok(Self { splits: [None, None], file, partial, path: path.to_path_buf() })
    }

    /// Adds a document of a split, with its number in the input. Test documents have scored counts.
    pub fn push(&mut self, split: Split, number: u64, document: Bag, scored: &[u32]) -> Result<()> {
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
        let Self { splits: [train, test], file, partial, path } = self;
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
