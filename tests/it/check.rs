//! `mpibayes check` and `mpibayes init`: messages for invalid run files say what to do, and run files written by `init` are valid.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use mpibayes::config::{Registry, RunFile};
use mpibayes::job::{check, template_for};

/// A folder with datasets: `a.h5` with two classes and 32 training rows, `r.h5` for regression, `counts.h5` and `classes.h5` of the same
/// table, `untested.h5` without test rows, and `c.h5` of documents.
fn folder() -> Cli {
    let cli = Cli::new();
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes"][i % 2])).collect();
    cli.write("a.csv", rows);
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, i % 5)).collect();
    cli.write("r.csv", rows);
    let documents: String = (0..40).map(|i| format!("3 {}:2 {}:1 {}:3\n", i % 4, 4 + i % 3, 7 + i % 5)).collect();
    cli.write("c.ldac", documents);
    for arguments in [
        "import a.csv --test-fraction 0.2 -o a.h5",
        "import r.csv --test-fraction 0.2 --task regression -o r.h5",
        "import r.csv --test-fraction 0.2 --task counts -o counts.h5",
        "import r.csv --test-fraction 0.2 -o classes.h5",
        "import a.csv -o untested.h5",
        "import c.ldac --test-fraction 0.2 -o c.h5",
    ] {
        cli.succeed(arguments);
    }
    cli
}

/// A valid run file.
const VALID: &str = "\
seed = 3
agents = 3
[data]
file = \"a.h5\"
[model]
name = \"logistic\"
[method]
name = \"dsvgd\"
particles = 4
rounds = 6
batch = 6
cavity = \"kde\"
";

/// The valid run file with a line replaced.
fn with(line: &str, other: &str) -> String {
    assert!(VALID.contains(line), "{line}");
    VALID.replacen(line, other, 1)
}

/// A run file for `dsgld` with this line in `[method]`.
fn dsgld(line: &str) -> String {
    format!("agents = 3\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"dsgld\"\n{line}\n")
}

/// A run file with three agents for `npv`, which takes one.
fn npv() -> String {
    "agents = 3\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"npv\"\n".into()
}

/// The messages of `mpibayes check` for an invalid run file: a line for each mistake and their number.
fn mistakes(cli: &Cli, file: &str, set: &str) -> Vec<String> {
    cli.write("run.toml", file);
    let output = cli.run(&format!("check run.toml{set}"));
    let said = output.stderr;
    assert_eq!(output.code, 1, "{file}\n{said}{}", output.stdout);
    assert!(output.stdout.is_empty());
    let lines: Vec<String> = said.lines().map(str::to_owned).collect();
    assert!(lines.iter().all(|line| line.starts_with("mpibayes: ")), "{said}");
    lines
}

