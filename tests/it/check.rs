//! `mpibayes check` and `mpibayes init`: wrong configurations get messages that tell what to do, and what `init` writes is right.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use mpibayes::config::keys::fields_of;
use mpibayes::config::{ClusterSpec, DataSpec, EvaluateSpec, Registry, RunSpec, Typed, check, template};
use mpibayes::lda::LdaSettings;
use mpibayes::methods::chains::async_sghmc::AsyncSghmcSettings;
use mpibayes::methods::chains::{ec_sghmc::EcSghmcSettings, ec_sgld::EcSgldSettings, sghmc::SghmcSettings};
use mpibayes::methods::particles::dsvgd::DsvgdSettings;
use mpibayes::methods::particles::p_dsvgd::PDsvgdSettings;
use mpibayes::methods::particles::pmd::PmdSettings;
use mpibayes::methods::particles::svgd::SvgdSettings;
use mpibayes::methods::particles::u_dsvgd::UDsvgdSettings;
use mpibayes::methods::point::easgd::EasgdSettings;
use mpibayes::methods::point::fedavg::FedAvgSettings;
use mpibayes::methods::topics::{AdLdaSettings, AsyncLdaSettings, TopicDsgldSettings};
use mpibayes::methods::variational::gvi::GviSettings;
use mpibayes::methods::variational::npv::NpvSettings;
use mpibayes::methods::variational::pvi::PviSettings;
use mpibayes::methods::{MethodKind, Texts};
use mpibayes::models::ModelSettings;
use mpibayes::models::gaussian_mean::GaussianMeanSettings;
use mpibayes::models::linear::LinearSettings;
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::toy::ToySettings;
use std::path::Path;

/// A folder with a dataset of 32 training rows in two classes, one of numbers to predict, one without test rows, and one of documents.
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
        "import a.csv -o untested.h5",
        "import c.ldac --test-fraction 0.2 -o c.h5",
    ] {
        cli.succeed(arguments);
    }
    cli
}

/// A right run file; the tests break it.
const RIGHT: &str = "\
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

/// RIGHT with a line in place of another.
fn with(line: &str, other: &str) -> String {
    assert!(RIGHT.contains(line), "{line}");
    RIGHT.replacen(line, other, 1)
}

