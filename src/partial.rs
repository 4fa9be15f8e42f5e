//! Atomic file replacement: a file is written under a temporary name, synchronized to disk, then renamed over the target.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A temporary file `NAME.partial`, removed unless it is committed.
#[derive(Debug)]
pub struct PartialFile {
    target: PathBuf,
    partial: PathBuf,
    committed: bool,
}

impl PartialFile {
    /// A temporary file for `target`; does not create it.
    pub fn new(target: &Path) -> Self {
        let mut partial: OsString = target.as_os_str().to_owned();
        partial.push(".partial");
        Self { target: target.to_path_buf(), partial: partial.into(), committed: false }
    }

    /// The path of the temporary file.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Synchronizes the file to disk and renames it to the target, which it replaces; the writer must have closed it.
    ///
    /// # Errors
    /// If the file or its folder cannot be synchronized, or the file cannot be renamed. The target is unchanged, unless only its folder could
    /// not be synchronized: it is then replaced.
    pub fn commit(mut self) -> io::Result<()> {
        self.sync()?;
        self.rename()?;
        sync_folder_of(&self.target)
    }

    /// Synchronizes the file to disk; the writer must have closed it.
    ///
    /// # Errors
    /// If that fails.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.partial)?.sync_all()
    }

    /// Renames the file to the target; call [`sync`](Self::sync) before. Whether the folder can be synchronized does not matter: if not, the old
    /// or the new file may be at the target after a loss of power.
    ///
    /// # Errors
    /// If the file cannot be renamed; the target is then unchanged.
    pub fn commit_synchronized(mut self) -> io::Result<()> {
        self.rename()?;
        drop(sync_folder_of(&self.target));
        Ok(())
    }

    fn rename(&mut self) -> io::Result<()> {
        std::fs::rename(&self.partial, &self.target)?;
        self.committed = true;
        Ok(())
    }
}

/// The folder that has this file.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Synchronizes the folder that has this file.
pub fn sync_folder_of(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.committed {
            // The file may not exist, and a destructor cannot report errors.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
