//! The few HDF5 calls that all of our files share: opening without locks, texts and lists of names.

use super::self_contained::{self, Refusal};
use hdf5::file::FileBuilder;
use hdf5::types::VarLenUnicode;
use hdf5::{File, Group, H5Type, Location};
use std::collections::HashSet;
use std::path::Path;
use std::str::FromStr;

/// The root attribute `format` of datasets and of result files.
pub(crate) const DATASET_FORMAT: &str = "mpibayes-dataset";
pub(crate) const RESULT_FORMAT: &str = "mpibayes-run";

/// The first bytes of an HDF5 file.
pub(crate) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// The names that are read at a time.
const NAMES_PER_READ: usize = 256;

/// Opens a file for reading. Without locks: any number of ranks may read it, also on network file systems that have no locks, and
/// our files are only ever replaced as a whole, so that an open one never changes.
///
/// # Errors
/// If the library cannot open the file, or it refers to other files.
pub(crate) fn open(path: &Path) -> Result<File, Refusal> {
    let file = unlocked()?.open(path)?;
    self_contained::check(&file)?;
    Ok(file)
}

/// Opens a file of our own to change it; nobody else may have it open.
///
/// # Errors
/// If the library cannot open the file, or it refers to other files.
pub(crate) fn open_rw(path: &Path) -> Result<File, Refusal> {
    let file = unlocked()?.open_rw(path)?;
    self_contained::check(&file)?;
    Ok(file)
}

/// Creates a file, or empties the one that is there.
pub(crate) fn create(path: &Path) -> hdf5::Result<File> {
    unlocked()?.create(path)
}

/// The options of all files.
fn unlocked() -> hdf5::Result<FileBuilder> {
    self_contained::disable_plugins()?;
    let mut options = File::with_options();
    options.with_fapl(|access| access.file_locking(false));
    Ok(options)
}

fn text(value: &str) -> hdf5::Result<VarLenUnicode> {
    VarLenUnicode::from_str(value).map_err(|error| hdf5::Error::Internal(format!("text {value:?}: {error}")))
}

/// Writes a text attribute, over an older one.
pub(crate) fn write_text(at: &Location, name: &str, value: &str) -> hdf5::Result<()> {
    write_scalar(at, name, &text(value)?)
}

/// Writes an attribute of one value, over an older one of its type.
pub(crate) fn write_scalar<T: H5Type>(at: &Location, name: &str, value: &T) -> hdf5::Result<()> {
    let attribute = match at.attr(name) {
        Ok(older) => older,
        Err(_) => at.new_attr::<T>().create(name)?,
    };
    attribute.write_scalar(value)
}

/// A text from a file. The library does not check that it is UTF-8, and its `as_str` relies on it.
fn checked_text(value: &VarLenUnicode) -> hdf5::Result<String> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(str::to_owned).map_err(|error| hdf5::Error::Internal(format!("a text in the file is not UTF-8: {error}")))
}

/// Reads a text attribute.
pub(crate) fn read_text(at: &Location, name: &str) -> hdf5::Result<String> {
    checked_text(&at.attr(name)?.read_scalar()?)
}

/// Texts as the library takes them.
pub(crate) fn texts(values: &[String]) -> hdf5::Result<Vec<VarLenUnicode>> {
    values.iter().map(|value| text(value)).collect()
}

/// Writes a list of names as an attribute.
pub(crate) fn write_names_attribute(at: &Location, name: &str, values: &[String]) -> hdf5::Result<()> {
    at.new_attr_builder().with_data(texts(values)?.as_slice()).create(name).map(drop)
}

/// Reads a list of names from an attribute.
pub(crate) fn read_names_attribute(at: &Location, name: &str) -> hdf5::Result<Vec<String>> {
    at.attr(name)?.read_raw::<VarLenUnicode>()?.iter().map(checked_text).collect()
}

/// Refuses a list that names an object of a group twice: an object that is listed many times would be read into memory many times.
///
/// # Errors
/// If a name is repeated.
pub(crate) fn distinct(names: Vec<String>) -> hdf5::Result<Vec<String>> {
    let mut seen = HashSet::new();
    // The library reads `.//x` as `x`.
    let parts = |name: &str| name.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/");
    match names.iter().find(|name| !seen.insert(parts(name))) {
        Some(name) => Err(hdf5::Error::Internal(format!("{name:?} is listed twice. The file is damaged: restore it"))),
        None => Ok(names),
    }
}

/// Writes a list of names as a dataset.
pub(crate) fn write_names(at: &Group, name: &str, values: &[String]) -> hdf5::Result<()> {
    at.new_dataset_builder().with_data(texts(values)?.as_slice()).obj_track_times(false).create(name).map(drop)
}

/// Reads a list of names from a dataset, a block at a time: a name in a file can be stored once and listed many times, so that a list of
/// names can be larger than the file.
///
/// # Errors
/// If it cannot be read, or is larger than the file, as lists that this program writes never are.
pub(crate) fn read_names(at: &Group, name: &str) -> hdf5::Result<Vec<String>> {
    let data = at.dataset(name)?;
    let (length, most_bytes) = (data.size(), data.file()?.size());
    let (mut names, mut bytes) = (Vec::new(), 0_u64);
    for first in (0..length).step_by(NAMES_PER_READ) {
        for name in data.read_slice_1d::<VarLenUnicode, _>(first..length.min(first + NAMES_PER_READ))? {
            bytes = bytes.saturating_add(name.as_bytes().len() as u64);
            if bytes > most_bytes {
                return Err(hdf5::Error::Internal(format!("the names in {} are longer than the file", data.name())));
            }
            names.push(checked_text(&name)?);
        }
    }
    Ok(names)
}
