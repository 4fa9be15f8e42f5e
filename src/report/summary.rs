//! The summary of a run: metrics, calibration, history, posterior, time and traffic, as text and as JSON.

mod display;

pub(super) use display::{draws_description, metrics_of_test_rows, progress};

use super::coefficients::{CoefficientOptions, Coefficients, InDataUnits};
use super::communication::{Communication, Traffic};
use super::error::{ReportError, Result};
use super::evidence::Evidence;
use super::judgment::Judgment;
use super::operation::Operation;
use super::posterior::{self, Expectation, PosteriorGroup};
use super::run::RunResults;
use super::test_rows::TestRows;
use super::trajectories::Trajectories;
use crate::config::stored_table;
use crate::data::Dataset;
use crate::methods::SPREAD_OVER_AGENTS;
use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::methods::chains::hmc::SAMPLE_STATS_GROUP;
use crate::metrics::temperature::Temperature;
use crate::metrics::{Bin, Classification};
use crate::results::{AGENT_BYTES, HISTORY, METRICS, POSTERIOR, RunState, SECONDS, SampleKind, Table};
use crate::text;
use serde::Serialize;
use std::path::PathBuf;

/// What a judgment is called where a metric is asked for.
const JUDGMENT: &str = "judgment";
/// The metric of the class that is predicted worst.
pub const WORST_CLASS: &str = "worst_class";
/// The tables of accuracy by confidence and by class: a row for each bin or class of each evaluated round.
const RELIABILITY: &str = "reliability";
const CLASSES: &str = "classes";

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The result file.
    pub file: PathBuf,
    /// The method, by its name in the configuration.
    pub method: String,
    /// The model, by its name in the configuration.
    pub model: String,
    /// The path of the dataset in the configuration, if it has one.
    pub data: Option<String>,
    /// The digest of the dataset; empty without data.
    pub data_digest: String,
    /// The seed.
    pub seed: u64,
    /// The version of mpibayes that ran.
    pub version: String,
    /// When the run began: ISO 8601, UTC.
    pub created_at: String,
    /// Whether the run is finished; otherwise these are its results so far.
    pub finished: bool,
    /// Completed rounds; 0 if unknown.
    pub rounds_done: u64,
    /// All rounds of the run; 0 if unknown.
    pub rounds_total: u64,
    /// Whether the run is not finished, but has draws that `mpibayes judge` can judge.
    #[serde(skip)]
    can_be_judged: bool,
    /// Whether the draws of a finished run can be used.
    pub judgment: Option<Judgment>,
    /// The parameters of a regression in the units of the data.
    pub coefficients: Option<Coefficients>,
    /// Why there are none, although the model is a regression.
    #[serde(skip)]
    why_no_coefficients: Option<String>,
    /// What the draws of a finished run predict for the test rows, all together.
    pub test_rows: Option<TestRows>,
    /// The last row of the metrics, by name; missing values are NaN (`null` in JSON).
    #[serde(serialize_with = "text::as_object")]
    pub metrics: Vec<(String, f64)>,
    /// The metrics of each evaluation.
    pub evaluations: Vec<TableRow>,
    /// For each evaluation, the lowest and highest accuracy or RMSE over agents, each on its part of the test rows.
    pub spread: Vec<TableRow>,
    /// The columns that the method logged in each round.
    pub history: Vec<TableRow>,
    /// Accuracy by confidence: the bins of each evaluation, or for chains those of the predictions by all draws.
    pub reliability: Vec<TableRow>,
    /// Accuracy by class: the classes of each evaluation, or for chains those of the predictions by all draws.
    pub classes: Vec<TableRow>,
    /// Whether chains stay elastically coupled while draws are taken.
    pub stays_coupled: bool,
    /// The names of the classes; empty if the dataset cannot be found.
    pub class_names: Vec<String>,
    /// The configurational temperatures of all variables, if they were measured.
    pub temperatures: Vec<Temperature>,
    /// The groups of draws with the estimates of their parameters.
    pub draws: Vec<PosteriorGroup>,
    /// The trajectories of Hamiltonian Monte Carlo.
    pub trajectories: Option<Trajectories>,
    /// The result file with the draws as they were before they were moved, if they were.
    pub recalibrated_from: Option<String>,
    /// Posterior means and standard deviations that were accumulated over all updates.
    pub expectations: Vec<Expectation>,
    /// Seconds by phase.
    #[serde(serialize_with = "text::as_object")]
    pub phases: Vec<(String, f64)>,
    /// Bytes that agents have received and sent, without evaluations, on any number of ranks.
    pub agent_bytes: Option<Communication>,
    /// Messages and bytes between ranks, by purpose.
    pub traffic: Vec<Traffic>,
    /// How the run was carried out.
    pub operation: Operation,
}

