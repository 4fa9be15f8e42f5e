//! The program as a user meets it: what it prints, on which stream, with which exit code, under a launcher too.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::launcher::unlaunched;
use mpibayes::cluster::record::Row;
use mpibayes::results::{RunInfo, write_run};
use std::path::Path;
use std::process::Output;

/// Runs the program in a folder, as the given process of a job of several if there is a job.
fn mpibayes_as(rank: Option<u32>, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = unlaunched(env!("CARGO_BIN_EXE_mpibayes"));
    if let Some(rank) = rank {
        command.env("OMPI_COMM_WORLD_SIZE", "3").env("OMPI_COMM_WORLD_RANK", rank.to_string());
    }
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn mpibayes(folder: &Path, arguments: &[&str]) -> Output {
    mpibayes_as(None, folder, arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Asserts exit code 1, nothing on standard output and one line on standard error that says all of this.
fn refused(output: &Output, says: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(output.stdout.is_empty());
    assert!(error.starts_with("mpibayes: error: ") && error.lines().count() == 1, "{error}");
    assert!(says.iter().all(|says| error.contains(says)), "{error:?} must say {says:?}");
}

fn finished_run(folder: &Path) {
    std::fs::create_dir(folder.join("run")).unwrap();
    let row = |table: &str, step, values: &[(&str, f64)]| Row {
        table: table.into(),
        step,
        agent: None,
        values: values.iter().map(|&(name, value)| (name.into(), value)).collect(),
    };
    let rows =
        [row("metrics", 1, &[("accuracy", 0.5), ("ece", 0.125)]), row("metrics", 2, &[("accuracy", 0.875), ("ece", 0.0625)])];
    write_run(&folder.join("run/result.h5"), &RunInfo::new("dsvgd", "logistic", 3, "", ""), &[], &rows).unwrap();
}

#[test]
fn help_and_version_are_printed_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["import", "--help"],
        &["summary", "-h"],
        &["run", "--help"],
        &["plot", "--help"],
        &["compare", "-h"],
        &["sweep", "-h"],
    ] {
        for rank in [None, Some(0)] {
            let output = mpibayes_as(rank, folder.path(), arguments);
            assert_eq!(output.status.code(), Some(0), "{arguments:?}");
            assert!(text(&output.stdout).contains("mpibayes") && output.stderr.is_empty(), "{arguments:?}");
        }
        let silent = mpibayes_as(Some(1), folder.path(), arguments);
        assert!(silent.stdout.is_empty() && silent.stderr.is_empty() && silent.status.success(), "{arguments:?}");
    }
    let version = text(&mpibayes(folder.path(), &["--version"]).stdout);
    assert_eq!(version.trim(), format!("mpibayes {}", env!("CARGO_PKG_VERSION")));
    let help = text(&mpibayes(folder.path(), &["import", "--help"]).stdout);
    assert!(help.contains("--test-fraction") && help.contains("Examples:"), "{help}");
}

#[test]
fn typing_mistakes_are_told_once_and_end_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&[][..], &["imprt"], &["import", "a.csv"], &["summary"], &["summary", "run", "--jsn"]] {
        let output = mpibayes_as(Some(0), folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
        assert!(mpibayes_as(Some(2), folder.path(), arguments).stderr.is_empty(), "{arguments:?}");
    }
    assert!(text(&mpibayes(folder.path(), &["imprt"]).stderr).contains("import"));
}

#[test]
fn import_writes_once_and_says_what() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "1,2,yes\n3,4,no\n5,6,yes\n").unwrap();
    let import = ["import", "a.csv", "-o", "a.h5"];
    // A second process of a job leaves the work to the first.
    assert!(mpibayes_as(Some(1), folder.path(), &import).status.success());
    assert!(!folder.path().join("a.h5").exists());
    let output = mpibayes(folder.path(), &import);
    let said = text(&output.stdout);
    assert!(output.status.success() && said.starts_with("wrote a.h5 (") && said.contains("train     3 rows"), "{said}");
    refused(&mpibayes(folder.path(), &import), &["a.h5", "--force"]);
    assert!(mpibayes(folder.path(), &[&import[..], &["--force"]].concat()).status.success());
    refused(&mpibayes(folder.path(), &["import", "b.csv", "-o", "b.h5"]), &["b.csv", "cannot open"]);
    std::fs::write(folder.path().join("b.csv"), "1,2,yes\n3,x,no\n").unwrap();
    refused(&mpibayes(folder.path(), &["import", "b.csv", "-o", "b.h5"]), &["b.csv, line 2"]);
}

