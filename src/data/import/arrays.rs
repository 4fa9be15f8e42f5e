//! Imports of NumPy arrays: one of features, one of targets, as NPY files or in NPZ archives.

use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::write::{Description, Writer};
use crate::data::error::{DataError, Place, Result, listed};
use crate::data::import::channels::{ChannelOrder, RowOrder, image_scaling};
use crate::data::import::targets::TargetCollector;
use crate::data::import::test_rows::{RowSplitter, TestRows};
use crate::data::readers::format::{Format, detect};
use crate::data::readers::npy::Npy;
use crate::data::readers::npz::Npz;
use crate::data::readers::source::{Source, file_name};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// An array in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayFile {
    /// An NPY file, plain or gzip, or an NPZ file.
    pub path: PathBuf,
    /// The name of the array in an NPZ file.
    pub member: Option<String>,
    /// Where the channels are if this is an array of images in four dimensions; by default the sizes show it.
    pub channels: Option<ChannelOrder>,
}

impl ArrayFile {
    /// An NPY file.
    pub fn npy(path: &Path) -> Self {
        Self { path: path.to_path_buf(), member: None, channels: None }
    }

    /// An array of features without targets. In an NPZ file it is the array `name`, or else the only array, `x` or `x_test`.
    ///
    /// # Errors
    /// If the file cannot be read, or does not contain the array.
    pub fn of_features(path: &Path, name: Option<&str>) -> Result<Self> {
        if detect(path)? != Format::Npz {
            return Ok(Self::npy(path));
        }
        let names = open_npz(path)?.names();
        let find = |name: &str| names.iter().find(|other| other.eq_ignore_ascii_case(name));
        let found = match (name, &names[..]) {
            (Some(name), _) => find(name),
            (None, [only]) => Some(only),
            (None, _) => find("x").or_else(|| find("x_test")),
        };
        let found = found.ok_or_else(|| {
            let what = format!("it has the arrays {}: name the features with --features-name", listed(&names));
            DataError::content(path, Place::File, what)
        })?;
        Ok(Self { path: path.to_path_buf(), member: Some(found.clone()), channels: None })
    }

    /// Calls `each` with every row, which must have `width` finite numbers, and with its number from 1. The channels of images come last.
    ///
    /// # Errors
    /// If the array cannot be read, the order of its channels is not clear, or a row is invalid; and those of `each`.
    pub fn rows(&self, width: usize, each: impl FnMut(&[f64], u64) -> Result<()>) -> Result<()> {
        self.open(|x| {
            if x.row_size() != width {
                let what = format!("rows of {} numbers where there should be {width}", x.row_size());
                return Err(DataError::content(&x.path(), Place::File, what));
            }
            x.for_numbers(self.order(x)?.rows(each))
        })
    }

    /// The shape of a row in a dataset: of images height, width and channels, if there are several.
    ///
    /// # Errors
    /// If the array cannot be read, or the order of its channels is unknown.
    pub fn row_shape(&self) -> Result<Vec<usize>> {
        self.open(|x| Ok(self.order(x)?.shape))
    }

    fn order(&self, x: &Npy<'_>) -> Result<RowOrder> {
        RowOrder::of(x.row_shape(), self.channels, &x.path())
    }

    fn open<T>(&self, read: impl FnOnce(&mut Npy<'_>) -> Result<T>) -> Result<T> {
        match &self.member {
            None => read(&mut Npy::open(Source::open(&self.path)?)?),
            Some(name) => read(&mut open_npz(&self.path)?.array(name)?),
        }
    }
}

fn open_npz(path: &Path) -> Result<Npz<BufReader<File>>> {
    let file = File::open(path).map_err(DataError::io(path, "open"))?;
    Npz::open(path, BufReader::new(file))
}

/// An array of features with a row for each example, and an array of their targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayPair {
    /// The features: two or more dimensions, examples first. Four dimensions are images, stored as height × width × channels.
    pub features: ArrayFile,
    /// The labels or targets: one number for each example.
    pub targets: ArrayFile,
}

impl ArrayPair {
    /// The arrays of an NPZ file: the given names, or else `x_train` and `y_train` with `x_test` and `y_test` as test rows, or else `x`
    /// and `y`. Upper and lower case are equivalent.
    ///
    /// # Errors
    /// If the file cannot be read, or does not contain the arrays.
    pub fn in_npz(path: &Path, features: Option<&str>, targets: Option<&str>) -> Result<(Self, Option<Self>)> {
        let names = open_npz(path)?.names();
        let find = |name: &str| names.iter().find(|other| other.eq_ignore_ascii_case(name)).cloned();
        let file = |name: String| ArrayFile { path: path.to_path_buf(), member: Some(name), channels: None };
        let pair = |x: &str, y: &str| Some(Self { features: file(find(x)?), targets: file(find(y)?) });
        if features.is_some() || targets.is_some() {
            let named = |name: Option<&str>, default| file(name.map_or_else(|| default, str::to_owned));
            let default = |name: &str| find(name).unwrap_or_else(|| name.to_owned());
            return Ok((Self { features: named(features, default("x")), targets: named(targets, default("y")) }, None));
        }
        match pair("x_train", "y_train")
            .map(|train| (train, pair("x_test", "y_test")))
            .or(pair("x", "y").map(|pair| (pair, None)))
        {
            Some(found) => Ok(found),
            None => {
                let what = match &names[..] {
                    [only] => format!(
                        "it has a single array, {only}, and needs a second one with the labels or targets: save both into this file, or each \
                         as an NPY file for `mpibayes import arrays`"
                    ),
                    _ => format!(
                        "neither the arrays x and y nor x_train and y_train are here: it has {}; name them with --features-name and \
                         --targets-name of `mpibayes import arrays`",
                        listed(&names)
                    ),
                };
                Err(DataError::content(path, Place::File, what))
            }
        }
    }

