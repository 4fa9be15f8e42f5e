//! Before a run that leaves something to be found: the mode of the posterior, its curvature and the noise of scores, on all ranks.

use super::error::JobError;
use super::findings::{Coordinates, Findings, ScaledSpace, Space, unusable};
use super::problem::{TableProblem, counted_once, table_problem, wrong_method};
use super::ranks::Ranks;
use super::records::{records_of, records_of_long};
use crate::cluster::JobOptions;
use crate::config::{ConfigError, ConfiguredMethod, Dtype, Precision, RunOf};
use crate::data::Dataset;
use crate::methods::tuning::{FindMode, FindStarts, Found, MeasureNoise, Measurement, NoiseNeeds, TuningNeeds};
use crate::methods::{Problem, Table};
use crate::models::{CurvatureSupport, Model};
use crate::number::Real;
use crate::results::{Grid, RunFolder, Stage, has_checkpoint};
use crate::settings::inline;
use ndarray::ArrayView2;
use std::sync::Arc;

/// No mode is searched for models with more parameters, because the curvature has the square of this number of entries.
const MAX_PARAMETERS: usize = 2000;
/// The curvature around the mode, relative to that at the mode, above which a note is printed.
const MUCH_CURVATURE: f64 = 10.0;
/// Noise of shards, in units of the posterior's variance, above which a note is printed.
const MUCH_SHARD_NOISE: f64 = 10.0;
/// The most starting points: what is sent in a search for them grows with their number. More chains share them.
const MAX_STARTS: u32 = 8;
/// The group of arrays of what was found.
pub const TUNING: &str = "tuning";
/// A run that would need more rounds than this is refused, because it would take days. Rounds that the user sets are not limited.
const MAX_FOUND_ROUNDS: i64 = 10_000_000;
/// The same for steps.
const MAX_FOUND_STEPS: i64 = 100_000_000;

/// The key, in the group [`TUNING`], of the factor, less 1, by which the variance of the draws is expected to exceed that of the posterior.
pub const EXCESS_KEY: &str = "excess_variance";

/// A run's method after what it left open was found.
pub struct Tuned {
    /// The method with its steps and lengths.
    pub method: Arc<dyn ConfiguredMethod<Table>>,
    /// The keys that were found, with their values.
    found_keys: toml::Table,
    /// What these values follow from; none where nothing can be found.
    findings: Option<Findings>,
    /// By what factor, less 1, the variance of the draws is expected to exceed that of the posterior in the directions of largest curvature;
    /// none where the steps were made for all directions.
    excess: Option<f64>,
}

/// Whether a posterior's mode and curvature can be found for a model.
pub(super) fn can_be_tuned(model: &dyn Model<f64>) -> bool {
    model.curvature_support() == CurvatureSupport::Full && (1..=MAX_PARAMETERS).contains(&model.dim())
}

/// Finds what a run leaves to be found, if anything; a job that resumes a run uses what was found when it began. If the job is asked to stop,
/// the folder knows it afterwards. Every rank calls this.
///
/// # Errors
/// If the problem cannot be made, or its posterior has no mode that Newton steps find, and the method needs it.
pub(super) fn tune(
    run: &RunOf<Table>,
    dataset: Option<&Arc<Dataset>>,
    ranks: &Ranks,
    options: &JobOptions,
    folder: &mut RunFolder,
) -> Result<Option<Tuned>, JobError> {
    let Some(needs) = run.method.tuning() else { return Ok(None) };
    let problem = ranks.agree(table_problem::<f64>(run, dataset, ranks))?;
    let (dim, has_curvature) = (problem.problem.model.dim(), can_be_tuned(problem.problem.model.as_ref()));
    if !has_curvature && needs.noise.is_none() {
        let method = run.method.tuned(Found::Nothing, run.settings.agents).map_err(wrong_method)?;
        return Ok(Some(Tuned { method, found_keys: toml::Table::new(), findings: None, excess: None }));
    }
    let stored = if ranks.is_root() { read_stored(folder, dim) } else { Ok(Vec::new()) };
    let mut bytes = ranks.broadcast(&ranks.agree(stored)?);
    if bytes.is_empty() {
        let measured = match (needs.noise, run.settings.dtype) {
            (Some(noise), Dtype::Float32) if !has_curvature => {
                find_starts(run, noise, ranks.agree(table_problem::<f32>(run, dataset, ranks))?, ranks, options, folder)?
            }
            (Some(noise), Dtype::Float64) if !has_curvature => find_starts(run, noise, problem, ranks, options, folder)?,
            (noise, _) => Some(measure(run, TuningNeeds { noise, ..needs }, problem, ranks, options, folder)?),
        };
        let Some(measured) = measured else { return Ok(None) };
        let stored = if ranks.is_root() { store(&measured, folder) } else { Ok(Vec::new()) };
        bytes = ranks.broadcast(&ranks.agree(stored)?);
    }
    let tuned = Tuned::with(Findings::from_bytes(&bytes, Some(dim)).map_err(JobError::Tuning)?, run)?;
    ranks.agree(refuse_endless(&tuned.found_keys))?;
    Ok(Some(tuned))
}

