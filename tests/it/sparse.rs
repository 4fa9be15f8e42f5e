//! Sparse data from file to posterior: the bits of dense data, in the memory of what is stored.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::launcher::unlaunched;
use mpibayes::data::{Dataset, Split};
use mpibayes::random::{Purpose, Seed, Who};
use mpibayes::results::{RunFile, Samples};
use rand::RngExt;
use std::fmt::Write;
use std::path::Path;

/// Runs the program in a folder; what it printed.
fn mpibayes(folder: &Path, arguments: &str) -> String {
    let output = unlaunched(env!("CARGO_BIN_EXE_mpibayes")).current_dir(folder).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn run_file(method: &str, batch: usize) -> String {
    let steps = if method == "svgd" { "steps = 5" } else { "local_steps = 5\ndistillation_steps = 5" };
    format!(
        "seed = 3\nagents = 3\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"{method}\"\nparticles = 4\n\
         rounds = 4\nbatch = {batch}\n{steps}\n"
    )
}

fn posterior(folder: &Path, run: &str) -> Samples {
    RunFile::open(&folder.join(run).join("result.h5")).unwrap().samples("posterior").unwrap()
}

/// The same table as CSV and as LIBSVM text, two thirds of it zeros, the classes apart by the first two columns.
fn tables(rows: usize, features: usize) -> (String, String) {
    let mut stream = Seed(7).stream(Who::Run, 0, Purpose::Synthetic);
    let (mut dense, mut sparse) = (String::new(), String::new());
    for _ in 0..rows {
        let x: Vec<f64> =
            (0..features).map(|_| if stream.random_range(0..3) > 0 { 0.0 } else { stream.random_range(-2.0..2.0) }).collect();
        let class = i32::from(x[0] - x[1] + stream.random_range(-0.5..0.5) > 0.0);
        write!(sparse, "{class}").unwrap();
        for (value, index) in x.iter().zip(1..) {
            write!(dense, "{value},").unwrap();
            if *value != 0.0 {
                write!(sparse, " {index}:{value}").unwrap();
            }
        }
        writeln!(dense, "{class}").unwrap();
        sparse.push('\n');
    }
    (dense, sparse)
}

/// Every gradient that the run takes, of minibatches and of all rows, goes into these bits; so do its predictions.
#[test]
fn a_run_on_sparse_rows_has_the_bits_of_one_on_dense_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (dense, sparse) = tables(240, 12);
    std::fs::write(folder.path().join("a.csv"), dense).unwrap();
    std::fs::write(folder.path().join("a.svm"), sparse).unwrap();
    for scaling in ["none", "max-abs"] {
        for (method, batch) in [("svgd", 30), ("dsvgd", 30), ("svgd", 1000)] {
            std::fs::write(folder.path().join("run.toml"), run_file(method, batch)).unwrap();
            let mut accuracies = Vec::new();
            for file in ["a.csv", "a.svm"] {
                let said =
                    mpibayes(folder.path(), &format!("import {file} --test-fraction 0.25 --scaling {scaling} --force -o a.h5"));
                assert_eq!(said.contains("values are not zero"), file == "a.svm", "{said}");
                let run = format!("{file}-{scaling}-{method}-{batch}");
                mpibayes(folder.path(), &format!("run run.toml --output {run}"));
                accuracies.push(mpibayes(folder.path(), &format!("summary {run} --get log_likelihood")));
            }
            let of = |file: &str| posterior(folder.path(), &format!("{file}-{scaling}-{method}-{batch}"));
            assert_eq!(of("a.svm"), of("a.csv"), "{scaling} {method} {batch}");
            assert_eq!(accuracies[0], accuracies[1]);
        }
    }
    // New rows are scaled as the run's own were, which is what its test rows show.
    for run in ["a.svm-none-svgd-30", "a.svm-max-abs-svgd-30"] {
        let [of_dataset, of_file] = ["a.h5", "test.svm"].map(|rows| format!("predict {run} {rows}"));
        let scaling = if run.contains("none") { "none" } else { "max-abs" };
        mpibayes(folder.path(), &format!("import a.svm --test-fraction 0.25 --scaling {scaling} --force -o a.h5"));
        let table = mpibayes(folder.path(), &of_dataset);
        let (_, sparse) = tables(240, 12);
        let lines: Vec<&str> = sparse.lines().collect();
        let dataset = Dataset::open(&folder.path().join("a.h5")).unwrap();
        assert_eq!(dataset.rows(Split::Test), 60);
        std::fs::write(folder.path().join("test.svm"), lines.join("\n")).unwrap();
        let all = mpibayes(folder.path(), &of_file);
        // Of all rows a quarter are those of the test, in their order.
        let predictions = |table: &str| table.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().to_owned()).collect();
        let (test, all): (Vec<String>, Vec<String>) = (predictions(&table), predictions(&all));
        let mut rest = all.iter();
        assert!(all.len() == 240 && test.iter().all(|one| rest.any(|other| other == one)), "{run}");
    }
    // The control: other numbers make other bits.
    assert_ne!(posterior(folder.path(), "a.svm-none-svgd-30"), posterior(folder.path(), "a.svm-max-abs-svgd-30"));
}

