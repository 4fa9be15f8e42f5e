//! Finished runs are judged: the bias of their draws is measured on any number of ranks, and told by `run` and `summary`.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;

/// A folder with a dataset of 60 rows, two features and two classes that overlap.
fn folder() -> Cli {
    let cli = Cli::new();
    let label = |i: usize| if (i * 7) % 10 + (i * i) % 7 > 7 { "yes" } else { "no" };
    let rows: String = (0..60).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, label(i))).collect();
    cli.write("a.csv", rows);
    cli.alone("import a.csv -o a.h5").end(0, &[]);
    cli
}

/// A run file for Langevin dynamics on all rows with this step size.
fn langevin(step: f64) -> String {
    format!(
        "agents = 4\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\nprior.normal = 1.0\nintercept_scale = 1.0\n\
         [method]\nname = \"ec_sgld\"\nsteps = 20000\nbatch = 60\nburn_in = 1000\nthin = 10\ncoupling = 0.0\nstep = {step}\n"
    )
}

#[test]
fn small_steps_are_right_and_large_steps_are_biased() {
    let cli = folder();
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
    cli.alone("run large.toml --strict").end(3, &["biased: the sd of ", " times too large", "smaller step"]);
    cli.alone("run large.toml --strict").end(3, &["biased: "]);
    cli.alone("run large.toml").end(0, &["biased: "]);
    assert!(cli.stdout("summary runs/large").starts_with("biased: "));
    assert_eq!(cli.stdout("summary runs/small --get judgment"), "right\n");
    assert_eq!(cli.stdout("summary runs/large --get judgment"), "biased\n");
}

#[test]
fn single_draws_are_not_judged_by_their_spread() {
    let cli = folder();
    cli.write("run.toml", langevin(0.02).replace("20000", "1010"));
    let says = ["bias unknown: a chain has only 1 draw", "Run longer (`mpibayes resume runs/run --steps +1010`)"];
    cli.alone("run run.toml").end(0, &says);
    cli.alone("summary runs/run").end(0, &says);
    assert_eq!(cli.stdout("summary runs/run --get judgment"), "bias unknown\n");
}

#[test]
fn ranks_measure_the_same_bias() {
    let cli = folder();
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

#[test]
fn a_run_says_why_its_bias_was_not_measured() {
    let cli = folder();
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
