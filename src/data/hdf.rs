//! The few HDF5 calls that all of our files share: opening without locks, texts and lists of names.

use hdf5::types::VarLenUnicode;
use hdf5::{File, Group, H5Type, Location};
use std::path::Path;
use std::str::FromStr;

/// Opens a file for reading. Without locks: any number of ranks may read it, also on network file systems that have no locks, and
/// our files are only ever replaced as a whole, so that an open one never changes.
pub(crate) fn open(path: &Path) -> hdf5::Result<File> {
    File::with_options().with_fapl(|access| access.file_locking(false)).open(path)
}

/// Opens a file of our own to change it; nobody else may have it open.
pub(crate) fn open_rw(path: &Path) -> hdf5::Result<File> {
    File::with_options().with_fapl(|access| access.file_locking(false)).open_rw(path)
}

/// Creates a file, or empties the one that is there.
pub(crate) fn create(path: &Path) -> hdf5::Result<File> {
    File::with_options().with_fapl(|access| access.file_locking(false)).create(path)
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

/// Reads a text attribute.
pub(crate) fn read_text(at: &Location, name: &str) -> hdf5::Result<String> {
    Ok(at.attr(name)?.read_scalar::<VarLenUnicode>()?.as_str().to_owned())
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
    Ok(at.attr(name)?.read_raw::<VarLenUnicode>()?.iter().map(|value| value.as_str().to_owned()).collect())
}

/// Writes a list of names as a dataset.
pub(crate) fn write_names(at: &Group, name: &str, values: &[String]) -> hdf5::Result<()> {
    at.new_dataset_builder().with_data(texts(values)?.as_slice()).obj_track_times(false).create(name).map(drop)
}

/// Reads a list of names from a dataset.
pub(crate) fn read_names(at: &Group, name: &str) -> hdf5::Result<Vec<String>> {
    Ok(at.dataset(name)?.read_raw::<VarLenUnicode>()?.iter().map(|value| value.as_str().to_owned()).collect())
}
