//! Recomputes the digest of a corpus from its content, a block at a time.

use super::read::Corpus;
use crate::data::dataset::digest::ContentDigest;
use crate::data::dataset::layout::{Split, TOPICS};
use crate::data::dataset::list_reader::ListReader;
use crate::data::error::{DataError, Place, Result};
use crate::data::verification::{Progress, RESTORE, Verified, check_digest, unverifiable};
use hdf5::Error::Internal;

/// What is not covered by the digests of a corpus of an earlier version.
const NUMBERS: &str = "the indices of documents in the input: the file is from an earlier version, which did not hash them";

/// What is found in a split.
struct Content {
    digest: blake3::Hash,
    tokens: u64,
    longest: u64,
    numbers: blake3::Hash,
}

impl Corpus {
    /// Reads everything and compares its digest with the one that the file states. Takes a few megabytes of memory and the vocabulary.
    ///
    /// The digest covers the vocabulary and the documents. The indices of the documents in the input have a digest of their own, and the
    /// numbers of tokens are counted. The description of the import is not covered.
    ///
    /// # Errors
    /// If anything differs, or the file cannot be read.
    pub fn verify(&self, report: &mut dyn FnMut(u64)) -> Result<Verified> {
        let progress = Progress::new(report);
        let vocabulary = self.vocabulary()?.unwrap_or_default();
        let mut digest = ContentDigest::default();
        digest.field(TOPICS.as_bytes());
        digest.field(&self.words().to_le_bytes());
        digest.field(vocabulary.join("\0").as_bytes());
        let mut uncovered = None;
        for split in [Split::Train, Split::Test] {
            if !self.file.link_exists(split.name()) {
                continue;
            }
            let content = self.content(split, &progress).map_err(unverifiable(&self.path))?;
            digest.field(split.name().as_bytes());
            digest.field(content.digest.as_bytes());
            let differs = |what: &str| {
                let what = format!("{what} of the {} documents are not those that the file states. {RESTORE}", split.name());
                DataError::content(&self.path, Place::File, what)
            };
            if content.tokens != self.tokens(split) || self.longest(split).is_some_and(|longest| longest != content.longest) {
                return Err(differs("the numbers of tokens"));
            }
            match self.stated_digest_of_numbers(split) {
                Some(stated) if stated == content.numbers.to_hex().as_str() => {}
                Some(_) => return Err(differs("the indices in the input")),
                None => uncovered = Some(NUMBERS),
            }
        }
        check_digest(&self.path, &digest.finish(), self.digest())?;
        Ok(Verified { bytes: progress.bytes(), uncovered })
    }

    fn content(&self, split: Split, progress: &Progress<'_>) -> hdf5::Result<Content> {
        let list = |name: &str| self.file.dataset(&split.list(name));
        let counts = |name: &str| ListReader::<u32>::new(list(name)?, progress);
        let mut starts = ListReader::<u64>::new(list("indptr")?, progress)?;
        let (mut words, mut values) = (counts("indices")?, counts("values")?);
        let mut scored = if split == Split::Test { Some(counts("scored")?) } else { None };
        let mut numbers = ListReader::<u64>::new(list("document")?, progress)?;
        let [mut digest, mut hashed_numbers] = [blake3::Hasher::new(), blake3::Hasher::new()];
        let (mut all, mut longest) = (0_u64, 0);
        let mut start = starts.read_one()?;
        if start != 0 {
            return Err(Internal(format!("the first {} document starts at entry {start}, not 0", split.name())));
        }
        for document in 0..self.documents(split) {
            let end = starts.read_one()?;
            let entries = end.checked_sub(start).and_then(|entries| usize::try_from(entries).ok());
            let entries =
                entries.ok_or_else(|| Internal(format!("{} document {document} ends before it starts", split.name())))?;
            digest.update(&(end - start).to_le_bytes());
            words.read(entries, |words| {
                digest.update(bytemuck::cast_slice(words));
            })?;
            let mut tokens = 0_u64;
            values.read(entries, |counts| {
                digest.update(bytemuck::cast_slice(counts));
                tokens = counts.iter().fold(tokens, |sum, &count| sum.saturating_add(u64::from(count)));
            })?;
            if let Some(scored) = &mut scored {
                scored.read(entries, |scored| {
                    digest.update(bytemuck::cast_slice(scored));
                })?;
            }
            (all, longest) = (all.saturating_add(tokens), tokens.max(longest));
            start = end;
        }
        numbers.read(self.documents(split), |numbers| {
            hashed_numbers.update(bytemuck::cast_slice(numbers));
        })?;
        starts.finish()?;
        words.finish()?;
        values.finish()?;
        scored.map_or(Ok(()), ListReader::finish)?;
        numbers.finish()?;
        Ok(Content { digest: digest.finalize(), tokens: all, longest, numbers: hashed_numbers.finalize() })
    }
}
