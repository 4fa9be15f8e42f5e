//! Chains that move between ranks, with the whole program: bytes between ranks, waiting times, storage of draws.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/launcher.rs"]
mod launcher;
#[path = "../support/suite.rs"]
mod suite;
mod wide;

use launcher::{HANG, Launcher, POLL, Running, command, watched};
use mpibayes::config::Registry;
use mpibayes::results::{ResultFile, Samples, Table, Values};
use std::path::Path;
use std::time::Instant;
use suite::{Group, Suite, same};
use wide::Wide;

const RUN: &str = "\
seed = 5
agents = 8
[model]
name = \"wide\"
dim = 3
[method]
name = \"dsgld\"
chains = 8
rounds = 200
trajectory = 2
batch = 1
step = 0.2
burn_in = 0
thin = 1
log_visits = true
";

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    if ["run", "plan"].contains(&word.as_str()) {
        // Started by one of its own tests: the program with an additional model.
        let code = mpibayes::main_with(&Registry::default().with_model::<Wide>());
        std::process::exit(if code == std::process::ExitCode::SUCCESS { 0 } else { 1 });
    }
    let mut suite = Suite::default();
    suite.test("bytes between ranks", bytes);
    suite.test("draws in files", files);
    suite.test("trajectory plans", plans);
    suite.test("waiting times", waiting);
    suite.run()
}

/// Runs this program; returns its standard output.
fn program(launcher: Launcher, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = command(launcher, arguments)?;
    command.current_dir(folder);
    let ended = watched(command)?;
    if ended.code == 0 { Ok(ended.stdout) } else { Err(format!("exit code {}: {}", ended.code, ended.stderr)) }
}

/// Runs `run.toml` with these settings into a folder; its result file.
fn run(launcher: Launcher, folder: &Path, output: &str, settings: &[&str]) -> Result<ResultFile, String> {
    std::fs::write(folder.join("run.toml"), RUN).map_err(|error| error.to_string())?;
    let mut arguments = vec!["run", "run.toml", "--output", output];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    program(launcher, folder, &arguments)?;
    ResultFile::open(&folder.join(output).join("result.h5")).map_err(|error| error.to_string())
}

fn table(file: &ResultFile, name: &str) -> Result<Table, String> {
    file.table(name).map_err(|error| error.to_string())
}

fn column<'a>(table: &'a Table, name: &str) -> Result<&'a [f64], String> {
    table.column(name).ok_or_else(|| format!("no column {name}"))
}

fn samples(file: &ResultFile, group: &str) -> Result<Samples, String> {
    file.samples(group).map_err(|error| error.to_string())
}

/// A chain of 8 MB among 8 agents on 4 ranks.
const NUMBERS: u64 = 1_000_000;

/// A chain's bytes go from its rank directly to its next rank, and nowhere else.
fn bytes(group: &mut Group) {
    let folder = group.folder.to_owned();
    let settings = [
        &format!("model.dim={NUMBERS}"),
        "method.chains=1",
        "method.rounds=40",
        "method.trajectory=1",
        "method.burn_in=39",
        "cluster.draw_transport=files",
    ];
    let bytes_of = |through_server: bool| -> Result<(f64, f64, f64), String> {
        let setting = format!("method.through_server={through_server}");
        let all: Vec<&str> = settings.iter().copied().chain([setting.as_str()]).collect();
        let file = run(Launcher::Mpirun(4), &folder, &format!("bytes-{through_server}"), &all)?;
        let visits = table(&file, "visits")?;
        // The rows of a table are sorted by their step, the round; agents lie in blocks of two on the ranks.
        let ranks: Vec<u32> = visits.agent.iter().map(|agent| agent.unwrap_or(0) / 2).collect();
        let moves = ranks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let traffic = table(&file, "traffic")?;
        let (mut straight, mut server) = (0.0, 0.0);
        for (name, values) in &traffic.columns {
            match name.as_str() {
                "transfers_bytes" => straight += values[0],
                // What a checkpoint took, if there was one.
                "control_bytes" | "control_messages" => {}
                name if name.ends_with("_bytes") => server += values[0],
                // Heads: some tens of bytes, and for certain no more than this.
                _ => server += 1024.0 * values[0],
            }
        }
        Ok((straight, server, moves as f64 * 8.0 * NUMBERS as f64))
    };
    match bytes_of(false) {
        Ok((straight, server, exact)) => {
            group.check("every move between ranks is sent once", same("bytes", &straight, &exact));
            let share = server / (straight + server);
            eprintln!("{:.0} MB from rank to rank, {:.4} % beside that", 1e-6 * straight, 100.0 * share);
            let little = if share < 0.01 { Ok(()) } else { Err(format!("{share} of all bytes")) };
            group.check("the server and third ranks carry less than 1 % of all bytes", little);
        }
        Err(cause) => group.check("the run", Err(cause)),
    }
    // The control: where chains go through the server it carries them all.
    let through = bytes_of(true).and_then(|(straight, server, _)| {
        if server > 0.9 * (straight + server) { Ok(()) } else { Err(format!("{server} of {} bytes", straight + server)) }
    });
    group.check("through the server", through);
}

