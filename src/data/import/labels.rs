//! Maps labels, as written in the input, to class indices.

use crate::data::error::{DataError, Place, Result, listed};
use crate::data::readers::levels::other_spellings;
use std::collections::HashMap;
use std::path::Path;

/// The maximum number of classes.
const MAX_CLASSES: usize = 10_000;

/// The different labels of the input in order of appearance; a separate file of test rows adds none. [`Labels::to_classes`] makes
/// them classes.
#[derive(Default)]
pub(crate) struct Labels {
    indices: HashMap<String, u32>,
    names: Vec<String>,
}

impl Labels {
    /// The provisional index of a label; new labels get the next one.
    pub(crate) fn index_or_insert(&mut self, label: &str, path: &Path, place: Place) -> Result<u32> {
        if let Some(&index) = self.indices.get(label) {
            return Ok(index);
        }
        if label.is_empty() {
            let what = "the label is empty: fill it in, or leave such rows out with --missing drop";
            return Err(DataError::content(path, place, what));
        }
        let index = match u32::try_from(self.names.len()) {
            Ok(index) if self.names.len() < MAX_CLASSES => index,
            _ => {
                let what =
                    format!("more than {MAX_CLASSES} different labels: is this a regression, or is the label in another column?");
                return Err(DataError::content(path, place, what));
            }
        };
        self.indices.insert(label.to_owned(), index);
        self.names.push(label.to_owned());
        Ok(index)
    }

    /// The provisional index of a known label, for a file of test rows, which may spell it differently (1.0 for 1).
    pub(crate) fn known_index(&self, label: &str, path: &Path, place: Place) -> Result<u32> {
        let index = |spelling: &str| self.indices.get(spelling).copied();
        let found = index(label).or_else(|| other_spellings(label).iter().find_map(|spelling| index(spelling)));
        found.ok_or_else(|| unknown_label(label, path, place))
    }

    /// The label with a provisional index.
    pub(crate) fn name(&self, index: u32) -> &str {
        self.names.get(index as usize).map_or("", String::as_str)
    }

    /// The class names in the wanted order, or else sorted (by number if all are numbers, else by text), and the final index of each
    /// provisional one.
    pub(crate) fn to_classes(&self, wanted: &[String], path: &Path) -> Result<(Vec<String>, Vec<u32>)> {
        if let [only] = self.names.as_slice() {
            let what = format!("every training row has the label {only:?}: a classification needs at least two classes");
            return Err(DataError::content(path, Place::File, what));
        }
        if !wanted.is_empty() {
            return self.in_order(wanted, path);
        }
        let numbers: Option<Vec<f64>> =
            self.names.iter().map(|name| name.parse::<f64>().ok().filter(|number| number.is_finite())).collect();
        let whole: Vec<Option<i128>> = self.names.iter().map(|name| name.parse().ok()).collect();
        let differ = |a: Option<i128>, b: Option<i128>| a.is_some() && b.is_some() && a != b;
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        match &numbers {
            // Of whole numbers above 2^53, different ones may become the same floating-point number.
            Some(numbers) => {
                let number_and_whole = |a: &usize, b: &usize| numbers[*a].total_cmp(&numbers[*b]).then(whole[*a].cmp(&whole[*b]));
                order.sort_by(number_and_whole);
            }
            None => order.sort_by(|&a, &b| self.names[a].cmp(&self.names[b])),
        }
        if let Some(numbers) = numbers
            && let Some(pair) =
                order.windows(2).find(|pair| numbers[pair[0]] == numbers[pair[1]] && !differ(whole[pair[0]], whole[pair[1]]))
        {
            let (one, other) = (&self.names[pair[0]], &self.names[pair[1]]);
            let what = format!("the labels {one:?} and {other:?} are the same number written in two ways: write it in one way");
            return Err(DataError::content(path, Place::File, what));
        }
        let mut final_indices = vec![0; order.len()];
        for (index, &provisional) in (0..).zip(&order) {
            final_indices[provisional] = index;
        }
        Ok((order.into_iter().map(|provisional| self.names[provisional].clone()).collect(), final_indices))
    }

    /// Checks that `wanted` lists every label exactly once; returns it with the final index of each provisional one.
    fn in_order(&self, wanted: &[String], path: &Path) -> Result<(Vec<String>, Vec<u32>)> {
        let wrong = |what: String| Err(DataError::content(path, Place::File, what));
        if let Some(name) = wanted.iter().enumerate().find_map(|(place, name)| wanted[..place].contains(name).then_some(name)) {
            return wrong(format!("the class {name:?} is listed twice"));
        }
        if let Some(name) = wanted.iter().find(|name| !self.indices.contains_key(*name)) {
            return wrong(format!("no row has the label {name:?}; the labels are {}", listed(&self.names)));
        }
        let mut final_indices = Vec::with_capacity(wanted.len());
        for name in &self.names {
            match (0..).zip(wanted).find(|(_, other)| *other == name) {
                Some((place, _)) => final_indices.push(place),
                None => return wrong(format!("rows have the label {name:?}, which is not among the classes {}", listed(wanted))),
            }
        }
        Ok((wanted.to_vec(), final_indices))
    }
}

/// The error for a test row of a class that the training rows do not have.
pub(crate) fn unknown_label(label: &str, path: &Path, place: Place) -> DataError {
    let what = format!("the test row's label {label:?} does not occur in the training data: a model cannot know this class");
    DataError::content(path, place, what)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sorted(labels: &[&str]) -> Result<(Vec<String>, Vec<u32>)> {
        let mut all = Labels::default();
        for (label, line) in labels.iter().zip(1..) {
            all.index_or_insert(label, Path::new("x.csv"), Place::Line(line))?;
        }
        all.to_classes(&[], Path::new("x.csv"))
    }

    #[test]
    fn numbers_sort_as_numbers_and_texts_as_texts() {
        assert_eq!(sorted(&["10", "9", "-1", "9"]).unwrap(), (vec!["-1".into(), "9".into(), "10".into()], vec![2, 1, 0]));
        assert_eq!(sorted(&["10", "9", "b", "a"]).unwrap().0, ["10", "9", "a", "b"]);
        // Above 2^53 they are the same floating-point number.
        let large = ["9007199254740993", "9007199254740992"];
        assert_eq!(sorted(&large).unwrap().0, [large[1], large[0]]);
        let negative = ["-9007199254740992", "-9007199254740993"];
        assert_eq!(sorted(&negative).unwrap().0, [negative[1], negative[0]]);
        let twice = ["+9007199254740993", "9007199254740992", "9007199254740993"];
        assert!(sorted(&twice).unwrap_err().to_string().contains("two ways"));
    }

    #[test]
    fn labels_that_make_no_classification_are_refused() {
        for (labels, says) in
            [(&["1", "1"][..], "at least two"), (&["1", "1.0", "2"], "two ways"), (&["a", ""], "line 2: the label is")]
        {
            let message = sorted(labels).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
        let many: Vec<String> = (0..10_001).map(|i| i.to_string()).collect();
        let message = sorted(&many.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_err().to_string();
        assert!(message.contains("line 10001") && message.contains("regression"), "{message}");
    }
}