#[test]
fn messages_for_invalid_run_files_say_what_to_do() {
    let cli = folder();
    let table: &[(String, &str, &str)] = &[
        (with("seed = 3", "sed = 3"), "", "run.toml, line 1: 'sed' is not a key here. Did you mean `seed`?"),
        (
            with("rounds = 6", "ronuds = 6"),
            "",
            "run.toml, line 10: 'method.ronuds' is not a key of dsvgd. Did you mean `rounds`?",
        ),
        (
            with("seed = 3", "rounds = 3"),
            "",
            "run.toml, line 1: 'rounds' is not a key here. Did you mean `rounds` in [method], or `method.rounds` in [sweep] and --set?",
        ),
        (
            with("[method]\n", "[method]\nagents = 2\n"),
            "",
            "'method.agents' is not a key of dsvgd. Did you mean `agents` at the top of the file",
        ),
        (with("[method]", "[metod]"), "", "line 7: 'metod' is not a section of a run file. Did you mean [method]?"),
        (
            VALID.into(),
            " --set method.ruonds=3",
            "--set method.ruonds=3: 'method.ruonds' is not a key of dsvgd. Did you mean `rounds`?",
        ),
        (
            with("batch = 6", "steps = 6"),
            "",
            "'method.steps' is not a key of dsvgd. Other methods have it, such as svgd; the keys of dsvgd are ",
        ),
        (with("batch = 6", "step = 0.1"), "", "Did you mean `optimizer.adagrad.step` in [method]?"),
        (dsgld("step = 0.1").replace("dsgld", "svgd"), "", "of svgd. Did you mean `optimizer.adagrad.step` in [method]?"),
        // What other programs call it.
        (with("batch = 6", "batch_size = 6"), "", "'method.batch_size' is not a key of dsvgd. Did you mean `batch`?"),
        (with("batch = 6", "learning_rate = 0.1"), "", "Did you mean `optimizer.adagrad.step` in [method]?"),
        (with("batch = 6", "draws = 1000"), "", "'method.draws' is not a key of dsvgd. Did you mean `rounds`?"),
        (
            with("batch = 6", "optimizer = { adagrad = { lr = 0.1 } }"),
            "",
            "'method.optimizer.adagrad.lr' is not a key here. Did you mean `optimizer.adagrad.step` in [method]?",
        ),
        (with("[data]", "[zzz]\n[data]"), "", "'zzz' is not a section of a run file. The sections are [data], [model], [method]"),
        (with("batch = 6", "random_state = 1"), "", "Did you mean `seed` at the top of the file, above all tables?"),
        (dsgld("num_warmup = 100"), "", "'method.num_warmup' is not a key of dsgld. Did you mean `burn_in`?"),
        (
            with("batch = 6", "optimizer = { adagrad = { stp = 0.1 } }"),
            "",
            "line 11: 'method.optimizer.adagrad.stp' is not a key here. Did you mean `step`?",
        ),
        (
            with("\"dsvgd\"", "\"dsvdg\""),
            "",
            "line 8: 'method.name' = \"dsvdg\" is not known. Did you mean \"dsvgd\"? Choose one of: svgd, dsvgd, u_dsvgd, p_dsvgd, pvi, gvi, hmc, dsgld, sghmc, ec_sghmc, ec_sgld, async_sghmc, easgd, fedavg, npv, pmd",
        ),
        (
            with("\"logistic\"", "\"logistics\""),
            "",
            "line 6: 'model.name' = \"logistics\" is not known. Did you mean \"logistic\"? Choose one of: logistic, linear, negative_binomial, poisson, multinomial, network, convolutional, resnet, student_t, ordinal, gaussian_mean, toy, lda",
        ),
        (
            with("name = \"dsvgd\"\n", ""),
            "",
            "line 7: 'method' has no name. Add name = \"...\" with one of: svgd, dsvgd, u_dsvgd, p_dsvgd, pvi, gvi, hmc, dsgld, sghmc, ec_sghmc, ec_sgld, async_sghmc, easgd, fedavg, npv, pmd",
        ),
        ("seed = 1\n".into(), "", "there is no [method]. Add [method] with name"),
        (
            with("particles = 4", "particles = \"four\""),
            "",
            "line 9: 'method.particles' must be a whole number, 0 or larger, not \"four\"",
        ),
        (with("agents = 3", "agents = -3"), "", "line 2: 'agents' must be a whole number, 0 or larger, not -3"),
        (with("agents = 3", "agents = 0"), "", "line 2: 'agents' must be at least 1, not 0"),
        (with("agents = 3", "agents = 100"), "", "line 2: 'agents' must be at most 32, the number of training rows"),
        (with("a.h5", "b.h5"), "", "line 4: 'data.file' names b.h5, which does not exist. `mpibayes import` makes"),
        (
            with("a.h5", "a.csv"),
            "",
            "line 4: 'data.file' cannot be used: a.csv: this is no dataset of this program: make one with `mpibayes import`",
        ),
        (with("a.h5", "r.h5"), "", "line 5: 'model' does not suit the data: the model needs two classes"),
        (with("\"logistic\"", "\"toy\""), "", "line 5: 'model' generates its own factors and takes no data: remove [data]"),
        (with("[data]\nfile = \"a.h5\"\n", ""), "", "'model' needs data. Add [data]"),
        (with("file = \"a.h5\"\n", ""), "", "line 3: 'data' lacks the key `file`"),
        (with("batch = 6", "batch = 0"), "", "line 11: 'method.batch' must be at least 1, not 0"),
        (
            with("batch = 6", "kde = \"lsee\""),
            "",
            "line 11: 'method.kde' = \"lsee\" is not known. Did you mean \"lse\"? `kde`: Density estimate of particles: { lse",
        ),
        (with("batch = 6", "prior = \"pure\"\nkde = \"none\""), "", "'method.prior' = \"pure\" with kde = \"none\""),
        (
            with("batch = 6", "cavity = { sites = { caution = -1.0 } }").replace("cavity = \"kde\"\n", ""),
            "",
            "line 11: 'method.cavity.sites.caution' must be a number above 0, or \"measured\", not -1",
        ),
        (with("batch = 6", "kde_bandwidth = 0"), "", "line 11: 'method.kde_bandwidth' must be positive, not 0"),
        (
            with("batch = 6", "optimizer = { plain = { step = 0 } }"),
            "",
            "line 11: 'method.optimizer.plain.step' must be positive, not 0",
        ),
        (
            with("batch = 6", "optimizer = { step = 0.1 }"),
            "",
            "line 11: 'method.optimizer' = { step = 0.1 } is not understood. `optimizer`: Optimizer of the particles: { adagrad",
        ),
        (with("batch = 6", "bandwidth = 1.0"), "", "'method.bandwidth' = 1.0 is not understood. `bandwidth`: Bandwidth h of"),
        (
            with("name = \"logistic\"\n", "name = \"logistic\"\nprior = { normal = -1 }\n"),
            "",
            "line 7: 'model.prior.normal' must be",
        ),
        (
            with("name = \"logistic\"\n", "name = \"logistic\"\nprior_precision = 1\n"),
            "",
            "line 7: 'model.prior_precision' is called `prior` now",
        ),
        (
            with("a.h5\"\n", "a.h5\"\npartition = { sizes = [1, 2] }\n"),
            "",
            "line 5: 'data.partition' cannot be used: it has 2 sizes for 3",
        ),
        (
            with("name = \"dsvgd\"", "name = \"p_dsvgd\"\nschedule = { subset = 5 }"),
            "",
            "'method.schedule.subset' must be at most 3, the number",
        ),
        (
            "[model]\nname = \"toy\"\n[method]\nname = \"dsvgd\"\ncavity = { sites = {} }\n".into(),
            "",
            "'method.cavity' = { sites = ... } needs the curvature of the loss",
        ),
        (npv(), "", "line 1: 'agents' must be 1 for npv, which is centralized: one agent has all data, not 3"),
        (dsgld("burn_in = 100000\nstep = 1e-4"), "", "'method.burn_in' = 100000 leaves no draws: there are 10000 updates"),
        (dsgld("trajectory = \"long\""), "", "'method.trajectory' must be a number, or a list with one number for each agent"),
        (dsgld("ahead = 3"), "", "'method.ahead' is called `max_rounds_in_flight` now"),
        (with("[data]", "[cluster]\nthreads = 100000\n[data]"), "", "'cluster.threads' must be at most 4096, not 100000"),
        (with("seed = 3", "temperature = 0"), "", "line 1: 'temperature' must be a positive number, not 0"),
        (
            with("seed = 3", "dtype = \"float23\""),
            "",
            "line 1: 'dtype' = \"float23\" is not known. Did you mean \"float32\"? Choose one of: float32, float64",
        ),
        (
            with("[data]", "[cluster]\ncheckpoint_every = -1\n[data]"),
            "",
            "'cluster.checkpoint_every' must be a positive number of seconds",
        ),
        (with("[data]", "[sweep]\nseed = 1\n[data]"), "", "'sweep.seed' must be a list of values, such as [1, 2]"),
        (with("[data]", "[sweep]\ncluster.threads = [1, 2]\n[data]"), "", "'sweep.cluster.threads' cannot vary within a job"),
        (with("[data]", "[sweep]\ncluster = [{ threads = 1 }, {}]\n[data]"), "", "'sweep.cluster' cannot vary within a job"),
    ];
    for (file, set, says) in table {
        let found = mistakes(&cli, file, set);
        assert!(found.iter().any(|line| line.contains(says)), "{says}\nis missing in\n{}\n", found.join("\n"));
        // One message for the mistake, and the number of mistakes.
        let expected = if file.starts_with("seed = 1\n") { 3 } else { 2 };
        assert!(found.len() == expected || file.contains("[metod]"), "{}", found.join("\n"));
        // `mpibayes run` prints one message.
        let run = cli.run(&format!("run run.toml{set} --output out"));
        let said = run.stderr;
        assert_eq!((run.code, said.lines().count()), (1, 1), "{file}\n{said}");
        assert!(!cli.exists("out/result.h5"));
    }
    // The control: the valid run file.
    cli.write("run.toml", VALID);
    let output = cli.run("check run.toml");
    assert!(output.code == 0 && output.stderr.is_empty(), "{}", output.stderr);
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_their_lines() {
    let cli = folder();
    let file =
        VALID.replace("seed", "sed").replace("a.h5", "b.h5").replace("rounds = 6", "rounds = \"x\"").replace("batch", "bach");
    let found = mistakes(&cli, &file, " --set temperature=-1");
    for (place, says) in [(0, "line 1: 'sed'"), (1, "b.h5"), (2, "line 10: 'method.rounds'"), (3, "line 11: 'method.bach'")] {
        assert!(found[place].contains(says), "{says} in\n{}", found.join("\n"));
    }
    let run = cli.run("run run.toml").stderr;
    assert!(run.contains("line 1: 'sed'") && run.contains("`mpibayes check` lists all") && run.lines().count() == 1, "{run}");
    let found = mistakes(&cli, "seed = 1\n[model\n", "");
    assert!(found[0].contains("run.toml, line 2: ") && found[0].contains("[model"), "{found:?}");
}

#[test]
fn a_valid_run_is_described() {
    let cli = folder();
    cli.write("run.toml", with("a.h5", "untested.h5"));
    let output = cli.run("check run.toml --set method.batch=100");
    let said = output.stdout;
    assert_eq!(output.code, 0, "{}", output.stderr);
    for says in [
        "run.toml can be run\n",
        "  method     dsvgd\n",
        "  particles  4\n",
        "  model      logistic, 4 parameters\n",
        "40 for training, 0 for testing",
        "2 features, 2 classes",
        "  agents     3, 13 to 14 rows each\n",
        // 2 sets of 4 particles with 4 parameters of 8 bytes.
        "about 256 B per round",
        "runs/run: config.toml",
        "note: nothing is evaluated, because the data have no test rows",
        "note: an agent with 13 rows uses all of them in each step, because batch = 100 is larger",
    ] {
        assert!(said.contains(says), "{says}\nin\n{said}");
    }
    assert!(!cli.exists("runs"), "check writes nothing");
}

/// Of two columns, the one that tells the classes apart is named, before a run and in it.
#[test]
fn a_column_that_separates_the_classes_is_named() {
    let cli = Cli::new();
    let row = |i: usize| format!("{},{},{}\n", (i * 7) % 11, i, ["no", "yes"][i / 20]);
    cli.write("claims.csv", format!("age,paid,claim\n{}", (0..40).map(row).collect::<String>()));
    cli.succeed("import claims.csv -o claims.h5");
    let draws = "method.draws=20 --set method.burn_in=20 --set evaluate.bias=false";
    cli.write("run.toml", "[data]\nfile = \"claims.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"hmc\"\n");
    let note = "note: columns that tell the classes apart by themselves, but for ties (separation): paid. ";
    cli.alone(&format!("check run.toml --set {draws}")).succeed(&[note]);
    cli.mpirun(2, &format!("run run.toml --output run --set {draws}")).succeed(&[note]);
    cli.succeed("import claims.csv --drop paid -o claims.h5 --force");
    let said = cli.succeed(&format!("check run.toml --set {draws}")).written();
    assert!(!said.contains("separation"), "{said}");
}

/// Data are verified before a run is said to be possible.
#[test]
fn data_are_verified_first() {
    let cli = folder();
    cli.write("run.toml", VALID);
    let output = cli.run("check run.toml --verify");
    let (verified, can_run) =
        (output.stdout.find(": the content matches the digest "), output.stdout.find("run.toml can be run\n"));
    assert!(output.code == 0 && verified.is_some() && verified < can_run, "{}\n{}", output.stdout, output.stderr);
}

/// Memory, disk and options for Slurm are estimated from the file alone, and the time from a part of the run.
#[test]
fn needs_on_ranks_are_estimated() {
    let cli = folder();
    cli.write("run.toml", VALID);
    let output = cli.run("check run.toml --ranks 2 --threads 3");
    assert_eq!(output.code, 0, "{}", output.stderr);
    for says in ["2, with 1 to 2 agents and 3 threads each", "on rank 0", "of draws", "  time    about ", "of 6 rounds"] {
        assert!(output.stdout.contains(says), "{says} in {}", output.stdout);
    }
    for option in ["--ntasks=2", "--cpus-per-task=3", "--mem-per-cpu=100M", "--time=0:10:00"] {
        assert!(output.stdout.contains(&format!("  #SBATCH {option}\n")), "{option} in {}", output.stdout);
    }
    assert!(!cli.exists("runs"), "the run that is measured leaves nothing");
    let text = cli.stdout("check run.toml --ranks 8 --measure 0");
    assert!(!text.contains("  time  ") && !text.contains("--time"), "{text}");
    assert!(text.contains("only 3 of the ranks have an agent"), "{text}");
    cli.alone("check run.toml --measure 5").end(2, &["--ranks"]);
    let sweep = VALID.to_owned() + "[sweep]\nseed = [1, 2]\n";
    cli.write("sweep.toml", sweep);
    assert!(cli.stdout("check sweep.toml --ranks 2").contains("for 2 runs that take as long as the first"));
}

/// What is known before the run of the number of draws, and so of the disk that they take.
#[test]
fn draws_are_told_as_far_as_they_are_known() {
    let cli = folder();
    let run = "agents = 2\n[data]\nfile = \"a.h5\"\n[model]\nname = \"logistic\"\n[method]\nname = \"sghmc\"\n";
    cli.write("run.toml", run);
    // Two features, an intercept and the precision of the prior: 32 bytes a draw.
    for (settings, chains, disk) in [
        // 3.5 draws for each effective one.
        ("", "2, about 1,750 draws each", "about 109.4 KiB of draws, "),
        ("--set method.ess=100", "2, about 175 draws each", "about 10.9 KiB of draws, "),
        ("--set method.steps=1000", "2; how many draws each keeps is found before the run", "draws, whose number is not known"),
        ("--set method.steps=1000 --set method.burn_in=500 --set method.thin=10", "2, 50 draws each", "about 3.1 KiB of draws, "),
        ("--set method.thin=0", "2", "about 0 B of draws, "),
    ] {
        let said = cli.stdout(&format!("check run.toml --set evaluate.every=0 {settings} --ranks 2 --measure 0"));
        let line = |name: &str| said.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap().trim().to_owned();
        assert_eq!(line("chains "), chains, "{settings}");
        assert!(line("disk ").starts_with(disk) && line("disk ").ends_with(", and checkpoints"), "{settings}: {}", line("disk "));
        assert_eq!(line("traffic "), "none in the rounds", "{settings}");
        // No limit is proposed for memory that is not known.
        let is_known = !disk.contains("not known");
        assert_eq!(
            (said.contains("--mem-per-cpu"), said.contains("on rank 0 2.5 times the draws")),
            (is_known, !is_known),
            "{said}"
        );
    }
    // Chains of dsgld go to another agent after all of their visits, after half of them, or after none.
    let dsgld = "--set method={name=\"dsgld\",chains=4} --set evaluate.every=0";
    for (settings, traffic) in [
        ("--set method.schedule=\"cyclic\"", "about 128 B per round"),
        ("", "about 64 B per round"),
        ("--set agents=1", "none in the rounds"),
    ] {
        let said = cli.stdout(&format!("check run.toml {dsgld} {settings}"));
        let line = said.lines().find_map(|line| line.trim().strip_prefix("traffic ")).unwrap().trim();
        assert!(line.starts_with(traffic), "{settings}: {said}");
    }
    // Mistakes in several sections are found together.
    let wrong = "check run.toml --set agnts=3 --set data.partition={dirichlet=-1} --set method.name=\"dsgld\"";
    cli.alone(wrong).end(1, &["'agnts' is not a key here", "dirichlet must be between 1e-6 and 1e9, not -1", "2 mistakes"]);
}

/// The rows of each class at each agent, where they differ.
#[test]
fn skew_is_shown() {
    let cli = folder();
    cli.write("run.toml", VALID);
    let text = cli.stdout("check run.toml --set agents=2 --set data.partition=by_label");
    let at = text.lines().position(|line| line.contains("training rows of each class")).unwrap();
    let cells: Vec<Vec<&str>> = text.lines().skip(at + 1).take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0], ["agent", "no", "yes"], "{text}");
    let count = |agent: usize, class: usize| cells[1 + agent][1 + class].parse::<usize>().unwrap();
    // Rows sorted by label in two blocks.
    assert!(count(0, 1) == 0 || count(1, 0) == 0, "{text}");
    assert_eq!((0..2).map(|agent| count(agent, 0) + count(agent, 1)).sum::<usize>(), 32, "{text}");
    // The control: random shards.
    assert!(!cli.stdout("check run.toml").contains("rows of each class"));
}