/// A row of a table of the result file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TableRow {
    /// The round or step.
    pub step: u64,
    /// The values by column, seconds first.
    #[serde(flatten, serialize_with = "text::as_object")]
    pub values: Vec<(String, f64)>,
}

impl Summary {
    /// Summarizes the results of a run. If there are very many parameters, only every n-th is estimated, unless `all` is set.
    ///
    /// # Errors
    /// When the result file cannot be read.
    pub fn of(run: &RunResults, all: bool) -> Result<Self> {
        Self::with_coefficients(run, all, &CoefficientOptions::default())
    }

    /// The same with what is wanted of coefficients.
    ///
    /// # Errors
    /// When the result file cannot be read, or a column is wanted that is not there.
    pub fn with_coefficients(run: &RunResults, all: bool, options: &CoefficientOptions) -> Result<Self> {
        let file = &run.file;
        let table = |name: &str| file.find_table(name).map(Option::unwrap_or_default);
        let metrics = table(METRICS)?;
        let last = rows_without_agent(&metrics).last();
        let mut groups = file.sample_groups()?;
        groups.retain(|group| !EXPECTATIONS.contains(&group.as_str()) && group != SAMPLE_STATS_GROUP);
        let evidence = Evidence::of(run)?;
        let draws = groups.into_iter().map(|group| PosteriorGroup::read(file, &group, all)).collect::<Result<Vec<_>>>()?;
        let info = file.info().clone();
        let RunState { finished, done, total, .. } = info.state;
        let (data, operation) = (run.dataset(), Operation::of(run)?);
        let (coefficients, why_no_coefficients) = match Coefficients::of(file, options)? {
            InDataUnits::Table(coefficients) => (Some(coefficients), None),
            InDataUnits::Unknown(why) => (None, Some(why)),
            InDataUnits::Nothing => (None, None),
        };
        let is_of_chains = draws.iter().any(|draws| draws.group == POSTERIOR && draws.kind == SampleKind::Chains);
        let of_all_draws = evidence.test_rows.as_ref().and_then(|rows| rows.classes.as_ref()).filter(|_| is_of_chains);
        let classes = match of_all_draws {
            Some(found) => classes_of(found, done),
            None => rows_by_round(&table(CLASSES)?),
        };
        let agent_bytes = Communication::read(&table(AGENT_BYTES)?, &info.config, done);
        let has_draws = draws.iter().any(|draws| draws.group == POSTERIOR && draws.draws > 0);
        Ok(Self {
            can_be_judged: !finished && has_draws && run.has_draws_to_judge(),
            judgment: if finished { Judgment::of(&draws, &evidence) } else { None },
            coefficients,
            why_no_coefficients,
            reliability: match of_all_draws {
                Some(found) => bins_of(found, done),
                None => rows_by_round(&table(RELIABILITY)?),
            },
            test_rows: evidence.test_rows,
            temperatures: evidence.temperatures,
            stays_coupled: stays_coupled(&info.config),
            class_names: if classes.is_empty() { Vec::new() } else { class_names(data.as_deref(), &info.data_digest) },
            classes,
            phases: operation.phases.clone(),
            data,
            finished,
            rounds_done: done,
            rounds_total: total,
            file: run.path.clone(),
            method: info.method,
            model: info.model,
            data_digest: info.data_digest,
            seed: info.seed,
            version: info.version,
            created_at: info.created_at,
            metrics: last.map(|row| values_at(&metrics, row)).unwrap_or_default(),
            evaluations: rows_by_round(&metrics),
            spread: rows_by_round(&table(SPREAD_OVER_AGENTS)?),
            history: rows_by_round(&table(HISTORY)?),
            draws,
            trajectories: evidence.trajectories,
            recalibrated_from: evidence.recalibrated_from,
            expectations: posterior::expectations(file)?,
            agent_bytes,
            traffic: operation.traffic.clone(),
            operation,
        })
    }

    /// A final metric by name, with four decimals, or `judgment` in two words.
    ///
    /// # Errors
    /// When the run has no such metric.
    pub fn metric(&self, name: &str) -> Result<String> {
        let missing = |what: String| Err(ReportError::missing(&self.file, what));
        if name == JUDGMENT {
            return match &self.judgment {
                Some(judgment) => Ok(judgment.outcome.name().to_owned()),
                None if self.finished => Ok("none".into()),
                None => {
                    let so_far = if self.can_be_judged { "; `mpibayes judge` judges those so far" } else { "" };
                    missing(format!("this run is not finished: draws are judged at its end{so_far}"))
                }
            };
        }
        match self.best_metrics().into_iter().find(|metric| metric.0 == name) {
            Some((_, value)) => Ok(format!("{value:.4}")),
            None if self.best_metrics().is_empty() => missing("this run has no metrics: no predictions were evaluated".into()),
            None => {
                let mut names: Vec<String> = self.best_metrics().into_iter().map(|metric| metric.0).collect();
                names.extend(self.judgment.is_some().then(|| JUDGMENT.to_owned()));
                missing(format!("there is no metric {name:?}; the run has {}", names.join(", ")))
            }
        }
    }