/// What was found when a run of a model with `dim` parameters began, from the folder of the run, as arrays for its result file.
///
/// # Errors
/// If it cannot be read.
pub(super) fn found_before_run(run: &RunOf<Table>, folder: &RunFolder, dim: usize) -> Result<Option<Grid>, JobError> {
    let Some((_, findings)) = Findings::kept(folder, Some(dim))? else { return Ok(None) };
    Ok(Tuned::with(findings, run)?.arrays())
}

/// Refuses lengths that were found, but that no run would reach in a reasonable time.
fn refuse_endless(found: &toml::Table) -> Result<(), JobError> {
    let length = |key: &str| found.get(key)?.as_integer();
    for (key, most) in [("rounds", MAX_FOUND_ROUNDS), ("steps", MAX_FOUND_STEPS)] {
        if let Some(length) = length(key).filter(|length| *length > most) {
            return Err(JobError::Tuning(format!(
                "step = \"auto\" would need {key} = {length}, because its steps are small: the posterior is far from a Gaussian, or the agents \
                 have very different rows. Use hmc, or sghmc, whose agents see all rows; a smaller method.trajectory or method.ess helps, \
                 and so does a stronger prior. With method.{key} set, the run begins anyway"
            )));
        }
    }
    Ok(())
}

/// The number in a setting, if it is one.
fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|value| value as f64))
}

/// The excess variance that [`Tuned`] has, where only the scale of parameters is known.
fn excess(noise: &Measurement, measured_with: usize, settings: &toml::Table) -> Option<f64> {
    let number = |key: &str| number(settings.get(key)?);
    // A list has a number for each agent.
    let longest = settings
        .get("trajectory")
        .and_then(|value| Some(value.as_array()?.iter().filter_map(toml::Value::as_float).fold(1.0, f64::max)));
    let updates = longest.or_else(|| number("trajectory")).unwrap_or(1.0);
    let batch = usize::try_from(settings.get("batch")?.as_integer()?).ok()?;
    noise.knows_only_scale.then(|| Some(noise.excess((batch, measured_with), updates, number("step")?, number("friction"))))?
}

/// What was found when the run in the folder began; nothing if it begins now.
fn read_stored(folder: &RunFolder, dim: usize) -> Result<Vec<u8>, JobError> {
    match Findings::kept(folder, Some(dim))? {
        Some((bytes, _)) => {
            // There are two copies again, unless the disk is full.
            drop(folder.keep_tuning(&bytes));
            Ok(bytes)
        }
        None if has_checkpoint(folder.path()) => Err(unusable(&folder.tuning(), "the file is missing")),
        None => Ok(Vec::new()),
    }
}

fn store(findings: &Findings, folder: &RunFolder) -> Result<Vec<u8>, JobError> {
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
    let bytes = if ranks.is_root() { read_mode(&records, dim) } else { Ok(Vec::new()) };
    let findings = Findings::from_bytes(&ranks.broadcast(&ranks.agree(bytes)?), Some(dim)).map_err(JobError::Tuning)?;
    let coordinates = match (findings.space, &needs.noise) {
        (Space::Whitened(coordinates), _) => coordinates,
        (Space::Scaled(_), _) => return Err(too_little()),
        (Space::Original(reason), Some(_)) => {
            return Err(JobError::Tuning(format!(
                "step = \"auto\" found no mode of the posterior: {reason}. Set method.step, or a stronger prior"
            )));
        }
        (Space::Original(reason), None) => {
            folder.print_message(&format!("note: the posterior has no mode that could be used: {reason}"));
            return Ok(Findings { space: Space::Original(reason), noise: None });
        }
    };
    let Some(NoiseNeeds { batch, share, .. }) = needs.noise else {
        return Ok(Findings { space: Space::Whitened(coordinates), noise: None });
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
        knows_only_scale: false,
        shortened: 1.0,
    };
    notes_on(&noise).iter().for_each(|note| folder.print_message(note));
    Ok(Findings { space: Space::Whitened(coordinates), noise: Some(noise) })
}