#[test]
fn every_point_of_a_sweep_is_checked() {
    let cli = folder();
    let sweep = format!("{VALID}[sweep]\nseed = [1, 2]\n\"method.local_steps\" = [5, 6]\n");
    cli.write("sweep.toml", &sweep);
    let output = cli.run("check sweep.toml");
    assert!(output.stdout.contains("4 runs over seed, method.local_steps"), "{}", output.stderr);
    let found = mistakes(&cli, &sweep.replace("[5, 6]", "[5, 0]"), "");
    assert_eq!(found.len(), 2, "reported once: {found:?}");
    let says = "run.toml, line 15: 'method.local_steps' must be at least 1, not 0 (in the run seed=1,local_steps=0)";
    assert!(found[0].contains(says), "{found:?}");
    let run = cli.run("run sweep.toml").stderr;
    assert!(run.contains("describes a sweep of runs: start it with `mpibayes sweep`"), "{run}");
}

/// A model without predictions ignores test rows.
#[test]
fn a_model_without_predictions_runs_on_data_with_test_rows() {
    let cli = folder();
    let run = "[data]\nfile = \"r.h5\"\n[model]\nname = \"gaussian_mean\"\n[method]\nname = \"svgd\"\nrounds = 1\nsteps = 1\n";
    cli.write("mean.toml", run);
    let checked = cli.run("check mean.toml");
    let said = checked.stdout;
    assert!(checked.code == 0 && said.contains("  evaluate   never, because the model predicts nothing"), "{said}");
    let ran = cli.run("run mean.toml --output mean");
    assert!(ran.code == 0 && cli.path("mean/result.h5").is_file(), "{}", ran.stderr);
}

