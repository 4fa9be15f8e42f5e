//! Reading a group of draws part by part, where all of it at once would fill the memory.

use super::error::{Result, ResultsError};
use super::read::{RunFile, read_parts};
use super::samples::{SampleKind, Values};
use crate::data::hdf;
use crate::models::Part;
use std::slice::from_ref;

impl RunFile {
    /// What the draws of a group are.
    ///
    /// # Errors
    /// When there is no such group.
    pub fn kind(&self, group: &str) -> Result<SampleKind> {
        let at = self.file.group(group).map_err(ResultsError::hdf5(&self.path, format!("find the draws of {group:?}")))?;
        Ok(hdf::read_text(&at, "draws").ok().and_then(|name| SampleKind::named(&name)).unwrap_or_default())
    }

    /// How many draws each chain of a group has: while a run goes on, some are ahead of others.
    ///
    /// # Errors
    /// When there is no such group, or it cannot be read.
    pub fn lengths(&self, group: &str) -> Result<Vec<usize>> {
        let (chains, draws, _) = self.shape(group)?;
        let at = self.file.group(group).map_err(ResultsError::hdf5(&self.path, format!("find the draws of {group:?}")))?;
        let text = hdf::read_text(&at, "draws_per_chain").ok();
        let lengths =
            text.and_then(|text| text.split_whitespace().map(|length| length.parse().ok()).collect::<Option<Vec<usize>>>());
        // A file that is written whole has chains of one length.
        Ok(lengths.filter(|lengths| lengths.len() == chains).unwrap_or_else(|| vec![draws; chains]))
    }

    /// One part of the draws of a group: chains × draws × its numbers.
    ///
    /// # Errors
    /// When there is no such part, or it cannot be read.
    pub fn part(&self, group: &str, part: &Part) -> Result<Values> {
        let read = || -> hdf5::Result<Values> {
            let at = self.file.group(group)?;
            let data = at.dataset(&part.name)?;
            let (kind, shape) = (data.dtype()?, data.shape());
            let [chains, draws, ..] = shape[..] else {
                return Err(hdf5::Error::Internal(format!("{} has no chains and draws", part.name)));
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
}
