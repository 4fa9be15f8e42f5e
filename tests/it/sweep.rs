//! `mpibayes sweep`: alone, under `mpirun` and as a job array; stopped, killed, failed and resumed sweeps, and the table of results.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::Launcher;
use std::path::Path;

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
fn folder(sweep: &str) -> Cli {
    let cli = Cli::new();
    let rows: String =
        (0..40).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][(i * 7) % 11 / 6])).collect();
    cli.write("a.csv", rows);
    cli.write("sweep.toml", sweep);
    cli.succeed("import a.csv --test-fraction 0.2 -o a.h5");
    cli
}

/// The table without the columns of time and traffic, which differ between runs.
fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let kept: Vec<usize> =
        (0..names.len()).filter(|&at| names[at] != "seconds" && !names[at].ends_with("_between_ranks")).collect();
    let mut rows = vec![kept.iter().map(|&at| names[at].clone()).collect::<Vec<_>>()];
    for row in reader.records() {
        let row = row.unwrap();
        rows.push(kept.iter().map(|&at| row[at].to_owned()).collect());
    }
    rows
}

#[test]
fn a_sweep_gives_the_same_table_alone_and_on_ranks_and_runs_once() {
    let cli = folder(SWEEP);
    let at = |name: &str| cli.path(name);
    let listed = cli.alone("sweep sweep.toml --list").end(0, &["4 runs over method, seed, in runs/sweep"]).written();
    assert!(listed.matches("not begun").count() == 4 && !at("runs").exists(), "{listed}");

    let says = [
        "a sweep of 4 runs over method, seed",
        "1/4 method=svgd seed=1: finished",
        "4/4 method=dsvgd seed=2: finished",
        ", accuracy 0.",
    ];
    cli.alone("sweep sweep.toml --output alone").end(0, &says);
    cli.mpirun(2, "sweep sweep.toml --output ranks").end(0, &says);
    for name in NAMES {
        assert_eq!(cli.posterior(&format!("alone/{name}")), cli.posterior(&format!("ranks/{name}")), "{name}");
    }
    assert_ne!(cli.posterior("alone/method=svgd,seed=1"), cli.posterior("alone/method=svgd,seed=2"));
    assert!(!at("alone/unfinished").exists());

    let alone = table(&at("alone/sweep.csv"));
    assert_eq!(alone, table(&at("ranks/sweep.csv")));
    assert_eq!(alone[0][..5], ["run", "method", "seed", "step", "final"]);
    assert!(alone[0].contains(&"accuracy".to_owned()));
    // 2 evaluations of each svgd, 3 of each dsvgd.
    assert_eq!(alone.len(), 1 + 2 * 2 + 2 * 3);
    assert_eq!(alone[2][..5], ["method=svgd,seed=1", "svgd", "1", "2", "1"]);
    assert_eq!(alone.iter().filter(|row| row[4] == "1").count(), 4);

    // Finished runs are not repeated, and runs with other settings are refused.
    let written = || NAMES.map(|name| std::fs::metadata(at("alone").join(name).join("result.h5")).unwrap().modified().unwrap());
    let before = written();
    cli.alone("sweep sweep.toml --output alone").end(0, &["4 finished, 0 failed; the table is alone/sweep.csv"]);
    assert_eq!(written(), before);
    assert_eq!(table(&at("alone/sweep.csv")), alone);
    // Of other settings none is begun, and each is named.
    let says = ["temperature is 1.0 there, 2.0 here", "alone/method=dsvgd,seed=2 holds a run with another configuration"];
    for (command, more) in [("sweep", "no run was begun"), ("check", "4 mistakes")] {
        let typed = format!("{command} sweep.toml --set temperature=2 --output alone");
        cli.alone(&typed).end(1, &says).written().contains(more).then_some(()).expect(more);
    }
    // In a log of JSON, each of them is a message of its own.
    let log = cli.alone("sweep sweep.toml --set temperature=2 --output alone --log json").end(1, &says).stderr;
    let messages: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(messages.len() == 5 && messages.iter().all(|message| message["level"] == "error"), "{log}");
    assert_eq!(messages[4]["message"], "no run was begun");
    // A list says so in a few words, and once what to do.
    let listed = cli.stdout("sweep sweep.toml --set temperature=2 --output alone --list");
    assert_eq!(listed.matches("other settings: temperature is 1.0 there, 2.0 here").count(), 4, "{listed}");
    assert_eq!(listed.matches("choose another --output").count(), 1, "{listed}");
    let says = [
        "4 runs over method, seed",
        "svgd       2       3       2                    4           4",
        "4 of the 4 runs are finished",
    ];
    cli.alone("check sweep.toml --output alone").end(0, &says);
    cli.alone("sweep sweep.toml --set seed=2").end(1, &["varies seed, which --set seed=2 sets"]);
}

