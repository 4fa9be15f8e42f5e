//! A comparison of runs: final metrics, the settings in which the runs differ, and groups of runs that differ only in the seed.

pub(super) mod settings;

use self::settings::{
    Config, DATA, METHOD, MODEL, SEED, differing, flatten, keys_at_default, remove_keys_without_effect, shortened,
};
use super::error::{ReportError, Result};
use super::judgment::JudgmentOutcome;
use super::loo::{self, PredictiveScore, predictive_scores};
use super::run::{RunResults, data_label};
use super::summary::{Summary, WORST_CLASS};
use crate::job::pointwise::LOG_LIKELIHOOD;
use crate::metrics::seeds::{MIN_SEEDS, OverSeeds, best};
use crate::metrics::{better_direction, meaning};
use crate::results::{SECONDS, XAxis};
use crate::text;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Settings that decide how much work a round is.
const SETTINGS_OF_A_ROUND: [&str; 7] =
    [METHOD, "method.steps", "method.local_steps", "method.iterations", "method.period", "method.trajectory", "method.batch"];
/// Longer labels of a legend are replaced by the name of the run.
const MAX_LABEL_LENGTH: usize = 60;

/// A comparison of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The keys of the configuration in which the runs differ.
    pub differs: Vec<String>,
    /// The metrics of all runs.
    pub metrics: Vec<String>,
    /// The runs, in the order in which they were given.
    pub runs: Vec<Entry>,
    /// The runs again, those that differ only in the seed together.
    pub groups: Vec<Group>,
    /// For each metric, the labels of the best groups: those that the seeds tell from others, but not from each other.
    pub best: BTreeMap<String, Vec<String>>,
    /// How well they predict rows, the best one first, if they have kept the log-likelihoods of the same rows.
    pub predictive_scores: Vec<PredictiveScore>,
    /// Whether some runs have kept log-likelihoods that are of no use here.
    #[serde(skip)]
    has_unused_log_likelihoods: bool,
    /// Whether all runs use the same data.
    pub same_data: bool,
}

/// Runs that differ only in the seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Their settings in a few words, or the name of a run where that is too long.
    pub label: String,
    /// The names of the runs.
    pub runs: Vec<String>,
    /// The places of the runs in the comparison.
    #[serde(skip)]
    pub members: Vec<usize>,
    /// Those of the runs that count: the finished ones, or all if none is.
    #[serde(skip)]
    pub(super) counted: Vec<usize>,
    /// Final metrics over the seeds.
    pub metrics: BTreeMap<String, OverSeeds>,
}

/// A run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Its name: its folder, or its path if that is not unique.
    pub run: String,
    /// Its result file.
    pub file: PathBuf,
    /// The method.
    pub method: String,
    /// Whether it is finished.
    pub finished: bool,
    /// Its values of the keys in which the runs differ; `None` if its configuration does not have the key.
    pub settings: BTreeMap<String, Option<String>>,
    /// Its metrics, of all draws where these predict, by name; missing values are NaN (`null` in JSON).
    #[serde(serialize_with = "text::as_object")]
    pub metrics: Vec<(String, f64)>,
    /// Whether its draws can be used, if it is finished and has draws of a posterior.
    pub judgment: Option<JudgmentOutcome>,
    /// Its last round.
    pub rounds: u64,
    /// Its seconds, without evaluations; NaN if unknown.
    pub seconds: f64,
    /// Bytes that agents have received and sent, without evaluations.
    pub bytes: Option<u64>,
    /// The digest of its data.
    #[serde(skip)]
    digest: String,
    /// Its configuration, by dotted key.
    #[serde(skip)]
    config: Config,
    /// The keys of its method that have the values which the method gives them where they are left out.
    #[serde(skip)]
    at_default: BTreeSet<String>,
}

