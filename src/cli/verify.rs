//! Verifies a dataset or a corpus for `mpibayes check --verify` and `mpibayes data verify`: reads all of it and compares its digest.

use super::bar::{BYTES, progress_bar};
use crate::data::DataError;
use crate::job::DataFile;
use crate::text;
use std::path::Path;

/// Verifies a file; returns what was done, for people.
///
/// # Errors
/// If the file cannot be read, or its content does not have the digest that it states.
pub(super) fn verify(file: &Path) -> Result<String, DataError> {
    let data = DataFile::open(file)?;
    let bar = progress_bar("verifying", BYTES);
    if let Ok(about) = std::fs::metadata(file) {
        bar.set_length(about.len());
    }
    let verified = data.verify(&mut |bytes| bar.set_position(bytes));
    bar.finish_and_clear();
    let verified = verified?;
    let (digest, bytes) = (text::short_digest(data.digest()), text::bytes(verified.bytes));
    let uncovered = verified.uncovered.map_or_else(String::new, |what| format!("note: not verified: {what}\n"));
    Ok(format!("{}: verified {bytes}: the content matches the digest {digest}\n{uncovered}", file.display()))
}