#[test]
fn run_files_written_by_init_pass_check() {
    let cli = folder();
    let record = |number: u8| std::iter::once(number % 2).chain((0..3072_u32).map(move |pixel| (pixel % 251) as u8 ^ number));
    cli.write("images.bin", (0..8).flat_map(record).collect::<Vec<u8>>());
    cli.succeed("import images images.bin -o images.h5");
    let registry = Registry::default();
    for method in registry.methods() {
        for model in registry.models() {
            let is_topics = model == "lda";
            let fits = match method {
                "dsgld" => true,
                "lda" | "adlda" | "async_lda" => is_topics,
                _ => !is_topics,
            };
            if !fits {
                let refused = cli.run(&format!("init {method} --model {model}"));
                let said = refused.stderr;
                assert!(said.contains(&format!("{method} is not a method for a ")) && said.contains("dsgld"), "{said}");
                continue;
            }
            let file = match model {
                "toy" => None,
                "lda" => Some("c.h5"),
                "linear" | "student_t" => Some("r.h5"),
                "poisson" | "negative_binomial" => Some("counts.h5"),
                "ordinal" | "multinomial" => Some("classes.h5"),
                "resnet" | "convolutional" => Some("images.h5"),
                _ => Some("a.h5"),
            };
            let data = file.map_or_else(String::new, |file| format!(" --data {file}"));
            let data_table = file.map_or_else(String::new, |file| format!("[data]\nfile = \"{file}\"\n"));
            let written = cli.run(&format!("init {method} --model {model}{data} -o my.toml --force"));
            // Neither a flat prior has a Gaussian approximation, nor these models the curvature of their losses.
            let unsuitable = [("pvi", "gaussian_mean"), ("gvi", "gaussian_mean"), ("npv", "toy")];
            if unsuitable.contains(&(method, model)) {
                assert!(written.code == 1 && written.stderr.contains("cannot use the model"), "{}", written.stderr);
                continue;
            }
            assert!(written.code == 0, "{}", written.stderr);
            let checked = cli.run("check my.toml");
            let file = cli.read("my.toml");
            assert!(checked.code == 0, "{file}\n{}", checked.stderr);
            // It says no more than the defaults, but for two agents where the method has several.
            let agents = if ["npv", "pmd"].contains(&method) { 1 } else { 2 };
            let defaults = format!("agents = {agents}\n{data_table}[model]\nname = \"{model}\"\n[method]\nname = \"{method}\"\n");
            if let ("network", "svgd" | "dsvgd" | "u_dsvgd" | "p_dsvgd" | "fedavg") = (model, method) {
                assert!(file.contains("\noptimizer = { adagrad = { decay = 0.9, fudge = 1e-6, step = 0.001 } }\n"), "{file}");
            }
            assert_eq!(
                file.contains("dtype = \"float32\""),
                ["network", "convolutional", "resnet", "lda"].contains(&model),
                "{file}"
            );
            let resolved = |text: &str| {
                cli.write("x.toml", text);
                RunFile::read(&cli.path("x.toml"), &[]).unwrap().parse(&registry).unwrap().to_table().unwrap()
            };
            assert_eq!(resolved(&file), resolved(&defaults));
            assert!(file.lines().all(|line| line.chars().count() <= 130), "{file}");
        }
    }
    let refused = |arguments: &str, says: &str| {
        let output = cli.run(arguments);
        let said = output.stderr;
        assert!(output.code == 1 && said.contains(says) && said.lines().count() == 1, "{said}");
    };
    refused(
        "init dsvdg",
        "\"dsvdg\" is not known. Did you mean \"dsvgd\"? Choose one of: svgd, dsvgd, u_dsvgd, p_dsvgd, pvi, gvi, hmc, dsgld, sghmc, ec_sghmc, ec_sgld, async_sghmc, easgd, fedavg, npv, pmd",
    );
    refused("init svgd --model logstic", "Did you mean \"logistic\"?");
    refused("init svgd --model logistic --data r.h5", "two classes");
    refused("init svgd --data none.h5", "none.h5");
    refused("init svgd -o my.toml", "--force");
    // On the screen, for data of which logistic regression would know nothing.
    let shown = cli.run("init svgd --data r.h5").stdout;
    assert!(
        shown.contains("name = \"linear\"") && shown.contains("file = \"r.h5\"") && shown.contains("# noise_variance ="),
        "{shown}"
    );
    for (data, model) in [("counts", "negative_binomial"), ("classes", "multinomial"), ("a", "logistic")] {
        let shown = cli.run(&format!("init svgd --data {data}.h5")).stdout;
        assert!(shown.contains(&format!("name = \"{model}\"")), "{shown}");
    }
}

