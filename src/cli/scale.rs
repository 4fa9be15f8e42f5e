//! `mpibayes scale`: how long a run takes on more and more ranks, and how many of them are worth it.

use super::output::print;
use super::resources::{self, memory_of_this_machine};
use super::run::parse_override;
use crate::cluster::mpi::{MessageCosts, World, measure_network};
use crate::cluster::simulate::{Load, Network};
use crate::config::{ConfigError, Override, Registry, Run, RunFile, sweep};
use crate::job::{BANDWIDTH, CheckReport, Forecast, LATENCY, MESSAGE, check, forecast};
use crate::results;
use crate::text;
use anyhow::{bail, ensure};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Ranks are worth it with at least this efficiency.
const MIN_EFFICIENCY: f64 = 0.5;
/// The network is what limits a run if it takes so many times as long as with an ideal one.
const LIMITED_BY_NETWORK: f64 = 1.3;
/// Bytes per second of an ideal network.
const IDEAL_BANDWIDTH: f64 = 1e15;
/// The most ranks in a table that nobody has asked for.
const MAX_RANKS: u32 = 4096;

const EXAMPLES: &str = "\
Examples:
  mpibayes scale my.toml
  mpibayes scale my.toml --set agents=256 --measure 60
  mpibayes scale my.toml --ranks 1,8,64 --latency 2 --bandwidth 12      # InfiniBand
  srun -N 2 -n 2 mpibayes scale my.toml                                 # the network between two nodes is measured
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
    /// Threads of each rank
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// Seconds for which the run is carried out for each number of ranks
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub measure: u64,
    /// Microseconds that a message takes from one rank to another [default: measured under mpirun, otherwise 10]
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive)]
    pub latency: Option<f64>,
    /// Gigabytes that a rank sends and receives per second [default: measured under mpirun, otherwise 1]
    #[arg(long, value_name = "GB/S", value_parser = positive)]
    pub bandwidth: Option<f64>,
    /// Microseconds that a rank takes to send or receive a message besides that [default: measured under mpirun, otherwise 2]
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive)]
    pub message: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn positive(typed: &str) -> Result<f64, String> {
    let number = typed.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "write a number above 0".into())
}

/// A number of ranks, and what it brings.
#[derive(Clone, Debug, Serialize)]
struct Row {
    ranks: u32,
    /// Seconds of the whole run; none if not a round was finished while it was measured.
    seconds: Option<f64>,
    /// How many times as fast as the first row, and that divided by how many times as many ranks.
    speed_up: Option<f64>,
    efficiency: Option<f64>,
    /// How many agents work at the same time, on average.
    busy_agents: f64,
    /// The most messages, and bytes, that a rank sends or receives for one request.
    messages: u64,
    bytes: u64,
    /// Bytes of the rank that needs the most memory, if that is known.
    memory: Option<u64>,
}

#[derive(Serialize)]
struct Report<'a> {
    /// Seconds, bytes per second, seconds.
    latency: f64,
    bandwidth: f64,
    message: f64,
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
    let file = RunFile::read(&args.file, &args.set)?;
    if sweep::is_sweep(&file) {
        bail!("{}: a sweep has several runs; give the file of one, or fix its keys with --set", args.file.display());
    }
    let (run, report) = check(&file, registry).map_err(ConfigError::Problems)?;
    let fits = report
        .bytes_of_agents(report.agents, usize::from(args.threads))
        .zip(memory_of_this_machine())
        .is_none_or(|(all, machine)| all < machine);
    ensure!(fits, "{}: all agents together do not fit into the memory of this machine", args.file.display());
    results::listen();
    let counts = counts(args, &report);
    let MessageCosts { latency, bandwidth, message } = costs;
    let network = |ranks| Network { ranks, latency, bandwidth, message };
    let mut rows: Vec<Row> = Vec::new();
    for (place, &ranks) in counts.iter().enumerate() {
        let of = if counts.len() > 1 { format!("{} of {}: ", place + 1, counts.len()) } else { String::new() };
        let found = measure(&run, registry, network(ranks), args, &format!("{of}{}", text::counted(ranks, "rank")))?;
        let first = rows.first().unwrap_or(&Row::first(ranks, &found)).clone();
        rows.push(Row::new(
            ranks,
            &found,
            &first,
            resources::memory(&report, ranks, usize::from(args.threads)).map(|memory| memory.largest),
        ));
    }
    let advice = match worth(&rows) {
        None => {
            format!(
                "{} finished no round, so that there is nothing to compare with: measure longer",
                text::counted(counts[0], "rank")
            )
        }
        Some(_) if rows.len() == 1 => "one number of ranks says nothing about others".into(),
        Some(place) => {
            let ideal = match rows.get(place + 1) {
                Some(next) => {
                    let ideal = Network { ranks: next.ranks, latency: 0.0, bandwidth: IDEAL_BANDWIDTH, message: 0.0 };
                    let what = format!("{} on an ideal network", text::counted(next.ranks, "rank"));
                    Some(measure(&run, registry, ideal, args, &what)?)
                }
                None => None,
            };
            advice(&rows, place, ideal.as_ref(), report.agents, report.agents + u32::from(report.dedicated))
        }
    };
    let shown = match args.json {
        true => serde_json::to_string_pretty(&Report { latency, bandwidth, message, rows: &rows, advice })? + "\n",
        false => format!("{}{advice}\n{}", table(&rows), note(args, &costs)),
    };
    print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

