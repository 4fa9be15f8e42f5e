//! Import of images with labels from IDX files.

use crate::data::dataset::layout::{Split, Task};
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::targets::Targets;
use crate::data::dataset::write::{Description, Writer};
use crate::data::error::{DataError, Place, Result};
use crate::data::import::labels::{Labels, unknown_label};
use crate::data::readers::idx::Idx;
use crate::data::readers::source::{Source, file_name};
use std::path::{Path, PathBuf};

/// A file of images and the file of their labels, each plain or gzip.
#[derive(Clone, Debug)]
pub struct IdxPair {
    /// The images: unsigned bytes in two or three dimensions, images first.
    pub images: PathBuf,
    /// The labels: unsigned bytes in one dimension.
    pub labels: PathBuf,
}

/// Imports images with labels into the dataset `output`. Labels become class names. Pixels are stored as bytes, together with
/// the scaling that readers apply.
///
/// # Errors
/// If a file cannot be read, is no IDX file, does not hold what its header promises, or images and labels do not match;
/// and if a test label does not occur in the training labels. No partial output remains.
pub fn import_idx(train: &IdxPair, test: Option<&IdxPair>, scaling: Scaling, output: &Path) -> Result<()> {
    import_first_idx(train, test, None, scaling, output)
}

/// The same with only the first images of each file, if a number is given.
///
/// # Errors
/// The same, and if there are fewer training images.
pub fn import_first_idx(
    train: &IdxPair,
    test: Option<&IdxPair>,
    first: Option<usize>,
    scaling: Scaling,
    output: &Path,
) -> Result<()> {
    let mut labels = Labels::default();
    let open = |path: &Path| {
        let mut images = Idx::open(Source::open(path)?)?;
        first.map_or(Ok(()), |rows| images.first(rows))?;
        if images.row_shape().len() > 2 {
            let what =
                "images of more than two dimensions: IDX files do not say where the channels are. Convert them to a NumPy array";
            return Err(DataError::content(path, Place::File, what));
        }
        Ok(images)
    };
    let mut images = open(&train.images)?;
    let mut writer = Writer::new(output, images.row_shape(), scaling)?;
    let train_labels = images.labels(&train.labels)?;
    for (&label, record) in train_labels.iter().zip(1..) {
        labels.index_or_insert(&label.to_string(), &train.labels, Place::Record(record))?;
    }
    let (classes, final_indices) = labels.to_classes(&[], &train.labels)?;
    // Labels are bytes, numbered by first appearance so far; classes are in the order of labels. This table maps bytes to classes.
    let mut class_of = [None; 256];
    for label in 0..=255_u8 {
        let known = labels.known_index(&label.to_string(), &train.labels, Place::File).ok();
        class_of[usize::from(label)] = known.and_then(|appearance| final_indices.get(appearance as usize).copied());
    }
    let targets = |labels: &[u8], path: &Path| -> Result<Targets> {
        let class = |(&label, record): (&u8, u64)| {
            class_of[usize::from(label)].ok_or_else(|| unknown_label(&label.to_string(), path, Place::Record(record)))
        };
        labels.iter().zip(1..).map(class).collect::<Result<_>>().map(Targets::Classes)
    };
    let train_targets = targets(&train_labels, &train.labels)?;
    images.rows(|row| writer.push(Split::Train, row))?;
    let mut sources = vec![file_name(&train.images), file_name(&train.labels)];
    let mut test_targets = None;
    if let Some(test) = test {
        let mut test_images = Idx::open(Source::open(&test.images)?)?;
        first.map_or(Ok(()), |rows| test_images.first(rows.min(test_images.rows_in_file())))?;
        if test_images.row_shape() != images.row_shape() {
            let what = format!(
                "images of shape {:?}, but those of {} have shape {:?}: the two sets do not belong together",
                test_images.row_shape(),
                train.images.display(),
                images.row_shape()
            );
            return Err(DataError::content(&test.images, Place::File, what));
        }
        test_targets = Some(targets(&test_images.labels(&test.labels)?, &test.labels)?);
        test_images.rows(|row| writer.push(Split::Test, row))?;
        sources.extend([file_name(&test.images), file_name(&test.labels)]);
    }
    let description = Description {
        task: Task::Classification,
        source: sources.join(", "),
        features: None,
        shape: images.row_shape().to_vec(),
        classes,
        recipe: None,
    };
    writer.finish(&description, train_targets, test_targets, &train.images)
}
