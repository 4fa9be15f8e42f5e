//! `mpibayes summary`: what came out of a run, for people, as JSON, or one number of it.

use super::output::print;
use super::posterior::{self, Draws, Expected};
use crate::data::Dataset;
use crate::methods::SPREAD;
use crate::methods::chains::coupled::SPREAD as SPREAD_OF_CHAINS;
use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::report::text;
use crate::results::{HISTORY, METRICS, RunFile, RunState, SampleKind, Table, checkpoint_file, config_file, result_file};
use anyhow::{Context, anyhow, bail};
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The table of messages and bytes between ranks: columns `PURPOSE_messages` and `PURPOSE_bytes`.
const TRAFFIC: &str = "traffic";
/// The tables of accuracy by confidence and by class, a row for each bin or class of each evaluated round.
const RELIABILITY: &str = "reliability";
const CLASSES: &str = "classes";
/// The table of seconds by phase.
const PHASES: &str = "phases";
/// How many classes people are shown.
const SHOWN_CLASSES: usize = 20;
/// How many rows of the history people are shown.
const SHOWN_ROWS: usize = 16;
/// How many columns of the history people are shown beside the step.
const SHOWN_COLUMNS: usize = 8;

const EXAMPLES: &str = "\
Examples:
  mpibayes summary runs/first
  mpibayes summary runs/first --json > first.json
  mpibayes summary runs/first --get accuracy";

/// What can be typed after `mpibayes summary`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SummaryArgs {
    /// The folder of a run, or its result file
    pub run: PathBuf,
    /// One JSON object, with all rows of all tables
    #[arg(long, conflicts_with = "get")]
    pub json: bool,
    /// Every parameter of the posterior, not the worst alone, and all judged however many there are
    #[arg(long, conflicts_with = "get")]
    pub all: bool,
    /// Only this final metric, such as accuracy, log_likelihood or ece
    #[arg(long, value_name = "METRIC")]
    pub get: Option<String>,
}

/// What came out of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The result file.
    pub file: PathBuf,
    /// The method, by its name in the configuration.
    pub method: String,
    /// The model, by its name in the configuration.
    pub model: String,
    /// The dataset that the run file names, if it names one.
    pub data: Option<String>,
    /// The digest of the dataset; empty if the run had none.
    pub data_digest: String,
    /// The seed.
    pub seed: u64,
    /// The version of the program that ran.
    pub version: String,
    /// When the file was made: ISO 8601, UTC.
    pub created_at: String,
    /// Whether the run is over; otherwise this is what there is so far.
    pub finished: bool,
    /// Rounds done; 0 where it is not known.
    pub rounds_done: u64,
    /// Rounds in all; 0 where it is not known.
    pub rounds_total: u64,
    /// The last row of the table of metrics, by name; NaN (`null` in JSON) where it has no value.
    #[serde(serialize_with = "as_object")]
    pub metrics: Vec<(String, f64)>,
    /// The evaluations: each row's round and metrics.
    pub evaluations: Vec<Round>,
    /// The lowest and highest accuracy or RMSE of the agents' slices of the test rows, of each evaluation.
    pub spread: Vec<Round>,
    /// What the method itself logged: each row's round and values.
    pub history: Vec<Round>,
    /// Accuracy by confidence: each evaluated round's bins.
    pub reliability: Vec<Round>,
    /// Accuracy by class: each evaluated round's classes.
    pub classes: Vec<Round>,
    /// Whether chains are coupled by springs while draws are taken.
    pub stays_coupled: bool,
    /// The names of the classes; empty where the dataset is not at hand.
    pub class_names: Vec<String>,
    /// The groups of draws, and what they say about each parameter.
    pub draws: Vec<Draws>,
    /// Posterior means and standard deviations that were computed without draws.
    pub expectations: Vec<Expected>,
    /// Seconds by phase.
    #[serde(serialize_with = "as_object")]
    pub phases: Vec<(String, f64)>,
    /// Messages and bytes between ranks, by purpose.
    pub traffic: Vec<Flow>,
}