/// A method whose chains all see all rows has no partition, and may have more chains than rows.
#[test]
fn chains_that_see_all_rows_refuse_a_partition() {
    let cli = folder();
    let written = cli.run("init ec_sghmc --model network --data a.h5 -o my.toml --force");
    assert!(written.code == 0, "{}", written.stderr);
    assert!(!cli.read("my.toml").contains("partition"));
    for command in ["check my.toml", "run my.toml --output r"] {
        let output = cli.run(&format!("{command} --set data.partition=by_label"));
        let said = output.stderr;
        assert!(
            output.code == 1 && said.contains("'data.partition' is not a key of ec_sghmc: every agent sees all rows"),
            "{said}"
        );
    }
    let many = cli.run("check my.toml --set agents=5000");
    assert!(many.code == 0, "{}", many.stderr);
}

#[test]
fn every_key_is_documented() {
    let documentation = Registry::default().documentation();
    assert!(documentation.len() > 30, "{documentation:?}");
    for (table, keys) in &documentation {
        assert!(!keys.is_empty(), "{table}");
        for key in keys {
            assert!(key.doc.len() > 10 && key.doc.ends_with('.'), "{table} {}: {}", key.name, key.doc);
        }
    }
}

/// A `[method]` table is deserialized once from the run file to the running method.
mod counted {
    use mpibayes::methods::{MethodSettings, Problem, Table, TableMethod};
    use mpibayes::number::Real;
    use mpibayes::settings::KeyError;
    use std::sync::atomic::{AtomicUsize, Ordering};

