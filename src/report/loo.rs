//! Runs compared by how well they predict rows whose log-likelihoods they have kept: training rows by leave-one-out
//! cross-validation, test rows directly.

use super::error::Result;
use super::posterior::PosteriorGroup;
use crate::job::pointwise::{LOG_LIKELIHOOD, OBSERVED_DATA, TARGET, TEST_ROW};
use crate::metrics::loo::{RowDensities, Total};
use crate::results::{POSTERIOR, ResultFile};
use crate::text;
use ndarray::Array2;
use serde::Serialize;

/// How well a run predicts rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictiveScore {
    /// The run.
    pub run: String,
    /// The expected log predictive density of all rows.
    pub elpd: Total,
    /// Its elpd minus that of the best run, so never positive; none for the best run.
    pub difference: Option<Total>,
    /// The number of rows for which the estimate cannot be trusted.
    pub unreliable_rows: usize,
    /// The number of rows.
    pub rows: usize,
    /// Whether they are test rows; training rows are left out one by one.
    pub are_test_rows: bool,
}

/// How well a run predicts each of its rows.
#[derive(Clone, Debug)]
pub struct RowScores {
    densities: RowDensities,
    /// Whether they are test rows.
    are_test_rows: bool,
    /// The targets of the rows.
    targets: Vec<f64>,
}

/// The scores of the rows of which a run has kept the log-likelihoods; none if it has kept none.
///
/// # Errors
/// When the file cannot be read.
pub fn row_scores(file: &ResultFile) -> Result<Option<RowScores>> {
    let Some(grid) = file.grid(LOG_LIKELIHOOD)? else { return Ok(None) };
    let Some(values) = grid.array(TARGET) else { return Ok(None) };
    let [chains, draws, rows] = *values.shape() else { return Ok(None) };
    let total = chains * draws;
    let Ok(values) = Array2::from_shape_vec((total, rows), values.into_iter().collect()) else { return Ok(None) };
    let targets = file.grid(OBSERVED_DATA)?.and_then(|grid| grid.array(TARGET)).map(|targets| targets.into_iter().collect());
    let targets = targets.unwrap_or_default();
    if grid.dimensions.iter().any(|(name, _)| name == TEST_ROW) {
        return Ok(Some(RowScores { densities: RowDensities::of_test_rows(values.view()), are_test_rows: true, targets }));
    }
    let group = PosteriorGroup::read(file, POSTERIOR, true)?;
    let sizes = group.estimates.iter().filter_map(|parameter| {
        let (sd, error) = (parameter.estimate.sd, parameter.estimate.convergence.as_ref()?.mcse_mean);
        Some((sd / error).powi(2)).filter(|size| size.is_finite())
    });
    let (sum, count) = sizes.fold((0.0, 0.0), |(sum, count), size| (sum + size, count + 1.0));
    // Particles have no effective sample size, and ArviZ takes the draws of a single chain for independent.
    let efficiency = if count > 0.0 && chains > 1 { sum / count / total as f64 } else { 1.0 };
    // The effective sample size is that of all draws; if only some are kept, these are at most independent.
    let is_thinned = draws < file.lengths(POSTERIOR)?.into_iter().min().unwrap_or(0);
    let efficiency = if is_thinned { efficiency.min(1.0) } else { efficiency };
    let densities = RowDensities::leave_one_out(values.view(), efficiency);
    Ok(Some(RowScores { densities, are_test_rows: false, targets }))
}

/// The scores of these runs, the best one first; empty for a single run, and unless the rows are the same: as many, with the same
/// targets.
pub fn predictive_scores(runs: Vec<(String, RowScores)>) -> Vec<PredictiveScore> {
    let (rows, are_test_rows) = runs.first().map_or((0, false), |(_, run)| (run.targets.len(), run.are_test_rows));
    let same_rows =
        |one: &RowScores, other: &RowScores| one.are_test_rows == other.are_test_rows && are_close(&one.targets, &other.targets);
    if runs.len() < 2 || rows == 0 || runs.windows(2).any(|pair| !same_rows(&pair[0].1, &pair[1].1)) {
        return Vec::new();
    }
    let mut runs: Vec<(String, RowDensities)> = runs.into_iter().map(|(name, run)| (name, run.densities)).collect();
    // What is not a number comes last.
    let elpd = |run: &RowDensities| Some(run.total().value).filter(|value| !value.is_nan()).unwrap_or(f64::NEG_INFINITY);
    runs.sort_by(|(_, one), (_, other)| elpd(other).total_cmp(&elpd(one)));
    let best = runs[0].1.pointwise.clone();
    let against_best = |run: &RowDensities| {
        let differences: Vec<f64> = run.pointwise.iter().zip(&best).map(|(own, best)| own - best).collect();
        Total::of(&differences)
    };
    let score = |(place, (run, densities)): (usize, (String, RowDensities))| PredictiveScore {
        run,
        elpd: densities.total(),
        difference: (place > 0).then(|| against_best(&densities)),
        unreliable_rows: densities.unreliable(),
        rows,
        are_test_rows,
    };
    runs.into_iter().enumerate().map(score).collect()
}

/// Whether these are the same targets, up to the rounding of single precision.
fn are_close(one: &[f64], other: &[f64]) -> bool {
    let size = one.iter().fold(0.0, |size: f64, value| size.max(value.abs()));
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| (one - other).abs() <= 1e-5 * size)
}

/// The table with its heading; empty without scores.
pub(super) fn table(all: &[PredictiveScore]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let cells = |of: &dyn Fn(&PredictiveScore) -> String| all.iter().map(of).collect::<Vec<_>>();
    let shown =
        |total: Option<Total>, of: fn(Total) -> f64| total.map_or_else(|| "-".to_owned(), |total| format!("{:.1}", of(total)));
    let columns = [
        ("run".to_owned(), cells(&|row| row.run.clone())),
        ("elpd".into(), cells(&|row| shown(Some(row.elpd), |total| total.value))),
        ("se".into(), cells(&|row| shown(Some(row.elpd), |total| total.standard_error))),
        ("difference".into(), cells(&|row| shown(row.difference, |total| total.value))),
        ("its se".into(), cells(&|row| shown(row.difference, |total| total.standard_error))),
        ("unreliable rows".into(), cells(&|row| text::count(row.unreliable_rows))),
    ];
    let heading = if first.are_test_rows {
        format!("\nlog predictive density of {} (larger is better)\n", text::counted(first.rows, "test row"))
    } else {
        let rows = text::counted(first.rows, "training row");
        format!("\nleave-one-out cross-validation of {rows} (PSIS-LOO; larger is better)\n")
    };
    heading + &text::table(&columns)
}