/// A row of the history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// The round.
    pub step: u64,
    /// Its values: seconds since the run began, metrics.
    #[serde(flatten, serialize_with = "as_object")]
    pub values: Vec<(String, f64)>,
}

/// What travelled for one purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// The purpose: `tasks`, `reports`.
    pub purpose: String,
    /// Messages between ranks.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// Named numbers as a JSON object in their order; JSON has no NaN, it becomes `null`.
pub(super) fn as_object<S: Serializer>(values: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

/// Prints what was asked for.
///
/// # Errors
/// See [`Summary::read`]; and when the run has no such metric.
pub fn run(args: &SummaryArgs) -> anyhow::Result<ExitCode> {
    let summary = Summary::read(&args.run, args.all)?;
    let text = match &args.get {
        _ if args.json => serde_json::to_string_pretty(&summary)? + "\n",
        Some(name) => summary.metric(name)? + "\n",
        None => summary.shown(args.all),
    };
    print(&text).context("cannot print the summary")?;
    Ok(ExitCode::SUCCESS)
}

impl Summary {
    /// Reads what came out of a run: from its folder, or from its result file. Of a run that is not over that is what there is so
    /// far. Of very many parameters an even spread is judged, unless `all` are wanted.
    ///
    /// # Errors
    /// When there is no such run, it has no results yet, or its file cannot be read or is of another program.
    pub fn read(run: &Path, all: bool) -> anyhow::Result<Self> {
        let path = find(run)?;
        let file = RunFile::open(&path)?;
        let tables = file.tables()?;
        let table = |name: &str| match tables.iter().any(|other| other == name) {
            true => file.table(name).map(Some),
            false => Ok(None),
        };
        let (metrics, history) = (table(METRICS)?.unwrap_or_default(), table(HISTORY)?.unwrap_or_default());
        let last = rows_of_the_server(&metrics).last();
        let mut groups = file.sample_groups()?;
        groups.retain(|group| !EXPECTATIONS.contains(&group.as_str()));
        let draws = groups.into_iter().map(|group| Draws::read(&file, &group, all));
        let draws = draws.collect::<crate::results::Result<_>>()?;
        let info = file.info().clone();
        let RunState { finished, done, total, .. } = info.state;
        let data = data_file(&info.config);
        let classes = rounds(&table(CLASSES)?.unwrap_or_default());
        Ok(Self {
            stays_coupled: stays_coupled(&info.config),
            class_names: if classes.is_empty() { Vec::new() } else { class_names(data.as_deref(), &info.data_digest) },
            classes,
            reliability: rounds(&table(RELIABILITY)?.unwrap_or_default()),
            phases: phases(&table(PHASES)?.unwrap_or_default()),
            data,
            finished,
            rounds_done: done,
            rounds_total: total,
            file: path,
            method: info.method,
            model: info.model,
            data_digest: info.data_digest,
            seed: info.seed,
            version: info.version,
            created_at: info.created_at,
            metrics: last.map(|row| values_at(&metrics, row)).unwrap_or_default(),
            evaluations: rounds(&metrics),
            spread: rounds(&table(SPREAD)?.unwrap_or_default()),
            history: rounds(&history),
            draws,
            expectations: posterior::expectations(&file)?,
            traffic: flows(&table(TRAFFIC)?.unwrap_or_default()),
        })
    }

    /// A final metric by its name, with four digits after the point.
    ///
    /// # Errors
    /// When the run has no such metric.
    pub fn metric(&self, name: &str) -> anyhow::Result<String> {
        match self.metrics.iter().find(|metric| metric.0 == name) {
            Some((_, value)) => Ok(format!("{value:.4}")),
            None if self.metrics.is_empty() => bail!("{}: this run judged no predictions", self.file.display()),
            None => {
                let names: Vec<&str> = self.metrics.iter().map(|metric| metric.0.as_str()).collect();
                bail!("{}: no metric is called {name:?}; there are {}", self.file.display(), names.join(", "))
            }
        }
    }
}

/// The result file of what was named.
pub(super) fn find(run: &Path) -> anyhow::Result<PathBuf> {
    if run.is_file() {
        return Ok(run.to_path_buf());
    }
    if !run.is_dir() {
        bail!("{}: there is no such folder or file", run.display());
    }
    let file = result_file(run);
    if file.exists() {
        return Ok(file);
    }
    Err(if checkpoint_file(run).exists() || config_file(run).exists() {
        anyhow!(
            "{0}: this run is not finished: it is still going, or it was stopped; then \
             `mpibayes run FILE.toml --output {0}` goes on with it",
            run.display()
        )
    } else {
        anyhow!("{}: this is no folder of a run: it holds neither a result file nor a configuration", run.display())
    })
}

/// Whether chains are coupled by springs for ever, in a resolved configuration.
fn stays_coupled(config: &str) -> bool {
    let method = || config.parse::<toml::Table>().ok()?.remove("method")?.try_into::<toml::Table>().ok();
    let method = method().unwrap_or_default();
    let text = |key: &str| method.get(key).and_then(toml::Value::as_str);
    text("coupling_schedule") == Some("constant") && text("variant").is_none_or(|variant| variant == "elastic")
}

/// The dataset in a resolved configuration.
pub(super) fn data_file(config: &str) -> Option<String> {
    let config: toml::Table = config.parse().ok()?;
    Some(config.get("data")?.get("file")?.as_str()?.to_owned())
}

/// The names of the classes, if the dataset still lies where the run found it.
fn class_names(data: Option<&str>, digest: &str) -> Vec<String> {
    let dataset = data.and_then(|file| Dataset::open(file.as_ref()).ok());
    dataset.filter(|dataset| dataset.digest() == digest).map(|dataset| dataset.classes().to_vec()).unwrap_or_default()
}

/// Seconds by phase: of the server, and of all agents together.
fn phases(table: &Table) -> Vec<(String, f64)> {
    let total = |values: &[f64]| 0.0 + values.iter().filter(|value| !value.is_nan()).sum::<f64>();
    table.columns.iter().map(|(name, values)| (name.clone(), total(values))).collect()
}

/// The rows of a table that no agent wrote.
fn rows_of_the_server(table: &Table) -> impl Iterator<Item = usize> + '_ {
    (0..table.rows()).filter(|&row| table.agent[row].is_none())
}