/// What messages cost: as given, else as measured between the ranks of this job, else as usual.
fn message_costs(args: &ScaleArgs) -> anyhow::Result<MessageCosts> {
    let measured = match World::is_launched() {
        true => measure_network(&World::start()?).map_err(anyhow::Error::msg)?,
        false => None,
    };
    let usual = measured.unwrap_or(MessageCosts { latency: LATENCY, bandwidth: BANDWIDTH, message: MESSAGE });
    Ok(MessageCosts {
        latency: args.latency.map_or(usual.latency, |given| 1e-6 * given),
        bandwidth: args.bandwidth.map_or(usual.bandwidth, |given| 1e9 * given),
        message: args.message.map_or(usual.message, |given| 1e-6 * given),
    })
}

/// The numbers of ranks: each twice the one before, and in the end one rank for each agent.
fn counts(args: &ScaleArgs, report: &CheckReport) -> Vec<u32> {
    let mut counts = args.ranks.clone();
    if counts.is_empty() {
        let most = (report.agents.saturating_add(u32::from(report.dedicated))).clamp(1, MAX_RANKS);
        // A rank that hosts no agent leaves none for them if there is only one.
        let least = if report.dedicated { 2.min(most) } else { 1 };
        counts.extend(std::iter::successors(Some(least), |ranks| ranks.checked_mul(2)).take_while(|ranks| *ranks < most));
        counts.push(most);
    }
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn measure(run: &Run, registry: &Registry, network: Network, args: &ScaleArgs, what: &str) -> anyhow::Result<Forecast> {
    eprintln!("mpibayes: {what}, for about {} s", args.measure);
    let found = forecast(run, registry, network, usize::from(args.threads), Duration::from_secs(args.measure))?;
    ensure!(!results::asked_to_stop(), "interrupted");
    Ok(found)
}

impl Row {
    /// What others are compared with if nothing was measured before.
    fn first(ranks: u32, found: &Forecast) -> Self {
        let (seconds, busy_agents) = (found.seconds, found.busy_agents);
        let (messages, bytes) = Self::busiest(found.load);
        Self { ranks, seconds, speed_up: Some(1.0), efficiency: Some(1.0), busy_agents, messages, bytes, memory: None }
    }

    fn new(ranks: u32, found: &Forecast, first: &Self, memory: Option<u64>) -> Self {
        let speed_up = first.seconds.zip(found.seconds).map(|(first, now)| first / now);
        let efficiency = speed_up.map(|speed_up| speed_up * f64::from(first.ranks) / f64::from(ranks));
        let (messages, bytes) = Self::busiest(found.load);
        Self { ranks, seconds: found.seconds, speed_up, efficiency, busy_agents: found.busy_agents, messages, bytes, memory }
    }

    /// The most messages and bytes in either direction.
    fn busiest(Load { sent, received }: Load) -> (u64, u64) {
        (sent.messages.max(received.messages), sent.bytes.max(received.bytes))
    }
}

/// The place of the largest number of ranks that are worth it.
fn worth(rows: &[Row]) -> Option<usize> {
    rows.iter().rposition(|row| row.efficiency.is_some_and(|efficiency| efficiency >= MIN_EFFICIENCY))
}

/// How many ranks to ask for, and what limits more of them. `ideal` is for the next number of ranks with an ideal network; more than `most` ranks
/// have no agents.
fn advice(rows: &[Row], place: usize, ideal: Option<&Forecast>, agents: u32, most: u32) -> String {
    let row = &rows[place];
    let time = row.seconds.map_or_else(String::new, |seconds| format!(" ({})", text::seconds(seconds)));
    let ask = format!("ask for {}{time}", text::counted(row.ranks, "rank"));
    let Some(next) = rows.get(place + 1) else {
        return match row.ranks >= most {
            true => format!("{ask}: each agent has one. More agents could use more"),
            false => format!("{ask}, or for more: these are all used well"),
        };
    };
    let (Some(efficiency), Some(now), Some(ideal)) = (next.efficiency, next.seconds, ideal) else {
        return format!("{ask}: {} finished no round. Measure longer", text::count(next.ranks));
    };
    let loss = format!("the efficiency of {} is {}", text::count(next.ranks), percent(efficiency));
    let reason = match ideal.seconds {
        Some(ideal) if now > LIMITED_BY_NETWORK * ideal => {
            format!("The network limits it: with an ideal one they would take {}", text::seconds(ideal))
        }
        Some(_) => format!(
            "A faster network would help little: even with an ideal one, on average {:.1} of {} work at the same time",
            ideal.busy_agents,
            text::counted(agents, "agent")
        ),
        None => "What limits it could not be measured".into(),
    };
    format!("{ask}: {loss}. {reason}")
}

/// At most three decimals.
fn short(number: f64) -> String {
    format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn table(rows: &[Row]) -> String {
    let column = |name: &str, cell: &dyn Fn(&Row) -> Option<String>| {
        (name.to_owned(), rows.iter().map(|row| cell(row).unwrap_or_else(|| "-".into())).collect())
    };
    text::table(&[
        column("ranks", &|row| Some(text::count(row.ranks))),
        column("time of the run", &|row| row.seconds.map(text::seconds)),
        column("speed-up", &|row| row.speed_up.map(|speed_up| format!("{speed_up:.1}"))),
        column("efficiency", &|row| row.efficiency.map(percent)),
        column("agents at work", &|row| (row.busy_agents > 0.0).then(|| format!("{:.1}", row.busy_agents))),
        column("messages", &|row| row.seconds.map(|_| text::count(row.messages))),
        column("memory of a rank", &|row| row.memory.map(text::bytes)),
    ])
}

fn note(args: &ScaleArgs, costs: &MessageCosts) -> String {
    format!(
        "note: times are extrapolated from {} s of the run for each row on this machine, with a latency of {} µs and {} GB/s between \
         ranks, and {} µs of a rank for each message. Reading data, saving, and what follows the last round come on top. Other work on this \
         machine makes them longer. Messages are the most that a rank sends or receives for one request of the server\n",
        args.measure,
        short(1e6 * costs.latency),
        short(1e-9 * costs.bandwidth),
        short(1e6 * costs.message)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast_of(seconds: f64) -> Forecast {
        Forecast { seconds: Some(seconds), busy_agents: 2.5, load: Load::default(), done: 1, total: 10, checkpoint: 0 }
    }

    fn rows(times: &[(u32, f64)]) -> Vec<Row> {
        let first = Row::first(times[0].0, &forecast_of(times[0].1));
        times.iter().map(|&(ranks, seconds)| Row::new(ranks, &forecast_of(seconds), &first, None)).collect()
    }

    #[test]
    fn ranks_are_advised_as_long_as_they_are_used() {
        let all = rows(&[(1, 800.0), (2, 420.0), (4, 230.0), (8, 220.0)]);
        assert_eq!(worth(&all), Some(2));
        let network = advice(&all, 2, Some(&forecast_of(110.0)), 8, 8);
        assert!(
            network.starts_with("ask for 4 ranks (") && network.contains("the efficiency of 8 is 45 %. The network limits it")
        );
        let method = advice(&all, 2, Some(&forecast_of(215.0)), 8, 8);
        assert!(method.contains("on average 2.5 of 8 agents work at the same time"), "{method}");
        let all = rows(&[(1, 800.0), (4, 210.0)]);
        assert!(advice(&all, 1, None, 4, 4).ends_with("each agent has one. More agents could use more"));
        assert!(advice(&all, 1, None, 8, 8).ends_with("or for more: these are all used well"));
    }

    #[test]
    fn efficiency_is_that_of_the_first_row() {
        let all = rows(&[(2, 400.0), (8, 200.0)]);
        assert_eq!((all[1].speed_up, all[1].efficiency), (Some(2.0), Some(0.5)));
        assert_eq!(worth(&rows(&[(1, f64::NAN)])), None);
    }
}
