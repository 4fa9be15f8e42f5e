//! Labels and targets as rows stream in, and which rows are held out: what the readers of labelled rows share.

use super::classes::Labels;
use super::error::{DataError, Place, Result};
use super::partition::Draw;
use super::{Split, Targets, Task};
use crate::random::Seed;
use std::path::Path;

/// The targets so far: a few bytes a row, kept in memory because class indices are known only at the end.
pub(super) struct Collector {
    task: Task,
    labels: Labels,
    classes: [Vec<u32>; 2],
    numbers: [Vec<f64>; 2],
    /// For each label, whether a training row has it, and the line where it was first seen.
    seen: Vec<(bool, u64)>,
}

impl Collector {
    pub(super) fn new(task: Task) -> Self {
        Self { task, labels: Labels::default(), classes: Default::default(), numbers: Default::default(), seen: Vec::new() }
    }

    /// Takes the label of a row of the file that training rows come from: new classes are welcome.
    pub(super) fn add(&mut self, split: Split, label: &str, path: &Path, line: u64) -> Result<()> {
        if self.task == Task::Regression {
            return self.add_number(split, label, path, line);
        }
        let class = self.labels.index(label, path, Place::Line(line))?;
        if class as usize == self.seen.len() {
            self.seen.push((false, line));
        }
        if split == Split::Train {
            self.seen[class as usize].0 = true;
        }
        self.classes[split as usize].push(class);
        Ok(())
    }

    /// Takes the label of a row of a file of test rows: its class must be known.
    pub(super) fn add_test(&mut self, label: &str, path: &Path, line: u64) -> Result<()> {
        if self.task == Task::Regression {
            return self.add_number(Split::Test, label, path, line);
        }
        let class = self.labels.known(label, path, Place::Line(line))?;
        self.classes[Split::Test as usize].push(class);
        Ok(())
    }

    fn add_number(&mut self, split: Split, label: &str, path: &Path, line: u64) -> Result<()> {
        let wrong = |what: &str| DataError::content(path, Place::Line(line), format!("the target {label:?} {what}"));
        let target = label.parse::<f64>().map_err(|_| wrong("is not a number: is this a classification?"))?;
        if !target.is_finite() {
            return Err(wrong("is not a finite number: remove the row or fill in a value"));
        }
        self.numbers[split as usize].push(target);
        Ok(())
    }

    /// Class names, training targets, test targets.
    pub(super) fn finish(self, path: &Path) -> Result<(Vec<String>, Targets, Option<Targets>)> {
        if let Some((class, &(_, line))) = (0..).zip(&self.seen).find(|(_, (in_train, _))| !in_train) {
            let label = self.labels.name(class);
            let what = format!("all rows with label {label:?} fell into the test split: choose another seed or fraction");
            return Err(DataError::content(path, Place::Line(line), what));
        }
        let (names, [train, test]) = match self.task {
            Task::Regression => (Vec::new(), self.numbers.map(Targets::Numbers)),
            Task::Classification => {
                let (names, finals) = self.labels.sort(path)?;
                let last = |classes: Vec<u32>| classes.into_iter().map(|class| finals[class as usize]).collect();
                (names, self.classes.map(|classes| Targets::Classes(last(classes))))
            }
        };
        let test = if test.len() == 0 { None } else { Some(test) };
        Ok((names, train, test))
    }
}

/// Which of `rows` rows are test rows: exactly the rounded share of them, drawn at random.
///
/// # Errors
/// When nothing would be left to test on or to train on.
pub(super) fn hold_out(rows: usize, fraction: f64, seed: Seed, path: &Path) -> Result<Vec<bool>> {
    if !(fraction > 0.0 && fraction < 1.0) {
        return Err(DataError::Request(format!("a test fraction of {fraction} is not between 0 and 1")));
    }
    // The number of rows is exact in double precision and the product is at most it.
    let test = (rows as f64 * fraction).round() as usize;
    if test == 0 || test == rows {
        let what =
            format!("a test fraction of {fraction} of {rows} rows leaves {test} test rows and {} to train on", rows - test);
        return Err(DataError::content(path, Place::File, what));
    }
    let mut held = vec![false; rows];
    Draw::Hold.stream(seed).permutation(rows).into_iter().take(test).for_each(|row| held[row] = true);
    Ok(held)
}