    pub static DESERIALIZED: AtomicUsize = AtomicUsize::new(0);

    #[derive(Clone, serde::Serialize)]
    pub struct Counted(mpibayes::methods::particles::svgd::SvgdSettings);

    impl<'de> serde::Deserialize<'de> for Counted {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            DESERIALIZED.fetch_add(1, Ordering::Relaxed);
            serde::Deserialize::deserialize(deserializer).map(Self)
        }
    }

    impl MethodSettings for Counted {
        type Data = Table;

        const NAME: &'static str = "counted";

        fn check(&self) -> Result<(), KeyError> {
            self.0.check()
        }

        fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
            self.0.method(problem)
        }
    }
}

#[test]
fn a_method_table_is_deserialized_once() {
    use counted::{Counted, DESERIALIZED};
    use mpibayes::job::{Ranks, start};
    use std::sync::atomic::Ordering;
    let cli = Cli::new();
    let registry = Registry::default().with_method::<Counted>();
    cli.write("run.toml", "[model]\nname = \"toy\"\n[method]\nname = \"counted\"\nrounds = 2\nsteps = 1\n");
    let (run, _) = check(&RunFile::read(&cli.path("run.toml"), &[]).unwrap(), &registry).unwrap();
    let mut folder =
        mpibayes::results::RunFolder::new(&cli.path("out"), std::time::Duration::MAX, mpibayes::results::Reporting::Quiet);
    start(&run, &registry, &Ranks::One, &mut folder).unwrap();
    assert!(cli.exists("out/result.h5"));
    assert_eq!(DESERIALIZED.load(Ordering::Relaxed), 1);
}

