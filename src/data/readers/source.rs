//! Opening input, plain or gzip, told apart by its content and never by its name.

use crate::data::error::{DataError, Place, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Deflate packs at most about 1,032 bytes into one (RFC 1951: 258 bytes in two bits).
pub(crate) const MOST_PER_DEFLATED_BYTE: u64 = 1032;
/// How much is read at once.
const BUFFER: usize = 1 << 18;
/// A buffer for a record of unknown size begins with this; it grows as data really comes.
const FIRST_RECORD: u64 = 1 << 16;

/// Input that is being read, with the name that errors call it by.
pub struct Source<'a> {
    pub(crate) path: PathBuf,
    /// The uncompressed content.
    pub(crate) reader: Box<dyn BufRead + 'a>,
    /// More bytes than these cannot come: exact for a plain file, a bound for a compressed one.
    pub(crate) most_bytes: u64,
}

impl<'a> Source<'a> {
    /// Opens a file, decompressing if it begins as gzip does.
    ///
    /// # Errors
    /// When it cannot be opened, or is empty.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(DataError::io(path, "open"))?;
        let about = file.metadata().map_err(DataError::io(path, "read"))?;
        if about.is_dir() {
            return Err(DataError::content(path, Place::File, "this is a folder: name a file"));
        }
        if !about.is_file() {
            let what = "this is a pipe or a device, and input is read more than once: write it into a file first";
            return Err(DataError::content(path, Place::File, what));
        }
        Self::new(path, BufReader::with_capacity(BUFFER, file), about.len())
    }

    /// Takes bytes for the content of a file that errors call `name`, decompressing if they begin as gzip does.
    ///
    /// # Errors
    /// When there are none.
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
            Ok(Self { path, reader, most_bytes: size.saturating_mul(MOST_PER_DEFLATED_BYTE) })
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

    /// The first lines of a file, uncompressed, as far as they stand in its first 64 KiB; the last may be cut off there.
    ///
    /// # Errors
    /// When it cannot be read, or is empty.
    pub fn first_lines(path: &Path, lines: usize) -> Result<Vec<Vec<u8>>> {
        let head = Source::head(path, 1 << 16)?;
        Ok(head
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
            .take(lines)
            .map(<[u8]>::to_vec)
            .collect())
    }

    /// Replaces `record` by the next `bytes` bytes, or by fewer if the input ends. Memory is taken as data comes, not as a header
    /// promises it.
    pub(crate) fn fill(&mut self, record: &mut Vec<u8>, bytes: u64) -> std::io::Result<()> {
        record.clear();
        // At most `FIRST_RECORD`, which fits any machine.
        record.reserve(bytes.min(FIRST_RECORD) as usize);
        self.reader.by_ref().take(bytes).read_to_end(record).map(drop)
    }

    /// Makes sure that nothing comes after the last of the records that a header promised.
    pub(crate) fn must_end(&mut self, records: usize) -> Result<()> {
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

/// A read error at a place: damaged compressed data is the file's fault, anything else the system's.
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

/// The name of a file without its folders: what our own files may say of where they came from.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
