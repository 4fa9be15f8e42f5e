//! `mpibayes run`, alone and under `mpirun`: runs have the same bits, also when stopped or killed in between, and mismatches are refused.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::{Cli, Launch};
use crate::launcher::Running;
use mpibayes::random::{Purpose, Seed, Who};
use mpibayes::results::Values;
use std::path::Path;

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

/// Rows of two classes, different for each `shift`.
fn csv(shift: usize) -> String {
    (0..40).map(|i| format!("{},{},{}\n", (i * 7 + shift) % 11, (i * 5) % 13, ["no", "yes"][(i * 7 + shift) % 11 / 6])).collect()
}

/// A folder with a run file and its data.
fn folder() -> Cli {
    let cli = Cli::new();
    cli.write("run.toml", RUN);
    import(&cli, 0);
    cli
}

/// Imports rows as `a.h5` and replaces an older one.
fn import(cli: &Cli, shift: usize) {
    cli.write("a.csv", csv(shift));
    cli.succeed("import a.csv --test-fraction 0.2 --force -o a.h5");
}

/// Stops a run as soon as it has begun, see [`Cli::stop`].
fn stop(cli: &Cli, run: &str, launch: impl Fn() -> Launch) {
    let messages = cli.stop(run, launch).stderr;
    assert_eq!(messages.matches("saving, then stopping").count(), 1, "{messages}");
    assert!(messages.contains("stopped and saved"), "{messages}");
}

/// The files in a folder and their content.
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
fn draws_do_not_depend_on_ranks_and_a_finished_run_is_left_unchanged() {
    let cli = folder();
    let begins = "dsvgd on the model logistic: 3 agents of 10 to 11 rows, ";
    cli.alone("run run.toml --output one").report(&[begins, " thread", "finished", "one/result.h5"]);
    let command = cli.mpirun(2, "run run.toml --output two");
    command.report(&[begins, "2 ranks × 1 thread, in two", "two/result.h5"]);
    assert_eq!(cli.posterior("one"), cli.posterior("two"));
    // The control: another seed gives other bits.
    cli.alone("run run.toml --set seed=4 --output three").report(&[]);
    assert_ne!(cli.posterior("one"), cli.posterior("three"));

    let before = content(&cli.path("one"));
    let names: Vec<&str> = before.iter().map(|file| file.0.as_str()).collect();
    assert_eq!(names, ["config.toml", "data.digest", "result.h5"]);
    cli.alone("run run.toml --output one").report(&["the run in one is finished"]);
    cli.mpirun(2, "run run.toml --output one").report(&["the run in one is finished"]);
    assert_eq!(content(&cli.path("one")), before);
}

/// A hundred agents of four rows each, of which twenty are drawn in each round.
#[test]
fn a_hundred_agents_on_four_ranks_have_the_draws_of_one_process() {
    let cli = folder();
    let text: String =
        (0..500).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][(i * 7) % 11 / 6])).collect();
    cli.write("a.csv", text);
    cli.succeed("import a.csv --test-fraction 0.2 --force -o a.h5");
    for cavity in ["\"kde\"", "{sites={}}"] {
        let many = format!(
            "run run.toml --set agents=100 --set method.name=\"p_dsvgd\" --set method.schedule={{subset=20}} --set method.cavity={cavity}"
        );
        let messages = ["100 agents of 4 rows, 4 ranks × 1 thread", "finished"];
        cli.mpirun(4, &format!("{many} --output four")).report(&messages);
        cli.alone(&format!("{many} --output one")).report(&["100 agents"]);
        assert_eq!(cli.posterior("one"), cli.posterior("four"));
        for run in ["one", "four"] {
            std::fs::remove_dir_all(cli.path(run)).unwrap();
        }
    }
}

