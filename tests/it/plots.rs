//! `mpibayes plot` and `mpibayes compare`: pictures, tables and messages for mistakes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use mpibayes::cluster::record::Row;
use mpibayes::models::Part;
use mpibayes::results::{RunInfo, RunState, SampleKind, Samples, Values, write_run};
use ndarray::Array3;
use std::path::Path;

fn row(table: &str, step: u64, values: &[(&str, f64)]) -> Row {
    Row { table: table.into(), step, agent: None, values: values.iter().map(|&(name, value)| (name.into(), value)).collect() }
}

/// Metrics and a history that improve, a little differently for each seed.
fn rows(rounds: u64, seed: u64, bytes: bool) -> Vec<Row> {
    let sent = 1024.0 * rounds as f64;
    let mut rows = vec![
        row("traffic", rounds, &[("tasks_messages", 12.0), ("tasks_bytes", 999.0)]),
        row("agent_bytes", 0, &[("received", sent), ("sent", sent)]),
    ];
    for step in 1..=rounds {
        let t = step as f64;
        let wobble = 0.02 * ((7 * seed + 3 * step) as f64).sin();
        let metrics =
            [("accuracy", 0.9 - 0.4 / t + wobble), ("ece", 0.2 / t), ("mce_20", f64::NAN), ("log_likelihood", -1.0 / t)];
        rows.push(row("metrics", step, &metrics));
        let mut history = vec![("seconds", t / 4.0 + 0.01 * seed as f64), ("bandwidth", 3.5)];
        if bytes {
            history.push(("bytes", 2048.0 * t));
        }
        rows.push(row("history", step, &history));
    }
    rows
}

fn reliability(step: u64) -> Vec<Row> {
    let sizes = [0.0, 0.0, 3.0, 25.0, 60.0, 110.0, 180.0, 300.0, 700.0, 1622.0];
    let bin = |j: usize| {
        let (lower, rows) = (j as f64 / 10.0, sizes[j]);
        let confidence = if rows > 0.0 { lower + 0.06 } else { f64::NAN };
        let accuracy = (confidence * 0.9 + 0.02 * (j as f64).cos()).min(1.0);
        let values =
            [("lower", lower), ("upper", lower + 0.1), ("rows", rows), ("accuracy", accuracy), ("confidence", confidence)];
        row("reliability", step, &values)
    };
    (0..sizes.len()).map(bin).collect()
}

fn config(method: &str, seed: u64, settings: &str) -> String {
    format!(
        "seed = {seed}\n[data]\nfile = \"datasets/bananas.h5\"\n[model]\nname = \"network\"\n[method]\nname = \"{method}\"\n{settings}\n"
    )
}

fn write(cli: &Cli, name: &str, config: &str, samples: &[Samples], rows: &[Row]) {
    let parsed: toml::Table = config.parse().unwrap();
    let seed = u64::try_from(parsed["seed"].as_integer().unwrap()).unwrap();
    let info = RunInfo::new(parsed["method"]["name"].as_str().unwrap(), "network", seed, "0123456789abcdef", config);
    std::fs::create_dir_all(cli.path(name)).unwrap();
    write_run(&cli.path(name).join("result.h5"), &info, samples, rows).unwrap();
}

/// Autoregressive chains.
fn draws(chains: usize, draws: usize) -> Samples {
    let parts = vec![Part::new("weights_1", &[3, 4]), Part::new("biases_1", &[4]), Part::new("log_precision", &[])];
    let mut values = Array3::zeros((chains, draws, 17));
    for (chain, draw, index) in ndarray::indices((chains, draws, 17)) {
        // The sum of three far-apart sines of large arguments is about as good as noise here.
        let at = (1 + chain * 7919 + draw * 104_729 + index * 1_299_709) as f64;
        let noise = (12.9898 * at).sin() + (78.233 * at).sin() + (37.719 * at).sin();
        let before = if draw == 0 { 0.0 } else { values[[chain, draw - 1, index]] };
        values[[chain, draw, index]] = 0.6 * before + noise;
    }
    Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values: Values::F64(values) }
}

/// A run of four chains with all tables and groups.
fn chains(cli: &Cli) {
    let rows: Vec<Row> = rows(12, 1, false).into_iter().chain(reliability(11)).chain(reliability(12)).collect();
    write(cli, "chains", &config("sghmc", 1, "step = 0.1"), &[draws(4, 500)], &rows);
}

