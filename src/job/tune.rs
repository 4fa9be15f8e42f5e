//! Before a run that leaves something to be found: the mode of the posterior, its curvature and the noise of scores, on all ranks.

use super::error::JobError;
use super::findings::{Coordinates, Findings};
use super::problem::{TableProblem, counted_once, table_problem, wrong_method};
use super::ranks::Ranks;
use super::records::records_of;
use crate::cluster::JobOptions;
use crate::config::{ConfigError, ConfiguredMethod, RunOf};
use crate::data::Dataset;
use crate::methods::tuning::{FindMode, Found, MeasureNoise, Measurement, NoiseNeeds, TuningNeeds};
use crate::methods::{Problem, Table};
use crate::models::{CurvatureSupport, Model};
use crate::number::Real;
use crate::results::{Grid, RunFolder};
use crate::settings::inline;
use ndarray::ArrayView2;
use std::sync::Arc;

/// Nothing is found for models with more parameters, because the curvature has the square of this number of entries.
const MAX_PARAMETERS: usize = 1000;
/// The curvature around the mode, relative to that at the mode, above which a note is printed.
const MUCH_CURVATURE: f64 = 10.0;
/// Noise of shards, in units of the posterior's variance, above which a note is printed.
const MUCH_SHARD_NOISE: f64 = 10.0;
/// The group of arrays of what was found.
pub const TUNING: &str = "tuning";

/// A run's method after what it left open was found.
pub struct Tuned {
    /// The method with its steps and lengths.
    pub method: Arc<dyn ConfiguredMethod<Table>>,
    /// The keys that were found, with their values.
    found: toml::Table,
    /// What these values follow from; none where nothing can be found.
    findings: Option<Findings>,
}

/// Whether a posterior's mode and curvature can be found for a model.
pub(super) fn can_be_tuned(model: &dyn Model<f64>) -> bool {
    model.curvature_support() == CurvatureSupport::Full && (1..=MAX_PARAMETERS).contains(&model.dim())
}

/// What `step = "auto"` means for a model for which no step can be found; none for methods that need no step.
pub(super) fn note_on_preset(
    run: &RunOf<Table>,
    preset: &dyn ConfiguredMethod<Table>,
    parameters: usize,
) -> Result<Option<String>, JobError> {
    if run.method.tuning().is_none_or(|needs| needs.noise.is_none()) {
        return Ok(None);
    }
    let step = table_of(preset)?.get("step").map_or_else(String::new, inline);
    let reason = match parameters {
        ..=MAX_PARAMETERS => "does not provide a full matrix of curvature".to_owned(),
        _ => format!("has {parameters} parameters, more than {MAX_PARAMETERS}"),
    };
    let model = run.model_name();
    Ok(Some(format!("step = \"auto\" is {step} here, because the model {model} {reason}. Draws may be biased: choose a step")))
}

/// Finds what a run leaves to be found, if anything; a job that resumes a run uses what was found when it began. Every rank calls this.
///
/// # Errors
/// If the problem cannot be made, or its posterior has no mode that Newton steps find, and the method needs it.
pub(super) fn tune(
    run: &RunOf<Table>,
    dataset: Option<&Arc<Dataset>>,
    ranks: &Ranks,
    options: &JobOptions,
    folder: &RunFolder,
) -> Result<Option<Tuned>, JobError> {
    let Some(needs) = run.method.tuning() else { return Ok(None) };
    let problem = ranks.agree(table_problem::<f64>(run, dataset))?;
    let dim = problem.problem.model.dim();
    if !can_be_tuned(problem.problem.model.as_ref()) {
        let method = run.method.tuned(Found::Nothing, run.settings.agents).map_err(wrong_method)?;
        note_on_preset(run, method.as_ref(), dim)?.iter().for_each(|note| folder.print_message(&format!("note: {note}")));
        return Ok(Some(Tuned { method, found: toml::Table::new(), findings: None }));
    }
    let kept = if ranks.is_root() { kept(folder, dim) } else { Ok(Vec::new()) };
    let mut bytes = ranks.broadcast(&ranks.agree(kept)?);
    if bytes.is_empty() {
        let measured = measure(run, needs, problem, ranks, options, folder)?;
        let kept = if ranks.is_root() { keep(&measured, folder) } else { Ok(Vec::new()) };
        bytes = ranks.broadcast(&ranks.agree(kept)?);
    }
    let findings = Findings::from_bytes(&bytes, dim).map_err(JobError::Tuning)?;
    let method = run.method.tuned(findings.found(), run.settings.agents).map_err(wrong_method)?;
    let (before, mut found) = (table_of(run.method.as_ref())?, table_of(method.as_ref())?);
    found.retain(|key, value| before.get(key) != Some(value));
    Ok(Some(Tuned { method, found, findings: Some(findings) }))
}

