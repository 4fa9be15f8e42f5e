//! Writes datasets of dense rows: rows stream in, and an incomplete file never appears under its name.

use crate::data::dataset::digest::{ContentDigest, DigestedDescription};
use crate::data::dataset::layout::DENSE_VERSION;
use crate::data::dataset::layout::EXTRA_VERSION;
use crate::data::dataset::layout::ROTATED_VERSION;
use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::principal;
use crate::data::dataset::scaling::{ColumnStatistics, FittedScaling, Scaling, channels_of};
use crate::data::dataset::targets::Targets;
use crate::data::error::{DataError, Result};
use crate::data::hdf;
use crate::data::import::recipe::{ExtraColumns, Recipe};
use crate::partial::PartialFile;
use ndarray::ArrayView2;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

/// The size of HDF5 chunks: large enough for fast sequential reads, small enough to read single rows.
pub(crate) const CHUNK_BYTES: usize = 1 << 18;
/// Rows are written in blocks of this many chunks.
const BLOCK_CHUNKS: usize = 8;
/// How many blocks may wait to be written.
const BLOCKS_WAITING: usize = 2;

/// A raw feature value as the file stores it.
pub(crate) trait FeatureValue: hdf5::H5Type + bytemuck::Pod + Into<f64> + Send {
    const NAME: &'static str;
    /// The natural scale of the type, if it has one.
    const UNIT: Option<f64>;
}

impl FeatureValue for u8 {
    const NAME: &'static str = "u8";
    const UNIT: Option<f64> = Some(1.0 / 255.0);
}

impl FeatureValue for f64 {
    const NAME: &'static str = "f64";
    const UNIT: Option<f64> = None;
}

/// The description of a dataset, known once all rows are read.
pub(crate) struct Description {
    pub task: Task,
    /// The names of the imported files, without folders.
    pub source: String,
    /// Names of the features; none for pixels.
    pub features: Option<Vec<String>>,
    /// The shape of a row, such as `[28, 28]`.
    pub shape: Vec<usize>,
    /// Names of the classes, in the order of their indices.
    pub classes: Vec<String>,
    /// What was made of the columns of a table, unless they are what they were.
    pub recipe: Option<Recipe>,
}

impl Description {
    /// The columns after the features.
    fn extra(&self) -> ExtraColumns {
        self.recipe.as_ref().map(Recipe::extra).unwrap_or_default()
    }

    /// The recipe as the file stores it.
    fn recipe_text(&self) -> hdf5::Result<Option<String>> {
        let text = self.recipe.as_ref().map(serde_json::to_string).transpose();
        text.map_err(|error| hdf5::Error::Internal(error.to_string()))
    }

    /// Starts the digest with everything but the rows.
    pub(crate) fn digest(&self, stored: &str, scaling: &[&[u8]], target: Option<(f64, f64)>) -> hdf5::Result<ContentDigest> {
        let recipe = self.recipe_text()?;
        Ok(ContentDigest::begin(&DigestedDescription {
            task: self.task,
            stored,
            shape: &self.shape,
            scaling,
            features: self.features.as_deref().unwrap_or_default(),
            classes: &self.classes,
            recipe: recipe.as_deref(),
            target,
        }))
    }

    /// Writes the description; returns the group `features`.
    pub(crate) fn write(
        &self,
        file: &hdf5::File,
        version: u32,
        scaling: Scaling,
        target: Option<(f64, f64)>,
        digest: ContentDigest,
    ) -> hdf5::Result<hdf5::Group> {
        hdf::write_text(file, "format", hdf::DATASET_FORMAT)?;
        file.new_attr::<u32>().create("version")?.write_scalar(&version)?;
        hdf::write_text(file, "task", self.task.name())?;
        hdf::write_text(file, "source", &self.source)?;
        hdf::write_text(file, "digest", &digest.finish())?;
        let features = file.create_group("features")?;
        hdf::write_text(&features, "scaling", scaling.name())?;
        features.new_attr_builder().with_data(&self.shape).create("shape")?;
        if let Some(names) = &self.features {
            hdf::write_names(&features, "name", names)?;
        }
        if let Some((scale, offset)) = target {
            let targets = file.create_group("targets")?;
            targets.new_dataset_builder().with_data(&[scale]).obj_track_times(false).create("scale")?;
            targets.new_dataset_builder().with_data(&[offset]).obj_track_times(false).create("offset")?;
        }
        if self.task == Task::Classification {
            hdf::write_names(&file.create_group("classes")?, "name", &self.classes)?;
        }
        if let Some(recipe) = self.recipe_text()? {
            hdf::write_names(&features, "recipe", &[recipe])?;
        }
        Ok(features)
    }
}

