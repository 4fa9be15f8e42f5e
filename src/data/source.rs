//! Opening input files, plain or gzip, told apart by their content and never by their name.

use super::error::{DataError, Place, Result};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

/// Deflate packs at most about 1,032 bytes into one (RFC 1951: 258 bytes in two bits).
const MOST_PER_GZIP_BYTE: u64 = 1032;

/// An input file that is being read.
pub(super) struct Source {
    /// The uncompressed content.
    pub reader: Box<dyn Read + Send>,
    /// More bytes than these cannot come: exact for a plain file, a bound for a compressed one.
    pub most_bytes: u64,
}

/// Opens `path`, decompressing if it begins as gzip does.
///
/// # Errors
/// When it cannot be opened, or is empty.
pub(super) fn open(path: &Path) -> Result<Source> {
    let file = File::open(path).map_err(DataError::io(path, "open"))?;
    let size = file.metadata().map_err(DataError::io(path, "read"))?.len();
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let head = reader.fill_buf().map_err(DataError::io(path, "read"))?;
    if head.is_empty() {
        return Err(DataError::content(path, Place::File, "the file is empty"));
    }
    if head.starts_with(&[0x1f, 0x8b]) {
        let reader = Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(reader)));
        Ok(Source { reader, most_bytes: size.saturating_mul(MOST_PER_GZIP_BYTE) })
    } else {
        Ok(Source { reader: Box::new(reader), most_bytes: size })
    }
}

/// A read error at a place: damaged gzip data is the file's fault, anything else the system's.
pub(super) fn read_error(path: &Path, place: Place, error: std::io::Error) -> DataError {
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
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
