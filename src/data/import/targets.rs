//! Collects the labels or numeric targets of an import.

use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::targets::Targets;
use crate::data::error::{DataError, Place, Result};
use crate::data::import::labels::Labels;
use crate::data::import::test_rows::RowSplitter;
use std::path::Path;

/// More classes than this, more than one for every two rows, and not all whole numbers: probably a regression.
const MANY_CLASSES: usize = 50;

/// The targets so far, in memory because class indices are only known at the end.
pub(crate) struct TargetCollector {
    task: Task,
    labels: Labels,
    /// Whether each class has training rows, and where it first occurs.
    in_train: Vec<bool>,
    first: Vec<Place>,
    classes: [Vec<u32>; 2],
    numbers: [Vec<f64>; 2],
}

impl TargetCollector {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            labels: Labels::default(),
            in_train: Vec::new(),
            first: Vec::new(),
            classes: Default::default(),
            numbers: Default::default(),
        }
    }

    /// Adds the label or target of a row in text.
    pub(crate) fn text(&mut self, split: Split, label: &str, path: &Path, place: Place) -> Result<()> {
        match self.task {
            Task::Classification => self.label(split, label, path, place),
            Task::Regression => {
                let target = crate::data::readers::table::number(label);
                let target = target.map_err(|what| DataError::content(path, place, format!("the target {what}")))?;
                self.numbers[split as usize].push(target);
                Ok(())
            }
        }
    }

    /// Adds a numeric label or target; classes must be whole numbers.
    pub(crate) fn number(&mut self, split: Split, target: f64, path: &Path, place: Place) -> Result<()> {
        let wrong = |what: String| Err(DataError::content(path, place, what));
        match self.task {
            _ if !target.is_finite() => {
                wrong(format!("the target {target} is not a finite number: remove the row or fill in a value"))
            }
            Task::Classification if target.fract() == 0.0 => self.label(split, &target.to_string(), path, place),
            Task::Classification => {
                wrong(format!("the label {target} is not a whole number: is this a regression (--task regression)?"))
            }
            Task::Regression => {
                self.numbers[split as usize].push(target);
                Ok(())
            }
        }
    }

    fn label(&mut self, split: Split, label: &str, path: &Path, place: Place) -> Result<()> {
        let class = self.labels.index(label, path, place)?;
        let index = class as usize;
        if index == self.first.len() {
            self.first.push(place);
            self.in_train.push(false);
        }
        self.in_train[index] |= split == Split::Train;
        self.classes[split as usize].push(class);
        Ok(())
    }

    /// Refuses a label of another file of test rows that the training rows do not have.
    pub(crate) fn must_know(&mut self, label: &str, path: &Path, place: Place) -> Result<()> {
        match self.task {
            Task::Classification => self.labels.known(label, path, place).map(drop),
            Task::Regression => Ok(()),
        }
    }

    /// Checks that every class has training rows.
    pub(crate) fn check(&self, held_out: &RowSplitter, path: &Path) -> Result<()> {
        let rows: usize = self.classes.iter().map(Vec::len).sum();
        let classes = self.in_train.len();
        let numbers = || (0..classes).map(|class| self.labels.name(u32::try_from(class).unwrap_or(0)).parse::<f64>());
        let are_numbers = || numbers().all(|number| number.is_ok()) && numbers().flatten().any(|number| number.fract() != 0.0);
        if classes > MANY_CLASSES && classes > rows / 2 && are_numbers() {
            let what =
                format!("{rows} rows have {classes} different numbers as labels: is this a regression (--task regression)?");
            return Err(DataError::content(path, Place::File, what));
        }
        match (0..).zip(&self.in_train).find(|(_, in_train)| !**in_train) {
            None => Ok(()),
            Some((class, _)) => {
                let (label, advice) = (self.labels.name(class), held_out.advice());
                let what = format!("all rows with label {label:?} are test rows: {advice}");
                Err(DataError::content(path, self.first[class as usize], what))
            }
        }
    }

    /// Class names, training targets, test targets.
    pub(crate) fn finish(self, path: &Path) -> Result<(Vec<String>, Targets, Option<Targets>)> {
        let some = |targets: Targets, empty: bool| if empty { None } else { Some(targets) };
        match self.task {
            Task::Classification => {
                let (names, finals) = self.labels.sort(path)?;
                let [train, test] =
                    self.classes.map(|classes| classes.into_iter().map(|class| finals[class as usize]).collect::<Vec<_>>());
                let empty = test.is_empty();
                Ok((names, Targets::Classes(train), some(Targets::Classes(test), empty)))
            }
            Task::Regression => {
                let [train, test] = self.numbers;
                let empty = test.is_empty();
                Ok((Vec::new(), Targets::Numbers(train), some(Targets::Numbers(test), empty)))
            }
        }
    }
}