/// A run of particles without a reliability table.
fn particles(cli: &Cli) {
    let samples = Samples { kind: SampleKind::Particles, ..draws(1, 30) };
    write(cli, "particles", &config("svgd", 1, "particles = 30"), &[samples], &rows(6, 1, false));
}

/// The width and height of a PNG file, and the number of its pixels that are not white.
fn png(path: &Path) -> (u32, u32, usize) {
    let picture = resvg::tiny_skia::Pixmap::load_png(path).unwrap();
    let ink = picture.pixels().iter().filter(|pixel| (pixel.red(), pixel.green(), pixel.blue()) != (255, 255, 255)).count();
    (picture.width(), picture.height(), ink)
}

#[test]
fn all_figures_are_drawn_by_default() {
    let cli = Cli::new();
    chains(&cli);
    let expected: String = ["history", "reliability", "posterior", "chains"]
        .iter()
        .flat_map(|kind| ["svg", "png"].map(|format| format!("chains/plots/{kind}.{format}\n")))
        .collect();
    let output = cli.run("plot chains");
    assert_eq!(output.stdout, expected);
    let said = output.stderr;
    assert!(said.contains("12 of 17 parameters") && said.contains("--parameter"), "{said}");
    for file in expected.lines() {
        let path = cli.path(file);
        if file.ends_with("png") {
            let (width, height, ink) = png(&path);
            assert!(width > 900 && height > 600 && ink > 5000, "{file}: {width} × {height}, {ink}");
        } else {
            let svg = std::fs::read_to_string(&path).unwrap();
            for says in ["method sghmc", "model network", "data bananas.h5", "seed 1"] {
                assert!(svg.contains(says), "{file}: {says}");
            }
        }
    }
    // Pictures are derived: the same command again replaces them, and nothing half-written stays.
    cli.write("chains/plots/history.svg", "old");
    assert_eq!(cli.stdout("plot chains/result.h5"), expected);
    assert!(cli.read("chains/plots/history.svg").contains("accuracy"));
    assert_eq!(std::fs::read_dir(cli.path("chains/plots")).unwrap().count(), 8);
}

#[test]
fn formats_sizes_and_paths_are_as_requested() {
    let cli = Cli::new();
    chains(&cli);
    let at = |name: &str| cli.path(name);
    assert_eq!(cli.stdout("plot chains history -o new/a.png --size 700x500 --scale 1"), "new/a.png\n");
    assert_eq!(png(&at("new/a.png")).0, 700);
    assert_eq!(png(&at("new/a.png")).1, 500);
    cli.stdout("plot chains history -o b.png --size 700x500 --scale 2.5");
    assert_eq!((png(&at("b.png")).0, png(&at("b.png")).1), (1750, 1250));
    assert_eq!(cli.stdout("plot chains history reliability -o d --format svg"), "d/history.svg\nd/reliability.svg\n");
    let files = cli.stdout("plot chains history -o alpha0.5 --pair weights_1[0,1] log_precision --format png");
    assert_eq!(files, "alpha0.5/history.png\nalpha0.5/pair.png\n");
    cli.refuse("plot chains -o c.svg", &["c.svg is one file", "history, reliability, posterior, chains"]);
    cli.refuse("plot chains history -o c.svg --format png", &["contradict"]);
    cli.refuse("plot chains posterior --size 200x200", &["200 × 200", "too small for 12 panels"]);
    cli.refuse("plot chains history --size 20000x20000", &["exceeds 100 million"]);
    std::fs::write(at("file"), "").unwrap();
    cli.refuse("plot chains history -o file", &["file/history.svg", "cannot write"]);
}

