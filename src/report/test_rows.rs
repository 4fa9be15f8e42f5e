//! How well the draws of a run, all together, predict the test rows, and whether its chains agree about them.

use super::error::{ReportError, Result};
use crate::job::predictions::{R_HAT, TEST_CONVERGENCE, TEST_PREDICTIONS};
use crate::metrics::{Classification, Metrics, Quality, Tally};
use crate::results::{Grid, ResultFile};
use ndarray::{Array1, Axis, Ix1, Ix2};
use serde::Serialize;

/// Chains with an R-hat from here on predict differently.
const DIFFERENT: f64 = 1.1;

/// What is known of the test rows of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestRows {
    /// Metrics of predictions averaged over the draws of the posterior.
    #[serde(serialize_with = "crate::text::as_object")]
    pub metrics: Vec<(String, f64)>,
    /// The share of test rows for which chains predict the same: those with an R-hat below 1.1. Known for chains on models whose parameters
    /// have no unique values, such as networks.
    pub agreement: Option<f64>,
    /// The metrics of classes by bin and by class.
    #[serde(skip)]
    pub classes: Option<Classification>,
}

impl TestRows {
    /// Those of a result file; none if the run has predicted none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of(file: &ResultFile) -> Result<Option<Self>> {
        let Some(predictions) = file.grid(TEST_PREDICTIONS)? else { return Ok(None) };
        let found = metrics(&predictions)
            .ok_or_else(|| ReportError::Missing(format!("the group {TEST_PREDICTIONS} of the result file is not complete")))?;
        let agreement = file.grid(TEST_CONVERGENCE)?.and_then(|grid| {
            let r_hats = grid.array(R_HAT)?;
            let known: Vec<f64> = r_hats.into_iter().filter(|r_hat| !r_hat.is_nan()).collect();
            let same = known.iter().filter(|&&r_hat| r_hat < DIFFERENT).count();
            (!known.is_empty()).then(|| same as f64 / known.len() as f64)
        });
        let metrics = found.values();
        let classes = if let Quality::Classes(classes) = found.quality { Some(classes) } else { None };
        Ok(Some(Self { metrics, agreement, classes }))
    }
}

/// The metrics of these predictions; none if something is missing or out of range.
fn metrics(predictions: &Grid) -> Option<Metrics> {
    let column = |name: &str| predictions.array(name)?.into_dimensionality::<Ix1>().ok();
    let (targets, density): (Array1<f64>, Array1<f64>) = (column("target")?, column("density")?);
    let (mut tally, mean) = match (predictions.array("probability"), column("mean")) {
        (Some(probability), _) => {
            let probability = probability.into_dimensionality::<Ix2>().ok()?;
            let classes = probability.ncols();
            let is_class = |target: &f64| target.fract() == 0.0 && (0.0..classes as f64).contains(target);
            targets.iter().all(is_class).then(|| (Tally::classes(classes), probability))?
        }
        (None, Some(mean)) => (Tally::number(), mean.insert_axis(Axis(1))),
        (None, None) => return None,
    };
    tally.add(mean.view(), density.as_slice()?, targets.view());
    Some(tally.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn grid(variables: &[(&str, &[usize], &[f64])]) -> Grid {
        let variables = variables.iter().map(|&(name, axes, values)| (name.to_owned(), axes.to_vec(), values.to_vec())).collect();
        let dimensions = vec![("row".to_owned(), 2), ("class".to_owned(), 2)];
        Grid { group: TEST_PREDICTIONS.into(), dimensions, variables, names: Vec::new() }
    }

    #[test]
    fn metrics_are_those_of_the_averaged_predictions() {
        let density: (&str, &[usize], &[f64]) = ("density", &[0], &[0.5, 0.25]);
        let numbers = grid(&[("target", &[0], &[1.0, 2.0]), density, ("mean", &[0], &[1.0, 4.0])]);
        let found = metrics(&numbers).unwrap().values();
        assert_eq!(found[0], ("rmse".into(), 2.0_f64.sqrt()));
        assert!(found[1].0 == "log_likelihood" && (found[1].1 - 0.125_f64.ln() / 2.0).abs() < 1e-12);
        let probability: (&str, &[usize], &[f64]) = ("probability", &[0, 1], &[0.5, 0.5, 0.75, 0.25]);
        let classes = grid(&[("target", &[0], &[0.0, 1.0]), density, probability]);
        assert_eq!(metrics(&classes).unwrap().values()[0], ("accuracy".into(), 0.5));
        // A class that does not exist, and arrays that are missing.
        assert_eq!(metrics(&grid(&[("target", &[0], &[0.0, 2.0]), density, probability])), None);
        assert_eq!(metrics(&grid(&[("target", &[0], &[0.0, 1.0]), density])), None);
    }
}