#[test]
fn a_stopped_run_resumes_with_the_same_draws_and_refuses_other_settings_or_data() {
    let cli = folder();
    // Long enough for a signal.
    let long = "--set method.rounds=1500 --set evaluate.every=0";
    let run = |output: &str| format!("run run.toml {long} --output {output}");
    cli.alone(&run("whole")).report(&[]);
    stop(&cli, "alone", || cli.alone(&run("alone")));
    stop(&cli, "ranks", || cli.mpirun(2, &run("ranks")));
    // `timeout` sends a signal to a process and to its group: two interrupts at once are one.
    cli.stop_by(&[libc::SIGINT, libc::SIGINT], "interrupted", || cli.alone(&run("interrupted")));

    let begun = content(&cli.path("alone"));
    let other = format!("{} --set method.particles=5", run("alone"));
    cli.alone(&other).refuse(&["alone", "method.particles is 4 there, 5 here", "--output"]);
    import(&cli, 1);
    for command in [cli.alone(&run("alone")), cli.mpirun(2, &run("alone"))] {
        command.refuse(&["alone holds a run that was begun on other data", "a.h5", "--output"]);
    }
    assert_eq!(content(&cli.path("alone")), begun);

    import(&cli, 0);
    std::fs::rename(cli.path("a.h5"), cli.path("b.h5")).unwrap();
    // Other threads or another path of the data do not make it another run.
    let moved = "--set data.file=b.h5 --set cluster.threads=2 --set cluster.checkpoint_every=0.05";
    // What was found before the run is not measured again.
    let kept = ["alone", "ranks"].map(|run| cli.path(run).join("tuning.bin"));
    assert!(kept.iter().all(|file| file.exists()));
    // One copy of it is enough.
    let mut damaged = std::fs::read(&kept[0]).unwrap();
    damaged[100] ^= 1;
    std::fs::write(&kept[0], damaged).unwrap();
    std::fs::remove_file(&kept[1]).unwrap();
    let says = ["tuning.bin: ", "Its copy alone/tuning.copy.bin is used", "resuming after", "finished"];
    let resumed = cli.mpirun(2, &format!("{} {moved}", run("alone"))).succeed(&says);
    assert!(!resumed.written().contains("finding the mode"), "{}", resumed.written());
    cli.alone(&format!("{} {moved}", run("ranks"))).report(&["resuming after", "finished"]);
    assert!(!kept.iter().any(|file| file.exists() || file.with_file_name("tuning.copy.bin").exists()));
    for run in ["alone", "ranks"] {
        assert_eq!(cli.posterior(run), cli.posterior("whole"), "{run}");
        assert!(!cli.path(run).join("checkpoint.bin").exists());
    }
}

#[test]
fn an_error_on_one_rank_is_reported_once_and_ends_the_job() {
    let (cli, other) = (folder(), Cli::new());
    let command = || cli.mpirun_apart(&other, "run run.toml --output out");
    command().refuse(&["rank 1: the data of the run, a.h5, do not exist here: every rank needs this file"]);
    import(&other, 1);
    command().refuse(&["rank 1: a.h5", "this rank sees another dataset"]);
    assert!(!cli.exists("out"), "the refused run has a folder");
    // The control: a copy of the dataset.
    std::fs::copy(cli.path("a.h5"), other.path("a.h5")).unwrap();
    command().report(&["finished"]);
    // Rank 0 reports an error of all ranks.
    cli.mpirun(2, "run run.toml --set model.name=x --output out").refuse(&["rank 0", "\"x\" is not known"]);
}

/// Several method names share an implementation: messages use the name in the run file.
#[test]
fn a_failure_names_the_method_of_the_run_file() {
    let cli = folder();
    let (head, _) = RUN.split_once("[method]").unwrap();
    for (method, more) in [("ec_sgld", "coupling = 0"), ("easgd", "")] {
        let text = format!("{head}[method]\nname = \"{method}\"\nstep = 1e300\n{more}\n");
        cli.write("run.toml", text);
        let error = cli.run("run run.toml --output failed").stderr;
        let told: Vec<&str> = error.lines().filter(|line| line.contains("has diverged")).collect();
        assert!(told.len() == 1 && told[0].contains(&format!("{method} performing")), "{error}");
    }
}

