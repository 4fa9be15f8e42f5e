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
    cli.refuse(
        "plot chains history -o file",
        &["--output file: this is a file: name a folder, or a file that ends in .svg or .png"],
    );
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
    cli.refuse(
        "plot chains posterior --parameter weights_2",
        &["weights_1[0,0] to weights_1[2,3], biases_1[0] to biases_1[3], log_precision"],
    );
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
    assert!(table.contains("no mark for ece, mce_20, log_likelihood: so few seeds do not tell the settings apart"), "{table}");
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
    cli.refuse("plot runs posterior", &["runs: this folder holds several runs", "name one of them"]);
    cli.refuse(
        "plot runs --output runs/sweep.csv",
        &["--output runs/sweep.csv: this is a file: name a folder, or a file that ends in"],
    );
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

/// The log-likelihood −1/2 and an accuracy that grows by 1 % a round, in every `every`-th round from `first` to 60, and bytes of each round.
fn evaluated(first: usize, every: usize, bytes: f64) -> Vec<Row> {
    let metrics = (first..=60).step_by(every).map(|step| {
        row("metrics", step as u64, &[("accuracy", 0.2 + 0.01 * step as f64), ("log_likelihood", -0.5), ("ece", f64::NAN)])
    });
    let history = (0..=60).map(|step| row("history", step, &[("bytes", bytes * step as f64)]));
    metrics.chain(history).collect()
}

/// The areas of the bands in a figure.
fn bands(svg: &str) -> usize {
    svg.matches("fill-opacity=\"0.2\"/>").count()
}

#[test]
fn seeds_that_were_evaluated_in_other_rounds_share_a_line() {
    let cli = Cli::new();
    for (seed, every) in [(1, 7), (2, 9), (3, 11)] {
        for (name, step, bytes) in [("a", 0.1, 100.0), ("b", 0.2, 300.0)] {
            let config = config("dsgld", seed, &format!("step = {step}"));
            write(&cli, &format!("runs/{name}-{seed}"), &config, &[], &evaluated(every, every, bytes));
        }
    }
    let drawn = |arguments: &str| {
        let output = cli.succeed(&format!("{arguments} --bare"));
        assert!(output.stderr.contains("wrote f.svg") && !output.stderr.contains("not in the figure"), "{}", output.stderr);
        let svg = cli.read("f.svg");
        // An area for each band, besides those of the legend.
        let (paths, polygons) = (svg.matches("<path").count(), svg.matches("Z\" fill=").count());
        assert!(polygons == 2 && bands(&svg) == 4 && paths > 6, "{svg}");
        svg
    };
    for axis in ["round", "bytes"] {
        drawn(&format!("compare runs --metric accuracy --against {axis} --output f.svg"));
        let svg = drawn(&format!("plot runs --metric accuracy --against {axis} --output f.svg"));
        assert!(!svg.contains("logarithmic") && svg.contains(">step 0.2<"), "{svg}");
    }
    cli.succeed("compare runs --metric accuracy --output f.svg");
    for says in ["Mean and sd of 3 seeds.", "interpolated"] {
        assert!(cli.read("f.svg").contains(says), "{}", cli.read("f.svg"));
    }
    // Without a finite value there is no line, and the key of the line is left out with it.
    let empty = cli.run("compare runs --metric ece --output none.svg");
    assert!(empty.code == 0 && empty.stderr.contains("no figure: no line of ece can be drawn"), "{}", empty.stderr);
    assert!(!cli.exists("none.svg"));
    // Two seeds that were evaluated in rounds that do not overlap.
    write(&cli, "apart/1", &config("dsgld", 1, "step = 0.3"), &[], &evaluated(50, 5, 100.0));
    let mut early = evaluated(5, 5, 100.0);
    early.retain(|row| row.table == "history" || row.step < 40);
    write(&cli, "apart/2", &config("dsgld", 2, "step = 0.3"), &[], &early);
    let output = cli.succeed("compare runs apart --metric accuracy --against round --output f.svg");
    let says = "step 0.3: not in the figure: there is no round where all of its 2 seeds have a finite accuracy";
    assert!(output.stderr.contains(says), "{}", output.stderr);
    assert!(!cli.read("f.svg").contains(">step 0.3<") && cli.read("f.svg").contains(">step 0.2<"));
}

#[test]
fn bytes_of_different_magnitudes_have_a_logarithmic_axis() {
    let cli = Cli::new();
    for (step, bytes) in [(0.1, 100.0), (0.2, 1e5)] {
        write(&cli, &format!("runs/{step}"), &config("dsgld", 1, &format!("step = {step}")), &[], &evaluated(0, 10, bytes));
    }
    cli.succeed("compare runs --metric accuracy --against bytes --output f.svg");
    let svg = cli.read("f.svg");
    assert!(svg.contains(">bytes received and sent by agents, logarithmic<") && svg.contains(">100000<"), "{svg}");
    cli.succeed("compare runs --metric accuracy --against round --output f.svg");
    assert!(!cli.read("f.svg").contains("logarithmic"));
}