#[test]
fn old_names_are_refused_with_the_new_ones() {
    let cli = folder();
    for (line, old, says) in [
        ("seed = 3", "precision = \"f32\"", "'precision' is called `dtype` now"),
        ("seed = 3", "dtype = \"f32\"", "'dtype' = \"f32\" is written \"float32\" now"),
        ("\"dsvgd\"", "\"u-dsvgd\"", "'method.name' = \"u-dsvgd\" is written \"u_dsvgd\" now"),
        ("[data]", "[evaluate]\nsingle = true\n[data]", "'evaluate.single' is called `per_particle` now"),
        ("[data]", "[cluster]\ndraws = \"files\"\n[data]", "'cluster.draws' is called `draw_transport` now"),
    ] {
        let found = mistakes(&cli, &with(line, old), "");
        assert!(found.iter().any(|found| found.contains(says)), "{says} in {found:?}");
    }
}

/// Settings of a user's own that nobody has described.
mod own {
    use mpibayes::methods::{MethodSettings, Problem, Table, TableMethod};
    use mpibayes::number::Real;
    use mpibayes::settings::{KeyError, in_range};

    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Plain {
        rate: f64,
        sweeps: u64,
    }

    impl Default for Plain {
        fn default() -> Self {
            Self { rate: 0.1, sweeps: 3 }
        }
    }