/// Centers on the way from the start to a mode are no draws: predictions are those of the last one, and nothing is said about bias.
#[test]
fn the_result_of_easgd_is_its_last_center() {
    let cli = folder();
    let (head, _) = RUN.split_once("[method]").unwrap();
    cli.write("run.toml", format!("{head}[method]\nname = \"easgd\"\nsteps = 400\nperiod = 4\n"));
    cli.succeed("run run.toml --output last");
    assert_eq!(cli.posterior("last").values.dim().0 * cli.posterior("last").values.dim().1, 1);
    let summary = cli.stdout("summary last");
    assert!(!summary.contains("bias") && !summary.contains("R-hat"), "{summary}");
    // The control: with thinning, there are several.
    cli.succeed("run run.toml --set method.thin=10 --output several");
    assert_eq!(cli.posterior("several").values.dim().0 * cli.posterior("several").values.dim().1, 10);
}

/// Kills a run as a failing machine does: the second rank that `mpirun` has started, or the process itself where there is none.
fn kill_one(running: &mut Running) {
    if running.signal_rank(1, libc::SIGKILL).is_err() {
        running.signal(libc::SIGKILL);
    }
}

/// The paths of particles so far (particles × evaluations × parameters), if there was an evaluation, and the steps of the history.
fn paths(cli: &Cli, run: &str) -> (Option<ndarray::Array3<f64>>, Vec<u64>) {
    let file = cli.results(run);
    let has_paths = file.sample_groups().unwrap().contains(&"particle_paths".to_owned());
    let drawn = has_paths.then(|| {
        let Values::F64(values) = file.samples("particle_paths").unwrap().values else { panic!("not in f64") };
        values
    });
    let has_history = file.tables().unwrap().contains(&"history".to_owned());
    (drawn, if has_history { file.table("history").unwrap().step } else { Vec::new() })
}

/// The number of evaluations in the paths so far, without reading them: the run goes on meanwhile.
fn evaluations(cli: &Cli, run: &str) -> usize {
    let file = cli.results(run);
    let has_paths = file.sample_groups().unwrap().contains(&"particle_paths".to_owned());
    if has_paths { file.shape("particle_paths").unwrap().1 } else { 0 }
}

/// Whichever rank dies: rank 0 reports, or rank 1 in its place. Open MPI gives them a second for it.
#[test]
fn a_job_that_loses_a_rank_says_what_is_saved_and_how_to_resume() {
    let cli = folder();
    let long = "--set method.rounds=90000 --set evaluate.every=0 --set cluster.checkpoint_every=0.03";
    for victim in [0, 1] {
        let mut running = cli.mpirun(2, &format!("run run.toml {long} --output killed")).start();
        let has_begun = |running: &Running| running.stderr().contains("dsvgd on the model");
        running.wait_until("a checkpoint", |running| has_begun(running) && cli.exists("killed/checkpoint.bin")).unwrap();
        running.signal_rank(victim, libc::SIGKILL).unwrap();
        let written = running.finish().unwrap().written();
        cli.wait_until_released("killed");
        // Under a launcher, lines begin with the date and the time.
        let headline = written.lines().find(|line| line.contains("dsvgd on the model")).unwrap();
        let time = headline.strip_prefix("mpibayes: ").and_then(|line| line.get(..19)).unwrap();
        assert!(time.starts_with("20") && time.matches([':', '-']).count() == 4, "{headline}");
        assert_eq!(written.matches("the launcher ends this job").count(), 1, "rank {victim}: {written}");
        let last = written.lines().rfind(|line| line.starts_with("mpibayes: ")).unwrap();
        assert!(last.contains("the launcher ends this job"), "{written}");
        assert!(written.contains("the checkpoint in killed from ") && written.contains(" is complete; "), "{written}");
        assert!(written.contains(" resume 'killed'`"), "{written}");
    }
    // In one process: two ranks on a busy machine would take minutes.
    cli.alone("resume killed").report(&["resuming after", "finished"]);
}

