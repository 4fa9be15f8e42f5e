//! One run on more and more ranks: how long it took, and what the ranks did.

use super::comparison::settings::different_work;
use super::error::{ReportError, Result};
use super::operation::{Operation, Rank};
use super::run::RunResults;
use crate::metrics::convergence::quantile;
use crate::results::EventKind;
use crate::text;
use serde::Serialize;
use std::collections::BTreeMap;

/// The runs of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Threads of each rank; none without runs.
    pub threads: Option<u16>,
    /// The runs by their numbers of ranks.
    pub runs: BTreeMap<u32, RunsOnRanks>,
}

/// What the runs on one number of ranks have shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunsOnRanks {
    /// Seconds of each run without saving, from the shortest to the longest.
    pub seconds: Vec<f64>,
    /// What the ranks did, as shares of their time, on average.
    pub shares: Shares,
    /// Bytes of the rank with the most memory.
    pub memory: u64,
}

/// Shares of the time of ranks, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Shares {
    /// Tasks, and on rank 0 the server.
    pub computing: f64,
    /// Messages.
    pub messages: f64,
    /// States, draws and results.
    pub saving: f64,
    /// Waiting for others.
    pub idle: f64,
}

impl RunsOnRanks {
    /// The median of the times; NaN if there are none.
    pub fn median(&self) -> f64 {
        quantile(&self.seconds, 0.5)
    }

    /// The shortest and the longest time.
    pub fn range(&self) -> (f64, f64) {
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (end(self.seconds.first()), end(self.seconds.last()))
    }
}

/// The work that all runs of a series do.
#[derive(Clone, Debug)]
pub struct SameWork {
    /// The resolved configuration.
    pub config: toml::Table,
    /// The digest of the dataset; empty if there is none.
    pub data_digest: String,
    /// Whether there are as many agents as ranks; otherwise the agents are those of the configuration.
    pub is_weak: bool,
}

impl Series {
    /// The runs, which must all do the same work as this one.
    ///
    /// # Errors
    /// If a run is not finished, was carried out by several jobs, has other settings, other data or other numbers of threads, or does not tell what
    /// its ranks did.
    pub fn of(runs: &[RunResults], common: &SameWork) -> Result<Self> {
        let mut series: BTreeMap<u32, Vec<Vec<Rank>>> = BTreeMap::new();
        let mut threads = None;
        for run in runs {
            let ranks = ranks_of(run, common)?;
            let count = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
            // The table holds counts as floating-point numbers; the conversion saturates.
            for of_rank in ranks.iter().map(|rank| rank.value("threads") as u16) {
                if *threads.get_or_insert(of_rank) != of_rank {
                    let reason = format!(
                        "its ranks have {}, those of the other runs do not: set cluster.threads for all runs",
                        text::counted(of_rank, "thread")
                    );
                    return Err(ReportError::OutsideSeries { run: run.path.clone(), reason });
                }
            }
            series.entry(count).or_default().push(ranks);
        }
        let runs = series.into_iter().map(|(ranks, runs)| (ranks, summarize(&runs))).collect();
        Ok(Self { threads, runs })
    }
}

/// The ranks of a run.
fn ranks_of(run: &RunResults, common: &SameWork) -> Result<Vec<Rank>> {
    let refused = |reason: String| Err(ReportError::OutsideSeries { run: run.path.clone(), reason });
    let info = run.file.info();
    if !run.is_finished() {
        return refused("it is not finished".into());
    }
    let Operation { ranks, events, .. } = Operation::of(run)?;
    if events.iter().any(|event| event.event == EventKind::Resumed) {
        return refused(
            "it was stopped and resumed, and its times are those of the last job only: carry it out in one job".into(),
        );
    }
    if ranks.is_empty() {
        return refused("it does not tell what its ranks did".into());
    }
    if info.data_digest != common.data_digest {
        return refused("it has other data than the run file".into());
    }
    let mut config: toml::Table = info.config.parse().unwrap_or_default();
    if common.is_weak {
        let agents = config.remove("agents").and_then(|agents| agents.as_integer());
        if agents != i64::try_from(ranks.len()).ok() {
            return refused(format!("it does not have as many agents as ranks ({})", ranks.len()));
        }
    }
    match different_work(&config, &common.config) {
        Some((key, [here, there])) => refused(format!("its {key} is {here}, that of the run file is {there}")),
        None => Ok(ranks),
    }
}

fn summarize(runs: &[Vec<Rank>]) -> RunsOnRanks {
    let mut seconds: Vec<f64> = runs.iter().map(|ranks| ranks[0].value("seconds") - ranks[0].value("saving")).collect();
    seconds.sort_by(f64::total_cmp);
    let all = || runs.iter().flatten();
    let sum = |name: &str| all().map(|rank| rank.value(name)).sum::<f64>();
    let share = |name: &str| sum(name) / sum("seconds");
    let shares =
        Shares { computing: share("computing"), messages: share("messages"), saving: share("saving"), idle: share("idle") };
    // The table holds bytes as floating-point numbers; the conversion saturates.
    let memory = all().map(|rank| rank.value("peak_memory")).fold(0.0, f64::max) as u64;
    RunsOnRanks { seconds, shares, memory }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(seconds: f64, saving: f64, peak_memory: f64) -> Rank {
        let computing = ("computing", 0.5 * (seconds - saving));
        let idle = ("idle", 0.5 * (seconds - saving));
        let values = [("seconds", seconds), ("saving", saving), ("messages", 0.0), computing, idle, ("peak_memory", peak_memory)];
        Rank { host: "a".into(), values: values.map(|(name, value)| (name.to_owned(), value)).to_vec() }
    }

    #[test]
    fn times_are_those_of_rank_0_without_saving() {
        let found = summarize(&[vec![rank(12.0, 2.0, 100.0), rank(12.0, 0.0, 300.0)], vec![rank(8.0, 0.0, 50.0)]]);
        assert_eq!((found.seconds.as_slice(), found.median(), found.range()), ([8.0, 10.0].as_slice(), 9.0, (8.0, 10.0)));
        assert_eq!(found.memory, 300);
        let Shares { computing, messages, saving, idle } = found.shares;
        assert_eq!((computing, messages, saving, idle), (15.0 / 32.0, 0.0, 2.0 / 32.0, 15.0 / 32.0));
        let three = RunsOnRanks { seconds: vec![1.0, 2.0, 9.0], ..found };
        assert_eq!(three.median(), 2.0);
        assert!(RunsOnRanks::default().median().is_nan());
    }
}
