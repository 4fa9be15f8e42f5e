//! `mpibayes check`: checks a run file and its data without starting a run, and prints what the run needs.

use super::output::print;
use super::resources::{self, Request, memory_of_this_machine, threads_of_this_machine};
use super::run::parse_override;
use super::sweep::refuse_folder_of_run;
use super::verify::verify;
use crate::cluster::simulate::Network;
use crate::config::sweep::{self, Sweep};
use crate::config::{Override, Problem, Registry, Run, RunFile};
use crate::data::Task;
use crate::job::{
    BANDWIDTH, CheckReport, ClassCounts, DataContent, FolderUse, Forecast, LATENCY, MESSAGE_OVERHEAD, PlannedDraws, check,
    check_sweep, folder_use, forecast, notes_on_sweep,
};
use crate::results;
use crate::text;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The most agents and classes in a table of both.
const SHOWN_AGENTS: usize = 20;
const SHOWN_CLASSES: usize = 12;
/// The most settings of a sweep in a table.
const SHOWN_SETTINGS: usize = 30;

const EXAMPLES: &str = "\
Examples:
  mpibayes check my.toml
  mpibayes check my.toml --verify                          # also whether the dataset is undamaged
  mpibayes check my.toml --ranks 8 --threads 2             # also memory, disk, time and options for Slurm";

/// Arguments of `mpibayes check`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// The run file, or the file of a sweep
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Replace a value of the run file, such as --set method.rounds=20. Can be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub set: Vec<Override>,
    /// The folder that the run would write to [default: runs/NAME for NAME.toml]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Estimate memory, disk and time on this many ranks, and print options for Slurm
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ranks: Option<u32>,
    /// Threads of each rank
    #[arg(long, value_name = "N", default_value_t = 1, requires = "ranks", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// With --ranks: carry out the run for this many seconds to estimate its time; 0 for no estimate
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "ranks")]
    pub measure: u64,
    /// Read all of the data, and compare its content with the digest in its file
    #[arg(long)]
    pub verify: bool,
}

