//! The scores of the posterior at some draws of a run, for the measurement of bias, or for the temperature of models with many parameters.

use super::error::JobError;
use super::predictions::{evenly_spaced, evenly_spaced_draws};
use super::problem::counted_once;
use super::ranks::Ranks;
use super::records::{records_of, records_of_long};
use crate::cluster::JobOptions;
use crate::config::{Precision, RunOf};
use crate::methods::common::full_scores::{FullScores, SCORES, ScoredRows};
use crate::methods::{DrawKind, Problem, Table};
use crate::metrics::bias::{DrawnFrom, MAX_PARAMETERS, draws_needed, draws_wanted};
use crate::metrics::temperature;
use crate::results::{Grid, POSTERIOR, ResultFile, ResultsError, RunFolder, Stage};
use ndarray::Array2;

/// The array of the group of scores that says what the draws come from.
pub const DRAWN_FROM: &str = "drawn_from";
/// The group with the configurational temperature of each variable at some draws.
pub const TEMPERATURE: &str = "configurational_temperature";

/// The temperature is the mean over at most this many draws.
const MAX_TEMPERATURE_DRAWS: usize = 40;
/// It is not measured with fewer draws.
pub const MIN_TEMPERATURE_DRAWS: usize = 10;
/// At most this many values, draws × parameters, are read, but never fewer draws than [`MIN_TEMPERATURE_DRAWS`].
const MAX_TEMPERATURE_VALUES: usize = 4_000_000;
/// The temperature of models with more parameters is not measured: rank 0 would need some 40 bytes for each value of all draws.
pub const MAX_TEMPERATURE_PARAMETERS: usize = 1_000_000;
/// The limit of rows × parameters × draws for the temperature, which a core computes in about a second for a dense network. The more parameters,
/// the fewer rows.
const MAX_TEMPERATURE_WORK: usize = 2_000_000_000;
/// But never fewer rows than these.
const MIN_TEMPERATURE_ROWS: usize = 256;

/// Computes scores at draws of the result file, which rank 0 has opened, on all ranks. Returns on rank 0 a group for the result file: the scores
/// with their draws, or temperatures. If the job is asked to stop, it returns none, and the folder knows that the run was stopped.
pub type Scoring = Box<dyn FnOnce(Option<&ResultFile>, &mut ScoringContext) -> Result<Option<Grid>, JobError>>;

/// What a scoring needs of the job.
pub struct ScoringContext<'a> {
    /// The ranks, which all take part.
    pub ranks: &'a Ranks<'a>,
    /// How they use the machine.
    pub options: &'a JobOptions,
    /// The folder of the run, which shows progress.
    pub folder: &'a mut RunFolder,
}

/// The scoring of draws of this kind, for a problem with this many rows. None for methods that do not sample the posterior, for models that are
/// too large, for particles of networks, which lie around several modes and are judged by what they predict, and for a fitted normal
/// distribution of many parameters, whose temperature is 1 whatever the posterior is.
pub(super) fn scoring<F: Precision>(run: &RunOf<Table>, problem: &Problem<F>, rows: usize, draws: DrawKind) -> Option<Scoring> {
    let is_judged_by_predictions = draws == DrawKind::Particles && problem.model.has_symmetries();
    if !run.method.samples() || is_judged_by_predictions {
        return None;
    }
    let drawn_from = if draws == DrawKind::FittedNormal { DrawnFrom::FittedNormal } else { DrawnFrom::Posterior };
    let problem = counted_once(problem, run.method.sharing());
    let is_small = problem.model.dim() <= MAX_PARAMETERS;
    let has_temperature = drawn_from == DrawnFrom::Posterior && problem.model.dim() <= MAX_TEMPERATURE_PARAMETERS;
    (is_small || has_temperature).then(|| {
        let scoring: Scoring = match is_small {
            true => Box::new(move |file, context| {
                let wanted = draws_wanted(problem.model.dim(), rows);
                scores_for_bias(problem, wanted, drawn_from, file, context)
            }),
            false => Box::new(move |file, context| measure_temperature(problem, rows, file, context)),
        };
        scoring
    })
}