/// What was found when the run in the folder began; nothing if it begins now.
fn kept(folder: &RunFolder, dim: usize) -> Result<Vec<u8>, JobError> {
    let path = folder.tuning();
    let unusable = |what: String| {
        let path = path.display();
        JobError::Tuning(format!("{path}: {what}, and the run cannot be resumed without it. Delete the folder to run afresh"))
    };
    match folder.kept_tuning()? {
        Some(kept) => Findings::from_bytes(&kept, dim).map(|_| kept).map_err(unusable),
        None if folder.checkpoint().exists() => Err(unusable("the file is missing".into())),
        None => Ok(Vec::new()),
    }
}

fn keep(findings: &Findings, folder: &RunFolder) -> Result<Vec<u8>, JobError> {
    let bytes = findings.to_bytes().map_err(JobError::Tuning)?;
    folder.keep_tuning(&bytes)?;
    Ok(bytes)
}

/// Finds and measures what the method needs.
fn measure(
    run: &RunOf<Table>,
    needs: TuningNeeds,
    problem: TableProblem<f64>,
    ranks: &Ranks,
    options: &JobOptions,
    folder: &RunFolder,
) -> Result<Findings, JobError> {
    folder.print_message(match needs.noise {
        Some(_) => "step = \"auto\": finding the mode of the posterior, and measuring the noise of gradients around it",
        None => "finding the mode of the posterior, and its curvature there",
    });
    let TableProblem { problem, rows, largest_shard, .. } = problem;
    let problem = counted_once(&problem, run.method.sharing());
    let dim = problem.model.dim();
    let records = records_of(FindMode { problem: problem.clone() }, ranks, options)?;
    // On rank 0 alone: the factor of a matrix may have other bits on another kind of processor.
    let found = if ranks.is_root() { read_mode(&records, dim) } else { Ok(Vec::new()) };
    let found = Findings::from_bytes(&ranks.broadcast(&ranks.agree(found)?), dim).map_err(JobError::Tuning)?;
    let coordinates = match (found.coordinates, &needs.noise) {
        (Ok(coordinates), _) => coordinates,
        (Err(reason), Some(_)) => {
            return Err(JobError::Tuning(format!(
                "step = \"auto\" found no mode of the posterior: {reason}. Set method.step, or a stronger prior"
            )));
        }
        (Err(reason), None) => {
            folder.print_message(&format!("note: the posterior has no mode that could be used: {reason}"));
            return Ok(Findings { coordinates: Err(reason), noise: None });
        }
    };
    let Some(NoiseNeeds { batch, share }) = needs.noise else {
        return Ok(Findings { coordinates: Ok(coordinates), noise: None });
    };
    let factor = coordinates.factor.clone();
    let measure = MeasureNoise { problem: coordinates.whitened(problem), factor, batch, share, rows };
    let numbers = broadcast(ranks, &records_of(measure, ranks, options)?);
    if !numbers.iter().all(|value| value.is_finite()) {
        return Err(JobError::Tuning(
            "step = \"auto\": gradients around the mode of the posterior are not finite. Choose a step".into(),
        ));
    }
    let measured = ArrayView2::from_shape((3, dim), &numbers).map_err(|_| too_little())?;
    let noise = Measurement {
        minibatches: measured.row(0).to_vec(),
        shards: measured.row(1).to_vec(),
        curvature: measured[[2, dim - 1]],
        rows: largest_shard as f64,
    };
    notes_on(&noise).iter().for_each(|note| folder.print_message(note));
    Ok(Findings { coordinates: Ok(coordinates), noise: Some(noise) })
}

