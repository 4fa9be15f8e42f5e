//! Before a run with automatic steps: the mode of the posterior, its curvature and the noise of scores, measured on all ranks.

use super::error::JobError;
use super::problem::{TableProblem, counted_once, table_problem, wrong_method};
use super::ranks::Ranks;
use super::records::records_of;
use crate::cluster::JobOptions;
use crate::config::{ConfigError, ConfiguredMethod, RunOf};
use crate::data::Dataset;
use crate::methods::tuning::{FindMode, MeasureNoise, Measurement, TuningNeeds};
use crate::methods::{Problem, Table};
use crate::models::{CurvatureSupport, Model, Whitened, Whitening};
use crate::number::Real;
use crate::results::{Grid, RunFolder};
use crate::settings::inline;
use ndarray::{Array1, Array2, ArrayView2, s};
use ndarray_linalg::{Cholesky, Diag, SolveTriangular, UPLO};
use std::sync::Arc;

/// Models with more parameters keep the steps of their settings, because curvatures grow with the square of this number.
const MAX_PARAMETERS: usize = 1000;
/// The curvature around the mode, relative to that at the mode, above which a note is printed.
const MUCH_CURVATURE: f64 = 10.0;
/// Noise of shards, in units of the posterior's variance, above which a note is printed.
const MUCH_SHARD_NOISE: f64 = 10.0;
/// The group of arrays of what was found.
pub const TUNING: &str = "tuning";

/// What was found for a run.
pub struct Tuned {
    /// The method with its steps and lengths.
    pub method: Arc<dyn ConfiguredMethod<Table>>,
    /// The keys that were found, with their values.
    found: toml::Table,
    /// What they follow from; none where nothing can be measured.
    measured: Option<(Coordinates, Measurement)>,
}

/// Coordinates in which the posterior is close to a standard normal distribution.
#[derive(Clone)]
struct Coordinates {
    /// θ*, the mode.
    mode: Array1<f64>,
    /// −∇ Σ_k L_k/α there.
    score: Array1<f64>,
    /// L, upper triangular: L Lᵀ is the inverse of the curvature at the mode.
    factor: Array2<f64>,
}

/// Whether automatic steps can be found for a model; otherwise its runs keep the steps that "auto" stands for.
pub(super) fn can_be_tuned(model: &dyn Model<f64>) -> bool {
    model.curvature_support() == CurvatureSupport::Full && (1..=MAX_PARAMETERS).contains(&model.dim())
}

/// What `step = "auto"` means for a model for which no step can be found.
pub(super) fn note_on_preset(preset: &dyn ConfiguredMethod<Table>, model: &str, parameters: usize) -> Result<String, JobError> {
    let step = table_of(preset)?.get("step").map_or_else(String::new, inline);
    let reason = match parameters {
        ..=MAX_PARAMETERS => "does not provide a full matrix of curvature".to_owned(),
        _ => format!("has {parameters} parameters, more than {MAX_PARAMETERS}"),
    };
    Ok(format!("step = \"auto\" is {step} here, because the model {model} {reason}. Draws may be biased: choose a step"))
}

/// Finds what a run leaves to be found, if anything. Every rank calls this.
///
/// # Errors
/// If the problem cannot be made, or its posterior has no mode that Newton steps find.
pub(super) fn tune(
    run: &RunOf<Table>,
    dataset: Option<&Arc<Dataset>>,
    ranks: &Ranks,
    options: &JobOptions,
    folder: &RunFolder,
) -> Result<Option<Tuned>, JobError> {
    let Some(TuningNeeds { batch, share, .. }) = run.method.tuning() else { return Ok(None) };
    let TableProblem { problem, rows, largest_shard, .. } = ranks.agree(table_problem::<f64>(run, dataset))?;
    if !can_be_tuned(problem.model.as_ref()) {
        let method = run.method.tuned(None, run.settings.agents).map_err(wrong_method)?;
        let note = note_on_preset(method.as_ref(), run.model_name(), problem.model.dim())?;
        folder.print_message(&format!("note: {note}"));
        return Ok(Some(Tuned { method, found: toml::Table::new(), measured: None }));
    }
    folder.print_message("step = \"auto\": finding the mode of the posterior, and measuring the noise of gradients around it");
    let problem = counted_once(&problem, run.method.sharing());
    let dim = problem.model.dim();

    let records = records_of(FindMode { problem: problem.clone() }, ranks, options)?;
    let found = if ranks.is_root() { coordinates(&records, dim) } else { Ok(Vec::new()) };
    let coordinates = Coordinates::read(&broadcast(ranks, &ranks.agree(found)?), dim)?;

    let factor = coordinates.factor.clone();
    let measure = MeasureNoise { problem: coordinates.whitened(problem), factor, batch, share, rows };
    let numbers = broadcast(ranks, &records_of(measure, ranks, options)?);
    let measured = ArrayView2::from_shape((3, dim), &numbers).map_err(|_| too_little())?;
    let measured = Measurement {
        minibatches: measured.row(0).to_vec(),
        shards: measured.row(1).to_vec(),
        curvature: measured[[2, dim - 1]],
        rows: largest_shard as f64,
    };
    if !numbers.iter().all(|value| value.is_finite()) {
        return Err(JobError::Tuning(
            "step = \"auto\": gradients around the mode of the posterior are not finite. Choose a step".into(),
        ));
    }
    if measured.curvature > MUCH_CURVATURE {
        folder.print_message(&format!(
            "note: the posterior is far from a Gaussian: its curvature around the mode is up to {:.0} times that at the mode. Compare runs \
             with other seeds before you trust the draws",
            measured.curvature
        ));
    }
    let shard_noise = measured.shards.iter().copied().fold(0.0, f64::max);
    if shard_noise > MUCH_SHARD_NOISE {
        folder.print_message(&format!(
            "note: shards differ so much that the step is small and the run long: an update at one of them has a noise of \
             {shard_noise:.0} posterior variances. A smaller trajectory helps, or sghmc, whose agents see all rows"
        ));
    }
    let method = run.method.tuned(Some(&measured), run.settings.agents).map_err(wrong_method)?;
    let (before, mut found) = (table_of(run.method.as_ref())?, table_of(method.as_ref())?);
    found.retain(|key, value| before.get(key) != Some(value));
    Ok(Some(Tuned { method, found, measured: Some((coordinates, measured)) }))
}

