//! The summary of a run: metrics, calibration, history, posterior, time and traffic, as text and as JSON.

use super::coefficients::{CoefficientOptions, Coefficients, InDataUnits};
use super::communication::{Communication, Traffic};
use super::error::{ReportError, Result};
use super::judgment::{Evidence, Judgment};
use super::operation::Operation;
use super::posterior::{self, Expectation, PosteriorGroup};
use super::run::RunResults;
use super::temperature;
use super::test_rows::TestRows;
use super::trajectories::Trajectories;
use crate::config::stored_table;
use crate::data::Dataset;
use crate::methods::SPREAD_OVER_AGENTS;
use crate::methods::chains::coupled::SPREAD as SPREAD_OF_CHAINS;
use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::methods::chains::hmc::SAMPLE_STATS_GROUP;
use crate::metrics::meaning;
use crate::metrics::temperature::Temperature;
use crate::metrics::{Bin, Classification};
use crate::results::{AGENT_BYTES, BYTES, HISTORY, METRICS, PHASES, POSTERIOR, RunState, SECONDS, SampleKind, TRAFFIC, Table};
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
/// The largest number of classes, rows and columns of a table in the text; JSON has all.
const MAX_CLASSES: usize = 20;
const MAX_ROWS: usize = 16;
const MAX_COLUMNS: usize = 8;

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
        let data = run.dataset();
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
        Ok(Self {
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
            phases: phases(&table(PHASES)?),
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
            traffic: Traffic::read(&table(TRAFFIC)?),
            operation: Operation::of(run)?,
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
                None => missing("this run is not finished: draws are judged at its end".into()),
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

/// Seconds by phase, summed over the server and all agents.
fn phases(table: &Table) -> Vec<(String, f64)> {
    let total = |values: &[f64]| 0.0 + values.iter().filter(|value| !value.is_nan()).sum::<f64>();
    table.columns.iter().map(|(name, values)| (name.clone(), total(values))).collect()
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

/// The indices of at most `most` of `rows` rows, evenly spaced, including the first and the last.
fn evenly_spaced(rows: usize, most: usize) -> Vec<usize> {
    if rows <= most {
        return (0..rows).collect();
    }
    (0..most).map(|i| i * (rows - 1) / (most - 1)).collect()
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text(false))
    }
}

impl Summary {
    /// The summary as text. Tables of estimates list parameters with poor diagnostics or, for particles, some of each variable, unless
    /// `all` is set.
    pub fn text(&self, all: bool) -> String {
        let mut text = self.judgment.as_ref().map_or_else(String::new, |judgment| format!("{}\n\n", judgment.text));
        text += &format!("{}\n", self.file.display());
        if !self.finished {
            let rounds = match self.rounds_total {
                0 => String::new(),
                total => format!(" (round {} of {total})", self.rounds_done),
            };
            let without = if self.draws.is_empty() { ", without draws" } else { "" };
            text += &format!("not finished{rounds}: these are the results so far{without}\n");
        }
        text += &self.description();
        text += &self.coefficients.as_ref().map(|coefficients| coefficients.text(all)).unwrap_or_default();
        if let Some(why) = &self.why_no_coefficients {
            text += &format!("\nno table in the units of the data: {why}\n");
        }
        text += &self.metrics_of_all_draws();
        text += &self.final_metrics();
        text += &self.calibration();
        text += &self.accuracy_by_class();
        text += &table_of_rounds("metrics by round", &self.evaluations);
        text += &table_of_rounds("history of the method", &self.history);
        text += &self.coupling();
        text += &temperature::table(&self.temperatures);
        text += &self.trajectories();
        for draws in &self.draws {
            text += &draws_description(draws, all, &self.model, self.coefficients.is_some() && draws.group == POSTERIOR);
        }
        if !self.expectations.is_empty() {
            text += "\nposterior mean and sd over all updates after burn-in, not only the kept draws\n";
            text += &posterior::expectations_table(&self.expectations, all);
        }
        text += &self.time_by_phase();
        text += &self.agent_bytes.map(Communication::text).unwrap_or_default();
        text += &Traffic::text(&self.traffic);
        text += &self.operation.incidents();
        text
    }

    /// Method, model, data, seed and version.
    fn description(&self) -> String {
        let digest = text::short_digest(&self.data_digest);
        let data = match &self.data {
            _ if digest.is_empty() => "none".into(),
            Some(file) => format!("{file} (digest {digest})"),
            None => format!("digest {digest}"),
        };
        text::pairs(&[
            ("method", self.method.clone()),
            ("model", self.model.clone()),
            ("data", data),
            ("seed", self.seed.to_string()),
            ("began", self.created_at.clone()),
            ("version", format!("mpibayes {}", self.version)),
        ])
    }

    fn has_chains(&self) -> bool {
        self.draws.iter().any(|draws| draws.group == POSTERIOR && draws.kind == SampleKind::Chains)
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

    fn metrics_of_all_rows(&self) -> Vec<(String, f64)> {
        let of_all_draws = self.test_rows.as_ref().filter(|_| self.has_chains()).map_or(&[][..], |rows| &rows.metrics);
        let better = |name: &str| of_all_draws.iter().find(|metric| metric.0 == name).map(|metric| metric.1);
        if self.metrics.is_empty() {
            return of_all_draws.to_vec();
        }
        self.metrics.iter().map(|(name, value)| (name.clone(), better(name).unwrap_or(*value))).collect()
    }

    /// The metrics of predictions averaged over all draws; of particles, they are those of the last evaluation.
    fn metrics_of_all_draws(&self) -> String {
        let Some(test_rows) = self.test_rows.as_ref().filter(|_| self.has_chains()) else { return String::new() };
        let lines: Vec<(&str, String)> =
            test_rows.metrics.iter().map(|(name, value)| (name.as_str(), with_meaning(name, *value))).collect();
        format!("\ntest rows, predicted by all draws of all chains: the metrics to report\n{}", text::pairs(&lines))
    }

    /// The metrics of the last evaluation, and the range of the accuracy or RMSE over agents.
    fn final_metrics(&self) -> String {
        if self.metrics.is_empty() {
            return String::new();
        }
        let mut lines: Vec<(&str, String)> =
            self.metrics.iter().map(|(name, value)| (name.as_str(), with_meaning(name, *value))).collect();
        let lowest = self.spread.last().and_then(|last| {
            let is_lowest = |value: &&(String, f64)| value.0.ends_with("_lowest");
            Some((last, last.values.iter().find(is_lowest)?))
        });
        if let Some((last, (name, lowest))) = lowest {
            let name = name.strip_suffix("_lowest").unwrap_or(name);
            let highest = with_unit(name, last.value(&format!("{name}_highest")));
            let range = format!("{name} {} to {highest} on each agent's share of the test rows", with_unit(name, *lowest));
            lines.push(("by agent", range));
        }
        let round = self.evaluations.last().map_or(0, |last| last.step);
        let heading = match (self.has_chains(), self.finished) {
            (true, _) => format!("last evaluation during the run (round {round}), by a few states of the chains"),
            (false, true) => format!("final metrics (round {round})"),
            (false, false) => format!("latest metrics (round {round})"),
        };
        format!("\n{heading}\n{}", text::pairs(&lines))
    }

    /// The reliability table of the last evaluation, without empty bins.
    fn calibration(&self) -> String {
        let bins: Vec<&TableRow> =
            rows_of_last_step(&self.reliability).into_iter().filter(|bin| bin.value("rows") > 0.0).collect();
        if bins.is_empty() {
            return String::new();
        }
        let percent = |of: fn(&TableRow) -> f64| bins.iter().map(|bin| text::percent(of(bin), 1)).collect();
        let edge = |share: f64| (1e4 * share).round() / 1e2;
        let edges = |bin: &&TableRow| format!("{} to {} %", edge(bin.value("lower")), edge(bin.value("upper")));
        let columns = [
            ("bin".into(), bins.iter().map(edges).collect()),
            ("rows".into(), bins.iter().map(|bin| whole_number(bin.value("rows"))).collect()),
            ("confidence".into(), percent(|bin| bin.value("confidence"))),
            ("accuracy".into(), percent(|bin| bin.value("accuracy"))),
            ("overconfidence".into(), percent(|bin| bin.value("confidence") - bin.value("accuracy"))),
        ];
        format!("\ncalibration: accuracy of predictions by their confidence\n{}", text::table(&columns))
    }

    /// The accuracy of each class in the last evaluation, or of the worst classes if there are many.
    fn accuracy_by_class(&self) -> String {
        let mut classes = rows_of_last_step(&self.classes);
        let count = classes.len();
        if count == 0 {
            return String::new();
        }
        let mut heading = "\naccuracy by class".to_owned();
        if count > MAX_CLASSES {
            classes.sort_by(|a, b| a.value("accuracy").total_cmp(&b.value("accuracy")));
            classes.truncate(MAX_CLASSES);
            heading += &format!(" (the worst {MAX_CLASSES} of {}; --json has all)", text::count(count));
        }
        let name = |class: &&TableRow| {
            let number = whole_number(class.value("class"));
            number.parse().ok().and_then(|index: usize| self.class_names.get(index)).cloned().unwrap_or(number)
        };
        let columns = [
            ("class".into(), classes.iter().map(name).collect()),
            ("rows".into(), classes.iter().map(|class| whole_number(class.value("rows"))).collect()),
            ("accuracy".into(), classes.iter().map(|class| text::percent(class.value("accuracy"), 1)).collect()),
        ];
        format!("{heading}\n{}", text::table(&columns))
    }

    /// The bias of draws from chains that stay coupled by springs.
    fn coupling(&self) -> String {
        // One row is noisy if there are few parameters, so the second half of the rows is averaged. The last period has no value, because
        // no exchange follows it.
        let measured: Vec<&TableRow> = self.history.iter().filter(|round| round.value(SPREAD_OF_CHAINS).is_finite()).collect();
        let second_half = &measured[measured.len() / 2..];
        let (Some(last), true) = (second_half.last(), self.stays_coupled) else { return String::new() };
        let mean_square =
            second_half.iter().map(|round| round.value(SPREAD_OF_CHAINS).powi(2)).sum::<f64>() / second_half.len() as f64;
        let (spread, kappa) = (mean_square.sqrt(), last.value("coupling"));
        // S = 1/(λ + κ) for a Gaussian posterior with precision λ.
        let precision = 1.0 / (spread * spread) - kappa;
        let posterior_sd =
            if precision > 0.0 { format!("{:.3e}", precision.sqrt().recip()) } else { "too large to estimate".into() };
        format!(
            "\ncoupled chains: draws do not have the posterior distribution\n  distance of a parameter from the mean of the chains (root \
             mean square): {spread:.3e}; by the coupling alone it would be {:.3e}\n  corresponding posterior sd, if the posterior is \
             Gaussian: {posterior_sd}\n",
            kappa.sqrt().recip()
        )
    }

    fn trajectories(&self) -> String {
        let Some(trajectories) = self.trajectories else { return String::new() };
        let Trajectories { count, diverged, longest, acceptance, leapfrog_steps } = trajectories;
        let longest = match longest {
            0 => String::new(),
            _ => format!("  {} reached the largest length: parameters are strongly correlated\n", text::count(longest)),
        };
        format!(
            "\ntrajectories: {diverged} of {} diverged, {leapfrog_steps:.1} leapfrog steps each, mean acceptance {acceptance:.2}\n{longest}",
            text::count(count)
        )
    }

    fn time_by_phase(&self) -> String {
        let measured: Vec<&(String, f64)> = self.phases.iter().filter(|phase| phase.1.is_finite()).collect();
        if measured.is_empty() {
            return String::new();
        }
        let total: f64 = measured.iter().map(|phase| phase.1).sum();
        let columns = [
            ("phase".into(), measured.iter().map(|phase| phase.0.replace('_', " ")).collect()),
            ("time".into(), measured.iter().map(|phase| text::seconds(phase.1)).collect()),
            ("share".into(), measured.iter().map(|phase| text::percent(phase.1 / total, 1)).collect()),
        ];
        format!("\ntime by phase, summed over all agents\n{}", text::table(&columns))
    }
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

/// A count that a table holds as a floating-point number; `-` for NaN.
fn whole_number(number: f64) -> String {
    // The conversion saturates.
    if number.is_nan() { "-".into() } else { text::count(number as u64) }
}

/// A group of draws: its size, its variables and the estimates of its parameters.
fn draws_description(draws: &PosteriorGroup, all: bool, model: &str, is_standardized: bool) -> String {
    let (noun, chains) = match draws.kind {
        SampleKind::Particles => ("particle", String::new()),
        SampleKind::Paths => ("evaluation", format!("{} × ", text::counted(draws.chains, "particle"))),
        // Expectations have a table of their own.
        SampleKind::Expectation | SampleKind::Statistics => return String::new(),
        SampleKind::Chains | SampleKind::Topics => ("draw", format!("{} × ", text::counted(draws.chains, "chain"))),
    };
    let size = format!("{chains}{} × {}", text::counted(draws.draws, noun), text::counted(draws.parameters, "parameter"));
    let columns: Vec<(String, Vec<String>)> = vec![
        ("variable".into(), draws.parts.iter().map(|part| part.name.clone()).collect()),
        ("shape".into(), draws.parts.iter().map(|part| shape(&part.shape)).collect()),
        ("size".into(), draws.parts.iter().map(|part| text::count(part.size())).collect()),
    ];
    let mut text = format!("\n{}: {size}\n{}", draws.group, text::table(&columns));
    if draws.kind == SampleKind::Topics {
        text += "  `mpibayes topics` lists the top words of each topic\n";
    }
    let table = draws.table(all, model == "network");
    if !table.is_empty() {
        text += &format!(
            "\n{} estimates{}\n{table}",
            draws.group,
            if is_standardized { " (in standardized units, as the model has them)" } else { "" }
        );
    }
    text
}

/// A text table of at most `MAX_ROWS` of these rows, evenly spaced.
fn table_of_rounds(title: &str, all: &[TableRow]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let rows: Vec<&TableRow> = evenly_spaced(all.len(), MAX_ROWS).into_iter().map(|row| &all[row]).collect();
    let mut text = format!("\n{title}");
    if rows.len() < all.len() {
        text += &format!(" ({} of {} rows; --json has all)", rows.len(), all.len());
    }
    let mut columns = vec![("round".to_owned(), rows.iter().map(|row| row.step.to_string()).collect())];
    for (column, (name, _)) in first.values.iter().enumerate().take(MAX_COLUMNS) {
        let values: Vec<f64> = rows.iter().map(|row| row.values[column].1).collect();
        let cells = match name.as_str() {
            name if is_time(name) => values.iter().map(|value| format!("{value:.2}")).collect(),
            // Counts of bytes are far below 2^53.
            BYTES => values.iter().map(|&value| text::bytes(value as u64)).collect(),
            _ => text::values(&values),
        };
        columns.push((name.clone(), cells));
    }
    text += &format!("\n{}", text::table(&columns));
    if let Some(rest @ [_, ..]) = first.values.get(MAX_COLUMNS..) {
        let names: Vec<&str> = rest.iter().map(|value| value.0.as_str()).collect();
        text += &format!("  more columns in --json: {}\n", names.join(", "));
    }
    text
}

fn is_time(name: &str) -> bool {
    name == SECONDS || name.ends_with("_seconds")
}

/// A metric with its unit and what it means.
fn with_meaning(name: &str, value: f64) -> String {
    match meaning(name) {
        Some(meaning) => format!("{}  {meaning}", with_unit(name, value)),
        None => with_unit(name, value),
    }
}

/// A metric with its unit.
fn with_unit(name: &str, value: f64) -> String {
    match name {
        _ if value.is_nan() => "-".into(),
        "accuracy" | "particle_accuracy" | "posterior_accuracy" => format!("{:.2} %", 100.0 * value),
        "log_likelihood" | "particle_log_likelihood" | "posterior_log_likelihood" => format!("{value:.4} nats per row"),
        _ if is_time(name) => text::seconds(value),
        _ => text::value(value),
    }
}

fn shape(sides: &[usize]) -> String {
    match sides {
        [] => "scalar".into(),
        sides => sides.iter().map(usize::to_string).collect::<Vec<_>>().join(" × "),
    }
}

#[cfg(test)]
mod tests;
