//! Remarks on data that a method can use, but not well.

use crate::config::RunOf;
use crate::data::{DataError, Dataset, FeatureScaling, Recipe, Split, listed};
use crate::methods::Table;
use crate::models::ModelSettings;
use crate::models::logistic::LogisticSettings;
use crate::models::ordinal::OrdinalSettings;
use ndarray::ArrayView1;

/// The most values of training rows that are looked at, which takes less than a tenth of a second.
const MOST_VALUES: usize = 1 << 22;
/// Rows with at least this many features are probably images or the like, whose columns are correlated.
const MANY_CORRELATED: usize = 64;

/// Remarks on the rows of a run. Rows that cannot be read are an error elsewhere.
pub(super) fn notes_on_rows(run: &RunOf<Table>, dataset: &Dataset) -> Vec<String> {
    let is_wide = dataset.features() >= MANY_CORRELATED && !dataset.is_sparse();
    let has_sites = run.method.table().is_ok_and(|table| {
        table.get("cavity").is_some_and(|cavity| cavity.as_str() == Some("auto") || cavity.get("sites").is_some())
    });
    let sites = "the sites of networks need columns that are not correlated, which those of images are: import them with \
                    --scaling principal";
    let has_order = dataset.recipe().is_some_and(|recipe: &Recipe| recipe.has_ordered_classes);
    let are_numbers = dataset.classes().iter().all(|class| class.parse::<f64>().is_ok());
    let mut notes = Vec::new();
    if has_sites && is_wide && !is_rotated(dataset) && run.model_name() == "network" {
        notes.push(sites.to_owned());
    }
    if run.model_name() == OrdinalSettings::NAME && !has_order && !are_numbers {
        notes.push(format!(
            "the classes are taken in alphabetical order, {}: if theirs is another one, import the table again with --classes and all classes \
             in their order",
            dataset.classes().join(" < ")
        ));
    }
    notes.extend(note_on_separation(run, dataset).ok().flatten());
    notes
}

fn is_rotated(dataset: &Dataset) -> bool {
    matches!(dataset.scaling(), FeatureScaling::Dense { rotation: Some(_), .. })
}

/// A remark on the columns that separate the two classes of a logistic regression, if there are any. Of large data nothing is known.
fn note_on_separation(run: &RunOf<Table>, dataset: &Dataset) -> Result<Option<String>, DataError> {
    let rows = dataset.rows(Split::Train);
    let is_logistic = run.model_name() == LogisticSettings::NAME;
    // Without an intercept, the classes would have to be on two sides of 0.
    let has_intercept = run.model.table().is_ok_and(|keys| keys.get("intercept") == Some(&toml::Value::Boolean(true)));
    // Many rare words separate the classes of texts, which are sparse.
    let is_looked_at = is_logistic && has_intercept && !dataset.is_sparse() && !is_rotated(dataset);
    if !is_looked_at || rows.saturating_mul(dataset.features()) > MOST_VALUES {
        return Ok(None);
    }
    // Pixels have no names.
    let Some(names) = dataset.feature_names()? else { return Ok(None) };
    let shard = dataset.read_rows::<f64>(Split::Train, &(0..rows).collect::<Vec<_>>())?;
    let features = dataset.features() - dataset.extra_columns();
    let x = shard.x();
    let separating = names.iter().take(features).zip(x.columns()).filter(|(_, column)| is_separating(*column, shard.y()));
    let names: Vec<String> = separating.map(|(name, _)| name.clone()).collect();
    Ok((!names.is_empty()).then(|| sentence_on_separation(&names)))
}

fn sentence_on_separation(names: &[String]) -> String {
    // Columns that were made of a category or of gaps are named after the column of the table and what they indicate.
    let is_indicator = |name: &String| name.ends_with(']');
    let mut sentence = format!(
        "columns that tell the classes apart by themselves, but for ties (separation): {}. The training rows set no limit to such a weight, \
         which then depends on the scale of the prior, and may take long to sample",
        listed(names)
    );
    if names.iter().any(|name| !is_indicator(name)) {
        sentence.push_str(". A column that only follows from the class is better left out: import with --drop");
    }
    if names.iter().any(is_indicator) {
        sentence.push_str(". A value that only one class has, named in brackets, is better merged with others");
    }
    sentence
}

/// Whether no value in one of the classes 0 and 1 is larger than any in the other, without all being the same.
fn is_separating(values: ArrayView1<f64>, classes: ArrayView1<f64>) -> bool {
    let mut ranges = [(f64::INFINITY, f64::NEG_INFINITY); 2];
    for (&value, &class) in values.iter().zip(classes) {
        let (least, most) = &mut ranges[usize::from(class == 1.0)];
        *least = least.min(value);
        *most = most.max(value);
    }
    let [(least, most), (other_least, other_most)] = ranges;
    let has_both = least <= most && other_least <= other_most;
    has_both && (most <= other_least || other_most <= least) && least.min(other_least) < most.max(other_most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::aview1;

    #[test]
    fn a_column_separates_classes_if_their_values_do_not_overlap() {
        let classes = aview1(&[0.0, 1.0, 0.0, 1.0]);
        let is_separating = |values: [f64; 4]| is_separating(aview1(&values), classes);
        assert!(is_separating([1.0, 3.0, 2.0, 4.0]));
        assert!(is_separating([3.0, 1.0, 4.0, 2.0]), "either class may have the larger values");
        assert!(is_separating([0.0, 0.0, 0.0, 1.0]), "they may have one value in common, as in a column of a rare category");
        assert!(!is_separating([1.0, 2.0, 3.0, 4.0]));
        assert!(!is_separating([5.0; 4]), "a constant column says nothing");
        assert!(!super::is_separating(aview1(&[1.0, 2.0]), aview1(&[1.0, 1.0])), "nor does a single class");
    }

    #[test]
    fn columns_of_numbers_and_of_categories_get_their_own_advice() {
        let advice = |names: &[&str]| {
            let sentence = sentence_on_separation(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
            (sentence.contains("--drop"), sentence.contains("merged"))
        };
        assert_eq!(
            [advice(&["paid"]), advice(&["kind[b]"]), advice(&["paid", "age[missing]"])],
            [(true, false), (false, true), (true, true)]
        );
    }
}
