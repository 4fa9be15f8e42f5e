//! Checkpoints whose states are in parts of ranks, damaged ones, and a folder that cannot be written to for a while.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::Ended;
use std::fs;
use std::path::Path;

/// The states of two agents have more than a mebibyte each.
fn folder() -> Cli {
    let cli = Cli::new();
    cli.stdout("data make topics --documents 15000 --words 500 --topics 10 --tokens 100 --test-documents 1 -o c.h5");
    cli.write(
        "run.toml",
        r#"agents = 2
[data]
file = "c.h5"
[model]
name = "lda"
topics = 10
alpha = 0.1
beta = 0.01
[method]
name = "lda"
rounds = 60
burn_in = 40
thin = 10
[evaluate]
every = 0
[cluster]
checkpoint_every = 0.2
"#,
    );
    cli
}

fn parts(run: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(run.join("checkpoint.parts")) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Stops the run after two checkpoints, and one more when it stops.
fn stop_after_checkpoints(cli: &Cli, run: &str) {
    let mut running = cli.mpirun(2, &format!("run run.toml --output {run}")).start();
    running.wait_until("two checkpoints", |_| cli.exists(&format!("{run}/checkpoint.previous.bin"))).unwrap();
    running.signal(libc::SIGUSR1);
    assert!(running.finish().unwrap().was_stopped());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() { copy(&entry.path(), &to) } else { assert!(fs::copy(entry.path(), to).is_ok()) }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at % bytes.len();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn ranks_keep_their_states_and_a_damaged_checkpoint_costs_the_rounds_since_the_one_before() {
    let cli = folder();
    cli.stdout("run run.toml --output whole");
    stop_after_checkpoints(&cli, "run");
    // Two checkpoints of two ranks, and what rank 0 has of them is small.
    let names = parts(&cli.path("run"));
    assert!(names.len() == 4 && names.iter().filter(|name| name.ends_with("-rank-1.part")).count() == 2, "{names:?}");
    assert!(fs::metadata(cli.path("run/checkpoint.bin")).unwrap().len() < 50_000);
    // Names are a number of the job, that of the part, and the rank.
    let number = |name: &&String| name.split('-').nth(1).unwrap().parse::<u64>().unwrap();
    let newest =
        |rank: u32| names.iter().filter(|name| name.ends_with(&format!("-rank-{rank}.part"))).max_by_key(number).unwrap();
    let part = |run: &str, rank: u32| cli.path(format!("{run}/checkpoint.parts/{}", newest(rank)));

    let resumes = |run: &str, damage: &dyn Fn(), messages: &[&str], resume: &dyn Fn(&str) -> Ended| {
        copy(&cli.path("run"), &cli.path(run));
        damage();
        let ended = resume(&format!("run run.toml --output {run}"));
        messages.iter().for_each(|message| assert!(ended.stderr.contains(message), "{message:?} is not in {}", ended.stderr));
        assert!(ended.stderr.contains("resuming after round") && !ended.stderr.contains("panicked"), "{}", ended.stderr);
        assert_eq!(cli.posterior(run), cli.posterior("whole"));
        assert!(
            ["checkpoint.parts", "checkpoint.bin", "checkpoint.previous.bin", "checkpoint.damaged.bin"]
                .iter()
                .all(|file| !cli.exists(&format!("{run}/{file}")))
        );
    };
    let alone = |arguments: &str| cli.alone(arguments).succeed(&[]);
    let three_ranks = |arguments: &str| cli.mpirun(3, arguments).succeed(&[]);
    resumes("sound", &|| (), &[], &three_ranks);
    let before = "The run resumes from the checkpoint before it, after round ";
    resumes(
        "flipped",
        &|| flip(&part("flipped", 1), 1_234_567),
        &["-rank-1.part: this part of a checkpoint is damaged", before],
        &three_ranks,
    );
    let truncate = || {
        let file = fs::File::options().write(true).open(part("truncated", 0)).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    };
    resumes("truncated", &truncate, &["this part of a checkpoint is truncated", before], &alone);
    resumes(
        "missing",
        &|| fs::remove_file(part("missing", 1)).unwrap(),
        &["this part of a checkpoint is missing", before],
        &alone,
    );
    let index = || flip(&cli.path("index/checkpoint.bin"), 700);
    resumes("index", &index, &["checkpoint.bin is damaged", "its checksum is wrong", before], &alone);
    // Where a job was killed between the renaming of one checkpoint and that of the next.
    resumes("between", &|| fs::remove_file(cli.path("between/checkpoint.bin")).unwrap(), &[], &alone);

    copy(&cli.path("run"), &cli.path("hopeless"));
    flip(&part("hopeless", 0), 99);
    flip(&cli.path("hopeless/checkpoint.previous.bin"), 99);
    let says = ["is damaged; the checkpoint", "checkpoint.previous.bin is damaged", "No checkpoint is whole: delete hopeless"];
    cli.alone("run run.toml --output hopeless").end(1, &says);
    assert_eq!(parts(&cli.path("hopeless")), names);
    assert!(cli.exists("hopeless/checkpoint.bin") && cli.exists("hopeless/checkpoint.previous.bin"));
}

#[test]
fn ranks_that_do_not_share_the_folder_resume_from_parts_and_send_their_states() {
    let (cli, other) = (folder(), Cli::new());
    cli.stdout("run run.toml --output whole");
    stop_after_checkpoints(&cli, "run");
    for file in ["run.toml", "c.h5"] {
        fs::copy(cli.path(file), other.path(file)).unwrap();
    }
    let says = ["not all ranks can use the folder of the run", "resuming after round"];
    cli.mpirun_apart(&other, "run run.toml --output run").succeed(&says);
    assert_eq!(cli.posterior("run"), cli.posterior("whole"));
    assert!(!other.exists("run"));
}

const LONG: &str = "run run.toml --set method.rounds=100000 --set method.burn_in=99000";

#[test]
fn a_run_that_cannot_be_saved_goes_on_and_is_saved_later() {
    let cli = folder();
    let mut running = cli.mpirun(2, &format!("{LONG} --set cluster.checkpoint_every=2 --output later")).start();
    running.wait_until("its begin", |running| running.stderr().contains(" on the model ")).unwrap();
    // A file in the place of a folder.
    cli.write("later/checkpoint.parts", "in the way");
    let says = "It goes on, and tries again after 5 s; if its job ends before, it starts again";
    running.wait_until("a failure", |running| running.stderr().contains(says)).unwrap();
    assert!(running.stderr().contains("warning: the run cannot be saved: rank "));
    fs::remove_file(cli.path("later/checkpoint.parts")).unwrap();
    running.wait_until("a checkpoint", |running| running.stderr().contains("the run is saved again")).unwrap();
    assert!(cli.exists("later/checkpoint.bin"));
    running.signal(libc::SIGUSR1);
    let ended = running.finish().unwrap();
    assert!(ended.was_stopped() && ended.stderr.contains("stopped and saved"), "{}", ended.stderr);
}

#[test]
fn a_run_that_cannot_be_saved_when_it_is_to_stop_says_so_and_leaves_no_parts() {
    let cli = folder();
    // A folder in the place of a file.
    fs::create_dir_all(cli.path("never/checkpoint.bin.partial")).unwrap();
    let mut running = cli.alone(&format!("{LONG} --output never")).start();
    running.wait_until("a failure", |running| running.stderr().contains("warning: the run cannot be saved")).unwrap();
    running.signal(libc::SIGUSR1);
    let ended = running.finish().unwrap();
    let says = "stopped without saving in never: with the same command it starts again";
    assert!(ended.code == 75 && ended.stderr.contains(says), "{}", ended.stderr);
    assert!(!cli.exists("never/checkpoint.bin") && parts(&cli.path("never")).is_empty());
}

#[test]
fn a_finished_run_waits_until_its_results_can_be_written() {
    let cli = folder();
    let in_the_way = cli.path("end/result.h5.partial");
    fs::create_dir_all(&in_the_way).unwrap();
    let mut running =
        cli.alone("run run.toml --set method.rounds=12 --set method.burn_in=9 --set method.thin=1 --output end").start();
    running.wait_until("a failure", |running| running.stderr().contains(". It tries again after ")).unwrap();
    fs::remove_dir(in_the_way).unwrap();
    let ended = running.finish().unwrap();
    assert!(ended.code == 0 && ended.stderr.contains("the run is saved again"), "{}", ended.stderr);
    assert_eq!(cli.results("end").lengths("posterior").unwrap(), [3]);
}
