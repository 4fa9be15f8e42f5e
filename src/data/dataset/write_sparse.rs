//! Writes datasets of sparse rows (CSR).

use crate::data::dataset::digest::SPARSE_ROWS;
use crate::data::dataset::growing::GrowingList;
use crate::data::dataset::layout::{SPARSE_VERSION, Split, Task};
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::targets::Targets;
use crate::data::dataset::write::{CHUNK_BYTES, Description, create};
use crate::data::error::{DataError, Result};
use crate::number::Real;
use crate::partial::PartialFile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The values of a split, in single precision as long as it represents all of them exactly.
enum Values {
    Single(GrowingList<f32>),
    Double(GrowingList<f64>),
}

/// Writes the rows of a split.
struct Rows {
    group: hdf5::Group,
    starts: GrowingList<u64>,
    columns: GrowingList<u32>,
    values: Values,
    entries: u64,
    digest: blake3::Hasher,
}

impl Rows {
    fn new(file: &hdf5::File, split: Split) -> hdf5::Result<Self> {
        let group = file.create_group(split.name())?;
        let mut starts = GrowingList::new(&group, "indptr")?;
        starts.push(0)?;
        let (columns, values) = (GrowingList::new(&group, "indices")?, Values::Single(GrowingList::new(&group, "values")?));
        Ok(Self { group, starts, columns, values, entries: 0, digest: blake3::Hasher::new() })
    }

    fn push(&mut self, columns: &[u32], values: &[f64]) -> hdf5::Result<()> {
        let entries = columns.len() as u64;
        self.digest.update(&entries.to_le_bytes());
        self.digest.update(bytemuck::cast_slice(columns));
        self.digest.update(bytemuck::cast_slice(values));
        self.entries += entries;
        self.starts.push(self.entries)?;
        self.columns.extend(columns)?;
        for &value in values {
            if let Values::Single(single) = &mut self.values {
                let rounded = f32::of(value);
                if f64::from(rounded).to_bits() == value.to_bits() {
                    single.push(rounded)?;
                    continue;
                }
                self.widen()?;
            }
            if let Values::Double(double) = &mut self.values {
                double.push(value)?;
            }
        }
        Ok(())
    }

    /// Rewrites the values in double precision, which usually happens within the first rows.
    fn widen(&mut self) -> hdf5::Result<()> {
        let Values::Single(single) = &mut self.values else { return Ok(()) };
        single.flush()?;
        self.group.relink("values", "values_single")?;
        let mut double = GrowingList::new(&self.group, "values")?;
        let block = CHUNK_BYTES / size_of::<f32>();
        for first in (0..single.written).step_by(block) {
            for value in single.data.read_slice_1d::<f32, _>(first..(first + block).min(single.written))? {
                double.push(f64::from(value))?;
            }
        }
        self.values = Values::Double(double);
        self.group.unlink("values_single")
    }

    /// Writes the last values; returns the digest of all rows.
    fn finish(mut self) -> hdf5::Result<blake3::Hash> {
        self.starts.flush()?;
        self.columns.flush()?;
        match &mut self.values {
            Values::Single(values) => values.flush()?,
            Values::Double(values) => values.flush()?,
        }
        Ok(self.digest.finalize())
    }
}

/// A dataset of sparse rows under construction.
pub(crate) struct SparseWriter {
    // Declared before `partial`: fields are dropped in order, and the file must be closed before it is removed.
    file: hdf5::File,
    rows: [Option<Rows>; 2],
    partial: PartialFile,
    path: PathBuf,
    scaling: Scaling,
    /// The largest absolute value of each column with nonzero training values.
    largest: HashMap<u32, f64>,
}

impl SparseWriter {
    /// Starts the dataset `path`.
    pub(crate) fn new(path: &Path, scaling: Scaling) -> Result<Self> {
        if !matches!(scaling, Scaling::None | Scaling::MaxAbs) {
            return Err(DataError::Request(format!(
                "the scaling {} would turn the zeros of sparse rows into nonzero numbers: choose none or max-abs",
                scaling.name()
            )));
        }
        let (file, partial) = create(path)?;
        let path = path.to_path_buf();
        Ok(Self { file, rows: [None, None], partial, path, scaling, largest: HashMap::new() })
    }

    /// Appends a row: ascending columns and their nonzero values.
    pub(crate) fn push(&mut self, split: Split, columns: &[u32], values: &[f64]) -> Result<()> {
        if split == Split::Train && self.scaling == Scaling::MaxAbs {
            for (&column, &value) in columns.iter().zip(values) {
                let largest = self.largest.entry(column).or_default();
                *largest = value.abs().max(*largest);
            }
        }
        let rows = &mut self.rows[split as usize];
        let rows = match rows {
            Some(rows) => rows,
            None => rows.insert(Rows::new(&self.file, split).map_err(DataError::hdf5(&self.path, "write"))?),
        };
        rows.push(columns, values).map_err(DataError::hdf5(&self.path, "write"))
    }

    /// Completes the file; errors of the scaling name `from`.
    pub(crate) fn finish(self, about: &Description, train: &Targets, test: Option<&Targets>, from: &Path) -> Result<()> {
        let mut scales = Vec::with_capacity(self.largest.len());
        for (&column, &largest) in &self.largest {
            let named = || format!("feature {}", u64::from(column) + 1);
            scales.push((column, Scaling::of_largest(largest, from, named)?));
        }
        scales.sort_unstable_by_key(|&(column, _)| column);
        let (columns, scales): (Vec<u32>, Vec<f64>) = scales.into_iter().unzip();
        let target = if about.task == Task::Regression { train.scaling(from)? } else { None };
        let [train_rows, test_rows] = self.rows;
        let write = || -> hdf5::Result<()> {
            let lists = [bytemuck::cast_slice(&columns), bytemuck::cast_slice(&scales)];
            let mut digest = about.digest(SPARSE_ROWS, &lists, target)?;
            for (split, rows, targets) in [(Split::Train, train_rows, Some(train)), (Split::Test, test_rows, test)] {
                let (Some(rows), Some(targets)) = (rows, targets) else { continue };
                targets.write(&rows.group)?;
                digest.split(split, &rows.finish()?, targets.bytes());
            }
            let features = about.write(&self.file, SPARSE_VERSION, self.scaling, target, digest)?;
            if self.scaling == Scaling::MaxAbs {
                features.new_dataset_builder().with_data(&columns).obj_track_times(false).create("column")?;
                features.new_dataset_builder().with_data(&scales).obj_track_times(false).create("scale")?;
            }
            self.file.flush()
        };
        write().map_err(DataError::hdf5(&self.path, "write"))?;
        self.file.close().map_err(DataError::hdf5(&self.path, "close"))?;
        self.partial.commit().map_err(DataError::io(&self.path, "finish"))
    }
}