/// Checks the run file and prints a report.
///
/// # Errors
/// If the file is not TOML, or the data are damaged. Mistakes in the run are printed and give exit code 1.
pub fn run(args: &CheckArgs, registry: &Registry) -> anyhow::Result<ExitCode> {
    let file = RunFile::read(&args.file, &args.set)?;
    let output = super::run::output(args.output.as_deref(), &args.file)?;
    let found =
        if sweep::is_sweep(&file) { sweep_report(&file, registry, &output) } else { run_report(&file, registry, &output) };
    match found {
        Ok(Checked { text, run, report, runs, data }) => {
            // A run on damaged data cannot be run.
            if args.verify {
                verify_all(&data)?;
            }
            print(&text)?;
            if let Some(ranks) = args.ranks {
                let request = Request { ranks, threads: usize::from(args.threads), runs };
                let all = report.bytes_of_agents(report.agents, request.threads);
                let fits = all.zip(memory_of_this_machine()).is_none_or(|(all, memory)| all < memory);
                let forecast = if fits { measure(&run, registry, request, args.measure)? } else { None };
                print(&resources::describe(&report, request, forecast.as_ref()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            let lines: String = problems.iter().map(|problem| format!("mpibayes: {problem}\n")).collect();
            let count = text::counted(problems.len(), "mistake");
            // One write, so that no line of a launcher comes between.
            drop(std::io::Write::write_all(&mut std::io::stderr(), format!("{lines}mpibayes: {count}\n").as_bytes()));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A run that can be started, or the first run of a sweep.
struct Checked {
    /// What it is, for people.
    text: String,
    run: Run,
    report: CheckReport,
    /// How many runs there are.
    runs: usize,
    /// The data files of all runs.
    data: BTreeSet<PathBuf>,
}

/// Verifies data files, and prints a line for each.
fn verify_all(files: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    if files.is_empty() {
        print("nothing to verify: the model generates its own data\n")?;
    }
    files.iter().try_for_each(|file| Ok(print(&verify(file)?)?))
}

/// The data file of a run, if it has one.
fn data_file(report: &CheckReport) -> Option<PathBuf> {
    report.data.as_ref().map(|data| data.path.clone())
}

/// Carries out a part of the run to see how long it takes. None if no time is given for this.
fn measure(run: &Run, registry: &Registry, request: Request, seconds: u64) -> anyhow::Result<Option<Forecast>> {
    if seconds == 0 {
        return Ok(None);
    }
    results::listen();
    eprintln!("mpibayes: carrying out a part of the run, for about {}", text::seconds(seconds as f64));
    let network = Network { ranks: request.ranks, latency: LATENCY, bandwidth: BANDWIDTH, message_overhead: MESSAGE_OVERHEAD };
    Ok(Some(forecast(run, registry, network, request.threads, Duration::from_secs(seconds))?))
}

/// Describes a run.
fn run_report(file: &RunFile, registry: &Registry, output: &Path) -> Result<Checked, Vec<Problem>> {
    let (run, report) = check(file, registry)?;
    let used =
        folder_use(&run, report.data_identity(), output, registry).map_err(|error| vec![file.problem(&[], error.to_string())])?;
    let text = format!("{} can be run\n{}", file.path().display(), describe(&report, output, used));
    let data = data_file(&report).into_iter().collect();
    Ok(Checked { text, run, report, runs: 1, data })
}

/// Checks all runs of a sweep, describes the first, and the others by their settings.
fn sweep_report(file: &RunFile, registry: &Registry, output: &Path) -> Result<Checked, Vec<Problem>> {
    let grid = sweep::grid(file)?;
    refuse_folder_of_run(output).map_err(|error| vec![file.problem(&[], error.to_string())])?;
    let mut checked = check_sweep(&grid, registry)?;
    let (mut used, mut running) = (Vec::new(), 0);
    let mut problems = Vec::new();
    for ((run, report), point) in checked.iter().zip(&grid.points) {
        let folder = output.join(&point.name);
        match folder_use(run, report.data_identity(), &folder, registry) {
            Ok(_) if results::job_using(&folder).is_some() => running += 1,
            Ok(found) => used.push(found),
            Err(error) => problems.push(file.problem(&[], error.to_string())),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut text =
        format!("{} can be run: {} over {}\n", file.path().display(), text::counted(checked.len(), "run"), grid.keys.join(", "));
    text.push_str(&table_of_settings(&grid, checked.iter().map(|(_, report)| report)));
    let in_state = |state| used.iter().filter(|used| **used == state).count();
    for (runs, is, are) in [
        (running, "is carried out now", "are carried out now"),
        (in_state(FolderUse::Nothing), "is finished", "are finished"),
        (in_state(FolderUse::Resume), "has begun, and is resumed", "have begun, and are resumed"),
    ] {
        if runs > 0 {
            let (does, all) = (if runs == 1 { is } else { are }, text::counted(grid.points.len(), "run"));
            // Writing to a string does not fail.
            let _ = writeln!(text, "note: {} of the {all} {does}", text::count(runs));
        }
    }
    for note in grid.notes.iter().chain(&notes_on_sweep(&grid, checked.iter().map(|(_, report)| report))) {
        let _ = writeln!(text, "note: {note}");
    }
    let data = checked.iter().filter_map(|(_, report)| data_file(report)).collect();
    // A grid has at least one run.
    let (run, mut first) = checked.swap_remove(0);
    first.notes.clear();
    let name = &grid.points[0].name;
    let _ = writeln!(text, "the first run, {name}:");
    text.push_str(&describe(&first, &output.join(name), FolderUse::Begin));
    Ok(Checked { text, run, report: first, runs: grid.points.len(), data })
}

/// A table of what varies in a sweep apart from the seed, with the size of the runs.
fn table_of_settings<'a>(grid: &Sweep, reports: impl Iterator<Item = &'a CheckReport>) -> String {
    let varied: Vec<usize> = (0..grid.keys.len()).filter(|&key| grid.keys[key] != "seed").collect();
    let mut settings: Vec<(Vec<&str>, usize, &CheckReport)> = Vec::new();
    for (point, report) in grid.points.iter().zip(reports) {
        let labels: Vec<&str> = varied.iter().map(|&key| point.labels[key].as_str()).collect();
        match settings.iter_mut().find(|(others, ..)| *others == labels) {
            Some((_, runs, _)) => *runs += 1,
            None => settings.push((labels, 1, report)),
        }
    }
    if settings.len() < 2 {
        return String::new();
    }
    let shown = &settings[..settings.len().min(SHOWN_SETTINGS)];
    let column = |name: &str, cell: &dyn Fn(&CheckReport) -> String| {
        (name.to_owned(), shown.iter().map(|(_, _, report)| cell(report)).collect::<Vec<_>>())
    };
    let mut columns: Vec<_> = (0..varied.len())
        .map(|at| {
            let cells = shown.iter().map(|(labels, ..)| labels[at].to_owned()).collect();
            (grid.keys[varied[at]].clone(), cells)
        })
        .collect();
    columns.push(("runs".to_owned(), shown.iter().map(|(_, runs, _)| text::count(*runs)).collect()));
    let number = |number: Option<u64>| number.map_or_else(String::new, text::count);
    columns.push(column("agents", &|report| text::count(report.agents)));
    columns.push(column("rounds", &|report| match report.estimate.rounds {
        None if report.lengths_are_found => "found before the run".to_owned(),
        rounds => number(rounds),
    }));
    columns.push(column("particles or chains", &|report| number(report.estimate.particles)));
    columns.push(column("parameters", &|report| text::count(report.parameters)));
    let left_out = match settings.len() - shown.len() {
        0 => String::new(),
        left_out => format!("  not shown: {}\n", text::counted(left_out, "other setting")),
    };
    format!("{}{left_out}", text::table(&columns))
}

/// Describes a run, a line for each property.
fn describe(report: &CheckReport, output: &Path, used: FolderUse) -> String {
    let estimate = &report.estimate;
    let number = |number: usize| text::count(number);
    let memory = memory_of_this_machine();
    let mut notes = report.notes.clone();
    let mut lines = vec![("method", report.method.to_owned())];
    match (estimate.particles, report.draws) {
        (Some(count), draws) => lines.push(chains(count, draws)),
        (None, PlannedDraws::Each(draws)) => lines.push(("draws", text::count(draws))),
        (None, _) => {}
    }
    if let Some(rounds) = estimate.rounds {
        lines.push(("rounds", text::count(rounds)));
    }
    lines.push(("model", format!("{}, {}", report.model, text::counted(report.parameters, "parameter"))));
    let thing = match &report.data {
        Some(data) => {
            let digest = text::short_digest(&data.digest);
            lines.push(("data", format!("{} (digest {digest})", data.path.display())));
            let split = format!("{} for training, {} for testing", number(data.train), number(data.test));
            match data.content {
                DataContent::Table { task, features, classes } => {
                    let targets = match task {
                        Task::Classification => text::counted(classes, "class"),
                        Task::Regression => "numbers as targets".into(),
                        Task::Counts => "counts as targets".into(),
                    };
                    lines.push(("rows", split));
                    lines.push(("columns", format!("{}, {targets}", text::counted(features, "feature"))));
                    "rows"
                }
                DataContent::Corpus { words, tokens, .. } => {
                    lines.push(("documents", split));
                    let tokens = text::count(tokens);
                    lines.push(("words", format!("{} in the vocabulary, {tokens} training tokens", text::count(words))));
                    "documents"
                }
            }
        }
        None => {
            lines.push(("data", "none: the model generates its own".into()));
            "rows"
        }
    };
    let rows = match report.rows_per_agent {
        (fewest, most) if fewest == most => number(most),
        (fewest, most) => format!("{} to {}", number(fewest), number(most)),
    };
    let things = if report.rows_per_agent.1 == 1 { thing.trim_end_matches('s') } else { thing };
    lines.push(("agents", format!("{}, {rows} {things} each", text::count(report.agents))));
    let temperature = report.temperature.map_or_else(String::new, |temperature| format!(", temperature {temperature}"));
    lines.push(("values", format!("{} bytes each, seed {}{temperature}", report.value_bytes, report.seed)));
    if let Some(bytes) = report.bytes_of_agent(threads_of_this_machine()) {
        let all = bytes.saturating_mul(report.agents.into());
        let there = memory.map_or_else(String::new, |memory| format!("; this machine has {}", text::bytes(memory)));
        lines.push(("memory", format!("about {} per agent, {} for all agents{there}", text::bytes(bytes), text::bytes(all))));
        if memory.is_some_and(|memory| all > memory) {
            notes.push("the agents need more memory than this machine has: use several nodes, or fewer agents".to_owned());
        }
    }
    if let Some(bytes) = report.bytes_per_round() {
        let traffic = match bytes {
            0 => "none in the rounds".to_owned(),
            bytes => format!(
                "about {} per round, sent and received counted once, with evaluations, if every agent has its own rank; none on one rank",
                text::bytes(bytes)
            ),
        };
        lines.push(("traffic", traffic));
    }
    let evaluated = report.is_evaluated();
    lines.push(match report.evaluate_every {
        Some(0) => ("evaluate", "never".to_owned()),
        Some(1) if evaluated => ("evaluate", "after every round".into()),
        None if evaluated => ("evaluate", "at most twenty times, and after the last round".into()),
        Some(every) if evaluated => ("evaluate", format!("every {} rounds, and after the last", text::count(every))),
        _ if report.predicts => ("evaluate", format!("never, because there are no test {thing}")),
        _ => ("evaluate", "never, because the model predicts nothing".into()),
    });
    lines.push((
        "writes",
        format!("{}: config.toml, data.digest, result.h5, and two checkpoints during the run", output.display()),
    ));
    let mut text = text::pairs(&lines);
    if let Some(counts) = &report.class_counts {
        text.push_str(&table_of_classes(counts));
    }
    let does = match (results::job_using(output), used) {
        (Some(job), _) => format!("note: {job} is carrying out the run in this folder\n"),
        (None, FolderUse::Begin) => String::new(),
        (None, FolderUse::Resume) => "note: the folder holds this run, not finished: `mpibayes run` resumes it\n".into(),
        (None, FolderUse::Nothing) => "note: the folder holds this run, finished: `mpibayes run` has nothing to do\n".into(),
    };
    text.push_str(&does);
    for note in &notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The line on chains with their draws, or on particles.
fn chains(count: u64, planned: PlannedDraws) -> (&'static str, String) {
    let count = text::count(count);
    let draws = |draws: u64| text::counted(draws, "draw");
    match planned {
        PlannedDraws::Particles => ("particles", count),
        PlannedDraws::Each(0) => ("chains", count),
        PlannedDraws::Each(each) => ("chains", format!("{count}, {} each", draws(each))),
        PlannedDraws::About(each) => ("chains", format!("{count}, about {} each", draws(each))),
        PlannedDraws::Unknown => ("chains", format!("{count}; how many draws each keeps is found before the run")),
    }
}

/// A table of the rows of each class at each agent.
fn table_of_classes(ClassCounts { classes, rows }: &ClassCounts) -> String {
    let shown = rows.nrows().min(SHOWN_AGENTS);
    let mut columns = vec![("agent".to_owned(), (0..shown).map(|agent| agent.to_string()).collect())];
    for (class, counts) in classes.iter().zip(rows.columns()).take(SHOWN_CLASSES) {
        columns.push((class.clone(), counts.iter().take(shown).map(|&rows| text::count(rows)).collect()));
    }
    let left_out = [(rows.nrows() - shown, "agent"), (classes.len().saturating_sub(SHOWN_CLASSES), "class")];
    let left_out: Vec<String> =
        left_out.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| text::counted(*count, noun)).collect();
    let left_out = if left_out.is_empty() { String::new() } else { format!("  not shown: {}\n", left_out.join(" and ")) };
    format!("training rows of each class:\n{}{left_out}", text::table(&columns))
}