fn values_at(table: &Table, row: usize) -> Vec<(String, f64)> {
    table.columns.iter().map(|(name, values)| (name.clone(), values[row])).collect()
}

/// The server's rows of a table, seconds first.
fn rounds(table: &Table) -> Vec<Round> {
    rows_of_the_server(table)
        .map(|row| {
            let mut values = values_at(table, row);
            // A stable sort moves nothing else.
            values.sort_by_key(|(name, _)| name != "seconds");
            Round { step: table.step[row], values }
        })
        .collect()
}

/// Messages and bytes by purpose, from the last row of the table.
fn flows(table: &Table) -> Vec<Flow> {
    let Some(row) = table.rows().checked_sub(1) else { return Vec::new() };
    // Counts, written as numbers; a negative or missing one becomes 0.
    let number = |name: &str| table.column(name).map_or(0, |values| values[row] as u64);
    let purposes = table.columns.iter().filter_map(|(name, _)| name.strip_suffix("_messages"));
    purposes
        .map(|purpose| Flow {
            purpose: purpose.replace('_', " "),
            messages: number(&format!("{purpose}_messages")),
            bytes: number(&format!("{purpose}_bytes")),
        })
        .collect()
}

/// At most this many of these rows, evenly spread, the first and the last among them.
fn spread(rows: usize, most: usize) -> Vec<usize> {
    if rows <= most {
        return (0..rows).collect();
    }
    (0..most).map(|i| i * (rows - 1) / (most - 1)).collect()
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown(false))
    }
}

