//! `mpibayes run` from start to end, alone and under mpirun: the same bits, also when stopped in between; and what it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::launcher::unlaunched;
use mpibayes::results::{RunFile, Samples, Values};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A command that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(240);

const RUN: &str = "\
seed = 3
agents = 3
[data]
file = \"a.h5\"
[model]
name = \"logistic\"
[method]
name = \"dsvgd\"
particles = 4
rounds = 6
local_steps = 5
distillation_steps = 5
batch = 6
";

/// Rows of two classes; `shift` makes them others.
fn csv(shift: usize) -> String {
    (0..40).map(|i| format!("{},{},{}\n", (i * 7 + shift) % 11, (i * 5) % 13, ["no", "yes"][(i * 7 + shift) % 11 / 6])).collect()
}

/// A folder with a run file and its data.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.toml"), RUN).unwrap();
    import(folder.path(), 0);
    folder
}

/// Imports rows as `a.h5`, over an older one.
fn import(folder: &Path, shift: usize) {
    std::fs::write(folder.join("a.csv"), csv(shift)).unwrap();
    let output = mpibayes(folder, "import a.csv --test-fraction 0.2 --force -o a.h5").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

fn prepared(mut command: Command, folder: &Path) -> Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program in one process.
fn mpibayes(folder: &Path, arguments: &str) -> Command {
    let mut command = unlaunched(env!("CARGO_BIN_EXE_mpibayes"));
    command.args(arguments.split(' '));
    prepared(command, folder)
}

/// The program on two ranks, the second of them in another folder if one is named.
fn on_two_ranks(folder: &Path, second: Option<&Path>, arguments: &str) -> Command {
    let mut command = unlaunched("mpirun");
    command.arg("--oversubscribe");
    for (rank, place) in [Some(folder), second.or(Some(folder))].into_iter().flatten().enumerate() {
        if rank > 0 {
            command.arg(":");
        }
        command.args(["-n", "1", "--wdir"]).arg(place).arg(env!("CARGO_BIN_EXE_mpibayes")).args(arguments.split(' '));
    }
    prepared(command, folder)
}

/// Kills a child at the latest when the limit is over, so that a test that hangs fails.
fn ended(mut child: Child) -> Output {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it hangs: {}", said(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn output(mut command: Command) -> Output {
    ended(command.spawn().expect("mpirun of Open MPI (openmpi-bin) is on the PATH"))
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Asserts success, and that what was said contains this.
fn went_well(command: Command, says: &[&str]) {
    let output = output(command);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(output.stdout.is_empty() && says.iter().all(|says| error.contains(says)), "{error:?} must say {says:?}");
}

/// Asserts exit code 1 and one message of this program that contains this.
fn refused(command: Command, says: &[&str]) {
    let output = output(command);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let messages: Vec<&str> = error.lines().filter(|line| line.starts_with("mpibayes:")).collect();
    assert_eq!(messages.len(), 1, "{error}");
    assert!(messages[0].starts_with("mpibayes: error: "), "{error}");
    assert!(says.iter().all(|says| messages[0].contains(says)), "{error:?} must say {says:?}");
}

/// Waits until a run says that it has begun; gives what it says then.
fn begun(child: &mut Child) -> BufReader<ChildStderr> {
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("mpibayes: dsvgd") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it began");
    }
    lines
}

/// Starts a run and asks it to save itself and stop as soon as it says that it has begun.
fn stopped(mut command: Command) {
    let mut child = command.spawn().unwrap();
    let mut lines = begun(&mut child);
    let asked = Command::new("kill").args(["-USR1", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(ended(child).status.code(), Some(75), "{rest}");
    assert_eq!(rest.matches("mpibayes: saving, then stopping").count(), 1, "{rest}");
    assert!(rest.contains("stopped and saved"), "{rest}");
}

fn posterior(folder: &Path, run: &str) -> Samples {
    RunFile::open(&folder.join(run).join("result.h5")).unwrap().samples("posterior").unwrap()
}

/// What lies in the folder of a run.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_bits_do_not_depend_on_ranks_and_a_finished_run_stays_as_it_is() {
    let folder = folder();
    let begins = "dsvgd on the model logistic: 3 agents of 10 to 11 rows, ";
    went_well(mpibayes(folder.path(), "run run.toml --output one"), &[begins, " thread", "finished", "one/result.h5"]);
    let command = on_two_ranks(folder.path(), None, "run run.toml --output two");
    went_well(command, &[begins, "2 ranks × 1 thread, in two", "two/result.h5"]);
    assert_eq!(posterior(folder.path(), "one"), posterior(folder.path(), "two"));
    // The control: another seed gives other bits.
    went_well(mpibayes(folder.path(), "run run.toml --set seed=4 --output three"), &[]);
    assert_ne!(posterior(folder.path(), "one"), posterior(folder.path(), "three"));

    let before = content(&folder.path().join("one"));
    let names: Vec<&str> = before.iter().map(|file| file.0.as_str()).collect();
    assert_eq!(names, ["config.toml", "data.digest", "result.h5"]);
    went_well(mpibayes(folder.path(), "run run.toml --output one"), &["the run in one is finished"]);
    went_well(on_two_ranks(folder.path(), None, "run run.toml --output one"), &["the run in one is finished"]);
    assert_eq!(content(&folder.path().join("one")), before);
}

/// A hundred agents of four rows each on four ranks, twenty of them drawn in each round.
#[test]
fn a_hundred_agents_share_four_ranks() {
    let folder = folder();
    let text: String =
        (0..500).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][(i * 7) % 11 / 6])).collect();
    std::fs::write(folder.path().join("a.csv"), text).unwrap();
    assert!(output(mpibayes(folder.path(), "import a.csv --test-fraction 0.2 --force -o a.h5")).status.success());
    for cavity in ["\"kde\"", "{sites={}}"] {
        let many = format!(
            "run run.toml --set agents=100 --set method.name=\"p-dsvgd\" --set method.schedule={{subset=20}} --set method.cavity={cavity}"
        );
        let mut four = unlaunched("mpirun");
        four.args(["--oversubscribe", "-n", "4"]).arg(env!("CARGO_BIN_EXE_mpibayes"));
        four.args(many.split(' ').chain(["--output", "four"]));
        went_well(prepared(four, folder.path()), &["100 agents of 4 rows, 4 ranks × 1 thread", "finished"]);
        went_well(mpibayes(folder.path(), &format!("{many} --output one")), &["100 agents"]);
        assert_eq!(posterior(folder.path(), "one"), posterior(folder.path(), "four"));
        for run in ["one", "four"] {
            std::fs::remove_dir_all(folder.path().join(run)).unwrap();
        }
    }
}

