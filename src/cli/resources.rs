//! What a run needs on a number of ranks, for `mpibayes check --ranks`: memory, disk, time, and options for Slurm.

use crate::cluster::{Layout, Placement};
use crate::job::{BANDWIDTH, CheckReport, Forecast, LATENCY, PlannedDraws};
use crate::text;

/// The memory of a rank without agents: MPI, HDF5 and the program, with buffers of messages and files (measured: 40 to 70 MB).
const IDLE_RANK: u64 = 72 << 20;
/// Rank 0 holds all draws when the run ends, but those of topics, and copies for their diagnostics: this multiple of them (measured).
const COPIES_OF_DRAWS: f64 = 2.5;
/// What computing log-likelihoods of rows needs on a rank at most, beside the draws (measured).
const POINTWISE: u64 = 384 << 20;
/// What a result file has beside draws: curves, tables, scores of at most 400 draws of 300 parameters, unused parts of chunks (measured:
/// 0.9 to 1.6 MB for 20 parameters).
const TABLES: u64 = 4 << 20;
/// With a smaller share of ranks at work, the others are of little use.
const MIN_SHARE_AT_WORK: f64 = 0.5;
/// Slurm gets this multiple of the estimated memory and time.
const MARGIN: f64 = 1.5;
/// Time limits are multiples of this.
const TEN_MINUTES: f64 = 600.0;
/// Memory limits are multiples of this.
const HUNDRED_MIB: u64 = 100 << 20;

/// The ranks that a run shall have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub ranks: u32,
    pub threads: usize,
    /// Runs of a sweep, one after another, which are assumed to take as long as the first.
    pub runs: usize,
}

fn layout(report: &CheckReport, ranks: u32) -> Layout {
    Layout { ranks, agents: report.agents, dedicated: report.dedicated, placement: Placement::Blocks }
}

/// How many agents each rank hosts.
fn agents_of_ranks(layout: Layout) -> Vec<u32> {
    let mut hosted = vec![0_u32; layout.ranks as usize];
    (0..layout.agents).for_each(|agent| hosted[layout.rank_of(agent) as usize] += 1);
    hosted
}

/// Bytes of the rank that needs the most, and of rank 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub largest: u64,
    pub first: u64,
}

/// The memory of ranks at most; none if that of an agent is not known.
pub(super) fn memory(report: &CheckReport, ranks: u32, threads: usize) -> Option<Memory> {
    let hosted = agents_of_ranks(layout(report, ranks));
    let of = |rank: usize| {
        let agents = report.bytes_of_agents(hosted[rank], threads)?;
        // Up to 2^63 bytes.
        let draws = report.bytes_of_draws().filter(|_| report.estimate.particles.is_some());
        let draws = (COPIES_OF_DRAWS * draws.unwrap_or(0) as f64) as u64;
        let pointwise = report.bytes_of_pointwise().unwrap_or(0).min(POINTWISE);
        Some(IDLE_RANK.saturating_add(agents).saturating_add(pointwise).saturating_add(if rank == 0 { draws } else { 0 }))
    };
    let largest = (0..hosted.len()).filter_map(of).max();
    largest.zip(of(0)).map(|(largest, first)| Memory { largest, first })
}