    /// The file names, for the description of a dataset.
    fn file_names(&self) -> String {
        let features = file_name(&self.features.path);
        if self.features.path == self.targets.path { features } else { format!("{features}, {}", file_name(&self.targets.path)) }
    }
}

/// What to import from arrays, and how.
#[derive(Clone, Debug)]
pub struct ArrayImport {
    /// The arrays.
    pub train: ArrayPair,
    /// The test rows.
    pub test: TestRows<ArrayPair>,
    /// What the targets are.
    pub task: Task,
    /// The scaling of features; by default, images with several channels are scaled by channel, other bytes in two or more dimensions
    /// as pixels, and all others are standardized.
    pub scaling: Option<Scaling>,
}

/// Imports arrays into the dataset `output`; returns the scaling of features. Bytes are stored as bytes, all other numbers in double
/// precision.
///
/// # Errors
/// If an array cannot be read, is none of numbers, does not hold what its header promises or holds a number that is not finite;
/// if features and targets do not match; and those of the split into training and test rows. No partial output remains.
pub fn import_arrays(import: &ArrayImport, output: &Path) -> Result<Scaling> {
    let path = &import.train.features.path;
    let (bytes, RowOrder { shape, .. }) = import.train.features.open(|x| Ok((x.is_bytes(), import.train.features.order(x)?)))?;
    let scaling = import.scaling.unwrap_or_else(|| match image_scaling(&shape) {
        Scaling::Pixels if !bytes || shape.len() == 1 => Scaling::Standardize,
        scaling => scaling,
    });
    let mut collector = TargetCollector::new(import.task);
    let mut splitter = RowSplitter::new(&import.test, path, || import.train.features.open(|x| Ok(x.rows())))?;
    // Targets first: they need little memory, and an archive can only be read one array at a time.
    let mut splits = Vec::new();
    let rows = import.train.features.open(|x| {
        let rows = x.rows();
        import.train.for_each_target(rows, |target, place| {
            let split = splitter.split(splits.len() as u64);
            splits.push(split);
            collector.add_number(split, target, &import.train.targets.path, place)
        })?;
        Ok(rows)
    })?;
    splitter.finish(rows as u64, &[path])?;
    collector.check(&splitter, &import.train.targets.path)?;
    let mut source = format!("{}{}", import.train.file_names(), splitter.source);
    let mut test = None;
    if let TestRows::File(pair) = &import.test {
        let (rows, test_shape) = pair.features.open(|x| Ok((x.rows(), pair.features.order(x)?.shape)))?;
        if test_shape != shape {
            let what = format!(
                "rows of shape {test_shape:?}, but those of {} have shape {shape:?}: the two do not belong together",
                path.display()
            );
            return Err(DataError::content(&pair.features.path, Place::File, what));
        }
        pair.for_each_target(rows, |target, place| collector.add_test_number(target, &pair.targets.path, place))?;
        if pair.file_names() != import.train.file_names() {
            source.push_str(&format!(", {}", pair.file_names()));
        }
        test = Some(&pair.features);
    }
    let (classes, train_targets, test_targets) = collector.finish(&import.train.targets.path)?;
    let description = Description { task: import.task, source, features: None, shape, classes, recipe: None };
    let inputs = [Some(&import.train.features), test];
    // The split of a row of the first input, by its number from 1; all rows of the second are test rows.
    let split = |input: usize, record: u64| {
        let row = usize::try_from(record).ok().and_then(|record| splits.get(record.checked_sub(1)?)).copied();
        if input == 0 { row.unwrap_or(Split::Train) } else { Split::Test }
    };
    let inputs = || inputs.into_iter().flatten().enumerate();
    if bytes && test.is_none_or(|test| test.open(|x| Ok(x.is_bytes())).unwrap_or(false)) {
        let mut writer = Writer::<u8>::new(output, &description.shape, scaling)?;
        for (input, array) in inputs() {
            array.open(|x| x.for_bytes(array.order(x)?.rows(|row, record| writer.push(split(input, record), row))))?;
        }
        writer.finish(&description, train_targets, test_targets, path)?;
    } else {
        let mut writer = Writer::<f64>::new(output, &description.shape, scaling)?;
        for (input, array) in inputs() {
            array.open(|x| x.for_numbers(array.order(x)?.rows(|row, record| writer.push(split(input, record), row))))?;
        }
        writer.finish(&description, train_targets, test_targets, path)?;
    }
    Ok(scaling)
}

impl ArrayPair {
    /// Calls `each` with the targets of `rows` examples and their places.
    fn for_each_target(&self, rows: usize, mut each: impl FnMut(f64, Place) -> Result<()>) -> Result<()> {
        self.targets.open(|y| {
            let wrong = |what: String| Err(DataError::content(&y.path(), Place::File, what));
            if y.row_size() != 1 {
                let shape = y.row_shape();
                return wrong(format!("{shape:?} numbers for each example: targets are one number each, labels not one-hot"));
            }
            if y.rows() != rows {
                let (count, theirs) = (y.rows(), self.features.path.display());
                return wrong(format!("{count} targets for the {rows} rows of {theirs}: these arrays do not belong together"));
            }
            y.for_numbers(|target, record| each(target.first().copied().unwrap_or(f64::NAN), Place::Record(record)))
        })
    }
}