/// The report to its last line: the digest holds tokeniser, limits, order and layout to what they were.
#[test]
fn a_small_text_is_the_corpus_that_it_always_was() {
    let folder = tempfile::tempdir().unwrap();
    let fables = "The cat sat on the mat, and the dog slept.\nDogs and cats!\n\n\u{c9}t\u{e9} : un chat, deux chats.\n\
                A cat's paw; a dog\u{2019}s life.\nThe mat of the cat: 3.14 e-mails\n";
    std::fs::write(folder.path().join("a.txt"), fables).unwrap();
    let import = "import a.txt --format text --stop-words english --least-documents 1 --test-documents 1 --scored 0.5 -o a.h5";
    let output = mpibayes(folder.path(), &import.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let expected = [
        "task      topics",
        "text      6 documents, a line each",
        "seen      16 words, 25 tokens, of 3 letters or more",
        "dropped   2 words, 7 tokens: stop words",
        "kept      14 words, 18 tokens",
        "train     4 documents, 13 tokens",
        "test      1 document, 5 tokens, 2 of them scored",
        "words     14",
        "left out  1 document without a word",
        "digest    d9e5a47decc1",
    ];
    assert_eq!(said.lines().skip(1).map(str::trim_start).collect::<Vec<_>>(), expected);
    refused(
        &mpibayes(folder.path(), &["import", "a.txt", "-o", "b.h5"]),
        &["a.txt: hardly a field is a number", "--format text"],
    );
}

#[test]
fn summary_shows_a_run_in_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    finished_run(folder.path());
    let shown = text(&mpibayes(folder.path(), &["summary", "run"]).stdout);
    assert!(shown.contains("method  dsvgd") && shown.contains("accuracy  87.50 %"), "{shown}");
    let json = mpibayes(folder.path(), &["summary", "run/result.h5", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["metrics"]["ece"], &json["evaluations"][0]["accuracy"]), (&0.0625.into(), &0.5.into()));
    let output = mpibayes(folder.path(), &["summary", "run", "--get", "accuracy"]);
    assert_eq!(text(&output.stdout), "0.8750\n");
    refused(&mpibayes(folder.path(), &["summary", "run", "--get", "rmse"]), &["accuracy, ece"]);
}

#[test]
fn what_is_no_run_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("runs")).unwrap();
    std::fs::write(folder.path().join("data.h5"), b"\x89HDF\xff\xfe").unwrap();
    refused(&mpibayes(folder.path(), &["run", "runs", "--output", "x"]), &["runs: this is a folder", "config.toml"]);
    refused(&mpibayes(folder.path(), &["run", "data.h5", "--output", "x"]), &["data.h5: this is no text", "mpibayes init"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    finished_run(folder.path());
    let mut command = unlaunched(env!("CARGO_BIN_EXE_mpibayes"));
    command.current_dir(folder.path()).args(["summary", "run"]).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn summary_says_why_there_is_nothing_to_show() {
    let folder = tempfile::tempdir().unwrap();
    refused(&mpibayes(folder.path(), &["summary", "runs/none"]), &["runs/none: there is no such folder"]);
    std::fs::create_dir(folder.path().join("run")).unwrap();
    std::fs::write(folder.path().join("run/checkpoint.bin"), "state").unwrap();
    refused(&mpibayes(folder.path(), &["summary", "run"]), &["not finished", "mpibayes run FILE.toml --output run"]);
    std::fs::write(folder.path().join("a.csv"), "1,2,yes\n3,4,no\n").unwrap();
    refused(&mpibayes(folder.path(), &["summary", "a.csv"]), &["a.csv", "no result file of this program"]);
    assert!(mpibayes(folder.path(), &["import", "a.csv", "-o", "a.h5"]).status.success());
    refused(&mpibayes(folder.path(), &["summary", "a.h5"]), &["a.h5", "no result file of this program"]);
}

#[test]
fn env_tells_where_it_is_and_warns() {
    let folder = tempfile::tempdir().unwrap();
    let shown = text(&mpibayes(folder.path(), &["env"]).stdout);
    for says in ["  mpibayes", "  MPI ", "  HDF5 ", "  BLAS ", ", 1 thread\n", "1 rank, no launcher\n"] {
        assert!(shown.contains(says), "{says} in {shown}");
    }
    let json = mpibayes(folder.path(), &["env", "--threads", "100000", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert!(json["placement"][0]["cores"].as_array().is_some_and(|cores| !cores.is_empty()), "{json}");
    assert!(json["warnings"][0].as_str().is_some_and(|warning| warning.contains("100,000 threads")), "{json}");
    assert_eq!(json["blas_threads"], 1);
    // A launcher that means three processes, of which this one knows nothing.
    let alone = text(&mpibayes_as(Some(0), folder.path(), &["env"]).stdout);
    assert!(alone.contains("warning: the launcher started 3 processes"), "{alone}");
}

#[test]
fn completions_and_manual_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let bash = text(&mpibayes(folder.path(), &["completions", "bash"]).stdout);
    assert!(bash.contains("complete -F _mpibayes") && bash.contains("--test-fraction"), "{bash}");
    let page = text(&mpibayes(folder.path(), &["man"]).stdout);
    assert!(page.contains(".TH mpibayes 1") && page.contains("sweep"), "{page}");
    let written = mpibayes(folder.path(), &["man", "-o", "man1"]);
    assert!(written.status.success() && folder.path().join("man1/mpibayes-sweep.1").exists());
    assert_eq!(mpibayes(folder.path(), &["completions", "csh"]).status.code(), Some(2));
}