/// What a search for the mode found, as bytes for all ranks.
fn read_mode(records: &[f64], dim: usize) -> Result<Vec<u8>, JobError> {
    let coordinates = Coordinates::read(records, dim).ok_or_else(too_little)?;
    Findings { coordinates, noise: None }.to_bytes().map_err(JobError::Tuning)
}

/// Remarks on posteriors that are hard to sample.
fn notes_on(noise: &Measurement) -> Vec<String> {
    let mut notes = Vec::new();
    if noise.curvature > MUCH_CURVATURE {
        notes.push(format!(
            "note: the posterior is far from a Gaussian: its curvature around the mode is up to {:.0} times that at the mode. Compare runs \
             with other seeds before you trust the draws",
            noise.curvature
        ));
    }
    let shard_noise = noise.shards.iter().copied().fold(0.0, f64::max);
    if shard_noise > MUCH_SHARD_NOISE {
        notes.push(format!(
            "note: shards differ so much that the step is small and the run long: an update at one of them has a noise of \
             {shard_noise:.0} posterior variances. Set a smaller method.trajectory, or use sghmc, whose agents see all rows"
        ));
    }
    notes
}

fn table_of(method: &dyn ConfiguredMethod<Table>) -> Result<toml::Table, JobError> {
    method.table().map_err(|error| ConfigError::unwritable(error).into())
}

/// The numbers of rank 0.
fn broadcast(ranks: &Ranks, numbers: &[f64]) -> Vec<f64> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    ranks.broadcast(&bytes).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn too_little() -> JobError {
    JobError::Tuning("the measurement of the posterior before the run is incomplete: an internal error, please report it".into())
}

impl Tuned {
    fn coordinates(&self) -> Option<&Coordinates> {
        self.findings.as_ref()?.coordinates.as_ref().ok()
    }

    /// A problem in coordinates in which the posterior is close to a standard normal distribution, if they are known.
    pub fn whitened<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        match self.coordinates() {
            Some(coordinates) => coordinates.whitened(problem),
            None => problem,
        }
    }

    /// What was found, for people.
    pub fn describe(&self) -> Option<String> {
        self.coordinates()?;
        let keys: Vec<String> = self.found.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
        (!keys.is_empty()).then(|| format!("found, in whitened coordinates: {}", keys.join(", ")))
    }

    /// What was found, for the result file.
    pub fn arrays(&self) -> Option<Grid> {
        let Coordinates { mode, factor, .. } = self.coordinates()?;
        let dim = mode.len();
        let sd = factor.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect();
        let mut variables = vec![
            ("mode".into(), vec![0], mode.to_vec()),
            ("laplace_sd".into(), vec![0], sd),
            ("factor".into(), vec![0, 1], factor.iter().copied().collect()),
        ];
        if let Some(noise) = self.findings.as_ref().and_then(|findings| findings.noise.as_ref()) {
            variables.push(("minibatch_noise".into(), vec![0], noise.minibatches.clone()));
            variables.push(("shard_noise".into(), vec![0], noise.shards.clone()));
        }
        let numbers = |(key, value): (&String, &toml::Value)| {
            // `step = { constant = 0.2 }` is 0.2.
            let value = value.get("constant").unwrap_or(value);
            Some((key.clone(), value.as_float().or_else(|| value.as_integer().map(|value| value as f64))?))
        };
        let (keys, values): (Vec<String>, Vec<f64>) = self.found.iter().filter_map(numbers).unzip();
        let mut dimensions = vec![("parameter".into(), dim), ("coordinate".into(), dim)];
        let mut names = Vec::new();
        if !keys.is_empty() {
            dimensions.push(("found".into(), keys.len()));
            variables.push(("value".into(), vec![2], values));
            names.push(("key".into(), 2, keys));
        }
        Some(Grid { group: TUNING.into(), dimensions, variables, names })
    }
}
