//! `mpibayes scale`: its table, the network that it measures, and how the messages of a rank grow with the number of ranks.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;

/// Run files with short rounds and a step, so that nothing is tuned: the name of each, and its tables of model and method.
const METHODS: [(&str, &str); 7] = [
    ("svgd", "[method]\nname = \"svgd\"\nparticles = 4\nrounds = 50\nsteps = 2\n"),
    ("dsvgd", "[method]\nname = \"dsvgd\"\nparticles = 4\nrounds = 300\nlocal_steps = 2\n"),
    ("p_dsvgd", "[method]\nname = \"p_dsvgd\"\nparticles = 4\nrounds = 40\nlocal_steps = 2\n"),
    ("pvi", "[method]\nname = \"pvi\"\nrounds = 40\n"),
    ("dsgld", "[method]\nname = \"dsgld\"\nchains = 2\nrounds = 100\nburn_in = 20\nstep = 0.001\nbatch = 5\n"),
    ("ec_sghmc", "[method]\nname = \"ec_sghmc\"\nsteps = 200\nburn_in = 20\nstep = 0.01\nbatch = 5\n"),
    ("hmc", "[method]\nname = \"hmc\"\nchains = 2\ndraws = 20\nburn_in = 20\n"),
];

fn folder() -> Cli {
    let cli = Cli::new();
    let row = |i: usize| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][(i * 7) % 11 / 6]);
    cli.write("a.csv", (0..800).map(row).collect::<String>());
    cli.succeed("import a.csv -o a.h5");
    for (name, method) in METHODS {
        let head = "seed = 3\nagents = 4\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n";
        cli.write(&format!("{name}.toml"), format!("{head}{method}[evaluate]\nevery = 0\nbias = false\n"));
    }
    cli
}

/// The most messages and bytes of a rank for one request, with as many agents as ranks. The runs end long before a minute is over, also on a
/// busy machine.
fn busiest(cli: &Cli, file: &str, ranks: u32) -> (u64, u64) {
    let shown = cli.json(&format!("scale {file} --set agents={ranks} --ranks {ranks} --measure 60 --json"));
    let row = &shown["rows"][0];
    let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{file}: {shown}"));
    (number("messages"), number("bytes"))
}

#[test]
fn the_messages_of_a_rank_grow_with_the_logarithm_of_their_number() {
    let cli = folder();
    cli.succeed("data make topics --documents 300 --words 400 --topics 3 --tokens 10 -o t.h5");
    let topics = "seed = 3\nagents = 4\n[data]\nfile = \"t.h5\"\n[model]\nname = \"lda\"\ntopics = 200\n[method]\nname = \"adlda\"\nrounds = 4\nburn_in = 2\nthin = 1\n\
                  [evaluate]\nevery = 0\n[cluster.collectives]\ninteger_sums = \"point_to_point\"\n";
    cli.write("adlda.toml", topics);
    for name in METHODS.iter().map(|(name, _)| *name).chain(["adlda"]) {
        let file = format!("{name}.toml");
        let (few, many) = (busiest(&cli, &file, 16), busiest(&cli, &file, 256));
        // Request, reports, parts of a sum and its total: large sums have up to 16 parts.
        let most = if name == "adlda" { 2 * (8 + 15) + 2 } else { 2 * 8 + 2 };
        assert!((1..=most).contains(&many.0), "{name}: {few:?} of 16 ranks, {many:?} of 256");
        // The logarithm of 256 is twice that of 16.
        assert!(many.1 <= 2 * few.1.max(1) + few.1 / 2, "{name}: {few:?} of 16 ranks, {many:?} of 256");
    }
}

/// A run that is cut and one that ends by itself, on one rank after the other in one process.
#[test]
fn times_on_more_and_more_ranks_are_shown_with_advice() {
    let cli = folder();
    let long = cli.stdout("scale svgd.toml --set agents=3 --set method.rounds=1000000 --measure 1 --latency 3 --bandwidth 12.5");
    let firsts: Vec<&str> = long.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(firsts[..5], ["ranks", "1", "2", "3", "ask"], "{long}");
    assert!(long.contains("a latency of 3 µs and 12.5 GB/s between ranks, and 2 µs of a rank for each message"), "{long}");
    let short = cli.json("scale svgd.toml --ranks 4,1 --latency 1000 --measure 30 --json");
    let (rows, advice) = (short["rows"].as_array().unwrap(), short["advice"].as_str().unwrap());
    assert!(rows.len() == 2 && rows[0]["ranks"] == 1 && rows[0]["efficiency"] == 1.0, "{short}");
    // A message takes a millisecond, and a round a few of them.
    assert!(rows[1]["seconds"].as_f64().unwrap() > rows[0]["seconds"].as_f64().unwrap(), "{short}");
    assert!(advice.starts_with("ask for 1 rank (") && advice.contains("The network is the limit"), "{advice}");
    assert!(!cli.exists("runs"));
    cli.write("sweep.toml", cli.read("svgd.toml") + "[sweep]\nseed = [1, 2]\n");
    cli.alone("scale sweep.toml").refuse(&["sweep.toml: a sweep has several runs"]);
    cli.alone("scale svgd.toml --latency 0").end(2, &["write a number above 0"]);
}