impl Summary {
    /// For people: with the worst parameters of the posterior, or `all`.
    fn shown(&self, all: bool) -> String {
        let mut shown = format!("{}\n", self.file.display());
        if !self.finished {
            let rounds = match self.rounds_total {
                0 => String::new(),
                total => format!(": round {} of {total}", self.rounds_done),
            };
            shown += &format!("not finished{rounds}; this is what there is so far\n");
        }
        let data = match self.data_digest.get(..super::DIGEST_SHOWN) {
            Some(short) => match &self.data {
                Some(file) => format!("{file} (digest {short})"),
                None => format!("digest {short}"),
            },
            None => "none".into(),
        };
        let about = [
            ("method", self.method.clone()),
            ("model", self.model.clone()),
            ("data", data),
            ("seed", self.seed.to_string()),
            ("made", format!("{}, mpibayes {}", self.created_at, self.version)),
        ];
        shown += &text::pairs(&about);
        if !self.metrics.is_empty() {
            let steps = self.evaluations.last().map_or(String::new(), |last| format!(" (step {})", last.step));
            shown += &format!("\n{} metrics{steps}\n", if self.finished { "final" } else { "latest" });
            let mut lines: Vec<(&str, String)> =
                self.metrics.iter().map(|(name, value)| (name.as_str(), quantity(name, *value))).collect();
            let lowest = self.spread.last().and_then(|last| {
                let ends = |value: &&(String, f64)| value.0.ends_with("_lowest");
                Some((last, last.values.iter().find(ends)?))
            });
            if let Some((last, (name, lowest))) = lowest {
                let name = name.strip_suffix("_lowest").unwrap_or(name);
                let highest = last.value(&format!("{name}_highest"));
                let range =
                    format!("{name} {} to {} on the agents' own test rows", quantity(name, *lowest), quantity(name, highest));
                lines.push(("by agent", range));
            }
            shown += &text::pairs(&lines);
        }
        shown += &self.shown_reliability();
        shown += &self.shown_classes();
        shown += &shown_rounds("metrics by round", &self.evaluations);
        shown += &shown_rounds("history of the method", &self.history);
        shown += &self.shown_coupling();
        for draws in &self.draws {
            shown += &shown_draws(draws, all);
        }
        if !self.expectations.is_empty() {
            shown += "\nexpectations over the posterior, of all updates after the burn-in\n";
            shown += &posterior::expectations_table(&self.expectations, all);
        }
        shown += &self.shown_phases();
        if !self.traffic.is_empty() {
            shown += "\ntraffic between ranks\n";
            let columns = [
                ("purpose".into(), self.traffic.iter().map(|flow| flow.purpose.clone()).collect()),
                ("messages".into(), self.traffic.iter().map(|flow| text::count(flow.messages)).collect()),
                ("size".into(), self.traffic.iter().map(|flow| text::bytes(flow.bytes)).collect()),
            ];
            shown += &text::table(&columns);
        }
        shown
    }

    /// The reliability table of the last evaluation, without empty bins.
    fn shown_reliability(&self) -> String {
        let bins: Vec<&Round> = last_step(&self.reliability).into_iter().filter(|bin| bin.value("rows") > 0.0).collect();
        if bins.is_empty() {
            return String::new();
        }
        let percent = |of: fn(&Round) -> f64| bins.iter().map(|bin| percent(of(bin))).collect();
        let edge = |share: f64| (1e4 * share).round() / 1e2;
        let edges = |bin: &&Round| format!("{} to {} %", edge(bin.value("lower")), edge(bin.value("upper")));
        let columns = [
            ("in bin".into(), bins.iter().map(edges).collect()),
            ("rows".into(), bins.iter().map(|bin| count_of(bin.value("rows"))).collect()),
            ("confidence".into(), percent(|bin| bin.value("confidence"))),
            ("accuracy".into(), percent(|bin| bin.value("accuracy"))),
            ("too sure by".into(), percent(|bin| bin.value("confidence") - bin.value("accuracy"))),
        ];
        format!("\nreliability: how often predictions of some confidence are right\n{}", text::table(&columns))
    }

