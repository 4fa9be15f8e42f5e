//! Opens input files, plain or gzip.
//!
//! Compression is detected from the content, not from the name.

use crate::data::error::{DataError, Place, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The maximum ratio of uncompressed to compressed bytes of deflate (RFC 1951: 258 bytes in two bits).
pub(crate) const MAX_INFLATION: u64 = 1032;
/// The number of bytes per read.
const BUFFER: usize = 1 << 18;
/// The maximum initial capacity of a record. Larger records grow as data is read.
const MAX_INITIAL_CAPACITY: u64 = 1 << 16;

/// An open input file, with its path for errors.
pub struct Source<'a> {
    pub(crate) path: PathBuf,
    /// The uncompressed content.
    pub(crate) reader: Box<dyn BufRead + 'a>,
    /// The number of bytes of a plain file; an upper bound for a compressed one.
    pub(crate) most_bytes: u64,
}

impl<'a> Source<'a> {
    /// Opens a file, plain or gzip.
    ///
    /// # Errors
    /// If it cannot be opened, or is empty.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(DataError::io(path, "open"))?;
        let metadata = file.metadata().map_err(DataError::io(path, "read"))?;
        if metadata.is_dir() {
            return Err(DataError::content(path, Place::File, "this is a folder: name a file"));
        }
        if !metadata.is_file() {
            let what = "this is a pipe or a device, and input is read more than once: write it into a file first";
            return Err(DataError::content(path, Place::File, what));
        }
        Self::new(path, BufReader::with_capacity(BUFFER, file), metadata.len())
    }

    /// Input from memory, plain or gzip. Errors use `name` as the path.
    ///
    /// # Errors
    /// If `bytes` is empty.
    pub fn of_bytes(name: &Path, bytes: &'a [u8]) -> Result<Self> {
        Self::new(name, Cursor::new(bytes), bytes.len() as u64)
    }

    fn new(path: &Path, mut reader: impl BufRead + 'a, size: u64) -> Result<Self> {
        let head = reader.fill_buf().map_err(DataError::io(path, "read"))?;
        if head.is_empty() {
            return Err(DataError::content(path, Place::File, "the file is empty"));
        }
        let path = path.to_path_buf();
        if head.starts_with(&[0x1f, 0x8b]) {
            let reader = Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(reader)));
            Ok(Self { path, reader, most_bytes: size.saturating_mul(MAX_INFLATION) })
        } else {
            Ok(Self { path, reader: Box::new(reader), most_bytes: size })
        }
    }

    /// The first `bytes` bytes of a file, uncompressed; fewer if it ends before.
    pub(crate) fn head(path: &Path, bytes: u64) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let read = Source::open(path)?.reader.take(bytes).read_to_end(&mut head);
        read.map_err(|error| read_error(path, Place::File, error))?;
        Ok(head)
    }

    /// The first lines of a file, uncompressed, from its first 64 KiB. The last may be cut off.
    ///
    /// # Errors
    /// If it cannot be read, or is empty.
    pub fn first_lines(path: &Path, lines: usize) -> Result<Vec<Vec<u8>>> {
        let head = Source::head(path, 1 << 16)?;
        Ok(head
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .take(lines)
            .map(<[u8]>::to_vec)
            .collect())
    }

    /// Replaces `record` by the next `bytes` bytes, or by fewer if the input ends. Memory is allocated as data is read, because a header
    /// can claim any size.
    pub(crate) fn fill(&mut self, record: &mut Vec<u8>, bytes: u64) -> std::io::Result<()> {
        record.clear();
        // `MAX_INITIAL_CAPACITY` fits into any `usize`.
        record.reserve(bytes.min(MAX_INITIAL_CAPACITY) as usize);
        self.reader.by_ref().take(bytes).read_to_end(record).map(drop)
    }

    /// Checks that the input ends after the number of records in its header.
    pub(crate) fn check_end(&mut self, records: usize) -> Result<()> {
        match self.reader.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => {
                let what = format!("there is more after the {records} records that the header promises: fetch the file again");
                Err(DataError::content(&self.path, Place::File, what))
            }
            Err(error) => Err(read_error(&self.path, Place::File, error)),
        }
    }
}

/// A read error at a place: damaged compressed data is an error in the content, any other error is one of the system.
pub(crate) fn read_error(path: &Path, place: Place, error: std::io::Error) -> DataError {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => DataError::content(
            path,
            place,
            format!("the compressed data is damaged or cut short ({error}): fetch the file again"),
        ),
        _ => DataError::io(path, "read")(error),
    }
}

/// The name of a file without its folders, for descriptions in output files.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
