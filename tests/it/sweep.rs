//! `mpibayes sweep`: alone, under mpirun and as an array, stopped, failed and gone on with, and the table in the end.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::launcher::unlaunched;
use mpibayes::results::RunFile;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

const SWEEP: &str = "\
seed = 3
agents = 3
[data]
file = \"a.h5\"
[model]
name = \"logistic\"
[method]
name = \"svgd\"
[sweep]
method = [
    { name = \"svgd\", particles = 4, rounds = 2, steps = 5 },
    { name = \"dsvgd\", particles = 4, rounds = 3, local_steps = 5, distillation_steps = 5 },
]
seed = [1, 2]
";

const NAMES: [&str; 4] = ["method=svgd,seed=1", "method=svgd,seed=2", "method=dsvgd,seed=1", "method=dsvgd,seed=2"];

/// A folder with data and `sweep.toml`.
fn folder(sweep: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows: String =
        (0..40).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][(i * 7) % 11 / 6])).collect();
    std::fs::write(folder.path().join("a.csv"), rows).unwrap();
    std::fs::write(folder.path().join("sweep.toml"), sweep).unwrap();
    assert!(output(mpibayes(folder.path(), "import a.csv --test-fraction 0.2 -o a.h5")).status.success());
    folder
}

fn prepared(mut command: Command, folder: &Path, arguments: &str) -> Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").args(arguments.split(' '));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn mpibayes(folder: &Path, arguments: &str) -> Command {
    prepared(unlaunched(env!("CARGO_BIN_EXE_mpibayes")), folder, arguments)
}

fn on_two_ranks(folder: &Path, arguments: &str) -> Command {
    let mut command = unlaunched("mpirun");
    command.args(["--oversubscribe", "-n", "2", env!("CARGO_BIN_EXE_mpibayes")]);
    prepared(command, folder, arguments)
}

fn output(mut command: Command) -> Output {
    let mut child = command.spawn().expect("mpirun of Open MPI (openmpi-bin) is on the PATH");
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it hangs: {}", text(&child.wait_with_output().unwrap().stderr));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Asserts an exit code, and that all of this was said on the streams together.
fn ends(command: Command, code: i32, says: &[&str]) -> String {
    let output = output(command);
    let said = format!("{}{}", text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(code), "{said}");
    for says in says {
        assert!(said.contains(says), "{says}\nin\n{said}");
    }
    said
}

/// The table without the columns that tell time and traffic, which are no two times the same.
fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let kept: Vec<usize> =
        (0..names.len()).filter(|&at| !["seconds", "bytes", "messages"].contains(&names[at].as_str())).collect();
    let mut rows = vec![kept.iter().map(|&at| names[at].clone()).collect::<Vec<_>>()];
    for row in reader.records() {
        let row = row.unwrap();
        rows.push(kept.iter().map(|&at| row[at].to_owned()).collect());
    }
    rows
}

fn samples(folder: &Path, run: &str) -> mpibayes::results::Samples {
    RunFile::open(&folder.join(run).join("result.h5")).unwrap().samples("posterior").unwrap()
}

#[test]
fn the_grid_is_run_alone_or_on_ranks_to_the_same_table_and_once() {
    let folder = folder(SWEEP);
    let at = |name: &str| folder.path().join(name);
    let listed = ends(mpibayes(folder.path(), "sweep sweep.toml --list"), 0, &["4 runs over method, seed, in runs/sweep"]);
    assert!(listed.matches("not begun").count() == 4 && !at("runs").exists(), "{listed}");

    let says = [
        "a sweep of 4 runs over method, seed",
        "1/4 method=svgd seed=1: finished",
        "4/4 method=dsvgd seed=2: finished",
        ", accuracy 0.",
    ];
    ends(mpibayes(folder.path(), "sweep sweep.toml --output alone"), 0, &says);
    ends(on_two_ranks(folder.path(), "sweep sweep.toml --output ranks"), 0, &says);
    for name in NAMES {
        assert_eq!(samples(&at("alone"), name), samples(&at("ranks"), name), "{name}");
    }
    assert_ne!(samples(&at("alone"), NAMES[0]), samples(&at("alone"), NAMES[1]));
    assert!(!at("alone/failed").exists());

    let alone = table(&at("alone/sweep.csv"));
    assert_eq!(alone, table(&at("ranks/sweep.csv")));
    assert_eq!(alone[0][..5], ["run", "method", "seed", "step", "final"]);
    assert!(alone[0].contains(&"accuracy".to_owned()));
    // 2 evaluations of each svgd, 3 of each dsvgd.
    assert_eq!(alone.len(), 1 + 2 * 2 + 2 * 3);
    assert_eq!(alone[2][..5], ["method=svgd,seed=1", "svgd", "1", "2", "1"]);
    assert_eq!(alone.iter().filter(|row| row[4] == "1").count(), 4);

    // Nothing is done twice, and a run that is another one by now is not taken for it.
    let written = || NAMES.map(|name| std::fs::metadata(at("alone").join(name).join("result.h5")).unwrap().modified().unwrap());
    let before = written();
    ends(mpibayes(folder.path(), "sweep sweep.toml --output alone"), 0, &["4 finished, 0 failed"]);
    assert_eq!(written(), before);
    assert_eq!(table(&at("alone/sweep.csv")), alone);
    let other =
        ends(mpibayes(folder.path(), "sweep sweep.toml --set temperature=2 --output alone"), 1, &["temperature: 1.0 there, 2"]);
    assert!(other.contains("0 finished, 4 failed"), "{other}");
    ends(mpibayes(folder.path(), "sweep sweep.toml --set seed=2"), 1, &["the sweep varies seed, and --set seed=2 sets it"]);
}

