//! Reading a dataset: its description at once, its rows by their numbers.

use super::error::{DataError, Place, Result};
use super::{FORMAT, Shard, Split, Task, VERSION, hdf};
use crate::number::Real;
use ndarray::{Array1, Array2, Ix2};
use std::path::{Path, PathBuf};

/// Reading a gap of unwanted rows costs less than another call of the library up to about this many bytes.
const GAP_BYTES: usize = 1 << 15;
/// The most that is read at once, and so the memory that reading takes beyond the shard itself.
const RUN_BYTES: usize = 1 << 22;

/// A dataset file, open for reading; any number of processes may have it open at once.
#[derive(Debug)]
pub struct Dataset {
    path: PathBuf,
    file: hdf5::File,
    task: Task,
    digest: String,
    source: String,
    shape: Vec<usize>,
    rows: [usize; 2],
    classes: Vec<String>,
    scale: Vec<f64>,
    offset: Vec<f64>,
    /// Scale and offset of the targets: 1 and 0 for classes.
    target: (f64, f64),
}

impl Dataset {
    /// Opens a dataset and reads its description, but no rows.
    ///
    /// # Errors
    /// When the file cannot be opened, is no dataset of this program, is of a newer version, or contradicts itself.
    pub fn open(path: &Path) -> Result<Self> {
        // HDF5's own message for a missing file runs over many lines.
        std::fs::File::open(path).map_err(DataError::io(path, "open"))?;
        let wrong = |what: String| DataError::content(path, Place::File, what);
        let foreign = |_| wrong("this is no dataset of this program: make one with `mpibayes import`".into());
        let damaged = |doing| DataError::hdf5(path, doing);
        let file = hdf::open(path).map_err(foreign)?;
        if hdf::read_text(&file, "format").map_err(foreign)? != FORMAT {
            return Err(foreign(hdf5::Error::Internal(String::new())));
        }
        let version: u32 = file.attr("version").and_then(|at| at.read_scalar()).map_err(damaged("read the version"))?;
        if !(1..=VERSION).contains(&version) {
            let what = format!("dataset version {version}, this program reads versions 1 to {VERSION}: import the data again");
            return Err(wrong(what));
        }
        let text = |name| hdf::read_text(&file, name).map_err(DataError::hdf5(path, "read the description"));
        let task = text("task")?;
        let task = Task::named(&task).ok_or_else(|| wrong(format!("the task {task:?} is unknown to this program")))?;
        let describe = || -> hdf5::Result<_> {
            let features = file.group("features")?;
            let shape: Vec<usize> = features.attr("shape")?.read_raw()?;
            let (scale, offset) = (features.dataset("scale")?.read_raw()?, features.dataset("offset")?.read_raw()?);
            let target = if task == Task::Regression && file.link_exists("targets") {
                let targets = file.group("targets")?;
                Some((targets.dataset("scale")?.read_raw()?, targets.dataset("offset")?.read_raw()?))
            } else {
                None
            };
            let classes = match task {
                Task::Classification => hdf::read_names(&file.group("classes")?, "name")?,
                Task::Regression => Vec::new(),
            };
            let mut rows = Vec::new();
            for split in [Split::Train, Split::Test] {
                rows.push(match file.link_exists(split.name()) {
                    true => Some((file.dataset(split.x())?.shape(), file.dataset(split.y())?.shape())),
                    false => None,
                });
            }
            Ok((shape, scale, offset, target, classes, rows))
        };
        let (shape, scale, offset, target, classes, shapes) = describe().map_err(damaged("read the description"))?;
        let (digest, source) = (text("digest")?, text("source")?);
        let features = scale.len();
        if offset.len() != features || shape.iter().product::<usize>() != features || features == 0 {
            return Err(wrong(format!("{features} scales do not fit {} offsets and rows of shape {shape:?}", offset.len())));
        }
        let target = match target {
            None => (1.0, 0.0),
            Some((scale, offset)) => match (&scale[..], &offset[..]) {
                (&[scale], &[offset]) if f64::is_normal(scale) && scale > 0.0 && f64::is_finite(offset) => (scale, offset),
                _ => {
                    return Err(wrong(format!(
                        "targets of scale {scale:?} and offset {offset:?}: one number each, the scale above 0"
                    )));
                }
            },
        };
        let mut rows = [0; 2];
        for (rows, shapes) in rows.iter_mut().zip(shapes) {
            match shapes {
                None => {}
                Some((x, y)) if x.len() == 2 && x[1] == features && y == [x[0]] => *rows = x[0],
                Some((x, y)) => return Err(wrong(format!("features of shape {x:?} and targets of shape {y:?} do not fit"))),
            }
        }
        if rows[0] == 0 {
            return Err(wrong("there are no training rows".into()));
        }
        let path = path.to_path_buf();
        Ok(Self { path, file, task, digest, source, shape, rows, classes, scale, offset, target })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the targets are.
    pub fn task(&self) -> Task {
        self.task
    }

    /// The number of rows of a split; 0 if the dataset does not have it.
    pub fn rows(&self, split: Split) -> usize {
        self.rows[split as usize]
    }

    /// The number of features of a row.
    pub fn features(&self) -> usize {
        self.scale.len()
    }

    /// The shape of a row, such as `[28, 28]` for images; its product is the number of features.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The names of the features; none for pixels.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn feature_names(&self) -> Result<Option<Vec<String>>> {
        let read = || -> hdf5::Result<_> {
            let features = self.file.group("features")?;
            features.link_exists("name").then(|| hdf::read_names(&features, "name")).transpose()
        };
        read().map_err(DataError::hdf5(&self.path, "read the names of the features"))
    }

