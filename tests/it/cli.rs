//! The command line: output streams and exit codes of subcommands, alone and as ranks of a job.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::{self, Ended};
use mpibayes::cluster::record::Row;
use mpibayes::results::{RunInfo, write_run};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// Runs the program with the variables of Open MPI for a rank of a job of three.
fn as_rank(cli: &Cli, rank: u32, arguments: &str) -> Ended {
    cli.alone(arguments).env("OMPI_COMM_WORLD_SIZE", "3").env("OMPI_COMM_WORLD_RANK", &rank.to_string()).run()
}

fn finished_run(cli: &Cli) {
    std::fs::create_dir(cli.path("run")).unwrap();
    let row = |table: &str, step, values: &[(&str, f64)]| Row {
        table: table.into(),
        step,
        agent: None,
        values: values.iter().map(|&(name, value)| (name.into(), value)).collect(),
    };
    let rows =
        [row("metrics", 1, &[("accuracy", 0.5), ("ece", 0.125)]), row("metrics", 2, &[("accuracy", 0.875), ("ece", 0.0625)])];
    write_run(&cli.path("run/result.h5"), &RunInfo::new("dsvgd", "logistic", 3, "", ""), &[], &rows).unwrap();
}

#[test]
fn help_and_version_are_printed_by_one_rank() {
    let cli = Cli::new();
    for arguments in ["--help", "--version", "import --help", "summary -h", "run --help", "plot --help", "compare -h", "sweep -h"]
    {
        for output in [cli.run(arguments), as_rank(&cli, 0, arguments)] {
            assert_eq!(output.code, 0, "{arguments:?}");
            assert!(output.stdout.contains("mpibayes") && output.stderr.is_empty(), "{arguments:?}");
        }
        let silent = as_rank(&cli, 1, arguments);
        assert!(silent.stdout.is_empty() && silent.stderr.is_empty() && silent.code == 0, "{arguments:?}");
    }
    let version = cli.run("--version").stdout;
    assert_eq!(version.trim(), format!("mpibayes {}", env!("CARGO_PKG_VERSION")));
    let help = cli.run("import --help").stdout;
    assert!(help.contains("--test-fraction") && help.contains("Examples:"), "{help}");
}

