//! Rows that are predicted in blocks, and the meaning of their labels.

use super::output::Output;
use crate::data::{DataError, Levels, Place, is_missing, listed};
use crate::job::predictor::{Predictor, RawRows};
use std::path::Path;

/// Rows that are predicted block by block.
pub(super) struct Rows<'a, 'b> {
    predictor: &'a mut Predictor,
    output: &'b mut Output,
    path: &'a Path,
    raw: RawRows,
    /// For each row, the values of the columns that are copied.
    copied: Vec<Vec<String>>,
    labels: Vec<String>,
    targets: Vec<f64>,
    labels_of_run: LabelParser,
    failed: Option<anyhow::Error>,
}

impl<'a, 'b> Rows<'a, 'b> {
    pub(super) fn new(path: &'a Path, predictor: &'a mut Predictor, output: &'b mut Output) -> Self {
        let labels_of_run = LabelParser::new(&predictor.classes);
        let (raw, copied, labels, targets) = (RawRows::default(), Vec::new(), Vec::new(), Vec::new());
        Self { predictor, output, path, raw, copied, labels, targets, labels_of_run, failed: None }
    }

    /// Writes a row without a prediction, after the rows before it, with the values of the columns that are copied. `kind` groups such rows in
    /// the report; `why` names this row and what is wrong with it.
    pub(super) fn push_unpredicted(
        &mut self,
        copied: Vec<String>,
        label: Option<&str>,
        kind: &'static str,
        why: String,
    ) -> Result<(), DataError> {
        let written = if self.raw.is_empty() { Ok(()) } else { self.flush() };
        let written = written.and_then(|()| self.output.add_unpredicted(copied, label, kind, why));
        self.stop_on(written)
    }

    /// Keeps an error of predicting or writing, and returns one that ends reading. `finish` returns the one that was kept.
    pub(super) fn stop_on(&mut self, written: anyhow::Result<()>) -> Result<(), DataError> {
        written.map_err(|cause| {
            self.failed = Some(cause);
            DataError::Request("stopped".into())
        })
    }

    /// Counts a row that lacks a number, which the mean of the training rows replaces.
    pub(super) fn count_filled_in(&mut self) {
        self.output.count_filled_in();
    }

    /// Counts the row if a feature is far from its values in most training rows. `names` are those of the features; `place` is for the report.
    pub(super) fn count_if_far(&mut self, row: &[f64], names: &[String], place: Place) {
        if let Some(feature) = self.predictor.far_feature(row) {
            let what = || format!("{:?} is {}", names[feature], row[feature]);
            self.output.count_far(|| DataError::content(self.path, place, what()).to_string());
        }
    }

    /// Adds a row as [`Rows::push`] does, with the values of the columns that are copied.
    pub(super) fn push_with(
        &mut self,
        copied: Vec<String>,
        row: impl IntoIterator<Item = (u32, f64)>,
        label: Option<&str>,
        place: Place,
    ) -> Result<(), DataError> {
        self.copied.push(copied);
        self.push(row, label, place)
    }

    /// Adds a row, with its label if known.
    pub(super) fn push(
        &mut self,
        row: impl IntoIterator<Item = (u32, f64)>,
        label: Option<&str>,
        place: Place,
    ) -> Result<(), DataError> {
        if let Some(label) = label {
            let target = self.labels_of_run.target(label);
            self.targets.push(target.map_err(|what| DataError::content(self.path, place, what))?);
            self.labels.push(label.to_owned());
        }
        self.raw.push(row);
        if self.raw.len() < self.output.block() {
            return Ok(());
        }
        let written = self.flush();
        self.stop_on(written)
    }

    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        let predictions = self.predictor.predict_rows(std::mem::take(&mut self.raw), self.output.wanted())?;
        self.output.add(&predictions, &self.copied, &self.labels, &self.targets)?;
        self.copied.clear();
        self.labels.clear();
        self.targets.clear();
        Ok(())
    }

    /// Predicts the remaining rows if reading has succeeded.
    pub(super) fn finish(mut self, read: Result<(), DataError>) -> anyhow::Result<()> {
        match self.failed.take() {
            Some(cause) => Err(cause),
            None => {
                read?;
                if self.raw.is_empty() { Ok(()) } else { self.flush() }
            }
        }
    }
}

/// Turns labels of new rows into targets, by the classes of the run.
pub(super) struct LabelParser {
    classes: Levels,
}

impl LabelParser {
    pub(super) fn new(classes: &[String]) -> Self {
        Self { classes: Levels::known(classes) }
    }

    /// The target that a label means: the index of its class, or without classes its number. NaN if it is missing.
    pub(super) fn target(&self, label: &str) -> Result<f64, String> {
        if let Some(class) = self.classes.find(label.as_bytes()) {
            return Ok(f64::from(class));
        }
        if is_missing(label.as_bytes()) {
            return Ok(f64::NAN);
        }
        if self.classes.names().is_empty() {
            let number = label.parse::<f64>().ok().filter(|number| number.is_finite());
            return number.ok_or_else(|| format!("the target {label:?} is not a finite number"));
        }
        Err(format!("unknown class {label:?}: the run has {}", listed(self.classes.names())))
    }
}