#[test]
fn the_network_is_measured_under_mpirun() {
    let cli = folder();
    let ended = cli.mpirun(3, "scale svgd.toml --set agents=2 --ranks 2 --measure 1 --bandwidth 7 --json").succeed(&[]);
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let number = |name: &str| report[name].as_f64().unwrap();
    // What is given is not measured; what is measured is not what is assumed without ranks.
    assert_eq!(number("bandwidth"), 7e9);
    assert!(number("latency") > 0.0 && number("message_overhead") > 0.0 && number("message_overhead") != 2e-6, "{report}");
    assert_eq!(report["rows"][0]["ranks"], 2);
}

/// Runs on one and two ranks beside what is predicted: two tables, JSON, a picture.
#[test]
fn predictions_are_compared_with_runs() {
    let cli = folder();
    let run = |ranks: u32, output: &str, more: &str| {
        let ended = cli.mpirun(ranks, &format!("run svgd.toml --output {output} --set cluster.threads=1 {more}"));
        ended.succeed(&[]);
    };
    run(1, "runs/a", "");
    run(1, "runs/b", "");
    run(2, "runs/c", "");
    let shown = cli.json("scale svgd.toml --measure 1 --runs runs/a runs/b runs/c --output picture.svg --json");
    let rows = shown["rows"].as_array().unwrap();
    let ranks: Vec<_> = rows.iter().map(|row| row["ranks"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [1, 2]);
    for (row, runs) in rows.iter().zip([2, 1]) {
        let measured = &row["measured"];
        let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{shown}"));
        assert!(row["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{shown}");
        assert!(measured["seconds"].as_array().is_some_and(|seconds| seconds.len() == runs), "{shown}");
        let shares = ["computing", "messages", "saving", "idle"].map(|name| number(&measured["shares"][name]));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{shown}");
        assert!(number(&measured["median"]) > 0.0 && number(&measured["memory"]) > 1e6, "{shown}");
    }
    assert_eq!(rows[0]["measured"]["efficiency"][0], 1.0);
    let picture = cli.read("picture.svg");
    for says in
        ["seconds of the run", "efficiency (%)", "memory of a rank (MiB)", "time of the ranks (%)", "measured: median and range"]
    {
        assert!(picture.contains(says), "{says}");
    }
    // Without a prediction there is one table; its numbers of ranks are those of the runs.
    let measured = cli.stdout("scale svgd.toml --measure 0 --runs runs/c runs/a");
    assert!(measured.starts_with("measured runs (times without saving)\n") && !measured.contains("predicted"), "{measured}");
    cli.alone("scale svgd.toml --measure 0").end(1, &["--measure 0 predicts nothing: give --runs, or seconds above 0"]);
    cli.alone("scale dsvgd.toml --runs runs/a").end(1, &["runs/a", "its method.name is svgd, that of the run file is dsvgd"]);
    cli.alone("scale svgd.toml --set method.rounds=7 --runs runs/a")
        .end(1, &["its method.rounds is 50, that of the run file is 7"]);
    cli.alone("scale svgd.toml --weak --runs runs/a").end(1, &["it does not have as many agents as ranks (1)"]);
    cli.alone("scale svgd.toml --threads 2 --runs runs/a").end(1, &["--threads 2: the ranks of these runs have 1 thread"]);
    cli.succeed("run svgd.toml --output runs/d --set cluster.threads=2");
    cli.alone("scale svgd.toml --runs runs/a runs/d").end(1, &["runs/d", "set cluster.threads for all runs"]);
}

#[test]
fn a_weak_series_has_as_many_agents_as_ranks() {
    let cli = folder();
    let of = |weak: &str| cli.json(&format!("scale ec_sghmc.toml {weak} --ranks 2,6 --measure 1 --json"));
    let (strong, weak) = (of(""), of("--weak"));
    // The run file has 4 agents: 2 of 6 ranks have none, and receive no message.
    let messages = |shown: &serde_json::Value| shown["rows"][1]["messages"].as_u64().unwrap();
    assert!(messages(&weak) > messages(&strong), "{strong}\n{weak}");
    assert!(weak["advice"].as_str().is_some_and(|advice| !advice.contains("each agent has a rank")), "{weak}");
    let number = |shown: &serde_json::Value, name: &str| shown["rows"][1][name].as_f64().unwrap();
    let times = |shown: &serde_json::Value, row: usize| shown["rows"][row]["seconds"].as_f64().unwrap();
    for (shown, ideal) in [(&strong, 2.0 / 6.0), (&weak, 1.0)] {
        let efficiency = ideal * times(shown, 0) / times(shown, 1);
        assert!((number(shown, "efficiency") / efficiency - 1.0).abs() < 1e-9, "{shown}");
    }
}
