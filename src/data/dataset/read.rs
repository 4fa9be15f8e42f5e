//! Reads datasets: the description when a file is opened, rows by their numbers.

use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::layout::{DOCUMENTS_VERSION, NEWEST_VERSION};
use crate::data::dataset::layout::{TOPICS, open_own};
use crate::data::dataset::scaling::FeatureScaling;
use crate::data::dataset::targets::Targets;
use crate::data::error::{DataError, Place, Result};
use crate::data::hdf;
use crate::data::import::recipe::Recipe;
use crate::data::readers::libsvm::MAX_FEATURES;
use crate::data::shard::Shard;
use crate::data::sparse::SparseRows;
use crate::number::Real;
use ndarray::{Array1, Array2, Axis, Ix2};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Gaps of unwanted rows up to about this size are read along: that is faster than another call of the library.
const GAP_BYTES: usize = 1 << 15;
/// The largest read, which bounds the memory that reading takes beyond the shard.
const RUN_BYTES: usize = 1 << 22;

/// An open dataset file; any number of processes may read it at once.
#[derive(Debug)]
pub struct Dataset {
    pub(super) path: PathBuf,
    pub(super) file: hdf5::File,
    task: Task,
    digest: String,
    source: String,
    shape: Vec<usize>,
    rows: [usize; 2],
    classes: Vec<String>,
    recipe: Option<Recipe>,
    pub(super) scaling: FeatureScaling,
    /// Scale and offset of the targets; 1 and 0 for classes.
    target: (f64, f64),
}

/// The size of a split as the file declares it.
struct Extent {
    rows: usize,
    targets: Vec<usize>,
    /// The shape of the features if they are dense, else the lengths of the lists of entries.
    features: Vec<usize>,
}

