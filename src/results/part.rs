//! Reading draws by variable or by single draws, for groups that do not fit into memory.

use super::error::{Result, ResultsError};
use super::read::{ResultFile, read_parts};
use super::samples::{SampleKind, Values};
use crate::data::hdf;
use crate::models::Part;
use crate::number::Real;
use hdf5::{H5Type, Hyperslab, SliceOrIndex};
use ndarray::{Array2, ArrayViewMut1, IxDyn};
use std::slice::from_ref;

impl ResultFile {
    /// The kind of the draws of a group.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn kind(&self, group: &str) -> Result<SampleKind> {
        let at = self.file.group(group).map_err(ResultsError::hdf5(&self.path, format!("find the draws of {group:?}")))?;
        Ok(hdf::read_text(&at, "draws").ok().and_then(|name| SampleKind::named(&name)).unwrap_or_default())
    }

    /// The number of draws of each chain of a group, which can differ during a run.
    ///
    /// # Errors
    /// When there is no such group, or it cannot be read.
    pub fn lengths(&self, group: &str) -> Result<Vec<usize>> {
        let (chains, draws, _) = self.shape(group)?;
        let at = self.file.group(group).map_err(ResultsError::hdf5(&self.path, format!("find the draws of {group:?}")))?;
        let text = hdf::read_text(&at, "draws_per_chain").ok();
        let lengths =
            text.and_then(|text| text.split_whitespace().map(|length| length.parse().ok()).collect::<Option<Vec<usize>>>());
        // In a file of `write_run` all chains have the same length.
        Ok(lengths.filter(|lengths| lengths.len() == chains).unwrap_or_else(|| vec![draws; chains]))
    }

    /// One variable of a group: chains × draws × its values.
    ///
    /// # Errors
    /// When there is no such part, or it cannot be read.
    pub fn part(&self, group: &str, part: &Part) -> Result<Values> {
        let read = || -> hdf5::Result<Values> {
            let at = self.file.group(group)?;
            let data = at.dataset(&part.name)?;
            let (kind, shape) = (data.dtype()?, data.shape());
            let [chains, draws, ..] = shape[..] else {
                return Err(hdf5::Error::Internal(format!("{} has no dimensions for chains and draws", part.name)));
            };
            let part = from_ref(part);
            if kind.is::<f32>() {
                read_parts(&at, chains, draws, part).map(Values::F32)
            } else if kind.is::<f64>() {
                read_parts(&at, chains, draws, part).map(Values::F64)
            } else {
                read_parts(&at, chains, draws, part).map(Values::I32)
            }
        };
        read().map_err(ResultsError::hdf5(&self.path, format!("read {:?} of {group:?}", part.name)))
    }

    /// Single draws of a group, each by chain and index, as rows over all variables.
    ///
    /// # Errors
    /// When there is no such group or draw, or it cannot be read.
    pub fn draws<F: Real>(&self, group: &str, places: &[(usize, usize)]) -> Result<Array2<F>> {
        let (_, _, parts) = self.shape(group)?;
        let mut draws = Array2::zeros((places.len(), parts.iter().map(Part::size).sum()));
        let mut start = 0;
        let mut read = || -> hdf5::Result<()> {
            let at = self.file.group(group)?;
            for part in &parts {
                let data = at.dataset(&part.name)?;
                let kind = data.dtype()?;
                for (&place, mut draw) in places.iter().zip(draws.rows_mut()) {
                    let own = draw.slice_mut(ndarray::s![start..start + part.size()]);
                    if kind.is::<f32>() {
                        read_draw::<f32, F>(&data, place, &part.shape, own)?;
                    } else if kind.is::<f64>() {
                        read_draw::<f64, F>(&data, place, &part.shape, own)?;
                    } else {
                        read_draw::<i32, F>(&data, place, &part.shape, own)?;
                    }
                }
                start += part.size();
            }
            Ok(())
        };
        read().map_err(ResultsError::hdf5(&self.path, format!("read draws of {group:?}")))?;
        Ok(draws)
    }
}

fn read_draw<T: H5Type + Copy + Into<f64>, F: Real>(
    data: &hdf5::Dataset,
    (chain, draw): (usize, usize),
    shape: &[usize],
    mut own: ArrayViewMut1<F>,
) -> hdf5::Result<()> {
    let slab = [chain..chain + 1, draw..draw + 1].into_iter().chain(shape.iter().map(|&side| 0..side));
    let slab = Hyperslab::from(slab.map(SliceOrIndex::from).collect::<Vec<_>>());
    let numbers = data.read_slice::<T, _, IxDyn>(slab)?;
    own.iter_mut().zip(&numbers).for_each(|(own, &number)| *own = F::of(number.into()));
    Ok(())
}