    /// The accuracy of each class in the last evaluation; of many classes the worst.
    fn shown_classes(&self) -> String {
        let mut classes = last_step(&self.classes);
        let all = classes.len();
        if all == 0 {
            return String::new();
        }
        let mut heading = "\naccuracy by class".to_owned();
        if all > SHOWN_CLASSES {
            classes.sort_by(|a, b| a.value("accuracy").total_cmp(&b.value("accuracy")));
            classes.truncate(SHOWN_CLASSES);
            heading += &format!(" (the worst {SHOWN_CLASSES} of {}; --json has all)", text::count(all));
        }
        let name = |class: &&Round| {
            let number = count_of(class.value("class"));
            // Another number than an index finds no name.
            number.parse().ok().and_then(|index: usize| self.class_names.get(index)).cloned().unwrap_or(number)
        };
        let columns = [
            ("class".into(), classes.iter().map(name).collect()),
            ("rows".into(), classes.iter().map(|class| count_of(class.value("rows"))).collect()),
            ("accuracy".into(), classes.iter().map(|class| percent(class.value("accuracy"))).collect()),
        ];
        format!("{heading}\n{}", text::table(&columns))
    }

    /// What springs between chains and their center do to the draws, where they were there to the end.
    fn shown_coupling(&self) -> String {
        // Of few parameters one row tells little: the later half of them. The last period needs no exchange behind it.
        let measured: Vec<&Round> = self.history.iter().filter(|round| round.value(SPREAD_OF_CHAINS).is_finite()).collect();
        let later = &measured[measured.len() / 2..];
        let (Some(last), true) = (later.last(), self.stays_coupled) else { return String::new() };
        let square = later.iter().map(|round| round.value(SPREAD_OF_CHAINS).powi(2)).sum::<f64>() / later.len() as f64;
        let (spread, kappa) = (square.sqrt(), last.value("coupling"));
        // S = 1/(λ + κ) for a Gaussian posterior with precision λ.
        let data = 1.0 / (spread * spread) - kappa;
        let free = if data > 0.0 { format!("{:.3e}", data.sqrt().recip()) } else { "larger than can be told".into() };
        format!(
            "\ncoupled chains: draws are not the posterior's\n  a parameter is {spread:.3e} from the mean of the chains (root mean square); \
             springs alone would let it be {:.3e}\n  for a Gaussian posterior its standard deviation would then be {free}\n",
            kappa.sqrt().recip()
        )
    }

    /// Where the time went.
    fn shown_phases(&self) -> String {
        let known: Vec<&(String, f64)> = self.phases.iter().filter(|phase| phase.1.is_finite()).collect();
        if known.is_empty() {
            return String::new();
        }
        let all: f64 = known.iter().map(|phase| phase.1).sum();
        let columns = [
            ("phase".into(), known.iter().map(|phase| phase.0.replace('_', " ")).collect()),
            ("time".into(), known.iter().map(|phase| text::seconds(phase.1)).collect()),
            ("share".into(), known.iter().map(|phase| percent(phase.1 / all)).collect()),
        ];
        format!("\ntime by phase\n{}", text::table(&columns))
    }
}

impl Round {
    /// A value by its name; NaN if there is none.
    fn value(&self, name: &str) -> f64 {
        self.values.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1)
    }
}

/// The rows of the last step.
fn last_step(rounds: &[Round]) -> Vec<&Round> {
    let last = rounds.last().map(|round| round.step);
    rounds.iter().filter(|round| Some(round.step) == last).collect()
}

fn percent(share: f64) -> String {
    if share.is_nan() { "-".into() } else { format!("{:.1} %", 100.0 * share) }
}

/// A count that a table holds as a number.
fn count_of(number: f64) -> String {
    // Saturates; a NaN becomes 0 and is shown as none.
    if number.is_nan() { "-".into() } else { text::count(number as u64) }
}