/// Draws that ranks store in files equal those sent in messages, also if the run is killed and resumed on other ranks.
fn files(group: &mut Group) {
    let folder = group.folder.to_owned();
    let expected = run(Launcher::Alone, &folder, "messages", &[]).and_then(|file| samples(&file, "posterior"));
    let Ok(expected) = expected else {
        return group.check("the run", expected.map(drop));
    };
    let by_files = ["cluster.draw_transport=files", "method.expectations=true"];
    for ranks in [1, 2, 3] {
        let output = format!("files-{ranks}");
        let file = run(Launcher::Mpirun(ranks), &folder, &output, &by_files);
        let alike = file.and_then(|file| {
            let traffic = table(&file, "traffic")?;
            if traffic.column("draws_bytes").is_some_and(|bytes| bytes[0] > 8.0 * 3.0 * 2.0) {
                return Err("draws have travelled".into());
            }
            if folder.join(&output).join("draws.parts").exists() {
                return Err("the files of draws are still there".into());
            }
            match_moments(&file)?;
            if samples(&file, "posterior")? == expected { Ok(()) } else { Err("other draws".into()) }
        });
        group.check(format!("{ranks} ranks"), alike);
    }
    // Where the files of ranks cannot be, the run fails at once, on all ranks, and says where.
    let refused = || -> Result<(), String> {
        std::fs::create_dir_all(folder.join("blocked")).map_err(|error| error.to_string())?;
        std::fs::write(folder.join("blocked/draws.parts"), "no folder").map_err(|error| error.to_string())?;
        let mut arguments = vec!["run", "run.toml", "--output", "blocked"];
        by_files.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let mut command = command(Launcher::Mpirun(2), &arguments)?;
        command.current_dir(&folder);
        let ended = watched(command)?;
        let messages = ended.stderr.lines().filter(|line| line.starts_with("mpibayes:") && line.contains("draws.parts")).count();
        if ended.code != 0 && messages == 1 { Ok(()) } else { Err(format!("exit code {}: {}", ended.code, ended.stderr)) }
    };
    group.check("no place for files", refused());
    // Long enough to be stopped.
    let long = ["method.rounds=30000", "method.thin=15", "cluster.checkpoint_every=0.05"];
    let files: Vec<&str> = long.into_iter().chain(by_files).collect();
    let whole = run(Launcher::Alone, &folder, "long", &long).and_then(|file| samples(&file, "posterior"));
    let Ok(whole) = whole else { return group.check("the long run", whole.map(drop)) };
    let whole = whole.values.matrix();
    // Killed with files and resumed with messages, and the other way round.
    let messages: Vec<&str> = long.into_iter().chain(["method.expectations=true"]).collect();
    for (output, first, then) in [("by-files", &files, &messages), ("by-messages", &messages, &files)] {
        let kept = killed(&folder, output, first).and_then(|()| {
            let file = ResultFile::open(&folder.join(output).join("result.h5")).map_err(|error| error.to_string())?;
            let lengths = file.lengths("posterior").map_err(|error| error.to_string())?;
            let draws = samples(&file, "posterior")?.values.matrix();
            let (of_chain, kept) = (whole.nrows() / 8, draws.nrows() / 8);
            let same = |(chain, &length): (usize, &usize)| {
                let rows = |matrix: &ndarray::Array2<f64>, of_chain: usize| {
                    matrix.slice(ndarray::s![chain * of_chain..chain * of_chain + length, ..]).to_owned()
                };
                length > 0 && rows(&draws, kept) == rows(&whole, of_chain)
            };
            if lengths.iter().enumerate().all(same) {
                Ok(())
            } else {
                Err(format!("{lengths:?} draws are not the first of the whole run"))
            }
        });
        group.check(format!("{output}: readable after a kill"), kept);
        let resumed = run(Launcher::Mpirun(3), &folder, output, then).and_then(|file| samples(&file, "posterior"));
        let same = resumed.and_then(|draws| if draws.values.matrix() == whole { Ok(()) } else { Err("other draws".into()) });
        group.check(format!("{output}: resumed"), same);
    }
}