#[test]
fn a_comparison_draws_the_reliability_of_each_setting() {
    let cli = Cli::new();
    for seed in 1..=3 {
        let rows: Vec<Row> = rows(6, seed, true).into_iter().chain(reliability(3)).chain(reliability(6)).collect();
        write(&cli, &format!("runs/a-{seed}"), &config("dsvgd", seed, "particles = 20"), &[], &rows);
    }
    let one: Vec<Row> = rows(6, 1, true).into_iter().chain(reliability(6)).collect();
    write(&cli, "runs/b", &config("svgd", 1, "particles = 20"), &[], &one);
    write(&cli, "runs/c", &config("pvi", 1, "particles = 20"), &[], &rows(6, 1, true));
    let output = cli.succeed("compare runs --reliability --output r.svg");
    assert!(output.stderr.contains("c: not in the figure: it has no reliability table"), "{}", output.stderr);
    assert!(output.stdout.contains("settings") && output.stderr.contains("wrote r.svg"), "{}", output.written());
    let svg = cli.read("r.svg");
    for says in [">Reliability<", ">dsvgd (3 seeds)<", ">svgd<", ">perfect calibration<", ">confidence<", "5 runs"] {
        assert!(svg.contains(says), "{says} in {svg}");
    }
    assert!(svg.contains("Bins of several seeds are weighted by their test rows.") && !svg.contains(">pvi<"), "{svg}");
    // The diagonal and two curves, and the rows of two curves: eight bins have rows, and seven of them enough for an accuracy.
    assert_eq!((svg.matches("class=\"line\"").count(), svg.matches("<circle").count()), (5, 2 * (7 + 8) + 2));
    cli.refuse("compare runs/c particles --reliability --output r.svg", &["particles: there is no such folder"]);
    particles(&cli);
    cli.refuse("compare runs/c particles --reliability --output r.svg", &["--reliability: no run has a reliability table"]);
    cli.alone("compare runs --reliability").end(2, &["--output <FILE>"]);
    cli.alone("compare runs --reliability --metric ece --output r.svg").end(2, &["cannot be used with"]);
}

/// The accuracy of the worst class is a number of the table, but no curve.
#[test]
fn a_sweep_is_drawn_without_the_worst_class() {
    let cli = Cli::new();
    for seed in 1..=2 {
        let class = |class: u32| {
            row("classes", 6, &[("class", f64::from(class)), ("rows", 30.0), ("accuracy", 0.5 + 0.1 * f64::from(class))])
        };
        let rows: Vec<Row> = rows(6, seed, true).into_iter().chain((0..3).map(class)).collect();
        write(&cli, &format!("runs/a-{seed}"), &config("fedavg", seed, ""), &[], &rows);
    }
    let table = cli.stdout("compare runs");
    assert!(table.contains("worst_class") && table.contains("0.500"), "{table}");
    let drawn = cli.succeed("plot runs --output figures").written();
    assert!(drawn.contains("accuracy") && !drawn.contains("worst_class"), "{drawn}");
    cli.refuse("compare runs --metric worst_class --output x.svg", &["worst_class is known at the end of a run only"]);
}

/// Two logistic regressions on the same rows, of which one lacks a column.
#[test]
fn a_comparison_draws_the_coefficients_of_regressions() {
    let cli = Cli::new();
    let line = |row: usize| {
        let noise = |factor: f64| (0.618_033_988_749_895 * row as f64 * factor + 0.13 * factor).fract();
        let (age, dose, smoker) = (20 + row * 13 % 50, 4.0 * noise(3.0), if row.is_multiple_of(3) { "yes" } else { "no" });
        let ill = if noise(1.0) < 1.0 / (1.0 + (-0.06 * (age as f64 - 45.0)).exp()) { "yes" } else { "no" };
        format!("{age},{dose:.2},{smoker},{ill}\n")
    };
    cli.write("table.csv", format!("age,dose,smoker,ill\n{}", (0..80).map(line).collect::<String>()));
    for (name, without) in [("all", ""), ("some", "--drop dose")] {
        cli.succeed(&format!("import table.csv --label ill --categorical smoker {without} -o {name}.h5"));
        cli.succeed(&format!("init hmc --data {name}.h5 -o {name}.toml"));
        cli.succeed(&format!("run {name}.toml --set method.draws=200 --output {name}"));
    }
    let output = cli.succeed("compare all some --coefficients --output forest.svg");
    assert!(output.stdout.contains("in the units of the data") && output.stderr.contains("wrote forest.svg"));
    let svg = cli.read("forest.svg");
    for says in [">Odds ratios<", ">all<", ">some<", ">age<", ">dose<", ">smoker[yes]<", ">odds ratio of yes against no<"] {
        assert!(svg.contains(says), "{says} in {svg}");
    }
    // Three terms of one run, two of the other, and the two keys. Both runs have colors of their own.
    let circles = |svg: &str, color: &str| svg.lines().filter(|line| line.starts_with("<circle") && line.contains(color)).count();
    assert_eq!((circles(&svg, "#0072b2"), circles(&svg, "#d55e00"), circles(&svg, "fill")), (4, 3, 7));
    cli.succeed("compare all some --coefficients --output forest.svg --parameter smoker --parameter dose");
    let svg = cli.read("forest.svg");
    assert!(!svg.contains(">age<") && svg.contains(">dose<") && svg.contains(">smoker[yes]<"), "{svg}");
    cli.refuse("compare all some --coefficients --output f.svg --parameter height", &["--parameter height: no run has"]);
    cli.alone("compare all some --coefficients --parameter age").end(2, &["--output <FILE>"]);
    assert!(!cli.exists("f.svg"));
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