/// What check says of a wrong file: a line for each mistake.
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
fn wrong_configurations_get_helpful_messages() {
    let cli = folder();
    let table: &[(String, &str, &str)] = &[
        (with("seed = 3", "sed = 3"), "", "run.toml, line 1: sed: there is no such key; did you mean `seed`?"),
        (
            with("rounds = 6", "ronuds = 6"),
            "",
            "run.toml, line 10: [method] ronuds: there is no such key; did you mean `rounds`?",
        ),
        (
            with("seed = 3", "rounds = 3"),
            "",
            "run.toml, line 1: rounds: there is no such key here; did you mean `rounds` in [method]?",
        ),
        (
            with("[method]\n", "[method]\nagents = 2\n"),
            "",
            "[method] agents: there is no such key here; did you mean `agents` in the top of",
        ),
        (with("[method]", "[metod]"), "", "line 7: [metod]: there is no such table; did you mean [method]?"),
        (
            RIGHT.into(),
            " --set method.ruonds=3",
            "--set method.ruonds=3: [method] ruonds: there is no such key; did you mean `rounds`?",
        ),
        (with("batch = 6", "steps = 6"), "", "[method] steps: there is no such key; it belongs to the method `svgd`"),
        (with("batch = 6", "step = 0.1"), "", "did you mean `optimizer.adagrad.step` in [method]?"),
        (
            with("batch = 6", "optimizer = { adagrad = { stp = 0.1 } }"),
            "",
            "line 11: [method] optimizer.adagrad.stp: there is no such key; did you mean `step`?",
        ),
        (
            with("\"dsvgd\"", "\"dsvdg\""),
            "",
            "line 8: [method] name: \"dsvdg\" is unknown; did you mean \"dsvgd\"? there are: svgd, dsvgd, u-dsvgd, p-dsvgd, pvi, gvi, dsgld, sghmc, ec_sghmc, ec_sgld, async_sghmc, easgd, \
             fedavg, npv, pmd",
        ),
        (
            with("\"logistic\"", "\"logistics\""),
            "",
            "line 6: [model] name: \"logistics\" is unknown; did you mean \"logistic\"? there are: network, logistic, linear, gaussian_mean, toy, lda",
        ),
        (
            with("name = \"dsvgd\"\n", ""),
            "",
            "line 7: [method]: `name` is missing; there are: svgd, dsvgd, u-dsvgd, p-dsvgd, pvi, gvi, dsgld, sghmc, ec_sghmc, ec_sgld, async_sghmc, \
             easgd, fedavg, npv, pmd",
        ),
        ("seed = 1\n".into(), "", "there is no [method]: add [method] with name"),
        (
            with("particles = 4", "particles = \"four\""),
            "",
            "line 9: [method] particles: must be a whole number, 0 or above, not \"four\"",
        ),
        (with("agents = 3", "agents = -3"), "", "line 2: agents: must be a whole number, 0 or above, not -3"),
        (with("agents = 3", "agents = 0"), "", "line 2: agents: must be at least 1"),
        (
            with("agents = 3", "agents = 100"),
            "",
            "line 2: agents: 100 agents cannot share 32 training rows: ask for 1 to 32 agents",
        ),
        (with("a.h5", "b.h5"), "", "line 4: [data] file: b.h5: there is no such file; mpibayes import makes one"),
        (
            with("a.h5", "a.csv"),
            "",
            "line 4: [data] file: a.csv: this is no dataset of this program: make one with `mpibayes import`",
        ),
        (with("a.h5", "r.h5"), "", "line 5: [model]: the model needs two classes as targets: this is logistic regression"),
        (with("\"logistic\"", "\"toy\""), "", "line 5: [model]: the model 'toy' generates its own factors: remove [data]"),
        (with("[data]\nfile = \"a.h5\"\n", ""), "", "[model]: this model needs data: add [data]"),
        (with("file = \"a.h5\"\n", ""), "", "line 3: [data]: `file` is missing"),
        (with("batch = 6", "batch = 0"), "", "line 11: [method] batch: batch = 0: must be at least 1"),
        (
            with("batch = 6", "kde = \"lsee\""),
            "",
            "line 11: [method] kde: \"lsee\" is unknown; did you mean \"lse\"? there are: lse, authors_compat, none",
        ),
        (with("batch = 6", "prior = \"pure\"\nkde = \"none\""), "", "[method] prior: prior = \"pure\" with kde = \"none\""),
        (with("seed = 3", "temperature = 0"), "", "line 1: temperature: must be a positive number, not 0"),
        (
            with("seed = 3", "precision = \"f46\""),
            "",
            "line 1: precision: \"f46\" is unknown; did you mean \"f64\"? there are: f32, f64",
        ),
        (
            with("[data]", "[cluster]\ncheckpoint_every = -1\n[data]"),
            "",
            "[cluster] checkpoint_every: must be a positive number of seconds",
        ),
        (with("[data]", "[sweep]\nseed = 1\n[data]"), "", "[sweep] seed: must be a list of values, such as [1, 2]"),
    ];
    for (file, set, says) in table {
        let found = mistakes(&cli, file, set);
        assert!(found.iter().any(|line| line.contains(says)), "{says}\nis missing in\n{}\n", found.join("\n"));
        // One mistake, one message, and their number.
        let expected = if file.starts_with("seed = 1\n") { 3 } else { 2 };
        assert!(found.len() == expected || file.contains("[metod]"), "{}", found.join("\n"));
        // Run says the same, in a line.
        let run = cli.run(&format!("run run.toml{set} --output out"));
        let said = run.stderr;
        assert_eq!((run.code, said.lines().count()), (1, 1), "{file}\n{said}");
        assert!(!cli.exists("out/result.h5"));
    }
    // The control.
    cli.write("run.toml", RIGHT);
    let output = cli.run("check run.toml");
    assert!(output.code == 0 && output.stderr.is_empty(), "{}", output.stderr);
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_their_lines() {
    let cli = folder();
    let file =
        RIGHT.replace("seed", "sed").replace("a.h5", "b.h5").replace("rounds = 6", "rounds = \"x\"").replace("batch", "bach");
    let found = mistakes(&cli, &file, " --set temperature=-1");
    for (place, says) in [(0, "line 1: sed"), (1, "b.h5"), (2, "line 10: [method] rounds"), (3, "line 11: [method] bach")] {
        assert!(found[place].contains(says), "{says} in\n{}", found.join("\n"));
    }
    let run = cli.run("run run.toml").stderr;
    assert!(run.contains("line 1: sed") && run.contains("mpibayes check lists all") && run.lines().count() == 1, "{run}");
    let found = mistakes(&cli, "seed = 1\n[model\n", "");
    assert!(found[0].contains("run.toml, line 2: ") && found[0].contains("[model"), "{found:?}");
}

#[test]
fn a_right_run_is_described() {
    let cli = folder();
    cli.write("run.toml", with("a.h5", "untested.h5"));
    let output = cli.run("check run.toml --set method.batch=100");
    let said = output.stdout;
    assert_eq!(output.code, 0, "{}", output.stderr);
    for says in [
        "run.toml can be run\n",
        "  method     dsvgd\n",
        "  particles  4\n",
        "  model      logistic, 3 parameters\n",
        "40 to learn from, 0 to test on",
        "2 features, 2 classes",
        "  agents     3, 13 to 14 rows each\n",
        // 2 sets of 4 particles with 3 parameters of 8 bytes.
        "about 192 B a round",
        "runs/run: config.toml",
        "note: the data have no test rows",
        "note: a minibatch is to have 100 rows of an agent that has 13",
    ] {
        assert!(said.contains(says), "{says}\nin\n{said}");
    }
    assert!(!cli.exists("runs"), "check writes nothing");
}

#[test]
fn every_point_of_a_sweep_is_checked() {
    let cli = folder();
    let sweep = format!("{RIGHT}[sweep]\nseed = [1, 2]\n\"method.local_steps\" = [5, 6]\n");
    cli.write("sweep.toml", &sweep);
    let output = cli.run("check sweep.toml");
    assert!(output.stdout.contains("4 runs over seed, method.local_steps"), "{}", output.stderr);
    let found = mistakes(&cli, &sweep.replace("[5, 6]", "[5, 0]"), "");
    assert_eq!(found.len(), 2, "told once: {found:?}");
    let says = "run.toml, line 15: [method] local_steps: local_steps = 0: must be at least 1 (in the run seed=1,local_steps=0)";
    assert!(found[0].contains(says), "{found:?}");
    let run = cli.run("run sweep.toml").stderr;
    assert!(run.contains("mpibayes sweep sweep.toml"), "{run}");
}

/// Test rows are of no use to it, and no hindrance.
#[test]
fn a_model_that_predicts_nothing_runs_on_data_with_test_rows() {
    let cli = folder();
    let run = "[data]\nfile = \"r.h5\"\n[model]\nname = \"gaussian_mean\"\n[method]\nname = \"svgd\"\nrounds = 1\nsteps = 1\n";
    cli.write("mean.toml", run);
    let checked = cli.run("check mean.toml");
    let said = checked.stdout;
    assert!(checked.code == 0 && said.contains("  evaluate   no predictions: the model makes none"), "{said}");
    let ran = cli.run("run mean.toml --output mean");
    assert!(ran.code == 0 && cli.path("mean/result.h5").is_file(), "{}", ran.stderr);
}

#[test]
fn what_init_writes_passes_check() {
    let cli = folder();
    let registry = Registry::default();
    for method in registry.methods() {
        for model in registry.models() {
            let is_topics = model == "lda";
            let fits = match method {
                "dsgld" => true,
                "adlda" | "async_lda" => is_topics,
                _ => !is_topics,
            };
            if !fits {
                let refused = cli.run(&format!("init {method} --model {model}"));
                let said = refused.stderr;
                assert!(said.contains(&format!("\"{method}\" is not for the model")) && said.contains("dsgld"), "{said}");
                continue;
            }
            let file = match model {
                "toy" => None,
                "lda" => Some("c.h5"),
                "linear" => Some("r.h5"),
                _ => Some("a.h5"),
            };
            let data = file.map_or_else(String::new, |file| format!(" --data {file}"));
            let data_table = file.map_or_else(String::new, |file| format!("[data]\nfile = \"{file}\"\n"));
            let written = cli.run(&format!("init {method} --model {model}{data} -o my.toml --force"));
            assert!(written.code == 0, "{}", written.stderr);
            let checked = cli.run("check my.toml");
            let file = cli.read("my.toml");
            assert!(checked.code == 0, "{file}\n{}", checked.stderr);
            // It says no more than the defaults, but for two agents where the method has several, and what networks want.
            let is_network = model == "network";
            let agents = if ["npv", "pmd"].contains(&method) { 1 } else { 2 };
            let defaults = format!(
                "agents = {agents}\n{}{data_table}[model]\nname = \"{model}\"\n[method]\nname = \"{method}\"\n{}",
                if is_network || is_topics { "precision = \"f32\"\n" } else { "" },
                match method {
                    "svgd" | "dsvgd" | "u-dsvgd" | "p-dsvgd" | "fedavg" if is_network =>
                        "optimizer = { adagrad = { step = 1e-3, decay = 0.9, fudge = 1e-6 } }\n",
                    _ if is_topics => "[evaluate]\nevery = 10\n",
                    _ => "",
                }
            );
            let resolved = |text: &str| {
                cli.write("x.toml", text);
                RunSpec::read(&cli.path("x.toml"), &[], &registry).unwrap()
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
        "\"dsvdg\" is unknown; did you mean \"dsvgd\"? there are: svgd, dsvgd, u-dsvgd, p-dsvgd, pvi, gvi, dsgld, sghmc, ec_sghmc, \
         ec_sgld, async_sghmc, easgd, fedavg, npv, pmd, adlda, async_lda",
    );
    refused("init svgd --model logstic", "did you mean \"logistic\"?");
    refused("init svgd --model logistic --data r.h5", "two classes");
    refused("init svgd --data none.h5", "none.h5");
    refused("init svgd -o my.toml", "--force");
    // On the screen, for data of which logistic regression would know nothing.
    let shown = cli.run("init svgd --data r.h5").stdout;
    assert!(shown.contains("name = \"network\"") && shown.contains("file = \"r.h5\"") && shown.contains("# loss ="), "{shown}");
}

/// Where every chain sees all rows there is nothing to deal, and there may be more chains than rows.
#[test]
fn chains_that_see_all_rows_want_no_partition() {
    let cli = folder();
    let written = cli.run("init ec_sghmc --model network --data a.h5 -o my.toml --force");
    assert!(written.code == 0, "{}", written.stderr);
    assert!(!cli.read("my.toml").contains("partition"));
    for command in ["check my.toml", "run my.toml --output r"] {
        let output = cli.run(&format!("{command} --set data.partition=by_label"));
        let said = output.stderr;
        assert!(output.code == 1 && said.contains("every agent of ec_sghmc sees all rows"), "{said}");
    }
    let many = cli.run("check my.toml --set agents=5000");
    assert!(many.code == 0, "{}", many.stderr);
}

fn described(name: &str, docs: &[(&str, &str)], fields: &[&str], readme: &str) {
    let mut keys: Vec<&str> = docs.iter().map(|doc| doc.0).collect();
    let mut known = fields.to_vec();
    keys.sort_unstable();
    known.sort_unstable();
    assert_eq!(keys, known, "the keys of {name} and what is said of them");
    assert!(docs.iter().all(|(_, doc)| doc.len() > 10 && !doc.ends_with('.')), "{name}");
    for key in known {
        let ways =
            [format!("`{key}`"), format!("`{key} ="), format!("`[{name}] {key}`"), format!("`[{key}]"), format!(", `{key}")];
        assert!(ways.iter().any(|way| readme.contains(way)), "README.md says nothing of {name} {key}");
    }
}

#[test]
fn every_key_is_described_and_no_other() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    described("run", RunSpec::DOCS, fields_of::<RunSpec>(), &readme);
    described("data", DataSpec::DOCS, fields_of::<DataSpec>(), &readme);
    described("evaluate", EvaluateSpec::DOCS, fields_of::<EvaluateSpec>(), &readme);
    described("cluster", ClusterSpec::DOCS, fields_of::<ClusterSpec>(), &readme);
    described("network", NetworkSettings::DOCS, fields_of::<NetworkSettings>(), &readme);
    described("logistic", LogisticSettings::DOCS, fields_of::<LogisticSettings>(), &readme);
    described("linear", LinearSettings::DOCS, fields_of::<LinearSettings>(), &readme);
    described("gaussian_mean", GaussianMeanSettings::DOCS, fields_of::<GaussianMeanSettings>(), &readme);
    described("toy", ToySettings::DOCS, fields_of::<ToySettings>(), &readme);
    described("svgd", SvgdSettings::DOCS, fields_of::<SvgdSettings>(), &readme);
    described("dsvgd", DsvgdSettings::DOCS, fields_of::<DsvgdSettings>(), &readme);
    described("u-dsvgd", UDsvgdSettings::DOCS, fields_of::<UDsvgdSettings>(), &readme);
    described("p-dsvgd", PDsvgdSettings::DOCS, fields_of::<PDsvgdSettings>(), &readme);
    described("pvi", PviSettings::DOCS, fields_of::<PviSettings>(), &readme);
    described("gvi", GviSettings::DOCS, fields_of::<GviSettings>(), &readme);
    described("sghmc", SghmcSettings::DOCS, fields_of::<SghmcSettings>(), &readme);
    described("ec_sghmc", EcSghmcSettings::DOCS, fields_of::<EcSghmcSettings>(), &readme);
    described("ec_sgld", EcSgldSettings::DOCS, fields_of::<EcSgldSettings>(), &readme);
    described("async_sghmc", AsyncSghmcSettings::DOCS, fields_of::<AsyncSghmcSettings>(), &readme);
    described("easgd", EasgdSettings::DOCS, fields_of::<EasgdSettings>(), &readme);
    described("fedavg", FedAvgSettings::DOCS, fields_of::<FedAvgSettings>(), &readme);
    described("npv", NpvSettings::DOCS, fields_of::<NpvSettings>(), &readme);
    described("pmd", PmdSettings::DOCS, fields_of::<PmdSettings>(), &readme);
    described("lda", LdaSettings::DOCS, fields_of::<LdaSettings>(), &readme);
    described("adlda", <AdLdaSettings as MethodKind<Texts>>::DOCS, fields_of::<AdLdaSettings>(), &readme);
    described("async_lda", <AsyncLdaSettings as MethodKind<Texts>>::DOCS, fields_of::<AsyncLdaSettings>(), &readme);
    described("dsgld", <TopicDsgldSettings as MethodKind<Texts>>::DOCS, fields_of::<TopicDsgldSettings>(), &readme);
}

/// Settings of a user's own that nobody has described.
mod own {
    use mpibayes::methods::{Launcher, MethodKind, Problem};
    use mpibayes::number::Real;

    #[derive(serde::Serialize, serde::Deserialize)]
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

    impl MethodKind for Plain {
        const NAME: &'static str = "plain";

        fn check(&self) -> Result<(), String> {
            if self.rate > 0.0 { Ok(()) } else { Err(format!("rate = {}: must be positive", self.rate)) }
        }

        fn launch<F: Real, L: Launcher<F>>(&self, _: Problem<F>, _: L) -> L::Outcome {
            unreachable!("it is only checked");
        }
    }
}

#[test]
fn methods_of_a_users_own_are_checked_and_written_too() {
    let cli = Cli::new();
    let registry = Registry::default().with_method::<own::Plain>();
    let file = cli.path("own.toml");
    let text = template(&registry, "plain", Some("toy"), None).unwrap();
    assert!(text.contains("name = \"plain\"\nrate = 0.1\nsweeps = 3\n"), "{text}");
    std::fs::write(&file, &text).unwrap();
    let report = check(&Typed::read(&file, &[]).unwrap(), &registry).unwrap();
    assert_eq!((report.method, report.model, report.parameters, report.bytes_per_round()), ("plain", "toy", 1, None));
    for (line, says) in [("rat = 1", "did you mean `rate`?"), ("rate = -1", "[method] rate: rate = -1: must be positive")] {
        std::fs::write(&file, text.replace("rate = 0.1", line)).unwrap();
        let problems = check(&Typed::read(&file, &[]).unwrap(), &registry).unwrap_err();
        assert!(problems.len() == 1 && problems[0].to_string().contains(says), "{problems:?}");
    }
}
