//! `evaluate.pointwise`: what every draw says of every row, on any number of ranks.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use mpibayes::results::ResultFile;
use ndarray::{ArrayD, Axis};

/// A table of 5,000 rows with two classes, half of them for the test.
fn classes(cli: &Cli) {
    let row = |i: i64| {
        let [x, z, noise] = [37, 59, 83].map(|factor| (i * i * factor % 1013) as f64 / 1013.0 - 0.5);
        format!("{x},{z},{}\n", u8::from(2.0 * x - z + noise > 0.1))
    };
    cli.write("a.csv", format!("x,z,y\n{}", (0..5000).map(row).collect::<String>()));
    cli.succeed("import a.csv --test-fraction 0.5 -o a.h5");
    cli.succeed("init hmc --model logistic --data a.h5 -o a.toml");
}

fn array(file: &ResultFile, group: &str, name: &str) -> ArrayD<f64> {
    file.grid(group).unwrap().unwrap().array(name).unwrap()
}

#[test]
fn ranks_compute_the_same_log_likelihoods_of_rows() {
    let cli = Cli::new();
    classes(&cli);
    let run = "run a.toml --set method.chains=1 --set method.draws=1000 --set evaluate.pointwise=true";
    let test = format!("{run} --set evaluate.pointwise_rows=test");
    cli.succeed(&format!("{test} --output one"));
    cli.mpirun(3, &format!("{test} --output three")).end(0, &[]);
    let [one, three] = ["one", "three"].map(|name| cli.results(name));
    let drawn = array(&one, "log_likelihood", "y");
    assert_eq!(drawn.shape(), [1, 1000, 2500]);
    for group in ["log_likelihood", "observed_data"] {
        assert!(array(&one, group, "y") == array(&three, group, "y"), "{group}");
        assert_eq!(one.grid(group).unwrap().unwrap().dimensions.last().unwrap().0, "test_row");
        assert!(!cli.exists(&format!("one/{group}.h5.partial")) && !cli.exists(&format!("three/{group}.h5.partial")));
    }
    // The average over draws is what the test predictions hold.
    let density = array(&one, "test_predictions", "density");
    let average = drawn.mapv(f64::exp).mean_axis(Axis(1)).unwrap();
    assert!(average.iter().zip(&density).all(|(one, other)| (one - other).abs() < 1e-12));
    assert!(array(&one, "observed_data", "y") == array(&one, "test_predictions", "target"));

    // Compared by the rows of the test, and not with a run that has kept other rows.
    let compared: serde_json::Value = serde_json::from_str(&cli.stdout("compare one three --json")).unwrap();
    let found = compared["predictive_scores"][0]["elpd"]["value"].as_f64().unwrap();
    let wanted: f64 = density.iter().map(|density| density.ln()).sum();
    assert!((found - wanted).abs() < 1e-9 * wanted.abs(), "{found}, not {wanted}");
    assert!(cli.stdout("compare one three").contains("log predictive density of 2,500 test rows (larger is better)"));
    cli.succeed(&format!("{run} --output train"));
    let train = cli.results("train").grid("log_likelihood").unwrap().unwrap();
    assert_eq!(train.dimensions.last().unwrap(), &("row".to_owned(), 2500));
    assert!(cli.stdout("compare one train").contains("Log-likelihoods are not compared: all runs must keep them"));
}

#[test]
fn wishes_that_nothing_can_fulfil_are_said() {
    let cli = Cli::new();
    classes(&cli);
    let run = "run a.toml --set method.chains=1 --set method.draws=50 --set evaluate.pointwise=true";
    cli.alone(&format!("{run} --set temperature=2.0 --output warm"))
        .end(0, &["keeps nothing: log-likelihoods are kept only at temperature = 1"]);
    cli.alone("check a.toml --set evaluate.pointwise=true --set temperature=2.0").end(0, &["evaluate.pointwise keeps nothing: "]);
    assert!(cli.results("warm").grid("log_likelihood").unwrap().is_none());
    cli.succeed("import a.csv -o all.h5");
    let all = format!("{run} --set data.file=all.h5 --set evaluate.pointwise_rows=test --output all");
    cli.mpirun(2, &all).end(0, &["keeps nothing: there are no test rows"]);
    cli.alone(&format!("{run} --set evaluate.pointwise_rows=all --output none")).end(1, &["pointwise_rows", "train", "test"]);
}

/// A job that is stopped after its last round ends as one that was stopped, and the same command completes the run.
#[test]
fn log_likelihoods_stop_when_the_job_is_asked_to() {
    let cli = Cli::new();
    classes(&cli);
    // Each chain is a block, between which the job can stop. The blocks take seconds, and all rounds a fraction of a second.
    cli.write(
        "slow.toml",
        "agents = 8\n[data]\nfile = \"a.h5\"\n[model]\nname = \"network\"\nhidden = [300, 300]\n[method]\nname = \"sghmc\"\n\
         steps = 40\nburn_in = 0\nthin = 2\nbatch = 10\nstep = 1e-4\n[evaluate]\npointwise = true\nbias = false\n",
    );
    cli.succeed("run slow.toml --output whole");
    let whole = array(&cli.results("whole"), "log_likelihood", "y");
    for ranks in [1, 2] {
        let (folder, command) = (format!("stopped{ranks}"), format!("run slow.toml --output stopped{ranks}"));
        let launched = if ranks == 1 { cli.alone(&command) } else { cli.mpirun(ranks, &command) };
        let mut running = launched.start();
        running.wait_until("the first block", |_| cli.exists(&format!("{folder}/log_likelihood.h5.partial"))).unwrap();
        running.signal(libc::SIGUSR1);
        let ended = running.finish().unwrap();
        assert!(ended.was_stopped(), "{}: {}", ended.code, ended.stderr);
        let said = "while computing log-likelihoods of rows, after the last round. Rounds since the last checkpoint are repeated: with the same ";
        assert_eq!(ended.stderr.matches(said).count(), 1, "{}", ended.stderr);
        let events = cli.read(&format!("{folder}/events.jsonl"));
        assert_eq!(events.matches("while computing").count(), 1, "{events}");
        cli.wait_until_released(&folder);
        cli.succeed(&command);
        assert!(array(&cli.results(&folder), "log_likelihood", "y") == whole);
        assert!(!cli.exists(&format!("{folder}/log_likelihood.h5.partial")));
    }
}
