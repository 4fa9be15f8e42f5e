//! Shuffles documents with random keys.
//!
//! Documents are distributed to 64 files by key, and only one file is in memory at once.

use crate::data::error::{DataError, Result};
use crate::random::{Purpose, Seed, Who};
use rand::Rng;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The number of temporary files. Each has about the same number of documents.
const FILES: usize = 64;

/// A document and its position in the input.
pub(super) struct ShuffledDocument {
    /// Its index in the input, from 0.
    pub number: u64,
    /// Its words, ascending, and their counts.
    pub words: Vec<u32>,
    pub counts: Vec<u32>,
}

/// Collects documents and returns them in random order.
pub(super) struct Shuffle {
    seed: Seed,
    folder: PathBuf,
    files: Vec<BufWriter<File>>,
    documents: u64,
}

impl Shuffle {
    /// An empty shuffle. Its temporary files in this folder have no names and vanish with the process.
    pub fn new(folder: &Path, seed: Seed) -> Result<Self> {
        let file = || tempfile::tempfile_in(folder).map(BufWriter::new);
        let files: io::Result<_> = (0..FILES).map(|_| file()).collect();
        let files = files.map_err(DataError::io(folder, "make a temporary file in this folder"))?;
        Ok(Self { seed, folder: folder.to_path_buf(), files, documents: 0 })
    }

    /// The number of documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Adds a document.
    pub fn push(&mut self, number: u64, words: &[u32], counts: &[u32]) -> Result<()> {
        let key = self.seed.stream(Who::Run, number, Purpose::Partition).next_u64();
        let file = &mut self.files[(key >> 58) as usize];
        let mut write = || -> io::Result<()> {
            for value in [key, number, words.len() as u64] {
                file.write_all(&value.to_le_bytes())?;
            }
            [words, counts].iter().try_for_each(|list| file.write_all(bytemuck::cast_slice(list)))
        };
        write().map_err(DataError::io(&self.folder, "write a temporary file in this folder"))?;
        self.documents += 1;
        Ok(())
    }

    /// Calls `each` with all documents in the order of their keys.
    pub fn finish(self, mut each: impl FnMut(ShuffledDocument) -> Result<()>) -> Result<()> {
        for file in self.files {
            let mut documents = read_file(file).map_err(DataError::io(&self.folder, "read a temporary file in this folder"))?;
            documents.sort_by_key(|(key, document)| (*key, document.number));
            documents.into_iter().try_for_each(|(_, document)| each(document))?;
        }
        Ok(())
    }
}

/// Reads the documents of a file with their keys.
fn read_file(file: BufWriter<File>) -> io::Result<Vec<(u64, ShuffledDocument)>> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut documents = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let [key, number, length] =
            [next_bytes(&mut rest)?, next_bytes(&mut rest)?, next_bytes(&mut rest)?].map(u64::from_le_bytes);
        let mut list = || (0..length).map(|_| Ok(u32::from_ne_bytes(next_bytes(&mut rest)?))).collect::<io::Result<Vec<u32>>>();
        let (words, counts) = (list()?, list()?);
        documents.push((key, ShuffledDocument { number, words, counts }));
    }
    Ok(documents)
}

/// Reads the next bytes.
fn next_bytes<const N: usize>(rest: &mut &[u8]) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rest.read_exact(&mut bytes)?;
    Ok(bytes)
}
