//! Measures the draws that a run has so far as a finished run measures its own: for a run that goes on, was stopped, or did not measure them.

use super::data::check_unchanged;
use super::error::JobError;
use super::predictions::{TEST_PREDICTIONS, predictive_arrays};
use super::prepare::JobData;
use super::problem::table_problem;
use super::ranks::Ranks;
use super::scoring::{ScoringContext, scoring};
use super::start::{job_options, open_on_all, start_threads};
use super::tune::{TUNING, found_before_run};
use crate::config::{Dtype, Precision, Run, RunOf};
use crate::methods::{DrawKind, Table};
use crate::results::{Grid, POSTERIOR, ResultFile, RunFolder};

/// Computes the scores or temperatures of the draws in a result file, which rank 0 gives, and what they predict for the test rows, and adds what was
/// found before the run. Returns these arrays on rank 0, without those that the file has. Writes nothing; `folder`, that of the run, shows the
/// progress. Every rank calls this.
///
/// # Errors
/// If the data are not those of the run's start, or draws or data cannot be read.
pub fn measure_draws_so_far(
    run: &RunOf<Table>,
    file: Option<&ResultFile>,
    ranks: &Ranks,
    folder: &mut RunFolder,
) -> Result<Vec<Grid>, JobError> {
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
    let threads = start_threads(run, ranks);
    let data = open_on_all(run, ranks)?;
    ranks.agree(file.map_or(Ok(()), |file| check_unchanged(file, data.as_ref()).map_err(JobError::Judgment)))?;
    let dataset = data.as_ref().and_then(Table::downcast);
    let described = ranks.agree(table_problem::<F>(run, dataset, ranks))?;
    let model = described.problem.model.clone();
    let draws = F::method(run.method.as_ref(), described.problem.clone()).draws();
    let mut grids = Vec::new();
    if let Some(scoring) = scoring(run, &described.problem, described.rows, draws) {
        let options = job_options(run, threads, folder).without_stores();
        grids.extend(scoring(file, &mut ScoringContext { ranks, options: &options, folder })?);
    }
    let others = || -> Result<Vec<Grid>, JobError> {
        let Some(file) = file else { return Ok(Vec::new()) };
        let mut grids = Vec::new();
        if !file.has(TUNING) {
            match found_before_run(run, folder, model.dim()) {
                Ok(found) => grids.extend(found),
                Err(error) => folder.warn(&format!("the draws are judged without what was found before the run: {error}")),
            }
        }
        if let Some(dataset) = dataset.filter(|_| !file.has(TEST_PREDICTIONS)) {
            grids.extend(predictive_arrays(model.as_ref(), draws == DrawKind::Chains, file, dataset, run)?);
        }
        Ok(grids)
    };
    grids.extend(ranks.agree(others())?);
    Ok(grids)
}

/// The run, if it has draws in this file that can be judged; the file is that of rank 0, and not looked at elsewhere.
///
/// # Errors
/// If the run is that of a topic model, or of a method that does not sample the posterior, or the file has no draws.
pub fn with_draws_to_judge<'a>(run: &'a Run, file: Option<&ResultFile>) -> Result<&'a RunOf<Table>, JobError> {
    let Run::Table(run) = run else {
        return Err(JobError::Judgment(
            "the topics of chains have no common order. Judge the run by its perplexity on test documents".into(),
        ));
    };
    if !run.method.samples() {
        return Err(JobError::Judgment(format!("{} does not sample the posterior", run.method.name())));
    }
    let Some(file) = file else { return Ok(run) };
    let lengths = if file.has_posterior()? { file.lengths(POSTERIOR)? } else { Vec::new() };
    if lengths.is_empty() || lengths.contains(&0) {
        let path = file.path().display();
        let why = match file.info().state.finished {
            true => "this run has kept no draws: method.thin = 0 keeps none",
            false => {
                "this run has saved no draws yet, or not of every chain. Chains save theirs with each checkpoint after burn_in, particles at the \
                 end of the run"
            }
        };
        return Err(JobError::Judgment(format!("{path}: {why}")));
    }
    Ok(run)
}
