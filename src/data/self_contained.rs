//! Refuses HDF5 files that refer to other files: external links, external storage, virtual datasets and filter plugins.
//!
//! The HDF5 library opens the other files with the rights of the user who opens the file. A dataset from somebody else could therefore read
//! any file of that user, and a result file could write to one. No file of this program refers to others.
//!
//! A filter of a dataset is a number. The library looks for plugins of that number in `HDF5_PLUGIN_PATH` and loads them as code, also for
//! groups, whose links can be compressed. [`disable_plugins`] turns this off for the whole process.

use crate::text;
use hdf5::dataset::Layout;
use hdf5::{Dataset, Group, LinkType, LocationToken, LocationType};
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_uint};
use std::ptr::null_mut;

/// The most links of a file, which bounds the time of a check. Files of this program have a few hundred.
const MAX_LINKS: usize = 1 << 16;
/// The most characters of a name in a message.
const SHOWN: usize = 100;
/// Maximum compression ratio: deflate has at most 1032.
const MAX_RATIO: u64 = 1100;
/// Arrays up to this size, with at least [`LEAST_OF_VALUE`] for a value, are never too large.
const ALWAYS_ALLOWED: u64 = 64 << 20;
/// The least bytes that a value counts as: those of one or two bytes become longer ones in memory.
const LEAST_OF_VALUE: usize = 4;
/// Names of filters for messages.
const FILTER_NAMES: [(c_int, &str); 17] = [
    (1, "deflate"),
    (2, "shuffle"),
    (3, "fletcher32"),
    (4, "szip"),
    (5, "n-bit"),
    (6, "scale-offset"),
    (305, "lzo"),
    (307, "bzip2"),
    (32000, "lzf"),
    (32001, "blosc"),
    (32004, "lz4"),
    (32008, "bitshuffle"),
    (32013, "zfp"),
    (32015, "zstd"),
    (32017, "sz"),
    (32024, "sz3"),
    (32026, "blosc2"),
];

// The hdf5 crate links the C library but does not re-export these functions. Its own list of filters panics if a filter has more than 32
// parameters, and its own list of external files is empty if it cannot be read.
unsafe extern "C" {
    fn H5PLset_loading_state(kinds: c_uint) -> c_int;
    fn H5Pget_external_count(properties: i64) -> c_int;
    fn H5Pget_nfilters(properties: i64) -> c_int;
    fn H5Zfilter_avail(filter: c_int) -> c_int;
    fn H5Dget_storage_size(dataset: i64) -> u64;
    fn H5Pget_filter2(
        properties: i64,
        at: c_uint,
        flags: *mut c_uint,
        parameters: *mut usize,
        values: *mut c_uint,
        length: usize,
        name: *mut c_char,
        config: *mut c_uint,
    ) -> c_int;
}

/// Why a file is not opened.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The library cannot open it.
    Unreadable(hdf5::Error),
    /// It refers to other files, or has arrays that it cannot hold: what is wrong, and what to do.
    NotSelfContained(String),
    /// One of its objects cannot be read: which, why, and what to do. The cause may pass.
    Unchecked(hdf5::Error),
}

impl From<hdf5::Error> for Refusal {
    fn from(error: hdf5::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<Refusal> for hdf5::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unreadable(error) | Refusal::Unchecked(error) => error,
            Refusal::NotSelfContained(what) => Self::Internal(what),
        }
    }
}

/// Turns off the loading of HDF5 plugins in this process.
pub(crate) fn disable_plugins() -> hdf5::Result<()> {
    // SAFETY: a call without pointers, and the library is locked.
    match hdf5::sync::sync(|| unsafe { H5PLset_loading_state(0) }) {
        ..0 => Err(hdf5::Error::Internal("cannot turn off the loading of HDF5 plugins".into())),
        _ => Ok(()),
    }
}

/// Checks that everything in the file lies in the file. Reads no values.
///
/// Soft links are allowed: they lead to objects of the same file, all of which are checked.
pub(crate) fn check(root: &Group) -> Result<(), Refusal> {
    let mut object = String::new();
    check_objects(root, &mut object).map_err(|refusal| match refusal {
        // This is an HDF5 file: it is damaged, or the disk or the network fails.
        Refusal::Unreadable(cause) => Refusal::Unchecked(hdf5::Error::Internal(format!(
            "its object '/{object}' cannot be read: {cause}. Try again. If that does not help, restore the file"
        ))),
        refusal => refusal,
    })
}

