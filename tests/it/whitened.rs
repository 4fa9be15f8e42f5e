//! Methods that run in whitened coordinates, against an exact posterior and against `hmc`; what they say where there are none.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use crate::regression::{exact, file, folder};

/// Methods whose means and standard deviations are exact in whitened coordinates, but for the steps of their optimizers.
const METHODS: [&str; 6] = ["svgd", "dsvgd", "p_dsvgd", "pvi", "gvi", "npv"];

/// The largest error of a mean in standard deviations, and of a standard deviation as a factor, beside the exact posterior.
fn errors(cli: &Cli, run: &str) -> [f64; 2] {
    let (mean, covariance) = exact(cli, 1.0);
    let json = cli.json(&format!("summary {run} --json"));
    let estimates = json["draws"][0]["estimates"].as_array().unwrap();
    let mut worst = [0.0_f64; 2];
    for (found, (mean, variance)) in estimates.iter().zip(mean.iter().zip(covariance.diag())) {
        let of = |key: &str| found[key].as_f64().unwrap();
        worst[0] = worst[0].max((of("mean") - mean).abs() / variance.sqrt());
        worst[1] = worst[1].max((of("sd") / variance.sqrt()).ln().abs());
    }
    worst
}

#[test]
fn an_ill_conditioned_posterior_is_met_in_whitened_coordinates_only() {
    let cli = folder();
    for method in METHODS {
        cli.write("run.toml", file(method, "linear", "numbers.h5"));
        let agents = if method == "npv" { "--set agents=1" } else { "--set data.partition={sizes=[100,200,300]}" };
        cli.alone(&format!("run run.toml {agents} --output {method}")).end(0, &["finding the mode of the posterior"]);
        let [mean, sd] = errors(&cli, method);
        // npv keeps 500 independent draws: 4.5 standard errors of their means and standard deviations.
        let most = if method == "npv" { [0.2, 0.15] } else { [0.05, 0.05] };
        assert!(mean < most[0] && sd < most[1], "{method}: {mean} {sd}");
        // Control: in the coordinates of the model. Variational methods with the full covariance find this posterior there too.
        if !["pvi", "gvi"].contains(&method) {
            cli.alone(&format!("run run.toml {agents} --set method.whitened=false --output {method}-own")).end(0, &[]);
            let [mean, sd] = errors(&cli, &format!("{method}-own"));
            assert!(mean > 0.1 || sd > 0.2, "{method}: {mean} {sd}");
        }
    }
}

/// Ten rounds visit half of twenty agents, each of which has other targets: the others count as in the Laplace approximation, which is
/// exact here.
#[test]
fn agents_that_are_not_visited_are_accounted_for() {
    let cli = folder();
    for method in ["dsvgd", "pvi"] {
        cli.write("run.toml", file(method, "linear", "numbers.h5"));
        let run = format!("run run.toml --set agents=20 --set method.rounds=10 --set data.partition=by_label --output {method}");
        cli.alone(&run).end(0, &["note: rounds = 10 visits 10 of 20 agents at most: set rounds = 20 or more"]);
        let [mean, sd] = errors(&cli, method);
        assert!(mean < 0.05 && sd < 0.05, "{method}: {mean} {sd}");
    }
    // Control: in the coordinates of the model.
    cli.write("run.toml", file("pvi", "linear", "numbers.h5"));
    cli.succeed("run run.toml --set agents=20 --set method.rounds=10 --set data.partition=by_label --set method.whitened=false --output own");
    let [mean, _] = errors(&cli, "own");
    assert!(mean > 1.0, "{mean}");
}

