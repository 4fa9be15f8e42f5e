//! Files that appear whole or not at all: written beside the target, made durable, then renamed over it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file under construction: `NAME.partial`, removed again unless it is committed.
#[derive(Debug)]
pub struct PartialFile {
    target: PathBuf,
    partial: PathBuf,
    committed: bool,
}

impl PartialFile {
    /// Announces a file that shall become `target`; nothing is created yet.
    pub fn new(target: &Path) -> Self {
        let mut partial: OsString = target.as_os_str().to_owned();
        partial.push(".partial");
        Self { target: target.to_path_buf(), partial: partial.into(), committed: false }
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Makes the written file durable and gives it its name, replacing an older one; the writer must have closed it.
    ///
    /// # Errors
    /// When the file cannot be synchronised or renamed; the target is then as it was before.
    pub fn commit(mut self) -> io::Result<()> {
        File::open(&self.partial)?.sync_all()?;
        std::fs::rename(&self.partial, &self.target)?;
        self.committed = true;
        let folder = match self.target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)?.sync_all()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.committed {
            // It may never have been created, and in a destructor there is nobody to tell.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
