//! Automatic steps: draws of every method that finds its own steps against exact posteriors; the same results on any ranks and after a
//! stop; what is said where steps cannot be found.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use crate::regression::{exact, file, folder};
use ndarray::Ix1;

const METHODS: [&str; 4] = ["dsgld", "sghmc", "ec_sghmc", "ec_sgld"];

/// Each parameter's mean and sd, and their Monte Carlo standard errors.
fn estimates(cli: &Cli, run: &str) -> Vec<[f64; 4]> {
    let json = cli.json(&format!("summary {run} --json"));
    let of = |parameter: &serde_json::Value| ["mean", "sd", "mcse_mean", "mcse_sd"].map(|key| parameter[key].as_f64().unwrap());
    json["draws"][0]["estimates"].as_array().unwrap().iter().map(of).collect()
}

/// The largest errors of means and of logarithms of sds beyond four Monte Carlo errors, in posterior sds. Of a run without bias, one of
/// eight is above 0 with probability 5e-4.
fn errors(cli: &Cli, run: &str, temperature: f64) -> [f64; 2] {
    let (mean, covariance) = exact(cli, temperature);
    let mut worst = [0.0_f64; 2];
    for ([found, sd, mcse_mean, mcse_sd], (mean, variance)) in
        estimates(cli, run).into_iter().zip(mean.iter().zip(covariance.diag()))
    {
        worst[0] = worst[0].max(((found - mean).abs() - 4.0 * mcse_mean) / variance.sqrt());
        worst[1] = worst[1].max((sd / variance.sqrt()).ln().abs() - 4.0 * mcse_sd / sd);
    }
    worst
}

#[test]
fn found_steps_sample_an_ill_conditioned_posterior() {
    let cli = folder();
    for method in METHODS {
        cli.write("run.toml", file(method, "linear", "numbers.h5"));
        // Agents have different rows, unless they have all of them.
        let partitions =
            ["--set data.partition={sizes=[100,200,300]}", "--set data.partition=by_label --set method.trajectory=5"];
        for (seed, temperature) in [(1, 1.0), (2, 4.0)] {
            let split = if method == "dsgld" { partitions[seed - 1] } else { "" };
            let run = format!("{method}{seed}");
            cli.alone(&format!(
                "run run.toml {split} --set seed={seed} --set temperature={temperature} --set method.ess=4000 --output {run}"
            ))
            .end(0, &["found, in whitened coordinates: ", "right: "]);
            let [mean, sd] = errors(&cli, &run, temperature);
            // The steps widen or narrow a parameter by at most 2.5 %.
            assert!(mean <= 0.0 && sd <= 0.025, "{run}: {mean} {sd}");
            let least = cli.json(&format!("summary {run} --json"))["draws"][0]["estimates"]
                .as_array()
                .unwrap()
                .iter()
                .map(|parameter| parameter["ess_bulk"].as_f64().unwrap())
                .fold(f64::INFINITY, f64::min);
            assert!((2400.0..12_000.0).contains(&least), "{run} has an effective sample size of {least}, and 4000 was asked for");
        }
    }
    // Strong springs become weaker, so that steps stay stable; an annealing that is given ends before the first draw.
    cli.write("run.toml", file("ec_sghmc", "linear", "numbers.h5"));
    let springs = "--set method.coupling=50 --set method.coupling_schedule={anneal={from=500,over=500}}";
    cli.alone(&format!("run run.toml {springs} --set method.ess=2000 --output springs")).end(0, &["coupling = ", "right: "]);
    let [mean, sd] = errors(&cli, "springs", 1.0);
    assert!(mean <= 0.0 && sd <= 0.025, "{mean} {sd}");

    // Control: steps as they were by default without a mode and a whitening.
    let annealed = "method.step={annealed={a=0.01,b=1.0,c=0.55}}";
    cli.write("run.toml", file("dsgld", "linear", "numbers.h5"));
    cli.alone(&format!("run run.toml --set {annealed} --set method.rounds=1000 --output control")).end(0, &[]);
    let [mean, sd] = errors(&cli, "control", 1.0);
    assert!(mean > 0.0 || sd > 0.1, "{mean} {sd}");
}