#[test]
fn hmc_is_a_reference_for_other_runs() {
    let cli = folder();
    cli.write("hmc.toml", file("hmc", "logistic", "classes.h5") + "burn_in = 300\n");
    cli.alone("run hmc.toml").end(0, &["finding the mode", "right: "]);
    // Where bias is not measured, or cannot be excluded, convergence decides.
    cli.mpirun(2, "run hmc.toml --set evaluate.bias=false --output two").end(0, &["right: the steps of hmc have no bias"]);
    assert_eq!(cli.posterior("runs/hmc"), cli.posterior("two"));
    let summary = cli.stdout("summary runs/hmc");
    assert!(summary.contains("trajectories: 0 of 4,000 diverged, ") && !summary.contains("sample_stats"), "{summary}");
    let steps = cli.json("summary runs/hmc --json")["trajectories"]["leapfrog_steps"].as_f64().unwrap();
    assert!((3.0..16.0).contains(&steps), "{steps}");

    for (goal, method) in [("intervals", "hmc"), ("prediction", "svgd"), ("federated", "dsvgd")] {
        let text = cli.stdout(&format!("init --goal {goal} --data classes.h5"));
        assert!(text.contains(&format!("[method]\nname = \"{method}\"")) && text.contains("name = \"logistic\""), "{text}");
    }
    cli.write("svgd.toml", file("svgd", "logistic", "classes.h5"));
    cli.write("few.toml", file("svgd", "logistic", "classes.h5") + "particles = 50\nwhitened = false\n");
    cli.succeed("run svgd.toml");
    cli.succeed("run few.toml");
    let table = cli.stdout("compare runs/svgd runs/few --reference runs/hmc");
    assert!(table.contains("posteriors beside runs/hmc") && table.contains("least sd ratio"), "{table}");
    let compared = cli.json("compare runs/svgd runs/few --reference runs/hmc --json");
    let of = |run: usize, key: &str| compared[run][key].as_f64().unwrap();
    // 4,000 draws know a mean to .02 standard deviations, and a standard deviation to 2 %.
    assert!(of(0, "shift") < 0.15 && of(0, "smallest_sd_ratio") > 0.87 && of(0, "largest_sd_ratio") < 1.13, "{compared}");
    // Control.
    assert!(of(1, "shift") > 0.15 || of(1, "smallest_sd_ratio") < 0.8, "{compared}");
    let csv = cli.stdout("compare runs/svgd --reference runs/hmc --csv");
    assert!(csv.starts_with("run,draws,shift,shift_error,shifted,") && csv.lines().count() == 2, "{csv}");

    cli.refuse("compare runs/svgd", &["one run is nothing to compare", "--reference"]);
    cli.succeed("run svgd.toml --set temperature=2.0 --output runs/warm");
    cli.refuse(
        "compare runs/warm --reference runs/hmc",
        &["runs/warm", "its temperature is not that of the reference: ", "--coefficients"],
    );
    cli.write("other.toml", file("svgd", "linear", "numbers.h5") + "rounds = 1\n");
    cli.succeed("run other.toml");
    cli.refuse("compare runs/other --reference runs/hmc", &["runs/other", "its data is not that of the reference"]);
}

#[test]
fn a_posterior_without_a_mode_is_sampled_in_its_own_coordinates_and_networks_say_nothing() {
    let cli = folder();
    // Squares of these numbers are infinite.
    cli.write("huge.csv", "1e200,1\n-1e200,2\n2e200,3\n1e200,4\n");
    cli.succeed("import huge.csv --task regression --scaling none -o huge.h5");
    cli.write("huge.toml", file("svgd", "gaussian_mean", "huge.h5") + "rounds = 1\nsteps = 5\nparticles = 20\n");
    let run = cli.alone("run huge.toml --set agents=1").run();
    assert!(run.written().contains("note: the posterior has no mode that could be used: its density"), "{}", run.written());
    cli.write("dsgld.toml", file("dsgld", "gaussian_mean", "huge.h5"));
    cli.alone("run dsgld.toml --set agents=1").end(1, &["step = \"auto\" found no mode of the posterior", "Set method.step"]);

    cli.write("network.toml", file("svgd", "network", "classes.h5") + "rounds = 1\nsteps = 5\n");
    let check = cli.stdout("check network.toml");
    assert!(check.contains("particles  20\n") && !check.contains("auto"), "{check}");
    let run = cli.alone("run network.toml").run();
    assert!(!run.written().contains("finding the mode"), "{}", run.written());
}