impl Dataset {
    /// Opens a dataset and reads its description, but no rows.
    ///
    /// # Errors
    /// When the file cannot be opened, is no dataset, has an unknown version, or is inconsistent.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, task) = open_own(path, "dataset")?;
        let wrong = |what: String| DataError::content(path, Place::File, what);
        let damaged = |doing| DataError::hdf5(path, doing);
        let text = |name| hdf::read_text(&file, name).map_err(DataError::hdf5(path, "read the description"));
        if task == TOPICS {
            return Err(wrong("this is a corpus of documents for topic models: a dataset of rows with targets is needed".into()));
        }
        let version: u32 = file.attr("version").and_then(|at| at.read_scalar()).map_err(damaged("read the version"))?;
        if !(1..=NEWEST_VERSION).contains(&version) || version == DOCUMENTS_VERSION {
            let what = format!(
                "this dataset has version {version}, this program reads versions 1 to {NEWEST_VERSION}: import the data again"
            );
            return Err(wrong(what));
        }
        let task = Task::named(&task).ok_or_else(|| {
            wrong(format!("the task {task:?} is unknown: a newer mpibayes may have made this dataset. Import the data again"))
        })?;
        let describe = || -> hdf5::Result<_> {
            let features = file.group("features")?;
            let shape: Vec<usize> = features.attr("shape")?.read_raw()?;
            let numbers = |name: &str| features.dataset(name)?.read_raw::<f64>();
            let sparse = file.group(Split::Train.name())?.link_exists("indptr");
            let scaling = match (sparse, features.link_exists("column")) {
                (false, _) => {
                    let rotation =
                        features.link_exists("rotation").then(|| features.dataset("rotation")?.read_2d()).transpose()?;
                    let (scale, offset) = (numbers("scale")?, numbers("offset")?);
                    FeatureScaling::Dense { scale, offset, rotation: rotation.map(Arc::new) }
                }
                (true, false) => FeatureScaling::Sparse { column: Vec::new(), scale: Vec::new() },
                (true, true) => {
                    FeatureScaling::Sparse { column: features.dataset("column")?.read_raw()?, scale: numbers("scale")? }
                }
            };
            let target = if task == Task::Regression && file.link_exists("targets") {
                let targets = file.group("targets")?;
                Some((targets.dataset("scale")?.read_raw()?, targets.dataset("offset")?.read_raw()?))
            } else {
                None
            };
            let classes = match task {
                Task::Classification => hdf::read_names(&file.group("classes")?, "name")?,
                Task::Regression | Task::Counts => Vec::new(),
            };
            let recipe = features.link_exists("recipe").then(|| hdf::read_names(&features, "recipe")).transpose()?;
            let mut extents = Vec::new();
            for split in [Split::Train, Split::Test] {
                let extent = |sparse: bool| -> hdf5::Result<Extent> {
                    let length = |name: &str| Ok::<_, hdf5::Error>(file.dataset(&split.list(name))?.size());
                    let targets = file.dataset(split.y())?.shape();
                    if sparse {
                        let features = vec![length("indices")?, length("values")?];
                        return Ok(Extent { rows: length("indptr")?.saturating_sub(1), targets, features });
                    }
                    let features = file.dataset(split.x())?.shape();
                    Ok(Extent { rows: features.first().copied().unwrap_or(0), targets, features })
                };
                extents.push(file.link_exists(split.name()).then(|| extent(sparse)).transpose()?);
            }
            Ok((shape, scaling, target, classes, recipe, extents))
        };
        let (shape, scaling, target, classes, recipe, extents) = describe().map_err(damaged("read the description"))?;
        let (digest, source) = (text("digest")?, text("source")?);
        let recipe: Option<Recipe> = match recipe.as_deref() {
            Some([recipe]) => Some(serde_json::from_str(recipe).map_err(|error| {
                wrong(format!("the description of its columns cannot be read ({error}): import the data again"))
            })?),
            _ => None,
        };
        let inconsistent = |what: String| wrong(format!("{what}: the file is damaged, import the data again"));
        let extra = recipe.as_ref().map_or(0, |recipe: &Recipe| recipe.extra().count());
        let features = shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size)).unwrap_or(0);
        match &scaling {
            _ if features <= extra => {
                return Err(inconsistent(format!("rows of shape {shape:?} have no features, or too many")));
            }
            FeatureScaling::Dense { scale, offset, .. } if scale.len() != features || offset.len() != features => {
                let what = format!("{} scales do not fit {} offsets and rows of shape {shape:?}", scale.len(), offset.len());
                return Err(inconsistent(what));
            }
            FeatureScaling::Dense { rotation: Some(rotation), .. } if rotation.dim() != (features, features) => {
                let what = format!("a rotation of shape {:?} does not fit rows of shape {shape:?}", rotation.shape());
                return Err(inconsistent(what));
            }
            FeatureScaling::Sparse { .. } if features > MAX_FEATURES as usize => {
                return Err(wrong(format!("rows of {features} features: sparse rows have at most {MAX_FEATURES}")));
            }
            FeatureScaling::Sparse { column, scale } if column.len() != scale.len() || !column.is_sorted() => {
                return Err(inconsistent(format!("{} scales do not fit {} ascending columns", scale.len(), column.len())));
            }
            _ => {}
        }
        let target = match target {
            None => (1.0, 0.0),
            Some((scale, offset)) => match (&scale[..], &offset[..]) {
                (&[scale], &[offset]) if f64::is_normal(scale) && scale > 0.0 && f64::is_finite(offset) => (scale, offset),
                _ => {
                    return Err(inconsistent(format!(
                        "targets have the scale {scale:?} and the offset {offset:?}, not one number each with a scale above 0"
                    )));
                }
            },
        };
        let mut rows = [0; 2];
        for (rows, extent) in rows.iter_mut().zip(extents) {
            let Some(Extent { rows: count, targets, features: lengths }) = extent else { continue };
            let fits = match scaling {
                FeatureScaling::Dense { .. } => lengths == [count, features],
                FeatureScaling::Sparse { .. } => lengths[0] == lengths[1],
            };
            if !fits || targets != [count] {
                return Err(inconsistent(format!("features of shape {lengths:?} and targets of shape {targets:?} do not fit")));
            }
            *rows = count;
        }
        if rows[0] == 0 {
            return Err(wrong("there are no training rows: import the data again".into()));
        }
        let path = path.to_path_buf();
        Ok(Self { path, file, task, digest, source, shape, rows, classes, recipe, scaling, target })
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

    /// What was made of the columns of a table, unless they are what they were.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_ref()
    }

    /// How many columns follow the features.
    pub fn extra_columns(&self) -> usize {
        self.recipe.as_ref().map_or(0, |recipe| recipe.extra().count())
    }

    /// The number of columns of a row: the features, then the offset, the weight of the row and the group, if there are any.
    pub fn features(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether rows are sparse, so that only nonzero values are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self.scaling, FeatureScaling::Sparse { .. })
    }

    /// The number of stored values of a split: nonzero ones if rows are sparse, else rows × features.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn values(&self, split: Split) -> Result<usize> {
        match self.scaling {
            FeatureScaling::Sparse { .. } if self.rows(split) > 0 => {
                let data = self.file.dataset(&split.list("values"));
                Ok(data.map_err(DataError::hdf5(&self.path, "read the description"))?.size())
            }
            _ => Ok(self.rows(split) * self.features()),
        }
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

    /// How raw features are scaled for models.
    pub fn scaling(&self) -> &FeatureScaling {
        &self.scaling
    }

    /// The same rows with the scaling of the rows that a model was fitted to. Sparse rows take their width as well.
    ///
    /// # Errors
    /// When the number of features differs (for sparse rows: is larger), or only one of the two is sparse.
    pub fn scaled_as(self, features: usize, scaling: FeatureScaling) -> Result<Self> {
        let sparse = matches!(scaling, FeatureScaling::Sparse { .. });
        if sparse != self.is_sparse() {
            let what = match sparse {
                true => "its rows are dense, but the model was fitted to sparse rows: give LIBSVM rows",
                false => "its rows are sparse, but the model was fitted to dense rows: give the LIBSVM file itself",
            };
            return Err(DataError::content(&self.path, Place::File, what));
        }
        if if sparse { self.features() > features } else { self.features() != features } {
            let what = format!("its rows have {} features, but the model was fitted to rows with {features}", self.features());
            return Err(DataError::content(&self.path, Place::File, what));
        }
        let shape = if sparse { vec![features] } else { self.shape };
        Ok(Self { scaling, shape, ..self })
    }

    /// Scale and offset of the targets: models see y·scale + offset. 1 and 0 for classes.
    pub fn target_scaling(&self) -> (f64, f64) {
        self.target
    }

    /// BLAKE3 digest of the content in hexadecimal: equal digests mean equal data (names and number types included).
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The names of the imported files.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Reads these rows of a split, scaled, in this order (ascending is fastest). Takes the memory of the shard, a few megabytes, and the
    /// rotation in this precision if there is one.
    ///
    /// # Errors
    /// When a row does not exist, the file cannot be read, or a target is no class of the dataset.
    pub fn read_rows<F: Real>(&self, split: Split, rows: &[usize]) -> Result<Shard<F>> {
        self.check_rows(split, rows)?;
        let (x, y) = self.read_unrotated(split, rows)?;
        Ok(self.shard(x, y))
    }

    /// Reads several shards in one pass over the file, which each would otherwise take for itself: their rows lie all over it.
    ///
    /// # Errors
    /// As [`read_rows`](Self::read_rows).
    pub fn read_shards<F: Real>(&self, split: Split, shards: &[Vec<usize>]) -> Result<Vec<Shard<F>>> {
        if let [rows] = shards {
            return Ok(vec![self.read_rows(split, rows)?]);
        }
        let mut rows = shards.concat();
        rows.sort_unstable();
        let places = |shard: &[usize]| shard.iter().map(|row| rows.partition_point(|other| other < row)).collect::<Vec<usize>>();
        self.check_rows(split, &rows)?;
        let (x, y) = self.read_unrotated(split, &rows)?;
        let of = |shard: &Vec<usize>| {
            let places = places(shard);
            // The bits of a rotation depend on the number of rows, so each shard has its own.
            self.shard(x.select(&places), y.select(Axis(0), &places))
        };
        Ok(shards.iter().map(of).collect())
    }

    fn check_rows(&self, split: Split, rows: &[usize]) -> Result<()> {
        let count = self.rows(split);
        match rows.iter().find(|&&row| row >= count) {
            Some(row) => {
                let what = format!("{}: there is no {} row {row}, the dataset has {count}", self.path.display(), split.name());
                Err(DataError::Request(what))
            }
            None => Ok(()),
        }
    }

    fn read_unrotated<F: Real>(&self, split: Split, rows: &[usize]) -> Result<(Features<F>, Array1<F>)> {
        let x = match &self.scaling {
            FeatureScaling::Dense { .. } if rows.is_empty() => Features::Dense(Array2::zeros((0, self.features()))),
            FeatureScaling::Dense { scale, offset, .. } => Features::Dense(self.read_dense(split, rows, scale, offset)?),
            FeatureScaling::Sparse { .. } => Features::Sparse(self.read_sparse(split, rows)?),
        };
        Ok((x, self.read_targets(split, rows)?))
    }

    fn shard<F: Real>(&self, x: Features<F>, y: Array1<F>) -> Shard<F> {
        let shard = match x {
            Features::Dense(mut x) => {
                self.scaling.rotate(&mut x);
                Shard::new(x, y)
            }
            Features::Sparse(x) => Shard::sparse(x, y),
        };
        shard.with_target_unit(1.0 / self.target.0)
    }

    /// The targets of all rows of a split as they are stored: indices of classes, or raw numbers.
    ///
    /// # Errors
    /// When the file cannot be read, or a target is no class of the dataset.
    pub fn targets(&self, split: Split) -> Result<Targets> {
        let all: Vec<usize> = (0..self.rows(split)).collect();
        self.stored_targets(split, &all)
    }

    fn read_targets<F: Real>(&self, split: Split, rows: &[usize]) -> Result<Array1<F>> {
        Ok(match self.stored_targets(split, rows)? {
            Targets::Classes(classes) => classes.into_iter().map(|class| F::of(f64::from(class))).collect(),
            Targets::Numbers(targets) => {
                let (scale, offset) = self.target;
                targets.into_iter().map(|target| F::of(target * scale + offset)).collect()
            }
        })
    }

    fn stored_targets(&self, split: Split, rows: &[usize]) -> Result<Targets> {
        if rows.is_empty() {
            return Ok(match self.task {
                Task::Classification => Targets::Classes(Vec::new()),
                Task::Regression | Task::Counts => Targets::Numbers(Vec::new()),
            });
        }
        let failed = || DataError::hdf5(&self.path, "read rows");
        let data = self.file.dataset(split.y()).map_err(failed())?;
        match self.task {
            Task::Classification => {
                let classes: Vec<u32> = read_list(&data, rows).map_err(failed())?;
                let known = self.classes.len();
                if let Some((row, class)) = rows.iter().zip(&classes).find(|(_, class)| **class as usize >= known) {
                    let what = format!("the {} row has class {class} of {known}: the file is damaged", split.name());
                    return Err(DataError::content(&self.path, Place::Record(*row as u64 + 1), what));
                }
                Ok(Targets::Classes(classes))
            }
            Task::Regression | Task::Counts => read_list(&data, rows).map(Targets::Numbers).map_err(failed()),
        }
    }

    fn read_dense<F: Real>(&self, split: Split, rows: &[usize], scale: &[f64], offset: &[f64]) -> Result<Array2<F>> {
        let failed = || DataError::hdf5(&self.path, "read rows");
        let data = self.file.dataset(split.x()).map_err(failed())?;
        let stored = data.dtype().map_err(failed())?;
        if stored.is::<u8>() {
            read_features::<F, u8>(&data, rows, scale, offset)
        } else if stored.is::<f64>() {
            read_features::<F, f64>(&data, rows, scale, offset)
        } else {
            let what = "the features are neither bytes nor double-precision numbers: import the data again";
            return Err(DataError::content(&self.path, Place::File, what));
        }
        .map_err(failed())
    }

    fn read_sparse<F: Real>(&self, split: Split, rows: &[usize]) -> Result<SparseRows<F>> {
        let failed = || DataError::hdf5(&self.path, "read rows");
        let damaged = || {
            let what = format!("the {} rows do not fit together: the file is damaged, import the data again", split.name());
            DataError::content(&self.path, Place::File, what)
        };
        let list = |name: &str| self.file.dataset(&split.list(name)).map_err(failed());
        let features = self.features();
        if rows.is_empty() {
            return Ok(SparseRows::new(features, vec![0], Vec::new(), Vec::new()));
        }
        // The range of entries of each row.
        let indptr = list("indptr")?;
        let (indices, values) = (list("indices")?, list("values")?);
        let mut spans = Vec::with_capacity(rows.len());
        for (first, wanted) in runs(rows, size_of::<u64>()) {
            let block = indptr.read_slice_1d::<u64, _>(first..wanted[wanted.len() - 1] + 2).map_err(failed())?;
            for &row in wanted {
                let (start, end) = (block[row - first], block[row - first + 1]);
                let span = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                spans.push(span.filter(|(start, end)| start <= end && *end <= indices.size()).ok_or_else(damaged)?);
            }
        }
        let mut starts = vec![0_usize];
        for (start, end) in &spans {
            let filled = starts[starts.len() - 1].checked_add(end - start);
            starts.push(filled.ok_or_else(damaged)?);
        }
        let entries = starts[starts.len() - 1];
        // Different rows have different entries. Otherwise a small file could need much memory.
        if entries > indices.size() && rows.is_sorted_by(|row, next| row < next) {
            return Err(damaged());
        }
        let mut columns: Vec<u32> = Vec::with_capacity(entries);
        let mut scaled: Vec<F> = Vec::with_capacity(entries);
        // Rows are read in runs, whose length is estimated from the mean row.
        let row_bytes = (indices.size() / self.rows(split).max(1) * (size_of::<u32>() + size_of::<f64>())).max(1);
        let mut behind = 0;
        for (_, wanted) in runs(rows, row_bytes) {
            let spans = &spans[behind..behind + wanted.len()];
            behind += wanted.len();
            let (first, last) = (spans[0].0, spans[spans.len() - 1].1);
            if first >= last {
                continue;
            }
            let block_columns = indices.read_slice_1d::<u32, _>(first..last).map_err(failed())?;
            // HDF5 converts to double precision.
            let block_values = values.read_slice_1d::<f64, _>(first..last).map_err(failed())?;
            for &(start, end) in spans {
                let (Some(start), Some(end)) = (start.checked_sub(first), end.checked_sub(first)) else { return Err(damaged()) };
                for at in start..end {
                    let (Some(&index), Some(&raw)) = (block_columns.get(at), block_values.get(at)) else { return Err(damaged()) };
                    if index as usize >= features {
                        return Err(damaged());
                    }
                    columns.push(index);
                    scaled.push(F::of(self.scaling.apply(index, raw)));
                }
            }
        }
        Ok(SparseRows::new(features, starts, columns, scaled))
    }
}