    /// The labels of the classes by their indices; none for regression.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Scale and offset of the targets: models see y·scale + offset. 1 and 0 for classes.
    pub fn target_scaling(&self) -> (f64, f64) {
        self.target
    }

    /// BLAKE3 digest of the content in hexadecimal: equal exactly if all that a model can see is equal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Where the data came from: names of files.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Reads the given rows (ascending is fastest) of a split, scaled, in the given order. Memory: the shard and a few megabytes.
    ///
    /// # Errors
    /// When a row does not exist, the file cannot be read, or a target is no class of the dataset.
    pub fn read_rows<F: Real>(&self, split: Split, rows: &[usize]) -> Result<Shard<F>> {
        let count = self.rows(split);
        if let Some(row) = rows.iter().find(|&&row| row >= count) {
            let what = format!("{}: there is no {} row {row}, the dataset has {count}", self.path.display(), split.name());
            return Err(DataError::Request(what));
        }
        if rows.is_empty() {
            return Ok(Shard::new(Array2::zeros((0, self.features())), Array1::zeros(0)));
        }
        let failed = || DataError::hdf5(&self.path, "read rows");
        let data = self.file.dataset(split.x()).map_err(failed())?;
        let stored = data.dtype().map_err(failed())?;
        let x = if stored.is::<u8>() {
            self.read_features::<F, u8>(&data, rows)
        } else if stored.is::<f64>() {
            self.read_features::<F, f64>(&data, rows)
        } else {
            let what = "the features are neither bytes nor double-precision numbers: import the data again";
            return Err(DataError::content(&self.path, Place::File, what));
        }
        .map_err(failed())?;
        let data = self.file.dataset(split.y()).map_err(failed())?;
        let y = match self.task {
            Task::Classification => {
                let classes: Vec<u32> = read_targets(&data, rows).map_err(failed())?;
                let known = self.classes.len();
                if let Some((row, class)) = rows.iter().zip(&classes).find(|(_, class)| **class as usize >= known) {
                    let what = format!("the {} row has class {class} of {known}: the file is damaged", split.name());
                    return Err(DataError::content(&self.path, Place::Record(*row as u64 + 1), what));
                }
                classes.into_iter().map(|class| F::of(f64::from(class))).collect()
            }
            Task::Regression => {
                let (scale, offset) = self.target;
                let targets: Vec<f64> = read_targets(&data, rows).map_err(failed())?;
                targets.into_iter().map(|target| F::of(target * scale + offset)).collect()
            }
        };
        Ok(Shard::new(x, y).with_target_unit(1.0 / self.target.0))
    }

    fn read_features<F: Real, T: hdf5::H5Type + Copy + Into<f64>>(
        &self,
        data: &hdf5::Dataset,
        rows: &[usize],
    ) -> hdf5::Result<Array2<F>> {
        let features = self.features();
        let mut values = Vec::with_capacity(rows.len() * features);
        for (first, wanted) in runs(rows, features * size_of::<T>()) {
            let block = data.read_slice::<T, _, Ix2>((first..wanted[wanted.len() - 1] + 1, ..))?;
            for &row in wanted {
                let raw = block.row(row - first);
                let scaled = raw.iter().zip(&self.scale).zip(&self.offset);
                values.extend(scaled.map(|((&raw, scale), offset)| F::of(raw.into() * scale + offset)));
            }
        }
        Array2::from_shape_vec((rows.len(), features), values).map_err(|error| hdf5::Error::Internal(error.to_string()))
    }
}

fn read_targets<T: hdf5::H5Type + Copy>(data: &hdf5::Dataset, rows: &[usize]) -> hdf5::Result<Vec<T>> {
    let mut values = Vec::with_capacity(rows.len());
    for (first, wanted) in runs(rows, size_of::<T>()) {
        let block = data.read_slice_1d::<T, _>(first..wanted[wanted.len() - 1] + 1)?;
        values.extend(wanted.iter().map(|&row| block[row - first]));
    }
    Ok(values)
}

/// Cuts rows into runs that are read at once, each behind its first row: as long as the next row is not before the last, nor too far
/// behind it, nor too far from the first.
fn runs(mut rest: &[usize], row_bytes: usize) -> impl Iterator<Item = (usize, &[usize])> {
    let (gap, longest) = ((GAP_BYTES / row_bytes).max(1), (RUN_BYTES / row_bytes).max(1));
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        let goes_on = |pair: &[usize]| pair[1] >= pair[0] && pair[1] - pair[0] <= gap && pair[1] - first < longest;
        let run = 1 + rest.windows(2).take_while(|pair| goes_on(pair)).count();
        let (wanted, later) = rest.split_at(run);
        rest = later;
        Some((first, wanted))
    })
}

#[cfg(test)]
impl Dataset {
    /// Raw values as they are stored, for tests.
    pub(super) fn raw<T: hdf5::H5Type>(&self, name: &str) -> Vec<T> {
        self.file.dataset(name).and_then(|data| data.read_raw()).unwrap_or_default()
    }
}