#[test]
fn the_tasks_of_an_array_share_the_runs_and_one_command_collects() {
    let folder = folder(SWEEP);
    let task = |id: &str| {
        let mut command = mpibayes(folder.path(), "sweep sweep.toml --output array");
        for (name, value) in [("ID", id), ("MIN", "1"), ("MAX", "2"), ("COUNT", "2"), ("STEP", "1")] {
            command.env(format!("SLURM_ARRAY_TASK_{name}"), value);
        }
        command
    };
    let first = ends(task("1"), 0, &["task 1/2 does 2", "1/4 method=svgd seed=1: finished", "--collect"]);
    assert!(first.contains("3/4 ") && !first.contains("2/4 "), "{first}");
    let at = |name: &str| folder.path().join(name);
    assert!(!at("array/sweep.csv").exists());
    let says = ["2 of 4 runs", "missing:", "method=svgd,seed=2   not begun"];
    ends(mpibayes(folder.path(), "sweep sweep.toml --output array --collect"), 1, &says);
    ends(task("2"), 0, &["task 2/2 does 2"]);
    ends(mpibayes(folder.path(), "sweep sweep.toml --output array --collect --csv all.csv"), 0, &["wrote all.csv: 4 of 4 runs"]);
    ends(mpibayes(folder.path(), "sweep sweep.toml --output whole"), 0, &[]);
    assert_eq!(table(&at("all.csv")), table(&at("whole/sweep.csv")));
}

#[test]
fn a_run_that_fails_is_told_and_tried_again_last() {
    let sweep = SWEEP.replace("agents = 3\n", "").replace("seed = [1, 2]", "agents = [100, 2]");
    let folder = folder(&sweep);
    for (command, output) in [(mpibayes as fn(&Path, &str) -> Command, "alone"), (on_two_ranks, "ranks")] {
        let run = format!("sweep sweep.toml --output {output}");
        let says = [
            "1/4 method=svgd agents=100: failed: ",
            "cannot be assigned to 100 agents",
            "2/4 method=svgd agents=2: finished",
            "2 finished, 2 failed",
            "failed: method=dsvgd,agents=100",
        ];
        ends(command(folder.path(), &run), 1, &says);
        ends(mpibayes(folder.path(), &format!("{run} --list")), 0, &["method=svgd,agents=100   failed: "]);
        let again = ends(command(folder.path(), &run), 1, &["2 finished, 2 failed"]);
        assert!(again.find("2/4 ").unwrap() < again.find("1/4 ").unwrap(), "{again}");
    }
}

#[test]
fn a_sweep_that_is_stopped_or_killed_goes_on() {
    let long = SWEEP.replace("rounds = 3", "rounds = 20000").replace("seed = 3\n", "seed = 3\nevaluate.every = 0\n");
    let long = long.replace("{ name = \"svgd\", particles = 4, rounds = 2, steps = 5 },\n", "");
    let folder = folder(&long);
    for (command, output) in [(mpibayes as fn(&Path, &str) -> Command, "alone"), (on_two_ranks, "ranks")] {
        let run = format!("sweep sweep.toml --output {output}");
        let often = format!("{run} --set cluster.checkpoint_every=0.05");
        for (signal, code) in [("-USR1", Some(75)), ("-KILL", None)] {
            let mut child = command(folder.path(), &often).spawn().unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap());
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            assert!(line.contains("a sweep of 2 runs"), "{line}");
            let begun = folder.path().join(output).join("method=dsvgd,seed=1/checkpoint.bin");
            let since = Instant::now();
            let mark = folder.path().join(output).join("failed/method=dsvgd,seed=1.txt");
            while !(begun.exists() && mark.exists()) && since.elapsed() < LIMIT {
                std::thread::sleep(Duration::from_millis(2));
            }
            Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
            let mut rest = String::new();
            lines.read_to_string(&mut rest).unwrap();
            let ended = child.wait().unwrap();
            assert_eq!(ended.code(), code, "{rest}");
            if code.is_some() {
                assert!(rest.contains("1/2 method=dsvgd seed=1: stopped"), "{rest}");
                ends(mpibayes(folder.path(), &format!("{run} --list")), 0, &["method=dsvgd,seed=1  begun"]);
            } else {
                ends(mpibayes(folder.path(), &format!("{run} --list")), 0, &["failed: the job ended while"]);
            }
        }
        // The one that was on its way when the job was killed comes last.
        let went = ends(command(folder.path(), &run), 0, &["2 finished, 0 failed"]);
        assert!(went.find("2/2 ").unwrap() < went.find("1/2 ").unwrap(), "{went}");
        assert!(!folder.path().join(output).join("failed").exists());
        let table = table(&folder.path().join(output).join("sweep.csv"));
        assert!(table.len() == 3 && table[1][3] == "20000", "without evaluations the end of the history: {table:?}");
    }
    assert_eq!(
        samples(&folder.path().join("alone"), "method=dsvgd,seed=1"),
        samples(&folder.path().join("ranks"), "method=dsvgd,seed=1")
    );
}