/// Ten kills, some as soon as the run has begun and some after one or two more evaluations have been written: after each the file opens
/// and holds a beginning of what the undisturbed run has drawn, and the same command resumes to the same bits.
#[test]
fn a_run_that_is_killed_ten_times_keeps_what_it_has_written() {
    let cli = folder();
    let long = "--set method.rounds=120000 --set evaluate.particle_paths=true --set evaluate.every=1200 --set cluster.checkpoint_every=0.03";
    let run = |output: &str| format!("run run.toml {long} --output {output}");
    cli.alone(&run("whole")).report(&[]);
    let (whole, steps) = paths(&cli, "whole");
    let whole = whole.unwrap();
    assert_eq!((whole.dim().1, steps.len()), (100, 120_000));
    let order = Seed(11).stream(Who::Run, 0, Purpose::Synthetic).permutation(10);
    let (mut opened, mut grown) = (0, 0);
    for (kill, random) in order.into_iter().enumerate() {
        let mut running = if kill % 2 == 0 { cli.alone(&run("killed")) } else { cli.mpirun(2, &run("killed")) }.start();
        running.wait_until("its first message", |running| running.stderr().contains("dsvgd on the model")).unwrap();
        // The first kill leaves a file.
        let more = if kill == 0 { 1 } else { random % 3 };
        running
            .wait_until("enough was written for ten kills", |_| {
                more == 0 || cli.exists("killed/result.h5") && evaluations(&cli, "killed") >= grown + more
            })
            .unwrap();
        assert!(!running.has_ended(), "kill {kill}: the run is too short for ten kills");
        kill_one(&mut running);
        running.finish().unwrap();
        cli.wait_until_released("killed");
        let (draws, rows) = paths(&cli, "killed");
        let drawn = draws.as_ref().map_or(0, |draws| draws.dim().1);
        if let Some(draws) = draws {
            assert_eq!(draws, whole.slice(ndarray::s![.., ..drawn, ..]), "kill {kill}");
        }
        // The history is written with the draws: an evaluation for every 1200 rounds of it.
        assert_eq!(rows, steps[..rows.len()], "kill {kill}");
        assert!(drawn.abs_diff(rows.len() / 1200) <= 1, "kill {kill}: {drawn} draws, {} rounds", rows.len());
        // A kill between the file and its checkpoint leaves draws that are made anew, so that it may hold fewer for a while.
        (opened, grown) = (opened + 1, grown.max(drawn));
    }
    assert!(opened == 10 && (5..100).contains(&grown), "{opened} files opened, {grown} draws");
    // In one process: two ranks on a busy machine would take minutes.
    cli.alone(&run("killed")).report(&["resuming after", "finished"]);
    assert_eq!(paths(&cli, "killed"), (Some(whole), steps));
    assert_eq!(cli.posterior("killed"), cli.posterior("whole"));
}

#[test]
fn partitions_and_their_errors_do_not_depend_on_ranks() {
    let cli = folder();
    let run = |partition: &str, output: &str| format!("run run.toml --set data.partition={partition} --output {output}");
    // Of 17 and 15 training rows: 0.45 · 17 + 0.05 · 15 = 8.4 for two agents, 0.1 · 17 + 0.9 · 15 = 15.2 for the third.
    let share = run("{label_share=0.9}", "one");
    cli.alone(&share).report(&["3 agents of 8 to 15 rows, "]);
    cli.mpirun(2, &run("{label_share=0.9}", "two")).report(&["3 agents of 8 to 15 rows, 2 ranks"]);
    assert_eq!(cli.posterior("one"), cli.posterior("two"));
    let config = cli.read("one/config.toml");
    assert!(config.contains("[data.partition]\nlabel_share = 0.9\n"), "{config}");
    // The control: the default partition is another run.
    cli.alone("run run.toml --output three").report(&["3 agents of 10 to 11 rows, "]);
    assert_ne!(cli.posterior("one"), cli.posterior("three"));
    assert!(cli.read("three/config.toml").contains("partition = \"equal\"\n"));
    cli.alone("run run.toml --output one").refuse(&["data.partition is { label_share = 0.9 } there, \"equal\" here"]);

    for (partition, says) in [
        ("{sizes=[1,2]}", "2 sizes for 3 agents"),
        ("{labels=[[\"no\"],[\"yes\"],[\"maybe\"]]}", "the class \"maybe\", which the data do not have. The classes are no, yes"),
        ("by_labels", "\"by_labels\" is not known. Did you mean \"by_label\"?"),
    ] {
        cli.alone(&run(partition, "four")).refuse(&[says]);
        cli.mpirun(2, &run(partition, "four")).refuse(&[says]);
    }
}

