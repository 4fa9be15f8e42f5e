//! `mpibayes judge`: the draws of a run that goes on or was stopped are judged as those of a finished run, and the run stays as it is.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use mpibayes::results::ResultFile;
use std::collections::BTreeMap;

/// A folder with a dataset that has test rows.
fn folder() -> Cli {
    crate::judgment::folder("--test-fraction 0.2")
}

/// A run file for Langevin dynamics on the 48 training rows, saved often.
fn langevin(step: f64, steps: u64) -> String {
    let file = crate::judgment::langevin(step).replace("batch = 60", "batch = 48");
    file.replace("steps = 20000", &format!("steps = {steps}")) + "[cluster]\ncheckpoint_every = 0.1\n"
}

/// All files of a folder with their bytes.
fn content(cli: &Cli, run: &str) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(cli.path(run)).unwrap().map(|entry| entry.unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), std::fs::read(file.path()).unwrap())).collect()
}

#[test]
fn a_biased_run_is_told_so_while_it_goes_on_and_stays_as_it_is() {
    let cli = folder();
    // Few draws a second, so that the result file stays small on a machine that is busy.
    cli.write("large.toml", langevin(0.15, 1_000_000_000).replace("thin = 10", "thin = 1000"));
    let mut running = cli.alone("run large.toml --output large").start();
    let has_draws = |file: &ResultFile| file.lengths("posterior").is_ok_and(|lengths| lengths.iter().all(|&length| length > 200));
    running
        .wait_until("200 draws", |_| ResultFile::open(&cli.path("large/result.h5")).is_ok_and(|file| has_draws(&file)))
        .unwrap();
    let says =
        ["biased: the sd of ", " times too large", "not finished (round ", "these are the draws so far", "sd ratio  shift"];
    cli.alone("judge large").end(0, &says);
    cli.alone("judge large/result.h5 --strict").end(3, &says);
    assert!(!running.has_ended());
    running.signal(libc::SIGUSR1);
    assert!(running.finish().unwrap().was_stopped());

    // After the run was stopped, on any number of ranks, and without leaving anything in its folder.
    let before = content(&cli, "large");
    let alone = cli.stdout("judge large");
    for ranks in [1, 2, 3] {
        let judged = cli.mpirun(ranks, "judge large").end(0, &["biased: the sd of "]);
        assert_eq!(judged.stdout, alone, "{ranks} ranks");
    }
    assert!(before.len() > 3 && content(&cli, "large") == before);
    let json = cli.json("judge large --json");
    assert_eq!((&json["judgment"]["outcome"], &json["finished"]), (&"biased".into(), &false.into()));
    assert!(json["posterior"]["estimates"][0]["sd_ratio"].as_f64().unwrap() > 1.05, "{json}");
    assert!(json["rounds_done"].as_u64().unwrap() > 1000 && json["test_rows"]["metrics"]["accuracy"].is_number(), "{json}");
    // The summary of an unfinished run says where the judgment is.
    assert!(cli.stdout("summary large").contains("these are the results so far; `mpibayes judge` judges its draws"));
    cli.refuse("summary large --get judgment", &["draws are judged at its end; `mpibayes judge` judges those so far"]);
}

/// The scores at the same draws lead to the same judgment.
#[test]
fn a_run_that_did_not_measure_its_bias_is_judged_as_if_it_had() {
    let cli = folder();
    cli.write("small.toml", langevin(0.02, 20_000));
    for (dtype, file) in [("float64", "small"), ("float32", "single")] {
        cli.alone(&format!("run small.toml --set dtype={dtype} --output {file}")).end(0, &["right: "]);
        let unmeasured = format!("run small.toml --set dtype={dtype} --set evaluate.bias=false --output {file}-unmeasured");
        cli.alone(&unmeasured).end(0, &["bias unknown: evaluate.bias = false"]);
        let [measured, later] =
            [file.to_owned(), format!("{file}-unmeasured")].map(|run| cli.json(&format!("judge {run} --json")));
        assert_eq!(measured["judgment"]["outcome"], "right");
        for key in ["judgment", "posterior", "test_rows", "finished"] {
            assert_eq!(measured[key], later[key], "{key}");
        }
        let summary = cli.json(&format!("summary {file} --json"));
        assert_eq!((&summary["judgment"], &summary["draws"][0]), (&measured["judgment"], &measured["posterior"]));
        let judged = cli.stdout(&format!("judge {file}-unmeasured"));
        assert!(judged.starts_with("right: all sds within 20 %") && !judged.contains("not finished"), "{judged}");
    }
}

/// Of methods whose draws are particles, a fitted normal distribution, or the ends of trajectories, and of a model with very many parameters.
#[test]
fn every_kind_of_draws_is_judged_as_at_the_end_of_a_run() {
    let cli = folder();
    let logistic = |method: &str| {
        format!("agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\nprior.normal = 1.0\n[method]\n{method}\n")
    };
    let network = "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"network\"\nhidden = [100]\n[method]\nname = \"ec_sgld\"\n\
                   step = 0.0001\nbatch = 24\nsteps = 400\nburn_in = 100\nthin = 10\n";
    for (name, file, says) in [
        ("svgd", logistic("name = \"svgd\"\nparticles = 40\nrounds = 30\nsteps = 5"), "R-hat, ESS and MCSE are not defined"),
        ("pvi", logistic("name = \"pvi\"\nrounds = 10"), "sd ratio"),
        ("hmc", logistic("name = \"hmc\""), "all 3 parameters have R-hat"),
        ("network", network.into(), "configurational temperature"),
    ] {
        cli.write(&format!("{name}.toml"), file);
        cli.succeed(&format!("run {name}.toml --output {name}"));
        cli.succeed(&format!("run {name}.toml --set evaluate.bias=false --output {name}-unmeasured"));
        let [measured, later] =
            [name.to_owned(), format!("{name}-unmeasured")].map(|run| cli.json(&format!("judge {run} --json")));
        assert!(measured["judgment"]["outcome"].is_string(), "{name}: {measured}");
        for key in ["posterior", "test_rows", "temperatures"] {
            assert_eq!(measured[key], later[key], "{key} of {name}");
        }
        // The advice names the folder of the run.
        let advice = later["judgment"].to_string().replace("-unmeasured", "");
        assert_eq!(measured["judgment"].to_string(), advice, "{name}");
        let text = cli.stdout(&format!("judge {name}-unmeasured"));
        assert!(text.contains(says), "{says} of {name} in {text}");
        assert_eq!(text.replace("-unmeasured", ""), cli.stdout(&format!("judge {name}")));
    }
}