/// Creates the temporary file that becomes `path` once it is complete.
pub(crate) fn create(path: &Path) -> Result<(hdf5::File, PartialFile)> {
    let partial = PartialFile::new(path);
    // HDF5's own messages for a missing folder or a full disk span many lines.
    std::fs::File::create(partial.path()).map_err(DataError::io(partial.path(), "create"))?;
    let file = hdf::create(partial.path()).map_err(DataError::hdf5(path, "create"))?;
    Ok((file, partial))
}

/// The most features of dense rows, so that statistics of columns fit into memory.
const MAX_FEATURES: usize = 1 << 24;

/// A dataset under construction.
pub(crate) struct Writer<T> {
    // Declared before `partial`: fields are dropped in order, and the file must be closed before it is removed.
    train: Option<Rows<T>>,
    test: Option<Rows<T>>,
    file: hdf5::File,
    partial: PartialFile,
    path: PathBuf,
    features: usize,
    scaling: Scaling,
    columns: ColumnStatistics,
}

impl<T: FeatureValue> Writer<T> {
    /// Starts the dataset `path` with rows of this shape.
    pub(crate) fn new(path: &Path, shape: &[usize], scaling: Scaling) -> Result<Self> {
        let features = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size)).unwrap_or(usize::MAX);
        if features > MAX_FEATURES {
            let what = format!("rows of {features} features: dense rows may have at most {MAX_FEATURES}; is the file damaged?");
            return Err(DataError::Request(what));
        }
        match scaling {
            Scaling::Principal => principal::check_width(features)?,
            Scaling::Channels => channels_of(shape).map(drop)?,
            _ => {}
        }
        let (file, partial) = create(path)?;
        let columns = ColumnStatistics::new(scaling, features);
        Ok(Self { file, partial, path: path.to_path_buf(), features, scaling, columns, train: None, test: None })
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, split: Split, row: &[T]) -> Result<()> {
        if split == Split::Train {
            self.columns.add(row);
        }
        let rows = match split {
            Split::Train => &mut self.train,
            Split::Test => &mut self.test,
        };
        let path = &self.path;
        let rows = match rows {
            Some(rows) => rows,
            None => rows.insert(Rows::new(&self.file, split, self.features).map_err(DataError::hdf5(path, "write"))?),
        };
        rows.push(row).map_err(DataError::hdf5(path, "write"))
    }

    /// Completes the file; errors of the scaling name `from`.
    pub(crate) fn finish(self, about: &Description, train: Targets, test: Option<Targets>, from: &Path) -> Result<()> {
        let fitted = self.columns.finish(from, T::UNIT, &about.shape, |j| format!("feature {}", j + 1))?;
        let FittedScaling { mut scale, mut offset, rotation } = fitted;
        let scaled = self.features - about.extra().count();
        scale[scaled..].fill(1.0);
        offset[scaled..].fill(0.0);
        let target = if about.task == Task::Regression { train.scaling(from)? } else { None };
        // An offset has the units of the target.
        if let Some((unit, _)) = target
            && about.extra().offset
        {
            scale[scaled] = unit;
        }
        let write = || -> hdf5::Result<()> {
            let mut lists = vec![bytemuck::cast_slice(&scale), bytemuck::cast_slice(&offset)];
            lists.extend(rotation.as_ref().and_then(|rotation| rotation.as_slice()).map(bytemuck::cast_slice));
            let mut digest = about.digest(T::NAME, &lists, target)?;
            for (split, rows, targets) in [(Split::Train, self.train, Some(train)), (Split::Test, self.test, test)] {
                let (Some(rows), Some(targets)) = (rows, targets) else { continue };
                debug_assert_eq!(rows.rows, targets.len());
                targets.write(&self.file.group(split.name())?)?;
                digest.split(split, &rows.finish()?, targets.bytes());
            }
            let version = match &rotation {
                _ if about.extra().count() > 0 => EXTRA_VERSION,
                Some(_) => ROTATED_VERSION,
                None => DENSE_VERSION,
            };
            let features = about.write(&self.file, version, self.scaling, target, digest)?;
            features.new_dataset_builder().with_data(&scale).obj_track_times(false).create("scale")?;
            features.new_dataset_builder().with_data(&offset).obj_track_times(false).create("offset")?;
            if let Some(rotation) = &rotation {
                features.new_dataset_builder().with_data(rotation.view()).obj_track_times(false).create("rotation")?;
            }
            self.file.flush()
        };
        write().map_err(DataError::hdf5(&self.path, "write"))?;
        self.file.close().map_err(DataError::hdf5(&self.path, "close"))?;
        self.partial.commit().map_err(DataError::io(&self.path, "finish"))
    }
}

