//! The targets of a split as a dataset stores them: class indices or numbers.

use crate::data::dataset::scaling::{ColumnStatistics, FittedScaling, Scaling};
use crate::data::error::Result;
use std::path::Path;

/// The targets of the rows of a split, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// Indices of classes.
    Classes(Vec<u32>),
    /// Numbers in the units of the data.
    Numbers(Vec<f64>),
}

impl Targets {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Classes(classes) => bytemuck::cast_slice(classes),
            Self::Numbers(numbers) => bytemuck::cast_slice(numbers),
        }
    }

    /// Scale and offset that standardize numbers; `None` for classes.
    pub(crate) fn scaling(&self, from: &Path) -> Result<Option<(f64, f64)>> {
        let Self::Numbers(numbers) = self else { return Ok(None) };
        let mut column = ColumnStatistics::new(Scaling::Standardize, 1);
        numbers.iter().for_each(|&number| column.add(&[number]));
        let FittedScaling { scale, offset, .. } = column.finish(from, None, &[1], |_| "the target".into())?;
        Ok(scale.first().copied().zip(offset.first().copied()))
    }

    pub(crate) fn write(&self, group: &hdf5::Group) -> hdf5::Result<()> {
        let builder = group.new_dataset_builder();
        match self {
            Self::Classes(classes) => builder.with_data(classes.as_slice()).obj_track_times(false).create("y"),
            Self::Numbers(numbers) => builder.with_data(numbers.as_slice()).obj_track_times(false).create("y"),
        }
        .map(drop)
    }
}