fn read_features<F: Real, T: hdf5::H5Type + Copy + Into<f64>>(
    data: &hdf5::Dataset,
    rows: &[usize],
    scale: &[f64],
    offset: &[f64],
) -> hdf5::Result<Array2<F>> {
    let features = scale.len();
    let mut values = Vec::with_capacity(rows.len() * features);
    for (first, wanted) in runs(rows, features * size_of::<T>()) {
        let block = data.read_slice::<T, _, Ix2>((first..wanted[wanted.len() - 1] + 1, ..))?;
        for &row in wanted {
            let raw = block.row(row - first);
            let scaled = raw.iter().zip(scale).zip(offset);
            values.extend(scaled.map(|((&raw, scale), offset)| F::of(raw.into() * scale + offset)));
        }
    }
    Array2::from_shape_vec((rows.len(), features), values).map_err(|error| hdf5::Error::Internal(error.to_string()))
}

fn read_list<T: hdf5::H5Type + Copy>(data: &hdf5::Dataset, rows: &[usize]) -> hdf5::Result<Vec<T>> {
    let mut values = Vec::with_capacity(rows.len());
    for (first, wanted) in runs(rows, size_of::<T>()) {
        let block = data.read_slice_1d::<T, _>(first..wanted[wanted.len() - 1] + 1)?;
        values.extend(wanted.iter().map(|&row| block[row - first]));
    }
    Ok(values)
}