impl Comparison {
    /// Compares runs, each with the path that it was named by.
    ///
    /// # Errors
    /// When a result file cannot be read.
    pub fn of(paths: &[PathBuf], results: &[RunResults]) -> Result<Self> {
        let names = names(paths);
        let named = || names.iter().cloned().zip(results);
        let mut runs = named().map(|(name, run)| Entry::read(name, run)).collect::<Result<Vec<_>>>()?;
        let mut metrics: Vec<String> = Vec::new();
        for (name, _) in runs.iter().flat_map(|run| &run.metrics) {
            if !metrics.contains(name) {
                metrics.push(name.clone());
            }
        }
        remove_keys_without_effect(&mut runs.iter_mut().map(|run| &mut run.config).collect::<Vec<_>>());
        let same_data = runs.windows(2).all(|pair| pair[0].digest == pair[1].digest);
        let mut differs = differing(&runs.iter().map(|run| &run.config).collect::<Vec<_>>(), same_data);
        // What methods decide, each in its own way, does not tell more than their names.
        let is_default = |key: &String, run: &Entry| !run.config.contains_key(key) || run.at_default.contains(key);
        differs.retain(|key| key == METHOD || !key.starts_with("method.") || !runs.iter().all(|run| is_default(key, run)));
        for run in &mut runs {
            run.settings = differs.iter().map(|key| (key.clone(), run.config.get(key).cloned())).collect();
        }
        let groups = groups(&runs, &metrics, &differs, same_data);
        let best = metrics.iter().filter_map(|name| {
            let over_seeds: Vec<OverSeeds> = groups.iter().map(|group| group.metrics[name]).collect();
            let best = best(&over_seeds, better_direction(name)?);
            (!best.is_empty()).then(|| (name.clone(), best.into_iter().map(|place| groups[place].label.clone()).collect()))
        });
        let best = best.collect();
        let with_scores = results.iter().filter(|run| run.file.has(LOG_LIKELIHOOD)).count();
        // Runs that differ only in the seed differ by chance, which the standard errors of differences between rows do not include.
        let firsts = groups.iter().filter_map(|group| group.members.first()).filter(|_| with_scores == runs.len());
        let scores = firsts.map(|&first| Ok(loo::row_scores(&results[first].file)?.map(|scores| (names[first].clone(), scores))));
        let predictive_scores = predictive_scores(scores.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect());
        let has_unused_log_likelihoods = with_scores > 0 && groups.len() > 1 && predictive_scores.is_empty();
        Ok(Self { differs, metrics, runs, groups, best, predictive_scores, has_unused_log_likelihoods, same_data })
    }

    /// Checks that at least one run has a column of this name.
    ///
    /// # Errors
    /// When no run has it, or a file cannot be read.
    pub fn check_metric(&self, runs: &[RunResults], metric: &str) -> Result<()> {
        let mut columns = BTreeSet::new();
        for run in runs {
            columns.extend(run.file.curves()?);
        }
        if columns.contains(metric) {
            return Ok(());
        }
        if metric == WORST_CLASS && self.metrics.iter().any(|name| name == metric) {
            return Err(ReportError::Missing(format!(
                "{metric} is known at the end of a run only: the table and --csv have it, but there is no curve of it"
            )));
        }
        if metric.contains(',') {
            return Err(ReportError::Missing(format!(
                "{metric}: a figure has one metric; the table has all, without --output too"
            )));
        }
        let columns: Vec<String> = columns.into_iter().collect();
        let columns = if columns.is_empty() { "none".into() } else { columns.join(", ") };
        Err(ReportError::Missing(format!("no run has a metric {metric:?}; the runs have {columns}")))
    }

    /// Rounds if a round is the same amount of work in all runs, otherwise seconds, if all runs have recorded them.
    pub fn default_axis(&self) -> XAxis {
        let is_comparable = !self.differs.iter().any(|key| SETTINGS_OF_A_ROUND.contains(&key.as_str()));
        if is_comparable || self.runs.iter().any(|run| run.seconds.is_nan()) { XAxis::Round } else { XAxis::Seconds }
    }

    /// What all runs have in common, in one line.
    pub fn heading(&self) -> String {
        let common = |key: &str, noun: &str| {
            let first = self.runs.first()?.config.get(key)?;
            self.runs.iter().all(|run| run.config.get(key) == Some(first)).then(|| format!("{noun} {first}"))
        };
        let data = self.runs.first().filter(|_| self.same_data).and_then(|run| run.config.get(DATA)).map(|file| data_label(file));
        let facts = [common(METHOD, "method"), common(MODEL, "model"), data, common(SEED, "seed")];
        let count = format!("{} runs", self.runs.len());
        facts.into_iter().flatten().chain([count]).collect::<Vec<_>>().join(" · ")
    }