#[test]
fn usage_errors_are_printed_once_and_exit_with_2() {
    let cli = Cli::new();
    for arguments in ["", "imprt", "import a.csv", "summary", "summary run --jsn"] {
        let output = as_rank(&cli, 0, arguments);
        assert_eq!(output.code, 2, "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
        assert!(as_rank(&cli, 2, arguments).stderr.is_empty(), "{arguments:?}");
    }
    assert!(cli.run("imprt").stderr.contains("import"));
}

#[test]
fn import_writes_once_and_reports_the_dataset() {
    let cli = Cli::new();
    cli.write("a.csv", "1,2,yes\n3,4,no\n5,6,yes\n");
    let import = "import a.csv -o a.h5";
    // A rank other than 0 leaves the work to rank 0.
    assert_eq!(as_rank(&cli, 1, import).code, 0);
    assert!(!cli.exists("a.h5"));
    let output = cli.run(import);
    let said = output.stdout;
    assert!(output.code == 0 && said.starts_with("wrote a.h5 (") && said.contains("train     3 rows"), "{said}");
    cli.refuse(import, &["a.h5", "--force"]);
    cli.succeed(&format!("{import} --force"));
    cli.refuse("import a.csv --test ./a.csv -o b.h5", &["--test ./a.csv: these are training rows", "--test-fraction"]);
    cli.refuse("import b.csv -o b.h5", &["b.csv", "cannot open"]);
    cli.write("b.csv", "1,2,yes\n3,x,no\n");
    cli.refuse("import b.csv -o b.h5", &["b.csv, line 2"]);
}

/// The whole report: the digest changes with the tokenizer, limits, order and layout.
#[test]
fn the_corpus_of_a_small_text_does_not_change() {
    let cli = Cli::new();
    let fables = "The cat sat on the mat, and the dog slept.\nDogs and cats!\n\n\u{c9}t\u{e9} : un chat, deux chats.\n\
                A cat's paw; a dog\u{2019}s life.\nThe mat of the cat: 3.14 e-mails\n";
    cli.write("a.txt", fables);
    let import = "import text a.txt --stop-words english --least-documents 1 --test-documents 1 --scored 0.5 -o a.h5";
    let output = cli.run(import);
    assert!(output.code == 0, "{}", output.stderr);
    let said = output.stdout;
    let expected = [
        "task      topics",
        "text      6 documents, one per line",
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
    cli.refuse("import a.txt -o b.h5", &["a.txt: hardly any field is a number", "mpibayes import text"]);
}

#[test]
fn summary_prints_text_json_and_single_values() {
    let cli = Cli::new();
    finished_run(&cli);
    let shown = cli.run("summary run").stdout;
    assert!(shown.contains("method   dsvgd") && shown.contains("accuracy  87.50 %"), "{shown}");
    let json = cli.json("summary run/result.h5 --json");
    assert_eq!((&json["metrics"]["ece"], &json["evaluations"][0]["accuracy"]), (&0.0625.into(), &0.5.into()));
    let output = cli.run("summary run --get accuracy");
    assert_eq!(output.stdout, "0.8750\n");
    cli.refuse("summary run --get rmse", &["accuracy, ece"]);
}

#[test]
fn arguments_that_are_not_run_files_are_refused() {
    let cli = Cli::new();
    std::fs::create_dir(cli.path("runs")).unwrap();
    cli.write("data.h5", b"\x89HDF\xff\xfe");
    cli.refuse("run runs --output x", &["runs is a folder", "mpibayes resume"]);
    cli.refuse("run data.h5 --output x", &["data.h5 is not text in UTF-8", "mpibayes init"]);
    cli.write("a.csv", "x,y\n1,2\n");
    cli.refuse("check a.csv", &["a.csv is no run file but probably a table: `mpibayes import`"]);
    // An argument that is not UTF-8 causes no panic, beside an unknown option either.
    for (option, code) in [(None, 1), (Some("--nonsense"), 2)] {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_mpibayes"));
        let ended = program.arg("run").arg(std::ffi::OsStr::from_bytes(b"caf\xe9.toml")).args(option).output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let cli = Cli::new();
    finished_run(&cli);
    let mut command = cli.alone("summary run").command();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn summary_reports_why_there_are_no_results() {
    let cli = Cli::new();
    cli.refuse("summary runs/none", &["runs/none: there is no such folder"]);
    std::fs::create_dir(cli.path("run")).unwrap();
    cli.write("run/checkpoint.bin", "state");
    cli.refuse("summary run", &["not finished", "mpibayes resume run"]);
    cli.write("a.csv", "1,2,yes\n3,4,no\n");
    cli.refuse("summary a.csv", &["a.csv", "not a result file of mpibayes"]);
    cli.succeed("import a.csv -o a.h5");
    cli.refuse("summary a.h5", &["a.h5", "this is a dataset, not the result of a run"]);
}

#[test]
fn env_shows_libraries_and_placement_and_warns() {
    let cli = Cli::new();
    let shown = cli.run("env").stdout;
    for says in ["  mpibayes", "  MPI ", "  HDF5 ", "  BLAS ", ", 1 thread\n", "1 rank, no launcher\n"] {
        assert!(shown.contains(says), "{says} in {shown}");
    }
    let json = cli.json("env --threads 100000 --json");
    assert!(json["placement"][0]["cores"].as_array().is_some_and(|cores| !cores.is_empty()), "{json}");
    assert!(json["warnings"][0].as_str().is_some_and(|warning| warning.contains("100,000 threads")), "{json}");
    assert_eq!(json["blas_threads"], 1);
    // The launcher started three processes, but MPI has one.
    let alone = as_rank(&cli, 0, "env").stdout;
    assert!(alone.contains("warning: the launcher started 3 processes"), "{alone}");
}

#[test]
fn matrix_products_use_the_kernels_for_this_processor_unless_the_environment_names_others() {
    let cli = Cli::new();
    let env = |core: Option<&str>| {
        let mut command = cli.alone("env --json").command();
        match core {
            Some(core) => command.env("OPENBLAS_CORETYPE", core),
            None => command.env_remove("OPENBLAS_CORETYPE"),
        };
        let json: serde_json::Value = serde_json::from_str(&launcher::watched(command).unwrap().stdout).unwrap();
        let warns = json["warnings"].to_string().contains("matrix products take");
        (json["blas"].as_str().unwrap().to_owned(), warns)
    };
    let (blas, warns) = env(None);
    assert!(!warns, "{blas}");
    #[cfg(target_arch = "x86_64")]
    if blas.contains("DYNAMIC_ARCH") && std::is_x86_feature_detected!("avx2") {
        assert!(!blas.contains("Prescott"), "{blas}");
        // The control: kernels that every processor has.
        let (blas, warns) = env(Some("Prescott"));
        assert!(blas.contains("Prescott") && warns, "{blas}");
    }
}

#[test]
fn completions_and_manual_are_printed() {
    let cli = Cli::new();
    let bash = cli.run("completions bash").stdout;
    assert!(bash.contains("complete -F _mpibayes") && bash.contains("--test-fraction"), "{bash}");
    let page = cli.run("man").stdout;
    assert!(page.contains(".TH mpibayes 1") && page.contains("sweep"), "{page}");
    let written = cli.run("man -o man1");
    assert!(written.code == 0 && cli.exists("man1/mpibayes-sweep.1"));
    assert_eq!(cli.run("completions csh").code, 2);
}
