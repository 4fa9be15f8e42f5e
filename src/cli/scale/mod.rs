//! `mpibayes scale`: how long a run takes on more and more ranks, how many of them are worth it, and how long it took.

mod advice;
pub(in crate::cli) mod row;
mod tables;

use super::drawing;
use super::output::print;
use super::picture::PictureArgs;
use super::resources::{self, memory_of_this_machine};
use super::run::parse_override;
use super::several_runs::SeveralRuns;
use crate::cluster::mpi::{MessageCosts, World, measure_network};
use crate::cluster::simulate::Network;
use crate::config::{ConfigError, Override, Registry, Run, RunFile, sweep};
use crate::job::{BANDWIDTH, CheckReport, Forecast, LATENCY, MESSAGE_OVERHEAD, check, forecast};
use crate::report::series::{SameWork, Series};
use crate::results;
use crate::text;
use anyhow::{Context, bail, ensure};
use row::{MeasuredRow, Row, Scaling};
use serde::Serialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Bytes per second of an ideal network.
const IDEAL_BANDWIDTH: f64 = 1e15;
/// The most ranks in the table if none are given.
const MAX_RANKS: u32 = 4096;

const EXAMPLES: &str = "\
Examples:
  mpibayes scale my.toml
  mpibayes scale my.toml --set agents=256 --measure 60
  mpibayes scale my.toml --ranks 1,8,64 --latency 2 --bandwidth 12      # InfiniBand
  srun -N 2 -n 2 mpibayes scale my.toml                                 # the network between two nodes is measured
  mpibayes scale my.toml --output scale.svg                             # also a picture
  mpibayes scale my.toml --runs runs/my --output scale.svg              # beside the runs of a scaling study
  mpibayes scale my.toml --weak                                         # as many agents as ranks
  mpibayes scale my.toml --json > scale.json";

/// Arguments of `mpibayes scale`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ScaleArgs {
    /// The run file
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Replace a value of the run file, such as --set agents=64. Can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// Numbers of ranks, separated by commas [default: powers of 2 until each agent has a rank, at most 4096]
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ranks: Vec<u32>,
    /// Take as many agents as ranks, so that the work grows with them if each agent has the same work
    #[arg(long)]
    pub weak: bool,
    /// Compare with finished runs of this file, or with all in a folder; the table has their numbers of ranks. Several runs with the same number show how much times vary
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub runs: Vec<PathBuf>,
    /// Draw time, efficiency and memory into this file; without .svg or .png at its end, into both
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Size and formats.
    #[command(flatten)]
    pub picture: PictureArgs,
    /// Threads of each rank [default: those of the measured runs, otherwise 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Seconds for which the run is carried out for each number of ranks; 0 with --runs predicts nothing
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub measure: u64,
    /// Microseconds that a message takes from one rank to another [default: measured under mpirun, otherwise 10]
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive)]
    pub latency: Option<f64>,
    /// Gigabytes that a rank sends and receives per second [default: measured under mpirun, otherwise 1]
    #[arg(long, value_name = "GB/S", value_parser = positive)]
    pub bandwidth: Option<f64>,
    /// Microseconds of computing that a rank spends on each message that it sends or receives [default: measured under mpirun, otherwise 2]
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive)]
    pub message_overhead: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn positive(typed: &str) -> Result<f64, String> {
    let number = typed.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "write a number above 0".into())
}

#[derive(Serialize)]
struct Report<'a> {
    /// Seconds.
    latency: f64,
    /// Bytes per second.
    bandwidth: f64,
    /// Seconds of a rank for each message that it sends or receives.
    message_overhead: f64,
    rows: &'a [Row],
    advice: String,
}

