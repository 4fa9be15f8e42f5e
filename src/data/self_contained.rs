//! Refuses HDF5 files that name other files: external links, external storage, virtual datasets and filter plugins.
//!
//! The HDF5 library follows such names with the rights of the user who opens the file. A dataset from somebody else could therefore read
//! any file of that user, and a result file could write to one. No file of this program has such names.
//!
//! A filter of a dataset is a number. The library looks for plugins of that number in `HDF5_PLUGIN_PATH` and loads them as code, also for
//! groups, whose links can be compressed. [`disable_plugins`] turns this off for the whole process.

use hdf5::dataset::Layout;
use hdf5::{Dataset, Group, LinkType, LocationToken, LocationType};
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_uint};
use std::ptr::null_mut;

/// The most links of a file, which bounds the time of a check. Files of this program have a few hundred.
const MAX_LINKS: usize = 1 << 16;
/// The most characters of a name in a message.
const SHOWN: usize = 100;
/// The most bytes that a byte of a file can stand for: deflate has at most 1032.
const MAX_RATIO: u64 = 1100;
/// Arrays up to this size are never too large.
const ALWAYS_ALLOWED: u64 = 64 << 20;
/// The filters that are part of the library: deflate, shuffle, Fletcher32, n-bit and scale-offset. Szip is missing in some builds.
const BUILT_IN_FILTERS: [c_int; 5] = [1, 2, 3, 5, 6];

// The hdf5 crate links the C library but does not re-export these functions. Its own list of filters panics if a filter has more than 32
// parameters, and its own list of external files is empty if it cannot be read.
unsafe extern "C" {
    fn H5PLset_loading_state(kinds: c_uint) -> c_int;
    fn H5Pget_external_count(properties: i64) -> c_int;
    fn H5Pget_nfilters(properties: i64) -> c_int;
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
    /// The library cannot read it.
    Unreadable(hdf5::Error),
    /// It names other files: what is wrong, and what to do.
    NotSelfContained(String),
}

impl From<hdf5::Error> for Refusal {
    fn from(error: hdf5::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<Refusal> for hdf5::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unreadable(error) => error,
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
    let mut seen = HashSet::from([key(root.loc_info()?.token)]);
    let mut groups = vec![(root.clone(), String::new())];
    let most_bytes = root.file()?.size().saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED);
    let mut left = MAX_LINKS;
    while let Some((group, path)) = groups.pop() {
        // All links of a group are known before one is followed: a name such as `a/b` could lead through an external link `a`.
        for name in hard_links(&group, &path, &mut left)? {
            let info = group.loc_info_by_name(&name)?;
            // Hard links may form cycles.
            if !seen.insert(key(info.token)) {
                continue;
            }
            let path = joined(&path, &name);
            match info.loc_type {
                LocationType::Group => groups.push((root.open_by_token(info.token)?.as_group()?, path)),
                LocationType::Dataset => check_dataset(&group.dataset(&name)?, &path, most_bytes)?,
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
            "its link '{path}' leads to another file, which would be opened with your rights. Copy the data into one file, or import them \
             again"
        ));
    }
    // The library would read a slash as a path, and the name as it is here differs from the one in the file if that is not UTF-8.
    let is_clear = !name.is_empty() && name != "." && !name.contains(['/', char::REPLACEMENT_CHARACTER]);
    (!is_clear).then(|| format!("its link '{path}' has a name that no file of mpibayes has. Make the file again"))
}

/// Checks that the values of a dataset lie in its file, that no plugin is needed to read them, and that they are not too many.
fn check_dataset(data: &Dataset, path: &str, most_bytes: u64) -> Result<(), Refusal> {
    let properties = data.create_plist()?;
    let unreadable = |what: &str| Refusal::Unreadable(hdf5::Error::Internal(format!("cannot read {what} of '{path}'")));
    // SAFETY: the list of properties is open, and the library is locked.
    let external = hdf5::sync::sync(|| unsafe { H5Pget_external_count(properties.id()) });
    match external {
        0 => {}
        1.. => {
            return Err(Refusal::NotSelfContained(format!(
                "the values of its array '{path}' lie in another file, which would be opened with your rights. Copy the data into one file \
                 with `h5repack`, or import them again"
            )));
        }
        _ => return Err(unreadable("the external files")),
    }
    if properties.get_layout()? == Layout::Virtual {
        return Err(Refusal::NotSelfContained(format!(
            "its array '{path}' is a virtual dataset, which reads other files with your rights. Copy the data into one file with \
             `h5repack -l CONTI`, or import them again"
        )));
    }
    // SAFETY: the list of properties is open, and the library is locked.
    let filters = hdf5::sync::sync(|| unsafe { H5Pget_nfilters(properties.id()) });
    for at in 0..c_uint::try_from(filters).map_err(|_| unreadable("the filters"))? {
        // SAFETY: as before; the library writes only the flags, because everything else is null or of length 0.
        let filter = hdf5::sync::sync(|| unsafe {
            H5Pget_filter2(properties.id(), at, &mut 0, null_mut(), null_mut(), 0, null_mut(), null_mut())
        });
        if !BUILT_IN_FILTERS.contains(&filter) {
            return Err(Refusal::NotSelfContained(format!(
                "its array '{path}' is compressed with the filter {filter}, which needs a plugin, and mpibayes loads none. Compress it anew \
                 with `h5repack -f SHUF -f GZIP=1`, where the plugin is installed"
            )));
        }
    }
    // Small values become numbers of eight bytes.
    let (shape, value) = (data.shape(), data.dtype()?.size().max(size_of::<f64>()));
    let bytes = shape.iter().try_fold(value, |bytes, &length| bytes.checked_mul(length));
    if bytes.and_then(|bytes| u64::try_from(bytes).ok()).is_none_or(|bytes| bytes > most_bytes) {
        return Err(Refusal::NotSelfContained(format!(
            "its array '{path}' would have {shape:?} values, far more than a file of this size holds. The file is damaged: restore it, or make it \
             again"
        )));
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
