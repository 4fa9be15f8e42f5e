//! Jobs as an operator sees them: ranks that hang, time limits, logs, timelines, what each rank did and what happened.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::{Launcher, Running};
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

const RUN: &str = r#"agents = 3
[data]
file = "a.h5"
[model]
name = "logistic"
[method]
name = "svgd"
particles = 4
rounds = 300
[evaluate]
every = 0
bias = false
[cluster]
checkpoint_every = 0.2
"#;

fn cli_with_run() -> Cli {
    let cli = Cli::new();
    cli.write("run.toml", RUN);
    let rows: String =
        (0..600).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][(i * 7) % 11 / 6])).collect();
    cli.write("a.csv", rows);
    cli.succeed("import a.csv --test-fraction 0.2 -o a.h5");
    cli
}

fn wait_for_checkpoint(cli: &Cli, running: &mut Running, run: &str) {
    running.wait_until("a checkpoint", |_| cli.exists(&format!("{run}/checkpoint.bin"))).unwrap();
}

#[test]
fn a_silent_rank_is_named_and_the_job_can_be_resumed() {
    let cli = cli_with_run();
    cli.stdout("run run.toml --output whole");
    for silent in [2, 0] {
        let run = format!("hangs{silent}");
        let mut running = cli.mpirun(3, &format!("run run.toml --output {run} --max-silence 5s")).start();
        wait_for_checkpoint(&cli, &mut running, &run);
        running.signal_rank(silent, libc::SIGSTOP).unwrap();
        let ended = running.finish().unwrap();
        assert!(ended.failed_with(75), "{}: {}", ended.code, ended.stderr);
        let says = format!("has heard nothing from rank {silent} on ");
        assert!(ended.stderr.contains(&says) && ended.stderr.contains("It was "), "{}", ended.stderr);
        assert!(ended.stderr.contains("resume") && ended.stderr.contains("is complete"), "{}", ended.stderr);
        cli.wait_until_released(&run);
        cli.alone(&format!("run run.toml --output {run}")).succeed(&["resuming after round"]);
        assert_eq!(cli.posterior(&run), cli.posterior("whole"));
        // The control: the undisturbed run has no such event.
        let summary = cli.stdout(&format!("summary {run}"));
        assert!(summary.contains("what happened") && summary.contains(&says), "{summary}");
        assert!(!cli.stdout("summary whole").contains("what happened"));
    }
}

#[test]
fn a_job_that_is_suspended_as_a_whole_goes_on() {
    let cli = cli_with_run();
    let mut running = cli.mpirun(2, "run run.toml --output run --max-silence 2s").start();
    wait_for_checkpoint(&cli, &mut running, "run");
    [0, 1].iter().for_each(|&rank| running.signal_rank(rank, libc::SIGSTOP).unwrap());
    // Three times as long as a rank may be silent.
    std::thread::sleep(Duration::from_secs(6));
    [0, 1].iter().for_each(|&rank| running.signal_rank(rank, libc::SIGCONT).unwrap());
    let ended = running.finish().unwrap();
    assert!(ended.code == 0 && !ended.stderr.contains("heard nothing"), "{}", ended.stderr);
}

#[test]
fn a_run_stops_before_its_time_is_over() {
    let cli = cli_with_run();
    let long = "run run.toml --set method.rounds=100000000 --output run";
    let ended = cli.mpirun(2, &format!("{long} --max-time 00:00:06")).end(75, &["the time limit is ", "stopped and saved"]);
    assert_eq!(ended.stderr.matches("saving, then stopping").count(), 1, "{}", ended.stderr);
    let first = cli.results("run").info().state.done;
    // A second is less than the margin: the job saves as soon as it can.
    cli.alone(&format!("{long} --max-time 1s")).end(75, &["resuming after round", "stopped and saved", "no round was finished"]);
    assert!(cli.results("run").info().state.done >= first);
    cli.refuse_usage(&format!("{long} --max-time soon"), "02:00:00");
}

#[test]
fn a_log_in_json_has_an_object_in_each_line() {
    let cli = cli_with_run();
    let ended = cli.mpirun(2, "run run.toml --output run --log json").succeed(&[]);
    let lines: Vec<serde_json::Value> = ended.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().all(|line| ["time", "level", "host", "rank", "message"].iter().all(|key| !line[key].is_null())));
    assert!(lines.iter().any(|line| line["message"].as_str().unwrap().starts_with("svgd on the model logistic")));
    let refused = cli.alone("run no.toml --log json").end(1, &[]);
    let line: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    assert!(line["level"] == "error" && line["message"].as_str().unwrap().contains("no.toml"), "{line}");
}