/// Collects the feature rows of a split in blocks, which a background thread hashes and writes while the next block is read.
struct Rows<T> {
    features: usize,
    block: usize,
    buffer: Vec<T>,
    rows: usize,
    /// Sends full blocks; `None` once all are sent.
    full: Option<SyncSender<Vec<T>>>,
    empty: Receiver<Vec<T>>,
    /// Returns the digest of all values; `None` once it is joined.
    thread: Option<JoinHandle<hdf5::Result<blake3::Hash>>>,
}

impl<T: FeatureValue> Rows<T> {
    fn new(file: &hdf5::File, split: Split, features: usize) -> hdf5::Result<Self> {
        let chunk = (CHUNK_BYTES / (features * size_of::<T>()).max(1)).max(1);
        let data = file
            .create_group(split.name())?
            .new_dataset::<T>()
            .chunk((chunk, features))
            .fill_time(hdf5::dataset::FillTime::Never)
            .obj_track_times(false)
            .shape((0.., features))
            .create("x")?;
        let (full, blocks) = mpsc::sync_channel(BLOCKS_WAITING);
        let (used, empty) = mpsc::channel();
        let thread = std::thread::spawn(move || write_blocks(&data, features, &blocks, &used));
        let block = chunk * BLOCK_CHUNKS;
        Ok(Self { features, block, buffer: Vec::new(), rows: 0, full: Some(full), empty, thread: Some(thread) })
    }

    fn push(&mut self, row: &[T]) -> hdf5::Result<()> {
        self.buffer.extend_from_slice(row);
        self.rows += 1;
        if self.buffer.len() >= self.block * self.features { self.send() } else { Ok(()) }
    }

    fn send(&mut self) -> hdf5::Result<()> {
        let next = self.empty.try_recv().unwrap_or_default();
        let block = std::mem::replace(&mut self.buffer, next);
        match self.full.as_ref().map(|full| full.send(block)) {
            Some(Ok(())) => Ok(()),
            // The thread has stopped after an error.
            Some(Err(_)) | None => self.wait().map(drop),
        }
    }

    /// Writes the last block; returns the digest of all values.
    fn finish(mut self) -> hdf5::Result<blake3::Hash> {
        if !self.buffer.is_empty() {
            self.send()?;
        }
        self.wait()
    }
}

impl<T> Rows<T> {
    /// Waits until the thread has written all blocks.
    fn wait(&mut self) -> hdf5::Result<blake3::Hash> {
        self.full = None;
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(std::result::Result::ok).unwrap_or_else(|| Err("the thread that writes rows ended early".into()))
    }
}

impl<T> Drop for Rows<T> {
    fn drop(&mut self) {
        // After an error, the thread must stop writing before the file is removed.
        let _ = self.wait();
    }
}

/// Writes and hashes all blocks, and returns them empty for reuse.
fn write_blocks<T: FeatureValue>(
    data: &hdf5::Dataset,
    features: usize,
    blocks: &Receiver<Vec<T>>,
    used: &Sender<Vec<T>>,
) -> hdf5::Result<blake3::Hash> {
    let mut digest = blake3::Hasher::new();
    let mut written = 0;
    for mut block in blocks {
        let rows = block.len() / features;
        let values =
            ArrayView2::from_shape((rows, features), &block).map_err(|error| hdf5::Error::Internal(error.to_string()))?;
        data.resize((written + rows, features))?;
        data.write_slice(values, (written..written + rows, ..))?;
        digest.update(bytemuck::cast_slice(&block));
        written += rows;
        block.clear();
        // The receiver may be gone.
        let _ = used.send(block);
    }
    Ok(digest.finalize())
}
