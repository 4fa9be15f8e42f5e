//! Recomputes the digest of a dataset from its content, a block at a time.

use crate::data::dataset::digest::{ContentDigest, DigestedDescription, SPARSE_ROWS};
use crate::data::dataset::layout::{Split, Task};
use crate::data::dataset::list_reader::ListReader;
use crate::data::dataset::read::Dataset;
use crate::data::dataset::scaling::FeatureScaling;
use crate::data::dataset::write::FeatureValue;
use crate::data::error::Result;
use crate::data::hdf;
use crate::data::verification::{Progress, Verified, check_digest, unverifiable};
use hdf5::Error::Internal;

/// The bytes of a block of dense rows, unless a row is longer.
const BLOCK_BYTES: usize = 1 << 22;

impl Dataset {
    /// Reads everything and compares its digest with the one that the file states. Takes a few megabytes and one row of memory.
    ///
    /// The digest covers all that models see: rows, targets, names, scaling and recipe. The names of the imported files are not covered.
    ///
    /// # Errors
    /// If the digests differ, or the file cannot be read.
    pub fn verify(&self, report: &mut dyn FnMut(u64)) -> Result<Verified> {
        let progress = Progress::new(report);
        let digest = self.content_digest(&progress).map_err(unverifiable(&self.path))?;
        check_digest(&self.path, &digest, self.digest())?;
        Ok(Verified { bytes: progress.bytes(), uncovered: None })
    }

    fn content_digest(&self, progress: &Progress<'_>) -> hdf5::Result<String> {
        let is_f64 = |split: Split| self.file.dataset(split.x())?.dtype().map(|stored| stored.is::<f64>());
        let features = self.file.group("features")?;
        let names = |name: &str| features.link_exists(name).then(|| hdf::read_names(&features, name)).transpose();
        let recipe = names("recipe")?;
        let stored = match self.scaling {
            FeatureScaling::Sparse { .. } => SPARSE_ROWS,
            FeatureScaling::Dense { .. } if is_f64(Split::Train)? => f64::NAME,
            FeatureScaling::Dense { .. } => u8::NAME,
        };
        let mut lists = Vec::new();
        match &self.scaling {
            FeatureScaling::Sparse { column, scale } => {
                lists.extend([bytemuck::cast_slice(column), bytemuck::cast_slice(scale)]);
            }
            FeatureScaling::Dense { scale, offset, rotation } => {
                lists.extend([bytemuck::cast_slice(scale), bytemuck::cast_slice(offset)]);
                let rotation = rotation.as_ref().map(|rotation| rotation.as_slice());
                lists.extend(rotation.flatten().map(bytemuck::cast_slice));
            }
        }
        let has_target = self.task() == Task::Regression && self.file.link_exists("targets");
        let mut digest = ContentDigest::begin(&DigestedDescription {
            task: self.task(),
            stored,
            shape: self.shape(),
            scaling: &lists,
            features: &names("name")?.unwrap_or_default(),
            classes: self.classes(),
            recipe: recipe.as_ref().and_then(|recipe| recipe.first()).map(String::as_str),
            target: has_target.then(|| self.target_scaling()),
        });
        for split in [Split::Train, Split::Test] {
            if !self.file.link_exists(split.name()) {
                continue;
            }
            digest.field(split.name().as_bytes());
            let rows = match self.scaling {
                FeatureScaling::Sparse { .. } => self.digest_of_sparse_rows(split, progress)?,
                FeatureScaling::Dense { .. } if stored == f64::NAME => self.digest_of_dense_rows::<f64>(split, progress)?,
                FeatureScaling::Dense { .. } => self.digest_of_dense_rows::<u8>(split, progress)?,
            };
            digest.field(rows.as_bytes());
            match self.task() {
                Task::Classification => self.add_targets::<u32>(split, &mut digest, progress)?,
                Task::Regression | Task::Counts => self.add_targets::<f64>(split, &mut digest, progress)?,
            }
        }
        Ok(digest.finish())
    }

    fn digest_of_dense_rows<T: FeatureValue>(&self, split: Split, progress: &Progress<'_>) -> hdf5::Result<blake3::Hash> {
        let data = self.file.dataset(split.x())?;
        if !data.dtype()?.is::<T>() {
            return Err(Internal(format!("{} is not of the type {}", split.x(), T::NAME)));
        }
        let rows = self.rows(split);
        let at_once = (BLOCK_BYTES / (self.features() * size_of::<T>()).max(1)).max(1);
        let mut digest = blake3::Hasher::new();
        for first in (0..rows).step_by(at_once) {
            let block = data.read_slice_2d::<T, _>((first..rows.min(first + at_once), ..))?;
            let values = block.as_slice().ok_or_else(|| Internal(format!("the rows of {} are not contiguous", split.x())))?;
            digest.update(bytemuck::cast_slice(values));
            progress.add(size_of_val(values) as u64);
        }
        Ok(digest.finalize())
    }

    /// Each row is hashed as the number of its entries, their columns, and their values in double precision.
    fn digest_of_sparse_rows(&self, split: Split, progress: &Progress<'_>) -> hdf5::Result<blake3::Hash> {
        let mut digest = blake3::Hasher::new();
        let list = |name: &str| self.file.dataset(&split.list(name));
        let mut starts = ListReader::<u64>::new(list("indptr")?, progress)?;
        let mut columns = ListReader::<u32>::new(list("indices")?, progress)?;
        let mut values = ListReader::<f64>::new(list("values")?, progress)?;
        let mut start = starts.read_one()?;
        if start != 0 {
            return Err(Internal(format!("the first {} row starts at entry {start}, not 0", split.name())));
        }
        for row in 0..self.rows(split) {
            let end = starts.read_one()?;
            let entries = end.checked_sub(start).and_then(|entries| usize::try_from(entries).ok());
            let entries = entries.ok_or_else(|| Internal(format!("{} row {row} ends before it starts", split.name())))?;
            digest.update(&(end - start).to_le_bytes());
            columns.read(entries, |columns| {
                digest.update(bytemuck::cast_slice(columns));
            })?;
            values.read(entries, |values| {
                digest.update(bytemuck::cast_slice(values));
            })?;
            start = end;
        }
        starts.finish()?;
        columns.finish()?;
        values.finish()?;
        Ok(digest.finalize())
    }

    fn add_targets<T>(&self, split: Split, digest: &mut ContentDigest, progress: &Progress<'_>) -> hdf5::Result<()>
    where
        T: hdf5::H5Type + bytemuck::Pod,
    {
        let rows = self.rows(split);
        let mut targets = ListReader::<T>::new(self.file.dataset(split.y())?, progress)?;
        digest.begin_field((rows * size_of::<T>()) as u64);
        targets.read(rows, |targets| digest.piece(bytemuck::cast_slice(targets)))?;
        targets.finish()
    }
}
