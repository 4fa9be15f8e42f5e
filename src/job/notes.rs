//! Remarks on data that a method can use, but not well.

use crate::config::RunOf;
use crate::data::{Dataset, FeatureScaling, Recipe};
use crate::methods::Table;
use crate::models::ModelSettings;
use crate::models::ordinal::OrdinalSettings;

/// Rows with at least this many features are probably images or the like, whose columns are correlated.
const MANY_CORRELATED: usize = 64;

/// Remarks on the rows of a run.
pub(super) fn notes_on_rows(run: &RunOf<Table>, dataset: &Dataset) -> Vec<String> {
    let is_rotated = matches!(dataset.scaling(), FeatureScaling::Dense { rotation: Some(_), .. });
    let is_wide = dataset.features() >= MANY_CORRELATED && !dataset.is_sparse();
    let has_sites = run.method.table().is_ok_and(|table| {
        table.get("cavity").is_some_and(|cavity| cavity.as_str() == Some("auto") || cavity.get("sites").is_some())
    });
    let sites = "the sites of networks need columns that are not correlated, which those of images are: import them with \
                    --scaling principal";
    let has_order = dataset.recipe().is_some_and(|recipe: &Recipe| recipe.has_ordered_classes);
    let are_numbers = dataset.classes().iter().all(|class| class.parse::<f64>().is_ok());
    let mut notes = Vec::new();
    if has_sites && is_wide && !is_rotated && run.model_name() == "network" {
        notes.push(sites.to_owned());
    }
    if run.model_name() == OrdinalSettings::NAME && !has_order && !are_numbers {
        notes.push(format!(
            "the classes are taken in alphabetical order, {}: if theirs is another one, import the table again with --classes and all classes \
             in their order",
            dataset.classes().join(" < ")
        ));
    }
    notes
}
