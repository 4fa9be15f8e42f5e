//! Reads the members of tar archives, plain or gzip, one after the other.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::Source;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use tar::Archive;

/// Where the header of the first member has the magic of POSIX and GNU archives.
const MAGIC_START: usize = 257;

/// Whether a file that begins with these bytes is a tar archive.
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(MAGIC_START..).is_some_and(|rest| rest.starts_with(b"ustar"))
}

/// Calls `each` with the name (without folders) and the content of every file, until `each` returns `Break`.
///
/// Long names are cut off, because archives store them in extra members whose size has no limit.
///
/// # Errors
/// If the archive cannot be read or is damaged; and those of `each`.
pub(crate) fn for_members(path: &Path, mut each: impl FnMut(&str, &mut dyn Read) -> Result<ControlFlow<()>>) -> Result<()> {
    let mut archive = Archive::new(Source::open(path)?.reader);
    let failed = |error| tar_error(path, error);
    for member in archive.entries().map_err(failed)?.raw(true) {
        let mut member = member.map_err(failed)?;
        if !member.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        if each(name.rsplit('/').next().unwrap_or(&name), &mut member)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn tar_error(path: &Path, error: std::io::Error) -> DataError {
    if error.raw_os_error().is_some() {
        return DataError::io(path, "read")(error);
    }
    // The text of other errors quotes bytes of the archive.
    DataError::content(path, Place::File, "this tar archive is damaged or cut short: fetch it again")
}