#[test]
fn the_mode_and_the_curvature_of_a_gaussian_posterior_are_exact() {
    let cli = folder();
    cli.write("run.toml", file("dsgld", "linear", "numbers.h5"));
    for temperature in [1.0, 4.0] {
        let run = format!("t{temperature}");
        cli.succeed(&format!("run run.toml --set temperature={temperature} --set method.ess=100 --output {run}"));
        let tuning = cli.results(&run).grid("tuning").unwrap().unwrap();
        let of = |name: &str| tuning.array(name).unwrap().into_dimensionality::<Ix1>().unwrap();
        let (mean, covariance) = exact(&cli, temperature);
        for ((mode, sd), (mean, variance)) in of("mode").iter().zip(of("laplace_sd")).zip(mean.iter().zip(covariance.diag())) {
            assert!((mode - mean).abs() < 1e-4 * variance.sqrt(), "{mode} {mean}");
            assert!((sd / variance.sqrt() - 1.0).abs() < 1e-6, "{sd} {variance}");
        }
    }
}

#[test]
fn ranks_threads_and_stops_do_not_change_what_is_found() {
    let cli = folder();
    for method in ["dsgld", "ec_sghmc"] {
        cli.write("run.toml", file(method, "logistic", "classes.h5"));
        let long = "run run.toml --set method.ess=2000";
        cli.succeed(&format!("{long} --output {method}-one"));
        cli.mpirun(3, &format!("{long} --output {method}-three")).end(0, &[]);
        let stopped = format!("{method}-stopped");
        cli.stop(&stopped, || cli.alone(&format!("{long} --output {stopped}")));
        cli.mpirun(2, &format!("{long} --output {stopped}")).end(0, &[]);
        for other in [format!("{method}-three"), stopped] {
            let one = format!("{method}-one");
            assert_eq!(cli.results(&one).grid("tuning").unwrap(), cli.results(&other).grid("tuning").unwrap(), "{other}");
            assert_eq!(cli.posterior(&one), cli.posterior(&other), "{other}");
        }
        // In single precision too, the mode is found in double precision.
        let single = format!("{method}-single");
        cli.succeed(&format!("{long} --set dtype=float32 --output {single}"));
        assert_eq!(cli.results(&single).grid("tuning").unwrap(), cli.results(&format!("{method}-one")).grid("tuning").unwrap());
    }
}

#[test]
fn given_values_are_kept_and_invalid_ones_are_refused() {
    let cli = folder();
    cli.write("run.toml", file("dsgld", "logistic", "classes.h5"));
    let given = "--set method.rounds=300 --set method.burn_in=40 --set method.thin=3";
    cli.alone(&format!("run run.toml {given} --output given")).end(0, &["found, in whitened coordinates: gradient_noise = "]);
    assert_eq!(cli.posterior("given").values.dim().1, (300 * 10 - 40) / 3);
    let report = cli.stdout("check run.toml");
    assert!(report.contains("note: step = \"auto\": the step, and the lengths") && !report.contains("rounds  "), "{report}");
    assert!(report.contains("evaluate  "), "{report}");

    let tuning = cli.results("given").grid("tuning").unwrap().unwrap();
    assert_eq!(tuning.list("key"), ["gradient_noise", "step"]);
    assert!(tuning.array("value").unwrap().iter().all(|value| (0.0..0.5).contains(value)));

    // Lengths that are found need no room in the preset ones, and given ones must have room for what is found.
    cli.alone("run run.toml --set method.rounds=80 --set method.ess=10 --output short").end(0, &["thin = "]);
    let says = "'method.burn_in' = 3000 leaves no draws: there are 1000 updates";
    cli.alone("run run.toml --set method.rounds=100 --set method.burn_in=3000 --set method.thin=1 --output none").end(1, &[says]);
    // Expectations without draws.
    cli.succeed("run run.toml --set method.thin=0 --set method.expectations=true --output expectations");
    let results = cli.results("expectations");
    assert!(results.samples("posterior").is_err());
    let (mean, given) = (results.samples("posterior_mean").unwrap().values.matrix(), cli.posterior("given").values.matrix());
    for (mean, draws) in mean.row(0).iter().zip(given.columns()) {
        assert!((mean - draws.mean().unwrap()).abs() < 0.3 * draws.std(1.0), "{mean} {draws}");
    }
    // Keys that are replaced.
    let says = "note: gradient has no effect beside step = \"auto\"";
    cli.alone("check run.toml --set method.gradient={control_variate=5}").end(0, &[says]);
    cli.write("masses.toml", file("sghmc", "logistic", "classes.h5") + "scheme = \"semi_implicit\"\n");
    cli.alone("check masses.toml").end(0, &["step = \"auto\" is 0.001 here, because scheme = \"semi_implicit\""]);

    // Every note is printed once.
    let rotating = "--set method.schedule=rotating --set method.max_rounds_in_flight=1 --set method.correction=false --set method.rounds=400";
    let written = cli.alone(&format!("run run.toml {rotating} --output notes")).end(0, &[]).written();
    for note in ["correction = false: chains", "make visits in turn", "preset annealed step"] {
        assert_eq!(written.matches(note).count(), 1, "{written}");
    }

    // A network has no mode that Newton steps find: chains start at points of high density, and are judged by what they predict.
    cli.succeed("import classes.csv -o tested.h5 --test-fraction 0.3");
    for (method, settings, says) in [
        ("sghmc", "ess = 200\n", "of the test rows (R-hat below 1.1)"),
        ("dsgld", "rounds = 300\nburn_in = 1000\nthin = 20\n", "mpibayes: "),
    ] {
        let name = format!("network_{method}");
        cli.write(&format!("{name}.toml"), file(method, "network", "tested.h5") + settings);
        cli.alone(&format!("check {name}.toml")).end(0, &["step = \"auto\": the step, and the lengths"]);
        let alone = cli.alone(&format!("run {name}.toml --output {name}"));
        alone.end(0, &["descending to points", "found, in scaled coordinates: ", says]);
        // The same bits on other ranks, also of what is found before the run.
        cli.mpirun(2, &format!("run {name}.toml --output {name}_2")).end(0, &[]);
        let [one, two] = [name.clone(), format!("{name}_2")].map(|run| cli.posterior(&run).values);
        assert!(one == two, "{method}");
    }
    let summary = cli.stdout("summary network_sghmc");
    assert!(summary.contains("test rows, predicted by all draws of all chains: the metrics to report\n  accuracy "), "{summary}");

    cli.write("huge.toml", file("dsgld", "linear", "numbers.h5") + "[method.step]\nconstant = \"x\"\n");
    cli.alone("check huge.toml").end(1, &["'method.step.constant' must be a number"]);
    cli.write("word.toml", file("sghmc", "linear", "numbers.h5") + "step = \"automatic\"\n");
    cli.alone("check word.toml").end(1, &["'method.step' must be \"auto\" or a number"]);
    cli.write("ess.toml", file("sghmc", "linear", "numbers.h5") + "ess = 0\n");
    cli.alone("check ess.toml").end(1, &["'method.ess' must be from 1 to 1e9, not 0"]);
}