/// Computes the configurational temperature of each variable, from estimates of scores at some draws.
fn measure_temperature<F: Precision>(
    problem: Problem<F>,
    rows: usize,
    file: Option<&ResultFile>,
    context: &mut ScoringContext,
) -> Result<Option<Grid>, JobError> {
    let parameters = problem.model.dim();
    let most = (MAX_TEMPERATURE_VALUES / parameters).clamp(MIN_TEMPERATURE_DRAWS, MAX_TEMPERATURE_DRAWS);
    let read = || -> Result<(Vec<usize>, Vec<F>), JobError> {
        let Some(file) = file else { return Ok(Default::default()) };
        if !file.has_posterior()? {
            return Ok(Default::default());
        }
        let places = evenly_spaced(&file.lengths(POSTERIOR)?, most);
        let draws = file.draws::<F>(POSTERIOR, &places)?.into_raw_vec_and_offset().0;
        Ok((places.into_iter().map(|place| place.0).collect(), draws))
    };
    let (chains, draws) = context.ranks.agree(read())?;
    let model = problem.model.clone();
    // Computed from `most`, not from the draws: all ranks need the same number, and only rank 0 has the draws.
    let affordable = (MAX_TEMPERATURE_WORK / (parameters * most)).max(MIN_TEMPERATURE_ROWS);
    let scored = ScoredRows::Sample { rows: affordable, of: rows };
    let Some(ScoredDraws { draws, scores }) = with_scores(problem, draws, MIN_TEMPERATURE_DRAWS, scored, context)? else {
        return Ok(None);
    };
    let (names, sizes): (Vec<String>, Vec<usize>) =
        model.parts().into_iter().map(|part| (part.name.clone(), part.size())).unzip();
    let by_draw = temperature::temperatures_by_draw(draws.view(), scores.view(), &chains, &sizes, !model.has_symmetries());
    let numbers = |counts: &[usize]| counts.iter().map(|&count| count as f64).collect();
    Ok(Some(Grid {
        group: TEMPERATURE.into(),
        dimensions: vec![("scored_draw".into(), chains.len()), ("variable".into(), names.len())],
        variables: vec![
            ("temperature".into(), vec![0, 1], by_draw),
            ("chain".into(), vec![0], numbers(&chains)),
            ("parameters".into(), vec![1], numbers(&sizes)),
        ],
        names: vec![("names".into(), 1, names)],
    }))
}

/// Draws with their scores, both draws × parameters.
struct ScoredDraws {
    draws: Array2<f64>,
    scores: Array2<f64>,
}

/// Computes the scores at draws from all rows on all ranks, which all call this, and returns them on rank 0. `draws` holds the draws one after
/// the other on rank 0, and nothing on other ranks.
pub(super) fn scores_at<F: Precision>(
    problem: Problem<F>,
    draws: Vec<F>,
    ranks: &Ranks,
    options: &JobOptions,
) -> Result<Option<Array2<f64>>, JobError> {
    let parameters = problem.model.dim();
    let scores = records_of(FullScores { problem, draws, rows: ScoredRows::All }, ranks, options)?;
    ranks.is_root().then(|| as_rows(scores, parameters)).transpose()
}

/// Values of draws, one draw after the other, as a matrix with a row for each draw.
fn as_rows(values: Vec<f64>, parameters: usize) -> Result<Array2<f64>, JobError> {
    Array2::from_shape_vec((values.len() / parameters, parameters), values)
        .map_err(|error| ResultsError::Shape(format!("the scores of draws: {error}")).into())
}

/// Draws with their scores on rank 0; none on other ranks, and everywhere if there are fewer draws than `least`, some are not finite, or the job
/// is asked to stop. Every rank calls this.
fn with_scores<F: Precision>(
    problem: Problem<F>,
    draws: Vec<F>,
    least: usize,
    rows: ScoredRows,
    ScoringContext { ranks, options, folder }: &mut ScoringContext,
) -> Result<Option<ScoredDraws>, JobError> {
    let parameters = problem.model.dim();
    let is_scored = draws.iter().all(|value| value.is_finite()) && draws.len() >= least * parameters;
    if ranks.broadcast(&[u8::from(is_scored)]) != [1] {
        return Ok(None);
    }
    let scoring = FullScores { problem, draws: draws.clone(), rows };
    let Some(scores) = records_of_long(scoring, ranks, options, Stage::Gradients, folder)? else { return Ok(None) };
    if !ranks.is_root() {
        return Ok(None);
    }
    let draws = draws.into_iter().map(|value| value.f64()).collect();
    Ok(Some(ScoredDraws { draws: as_rows(draws, parameters)?, scores: as_rows(scores, parameters)? }))
}

/// Computes the scores from which the bias of draws is measured.
fn scores_for_bias<F: Precision>(
    problem: Problem<F>,
    draws_wanted: usize,
    drawn_from: DrawnFrom,
    file: Option<&ResultFile>,
    context: &mut ScoringContext,
) -> Result<Option<Grid>, JobError> {
    let parameters = problem.model.dim();
    let read = || -> Result<Vec<F>, JobError> {
        let Some(file) = file else { return Ok(Vec::new()) };
        let draws = evenly_spaced_draws::<F>(file, draws_wanted)?;
        Ok(draws.map_or_else(Vec::new, |draws| draws.into_raw_vec_and_offset().0))
    };
    let draws = context.ranks.agree(read())?;
    let scored = with_scores(problem, draws, draws_needed(parameters), ScoredRows::All, context)?;
    Ok(scored.map(|ScoredDraws { draws, scores }| scores_grid(&draws, &scores, drawn_from)))
}

/// Draws with their scores, both draws × parameters, for the result file.
pub(super) fn scores_grid(draws: &Array2<f64>, scores: &Array2<f64>, drawn_from: DrawnFrom) -> Grid {
    let values = |matrix: &Array2<f64>| matrix.iter().copied().collect();
    Grid {
        group: SCORES.into(),
        dimensions: vec![("scored_draw".into(), draws.nrows()), ("parameter".into(), draws.ncols()), ("one".into(), 1)],
        variables: vec![("draws".into(), vec![0, 1], values(draws)), ("scores".into(), vec![0, 1], values(scores))],
        names: vec![(DRAWN_FROM.into(), 2, vec![drawn_from.name().into()])],
    }
}
