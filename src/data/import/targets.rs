//! Collects the labels or numeric targets of an import.

use crate::data::dataset::layout::Split;
use crate::data::dataset::layout::Task;
use crate::data::dataset::targets::Targets;
use crate::data::error::{DataError, Place, Result};
use crate::data::import::labels::Labels;
use crate::data::import::test_rows::RowSplitter;
use crate::data::readers::cells::{is_missing, is_word, shortened};
use std::path::Path;

/// Numeric labels, not all of them whole, probably mean a regression if there are more classes than this, and more than one per two rows.
const MANY_CLASSES: usize = 50;

/// Collects targets in memory, because class indices are known only at the end.
pub(crate) struct TargetCollector {
    task: Task,
    /// The wanted order of the classes; else they are sorted.
    order: Vec<String>,
    labels: Labels,
    /// Whether each class has training rows.
    in_train: Vec<bool>,
    /// The first place of each class.
    first_place: Vec<Place>,
    classes: [Vec<u32>; 2],
    numbers: [Vec<f64>; 2],
}

impl TargetCollector {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            order: Vec::new(),
            labels: Labels::default(),
            in_train: Vec::new(),
            first_place: Vec::new(),
            classes: Default::default(),
            numbers: Default::default(),
        }
    }

    /// With classes in this order, unless it is empty.
    pub(crate) fn in_order(self, order: &[String]) -> Self {
        Self { order: order.to_vec(), ..self }
    }

    /// Adds the label or target of a row of a table.
    pub(crate) fn add_table_label(&mut self, split: Split, label: &str, path: &Path, place: Place) -> Result<()> {
        refuse_missing(label, path, place)?;
        if self.task != Task::Classification && is_word(label) {
            let what = format!(
                "the target {:?} is not a number: name the column of the target with --label (otherwise it is the last one), or use --task \
                 classification",
                shortened(label)
            );
            return Err(DataError::content(path, place, what));
        }
        self.add_text(split, label, path, place)
    }

    /// Adds the label or target of a row in text.
    pub(crate) fn add_text(&mut self, split: Split, label: &str, path: &Path, place: Place) -> Result<()> {
        match self.task {
            Task::Classification => self.add_class(split, label, path, place),
            Task::Regression | Task::Counts => {
                let target = crate::data::readers::cells::parse_number(label);
                let target = target.map_err(|what| {
                    let what = if is_word(label) {
                        format!("{:?} is not a number: use --task classification", shortened(label))
                    } else {
                        what
                    };
                    DataError::content(path, place, format!("the target {what}"))
                })?;
                self.add_number(split, target, path, place)
            }
        }
    }

    /// Adds a numeric label or target; classes must be whole numbers.
    pub(crate) fn add_number(&mut self, split: Split, target: f64, path: &Path, place: Place) -> Result<()> {
        let wrong = |what: String| Err(DataError::content(path, place, what));
        match self.task {
            _ if !target.is_finite() => {
                wrong(format!("the target {target} is not a finite number: remove the row or fill in a value"))
            }
            Task::Classification if target.fract() == 0.0 => self.add_class(split, &label_of(target), path, place),
            Task::Classification => {
                wrong(format!("the label {target} is not a whole number: is this a regression (--task regression)?"))
            }
            Task::Counts if target < 0.0 || target.fract() != 0.0 => {
                wrong(format!("the target {target} is not a count 0, 1, 2, ...: is this a regression (--task regression)?"))
            }
            Task::Regression | Task::Counts => {
                self.numbers[split as usize].push(target);
                Ok(())
            }
        }
    }

    fn add_class(&mut self, split: Split, label: &str, path: &Path, place: Place) -> Result<()> {
        let class = self.labels.index_or_insert(label, path, place)?;
        let index = class as usize;
        if index == self.first_place.len() {
            self.first_place.push(place);
            self.in_train.push(false);
        }
        self.in_train[index] |= split == Split::Train;
        self.classes[split as usize].push(class);
        Ok(())
    }

    /// Adds the label or target of a row of a table of test rows, as [`Self::add_test_text`] does.
    pub(crate) fn add_test_table_label(&mut self, label: &str, path: &Path, place: Place) -> Result<()> {
        refuse_missing(label, path, place)?;
        self.add_test_text(label, path, place)
    }

    /// Adds the label or target of a row of a file of test rows. A class must be one of the training rows,
    /// where 1.0 may stand for 1, and TRUE for true.
    pub(crate) fn add_test_text(&mut self, label: &str, path: &Path, place: Place) -> Result<()> {
        match self.task {
            Task::Classification => {
                let class = self.labels.known_index(label, path, place)?;
                self.classes[Split::Test as usize].push(class);
                Ok(())
            }
            Task::Regression | Task::Counts => self.add_text(Split::Test, label, path, place),
        }
    }

    /// Adds a numeric label or target of a row of a file of test rows.
    pub(crate) fn add_test_number(&mut self, target: f64, path: &Path, place: Place) -> Result<()> {
        match self.task {
            Task::Classification => self.add_test_text(&label_of(target), path, place),
            Task::Regression | Task::Counts => self.add_number(Split::Test, target, path, place),
        }
    }

    /// Checks that labels do not look like those of a regression, and that every class has training rows.
    pub(crate) fn check(&self, splitter: &RowSplitter, path: &Path) -> Result<()> {
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
                let (label, advice) = (self.labels.name(class), splitter.advice());
                let what = format!("all rows with label {label:?} are test rows: {advice}");
                Err(DataError::content(path, self.first_place[class as usize], what))
            }
        }
    }

    /// Class names, training targets, test targets.
    pub(crate) fn finish(self, path: &Path) -> Result<(Vec<String>, Targets, Option<Targets>)> {
        let unless_empty = |targets: Targets, empty: bool| if empty { None } else { Some(targets) };
        match self.task {
            Task::Classification => {
                let (names, final_indices) = self.labels.to_classes(&self.order, path)?;
                let [train, test] = self
                    .classes
                    .map(|classes| classes.into_iter().map(|class| final_indices[class as usize]).collect::<Vec<_>>());
                let empty = test.is_empty();
                Ok((names, Targets::Classes(train), unless_empty(Targets::Classes(test), empty)))
            }
            Task::Regression | Task::Counts => {
                let [train, test] = self.numbers;
                let empty = test.is_empty();
                Ok((Vec::new(), Targets::Numbers(train), unless_empty(Targets::Numbers(test), empty)))
            }
        }
    }
}

fn refuse_missing(label: &str, path: &Path, place: Place) -> Result<()> {
    if is_missing(label.as_bytes()) {
        let what = format!("the label {label:?} looks missing: leave such rows out with --missing drop");
        return Err(DataError::content(path, place, what));
    }
    Ok(())
}

/// The label of a class that is given as a number. Minus zero is zero.
fn label_of(target: f64) -> String {
    (target + 0.0).to_string()
}
