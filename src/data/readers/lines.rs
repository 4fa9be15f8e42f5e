//! Reads a text file line by line; only one line is in memory.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::read_error;
use std::io::{BufRead, Read};
use std::path::Path;

/// The maximum number of bytes of a line. It bounds memory: a small compressed file could contain a huge line.
pub(crate) const MAX_LINE: u64 = 1 << 28;

/// Calls `each` with every line and its number from 1, without line end, and without a byte order mark before the first line.
pub(crate) fn lines(mut reader: impl BufRead, path: &Path, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| read_error(path, Place::Line(line), error))?;
        if read == 0 {
            break;
        }
        if read as u64 == MAX_LINE && !bytes.ends_with(b"\n") {
            let what = format!("longer than {MAX_LINE} bytes: is this text, with a row or a document in each line?");
            return Err(DataError::content(path, Place::Line(line), what));
        }
        let row = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        each(line, if line == 1 { row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row) } else { row })?;
    }
    Ok(())
}

/// A token in quotes for a message, shortened if it is long.
pub(crate) fn quoted(token: &[u8]) -> String {
    const MAX_SHOWN: usize = 40;
    let text = String::from_utf8_lossy(&token[..token.len().min(MAX_SHOWN)]).into_owned();
    if token.len() > MAX_SHOWN { format!("{text:?}...") } else { format!("{text:?}") }
}