#[test]
fn a_stopped_run_goes_on_to_the_bits_of_an_undisturbed_one_and_takes_no_other() {
    let folder = folder();
    // So long that the signal comes in time.
    let long = "--set method.rounds=1500 --set evaluate.every=0";
    let run = |output: &str| format!("run run.toml {long} --output {output}");
    went_well(mpibayes(folder.path(), &run("whole")), &[]);
    stopped(mpibayes(folder.path(), &run("alone")));
    stopped(on_two_ranks(folder.path(), None, &run("ranks")));

    let begun = content(&folder.path().join("alone"));
    let other = format!("{} --set method.particles=5", run("alone"));
    refused(mpibayes(folder.path(), &other), &["alone", "method.particles: 4 there, 5 here", "--output"]);
    import(folder.path(), 1);
    for command in [mpibayes(folder.path(), &run("alone")), on_two_ranks(folder.path(), None, &run("alone"))] {
        refused(command, &["alone holds a run that was begun on other data", "a.h5", "--output"]);
    }
    assert_eq!(content(&folder.path().join("alone")), begun);

    import(folder.path(), 0);
    std::fs::rename(folder.path().join("a.h5"), folder.path().join("b.h5")).unwrap();
    // Neither the threads nor the place of the data make it another run.
    let moved = "--set data.file=b.h5 --set cluster.threads=2 --set cluster.checkpoint_every=0.05";
    went_well(on_two_ranks(folder.path(), None, &format!("{} {moved}", run("alone"))), &["going on after", "finished"]);
    went_well(mpibayes(folder.path(), &format!("{} {moved}", run("ranks"))), &["going on after", "finished"]);
    for run in ["alone", "ranks"] {
        assert_eq!(posterior(folder.path(), run), posterior(folder.path(), "whole"), "{run}");
        assert!(!folder.path().join(run).join("checkpoint.bin").exists());
    }
}