    /// The table as CSV, a row for each run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn csv(&self) -> csv::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let fixed = ["judgment", "rounds", "seconds", "bytes", "finished"].map(str::to_owned);
        let heading = ["run".to_owned(), "method".to_owned()];
        writer.write_record(heading.iter().chain(&self.differs).chain(&self.metrics).chain(&fixed))?;
        for run in &self.runs {
            let number = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
            let settings = self.differs.iter().map(|key| run.config.get(key).cloned().unwrap_or_default());
            let metrics = self.metrics.iter().map(|name| number(run.metric(name)));
            let bytes = run.bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
            let judgment = run.judgment.map_or("", JudgmentOutcome::name).to_owned();
            let fixed = [judgment, run.rounds.to_string(), number(run.seconds), bytes, run.finished.to_string()];
            let names = [run.run.clone(), run.method.clone()];
            writer.write_record(names.into_iter().chain(settings).chain(metrics).chain(fixed))?;
        }
        Ok(String::from_utf8_lossy(&writer.into_inner().map_err(|error| error.into_error())?).into_owned())
    }
}

impl Comparison {
    /// The table for people: a row for each group with mean and standard deviation over seeds, or for each run.
    pub fn table(&self, each_run: bool) -> String {
        let has_seeds = self.groups.iter().any(|group| group.members.len() > 1);
        let text = if has_seeds && !each_run { self.table_of_groups() } else { self.table_of_runs() };
        let mut text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        let is_ranked = self.runs.len() > 1 && self.metrics.iter().any(|name| better_direction(name).is_some());
        if is_ranked && !has_seeds {
            text.push_str("\n  A difference can be chance: run several seeds, such as seed = [1, 2, 3] in a sweep.\n");
        }
        text.extend(self.metrics.iter().filter_map(|name| Some(format!("  {name}: {}\n", meaning(name)?))));
        if self.has_judgments() {
            text.push_str("  judgment: the first line of `mpibayes summary` says why, and what to do\n");
        }
        text.push_str(&loo::table(&self.predictive_scores));
        if has_seeds && !self.predictive_scores.is_empty() {
            text.push_str("  Of runs that differ only in the seed, the first is compared.\n");
        }
        if self.has_unused_log_likelihoods {
            text.push_str(
                "\n  Log-likelihoods are not compared: all runs must keep them for the same rows (evaluate.pointwise, \
                 evaluate.pointwise_rows).\n",
            );
        }
        if !self.same_data {
            text.push_str("\n  These runs use different data: their metrics may not be comparable.\n");
        }
        text
    }

    fn has_judgments(&self) -> bool {
        self.runs.iter().any(|run| run.judgment.is_some())
    }

    /// The worst judgment of the runs of a group, with how many have it unless all do: `biased (2 of 3)`.
    fn judgment_of(&self, group: &Group) -> String {
        let judgments = || group.members.iter().map(|&member| self.runs[member].judgment);
        let Some(worst) = judgments().flatten().min() else { return "-".into() };
        let count = judgments().filter(|judgment| *judgment == Some(worst)).count();
        let of_all = if count < group.members.len() { format!(" ({count} of {})", group.members.len()) } else { String::new() };
        format!("{}{of_all}", worst.name())
    }