#[test]
fn columns_and_parameters_are_chosen_by_name() {
    let cli = Cli::new();
    chains(&cli);
    let drawn = |arguments: &str, kind: &str| {
        cli.stdout(&format!("plot chains {kind} --format svg {arguments}"));
        cli.read(&format!("chains/plots/{kind}.svg"))
    };
    let all = drawn("", "history");
    assert!(all.contains(">accuracy<") && !all.contains(">bandwidth<") && all.contains("No values: mce_20"), "{all}");
    assert!(drawn("--details", "history").contains(">bandwidth<"));
    let seconds = drawn("--against seconds --metric ece,bandwidth", "history");
    assert!(seconds.contains(">time (s)<") && seconds.contains(">bandwidth<") && !seconds.contains(">accuracy<"));
    assert!(drawn("--metric mce_20", "history").contains("no finite values"));
    let one = drawn("--parameter weights_1[2,3] --parameter log_precision", "posterior");
    assert!(one.contains(">weights_1[2,3]<") && one.contains(">log_precision<") && !one.contains("biases_1"));
    cli.refuse("plot chains history --metric acuracy", &["chains", "acuracy", "accuracy, ece"]);
    cli.refuse("plot chains posterior --parameter weights_2", &["weights_1[3 × 4], biases_1[4], log_precision"]);
    cli.refuse("plot chains posterior --pair biases_1 log_precision", &["biases_1[0]"]);
    cli.refuse("plot chains history --against bytes", &["no column of bytes"]);
}

#[test]
fn missing_data_is_reported() {
    let cli = Cli::new();
    particles(&cli);
    cli.refuse("plot nowhere", &["nowhere: there is no such folder"]);
    cli.refuse("plot particles reliability", &["particles", "reliability table", "data for: history, posterior"]);
    cli.refuse("plot particles history chains", &["particles have no order", "data for: history, posterior"]);
    write(&cli, "empty", &config("svgd", 1, ""), &[], &[]);
    cli.refuse("plot empty", &["empty: nothing to draw"]);
    cli.refuse("plot empty posterior", &["no draws", "data for: nothing"]);
    // Particles have no order, so there is no trace plot. The control: chains have one, above.
    assert!(!cli.stdout("plot particles").contains("chains"));
    std::fs::create_dir(cli.path("begun")).unwrap();
    cli.write("begun/config.toml", "seed = 1");
    cli.refuse("plot begun", &["not finished"]);
}

#[test]
fn figures_of_an_unfinished_run_say_so() {
    let cli = Cli::new();
    particles(&cli);
    let quiet = cli.run("plot particles history --format svg");
    assert!(quiet.code == 0 && quiet.stderr.is_empty());
    let info = RunInfo::new("svgd", "network", 1, "0123456789abcdef", &config("svgd", 1, "particles = 30"));
    let info = RunInfo { state: RunState { finished: false, ..RunState::over() }, ..info };
    write_run(&cli.path("particles/result.h5"), &info, &[], &rows(6, 1, false)).unwrap();
    let output = cli.run("plot particles history --format svg");
    assert!(output.code == 0 && output.stderr.contains("not finished"));
    let svg = cli.read("particles/plots/history.svg");
    assert!(svg.contains("· not finished"), "{svg}");
}

/// Two methods of three seeds each, and one with another setting.
fn several(cli: &Cli) {
    for seed in 1..=3 {
        write(
            cli,
            &format!("runs/a-{seed}"),
            &config("dsvgd", seed, "particles = 20\nlocal_steps = 5"),
            &[],
            &rows(9, seed, true),
        );
        write(cli, &format!("runs/b-{seed}"), &config("svgd", seed, "particles = 20\nsteps = 5"), &[], &rows(6, seed + 5, true));
    }
    write(cli, "runs/c", &config("svgd", 1, "particles = 50\nsteps = 5"), &[], &rows(6, 9, true));
}