/// Measures and prints the table.
///
/// # Errors
/// If the run cannot be run, or does not fit into the memory of this machine.
pub fn run(args: &ScaleArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let costs = message_costs(args)?;
    if !World::is_primary() {
        return Ok(ExitCode::SUCCESS);
    }
    args.picture.check(args.output.as_deref())?;
    ensure!(args.measure > 0 || !args.runs.is_empty(), "--measure 0 predicts nothing: give --runs, or seconds above 0");
    let whole = CheckedRun::read(args, registry, None)?;
    ensure!(
        !(args.weak && whole.report.dedicated),
        "--weak needs one agent on each rank, and with cluster.dedicated one rank has no agents: add --set cluster.dedicated=false"
    );
    let measured = runs_of_series(args, &whole)?;
    results::listen();
    let counts = counts(args, &whole.report, &measured);
    let threads = usize::from(args.threads.or(measured.threads).unwrap_or(1));
    let is_predicted = args.measure > 0 && fits(&whole, args, registry, &counts, threads)?;
    let mut rows = match is_predicted {
        true => predict(&whole, args, registry, &costs, &counts, threads)?,
        false => counts.iter().map(|&ranks| Row { ranks, ..Row::default() }).collect(),
    };
    for row in &mut rows {
        row.measured = measured.runs.get(&row.ranks).cloned().map(MeasuredRow::new);
    }
    Row::compare(&mut rows, scaling(args));
    let advice = if is_predicted { advise(&whole, args, registry, &rows, threads)? } else { String::new() };
    let MessageCosts { latency, bandwidth, message_overhead } = costs;
    let shown = match args.json {
        true => serde_json::to_string_pretty(&Report { latency, bandwidth, message_overhead, rows: &rows, advice })? + "\n",
        false => {
            let predicted = if is_predicted {
                format!("{}{advice}\n{}", tables::predicted(&rows), note(args, &costs))
            } else {
                String::new()
            };
            [predicted, tables::measured(&rows)].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
        }
    };
    // The table first: it may have taken minutes, and a picture can fail.
    print(&shown)?;
    if let Some(output) = &args.output {
        let notes = drawing::draw_scaling(&rows, scaling(args), &whole.heading(args), &args.picture, output)?;
        notes.iter().for_each(|note| eprintln!("mpibayes: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn scaling(args: &ScaleArgs) -> Scaling {
    if args.weak { Scaling::Weak } else { Scaling::Strong }
}

/// A run that was checked.
#[derive(Clone)]
struct CheckedRun {
    run: Run,
    report: CheckReport,
}

impl CheckedRun {
    /// The run of the file, with this number of agents if it is given.
    fn read(args: &ScaleArgs, registry: &Registry, agents: Option<u32>) -> anyhow::Result<Self> {
        let mut set = args.set.clone();
        set.extend(agents.and_then(|agents| Override::parse(&format!("agents={agents}"))));
        let file = RunFile::read(&args.file, &set)?;
        if sweep::is_sweep(&file) {
            bail!("{}: a sweep has several runs; give the file of one, or fix its keys with --set", args.file.display());
        }
        let (run, report) = check(&file, registry).map_err(ConfigError::Problems)?;
        Ok(Self { run, report })
    }

    /// The run on this number of ranks: with as many agents in a weak series.
    fn on_ranks(&self, args: &ScaleArgs, registry: &Registry, ranks: u32) -> anyhow::Result<Cow<'_, Self>> {
        if !args.weak {
            return Ok(Cow::Borrowed(self));
        }
        let read =
            Self::read(args, registry, Some(ranks)).with_context(|| format!("--weak on {}", text::counted(ranks, "rank")))?;
        Ok(Cow::Owned(read))
    }

    /// Method and file in one line.
    fn heading(&self, args: &ScaleArgs) -> String {
        format!("method {} · model {} · {}", self.report.method, self.report.model, args.file.display())
    }
}

/// The runs that are to be compared.
fn runs_of_series(args: &ScaleArgs, whole: &CheckedRun) -> anyhow::Result<Series> {
    if args.runs.is_empty() {
        return Ok(Series::default());
    }
    let common = SameWork {
        config: whole.run.to_table()?,
        data_digest: whole.report.data_identity().map_or_else(String::new, |(_, digest)| digest.to_owned()),
        is_weak: args.weak,
    };
    let series = Series::of(&SeveralRuns::open(&args.runs)?.results, &common)?;
    if let (Some(asked), Some(measured)) = (args.threads, series.threads) {
        let threads = text::counted(measured, "thread");
        ensure!(
            asked == measured,
            "--threads {asked}: the ranks of these runs have {threads}: leave --threads out, or give {measured}"
        );
    }
    Ok(series)
}

/// Whether all agents together fit into the memory of this machine. If they do not, there is no prediction, which is an error unless there are
/// measured runs.
fn fits(whole: &CheckedRun, args: &ScaleArgs, registry: &Registry, counts: &[u32], threads: usize) -> anyhow::Result<bool> {
    let most = counts.last().copied().unwrap_or(1);
    let report = &whole.on_ranks(args, registry, most)?.report;
    let needed = report.bytes_of_agents(report.agents, threads);
    let fits = needed.zip(memory_of_this_machine()).is_none_or(|(all, machine)| all < machine);
    if !fits {
        let reason = format!("{}: all agents together do not fit into the memory of this machine", args.file.display());
        ensure!(!args.runs.is_empty(), reason);
        eprintln!("mpibayes: {reason}: nothing is predicted");
    }
    Ok(fits)
}

/// A row for each number of ranks.
fn predict(
    whole: &CheckedRun,
    args: &ScaleArgs,
    registry: &Registry,
    &MessageCosts { latency, bandwidth, message_overhead }: &MessageCosts,
    counts: &[u32],
    threads: usize,
) -> anyhow::Result<Vec<Row>> {
    let network = |ranks| Network { ranks, latency, bandwidth, message_overhead };
    let mut rows: Vec<Row> = Vec::new();
    for (place, &ranks) in counts.iter().enumerate() {
        let of = if counts.len() > 1 { format!("{} of {}: ", place + 1, counts.len()) } else { String::new() };
        let here = whole.on_ranks(args, registry, ranks)?;
        let what = format!("{of}{}", text::counted(ranks, "rank"));
        let found = measure(&here.run, registry, network(ranks), threads, args, &what)?;
        let memory = resources::memory(&here.report, ranks, threads).map(|memory| memory.largest);
        rows.push(Row::predicted(ranks, &found, memory));
    }
    Ok(rows)
}

/// How many ranks to ask for.
fn advise(whole: &CheckedRun, args: &ScaleArgs, registry: &Registry, rows: &[Row], threads: usize) -> anyhow::Result<String> {
    let Some(place) = advice::largest_worthwhile(rows) else {
        return Ok(format!("no round was finished on {}: measure longer", text::counted(rows[0].ranks, "rank")));
    };
    if rows.len() == 1 {
        return Ok("one number of ranks says nothing about others".into());
    }
    // What keeps the next larger number from being worth it.
    let ranks = rows.get(place + 1).unwrap_or(&rows[place]).ranks;
    let here = whole.on_ranks(args, registry, ranks)?;
    let report = &here.report;
    let ideal = if place + 1 < rows.len() {
        let network = Network { ranks, latency: 0.0, bandwidth: IDEAL_BANDWIDTH, message_overhead: 0.0 };
        let what = format!("{} on an ideal network", text::counted(ranks, "rank"));
        Some(measure(&here.run, registry, network, threads, args, &what)?)
    } else {
        None
    };
    // In a weak series, more ranks have more agents.
    let most = if args.weak { u32::MAX } else { report.agents + u32::from(report.dedicated) };
    Ok(advice::advice(rows, place, ideal.as_ref(), report.agents, most))
}

/// What messages cost: as given, else as measured between the ranks of this job, else as usual.
fn message_costs(args: &ScaleArgs) -> anyhow::Result<MessageCosts> {
    let measured = match World::is_launched() {
        true => measure_network(&World::start()?).map_err(anyhow::Error::msg)?,
        false => None,
    };
    let usual = measured.unwrap_or(MessageCosts { latency: LATENCY, bandwidth: BANDWIDTH, message_overhead: MESSAGE_OVERHEAD });
    Ok(MessageCosts {
        latency: args.latency.map_or(usual.latency, |given| 1e-6 * given),
        bandwidth: args.bandwidth.map_or(usual.bandwidth, |given| 1e9 * given),
        message_overhead: args.message_overhead.map_or(usual.message_overhead, |given| 1e-6 * given),
    })
}

/// The numbers of ranks: those that are given or measured, else each twice the one before, and in the end one rank for each agent.
fn counts(args: &ScaleArgs, report: &CheckReport, measured: &Series) -> Vec<u32> {
    let mut counts = args.ranks.clone();
    counts.extend(measured.runs.keys());
    if counts.is_empty() {
        let most = (report.agents.saturating_add(u32::from(report.dedicated))).clamp(1, MAX_RANKS);
        counts.extend(std::iter::successors(Some(1_u32), |ranks| ranks.checked_mul(2)).take_while(|ranks| *ranks < most));
        counts.push(most);
    }
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn measure(
    run: &Run,
    registry: &Registry,
    network: Network,
    threads: usize,
    args: &ScaleArgs,
    what: &str,
) -> anyhow::Result<Forecast> {
    eprintln!("mpibayes: {what}, for about {} s", args.measure);
    let found = forecast(run, registry, network, threads, Duration::from_secs(args.measure))?;
    ensure!(!results::asked_to_stop(), "interrupted");
    Ok(found)
}

/// About three digits.
fn short(number: f64) -> String {
    let decimals = (2.0 - number.log10().floor()).clamp(0.0, 6.0);
    let text = format!("{number:.*}", decimals as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn note(args: &ScaleArgs, costs: &MessageCosts) -> String {
    format!(
        "note: times are extrapolated from {} s of the run for each row on this machine, with a latency of {} µs and {} GB/s between \
         ranks, and {} µs of a rank for each message. Reading data, saving, and what follows the last round come on top. Other work on this \
         machine makes them longer. Messages are the most that a rank sends or receives for one request of the server\n",
        args.measure,
        short(1e6 * costs.latency),
        short(1e-9 * costs.bandwidth),
        short(1e6 * costs.message_overhead)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_shown_with_three_digits() {
        assert_eq!([106.306, 12.5, 2.0, 0.0972, 0.000_31, 1200.0].map(short), ["106", "12.5", "2", "0.0972", "0.00031", "1200"]);
    }
}