#[test]
fn bytes_of_agents_follow_from_the_algorithm_on_any_ranks() {
    let cli = folder();
    let fedavg = RUN.replace("\"dsvgd\"", "\"fedavg\"").replace("particles = 4\n", "").replace("distillation_steps = 5\n", "");
    cli.write("run.toml", fedavg);
    let bytes = |run: &str| {
        let json: serde_json::Value = serde_json::from_str(&cli.stdout(&format!("summary {run} --json"))).unwrap();
        let sent: Vec<f64> = json["history"].as_array().unwrap().iter().map(|row| row["bytes"].as_f64().unwrap()).collect();
        let total = ["received", "sent"].map(|name| json["agent_bytes"][name].as_u64().unwrap());
        (total, sent)
    };
    // In each of six rounds, each of three agents receives four parameters (two weights, the intercept, the precision of the prior), and sends
    // them with its number of rows, in double precision.
    let expected = ([6 * 3 * 4 * 8, 6 * 3 * 5 * 8], (1..=6).map(|round| f64::from(round * 3 * 9 * 8)).collect::<Vec<f64>>());
    cli.succeed("run run.toml --output one");
    cli.mpirun(3, "run run.toml --output three").succeed(&["finished"]);
    cli.succeed("run run.toml --output none --set evaluate.every=0");
    for run in ["one", "three", "none"] {
        assert_eq!(bytes(run), expected, "{run}");
    }
    let said = cli.stdout("summary one --rounds");
    assert!(said.contains("sent        720 B"), "{said}");
    // Two chains of four parameters that go on after all but the last round, or stay where they are.
    let dsgld = "run run.toml --set method={name=\"dsgld\",chains=2,rounds=6,trajectory=2,burn_in=0,thin=1,step=0.01,expectations=false,schedule=\"cyclic\"}";
    cli.succeed(&format!("{dsgld} --output travel"));
    cli.mpirun(2, &format!("{dsgld} --output travel2")).succeed(&["finished"]);
    cli.succeed(&format!("{dsgld} --set agents=1 --output stay"));
    // Long enough to be stopped on its way.
    let long = format!("{dsgld} --set method.rounds=30000 --output halves");
    stop(&cli, "halves", || cli.alone(&long));
    cli.mpirun(2, &long).succeed(&["finished"]);
    for (run, rounds) in [("travel", 6), ("travel2", 6), ("halves", 30_000), ("stay", 1)] {
        let travelled = (rounds - 1) * 2 * 4 * 8;
        assert_eq!(bytes(run).0, [travelled; 2], "{run}");
    }
    // The metrics over bytes: each evaluation has the bytes of the rounds before it.
    cli.stdout("compare one three --against bytes --output bytes.svg");
    assert!(cli.read("bytes.svg").contains("bytes received and sent by agents"));
}

/// A fault is printed, ends the run with 70, and is among its events.
#[test]
fn a_fault_is_among_the_events_of_its_run() {
    let cli = Cli::new();
    // With these columns, the density of any particle but 0 is beyond the range of numbers of 32 bits.
    let row = |i: usize| format!("{}e37,{}e37,{}\n", i % 7 + 1, i % 5 + 1, ["no", "yes"][i % 2]);
    cli.write("huge.csv", (0..40).map(row).collect::<String>());
    cli.succeed("import huge.csv --scaling none -o huge.h5");
    let head =
        "dtype = \"float32\"\nagents = 1\n[data]\nfile = \"huge.h5\"\n[model]\nname = \"logistic\"\nprior = { normal = 1e30 }\n";
    cli.write("pmd.toml", format!("{head}[method]\nname = \"pmd\"\nparticles = 3\nrounds = 5\n[evaluate]\nevery = 0\n"));
    for (ranks, output) in [(1, "runs/one"), (2, "runs/two")] {
        let run = format!("run pmd.toml --output {output}");
        let ended = if ranks == 1 { cli.alone(&run) } else { cli.mpirun(ranks, &run) };
        ended.end(70, &["no particle has a positive weight"]);
        let events = cli.read(&format!("{output}/events.jsonl"));
        let of_faults: Vec<&str> = events.lines().filter(|line| line.contains("\"event\":\"failed\"")).collect();
        assert!(of_faults.len() == 1 && of_faults[0].contains("no particle has a positive weight"), "{events}");
    }
}
