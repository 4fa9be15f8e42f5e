//! Finished runs are judged: the bias of their draws is measured on any number of ranks, and told by `run` and `summary`.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use crate::launcher::{Ended, Launcher, program, watched};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// A folder with a dataset of 60 rows, two features and two classes that overlap, imported with these options.
pub fn folder(options: &str) -> Cli {
    let cli = Cli::new();
    let label = |i: usize| if (i * 7) % 10 + (i * i) % 7 > 7 { "yes" } else { "no" };
    let rows: String = (0..60).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, label(i))).collect();
    cli.write("a.csv", rows);
    cli.succeed(&format!("import a.csv -o a.h5 {options}"));
    cli
}

/// A run file for Langevin dynamics on all rows with this step size. Steps inflate the variance of a Gaussian by
/// 1/(1 − step · precision/4).
pub fn langevin(step: f64) -> String {
    format!(
        "agents = 4\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\nprior.normal = 1.0\nintercept_scale = 1.0\n\
         [method]\nname = \"ec_sgld\"\nsteps = 20000\nbatch = 60\nburn_in = 1000\nthin = 10\ncoupling = 0.0\nstep = {step}\n"
    )
}

#[test]
fn small_steps_are_right_and_large_steps_are_biased() {
    let cli = folder("");
    cli.write("small.toml", langevin(0.02));
    let run = cli.alone("run small.toml --strict").end(0, &["right: all sds within 20 %"]);
    assert!(run.written().lines().last().unwrap().starts_with("mpibayes: right: "));
    let summary = cli.stdout("summary runs/small");
    assert!(summary.starts_with("right: ") && summary.contains("sd ratio  shift"), "{summary}");
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("summary runs/small --json")).unwrap();
    assert_eq!(json["judgment"]["outcome"], "right");
    assert_eq!(json["draws"][0]["bias"]["verdict"], "right");
    let ratio = json["draws"][0]["estimates"][0]["sd_ratio"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");

    // Langevin steps inflate the variance of a Gaussian by 1/(1 - step · precision/4).
    cli.write("large.toml", langevin(0.15));
    cli.alone("run large.toml --strict")
        .end(3, &["biased: the sd of ", " times too large", "a smaller method.step or a larger batch"]);
    cli.alone("run large.toml --strict").end(3, &["biased: "]);
    cli.alone("run large.toml").end(0, &["biased: "]);
    assert!(cli.stdout("summary runs/large").starts_with("biased: "));
    assert_eq!(cli.stdout("summary runs/small --get judgment"), "right\n");
    assert_eq!(cli.stdout("summary runs/large --get judgment"), "biased\n");
}

#[test]
fn single_draws_are_not_judged_by_their_spread() {
    let cli = folder("");
    cli.write("run.toml", langevin(0.02).replace("20000", "1010"));
    let says = ["bias unknown: a chain has only 1 draw", "Run longer (`mpibayes resume runs/run --steps +1010`)"];
    cli.alone("run run.toml").end(0, &says);
    cli.alone("summary runs/run").end(0, &says);
    assert_eq!(cli.stdout("summary runs/run --get judgment"), "bias unknown\n");
}

/// Few draws of Hamiltonian chains are not told to be compared with such chains, nor that more draws would not help. Draws depend on how
/// matrix products are rounded on this processor: for 10 seeds and kinds of kernels, R-hat of 100 draws was 1.01 to 1.05, and of 30 draws
/// up to 1.13, which is another judgment.
#[test]
fn few_hamiltonian_draws_of_a_posterior_that_is_no_gaussian_need_more_draws() {
    let cli = Cli::new();
    let label = |i: usize| if (i * 7) % 10 + (i * i) % 7 > 7 { "yes" } else { "no" };
    cli.write(
        "g.csv",
        (0..60).map(|i| format!("{},{},g{},{}\n", (i * 7) % 11, (i * 5) % 13, i % 3, label(i))).collect::<String>(),
    );
    cli.succeed("import g.csv --header no --group 3 -o g.h5");
    cli.succeed("init hmc --data g.h5 -o run.toml");
    let few =
        cli.alone("run run.toml --set method.draws=100 --output few").end(0, &["undecided: the steps of hmc have no bias, but "]);
    let judgment = few.written();
    assert!(
        judgment.contains("Run longer (`mpibayes resume few --draws +100`)") && !judgment.contains("ompare with hmc"),
        "{judgment}"
    );
}

