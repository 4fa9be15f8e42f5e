//! `mpibayes compare`: several runs in one table and one picture.

use super::output::print;
use super::picture::{Over, PictureArgs};
use super::plot::{Subject, data_name};
use super::summary;
use crate::plots::{self, Against, Curve};
use crate::report::text;
use crate::results::result_file;
use anyhow::{Context, bail, ensure};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The metrics whose curves are drawn unless another one is named: the first of these that a run has.
const USUAL: [&str; 4] = ["accuracy", "rmse", "perplexity", "log_likelihood"];
/// The key of the seed in a configuration.
const SEED: &str = "seed";
/// The key of the dataset in a configuration.
const DATA: &str = "data.file";
/// A legend says in what runs differ as long as that is short, and names a folder otherwise.
const LONGEST_LABEL: usize = 60;

const EXAMPLES: &str = "\
Examples:
  mpibayes compare runs/dsvgd runs/svgd
  mpibayes compare runs/* --metric log_likelihood --against seconds --output comparison.svg
  mpibayes compare runs/* --csv > runs.csv";

/// What can be typed after `mpibayes compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// The folders of runs, or their result files
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,
    /// The metric to draw; accuracy, rmse, perplexity or log_likelihood by default
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// What the horizontal axis of the picture shows
    #[arg(long, value_name = "AXIS", default_value = "round")]
    pub against: Over,
    /// Draw the curves of the metric into this file; without .svg or .png at its end, into both
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The size and the formats.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// The table as one JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// The table as CSV, a line for each run
    #[arg(long)]
    pub csv: bool,
}

/// Several runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The keys of the configuration in which the runs differ.
    pub differs: Vec<String>,
    /// The metrics that a run has.
    pub metrics: Vec<String>,
    /// For each metric whose better direction is known, its best final value.
    pub best: BTreeMap<String, f64>,
    /// The runs, as they were named.
    pub runs: Vec<Entry>,
    /// Whether all were made on the same data.
    pub same_data: bool,
}

/// A run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// What it is called: its folder, as far as that tells it from the others.
    pub run: String,
    /// Its result file.
    pub file: PathBuf,
    /// The method.
    pub method: String,
    /// Whether it is over.
    pub finished: bool,
    /// Its values of the keys in which the runs differ; none where its configuration has no such key.
    pub settings: BTreeMap<String, Option<String>>,
    /// Its final metrics, by name; NaN (`null` in JSON) where a value is missing.
    #[serde(serialize_with = "summary::as_object")]
    pub metrics: Vec<(String, f64)>,
    /// The last round that it tells of.
    pub rounds: u64,
    /// Seconds since it began, without evaluations.
    pub seconds: f64,
    /// Bytes between ranks.
    pub bytes: Option<u64>,
    /// The digest of its data.
    #[serde(skip)]
    digest: String,
    /// Its configuration, flat.
    #[serde(skip)]
    config: BTreeMap<String, String>,
}

/// Prints the table, and draws the picture.
///
/// # Errors
/// When there is no such run, none has the metric, or a file cannot be written.
pub fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    args.picture.check(args.output.as_deref())?;
    let mut named = Vec::new();
    let mut subjects = Vec::new();
    for run in &args.runs {
        match Subject::open(run) {
            Ok(subject) => {
                named.push(run.clone());
                subjects.push(subject);
            }
            // `runs/*` names whatever lies there: sweeps, pictures, runs that have just begun.
            Err(error) if args.runs.len() > 1 && run.is_dir() && !result_file(run).exists() => {
                eprintln!("mpibayes: left out: {error:#}")
            }
            Err(error) => return Err(error),
        }
    }
    ensure!(!named.is_empty(), "none of these is a run: name folders of runs, such as runs/first");
    let comparison = Comparison::of(&named, &subjects)?;
    for entry in comparison.runs.iter().filter(|entry| !entry.finished) {
        eprintln!("mpibayes: {}: this run is not finished: what is there so far is compared", entry.run);
    }
    // Before anything is printed: a metric that nobody has is a mistake.
    let curves = match &args.output {
        Some(_) => Some(comparison.curves(&subjects, args.metric.as_deref(), args.against.into())?),
        None => {
            if let Some(metric) = &args.metric {
                comparison.holders(&subjects, metric)?;
            }
            None
        }
    };
    let table = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&comparison)? + "\n",
        (_, true) => comparison.csv()?,
        _ if args.output.is_none() => format!("{comparison}\n  --output FILE.svg draws their curves\n"),
        _ => comparison.to_string(),
    };
    print(&table).context("cannot print the comparison")?;
    if let (Some(output), Some((metric, curves))) = (&args.output, curves) {
        let against = Against::from(args.against);
        if curves.is_empty() {
            eprintln!("mpibayes: no picture: the histories of these runs have no {}; take --against round", against.name());
            return Ok(ExitCode::SUCCESS);
        }
        let mut figure = plots::comparison(&metric, against, &curves);
        figure.subtitle = comparison.heading();
        for file in args.picture.write(&figure, output)? {
            // Standard output may be a table for a program.
            eprintln!("mpibayes: wrote {}", file.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Comparison {
    fn of(named: &[PathBuf], subjects: &[Subject]) -> anyhow::Result<Self> {
        let mut runs = Vec::new();
        for ((name, path), subject) in names(named).into_iter().zip(named).zip(subjects) {
            runs.push(Entry::read(name, subject).with_context(|| path.display().to_string())?);
        }
        let mut metrics: Vec<String> = Vec::new();
        for (name, _) in runs.iter().flat_map(|run| &run.metrics) {
            if !metrics.contains(name) {
                metrics.push(name.clone());
            }
        }
        let same_data = runs.windows(2).all(|pair| pair[0].digest == pair[1].digest);
        let differs = differing(&runs, same_data);
        for run in &mut runs {
            run.settings = differs.iter().map(|key| (key.clone(), run.config.get(key).cloned())).collect();
        }
        let best = metrics.iter().filter_map(|name| {
            let values = || runs.iter().map(|run| run.metric(name)).filter(|value| value.is_finite());
            // The best of one is no distinction.
            (values().count() > 1).then_some(())?;
            Some((name.clone(), plots::better(name)?.best(values())?))
        });
        Ok(Self { best: best.collect(), differs, metrics, runs, same_data })
    }

    /// The runs that have values of a column.
    fn holders(&self, subjects: &[Subject], metric: &str) -> anyhow::Result<()> {
        let mut there = BTreeSet::new();
        for subject in subjects {
            there.extend(plots::columns(&subject.file)?);
        }
        if there.contains(metric) {
            return Ok(());
        }
        let there: Vec<String> = there.into_iter().collect();
        bail!(
            "no run has a metric called {metric:?}; there are {}",
            if there.is_empty() { "none".into() } else { there.join(", ") }
        )
    }

    /// The metric that is drawn, and its curves; none if no run has such a horizontal axis.
    fn curves(&self, subjects: &[Subject], metric: Option<&str>, against: Against) -> anyhow::Result<(String, Vec<Curve>)> {
        let usual = || USUAL.into_iter().find(|name| self.metrics.iter().any(|metric| metric == name));
        let Some(metric) = metric.or_else(usual).or(self.metrics.first().map(String::as_str)) else {
            bail!("these runs judged no predictions: name a column of their histories with --metric");
        };
        self.holders(subjects, metric)?;
        let mut curves = Vec::new();
        for (label, members) in self.groups() {
            let mut runs = Vec::new();
            for &member in &members {
                match plots::values(&subjects[member].file, metric, against)? {
                    Some(values) => runs.push(values),
                    None => {
                        let (run, against) = (&self.runs[member].run, against.name());
                        eprintln!("mpibayes: {run}: not in the picture: it has no {metric} by {against}");
                    }
                }
            }
            if !runs.is_empty() {
                curves.push(Curve { label, runs });
            }
        }
        Ok((metric.to_owned(), curves))
    }

    /// Runs that differ in nothing but the seed, each group with a label; in the order in which they were named.
    fn groups(&self) -> Vec<(String, Vec<usize>)> {
        let mut groups: Vec<(BTreeMap<String, String>, Vec<usize>)> = Vec::new();
        for (place, run) in self.runs.iter().enumerate() {
            let mut config = run.config.clone();
            let seed = config.remove(SEED);
            if self.same_data {
                config.remove(DATA);
            }
            // The same seed twice is no second sample.
            let fits = |group: &&mut (BTreeMap<String, String>, Vec<usize>)| {
                group.0 == config && group.1.iter().all(|&other| self.runs[other].config.get(SEED) != seed.as_ref())
            };
            match groups.iter_mut().find(fits) {
                Some(group) => group.1.push(place),
                None => groups.push((config, vec![place])),
            }
        }
        let keys: Vec<&String> = self.differs.iter().filter(|key| *key != SEED).collect();
        let short = shortened(&keys);
        let said = |member: usize| -> String {
            let value = |key: &String| self.runs[member].settings.get(key).and_then(Option::as_deref);
            let says = keys.iter().zip(&short).filter_map(|(key, short)| match key.as_str() {
                "method.name" | "model.name" => value(key).map(str::to_owned),
                _ => value(key).map(|value| format!("{short} {value}")),
            });
            says.collect::<Vec<_>>().join(", ")
        };
        let labels: Vec<String> = groups.iter().map(|group| said(group.1[0])).collect();
        let distinct = labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
        let usable = distinct && labels.iter().all(|label| !label.is_empty() && label.chars().count() <= LONGEST_LABEL);
        let named = groups.into_iter().zip(labels).map(|((_, members), label)| {
            let label = match members.as_slice() {
                _ if usable => label,
                [only] => self.runs[*only].run.clone(),
                [first, ..] => self.runs[*first].run.clone() + " and others",
                [] => label,
            };
            (label, members)
        });
        named.collect()
    }

    /// What all runs have in common, in a line.
    fn heading(&self) -> String {
        let common = |key: &str, says: &str| {
            let first = self.runs.first()?.config.get(key)?;
            self.runs.iter().all(|run| run.config.get(key) == Some(first)).then(|| format!("{says} {first}"))
        };
        let data = self.runs.first().filter(|_| self.same_data).and_then(|run| run.config.get(DATA)).map(|file| data_name(file));
        let facts = [common("method.name", "method"), common("model.name", "model"), data, common(SEED, "seed")];
        let count = format!("{} runs", self.runs.len());
        facts.into_iter().flatten().chain([count]).collect::<Vec<_>>().join(" · ")
    }

    fn csv(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let fixed = ["rounds", "seconds", "bytes", "finished"].map(str::to_owned);
        let heading = ["run".to_owned(), "method".to_owned()];
        writer.write_record(heading.iter().chain(&self.differs).chain(&self.metrics).chain(&fixed))?;
        for run in &self.runs {
            let number = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
            let settings = self.differs.iter().map(|key| run.config.get(key).cloned().unwrap_or_default());
            let metrics = self.metrics.iter().map(|name| number(run.metric(name)));
            let bytes = run.bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
            let fixed = [run.rounds.to_string(), number(run.seconds), bytes, run.finished.to_string()];
            let names = [run.run.clone(), run.method.clone()];
            writer.write_record(names.into_iter().chain(settings).chain(metrics).chain(fixed))?;
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        let all = |cell: &dyn Fn(&Entry) -> String| -> Vec<String> { self.runs.iter().map(cell).collect() };
        columns.push(("run".into(), all(&|run| run.run.clone())));
        let keys: Vec<&String> = self.differs.iter().collect();
        for (key, short) in self.differs.iter().zip(shortened(&keys)) {
            columns.push((short, all(&|run| run.config.get(key).cloned().unwrap_or_else(|| "-".into()))));
        }
        for name in &self.metrics {
            let values: Vec<f64> = self.runs.iter().map(|run| run.metric(name)).collect();
            let best = self.best.get(name);
            let marked = text::values(&values).into_iter().zip(&values).map(|(cell, value)| match best {
                Some(best) if best == value => format!("{cell} *"),
                Some(_) => format!("{cell}  "),
                None => cell,
            });
            let heading = if best.is_some() { format!("{name}  ") } else { name.clone() };
            columns.push((heading, marked.collect()));
        }
        columns.push(("rounds".into(), all(&|run| text::count(run.rounds))));
        columns.push(("time".into(), all(&|run| if run.seconds.is_nan() { "-".into() } else { text::seconds(run.seconds) })));
        columns.push(("bytes".into(), all(&|run| run.bytes.map_or("-".into(), text::bytes))));
        for line in text::table(&columns).lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        if !self.best.is_empty() {
            writeln!(f, "\n  * the best final value of a metric")?;
        }
        if !self.same_data {
            writeln!(f, "\n  These runs were made on different data: their metrics need not be comparable.")?;
        }
        Ok(())
    }
}

impl Entry {
    /// A final metric; NaN if it has none of this name.
    fn metric(&self, name: &str) -> f64 {
        self.metrics.iter().find(|metric| metric.0 == name).map_or(f64::NAN, |metric| metric.1)
    }

    fn read(run: String, subject: &Subject) -> anyhow::Result<Self> {
        let summary = summary::Summary::read(&subject.path, false)?;
        let last = |name: &str| {
            let rounds = summary.history.last().into_iter().chain(summary.evaluations.last());
            rounds.flat_map(|round| &round.values).find(|value| value.0 == name).map(|value| value.1)
        };
        let steps = summary.history.last().into_iter().chain(summary.evaluations.last()).map(|round| round.step);
        let mut config = BTreeMap::new();
        flatten(
            "",
            &toml::Value::Table(subject.file.info().config.parse().context("its configuration cannot be read")?),
            &mut config,
        );
        config.entry("method.name".into()).or_insert_with(|| summary.method.clone());
        config.entry("model.name".into()).or_insert_with(|| summary.model.clone());
        config.entry(SEED.into()).or_insert_with(|| summary.seed.to_string());
        Ok(Self {
            run,
            file: subject.path.clone(),
            method: summary.method.clone(),
            finished: subject.finished,
            settings: BTreeMap::new(),
            rounds: steps.max().unwrap_or(0),
            seconds: last(plots::SECONDS).unwrap_or(f64::NAN),
            bytes: (!summary.traffic.is_empty())
                .then(|| summary.traffic.iter().fold(0, |sum: u64, flow| sum.saturating_add(flow.bytes))),
            metrics: summary.metrics.into_iter().filter(|metric| metric.0 != plots::SECONDS).collect(),
            digest: summary.data_digest,
            config,
        })
    }
}

/// The values of a configuration by their keys with points, as in `method.particles`.
fn flatten(prefix: &str, value: &toml::Value, flat: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(&if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") }, value, flat);
            }
        }
        toml::Value::String(text) => drop(flat.insert(prefix.to_owned(), text.clone())),
        other => drop(flat.insert(prefix.to_owned(), other.to_string())),
    }
}

/// The keys in which runs differ. What only one method or model has, and all runs of it have alike, follows from its name.
fn differing(runs: &[Entry], same_data: bool) -> Vec<String> {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.config.keys()).collect();
    let differ = |key: &str, runs: &mut dyn Iterator<Item = &Entry>| -> bool {
        let values: BTreeSet<Option<&String>> = runs.map(|run| run.config.get(key)).collect();
        values.len() > 1
    };
    let differs = |key: &&&String| -> bool {
        let room = key.split('.').next().unwrap_or_default();
        let name = format!("{room}.name");
        if ***key == DATA && same_data || !differ(key, &mut runs.iter()) {
            return false;
        }
        let everywhere = runs.iter().all(|run| run.config.contains_key(**key));
        if everywhere || **key == &name {
            return true;
        }
        // Within the runs of one name.
        let by_name: BTreeSet<Option<&String>> = runs.iter().map(|run| run.config.get(&name)).collect();
        by_name.into_iter().any(|own| differ(key, &mut runs.iter().filter(|run| run.config.get(&name) == own)))
    };
    let mut differing: Vec<String> = keys.iter().filter(differs).map(|key| (*key).clone()).collect();
    // What is compared first, the seed last.
    differing.sort_by_key(|key| (key == SEED, !key.ends_with(".name")));
    differing
}

/// Keys without their rooms, as far as they stay distinct; `NAME.name` is NAME.
fn shortened(keys: &[&String]) -> Vec<String> {
    let short = |key: &str| match key.strip_suffix(".name") {
        Some(room) => room.to_owned(),
        None => key.rsplit('.').next().unwrap_or(key).to_owned(),
    };
    let all: Vec<String> = keys.iter().map(|key| short(key)).collect();
    let once = |name: &String| all.iter().filter(|other| *other == name).count() == 1;
    keys.iter().zip(&all).map(|(key, name)| if once(name) { name.clone() } else { (*key).clone() }).collect()
}

/// What runs are called: the ends of their paths that tell them apart.
fn names(runs: &[PathBuf]) -> Vec<String> {
    let folders: Vec<&Path> = runs
        .iter()
        .map(|run| match run.file_name() {
            Some(file) if file == "result.h5" && run.parent().is_some_and(|folder| folder.file_name().is_some()) => {
                run.parent().unwrap_or(run)
            }
            _ => run,
        })
        .collect();
    let last = |run: &Path| run.file_name().map_or_else(|| run.display().to_string(), |name| name.to_string_lossy().into_owned());
    let short: Vec<String> = folders.iter().map(|run| last(run)).collect();
    let distinct = short.iter().collect::<BTreeSet<_>>().len() == short.len();
    if distinct { short } else { folders.iter().map(|run| run.display().to_string()).collect() }
}