/// Features of rows as they are scaled, but not rotated.
enum Features<F> {
    Dense(Array2<F>),
    Sparse(SparseRows<F>),
}

impl<F: Real> Features<F> {
    fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Dense(x) => Self::Dense(x.select(Axis(0), rows)),
            Self::Sparse(x) => Self::Sparse(x.select(rows)),
        }
    }
}

/// Splits rows into runs to read at once, each with its first row. A run ends where the next row precedes the last one, is too far after
/// it, or too far from the first.
fn runs(mut remaining: &[usize], row_bytes: usize) -> impl Iterator<Item = (usize, &[usize])> {
    let (gap, longest) = ((GAP_BYTES / row_bytes).max(1), (RUN_BYTES / row_bytes).max(1));
    std::iter::from_fn(move || {
        let first = *remaining.first()?;
        let continues = |pair: &[usize]| pair[1] >= pair[0] && pair[1] - pair[0] <= gap && pair[1] - first < longest;
        let run = 1 + remaining.windows(2).take_while(|pair| continues(pair)).count();
        let (wanted, later) = remaining.split_at(run);
        remaining = later;
        Some((first, wanted))
    })
}

#[cfg(test)]
impl Dataset {
    /// The stored values.
    pub(crate) fn raw<T: hdf5::H5Type>(&self, name: &str) -> Vec<T> {
        self.file.dataset(name).and_then(|data| data.read_raw()).unwrap_or_default()
    }

    /// Whether numbers are stored in this type.
    pub(crate) fn stored_in<T: hdf5::H5Type>(&self, name: &str) -> bool {
        self.file.dataset(name).and_then(|data| data.dtype()).is_ok_and(|stored| stored.is::<T>())
    }
}
