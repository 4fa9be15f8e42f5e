//! Tests of summaries: what is printed, what JSON holds, and error messages.

#![allow(clippy::unwrap_used)]
use super::display::evenly_spaced;
use super::*;
use crate::cluster::record::Row;
use crate::models::Part;
use crate::results::{RunInfo, Samples, Values, checkpoint_file, config_file, result_file, write_run};
use ndarray::Array3;
use std::path::Path;

fn read(run: &Path) -> Summary {
    Summary::of(&RunResults::open(run).unwrap(), false).unwrap()
}

fn row(table: &str, step: u64, agent: Option<u32>, values: &[(&str, f64)]) -> Row {
    Row { table: table.into(), step, agent, values: values.iter().map(|&(name, value)| (name.into(), value)).collect() }
}

fn write(folder: &Path, rounds: u64) -> PathBuf {
    let mut rows = vec![
        row("traffic", rounds, None, &[("tasks_messages", 1200.0), ("tasks_bytes", 3.5e6), ("parts_of_sums_messages", 3.0)]),
        row("metrics", rounds, Some(0), &[("accuracy", 0.1)]),
    ];
    for step in 1..=rounds {
        rows.push(row("history", step, None, &[("seconds", step as f64 / 4.0), ("bandwidth", 0.5)]));
        let accuracy = 1.0 - 0.5 / step as f64;
        rows.push(row(
            "metrics",
            step,
            None,
            &[("accuracy", accuracy), ("ece", 0.0213), ("mce_20", f64::NAN), ("log_likelihood", -0.4567)],
        ));
    }
    let parts = vec![Part::new("weights_1", &[3, 2]), Part::new("log_precision", &[])];
    let samples =
        Samples { group: "posterior".into(), kind: SampleKind::Particles, parts, values: Values::F32(Array3::zeros((1, 20, 7))) };
    let info = RunInfo::new("dsvgd", "network", 7, "0123456789abcdef", "seed = 7\n[data]\nfile = \"my.h5\"\n");
    let path = result_file(folder);
    write_run(&path, &info, &[samples], &rows).unwrap();
    path
}

#[test]
fn folder_and_file_have_the_same_complete_summary() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), 3);
    let summary = read(folder.path());
    assert_eq!(format!("{summary:?}"), format!("{:?}", read(&path)));
    let shown = summary.to_string();
    for line in [
        "  method   dsvgd\n",
        "  data     my.h5 (digest 0123456789ab)\n",
        "final metrics (round 3)\n  accuracy        83.33 %\n  ece             0.0213  expected calibration error\n  mce_20          -  maximum calibration error of bins with at least 20 rows\n  log_likelihood  -0.4567 nats per row\n",
        "\nposterior: 20 particles × 7 parameters\n",
        "\nposterior estimates\n  parameter       mean  sd  5 %  95 %\n  weights_1[0,0]     0   0    0     0\n",
        "  weights_1       3 × 2     6\n  log_precision  scalar     1\n",
    ] {
        assert!(shown.contains(line), "{line}\nin\n{shown}");
    }
    // What is only wanted now and then has screens of its own.
    let (rounds, ranks) = (summary.rounds_text(), summary.operation.text());
    for (screen, line) in [
        (&rounds, "  round  accuracy     ece  mce_20  log_likelihood\n      1    0.5000  0.0213       -         -0.4567\n"),
        (&rounds, "history of the method\n  round  seconds  bandwidth\n      1     0.25     0.5000\n"),
        (&ranks, "  tasks             1,200  3.3 MiB\n  parts of sums         3      0 B\n"),
    ] {
        assert!(screen.contains(line) && !shown.contains(line), "{line}\nin\n{screen}");
    }
}

#[test]
fn json_has_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 40);
    let summary = read(folder.path());
    let json: serde_json::Value = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(json["metrics"]["accuracy"], 0.9875);
    assert!(json["metrics"]["mce_20"].is_null());
    assert_eq!((json["seed"].as_u64(), json["method"].as_str()), (Some(7), Some("dsvgd")));
    assert_eq!(json["history"].as_array().map(Vec::len), Some(40));
    assert_eq!(json["evaluations"][39]["accuracy"], 0.9875);
    assert_eq!((&json["history"][1]["step"], &json["history"][1]["seconds"]), (&2.into(), &0.5.into()));
    assert_eq!(json["draws"][0]["parts"][0]["shape"], serde_json::json!([3, 2]));
    assert_eq!(json["traffic"][0], serde_json::json!({"purpose": "tasks", "messages": 1200, "bytes": 3_500_000}));
    let shown = summary.rounds_text();
    assert!(
        shown.contains("history of the method (16 of 40 rows; --json has all)")
            && shown.contains("\n      1  ")
            && shown.contains("\n     40  "),
        "{shown}"
    );
}