/// A run that would take days is not begun, and says what to do; with a length that is set it is.
#[test]
fn lengths_that_no_run_reaches_are_refused() {
    let cli = folder();
    cli.write("run.toml", file("dsgld", "linear", "numbers.h5"));
    let says = ["step = \"auto\" would need rounds = ", "Use hmc, or sghmc", "With method.rounds set, the run begins anyway"];
    cli.alone("run run.toml --set method.ess=1e9 --output days").end(1, &says);
    cli.mpirun(2, "run run.toml --set method.ess=1e9 --output days").end(1, &says);
    assert!(!cli.exists("days/result.h5"));
    cli.succeed(
        "run run.toml --set method.ess=1e9 --set method.rounds=100 --set method.burn_in=10 --set method.thin=7 --output short",
    );
}

/// A job that is stopped while it searches for starting points ends as one that was stopped, and the same command then begins the run.
#[test]
fn a_search_for_starting_points_stops_when_it_is_asked_to() {
    let cli = folder();
    cli.succeed("import classes.csv -o tested.h5 --test-fraction 0.3");
    cli.write("run.toml", file("sghmc", "network", "tested.h5") + "ess = 20\n");
    for launch in
        [|cli: &Cli| cli.alone("run run.toml --output stopped"), |cli: &Cli| cli.mpirun(2, "run run.toml --output stopped")]
    {
        let mut running = launch(&cli).start();
        running.wait_until("the search", |running| running.stderr().contains("descending to points")).unwrap();
        running.signal(libc::SIGUSR1);
        let ended = running.finish().unwrap();
        assert!(ended.was_stopped(), "{}: {}", ended.code, ended.stderr);
        assert!(ended.stderr.contains("stopped before the run began; the same command begins it"), "{}", ended.stderr);
        assert!(!cli.exists("stopped/result.h5") && !cli.exists("stopped/tuning.bin"));
        cli.wait_until_released("stopped");
    }
    cli.succeed("run run.toml --output stopped");
    cli.succeed("run run.toml --output whole");
    assert!(cli.posterior("stopped") == cli.posterior("whole"));
}
