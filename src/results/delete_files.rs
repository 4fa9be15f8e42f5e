//! Deletion of some of the files in a folder, and of the folder if nothing is left.

use super::error::{Result, ResultsError};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Deletes the files whose names are to be deleted, and the folder if it is then empty. There need not be a folder.
///
/// # Errors
/// When the file system fails.
pub(super) fn delete_files(folder: &Path, is_to_be_deleted: impl Fn(&str) -> bool) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        Err(cause) => return Err(ResultsError::io(folder, "list")(cause)),
    };
    for entry in entries {
        let path = entry.map_err(ResultsError::io(folder, "list"))?.path();
        if path.file_name().is_some_and(|name| is_to_be_deleted(&name.to_string_lossy())) {
            fs::remove_file(&path).map_err(ResultsError::io(&path, "delete"))?;
        }
    }
    match fs::remove_dir(folder) {
        Err(cause) if ![ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&cause.kind()) => {
            Err(ResultsError::io(folder, "delete")(cause))
        }
        _ => Ok(()),
    }
}