    /// The metrics of predictions by all draws where they are known, else those of the last evaluation.
    pub fn best_metrics(&self) -> Vec<(String, f64)> {
        let mut metrics = self.metrics_of_all_rows();
        metrics.extend(self.worst_class().map(|worst| (WORST_CLASS.to_owned(), worst)));
        metrics
    }

    /// The accuracy of the class with the lowest one, if there are more than two.
    fn worst_class(&self) -> Option<f64> {
        let classes = rows_of_last_step(&self.classes);
        let accuracies = classes.iter().map(|class| class.value("accuracy")).filter(|accuracy| !accuracy.is_nan());
        if classes.len() > 2 { accuracies.reduce(f64::min) } else { None }
    }

    fn has_chains(&self) -> bool {
        self.draws.iter().any(|draws| draws.group == POSTERIOR && draws.kind == SampleKind::Chains)
    }

    /// What the draws of all chains predict, if that is known.
    fn predicted_by_chains(&self) -> Option<&TestRows> {
        self.test_rows.as_ref().filter(|_| self.has_chains())
    }

    fn metrics_of_all_rows(&self) -> Vec<(String, f64)> {
        let of_all_draws = self.predicted_by_chains().map_or(&[][..], |rows| &rows.metrics);
        let over_all_draws = |name: &str| of_all_draws.iter().find(|metric| metric.0 == name).map(|metric| metric.1);
        if self.metrics.is_empty() {
            return of_all_draws.to_vec();
        }
        self.metrics.iter().map(|(name, value)| (name.clone(), over_all_draws(name).unwrap_or(*value))).collect()
    }
}

/// Whether a configuration couples chains by springs during the whole run.
fn stays_coupled(config: &str) -> bool {
    let config = stored_table(config).unwrap_or_default();
    let text = |key: &str| config.get("method")?.get(key)?.as_str();
    text("coupling_schedule") == Some("constant") && text("variant").is_none_or(|variant| variant == "elastic")
}

/// The names of the classes, if the dataset is still where the run found it.
fn class_names(data: Option<&str>, digest: &str) -> Vec<String> {
    let dataset = data.and_then(|file| Dataset::open(file.as_ref()).ok());
    dataset.filter(|dataset| dataset.digest() == digest).map(|dataset| dataset.classes().to_vec()).unwrap_or_default()
}

/// The bins of reliability as rows of a table.
fn bins_of(found: &Classification, step: u64) -> Vec<TableRow> {
    let row = |bin: &Bin| {
        let Bin { lower, upper, rows, accuracy, confidence } = *bin;
        let values =
            [("lower", lower), ("upper", upper), ("rows", rows as f64), ("accuracy", accuracy), ("confidence", confidence)];
        TableRow { step, values: values.map(|(name, value)| (name.to_owned(), value)).to_vec() }
    };
    found.reliability.iter().map(row).collect()
}

/// The accuracies of classes as rows of a table.
fn classes_of(found: &Classification, step: u64) -> Vec<TableRow> {
    let each = found.class_accuracy.iter().zip(&found.class_rows).enumerate();
    let row = |(class, (&accuracy, &rows)): (usize, (&f64, &u64))| {
        let values = [("class", class as f64), ("rows", rows as f64), ("accuracy", accuracy)];
        TableRow { step, values: values.map(|(name, value)| (name.to_owned(), value)).to_vec() }
    };
    each.map(row).collect()
}

fn rows_without_agent(table: &Table) -> impl Iterator<Item = usize> + '_ {
    (0..table.rows()).filter(|&row| table.agent[row].is_none())
}

fn values_at(table: &Table, row: usize) -> Vec<(String, f64)> {
    table.columns.iter().map(|(name, values)| (name.clone(), values[row])).collect()
}

/// The rows that no agent wrote, with the column of seconds first.
fn rows_by_round(table: &Table) -> Vec<TableRow> {
    rows_without_agent(table)
        .map(|row| {
            let mut values = values_at(table, row);
            // The sort is stable: all other columns stay in order.
            values.sort_by_key(|(name, _)| name != SECONDS);
            TableRow { step: table.step[row], values }
        })
        .collect()
}

impl TableRow {
    /// A value by name; NaN if it is missing.
    pub(super) fn value(&self, name: &str) -> f64 {
        self.values.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1)
    }
}

fn rows_of_last_step(rows: &[TableRow]) -> Vec<&TableRow> {
    let last = rows.last().map(|row| row.step);
    rows.iter().filter(|row| Some(row.step) == last).collect()
}

#[cfg(test)]
mod tests;