/// The threads of a job on this machine alone.
pub(super) fn threads_of_this_machine() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes of main memory, where the system tells.
pub(super) fn memory_of_this_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Describes what the run needs, a line for each resource, and options for Slurm.
pub(super) fn describe(report: &CheckReport, request: Request, forecast: Option<&Forecast>) -> String {
    let Request { ranks, threads, runs } = request;
    let layout = layout(report, ranks);
    let (hosts, hosted) = (layout.hosts(), agents_of_ranks(layout));
    let (fewest, most) = (hosted.iter().min().copied().unwrap_or(0), hosted.iter().max().copied().unwrap_or(0));
    let agents = if fewest == most { text::counted(most, "agent") } else { format!("{fewest} to {most} agents") };
    let mut lines =
        vec![("ranks", format!("{}, with {agents} and {} each", text::count(ranks), text::counted(threads, "thread")))];
    let memory = memory(report, ranks, threads);
    let draws_are_unknown = report.draws == PlannedDraws::Unknown;
    if let Some(Memory { largest, first }) = memory {
        let (largest, first) = (text::bytes(largest), text::bytes(first));
        let memory = match draws_are_unknown {
            true => format!("at most about {largest} on a rank, and on rank 0 {COPIES_OF_DRAWS} times the draws in addition"),
            false => format!("at most about {largest} on a rank, {first} on rank 0"),
        };
        lines.push(("memory", memory));
    }
    let draws = match report.bytes_of_draws() {
        Some(draws) => format!("about {} of draws, some {} of tables and scores", text::bytes(draws), text::bytes(TABLES)),
        None => {
            format!("draws, whose number is not known before the run, and some {} of tables and scores", text::bytes(TABLES))
        }
    };
    let pointwise = match report.bytes_of_pointwise() {
        Some(0) => "",
        Some(bytes) => &format!(", up to {} of log-likelihoods of rows", text::bytes(bytes)),
        None => ", log-likelihoods of rows, 8 or 16 bytes for each row and draw",
    };
    let checkpoint = forecast.map(|forecast| forecast.checkpoint).filter(|&bytes| bytes > 0);
    // The tables are in it too, and grow until the end.
    let checkpoint = match checkpoint {
        // Two are kept while the next one is written.
        Some(bytes) => format!(", and up to {} of checkpoints", text::bytes(bytes.saturating_add(TABLES).saturating_mul(3))),
        None => ", and checkpoints".to_owned(),
    };
    let of_run = if runs > 1 { "for the first run: " } else { "" };
    lines.push(("disk", format!("{of_run}{draws}{pointwise}{checkpoint}")));
    let mut notes = Vec::new();
    if let Some(forecast) = forecast {
        lines.push(("time", time(forecast, runs)));
        if forecast.seconds.is_some() {
            notes.push(format!(
                "the time is by {} of {} rounds on this machine, with {:.0} µs and {:.0} GB/s between ranks. Reading data, saving, and what \
                 follows the last round come on top",
                text::count(forecast.done),
                text::count(forecast.total),
                1e6 * LATENCY,
                1e-9 * BANDWIDTH
            ));
        }
    }
    let busy = forecast.map_or(f64::NAN, |forecast| forecast.busy_agents);
    if ranks > 1 && hosts <= report.agents && busy < MIN_SHARE_AT_WORK * f64::from(ranks) {
        notes.push(format!("on average {busy:.1} agents work at the same time: with fewer ranks, the run takes about as long"));
    }
    let (cores, busy_cores) = (std::thread::available_parallelism().map_or(1, std::num::NonZero::get), ranks as usize * threads);
    if busy_cores > cores && forecast.is_some_and(|forecast| forecast.seconds.is_some()) {
        notes.push(format!(
            "the time is for {} cores: on the {} of this machine, the run takes longer",
            text::count(busy_cores),
            text::count(cores)
        ));
    }
    if hosts > report.agents {
        notes.push(format!("only {} of the ranks have an agent: agents = {hosts} uses all", report.agents));
    }
    if draws_are_unknown {
        notes.push(
            "the number of draws, and so memory, is known beforehand without a length, or with burn_in and thin as well"
                .to_owned(),
        );
    }
    let mut shown = text::pairs(&lines);
    notes.iter().for_each(|note| shown.push_str(&format!("note: {note}\n")));
    let largest = memory.map(|memory| memory.largest).filter(|_| !draws_are_unknown);
    shown + &batch_options(request, largest, forecast.and_then(|forecast| forecast.seconds).map(|seconds| seconds * runs as f64))
}

fn time(forecast: &Forecast, runs: usize) -> String {
    match forecast.seconds {
        Some(seconds) if runs > 1 => {
            format!("about {} for {runs} runs that take as long as the first", text::seconds(seconds * runs as f64))
        }
        Some(seconds) => format!("about {}", text::seconds(seconds)),
        None => "no round was finished: measure longer, such as with --measure 600".to_owned(),
    }
}

/// Options for `sbatch`, with a margin.
fn batch_options(Request { ranks, threads, .. }: Request, memory: Option<u64>, seconds: Option<f64>) -> String {
    let mut options = vec![format!("--ntasks={ranks}"), format!("--cpus-per-task={threads}")];
    if let Some(memory) = memory {
        let for_core = MARGIN * memory as f64 / threads.max(1) as f64;
        // Rounded up; positive and far below 2^64.
        let steps = (for_core / HUNDRED_MIB as f64).ceil() as u64;
        options.push(format!("--mem-per-cpu={}M", 100 * steps.max(1)));
    }
    if let Some(seconds) = seconds {
        let minutes = ((MARGIN * seconds / TEN_MINUTES).ceil().max(1.0) * TEN_MINUTES / 60.0) as u64;
        options.push(format!("--time={}:{:02}:00", minutes / 60, minutes % 60));
    }
    let lines: String = options.iter().map(|option| format!("  #SBATCH {option}\n")).collect();
    let minutes = if seconds.is_some() { " and ten minutes" } else { "" };
    format!("options for Slurm: half as much again as estimated, rounded up to 100 MB per core{minutes}:\n{lines}")
}