#[test]
fn ranks_measure_the_same_bias() {
    let cli = folder("");
    cli.write("run.toml", langevin(0.02).replace("20000", "3000"));
    let scores = |run: &str| cli.results(run).grid("scores").unwrap().unwrap();
    cli.alone("run run.toml --output one").end(0, &[]);
    cli.mpirun(3, "run run.toml --output three").end(0, &["mpibayes: "]);
    assert_eq!(scores("one"), scores("three"));
    // Agents that split the rows: the sum of their scores is that of all rows, up to rounding.
    let split = "agents = 3\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\nprior.normal = 1.0\n\
                 [method]\nname = \"svgd\"\nparticles = 50\nrounds = 1\nsteps = 20\n";
    cli.write("split.toml", split);
    cli.alone("run split.toml --output split").end(0, &[]);
    cli.mpirun(2, "run split.toml --output split-two").end(0, &[]);
    assert_eq!(scores("split"), scores("split-two"));
    assert!(cli.results("split").grid("scores").unwrap().unwrap().array("scores").unwrap().iter().all(|score| score.is_finite()));
}

/// A folder with a dataset of 700 rows, 350 features and two classes.
fn wide() -> Cli {
    let cli = Cli::new();
    // SplitMix64.
    let number = |i: usize, j: usize| {
        let mut z = ((i * 350 + j + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let row = |i: usize| (0..350).map(|j| format!("{:.4}", number(i, j))).collect::<Vec<_>>().join(",");
    let label = |i: usize| if (0..350).map(|j| number(i, j) * (j % 3) as f64).sum::<f64>() > 0.0 { "yes" } else { "no" };
    cli.write("a.csv", (0..700).map(|i| format!("{},{}\n", row(i), label(i))).collect::<String>());
    cli.alone("import a.csv -o a.h5").end(0, &[]);
    cli
}

#[test]
fn the_spread_of_many_parameters_is_measured() {
    let cli = wide();
    let run =
        langevin(0.0004).replace("20000", "5000").replace("batch = 60", "batch = 700").replace("normal = 1.0", "normal = 0.1");
    cli.write("small.toml", &run);
    cli.alone("run small.toml")
        .end(0, &["bias unknown: of a model with 351 parameters only the average spread is measured, and it is right"]);
    let json: serde_json::Value = serde_json::from_str(&cli.stdout("summary runs/small --json")).unwrap();
    let temperature = &json["temperatures"][0];
    assert_eq!((&temperature["variable"], &temperature["parameters"]), (&"weights".into(), &350.into()));
    assert!((temperature["temperature"].as_f64().unwrap() - 1.0).abs() < 0.05, "{temperature}");
    // Langevin steps inflate the variance in a direction with precision λ by 1/(1 - step · λ/4).
    let wide = "run small.toml --set method.step=0.004 --output runs/wide --strict";
    cli.alone(wide).end(3, &["biased: the configurational temperature of weights is 1.", "a smaller method.step"]);
    // Any number of ranks measures the same.
    cli.mpirun(2, "run small.toml --output runs/two").end(0, &["right within 5 %"]);
    let measured = |run: &str| cli.results(run).grid("configurational_temperature").unwrap().unwrap();
    assert_eq!(measured("runs/small"), measured("runs/two"));
    assert!(cli.stdout("summary runs/small").contains("configurational temperature (1 for draws from the posterior"));
}

/// Scores at draws of very many parameters are estimated from some of the rows, the same on any number of ranks.
#[test]
fn ranks_estimate_the_same_temperature_from_some_of_the_rows() {
    let cli = Cli::new();
    // 39 draws of 100,001 parameters leave time for about half of 1,000 rows.
    let row = |i: usize| format!("{} {}:1 {}:1 100000:{}\n", i % 2, 1 + i % 7, 10 + (i * i) % 11, 1 + i % 3);
    cli.write("a.svm", (0..1000).map(row).collect::<String>());
    cli.alone("import libsvm a.svm -o a.h5").end(0, &[]);
    let run = "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\nprior.normal = 1.0\nintercept_scale = 1.0\n\
               [method]\nname = \"dsgld\"\nchains = 2\nrounds = 60\ntrajectory = 5.0\nbatch = 100\nburn_in = 100\nthin = 10\n\
               step = { constant = 0.01 }\n";
    cli.write("run.toml", run);
    cli.alone("run run.toml --output one").end(0, &[]);
    cli.mpirun(2, "run run.toml --output two").end(0, &[]);
    let measured = |run: &str| cli.results(run).grid("configurational_temperature").unwrap().unwrap();
    assert!(measured("one").array("temperature").unwrap().iter().all(|value| value.is_finite()));
    assert_eq!(measured("one"), measured("two"));
}

#[test]
fn a_run_says_why_its_bias_was_not_measured() {
    let cli = folder("");
    cli.write(
        "few.toml",
        "[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"svgd\"\nparticles = 5\nrounds = 1\n",
    );
    cli.alone("run few.toml").end(0, &["bias unknown: the run has 5 particles, and 14 are needed"]);
    cli.write("off.toml", langevin(0.02).replace("20000", "3000"));
    cli.alone("run off.toml --set evaluate.bias=false").end(0, &["bias unknown: evaluate.bias = false"]);
    cli.write("chains.toml", langevin(0.000_001).replace("20000", "3000"));
    cli.alone("run chains.toml --strict")
        .end(3, &["not mixed: the chains disagree (R-hat ", "let the step be found (method.step = \"auto\")"]);
}

/// `jobs/agreement.sh` on a posterior that needs no data, with the program of this build or another one in its place.
fn agreement(cli: &Cli, program_of: &str, methods: &str) -> Ended {
    let (checkout, work) = (Path::new(env!("CARGO_MANIFEST_DIR")), cli.path("work"));
    let script = format!("bash jobs/agreement.sh --seeds 1 --only mixture1d --methods '{methods}' --output {}", work.display());
    let mut bash = program(Launcher::Alone, Path::new("bash"), &["-c", &script]);
    bash.env("CARGO_TARGET_DIR", cli.path(program_of)).current_dir(checkout);
    watched(bash).unwrap()
}

#[test]
fn the_comparison_of_methods_with_hmc_finds_silent_errors() {
    let cli = Cli::new();
    let real = env!("CARGO_BIN_EXE_mpibayes");
    for build in ["built", "silent"] {
        std::fs::create_dir_all(cli.path(build).join("release")).unwrap();
    }
    symlink(real, cli.path("built/release/mpibayes")).unwrap();
    let ended = agreement(&cli, "built", "gvi pmd");
    let lines: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("mixture1d")).collect();
    let [reference, gvi, pmd] = lines[..] else { panic!("{}", ended.written()) };
    assert!(reference.contains("hmc: right: "), "{reference}");
    // After the posterior, the method and the seed: a shift, two ratios and seconds.
    let least = |line: &str| line.split_whitespace().nth(4).and_then(|number| number.parse::<f64>().ok()).unwrap();
    assert!(gvi.ends_with("bias unknown") && least(gvi) > 0.9, "{gvi}");
    assert!(pmd.ends_with("biased") && least(pmd) < 0.9, "{pmd}");
    assert!(ended.stdout.ends_with("agreement: 2 runs, 0 of them silently wrong, 0 without a result\n"), "{}", ended.written());
    assert_eq!(ended.code, 0);

    // A program that calls wrong draws right, and one that compares nothing.
    for (compares, ends) in [
        (
            "judgment,shift,smallest_sd_ratio,largest_sd_ratio\\nright,0.02,0.81,1.0\\n",
            "agreement: 1 runs, 1 of them silently wrong, 0 without a result\n",
        ),
        ("judgment,shift\\nright,0.02\\n", "agreement: 1 runs, 0 of them silently wrong, 1 without a result\n"),
    ] {
        let script = format!("#!/bin/sh\nif [ \"$1\" = compare ]; then printf '{compares}'; else exec {real} \"$@\"; fi\n");
        let file = cli.path("silent/release/mpibayes");
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        let ended = agreement(&cli, "silent", "gvi");
        assert!(ended.stdout.ends_with(ends), "{}", ended.written());
        assert_eq!(ended.code, 1);
    }
}