#[test]
fn the_tasks_of_a_job_array_share_the_runs() {
    let cli = folder(SWEEP);
    let task = |id: &str| {
        let mut launch = cli.alone("sweep sweep.toml --output array");
        for (name, value) in [("ID", id), ("MIN", "1"), ("MAX", "2"), ("COUNT", "2"), ("STEP", "1")] {
            launch = launch.env(&format!("SLURM_ARRAY_TASK_{name}"), value);
        }
        launch
    };
    let first = task("1").end(0, &["2 of them in task 1/2", "1/4 method=svgd seed=1: finished", "--collect"]).written();
    assert!(first.contains("3/4 ") && !first.contains("2/4 "), "{first}");
    let at = |name: &str| cli.path(name);
    assert!(!at("array/sweep.csv").exists());
    let says = ["2 of 4 runs", "missing:", "method=svgd,seed=2   not begun"];
    cli.alone("sweep sweep.toml --output array --collect").end(1, &says);
    task("2").end(0, &["2 of them in task 2/2"]);
    cli.alone("sweep sweep.toml --output array --collect --csv all.csv").end(0, &["wrote all.csv: 4 of 4 runs"]);
    // Another file, in the current folder and in one with a name, is not replaced.
    let rows = cli.read("a.csv");
    for place in ["a.csv", "./a.csv"] {
        let typed = format!("sweep sweep.toml --output array --collect --csv {place}");
        cli.alone(&typed).end(1, &["a.csv: this file is not the table of a sweep, so it is not replaced"]);
    }
    assert_eq!(cli.read("a.csv"), rows);
    cli.alone("sweep sweep.toml --output whole").end(0, &[]);
    assert_eq!(table(&at("all.csv")), table(&at("whole/sweep.csv")));
}

#[test]
fn a_value_in_a_table_that_the_sweep_replaces_is_refused() {
    let cli = folder(SWEEP);
    for command in ["check", "sweep"] {
        let says =
            ["'sweep.method' replaces [method], in which --set method.rounds=2 sets a value without effect", "into the entries"];
        cli.alone(&format!("{command} sweep.toml --set method.rounds=2")).end(1, &says);
    }
    assert!(!cli.exists("runs"));
}

#[test]
fn a_run_and_a_sweep_do_not_share_a_folder() {
    let cli = folder(SWEEP);
    let run = SWEEP.split("[sweep]").next().unwrap().to_owned() + "particles = 1\nrounds = 2\nsteps = 5\n";
    cli.write("run.toml", run);
    cli.succeed("sweep sweep.toml --output both");
    for typed in ["run run.toml --output both", "check run.toml --output both", "resume both"] {
        cli.alone(typed).end(1, &["both: this folder holds other runs, such as those of a sweep"]);
    }
    assert!(!cli.exists("both/config.toml"));
    let said = cli.alone("run run.toml --output one").end(0, &["finished after"]).written();
    assert!(said.contains("bias unknown: a single particle has no spread"), "{said}");
    assert!(cli.stdout("summary one").starts_with("bias unknown: a single particle has no spread"));
    for typed in ["sweep sweep.toml --output one", "check sweep.toml --output one"] {
        cli.alone(typed).end(1, &["one: this is the folder of a run, not of a sweep"]);
    }
}

#[test]
fn a_failed_run_is_reported_and_retried_last() {
    let cli = folder(SWEEP);
    for (launcher, output) in [(Launcher::Alone, "alone"), (Launcher::Mpirun(2), "ranks")] {
        let run = format!("sweep sweep.toml --output {output}");
        cli.launched(launcher, &format!("{run} --task 1/4")).end(0, &["1 finished"]);
        // Its first run has lost a file.
        let first = cli.path(output).join(NAMES[0]);
        std::fs::rename(first.join("result.h5"), first.join("checkpoint.bin")).unwrap();
        let says = [
            "1/4 method=svgd seed=1: failed: ",
            "tuning.bin: the file is missing",
            "2/4 method=svgd seed=2: finished",
            "3 finished, 1 failed",
            "failed: method=svgd,seed=1",
        ];
        cli.launched(launcher, &run).end(1, &says);
        cli.alone(&format!("{run} --list")).end(0, &["method=svgd,seed=1   failed: "]);
        let again = cli.launched(launcher, &run).end(1, &["3 finished, 1 failed"]).written();
        assert!(again.find("2/4 ").unwrap() < again.find("1/4 ").unwrap(), "{again}");
    }
}

#[test]
fn a_run_that_ends_the_job_of_a_sweep_is_named_and_comes_last_the_next_time() {
    let method = "[method]\nname = \"sghmc\"\nsteps = 2000\nburn_in = 1000\nfriction = 0.01\n";
    let cli = folder(&format!(
        "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n{method}[sweep]\n\"method.step\" = [150.0, 0.001]\n"
    ));
    // Either rank may be the first to say so.
    let diverged = "has diverged by step";
    let says = [diverged, "this ends the job during the run runs/sweep/step=150.0: the same command continues"];
    let first = cli.mpirun(2, "sweep sweep.toml").end(70, &says).written();
    assert!(!first.contains("2/2"), "{first}");
    let listed = cli.alone("sweep sweep.toml --list").end(0, &[diverged, "not begun"]).written();
    assert!(listed.contains("step=150.0") && listed.contains("failed: rank "), "{listed}");
    cli.mpirun(2, "sweep sweep.toml").end(70, &["2/2 step=0.001: finished", diverged]);
    // One process goes on by itself.
    let says = ["1/2 step=150.0: failed: ", diverged, "1 finished, 1 failed"];
    cli.alone("sweep sweep.toml --output alone").end(1, &says);
    // Nothing is written if no run is finished.
    let text = cli.read("sweep.toml");
    cli.write("fails.toml", text.replace("0.001", "160.0"));
    cli.alone("sweep fails.toml").end(1, &["0 finished, 2 failed; no table was written"]);
    assert!(!cli.exists("runs/fails/sweep.csv"));
}

