//! Sparse rows, from the file to the posterior: draws and predictions have the bits of those of dense rows.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use mpibayes::data::{Dataset, Split};
use mpibayes::random::{Purpose, Seed, Who};
use rand::RngExt;
use std::fmt::Write;

fn run_file(method: &str, batch: usize) -> String {
    let steps = if method == "svgd" { "steps = 5" } else { "local_steps = 5\ndistillation_steps = 5" };
    format!(
        "seed = 3\nagents = 3\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"{method}\"\nparticles = 4\n\
         rounds = 4\nbatch = {batch}\n{steps}\n"
    )
}

/// The same table as CSV and as LIBSVM text. Two thirds of its values are zero, and the first two columns separate the classes.
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

/// The draws depend on every gradient of the run, of minibatches and of all rows.
#[test]
fn sparse_rows_give_the_draws_and_predictions_of_dense_rows() {
    let cli = Cli::new();
    let (dense, sparse) = tables(240, 12);
    cli.write("a.csv", dense);
    cli.write("a.svm", sparse);
    for scaling in ["none", "max-abs"] {
        for (method, batch) in [("svgd", 30), ("dsvgd", 30), ("svgd", 1000)] {
            cli.write("run.toml", run_file(method, batch));
            let mut accuracies = Vec::new();
            for file in ["a.csv", "a.svm"] {
                let said = cli.stdout(&format!("import {file} --test-fraction 0.25 --scaling {scaling} --force -o a.h5"));
                assert_eq!(said.contains("nonzero values"), file == "a.svm", "{said}");
                let run = format!("{file}-{scaling}-{method}-{batch}");
                cli.succeed(&format!("run run.toml --output {run}"));
                accuracies.push(cli.stdout(&format!("summary {run} --get log_likelihood")));
                let has_no_table =
                    cli.stdout(&format!("summary {run}")).contains("no table in the units of the data: the rows are sparse");
                assert_eq!(has_no_table, file == "a.svm");
            }
            let of = |file: &str| cli.posterior(&format!("{file}-{scaling}-{method}-{batch}"));
            // Only the table has names of features.
            assert_eq!(of("a.svm").values, of("a.csv").values, "{scaling} {method} {batch}");
            assert_eq!(accuracies[0], accuracies[1]);
        }
    }
    // New rows are scaled like the training rows of the run, as its test rows show.
    for run in ["a.svm-none-svgd-30", "a.svm-max-abs-svgd-30"] {
        let [of_dataset, of_file] = ["a.h5", "test.svm"].map(|rows| format!("predict {run} {rows}"));
        let scaling = if run.contains("none") { "none" } else { "max-abs" };
        cli.succeed(&format!("import a.svm --test-fraction 0.25 --scaling {scaling} --force -o a.h5"));
        let table = cli.stdout(&of_dataset);
        let (_, sparse) = tables(240, 12);
        let lines: Vec<&str> = sparse.lines().collect();
        let dataset = Dataset::open(&cli.path("a.h5")).unwrap();
        assert_eq!(dataset.rows(Split::Test), 60);
        cli.write("test.svm", lines.join("\n"));
        let all = cli.stdout(&of_file);
        // A quarter of all rows are the test rows, in their order.
        let predictions = |table: &str| table.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().to_owned()).collect();
        let (test, all): (Vec<String>, Vec<String>) = (predictions(&table), predictions(&all));
        let mut rest = all.iter();
        assert!(all.len() == 240 && test.iter().all(|one| rest.any(|other| other == one)), "{run}");
    }
    // The control: another scaling gives other draws.
    assert_ne!(cli.posterior("a.svm-none-svgd-30"), cli.posterior("a.svm-max-abs-svgd-30"));
}