#[test]
fn an_error_on_one_rank_is_told_once_and_ends_both() {
    let (folder, other) = (folder(), tempfile::tempdir().unwrap());
    let command = || on_two_ranks(folder.path(), Some(other.path()), "run run.toml --output out");
    refused(command(), &["rank 1: a.h5: cannot open"]);
    import(other.path(), 1);
    refused(command(), &["rank 1: a.h5", "another dataset than on rank 0"]);
    assert!(!folder.path().join("out").exists(), "nothing was begun");
    // The control: a copy is as good.
    std::fs::copy(folder.path().join("a.h5"), other.path().join("a.h5")).unwrap();
    went_well(command(), &["finished"]);
    // What all ranks find wrong is rank 0's to say.
    refused(on_two_ranks(folder.path(), None, "run run.toml --set model.name=x --output out"), &["rank 0", "\"x\" is unknown"]);
}

/// A method that serves several of a user's is called what the user called it.
#[test]
fn a_failure_names_the_method_that_was_asked_for() {
    let folder = folder();
    let (head, _) = RUN.split_once("[method]").unwrap();
    for (method, more) in [("ec_sgld", "coupling = 0"), ("easgd", "")] {
        let text = format!("{head}[method]\nname = \"{method}\"\nstep = 1e300\n{more}\n");
        std::fs::write(folder.path().join("run.toml"), text).unwrap();
        let error = said(&output(mpibayes(folder.path(), "run run.toml --output failed")));
        let told: Vec<&str> = error.lines().filter(|line| line.contains("has diverged")).collect();
        assert!(told.len() == 1 && told[0].contains(&format!("{method} performing")), "{error}");
    }
}

/// Ends a run without a word, as a failing machine does: the process itself, or one of the ranks that a launcher has started.
fn kill_one(child: &Child) {
    let ranks = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        // PID (NAME) STATE PARENT ...
        let (pid, rest) = stat.split_once(" (mpibayes) ")?;
        (rest.split(' ').nth(1)? == child.id().to_string()).then(|| pid.to_owned())
    });
    let victim = ranks.last().unwrap_or_else(|| child.id().to_string());
    // It may have ended by itself in between.
    Command::new("kill").args(["-KILL", &victim]).stderr(Stdio::null()).status().unwrap();
}

/// The paths of the particles so far: draws (particles × evaluations × parameters), none where a checkpoint came before the first
/// evaluation; and steps of the history.
fn paths(folder: &Path, run: &str) -> (Option<ndarray::Array3<f64>>, Vec<u64>) {
    let file = RunFile::open(&folder.join(run).join("result.h5")).unwrap();
    let drawn = file.sample_groups().unwrap().contains(&"particle_paths".to_owned()).then(|| {
        let Values::F64(values) = file.samples("particle_paths").unwrap().values else { panic!("not in f64") };
        values
    });
    let has_history = file.tables().unwrap().contains(&"history".to_owned());
    (drawn, if has_history { file.table("history").unwrap().step } else { Vec::new() })
}

/// How many evaluations have left a draw of each particle.
fn evaluations(draws: &Option<ndarray::Array3<f64>>) -> usize {
    draws.as_ref().map_or(0, |draws| draws.dim().1)
}