#[test]
fn all_runs_are_checked_against_their_data_before_the_first_begins() {
    let sweep = SWEEP.replace("agents = 3\n", "").replace("seed = [1, 2]", "agents = [2, 100]");
    let cli = folder(&sweep);
    let says = ["'agents' must be at most 32, the number of training rows (in the run method=svgd,agents=100)"];
    for (launcher, options) in [(Launcher::Alone, ""), (Launcher::Mpirun(2), ""), (Launcher::Alone, " --list")] {
        let written = cli.launched(launcher, &format!("sweep sweep.toml{options}")).end(1, &says).written();
        assert!(!written.contains("1/4") && !cli.exists("runs"), "{written}");
    }
}

#[test]
fn a_stopped_or_killed_sweep_resumes() {
    let long = SWEEP.replace("rounds = 3", "rounds = 30000").replace("seed = 3\n", "seed = 3\nevaluate.every = 0\n");
    let long = long.replace("{ name = \"svgd\", particles = 4, rounds = 2, steps = 5 },\n", "");
    let cli = folder(&long);
    for (launcher, output) in [(Launcher::Alone, "alone"), (Launcher::Mpirun(2), "ranks")] {
        let run = format!("sweep sweep.toml --output {output}");
        let often = format!("{run} --set cluster.checkpoint_every=0.02");
        for signal in [libc::SIGUSR1, libc::SIGKILL] {
            let mut running = cli.launched(launcher, &often).start();
            let is_on_its_way =
                || ["seed=1/checkpoint.bin", "unfinished/seed=1.txt"].iter().all(|file| cli.path(output).join(file).exists());
            running.wait_until("the first checkpoint of its first run", |_| is_on_its_way()).unwrap();
            cli.alone(&format!("{run} --list")).end(0, &["seed=1  running: process ", " on "]);
            cli.alone(&format!("check sweep.toml --output {output}")).end(0, &["note: 1 of the 2 runs is carried out now"]);
            running.signal(signal);
            let ended = running.finish().unwrap();
            cli.wait_until_released(&format!("{output}/seed=1"));
            let is_expected = if signal == libc::SIGUSR1 { ended.was_stopped() } else { ended.code == -signal };
            assert!(is_expected, "{}: {}", ended.code, ended.stderr);
            assert!(ended.stderr.contains("a sweep of 2 runs"), "{}", ended.stderr);
            if signal == libc::SIGUSR1 {
                assert!(ended.stderr.contains("1/2 seed=1: stopped"), "{}", ended.stderr);
                cli.alone(&format!("{run} --list")).end(0, &["seed=1  begun"]);
            } else {
                cli.alone(&format!("{run} --list")).end(0, &["failed: the job ended during this run"]);
            }
        }
        // The run that was active when the job was killed comes last.
        let went = cli.launched(launcher, &run).end(0, &["2 finished, 0 failed"]).written();
        assert!(went.find("2/2 ").unwrap() < went.find("1/2 ").unwrap(), "{went}");
        assert!(!cli.path(output).join("unfinished").exists());
        let table = table(&cli.path(output).join("sweep.csv"));
        assert!(table.len() == 3 && table[1][3] == "30000", "without evaluations the end of the history: {table:?}");
    }
    assert_eq!(cli.posterior("alone/seed=1"), cli.posterior("ranks/seed=1"));
}

/// `data.seed` keeps the shards while the seed of the run varies: the mean of what the first agent sends depends on its rows alone.
#[test]
fn runs_of_different_seeds_can_have_the_same_shards() {
    let text =
        SWEEP.split_once("[method]").unwrap().0.to_owned() + "[method]\nname = \"pvi\"\nrounds = 1\n[sweep]\nseed = [1, 2]\n";
    let cli = folder(&text);
    let difference = |output: &str, set: &str| {
        cli.alone(&format!("sweep sweep.toml --output {output} {set}")).end(0, &["2 finished"]);
        let means = [1, 2].map(|seed| {
            let text = cli.stdout(&format!("summary {output}/seed={seed} --json"));
            let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
            let rows = summary["coefficients"]["rows"].as_array().unwrap();
            rows.iter().map(|row| row["mean"].as_f64().unwrap()).collect::<Vec<f64>>()
        });
        means[0].iter().zip(&means[1]).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
    };
    let (apart, same) = (difference("apart", ""), difference("same", "--set data.seed=7"));
    assert!(same < 0.1 * apart && apart > 0.01, "{same} beside {apart}");
}
