//! Measures the draws that a run has so far as a finished run measures its own: for a run that goes on, was stopped, or did not measure them.

use super::data::{DataFile, check_unchanged};
use super::error::JobError;
use super::predictions::predictive_arrays;
use super::prepare::JobData;
use super::problem::table_problem;
use super::ranks::Ranks;
use super::scoring::{ScoringContext, scoring};
use super::start::{job_options, open_on_all, start_threads};
use crate::config::{Dtype, Precision, Run, RunOf};
use crate::methods::{DrawKind, Table};
use crate::results::{Grid, POSTERIOR, ResultFile, RunFolder};

/// Computes the scores or temperatures of the draws in a result file, which rank 0 gives, and what they predict for the test rows. Returns these
/// arrays on rank 0. Writes nothing; `folder` shows the progress. Every rank calls this.
///
/// # Errors
/// If the draws cannot be judged (a topic model, a method that does not sample the posterior, no draws yet, other data than at the start), or
/// draws or data cannot be read.
pub fn measure_draws_so_far(
    run: &Run,
    file: Option<&ResultFile>,
    ranks: &Ranks,
    folder: &mut RunFolder,
) -> Result<Vec<Grid>, JobError> {
    let Run::Table(run) = run else {
        return ranks.agree(Err(JobError::Judgment(
            "the topics of chains have no common order. Judge the run by its perplexity on test documents".into(),
        )));
    };
    match run.settings.dtype {
        Dtype::Float32 => measure::<f32>(run, file, ranks, folder),
        Dtype::Float64 => measure::<f64>(run, file, ranks, folder),
    }
}

fn measure<F: Precision>(
    run: &RunOf<Table>,
    file: Option<&ResultFile>,
    ranks: &Ranks,
    folder: &mut RunFolder,
) -> Result<Vec<Grid>, JobError> {
    let data = open_on_all(run, ranks)?;
    ranks.agree(check_can_be_judged(run, file, data.as_ref()))?;
    let dataset = data.as_ref().and_then(Table::downcast);
    let described = ranks.agree(table_problem::<F>(run, dataset, ranks))?;
    let model = described.problem.model.clone();
    let draws = F::method(run.method.as_ref(), described.problem.clone()).draws();
    let mut grids = Vec::new();
    if let Some(scoring) = scoring(run, &described.problem, described.rows, draws) {
        let options = job_options(run, start_threads(run, ranks), folder).without_stores();
        grids.extend(scoring(file, &mut ScoringContext { ranks, options: &options, folder })?);
    }
    let predicted = match (file, dataset) {
        (Some(file), Some(dataset)) => predictive_arrays(model.as_ref(), draws == DrawKind::Chains, file, dataset, run),
        _ => Ok(Vec::new()),
    };
    grids.extend(ranks.agree(predicted)?);
    Ok(grids)
}

/// Checks that the draws can be judged with these data.
fn check_can_be_judged(run: &RunOf<Table>, file: Option<&ResultFile>, data: Option<&DataFile>) -> Result<(), JobError> {
    if !run.method.samples() {
        return Err(JobError::Judgment(format!("{} does not sample the posterior", run.method.name())));
    }
    let Some(file) = file else { return Ok(()) };
    if !file.has_posterior()? || file.lengths(POSTERIOR)?.iter().all(|&length| length == 0) {
        return Err(JobError::Judgment(format!("{}: this run has no draws yet", file.path().display())));
    }
    check_unchanged(file, data).map_err(JobError::Judgment)
}