/// A group of draws: its shape, its parts, and what it says about its parameters.
fn shown_draws(draws: &Draws, all: bool) -> String {
    let number = |number: usize| text::count(number);
    let (unit, chains) = match draws.kind {
        SampleKind::Particles => ("particle", String::new()),
        SampleKind::Paths => ("evaluation", format!("{} × ", text::counted(draws.chains, "particle"))),
        // Shown in a table of its own.
        SampleKind::Expectation => return String::new(),
        SampleKind::Chains | SampleKind::Topics => ("draw", format!("{} × ", text::counted(draws.chains, "chain"))),
    };
    let size = format!("{chains}{} × {}", text::counted(draws.draws, unit), text::counted(draws.parameters, "parameter"));
    let mut shown = format!("\n{}: {size}\n", draws.group);
    let parts: Vec<(String, Vec<String>)> = vec![
        ("part".into(), draws.parts.iter().map(|part| part.name.clone()).collect()),
        ("shape".into(), draws.parts.iter().map(|part| shape(&part.shape)).collect()),
        ("numbers".into(), draws.parts.iter().map(|part| number(part.size())).collect()),
    ];
    shown += &text::table(&parts);
    if draws.kind == SampleKind::Topics {
        shown += "  mpibayes topics shows them by their words\n";
    }
    let table = draws.table(all);
    if !table.is_empty() {
        shown += &format!("\nparameters of {}\n{table}", draws.group);
    }
    shown
}

/// A table of rounds, of which people are shown a part where there are many.
fn shown_rounds(title: &str, all: &[Round]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let places = spread(all.len(), SHOWN_ROWS);
    let rounds: Vec<&Round> = places.iter().map(|&row| &all[row]).collect();
    let mut shown = if places.len() < all.len() {
        format!("\n{title} ({} of {} rows; --json has all)\n", places.len(), all.len())
    } else {
        format!("\n{title}\n")
    };
    let mut columns = vec![("step".to_owned(), rounds.iter().map(|round| round.step.to_string()).collect())];
    for (place, (name, _)) in first.values.iter().enumerate().take(SHOWN_COLUMNS) {
        let values: Vec<f64> = rounds.iter().map(|round| round.values[place].1).collect();
        let cells = match is_time(name) {
            true => values.iter().map(|value| format!("{value:.2}")).collect(),
            false => text::values(&values),
        };
        columns.push((name.clone(), cells));
    }
    shown += &text::table(&columns);
    if let Some(rest @ [_, ..]) = first.values.get(SHOWN_COLUMNS..) {
        let names: Vec<&str> = rest.iter().map(|value| value.0.as_str()).collect();
        shown += &format!("  not shown: {}\n", names.join(", "));
    }
    shown
}

fn is_time(name: &str) -> bool {
    name == "seconds" || name.ends_with("_seconds")
}