    impl MethodSettings for Plain {
        type Data = Table;

        const NAME: &'static str = "plain";

        fn check(&self) -> Result<(), KeyError> {
            in_range("rate", self.rate, self.rate > 0.0, "positive")
        }

        fn method<F: Real>(&self, _: Problem<F>) -> TableMethod<F> {
            unreachable!("it is only checked");
        }
    }
}

#[test]
fn user_defined_methods_are_checked_and_written_too() {
    let cli = Cli::new();
    let registry = Registry::default().with_method::<own::Plain>();
    let file = cli.path("own.toml");
    let text = template_for(&registry, "plain", None, Some("toy"), None).unwrap();
    assert!(text.contains("name = \"plain\"\nrate = 0.1\nsweeps = 3\n"), "{text}");
    std::fs::write(&file, &text).unwrap();
    let (_, report) = check(&RunFile::read(&file, &[]).unwrap(), &registry).unwrap();
    assert_eq!((report.method, report.model, report.parameters, report.bytes_per_round()), ("plain", "toy", 1, None));
    for (line, says) in [("rat = 1", "Did you mean `rate`?"), ("rate = -1", "'method.rate' must be positive, not -1")] {
        std::fs::write(&file, text.replace("rate = 0.1", line)).unwrap();
        let problems = check(&RunFile::read(&file, &[]).unwrap(), &registry).err().unwrap();
        assert!(problems.len() == 1 && problems[0].to_string().contains(says), "{problems:?}");
    }
}
