//! Checks that the draws in a result file are all there, and that none is damaged.

use super::draws;
use super::error::{REMEDY, Result, ResultsError, system_error};
use super::netcdf::{self, blocks};
use super::read::ResultFile;
use super::samples::SampleGroup;
use crate::cluster::record::Extents;
use hdf5::{Dataset, H5Type};
use ndarray::ArrayD;
use std::path::Path;

/// Checks that a file has the draws up to these extents, and reads them: the library compares their checksums.
///
/// # Errors
/// If draws are missing or damaged, or the file cannot be read now.
pub(super) fn check_draws(path: &Path, groups: &[SampleGroup], extents: &Extents) -> Result<()> {
    let checked = || {
        let file = ResultFile::open(path)?;
        check_lengths(&file, groups, extents)?;
        groups.iter().filter(|group| extents.chains(&group.name) > 0).try_for_each(|group| {
            let lengths = draws::lengths(extents, &group.name);
            read_all(&file, &group.name, [lengths.len(), lengths.into_iter().max().unwrap_or(0)])
        })
    };
    checked().map_err(|error| match error {
        // Without an error number of the operating system, the content is at fault.
        ResultsError::Hdf5 { path, doing, source } if system_error(&source).is_none() => {
            let what = format!("this file is damaged (cannot {doing}: {source}): {REMEDY}");
            ResultsError::Content { path, what }
        }
        error => error,
    })
}

/// Checks that a file has the draws up to these extents.
///
/// # Errors
/// If it has not, or cannot be read.
pub(super) fn check_lengths(file: &ResultFile, groups: &[SampleGroup], extents: &Extents) -> Result<()> {
    for group in groups {
        let chains = extents.chains(&group.name);
        if chains == 0 {
            continue;
        }
        let there = file.lengths(&group.name)?;
        // The chains of a damaged checkpoint may be too many for a list.
        let wanted = if chains <= there.len() as u64 { draws::lengths(extents, &group.name) } else { vec![usize::MAX] };
        if wanted.iter().enumerate().any(|(chain, wanted)| there.get(chain).is_none_or(|there| there < wanted)) {
            let what = format!("this file has fewer draws than were saved: {REMEDY}");
            return Err(ResultsError::Content { path: file.path().to_path_buf(), what });
        }
    }
    Ok(())
}

/// Reads so many draws of so many chains of a group, and forgets them.
fn read_all(file: &ResultFile, group: &str, [chains, draws]: [usize; 2]) -> Result<()> {
    let (_, _, parts) = file.shape(group)?;
    let read = || -> hdf5::Result<()> {
        let at = file.file.group(group)?;
        for part in parts {
            let data = at.dataset(&part.name)?;
            let shape = [&[chains, draws], &part.shape[..]].concat();
            let kind = data.dtype()?;
            if kind.is::<f32>() {
                read_blocks::<f32>(&data, &shape)?;
            } else if kind.is::<f64>() {
                read_blocks::<f64>(&data, &shape)?;
            } else {
                read_blocks::<i32>(&data, &shape)?;
            }
        }
        Ok(())
    };
    read().map_err(ResultsError::hdf5(file.path(), format!("read the draws of {group:?}")))
}

fn read_blocks<T: H5Type>(data: &Dataset, shape: &[usize]) -> hdf5::Result<()> {
    for block in blocks(shape) {
        data.read_slice::<T, _, _>(netcdf::slab(block)).map(|_: ArrayD<T>| ())?;
    }
    Ok(())
}