/// A metric with its unit.
fn quantity(name: &str, value: f64) -> String {
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cluster::record::Row;
    use crate::models::Part;
    use crate::results::{RunInfo, SampleKind, Samples, Values, write_run};
    use ndarray::Array3;

    fn row(table: &str, step: u64, agent: Option<u32>, values: &[(&str, f64)]) -> Row {
        Row { table: table.into(), step, agent, values: values.iter().map(|&(name, value)| (name.into(), value)).collect() }
    }

    fn write(folder: &Path, rounds: u64) -> PathBuf {
        let mut rows = vec![
            row("traffic", rounds, None, &[("tasks_messages", 1200.0), ("tasks_bytes", 3.5e6), ("slices_of_sums_messages", 3.0)]),
            row("metrics", rounds, Some(0), &[("accuracy", 0.1)]),
        ];
        for step in 1..=rounds {
            rows.push(row("history", step, None, &[("seconds", step as f64 / 4.0), ("bandwidth", 0.5)]));
            let accuracy = 1.0 - 0.5 / step as f64;
            rows.push(row(
                "metrics",
                step,
                None,
                &[("accuracy", accuracy), ("ece", 0.0213), ("mce_20", f64::NAN), ("log_likelihood", -0.4567)],
            ));
        }
        let parts = vec![Part::new("weights_1", &[3, 2]), Part::new("log_precision", &[])];
        let samples = Samples {
            group: "posterior".into(),
            kind: SampleKind::Particles,
            parts,
            values: Values::F32(Array3::zeros((1, 20, 7))),
        };
        let info = RunInfo::new("dsvgd", "network", 7, "0123456789abcdef", "seed = 7\n[data]\nfile = \"my.h5\"\n");
        let path = result_file(folder);
        write_run(&path, &info, &[samples], &rows).unwrap();
        path
    }

    #[test]
    fn folder_and_file_say_the_same_and_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), 3);
        let summary = Summary::read(folder.path(), false).unwrap();
        assert_eq!(format!("{summary:?}"), format!("{:?}", Summary::read(&path, false).unwrap()));
        let shown = summary.to_string();
        for says in [
            "  method  dsvgd\n",
            "  data    my.h5 (digest 0123456789ab)\n",
            "final metrics (step 3)\n  accuracy        83.33 %\n  ece             0.0213\n  mce_20          -\n  log_likelihood  -0.4567 nats per row\n",
            "  step  accuracy     ece  mce_20  log_likelihood\n     1    0.5000  0.0213       -         -0.4567\n",
            "history of the method\n  step  seconds  bandwidth\n     1     0.25     0.5000\n",
            "\nposterior: 20 particles × 7 parameters\n",
            "\nparameters of posterior\n  parameter       mean  sd  5 %  95 %\n  weights_1[0,0]     0   0    0     0\n",
            "  weights_1       3 × 2        6\n  log_precision  scalar        1\n",
            "  tasks              1,200  3.3 MiB\n  slices of sums         3      0 B\n",
        ] {
            assert!(shown.contains(says), "{says}\nin\n{shown}");
        }
    }

    #[test]
    fn json_holds_the_same() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 40);
        let summary = Summary::read(folder.path(), false).unwrap();
        let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
        assert_eq!(json["metrics"]["accuracy"], 0.9875);
        assert!(json["metrics"]["mce_20"].is_null());
        assert_eq!((json["seed"].as_u64(), json["method"].as_str()), (Some(7), Some("dsvgd")));
        assert_eq!(json["history"].as_array().map(Vec::len), Some(40));
        assert_eq!(json["evaluations"][39]["accuracy"], 0.9875);
        assert_eq!((&json["history"][1]["step"], &json["history"][1]["seconds"]), (&2.into(), &0.5.into()));
        assert_eq!(json["draws"][0]["parts"][0]["shape"], serde_json::json!([3, 2]));
        assert_eq!(json["traffic"][0], serde_json::json!({"purpose": "tasks", "messages": 1200, "bytes": 3_500_000}));
        let shown = summary.to_string();
        assert!(
            shown.contains("history of the method (16 of 40 rows; --json has all)")
                && shown.contains("\n     1  ")
                && shown.contains("\n    40  "),
            "{shown}"
        );
    }

    #[test]
    fn a_run_that_goes_on_says_how_far_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = result_file(folder.path());
        let state = RunState { finished: false, done: 7, total: 12, seconds: 3.0 };
        let info = RunInfo { state, ..RunInfo::new("svgd", "toy", 1, "", "") };
        write_run(&path, &info, &[], &[row("metrics", 7, None, &[("rmse", 2.0)])]).unwrap();
        let summary = Summary::read(folder.path(), false).unwrap();
        let shown = summary.to_string();
        assert_eq!(shown.lines().nth(1), Some("not finished: round 7 of 12; this is what there is so far"));
        assert!(shown.contains("\nlatest metrics (step 7)\n"), "{shown}");
        assert_eq!((summary.finished, summary.rounds_done), (false, 7));
        // The control: a run that is over.
        write_run(&path, &RunInfo::new("svgd", "toy", 1, "", ""), &[], &[]).unwrap();
        assert!(!Summary::read(folder.path(), false).unwrap().to_string().contains("not finished"));
    }

    #[test]
    fn calibration_classes_and_phases_are_those_of_the_last_evaluation() {
        let folder = tempfile::tempdir().unwrap();
        let path = result_file(folder.path());
        let mut rows = vec![row("phases", 0, None, &[("compute", 3.0), ("wait_for_others", 1.0)])];
        for step in [1, 2] {
            for (bin, count) in [(8, 0.0), (9, 40.0 * step as f64)] {
                let values = [("lower", bin as f64 / 10.0), ("upper", (bin + 1) as f64 / 10.0), ("rows", count)];
                rows.push(row("reliability", step, None, &[&values[..], &[("accuracy", 0.9), ("confidence", 0.95)]].concat()));
            }
            let class = |class: usize| [("class", class as f64), ("rows", 10.0), ("accuracy", (class as f64) / 100.0)];
            rows.extend((0..30).map(|number| row("classes", step, None, &class(number))));
        }
        write_run(&path, &RunInfo::new("svgd", "toy", 1, "", ""), &[], &rows).unwrap();
        let mut summary = Summary::read(folder.path(), false).unwrap();
        summary.class_names = (0..30).map(|number| format!("name{number}")).collect();
        let shown = summary.to_string();
        for says in [
            "       in bin  rows  confidence  accuracy  too sure by\n  90 to 100 %    80      95.0 %    90.0 %        5.0 %\n",
            "\naccuracy by class (the worst 20 of 30; --json has all)\n  class   rows  accuracy\n  name0     10     0.0 %\n",
            "  compute          3.00 s  75.0 %\n  wait for others  1.00 s  25.0 %\n",
        ] {
            assert!(shown.contains(says), "{says}\nin\n{shown}");
        }
        assert!(!shown.contains("80 to 90") && !shown.contains("name20"), "{shown}");
        assert_eq!((summary.reliability.len(), summary.classes.len()), (4, 60));
    }

    #[test]
    fn one_metric_is_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), 2);
        let summary = Summary::read(&path, false).unwrap();
        assert_eq!(summary.metric("accuracy").unwrap(), "0.7500");
        let refused = summary.metric("rmse").unwrap_err().to_string();
        assert!(refused.contains("accuracy, ece, mce_20, log_likelihood"), "{refused}");
    }

    #[test]
    fn a_run_without_metrics_shows_its_history() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.h5");
        write_run(&path, &RunInfo::new("svgd", "toy", 1, "", ""), &[], &[row("history", 5, None, &[("seconds", 1.0)])]).unwrap();
        let summary = Summary::read(&path, false).unwrap();
        let shown = summary.to_string();
        assert!(shown.contains("data    none") && shown.contains("  step  seconds\n     5     1.00\n"), "{shown}");
        assert!(summary.metric("accuracy").unwrap_err().to_string().contains("judged no predictions"));
    }

    #[test]
    fn what_is_no_finished_run_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| format!("{:#}", Summary::read(path, false).unwrap_err());
        assert!(refused(&folder.path().join("nowhere")).contains("no such folder"));
        assert!(refused(folder.path()).contains("no folder of a run"));
        // A run has a configuration from its beginning, and a checkpoint later.
        for file in [config_file, checkpoint_file] {
            let begun = tempfile::tempdir().unwrap();
            std::fs::write(file(begun.path()), "content").unwrap();
            let message = refused(begun.path());
            assert!(message.contains("not finished") && message.contains("mpibayes run FILE.toml --output"), "{message}");
        }
        let foreign = folder.path().join("x.h5");
        std::fs::write(&foreign, "hello").unwrap();
        assert!(refused(&foreign).contains("no result file of this program"));
    }

    #[test]
    fn the_spread_keeps_both_ends() {
        assert_eq!(spread(3, 5), [0, 1, 2]);
        assert_eq!(spread(101, 5), [0, 25, 50, 75, 100]);
    }
}
