//! After a run: the scores of the posterior at some of its draws, from all rows of all agents, for the measurement of bias.

use super::error::JobError;
use super::predictions::evenly_spaced_draws;
use super::ranks::Ranks;
use super::records::records_of;
use crate::cluster::JobOptions;
use crate::config::Precision;
use crate::methods::Problem;
use crate::methods::common::full_scores::{FullScores, SCORES};
use crate::metrics::bias::{DrawnFrom, MAX_PARAMETERS, draws_needed, draws_wanted};
use crate::results::{Grid, ResultFile};
use ndarray::Array2;

/// The array of the group of scores that says what the draws come from.
pub const DRAWN_FROM: &str = "drawn_from";

/// Computes scores at draws of the result file, which rank 0 has opened, on all ranks. Returns them on rank 0 with their draws.
pub type Scoring = Box<dyn FnOnce(Result<Option<ResultFile>, JobError>, &Ranks, &JobOptions) -> Result<Option<Grid>, JobError>>;

/// The scoring of a problem that counts every one of `rows` rows once; none if it is not wanted, or the model has too many parameters.
pub(super) fn scoring<F: Precision>(wanted: bool, problem: Problem<F>, rows: usize, drawn_from: DrawnFrom) -> Option<Scoring> {
    (wanted && problem.model.dim() <= MAX_PARAMETERS).then(|| {
        let scoring: Scoring = Box::new(move |file, ranks, options| score(problem, (rows, drawn_from), file, ranks, options));
        scoring
    })
}

fn score<F: Precision>(
    problem: Problem<F>,
    (rows, drawn_from): (usize, DrawnFrom),
    file: Result<Option<ResultFile>, JobError>,
    ranks: &Ranks,
    options: &JobOptions,
) -> Result<Option<Grid>, JobError> {
    let parameters = problem.model.dim();
    let needed = draws_needed(parameters);
    let read = || -> Result<Vec<F>, JobError> {
        let Some(file) = file? else { return Ok(Vec::new()) };
        let draws = evenly_spaced_draws::<F>(&file, draws_wanted(parameters, rows))?;
        Ok(draws.map_or_else(Vec::new, |draws| draws.into_raw_vec_and_offset().0))
    };
    let draws = ranks.agree(read())?;
    let is_finite = draws.iter().all(|value| value.is_finite());
    let is_scored = is_finite && draws.len() >= needed * parameters;
    if ranks.broadcast(&[u8::from(is_scored)]) != [1] {
        return Ok(None);
    }
    let scores = records_of(FullScores { problem, draws: draws.clone() }, ranks, options)?;
    if !ranks.is_root() {
        return Ok(None);
    }
    let shape = (draws.len() / parameters, parameters);
    let matrix = |values: Vec<f64>| {
        Array2::from_shape_vec(shape, values).map_err(|error| JobError::Prediction(format!("the scores of draws: {error}")))
    };
    Ok(Some(scores_grid(&matrix(draws.into_iter().map(|value| value.f64()).collect())?, &matrix(scores)?, drawn_from)))
}

/// Draws with their scores (both M × d), for the result file.
pub(super) fn scores_grid(draws: &Array2<f64>, scores: &Array2<f64>, drawn_from: DrawnFrom) -> Grid {
    let values = |matrix: &Array2<f64>| matrix.iter().copied().collect();
    Grid {
        group: SCORES.into(),
        dimensions: vec![("scored_draw".into(), draws.nrows()), ("parameter".into(), draws.ncols()), ("one".into(), 1)],
        variables: vec![("draws".into(), vec![0, 1], values(draws)), ("scores".into(), vec![0, 1], values(scores))],
        names: vec![(DRAWN_FROM.into(), 2, vec![drawn_from.name().into()])],
    }
}
