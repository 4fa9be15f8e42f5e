//! Remarks on data that a method can use, but not well.

use crate::config::RunOf;
use crate::data::{Dataset, FeatureScaling};
use crate::methods::Table;

/// Rows with at least this many features are probably images or the like, whose columns are correlated.
const MANY_CORRELATED: usize = 64;

/// Remarks on the rows of a run.
pub(super) fn notes_on_rows(run: &RunOf<Table>, dataset: &Dataset) -> Vec<String> {
    let is_rotated = matches!(dataset.scaling(), FeatureScaling::Dense { rotation: Some(_), .. });
    let is_wide = dataset.features() >= MANY_CORRELATED && !dataset.is_sparse();
    let has_sites = run.method.table().is_ok_and(|table| {
        table.get("cavity").is_some_and(|cavity| cavity.as_str() == Some("auto") || cavity.get("sites").is_some())
    });
    let note = "the sites of networks need columns that are not correlated, which those of images are: import them with \
                    --scaling principal";
    (has_sites && is_wide && !is_rotated && run.model_name() == "network").then(|| note.to_owned()).into_iter().collect()
}