/// Finds starting points and scales, where the model has no full matrix of curvature or too many parameters for it. None if the job was asked
/// to stop.
fn find_starts<F: Precision>(
    run: &RunOf<Table>,
    needs: NoiseNeeds,
    problem: TableProblem<F>,
    ranks: &Ranks,
    options: &JobOptions,
    folder: &mut RunFolder,
) -> Result<Option<Findings>, JobError> {
    folder.print_message(
        "step = \"auto\": descending to points of high density where chains start, and measuring the noise of gradients there",
    );
    let TableProblem { problem, rows, largest_shard, .. } = problem;
    let problem = counted_once(&problem, run.method.sharing());
    let (dim, NoiseNeeds { batch, share, chains }) = (problem.model.dim(), needs);
    let points = chains.unwrap_or(run.settings.agents).min(MAX_STARTS);
    let search = FindStarts { problem, points, batch, share, rows };
    let Some(records) = records_of_long(search, ranks, options, Stage::Preparation, folder)? else { return Ok(None) };
    let bytes = if ranks.is_root() { read_starts(&records, dim, points, largest_shard) } else { Ok(Vec::new()) };
    Findings::from_bytes(&ranks.broadcast(&ranks.agree(bytes)?), Some(dim)).map(Some).map_err(JobError::Tuning)
}

/// What a search for starting points found, as bytes for all ranks.
fn read_starts(records: &[f64], dim: usize, points: u32, largest_shard: usize) -> Result<Vec<u8>, JobError> {
    if !records.iter().all(|value| value.is_finite()) {
        return Err(JobError::Tuning(
            "step = \"auto\": gradients at the points where chains would start are not finite. Set method.step, or a stronger prior"
                .into(),
        ));
    }
    let (scale, noise) = ScaledSpace::read(records, dim, points as usize, largest_shard).ok_or_else(too_little)?;
    Findings { space: Space::Scaled(scale), noise: Some(noise) }.to_bytes().map_err(JobError::Tuning)
}

/// What a search for the mode found, as bytes for all ranks.
fn read_mode(records: &[f64], dim: usize) -> Result<Vec<u8>, JobError> {
    let space = Coordinates::read(records, dim).ok_or_else(too_little)?.map_or_else(Space::Original, Space::Whitened);
    Findings { space, noise: None }.to_bytes().map_err(JobError::Tuning)
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
    /// A run's method with what these findings mean for it.
    fn with(findings: Findings, run: &RunOf<Table>) -> Result<Self, JobError> {
        let measured_with = run.method.tuning().and_then(|needs| needs.noise).map(|noise| noise.batch);
        let method = run.method.tuned(findings.for_method(), run.settings.agents).map_err(wrong_method)?;
        let (before, mut found_keys) = (table_of(run.method.as_ref())?, table_of(method.as_ref())?);
        let excess = measured_with.zip(findings.noise.as_ref()).and_then(|(batch, noise)| excess(noise, batch, &found_keys));
        found_keys.retain(|key, value| before.get(key) != Some(value));
        Ok(Self { method, found_keys, findings: Some(findings), excess })
    }

    fn space(&self) -> Option<&Space> {
        self.findings.as_ref().map(|findings| &findings.space)
    }

    /// A problem in the coordinates that were found, if any.
    pub fn in_coordinates<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        match self.space() {
            Some(space) => space.apply(problem),
            None => problem,
        }
    }

    /// What was found, for people.
    pub fn describe(&self) -> Option<String> {
        let coordinates = match self.space()? {
            Space::Original(_) => return None,
            Space::Whitened(_) => "whitened",
            Space::Scaled(_) => "scaled",
        };
        let keys: Vec<String> = self.found_keys.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
        (!keys.is_empty()).then(|| format!("found, in {coordinates} coordinates: {}", keys.join(", ")))
    }

    /// What was found, for the result file.
    pub fn arrays(&self) -> Option<Grid> {
        let (dim, mut variables) = match self.space()? {
            Space::Original(_) => return None,
            Space::Whitened(Coordinates { mode, factor, .. }) => {
                let sd = factor.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect();
                let factor = factor.iter().copied().collect();
                let variables = vec![
                    ("mode".to_owned(), vec![0], mode.to_vec()),
                    ("laplace_sd".to_owned(), vec![0], sd),
                    ("factor".to_owned(), vec![0, 1], factor),
                ];
                (mode.len(), variables)
            }
            Space::Scaled(ScaledSpace { scale, .. }) => (scale.0.len(), vec![("scale".to_owned(), vec![0], scale.0.clone())]),
        };
        if let Some(noise) = self.findings.as_ref().and_then(|findings| findings.noise.as_ref()) {
            variables.push(("minibatch_noise".into(), vec![0], noise.minibatches.clone()));
            variables.push(("shard_noise".into(), vec![0], noise.shards.clone()));
        }
        let numbers = |(key, value): (&String, &toml::Value)| Some((key.clone(), number(value)?));
        let excess = self.excess.map(|excess| (EXCESS_KEY.to_owned(), excess));
        let (keys, values): (Vec<String>, Vec<f64>) = self.found_keys.iter().filter_map(numbers).chain(excess).unzip();
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