/// What was found before a run is in its folder until it ends.
#[test]
fn what_was_found_before_a_run_that_goes_on_is_used() {
    let cli = folder();
    cli.write(
        "found.toml",
        "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"ec_sgld\"\nsteps = 1000000000\n\
         burn_in = 1000\nthin = 1000\n[cluster]\ncheckpoint_every = 0.1\n",
    );
    let mut running = cli.alone("run found.toml --output found").start();
    let has_draws = |file: &ResultFile| file.lengths("posterior").is_ok_and(|lengths| lengths.iter().all(|&length| length > 50));
    running
        .wait_until("50 draws", |_| ResultFile::open(&cli.path("found/result.h5")).is_ok_and(|file| has_draws(&file)))
        .unwrap();
    running.signal(libc::SIGUSR1);
    assert!(running.finish().unwrap().was_stopped());
    let before = content(&cli, "found");
    for run in ["found", "found/result.h5"] {
        let judged = cli.json(&format!("judge {run} --json"));
        assert!(judged["posterior"]["estimates"][0]["laplace_sd"].as_f64().unwrap() > 0.0, "{judged}");
        assert!(cli.stdout(&format!("judge {run}")).contains("Laplace approximation"));
    }
    assert!(content(&cli, "found") == before);
}

/// Of networks, the step that was found may make variances too large: what is expected is known before the run ends.
#[test]
fn the_expected_excess_of_variances_is_known_while_a_network_is_sampled() {
    let cli = folder();
    let network = |steps: u64| {
        format!(
            "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"network\"\nhidden = [5]\n[method]\nname = \"ec_sgld\"\nsteps = {steps}\n\
             burn_in = 100\nthin = 1000\n[cluster]\ncheckpoint_every = 0.1\n"
        )
    };
    cli.write("ends.toml", network(5000));
    cli.succeed("run ends.toml --output ends");
    cli.write("goes-on.toml", network(1_000_000_000));
    let mut running = cli.alone("run goes-on.toml --output goes-on").start();
    running
        .wait_until("draws of all chains", |_| {
            let lengths = ResultFile::open(&cli.path("goes-on/result.h5")).and_then(|file| file.lengths("posterior"));
            lengths.is_ok_and(|lengths| lengths.iter().all(|&length| length > 0))
        })
        .unwrap();
    let [ended, running_still] = ["ends", "goes-on"].map(|run| cli.json(&format!("judge {run} --json")));
    assert!(ended["expected_excess_variance"].as_f64().unwrap() >= 0.0, "{ended}");
    assert_eq!(ended["expected_excess_variance"], running_still["expected_excess_variance"]);
    running.signal(libc::SIGUSR1);
    assert!(running.finish().unwrap().was_stopped());
}

#[test]
fn what_cannot_be_judged_is_refused_with_a_reason() {
    let cli = folder();
    cli.write("small.toml", langevin(0.02, 2_000));
    cli.succeed("run small.toml --output small");
    cli.write(
        "point.toml",
        "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"fedavg\"\nrounds = 3\n",
    );
    cli.succeed("run point.toml --output point");
    cli.write("burn-in.toml", langevin(0.02, 1_000_000_000).replace("burn_in = 1000", "burn_in = 900000000"));
    cli.write("none.toml", langevin(0.02, 2_000).replace("thin = 10", "thin = 0"));
    cli.succeed("run none.toml --output kept-none");
    cli.stop("burn-in", || cli.alone("run burn-in.toml --output burn-in"));
    for (run, says) in [
        ("none", "none: there is no such folder or file"),
        ("a.h5", "this is a dataset, not the result of a run"),
        ("burn-in", "this run has saved no draws yet, or not of every chain"),
        ("kept-none", "this run has kept no draws: method.thin = 0 keeps none"),
        ("point", "fedavg does not sample the posterior"),
    ] {
        for ranks in [1, 2] {
            let typed = format!("judge {run}");
            let launch = if ranks == 1 { cli.alone(&typed) } else { cli.mpirun(ranks, &typed) };
            launch.refuse(&[says]);
        }
    }
    cli.write("b.csv", cli.read("a.csv").replace("no\n", "never\n"));
    cli.succeed("import b.csv --test-fraction 0.2 -o a.h5 --force");
    cli.succeed("judge small");
    cli.succeed("run small.toml --set evaluate.bias=false --output other");
    cli.write("c.csv", cli.read("a.csv"));
    cli.succeed("import c.csv --test-fraction 0.2 -o a.h5 --force");
    cli.refuse("judge other", &["cannot judge: a.h5 now holds other data"]);
}