#[test]
fn a_comparison_shows_differing_settings_and_values() {
    let cli = Cli::new();
    several(&cli);
    let table = cli.stdout("compare runs/a-1 runs/b-1 runs/c");
    let lines: Vec<&str> = table.lines().collect();
    let heading: Vec<&str> = lines[0].split_whitespace().collect();
    // Not the seed, which is the same; not the steps, which follow from the method.
    let columns = ["run", "method", "particles", "accuracy", "ece", "mce_20", "log_likelihood", "rounds", "time", "bytes"];
    assert_eq!(heading, columns, "{table}");
    assert!(lines[1].contains("dsvgd") && lines[1].contains("0.0222") && lines[1].contains("18.0 KiB"), "{table}");
    assert!(table.contains("A difference can be chance: run several seeds") && table.contains("--output FILE.svg"));
    assert!(!table.contains('*'), "{table}");

    let json: serde_json::Value = serde_json::from_str(&cli.stdout("compare runs/a-1 runs/a-2 --json")).unwrap();
    assert_eq!(json["differs"], serde_json::json!(["seed"]));
    assert_eq!((&json["runs"][1]["settings"]["seed"], &json["runs"][0]["bytes"]), (&"2".into(), &18432.into()));
    assert!(json["runs"][0]["metrics"]["mce_20"].is_null() && json["best"].get("mce_20").is_none());
    assert_eq!(json["groups"][0]["runs"], serde_json::json!(["a-1", "a-2"]));
    let csv = cli.stdout("compare runs/a-1 runs/c --csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let headers = reader.headers().unwrap().clone();
    assert_eq!(headers.iter().take(4).collect::<Vec<_>>(), ["run", "method", "method.name", "method.particles"]);
    assert_eq!(reader.records().map(|record| record.unwrap().len()).collect::<Vec<_>>(), [headers.len(); 2]);
}

#[test]
fn seeds_share_a_row_and_the_best_is_marked_if_they_tell() {
    let cli = Cli::new();
    several(&cli);
    let seeds = "runs/a-1 runs/b-1 runs/a-2 runs/b-2 runs/a-3 runs/b-3";
    let table = cli.stdout(&format!("compare {seeds}"));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("settings") && lines[0].contains("seeds") && lines.len() < 12, "{table}");
    // The accuracy tells. The others have no spread over these seeds, so that they tell nothing.
    assert!(lines[1].contains("dsvgd") && lines[1].contains("0.8529 ± 0.0130 *"), "{table}");
    assert!(lines[1].contains("0.0222 ± 0.0000") && !table.contains("- ±"), "{table}");
    assert_eq!((lines[1].matches('*').count(), lines[2].matches('*').count()), (1, 0), "{table}");
    assert!(
        table.contains("no mark for ece, mce_20, log_likelihood: the seeds explain the differences between settings"),
        "{table}"
    );
    assert!(table.contains("mean ± standard deviation over seeds") && table.contains("Welch's t-test"), "{table}");
    let each = cli.stdout(&format!("compare {seeds} --each-run"));
    assert!(each.lines().filter(|line| line.contains("svgd")).count() == 6 && !each.contains('*'), "{each}");
    let json: serde_json::Value = serde_json::from_str(&cli.stdout(&format!("compare {seeds} --json"))).unwrap();
    assert_eq!(json["best"], serde_json::json!({ "accuracy": ["dsvgd"] }));
    let accuracy: Vec<f64> = [0, 2, 4].map(|run| json["runs"][run]["metrics"]["accuracy"].as_f64().unwrap()).to_vec();
    let mean = accuracy.iter().sum::<f64>() / 3.0;
    assert!((json["groups"][0]["metrics"]["accuracy"]["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
}

#[test]
fn the_folder_of_a_sweep_stands_for_its_runs() {
    let cli = Cli::new();
    several(&cli);
    // Beside runs there are tables and pictures.
    std::fs::create_dir(cli.path("runs/plots")).unwrap();
    cli.write("runs/sweep.csv", "run,step\n");
    let table = cli.stdout("compare runs");
    assert!(table.contains("dsvgd, particles 20") && table.contains("svgd, particles 50"), "{table}");
    let drawn = cli.run("plot runs --format svg --band range");
    assert!(drawn.code == 0 && drawn.stderr.contains("wrote runs/plots/accuracy.svg"), "{}", drawn.stderr);
    assert!(cli.read("runs/plots/accuracy.svg").contains(">svgd, particles 20 (mean and range of 3 seeds)<"));
    assert!(cli.read("runs/plots/log_likelihood.svg").contains("Log-likelihood by time"));
    cli.succeed("plot runs --metric bandwidth --against round --output one.svg");
    let one = cli.read("one.svg");
    assert!(one.contains("mean and sd of 3 seeds") && one.contains("Bandwidth by round"), "{one}");
    cli.refuse("plot runs posterior", &["runs: this is the folder of a sweep", "name one of its runs"]);
    cli.refuse("plot runs --output one.svg", &["one.svg: this is one file for several figures"]);
    cli.refuse("compare runs runs/a-1", &["runs/a-1: this run is given twice"]);
}

/// A setting with settings of its own is named, and its own settings are listed only where they differ.
#[test]
fn a_choice_is_named_in_legends() {
    let cli = Cli::new();
    let settings = [
        "cavity = \"density\"",
        "cavity = { sites = { damping = 0.5, covariance = \"whole\" } }",
        "cavity = { sites = { damping = 1.0, covariance = \"whole\" } }",
    ];
    for (place, cavity) in settings.iter().enumerate() {
        write(&cli, &format!("runs/{place}"), &config("dsvgd", 1, cavity), &[], &rows(6, 1, false));
    }
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("compare runs --json")).unwrap();
    let labels: Vec<&str> = json["groups"].as_array().unwrap().iter().map(|group| group["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["cavity density", "cavity sites, damping 0.5", "cavity sites, damping 1.0"]);
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("compare runs/0 runs/1 --json")).unwrap();
    assert_eq!(json["groups"][1]["label"], "cavity sites");
}

#[test]
fn a_comparison_draws_seeds_as_one_line() {
    let cli = Cli::new();
    several(&cli);
    let runs = "runs/a-1 runs/b-1 runs/a-2 runs/c runs/b-2 runs/a-3 runs/b-3";
    let drawn = |arguments: &str| {
        let output = cli.run(&format!("compare {runs} --output c.svg {arguments}"));
        assert!(output.code == 0 && output.stderr.contains("wrote c.svg"), "{}", output.stderr);
        cli.read("c.svg")
    };
    let svg = drawn("");
    for says in [
        ">Accuracy by time<",
        "dsvgd, particles 20 (mean and sd of 3 seeds)",
        ">svgd, particles 20 (mean and sd of 3 seeds)<",
        ">svgd, particles 50<",
        "data bananas.h5 · 7 runs",
    ] {
        assert!(svg.contains(says), "{says} in {svg}");
    }
    assert_eq!((svg.matches("class=\"line\"").count(), svg.matches("class=\"band\"").count()), (3, 2));
    assert!(drawn("--against seconds --metric ece").contains(">time (s)<"));
    assert!(drawn("--against round").contains(">Accuracy by round<"));
    assert!(drawn("--against bytes").contains("bytes received and sent by agents"));
    assert!(!cli.exists("c.png"));
}

#[test]
fn runs_that_cannot_be_compared_are_reported() {
    let cli = Cli::new();
    several(&cli);
    particles(&cli);
    cli.refuse("compare runs/a-1 runs/none", &["runs/none: there is no such folder"]);
    cli.refuse("compare runs/a-1 runs/c --metric f1", &["\"f1\"", "accuracy, bandwidth, ece"]);
    // `runs/*` names what lies there, runs or not.
    std::fs::create_dir(cli.path("runs/pictures")).unwrap();
    let output = cli.run("compare runs/a-1 runs/pictures runs/a-2");
    assert!(output.code == 0 && output.stderr.contains("left out: runs/pictures: this is not the folder of a run"));
    cli.refuse("plot runs/a-1 history -o history.pdf", &["history.pdf: figures are written as .svg or .png"]);
    // Without bytes in its history a run is left out; without any there is no picture, but the table.
    let output = cli.run("compare runs/a-1 particles --against bytes --output d.svg");
    assert!(output.code == 0 && output.stderr.contains("particles: not in the figure"), "{}", output.stderr);
    std::fs::create_dir(cli.path("copy")).unwrap();
    std::fs::copy(cli.path("particles/result.h5"), cli.path("copy/result.h5")).unwrap();
    cli.refuse("compare particles runs/../particles", &["runs/../particles: this run is given twice"]);
    let output = cli.run("compare particles copy --against bytes --output e.svg");
    assert!(output.code == 0 && output.stderr.contains("no figure") && !output.stdout.is_empty());
    assert!(cli.exists("d.svg") && !cli.exists("e.svg"));
    let other = config("svgd", 4, "particles = 30");
    let info = RunInfo::new("svgd", "network", 4, "fedcba9876543210", &other);
    std::fs::create_dir(cli.path("elsewhere")).unwrap();
    write_run(&cli.path("elsewhere/result.h5"), &info, &[], &rows(6, 4, false)).unwrap();
    assert!(cli.stdout("compare particles elsewhere").contains("different data"));
    assert!(!cli.stdout("compare runs/a-1 runs/a-2").contains("different data"));
}