#[test]
fn a_timeline_has_the_tasks_of_all_agents_and_the_ranks_add_up() {
    let cli = cli_with_run();
    cli.mpirun(2, "run run.toml --output run --timeline t.json").succeed(&["timeline in t.json"]);
    let timeline: serde_json::Value = serde_json::from_str(&cli.read("t.json")).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let names: BTreeSet<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    for name in ["task of agent 0", "task of agent 1", "task of agent 2", "server", "process_name"] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    let ranks: BTreeSet<u64> = events.iter().map(|event| event["pid"].as_u64().unwrap()).collect();
    assert_eq!(ranks.into_iter().collect::<Vec<_>>(), [0, 1]);

    let operation = &cli.json("summary run --json")["operation"];
    let ranks = operation["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 2);
    for rank in ranks {
        let value = |name: &str| rank[name].as_f64().unwrap();
        let parts: f64 = ["computing", "messages", "saving", "idle"].map(value).iter().sum();
        assert!((parts / value("seconds") - 1.0).abs() < 1e-6, "{rank}");
        assert!(value("peak_memory") > 1e6 && value("responses") >= 60.0 && value("thread_seconds") > 0.0, "{rank}");
        assert!(value("response_median") <= value("response_longest") && !rank["host"].as_str().unwrap().is_empty(), "{rank}");
    }
    // Each rank has sent something to the other.
    let pairs = operation["between_ranks"].as_array().unwrap();
    assert!(pairs.iter().all(|pair| pair["messages"].as_u64().unwrap() >= 60) && pairs.len() == 2, "{pairs:?}");
    let text = cli.stdout("summary run --ranks");
    for part in ["ranks of the last job", "bytes between ranks", " in the last job", "what happened", "finished after"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn events_survive_a_job_that_is_killed_and_one_that_is_stopped() {
    let cli = cli_with_run();
    let run = "run run.toml --set method.rounds=2000 --output run";
    let mut running = cli.mpirun(2, run).start();
    wait_for_checkpoint(&cli, &mut running, "run");
    running.signal(libc::SIGKILL);
    running.finish().unwrap();
    cli.wait_until_released("run");
    let mut running = cli.mpirun(2, run).start();
    running.wait_until("its first message", |running| running.stderr().contains(" on the model ")).unwrap();
    running.signal(libc::SIGUSR1);
    assert!(running.finish().unwrap().was_stopped(), "the run is too short");
    cli.alone(run).succeed(&["finished"]);
    let texts: Vec<String> = cli.results("run").events().into_iter().map(|event| event.text).collect();
    assert_eq!(texts.len(), 5, "{texts:?}");
    assert!(texts[1].contains("was killed or has crashed") && texts[2].starts_with("stopped and saved after round"));
    assert!(texts[3].contains("resuming") && !texts[3].contains("was killed") && texts[4].starts_with("finished"), "{texts:?}");
    // Everything is in the result file.
    assert!(!cli.exists("run/events.jsonl"));
}

#[test]
fn a_folder_that_a_job_on_another_host_may_use_is_watched() {
    let cli = cli_with_run();
    cli.stop("run", || cli.mpirun(2, "run run.toml --output run"));
    fs::write(cli.path("run/job.txt"), "Slurm job 7 on elsewhere\nhost: elsewhere\nrestarts: 0\nprocess: 1 2\n").unwrap();
    let mut running = cli.alone("run run.toml --output run").start();
    running.wait_until("it watches", |running| running.stderr().contains("Slurm job 7 on elsewhere used run last")).unwrap();
    // The other job renews its file.
    fs::write(cli.path("run/job.txt"), "Slurm job 7 on elsewhere\nhost: elsewhere\nrestarts: 0\nprocess: 1 2\nrenewals: 1\n")
        .unwrap();
    let ended = running.finish().unwrap();
    assert!(ended.code == 1 && ended.stderr.contains("run is used by Slurm job 7 on elsewhere"), "{}", ended.stderr);
    // A job that is to stop does not watch to the end.
    for launcher in [Launcher::Alone, Launcher::Mpirun(2)] {
        let mut running = cli.launched(launcher, "run run.toml --output run").start();
        running.wait_until("it watches", |running| running.stderr().contains("Slurm job 7 on elsewhere used run last")).unwrap();
        running.signal(libc::SIGUSR1);
        let ended = running.finish().unwrap();
        assert!(ended.was_stopped() && ended.stderr.contains("stopped before the run resumed"), "{}", ended.stderr);
    }
    // A file that is gone is that of a job that has ended.
    fs::remove_file(cli.path("run/job.txt")).unwrap();
    cli.alone("run run.toml --output run").succeed(&["finished"]);
    assert!(!cli.exists("run/job.txt"));
}
