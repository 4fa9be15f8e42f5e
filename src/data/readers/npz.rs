//! Reads NumPy's NPZ files: NPY arrays in a ZIP archive.

use crate::data::error::{DataError, Place, Result, listed};
use crate::data::readers::npy::Npy;
use crate::data::readers::source::{MAX_INFLATION, Source};
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use zip::ZipArchive;
use zip::result::ZipError;

/// The first bytes of an NPZ file that is not empty.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

/// An archive of arrays.
pub struct Npz<R> {
    path: PathBuf,
    archive: ZipArchive<R>,
}

impl<R: Read + Seek> Npz<R> {
    /// Reads the table of contents.
    ///
    /// # Errors
    /// If it is not a ZIP archive.
    pub fn open(path: &Path, reader: R) -> Result<Self> {
        let archive = ZipArchive::new(reader).map_err(|error| zip_error(path, error))?;
        Ok(Self { path: path.to_path_buf(), archive })
    }

    /// The names of the arrays.
    pub fn names(&self) -> Vec<String> {
        self.archive.file_names().filter_map(|name| Some(name.ok()?.strip_suffix(".npy")?.to_owned())).collect()
    }

    /// Opens an array.
    ///
    /// # Errors
    /// If there is no array of this name, or it is damaged; see [`Npy::open`].
    pub fn array(&mut self, name: &str) -> Result<Npy<'_>> {
        let names = self.names();
        let path = &self.path;
        let member = self.archive.by_name(&format!("{name}.npy")).map_err(|error| match error {
            ZipError::FileNotFound => {
                let what = format!("there is no array {name:?} here: it has {}", listed(&names));
                DataError::content(path, Place::File, what)
            }
            error => zip_error(path, error),
        })?;
        let most_bytes = member.compressed_size().saturating_mul(MAX_INFLATION);
        let path = PathBuf::from(format!("{}[{name}]", path.display()));
        let mut reader = BufReader::with_capacity(1 << 16, member);
        let head = reader.fill_buf().map_err(|error| crate::data::readers::source::read_error(&path, Place::File, error))?;
        if head.is_empty() {
            return Err(DataError::content(&path, Place::File, "the array is empty: save the file again"));
        }
        Npy::open(Source { path, reader: Box::new(reader), most_bytes })
    }
}

fn zip_error(path: &Path, error: ZipError) -> DataError {
    match error {
        ZipError::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof && error.raw_os_error().is_some() => {
            DataError::io(path, "read")(error)
        }
        error => {
            DataError::content(path, Place::File, format!("this NPZ file is damaged or cut short ({error}): fetch it again"))
        }
    }
}