    fn table_of_runs(&self) -> String {
        let all = |cell: &dyn Fn(&Entry) -> String| -> Vec<String> { self.runs.iter().map(cell).collect() };
        let mut columns = vec![("run".to_owned(), all(&|run| run.run.clone()))];
        // The last columns show the rounds of each run already.
        let keys: Vec<&String> = self.differs.iter().filter(|key| *key != "method.rounds").collect();
        for (key, short) in keys.iter().zip(shortened(&keys)) {
            columns.push((short, all(&|run| run.config.get(*key).cloned().unwrap_or_else(|| "-".into()))));
        }
        for name in &self.metrics {
            let values: Vec<f64> = self.runs.iter().map(|run| run.metric(name)).collect();
            columns.push((name.clone(), text::values(&values)));
        }
        if self.has_judgments() {
            columns.push(("judgment".into(), all(&|run| run.judgment.map_or("-", JudgmentOutcome::name).to_owned())));
        }
        columns.push(("rounds".into(), all(&|run| text::count(run.rounds))));
        columns.push(("time".into(), all(&|run| if run.seconds.is_nan() { "-".into() } else { text::seconds(run.seconds) })));
        columns.push(("bytes".into(), all(&|run| run.bytes.map_or("-".into(), text::bytes))));
        text::table(&columns)
    }

    fn table_of_groups(&self) -> String {
        let all = |cell: &dyn Fn(&Group) -> String| -> Vec<String> { self.groups.iter().map(cell).collect() };
        let mut columns = vec![("settings".to_owned(), all(&|group| group.label.clone()))];
        let seeds = |group: &Group| match group.members.len() - group.counted.len() {
            0 => group.members.len().to_string(),
            others => format!("{}, {others} not finished", group.counted.len()),
        };
        columns.push(("seeds".into(), all(&seeds)));
        for name in &self.metrics {
            let best = self.best.get(name);
            let over_seeds = || self.groups.iter().map(|group| group.metrics[name]);
            // Formatted together, so that means and standard deviations have the same decimals.
            let values: Vec<f64> = over_seeds().flat_map(|value| [value.mean, value.sd]).collect();
            let values = text::values(&values);
            let cells = self.groups.iter().zip(values.chunks(2)).map(|(group, value)| {
                let mark = match best {
                    Some(best) if best.contains(&group.label) => " *",
                    Some(_) => "  ",
                    None => "",
                };
                match value {
                    [mean, sd] if sd != "-" => format!("{mean} ± {sd}{mark}"),
                    value => format!("{}{mark}", value[0]),
                }
            });
            let cells: Vec<String> = cells.collect();
            let heading = if best.is_some() { format!("{name}  ") } else { name.clone() };
            columns.push((heading, cells));
        }
        if self.has_judgments() {
            columns.push(("judgment".into(), all(&|group| self.judgment_of(group))));
        }
        let mean = |group: &Group, value: &dyn Fn(&Entry) -> f64| {
            group.counted.iter().map(|&member| value(&self.runs[member])).sum::<f64>() / group.counted.len() as f64
        };
        columns.push((
            "time".into(),
            all(&|group| {
                let seconds = mean(group, &|run| run.seconds);
                if seconds.is_nan() { "-".into() } else { text::seconds(seconds) }
            }),
        ));
        let bytes = |group: &Group| mean(group, &|run| run.bytes.map_or(f64::NAN, |bytes| bytes as f64));
        columns.push((
            "bytes".into(),
            all(&|group| if bytes(group).is_nan() { "-".into() } else { text::bytes(bytes(group) as u64) }),
        ));
        let mut text = text::table(&columns);
        text.push_str("\n  mean ± standard deviation over seeds\n");
        let unmarked = self.metrics.iter().filter(|name| better_direction(name).is_some() && !self.best.contains_key(*name));
        let unmarked: Vec<&str> = unmarked.map(String::as_str).collect();
        if self.groups.len() > 1 && !unmarked.is_empty() {
            let have_enough = self.groups.iter().all(|group| group.counted.len() >= MIN_SEEDS);
            text.push_str(&match have_enough {
                false => format!("  no marks: settings are only compared if each has {MIN_SEEDS} seeds or more\n"),
                true => format!("  no mark for {}: so few seeds do not tell the settings apart\n", unmarked.join(", ")),
            });
        }
        if !self.best.is_empty() {
            text.push_str("  * the best, with those that the seeds cannot tell from it (Welch's t-test at 5 % over all pairs)\n");
        }
        text
    }
}

