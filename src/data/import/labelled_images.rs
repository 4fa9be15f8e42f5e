//! Writes images that come one by one with their labels into a dataset.

use crate::data::dataset::layout::{Split, Task};
use crate::data::dataset::scaling::Scaling;
use crate::data::dataset::write::{Description, Writer};
use crate::data::error::{Place, Result};
use crate::data::import::channels::image_scaling;
use crate::data::import::targets::TargetCollector;
use std::path::Path;

/// A dataset of images of bytes under construction. All training images come before the first test image.
pub(crate) struct ImageWriter {
    writer: Writer<u8>,
    labels: TargetCollector,
    shape: Vec<usize>,
    scaling: Scaling,
}

impl ImageWriter {
    /// Starts the dataset `output` with images of this shape (height, width and channels if there are several), which are scaled by
    /// [`image_scaling`] unless another scaling is wanted.
    pub(crate) fn new(output: &Path, shape: Vec<usize>, scaling: Option<Scaling>) -> Result<Self> {
        let scaling = scaling.unwrap_or_else(|| image_scaling(&shape));
        let writer = Writer::new(output, &shape, scaling)?;
        Ok(Self { writer, labels: TargetCollector::new(Task::Classification), shape, scaling })
    }

    /// The shape of the images.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Appends an image. The label of a test image must occur in the training images.
    pub(crate) fn push(&mut self, split: Split, pixels: &[u8], label: &str, path: &Path, place: Place) -> Result<()> {
        match split {
            Split::Train => self.labels.add_text(split, label, path, place)?,
            Split::Test => self.labels.add_test_text(label, path, place)?,
        }
        self.writer.push(split, pixels)
    }

    /// Completes the dataset with classes in this order, or sorted if it is empty; returns the scaling. Errors name `from`.
    pub(crate) fn finish(self, source: String, order: &[String], from: &Path) -> Result<Scaling> {
        let (classes, train, test) = self.labels.in_order(order).finish(from)?;
        let description =
            Description { task: Task::Classification, source, features: None, shape: self.shape, classes, recipe: None };
        self.writer.finish(&description, train, test, from)?;
        Ok(self.scaling)
    }
}