/// Runs the program and returns the most memory that it held, in bytes.
fn peak_memory(folder: &Path, arguments: &str) -> usize {
    let child = unlaunched(env!("CARGO_BIN_EXE_mpibayes")).current_dir(folder).args(arguments.split(' ')).spawn().unwrap();
    // SAFETY: plain numbers, for which zeros are values, filled in by the call.
    let (status, usage) = unsafe {
        let (mut status, mut usage): (_, libc::rusage) = (0, std::mem::zeroed());
        assert_eq!(libc::wait4(child.id().cast_signed(), &mut status, 0, &mut usage), child.id().cast_signed());
        (status, usage)
    };
    assert_eq!(status, 0, "mpibayes {arguments} failed");
    usize::try_from(usage.ru_maxrss).unwrap() * 1024
}

#[test]
fn wide_data_take_the_memory_of_what_is_not_zero() {
    const ROWS: usize = 100_000;
    const FEATURES: u32 = 50_000;
    const LIMIT: usize = 200_000_000;
    let folder = tempfile::tempdir().unwrap();
    let mut stream = Seed(8).stream(Who::Run, 0, Purpose::Synthetic);
    let mut text = String::new();
    for row in 0..ROWS {
        write!(text, "{}", row % 2).unwrap();
        // Twenty columns, one of every twentieth of them.
        for part in 0..20 {
            let column = part * (FEATURES / 20) + stream.random_range(1..=FEATURES / 20);
            write!(text, " {column}:{}", stream.random_range(1..100)).unwrap();
        }
        text.push('\n');
    }
    std::fs::write(folder.path().join("wide.svm"), text).unwrap();
    let import = "import wide.svm --features 50000 --test-fraction 0.01 --scaling max-abs -o a.h5";
    let said = mpibayes(folder.path(), import);
    assert!(said.contains("50,000") && said.contains("2,000,000 values are not zero"), "{said}");
    let file = run_file("svgd", 50)
        .replace("agents = 3", "agents = 1")
        .replace("particles = 4", "particles = 2")
        .replace("steps = 5", "steps = 2");
    std::fs::write(folder.path().join("run.toml"), file).unwrap();
    let most = peak_memory(folder.path(), &format!("{import} --force"))
        .max(peak_memory(folder.path(), "run run.toml --set method.rounds=1 --output wide"));
    assert!(most < LIMIT, "{most} bytes");
    // The control: the measurement sees at least what is stored, and dense rows would not pass.
    assert!(most > ROWS * 20 * 12 && ROWS * FEATURES as usize * 8 > 100 * LIMIT);
}