/// Starts the run on two ranks, and kills it without a warning after a few checkpoints.
fn killed(folder: &Path, output: &str, settings: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "run.toml", "--output", output];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let mut command = command(Launcher::Mpirun(2), &arguments)?;
    command.current_dir(folder);
    let mut running = Running::start(command)?;
    let checkpoint = folder.join(output).join("checkpoint.bin");
    let written = || checkpoint.metadata().and_then(|file| file.modified()).ok();
    let mut last = None;
    for _ in 0..2 {
        running.wait_until("its second checkpoint", |_| written().is_some_and(|at| last != Some(at)))?;
        last = written();
    }
    running.signal(libc::SIGKILL);
    drop(running.finish()?);
    if !checkpoint.exists() {
        return Err("the run ended before it was killed".into());
    }
    // Ranks end some time after mpirun; until then, rank 0 keeps the folder locked.
    let lock = std::fs::File::open(folder.join(output).join("data.digest")).map_err(|error| error.to_string())?;
    let since = Instant::now();
    while lock.try_lock().is_err() {
        if since.elapsed() > HANG {
            return Err("the ranks of the killed run do not end".into());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// The means and standard deviations that agents have computed are those of all draws.
fn match_moments(file: &ResultFile) -> Result<(), String> {
    let draws = samples(file, "posterior")?.values.matrix();
    for (name, exact) in [
        ("posterior_mean", draws.mean_axis(ndarray::Axis(0)).ok_or("no draws")?),
        ("posterior_sd", draws.std_axis(ndarray::Axis(0), 0.0)),
    ] {
        let Values::F64(found) = samples(file, name)?.values else { return Err("not in f64".into()) };
        let off = found.iter().zip(&exact).map(|(found, exact)| (found - exact).abs()).fold(0.0, f64::max);
        if found.len() != exact.len() || off.is_nan() || off > 1e-12 {
            return Err(format!("{name}: {found}, and {exact} of the draws"));
        }
    }
    Ok(())
}

/// A plan that was made by the clock can be followed again, and then the same draws come out.
fn plans(group: &mut Group) {
    let folder = group.folder.to_owned();
    let sleeps = "method.sleep_ms=[1.0, 0.2, 0.2, 0.2, 0.5, 0.2, 0.2, 0.2]";
    let balanced =
        ["method.trajectory=4", "method.balance={ threshold = 0.2, decay = 1.0, until = 50 }", sleeps, "method.rounds=80"];
    let replayed = || -> Result<(), String> {
        let first = run(Launcher::Mpirun(2), &folder, "balanced", &balanced)?;
        let plans = program(Launcher::Alone, &folder, &["plan", "balanced"])?;
        if plans.matches("round = ").count() < 2 {
            return Err(format!("nothing was planned: {plans}"));
        }
        let follow = format!("method.plans={}", plans.trim());
        // In place of the balance that the run file asks for.
        let again = run(Launcher::Alone, &folder, "replayed", &[balanced[0], balanced[1], balanced[3], &follow])?;
        let other = run(Launcher::Alone, &folder, "unplanned", &["method.trajectory=4", "method.rounds=80"])?;
        // Chains of unequal lengths end in NaN, which equals nothing.
        let bits = |file: &ResultFile| -> Result<Vec<u64>, String> {
            Ok(samples(file, "posterior")?.values.matrix().iter().map(|value| value.to_bits()).collect())
        };
        let [first, again, other] = [bits(&first)?, bits(&again)?, bits(&other)?];
        match (first == again, first == other) {
            (true, false) => Ok(()),
            same => Err(format!("(the same with the plans, without) is {same:?}: {plans}")),
        }
    };
    group.check("replayed", replayed());
}

/// One of four agents is D times slower than the others: without balancing these wait for (D − 1)/D of a round, with balancing none waits
/// for long. Medians over rounds, and bounds far from each other, for the machine may be busy with other things.
fn waiting(group: &mut Group) {
    let folder = group.folder.to_owned();
    let mut figures = Vec::new();
    for slower in [5.0, 10.0] {
        let run = |output: &str, sleep: f64, settings: &[&str]| -> Result<[f64; 4], String> {
            let sleeps = format!("method.sleep_ms=[{sleep:?}, {sleep:?}, {:?}, {sleep:?}]", sleep * slower);
            let shared = ["agents=4", "method.chains=4", "method.log_visits=false", sleeps.as_str()];
            let settings: Vec<&str> = shared.into_iter().chain(settings.iter().copied()).collect();
            let file = run(Launcher::Mpirun(4), &folder, &format!("{output}-{slower}"), &settings)?;
            shares_of_waiting(&table(&file, "load")?)
        };
        let fast = |shares: [f64; 4]| (shares[0] + shares[1] + shares[3]) / 3.0;
        let expected = (slower - 1.0) / slower;
        let plain = run("plain", 8.0, &["method.trajectory=10", "method.rounds=20"]);
        group.check(
            format!("1 : {slower}, without balancing"),
            plain.and_then(|shares| {
                figures.push(format!("1 : {slower} {:.0} %", 100.0 * fast(shares)));
                if (fast(shares) - expected).abs() < 0.1 && shares[2] < 0.15 {
                    Ok(())
                } else {
                    Err(format!("{shares:?}, expected {expected} of the fast ones"))
                }
            }),
        );
        let balance = "method.balance={ threshold = 0.2, decay = 1.0, until = 6 }";
        let balanced = run("balanced", 4.0, &["method.trajectory=60", "method.rounds=26", balance]);
        group.check(
            format!("1 : {slower}, balanced"),
            balanced.and_then(|shares| {
                let mean = shares.iter().sum::<f64>() / 4.0;
                figures.push(format!("balanced {:.1} %", 100.0 * mean));
                if mean < 0.2 { Ok(()) } else { Err(format!("{shares:?}")) }
            }),
        );
    }
    eprintln!("share of a round that the fast ones wait: {}", figures.join(", "));
}

/// Each agent's median over the rounds when the plan stands, of the share of a round that it waits.
fn shares_of_waiting(load: &Table) -> Result<[f64; 4], String> {
    const PLANNED: u64 = 8;
    let [busy, blocked, agents] = ["busy_seconds", "blocked_seconds", "agent_number"].map(|name| column(load, name));
    let (busy, blocked, agents) = (busy?, blocked?, agents?);
    let mut medians = [f64::NAN; 4];
    for (agent, median) in medians.iter_mut().enumerate() {
        let rows = (0..agents.len()).filter(|&row| agents[row] == agent as f64 && load.step[row] >= PLANNED);
        let totals: Vec<_> = rows.map(|row| (busy[row], blocked[row])).collect();
        let share = |pair: &[(f64, f64)]| {
            let (busy, blocked) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            blocked / (busy + blocked)
        };
        let mut shares: Vec<f64> = totals.windows(2).map(share).collect();
        shares.sort_by(f64::total_cmp);
        if shares.len() < 10 {
            return Err(format!("the load of agent {agent} has {} rounds", shares.len()));
        }
        *median = shares[shares.len() / 2];
    }
    Ok(medians)
}