/// Checks all objects of a file. `object` is the path of the one that is read, for messages.
fn check_objects(root: &Group, object: &mut String) -> Result<(), Refusal> {
    let mut seen = HashSet::from([key(root.loc_info()?.token)]);
    let mut groups = vec![(root.clone(), String::new())];
    let file_bytes = root.file()?.size();
    let mut left = MAX_LINKS;
    while let Some((group, path)) = groups.pop() {
        object.clone_from(&path);
        // All links of a group are known before one is followed: a name such as `a/b` could lead through an external link `a`.
        for name in hard_links(&group, &path, &mut left)? {
            *object = joined(&path, &name);
            let info = group.loc_info_by_name(&name)?;
            // Hard links may form cycles.
            if !seen.insert(key(info.token)) {
                continue;
            }
            let path = object.clone();
            match info.loc_type {
                LocationType::Group => groups.push((root.open_by_token(info.token)?.as_group()?, path)),
                LocationType::Dataset => check_dataset(&group.dataset(&name)?, &path, file_bytes)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// The names of the hard links of a group.
fn hard_links(group: &Group, path: &str, left: &mut usize) -> Result<Vec<String>, Refusal> {
    let mut names = Vec::new();
    let mut refused = None;
    group.find_link(Default::default(), Default::default(), |name, info| {
        let what = match left.checked_sub(1) {
            None => Some(format!("it has more than {MAX_LINKS} links, which no file of mpibayes has. Make it again")),
            Some(less) => {
                *left = less;
                what_is_wrong(&joined(path, name), name, info.link_type)
            }
        };
        if what.is_none() && info.link_type == LinkType::Hard {
            names.push(name.to_owned());
        }
        refused = what;
        Ok(refused.is_some().then_some(()))
    })?;
    refused.map_or(Ok(names), |what| Err(Refusal::NotSelfContained(what)))
}

fn what_is_wrong(path: &str, name: &str, link: LinkType) -> Option<String> {
    if link == LinkType::External {
        return Some(format!(
            "its link '{path}' leads to another file, which would be opened with your rights. Ask for a file that contains its \
             data, or import them again"
        ));
    }
    // The library would read a slash as a path, and the name as it is here differs from the one in the file if that is not UTF-8.
    let is_clear = !name.is_empty() && name != "." && !name.contains(['/', char::REPLACEMENT_CHARACTER]);
    (!is_clear).then(|| format!("its link '{path}' has a name that no file of mpibayes has. Make the file again"))
}

/// Checks that the values of a dataset lie in its file, that no plugin is needed to read them, and that they are not too many.
fn check_dataset(data: &Dataset, path: &str, file_bytes: u64) -> Result<(), Refusal> {
    let properties = data.create_plist()?;
    let unreadable = |what: &str| Refusal::Unreadable(hdf5::Error::Internal(format!("{what} are damaged")));
    // SAFETY: the list of properties is open, and the library is locked.
    let external = hdf5::sync::sync(|| unsafe { H5Pget_external_count(properties.id()) });
    match external {
        0 => {}
        1.. => {
            return Err(Refusal::NotSelfContained(format!(
                "the values of its array '{path}' lie in another file, which would be opened with your rights. Ask for a file that \
                 contains its data; if you trust this one: h5repack FILE.h5 NEW.h5"
            )));
        }
        _ => return Err(unreadable("the external files")),
    }
    let layout = properties.get_layout()?;
    if layout == Layout::Virtual {
        return Err(Refusal::NotSelfContained(format!(
            "its array '{path}' is a virtual dataset, which reads other files with your rights. Ask for a file that contains its \
             data; if you trust this one: h5repack -l CONTI FILE.h5 NEW.h5"
        )));
    }
    check_filters(&filters(properties.id()).ok_or_else(|| unreadable("the filters"))?, path)?;
    let (shape, value) = (data.shape(), data.dtype()?.size());
    // A chunk is read as a whole.
    let chunk = properties.get_chunk()?.filter(|_| !shape.contains(&0));
    let of_chunk = chunk.map(|chunk| (format!("its array '{path}' has chunks of the shape {chunk:?}"), chunk));
    for (has, shape) in [(format!("its array '{path}' has the shape {shape:?}"), shape)].into_iter().chain(of_chunk) {
        if size(&shape, value.max(LEAST_OF_VALUE)) > ALWAYS_ALLOWED {
            check_size(data, layout, file_bytes, size(&shape, value), &has)?;
        }
    }
    Ok(())
}

/// The bytes of an array of this shape.
fn size(shape: &[usize], value: usize) -> u64 {
    // An array without values has none, however long its other dimensions are.
    if shape.contains(&0) { 0 } else { shape.iter().fold(value as u64, |bytes, &length| bytes.saturating_mul(length as u64)) }
}

/// Checks that an array, or a chunk of it, is not larger than its bytes in the file justify. `has` is its shape, for the message.
fn check_size(data: &Dataset, layout: Layout, file_bytes: u64, bytes: u64, has: &str) -> Result<(), Refusal> {
    // To count the stored bytes takes long if there are many chunks.
    if layout == Layout::Chunked && bytes <= file_bytes {
        return Ok(());
    }
    // SAFETY: the dataset is open, and the library is locked.
    let stored = hdf5::sync::sync(|| unsafe { H5Dget_storage_size(data.id()) });
    // The file states the number of stored bytes, and may be wrong.
    let stored = stored.min(file_bytes);
    if is_plausible(bytes, stored, layout) {
        return Ok(());
    }
    let (needed, stored) = (text::bytes(bytes), text::bytes(stored));
    Err(Refusal::NotSelfContained(format!(
        "{has}, which needs {needed}, but the file has {stored} for it: restore the file, or import the data again"
    )))
}

/// Whether an array, or a chunk of it, may need this many bytes of memory if this many are stored.
///
/// Chunks can be compressed. Chunks that were never written take no space in a file: with chains of different lengths, result files of this
/// program have many of them. Other layouts store all values as they are.
fn is_plausible(bytes: u64, stored: u64, layout: Layout) -> bool {
    let ratio = if layout == Layout::Chunked { MAX_RATIO } else { 1 };
    bytes <= stored.saturating_mul(ratio)
}

/// The filters of a dataset with these properties, unless they cannot be read.
fn filters(properties: i64) -> Option<Vec<c_int>> {
    // SAFETY: the list of properties is open, and the library is locked.
    let count = hdf5::sync::sync(|| unsafe { H5Pget_nfilters(properties) });
    let filter = |at| {
        // SAFETY: as before; the library writes only the flags, because everything else is null or of length 0.
        hdf5::sync::sync(|| unsafe { H5Pget_filter2(properties, at, &mut 0, null_mut(), null_mut(), 0, null_mut(), null_mut()) })
    };
    (0..c_uint::try_from(count).ok()?).map(|at| Some(filter(at)).filter(|&filter| filter >= 0)).collect()
}

/// Checks that the library has all filters of an array, and that none is applied twice: deflate after deflate has a compression ratio of
/// more than a million, which no size of a file bounds.
fn check_filters(filters: &[c_int], path: &str) -> Result<(), Refusal> {
    for (at, &filter) in filters.iter().enumerate() {
        let name =
            FILTER_NAMES.iter().find(|named| named.0 == filter).map_or_else(String::new, |named| format!(" ({})", named.1));
        // SAFETY: a call without pointers, and the library is locked. It loads no plugins, because `disable_plugins` was called.
        let is_available = hdf5::sync::sync(|| unsafe { H5Zfilter_avail(filter) }) > 0;
        if !is_available {
            return Err(Refusal::NotSelfContained(format!(
                "its array '{path}' is compressed with the HDF5 filter {filter}{name}, which needs a plugin, and mpibayes loads none. Compress it \
                 again with `h5repack -f SHUF -f GZIP=1`, where the plugin is installed"
            )));
        }
        if filters[..at].contains(&filter) {
            return Err(Refusal::NotSelfContained(format!(
                "its array '{path}' has the HDF5 filter {filter}{name} twice, which no file of mpibayes has. Make the file again"
            )));
        }
    }
    Ok(())
}

/// What tells objects apart: tokens have neither hash nor order.
fn key(token: LocationToken) -> String {
    format!("{token:?}")
}

/// The path of a link for messages, not longer than they need.
fn joined(path: &str, name: &str) -> String {
    let full = path.chars().chain((!path.is_empty()).then_some('/')).chain(name.chars());
    full.map(|character| if character.is_control() { '?' } else { character }).take(SHOWN).collect()
}

#[cfg(test)]
mod tests;