/// Twenty kills at random moments: after each the file opens and holds a beginning of what the undisturbed run has drawn, and the
/// same command goes on to the same bits.
#[test]
fn a_run_that_is_killed_again_and_again_loses_nothing_that_was_written() {
    let folder = folder();
    let long = "--set method.rounds=30000 --set evaluate.particle_paths=true --set evaluate.every=300 --set cluster.checkpoint_every=0.03";
    let run = |output: &str| format!("run run.toml {long} --output {output}");
    went_well(mpibayes(folder.path(), &run("whole")), &[]);
    let (whole, steps) = paths(folder.path(), "whole");
    let whole = whole.unwrap();
    assert_eq!((whole.dim().1, steps.len()), (100, 30000));
    let delays =
        mpibayes::random::Seed(11).stream(mpibayes::random::Who::Run, 0, mpibayes::random::Purpose::Synthetic).permutation(20);
    let (mut opened, mut grown) = (0, 0);
    for (kill, delay) in delays.into_iter().enumerate() {
        let command = run("killed");
        let mut child = match kill % 2 {
            0 => mpibayes(folder.path(), &command),
            _ => on_two_ranks(folder.path(), None, &command),
        }
        .spawn()
        .unwrap();
        let _stderr = begun(&mut child);
        std::thread::sleep(Duration::from_millis(10 * delay as u64));
        // Where others keep the machine busy these moments are too early for a draw: every other pair of kills waits for one.
        let has_grown =
            || folder.path().join("killed/result.h5").exists() && evaluations(&paths(folder.path(), "killed").0) > grown;
        let since = Instant::now();
        while kill % 4 < 2 && !has_grown() && since.elapsed() < LIMIT && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(child.try_wait().unwrap().is_none(), "kill {kill}: the run is too short for 20 kills");
        kill_one(&child);
        ended(child);
        if folder.path().join("killed/result.h5").exists() {
            let (draws, rows) = paths(folder.path(), "killed");
            let drawn = evaluations(&draws);
            if let Some(draws) = draws {
                assert_eq!(draws, whole.slice(ndarray::s![.., ..drawn, ..]), "kill {kill}");
            }
            // The history is written with the draws: an evaluation for every 300 rounds of it.
            assert_eq!(rows, steps[..rows.len()], "kill {kill}");
            assert!(drawn.abs_diff(rows.len() / 300) <= 1, "kill {kill}: {drawn} draws, {} rounds", rows.len());
            // A kill between the file and its checkpoint leaves draws that are made anew, so that it may hold fewer for a while.
            (opened, grown) = (opened + 1, grown.max(drawn));
        }
    }
    assert!(opened == 20 && (10..100).contains(&grown), "{opened} files opened, {grown} draws");
    // In one process: two ranks on a busy machine would take minutes.
    went_well(mpibayes(folder.path(), &run("killed")), &["going on after", "finished"]);
    assert_eq!(paths(folder.path(), "killed"), (Some(whole), steps));
    assert_eq!(posterior(folder.path(), "killed"), posterior(folder.path(), "whole"));
}

#[test]
fn a_partition_is_dealt_alike_on_any_ranks_and_refused_alike() {
    let folder = folder();
    let run = |partition: &str, output: &str| format!("run run.toml --set data.partition={partition} --output {output}");
    // Of 17 and 15 training rows: 0.45 · 17 + 0.05 · 15 = 8.4 for two agents, 0.1 · 17 + 0.9 · 15 = 15.2 for the third.
    let share = run("{label_share=0.9}", "one");
    went_well(mpibayes(folder.path(), &share), &["3 agents of 8 to 15 rows, "]);
    went_well(on_two_ranks(folder.path(), None, &run("{label_share=0.9}", "two")), &["3 agents of 8 to 15 rows, 2 ranks"]);
    assert_eq!(posterior(folder.path(), "one"), posterior(folder.path(), "two"));
    let config = std::fs::read_to_string(folder.path().join("one/config.toml")).unwrap();
    assert!(config.contains("[data.partition]\nlabel_share = 0.9\n"), "{config}");
    // The control: the default is another run, and says so.
    went_well(mpibayes(folder.path(), "run run.toml --output three"), &["3 agents of 10 to 11 rows, "]);
    assert_ne!(posterior(folder.path(), "one"), posterior(folder.path(), "three"));
    assert!(std::fs::read_to_string(folder.path().join("three/config.toml")).unwrap().contains("partition = \"equal\"\n"));
    refused(
        mpibayes(folder.path(), "run run.toml --output one"),
        &["data.partition: { label_share = 0.9 } there, \"equal\" here"],
    );

    for (partition, says) in [
        ("{sizes=[1,2]}", "2 sizes for 3 agents"),
        ("{labels=[[\"no\"],[\"yes\"],[\"maybe\"]]}", "no class \"maybe\"; there are: no, yes"),
        ("by_labels", "\"by_labels\" is unknown; did you mean \"by_label\"?"),
    ] {
        refused(mpibayes(folder.path(), &run(partition, "four")), &[says]);
        refused(on_two_ranks(folder.path(), None, &run(partition, "four")), &[says]);
    }
}