fn table_of(method: &dyn ConfiguredMethod<Table>) -> Result<toml::Table, JobError> {
    method.table().map_err(|error| ConfigError::unwritable(error).into())
}

/// The numbers of rank 0.
fn broadcast(ranks: &Ranks, numbers: &[f64]) -> Vec<f64> {
    let bytes = ranks.broadcast(bytemuck::cast_slice(numbers));
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// The mode, the score there, and the rows of L, from the records of the search for the mode.
fn coordinates(records: &[f64], dim: usize) -> Result<Vec<f64>, JobError> {
    let records = ArrayView2::from_shape((dim + 2, dim), records).map_err(|_| too_little())?;
    let (ends, curvature) = records.split_at(ndarray::Axis(0), 2);
    // The search ends only where this factor exists.
    let lower = curvature.to_owned().cholesky(UPLO::Lower).map_err(|_| too_little())?;
    let inverse = lower.solve_triangular(UPLO::Lower, Diag::NonUnit, &Array2::eye(dim)).map_err(|_| too_little())?;
    Ok(ends.iter().chain(inverse.t().iter()).copied().collect())
}

fn too_little() -> JobError {
    JobError::Tuning("the measurement of the posterior before the run is incomplete: an internal error, please report it".into())
}

impl Coordinates {
    fn read(numbers: &[f64], dim: usize) -> Result<Self, JobError> {
        let rows = ArrayView2::from_shape((dim + 2, dim), numbers).map_err(|_| too_little())?;
        Ok(Self { mode: rows.row(0).to_owned(), score: rows.row(1).to_owned(), factor: rows.slice(s![2.., ..]).to_owned() })
    }

    /// A problem in these coordinates.
    fn whitened<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        let whitening = Whitening::new(self.mode.view(), self.factor.view(), self.score.view());
        Problem { model: Arc::new(Whitened::new(problem.model.clone(), whitening)), ..problem }
    }
}

impl Tuned {
    /// A problem in coordinates in which the posterior is close to a standard normal distribution, if they are known.
    pub fn whitened<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        match &self.measured {
            Some((coordinates, _)) => coordinates.whitened(problem),
            None => problem,
        }
    }

    /// What was found, for people.
    pub fn describe(&self) -> Option<String> {
        let keys: Vec<String> = self.found.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
        (!keys.is_empty()).then(|| format!("step = \"auto\" found, in whitened coordinates: {}", keys.join(", ")))
    }

    /// What was found, for the result file.
    pub fn arrays(&self) -> Option<Grid> {
        let (Coordinates { mode, factor, .. }, measured) = self.measured.as_ref()?;
        let dim = mode.len();
        let sd = factor.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect();
        let numbers = |(key, value): (&String, &toml::Value)| {
            // `step = { constant = 0.2 }` is 0.2.
            let value = value.get("constant").unwrap_or(value);
            Some((key.clone(), value.as_float().or_else(|| value.as_integer().map(|value| value as f64))?))
        };
        let (keys, values): (Vec<String>, Vec<f64>) = self.found.iter().filter_map(numbers).unzip();
        Some(Grid {
            group: TUNING.into(),
            dimensions: vec![("parameter".into(), dim), ("coordinate".into(), dim), ("found".into(), keys.len())],
            variables: vec![
                ("mode".into(), vec![0], mode.to_vec()),
                ("laplace_sd".into(), vec![0], sd),
                ("factor".into(), vec![0, 1], factor.iter().copied().collect()),
                ("minibatch_noise".into(), vec![0], measured.minibatches.clone()),
                ("shard_noise".into(), vec![0], measured.shards.clone()),
                ("value".into(), vec![2], values),
            ],
            names: vec![("key".into(), 2, keys)],
        })
    }
}
