//! The lines of a text file one by one, in the memory of one of them.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::read_error;
use std::io::{BufRead, Read};
use std::path::Path;

/// A longer line is none: a decompressed one could fill the memory.
pub(crate) const LONGEST: u64 = 1 << 28;

/// Hands over every line with its number from 1, without what ends it, nor a byte-order mark in front of the first.
pub(crate) fn lines(mut reader: impl BufRead, path: &Path, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| read_error(path, Place::Line(line), error))?;
        if read == 0 {
            break;
        }
        if read as u64 == LONGEST && !bytes.ends_with(b"\n") {
            let what = format!("longer than {LONGEST} bytes: is this text, with a row or a document in each line?");
            return Err(DataError::content(path, Place::Line(line), what));
        }
        let row = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        each(line, if line == 1 { row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row) } else { row })?;
    }
    Ok(())
}

/// A token as a message shows it.
pub(crate) fn shown(token: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(&token[..token.len().min(MOST)]).into_owned();
    if token.len() > MOST { format!("{text:?}...") } else { format!("{text:?}") }
}