#[test]
fn an_unfinished_run_shows_its_progress() {
    let folder = tempfile::tempdir().unwrap();
    let path = result_file(folder.path());
    let state = RunState { finished: false, done: 7, total: 12, seconds: 3.0 };
    let method = |settings: &str| {
        let config = format!("[data]\nfile = \"a.h5\"\n[model]\nname = \"linear\"\n[method]\n{settings}");
        RunInfo { state, ..RunInfo::new("", "linear", 1, "", &config) }
    };
    let info = method("name = \"sghmc\"\nsteps = 12\nburn_in = 2\nstep = 0.01\n");
    write_run(&path, &info, &[], &[row("metrics", 7, None, &[("rmse", 2.0)])]).unwrap();
    let summary = read(folder.path());
    let shown = summary.to_string();
    assert_eq!(shown.lines().nth(1), Some("not finished (round 7 of 12): these are the results so far, without draws"));
    assert!(shown.contains("\nlatest metrics (round 7)\n"), "{shown}");
    assert_eq!((summary.finished, summary.rounds_done), (false, 7));
    let parts = vec![Part::new("weights", &[2])];
    let values = Values::F32(Array3::zeros((1, 4, 2)));
    let samples = Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values };
    write_run(&path, &info, std::slice::from_ref(&samples), &[]).unwrap();
    assert_eq!(
        read(folder.path()).to_string().lines().nth(1),
        Some("not finished (round 7 of 12): these are the results so far; `mpibayes judge` judges its draws")
    );
    // Points are not judged.
    write_run(&path, &method("name = \"fedavg\"\nrounds = 12\n"), &[samples], &[]).unwrap();
    assert_eq!(
        read(folder.path()).to_string().lines().nth(1),
        Some("not finished (round 7 of 12): these are the results so far")
    );
    // The control: a finished run.
    write_run(&path, &RunInfo::new("svgd", "toy", 1, "", ""), &[], &[]).unwrap();
    assert!(!read(folder.path()).to_string().contains("not finished"));
}

#[test]
fn calibration_and_classes_are_from_the_last_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let path = result_file(folder.path());
    let mut rows = vec![row("phases", 0, None, &[("compute", 3.0), ("wait_for_others", 1.0)])];
    for step in [1, 2] {
        for (bin, count) in [(8, 0.0), (9, 40.0 * step as f64)] {
            let values = [("lower", bin as f64 / 10.0), ("upper", (bin + 1) as f64 / 10.0), ("rows", count)];
            rows.push(row("reliability", step, None, &[&values[..], &[("accuracy", 0.9), ("confidence", 0.95)]].concat()));
        }
        let class = |class: usize| [("class", class as f64), ("rows", 10.0), ("accuracy", (class as f64) / 100.0)];
        rows.extend((0..30).map(|number| row("classes", step, None, &class(number))));
    }
    write_run(&path, &RunInfo::new("svgd", "toy", 1, "", ""), &[], &rows).unwrap();
    let mut summary = read(folder.path());
    summary.class_names = (0..30).map(|number| format!("name{number}")).collect();
    let shown = summary.to_string();
    for line in [
        "          bin  rows  confidence  accuracy  overconfidence\n  90 to 100 %    80      95.0 %    90.0 %           5.0 %\n",
        "\naccuracy by class (the worst 20 of 30; --json has all)\n  class   rows  accuracy\n  name0     10     0.0 %\n",
    ] {
        assert!(shown.contains(line), "{line}\nin\n{shown}");
    }
    let ranks = summary.operation.text();
    assert!(ranks.contains("  compute          3.00 s  75.0 %\n  wait for others  1.00 s  25.0 %\n"), "{ranks}");
    assert!(!shown.contains("80 to 90") && !shown.contains("name20"), "{shown}");
    assert_eq!((summary.reliability.len(), summary.classes.len()), (4, 60));
}

#[test]
fn a_metric_is_found_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), 2);
    let summary = read(&path);
    assert_eq!(summary.metric("accuracy").unwrap(), "0.7500");
    let refused = summary.metric("rmse").unwrap_err().to_string();
    assert!(refused.contains("accuracy, ece, mce_20, log_likelihood"), "{refused}");
}

#[test]
fn a_run_without_metrics_shows_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.h5");
    write_run(&path, &RunInfo::new("svgd", "toy", 1, "", ""), &[], &[row("history", 5, None, &[("seconds", 1.0)])]).unwrap();
    let summary = read(&path);
    let (shown, rounds) = (summary.to_string(), summary.rounds_text());
    assert!(shown.contains("data     none") && rounds.contains("  round  seconds\n      5     1.00\n"), "{shown}\n{rounds}");
    assert!(summary.metric("accuracy").unwrap_err().to_string().contains("no predictions were evaluated"));
}

#[test]
fn other_folders_and_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| RunResults::open(path).unwrap_err().to_string();
    assert!(refused(&folder.path().join("nowhere")).contains("no such folder"));
    assert!(refused(folder.path()).contains("not the folder of a run"));
    // A run that has just begun has a configuration; later it has a checkpoint.
    for file in [config_file, checkpoint_file] {
        let begun = tempfile::tempdir().unwrap();
        std::fs::write(file(begun.path()), "content").unwrap();
        let message = refused(begun.path());
        assert!(message.contains("not finished") && message.contains("mpibayes resume"), "{message}");
    }
    let foreign = folder.path().join("x.h5");
    std::fs::write(&foreign, "hello").unwrap();
    assert!(refused(&foreign).contains("not a result file of mpibayes"));
}

#[test]
fn selected_rows_include_both_ends() {
    assert_eq!(evenly_spaced(3, 5), [0, 1, 2]);
    assert_eq!(evenly_spaced(101, 5), [0, 25, 50, 75, 100]);
}