/// The runs that differ only in the seed, by groups.
fn groups(runs: &[Entry], metrics: &[String], differs: &[String], same_data: bool) -> Vec<Group> {
    let mut groups: Vec<(Config, Vec<usize>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let mut config = run.config.clone();
        let seed = config.remove(SEED);
        if same_data {
            config.remove(DATA);
        }
        // Two runs with the same seed are not two samples.
        let fits = |group: &&mut (Config, Vec<usize>)| {
            let is_same_data = runs[group.1[0]].digest == run.digest;
            group.0 == config && is_same_data && group.1.iter().all(|&other| runs[other].config.get(SEED) != seed.as_ref())
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.1.push(place),
            None => groups.push((config, vec![place])),
        }
    }
    let keys: Vec<&String> = differs.iter().filter(|key| *key != SEED).collect();
    let short = shortened(&keys);
    let label_of = |member: usize| -> String {
        let value = |key: &String| runs[member].settings.get(key).and_then(Option::as_deref);
        let parts = keys.iter().zip(&short).filter_map(|(key, short)| match key.as_str() {
            METHOD | MODEL => value(key).map(str::to_owned),
            _ => value(key).map(|value| format!("{short} {value}")),
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    let labels: Vec<String> = groups.iter().map(|group| label_of(group.1[0])).collect();
    let distinct = labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
    let is_usable = |label: &String| distinct && !label.is_empty() && label.chars().count() <= MAX_LABEL_LENGTH;
    let named = groups.into_iter().zip(labels).map(|((_, members), label)| {
        let names: Vec<String> = members.iter().map(|&member| runs[member].run.clone()).collect();
        let label = match names.as_slice() {
            [only] if !is_usable(&label) => only.clone(),
            [first, ..] if !is_usable(&label) => format!("{first} and others"),
            _ => label,
        };
        let finished: Vec<usize> = members.iter().copied().filter(|&member| runs[member].finished).collect();
        let counted = if finished.is_empty() { members.clone() } else { finished };
        let over_seeds = |name: &String| OverSeeds::of(counted.iter().map(|&member| runs[member].metric(name)));
        let metrics = metrics.iter().map(|name| (name.clone(), over_seeds(name))).collect();
        Group { label, runs: names, members, counted, metrics }
    });
    named.collect()
}

impl Entry {
    /// A final metric; NaN if the run does not have it.
    fn metric(&self, name: &str) -> f64 {
        self.metrics.iter().find(|metric| metric.0 == name).map_or(f64::NAN, |metric| metric.1)
    }

    fn read(name: String, run: &RunResults) -> Result<Self> {
        let summary = Summary::of(run, false)?;
        let last = |name: &str| {
            let rounds = summary.history.last().into_iter().chain(summary.evaluations.last());
            rounds.flat_map(|round| &round.values).find(|value| value.0 == name).map(|value| value.1)
        };
        let steps = summary.history.last().into_iter().chain(summary.evaluations.last()).map(|round| round.step);
        let mut config = BTreeMap::new();
        let parsed = run.file.info().config.parse::<toml::Table>();
        let parsed =
            parsed.map_err(|error| ReportError::missing(&run.path, format_args!("cannot read the configuration: {error}")))?;
        let at_default = keys_at_default(&parsed);
        flatten("", &toml::Value::Table(parsed), &mut config);
        config.entry(METHOD.into()).or_insert_with(|| summary.method.clone());
        config.entry(MODEL.into()).or_insert_with(|| summary.model.clone());
        config.entry(SEED.into()).or_insert_with(|| summary.seed.to_string());
        let metrics = summary.best_metrics();
        Ok(Self {
            run: name,
            file: summary.file,
            method: summary.method,
            finished: summary.finished,
            settings: BTreeMap::new(),
            judgment: summary.judgment.map(|judgment| judgment.outcome),
            // A run in progress may have neither history nor evaluations yet.
            rounds: steps.max().unwrap_or(summary.rounds_done),
            seconds: last(SECONDS).unwrap_or(f64::NAN),
            bytes: summary.agent_bytes.map(|agents| agents.bytes.total()),
            metrics: metrics.into_iter().filter(|metric| metric.0 != SECONDS).collect(),
            digest: summary.data_digest,
            config,
            at_default,
        })
    }
}

/// The names of runs: their folders, or their paths if two folders have the same name.
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
