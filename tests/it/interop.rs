//! Result files are read by xarray with both engines, ArviZ, ncdump and h5dump, with equal values and equal diagnostics.
//!
//! `MPIBAYES_PYTHON` names a Python with the packages of `tests/it/interop/requirements.txt`; `jobs/test.sh` installs it. Without
//! the variable the test prints that it is skipped.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::harness::Cli;
use crate::launcher::{Ended, watched};
use mpibayes::cluster::record::Row;
use mpibayes::models::Part;
use mpibayes::results::{ResultFile, RunInfo, SampleKind, Samples, Values, write_run};
use ndarray::Array3;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Result files of small runs of all methods on generated data.
fn runs(cli: &Cli) -> Vec<PathBuf> {
    let rows = |i: usize| format!("{},{},{}\n", (i * 7) % 11, (i * 5) % 13, ["no", "yes", "perhaps"][i * 7 % 11 / 4]);
    cli.write("a.csv", (0..60).map(rows).collect::<String>());
    cli.succeed("import a.csv --test-fraction 0.25 -o a.h5");
    let file = |method: &str, dtype: &str, model: &str, settings: &str| {
        let text = format!(
            "seed = 3\ndtype = \"{dtype}\"\nagents = 2\n[data]\nfile = \"a.h5\"\n[model]\n{model}\n[method]\n\
             name = \"{method}\"\nbatch = 8\n{settings}\n"
        );
        cli.write(&format!("{method}.toml"), text);
        cli.succeed(&format!("run {method}.toml --output {method}"));
        cli.path(format!("{method}/result.h5"))
    };
    let network = "name = \"network\"\nhidden = [4]";
    let few = "particles = 5\nrounds = 3";
    let chains = "rounds = 60\ntrajectory = 3\nburn_in = 30\nthin = 2\nexpectations = true\nstep = 1e-3";
    let documents = |i: usize| format!("{} {} {}\n", ["alpha", "beta"][i % 2], ["gamma", "delta"][i % 3 / 2], "epsilon");
    cli.write("t.txt", (0..40).map(documents).collect::<String>());
    cli.succeed("import text t.txt --most-share 1 --test-fraction 0.25 -o t.h5");
    let text = "dtype = \"float32\"\nagents = 2\n[data]\nfile = \"t.h5\"\n[model]\nname = \"lda\"\ntopics = 3\n[method]\n\
                name = \"adlda\"\nrounds = 20\nburn_in = 10\nthin = 2\n";
    cli.write("adlda.toml", text);
    cli.succeed("run adlda.toml --output adlda");
    let topics = cli.path("adlda/result.h5");
    vec![
        file("svgd", "float64", network, few),
        file("dsvgd", "float32", network, few),
        file("dsgld", "float64", network, chains),
        topics,
    ]
}

/// A file with groups of all number types and shapes, and a group for each set of example chains.
fn synthetic_results(cli: &Cli) -> PathBuf {
    let sets = crate::example_chains::sets();
    // JSON has no infinity to compare with.
    let finite = sets.into_iter().filter(|(_, draws)| draws.iter().all(|draw| !draw.is_infinite()));
    let mut groups: Vec<Samples> = finite
        .map(|(name, draws)| {
            let (chains, length) = draws.dim();
            let values = Array3::from_shape_fn((chains, length, 1), |(chain, draw, _)| draws[(chain, draw)]);
            let parts = vec![Part::new("x", &[])];
            Samples { group: name.into(), kind: SampleKind::Chains, parts, values: Values::F64(values) }
        })
        .collect();
    let cauchy = crate::example_chains::sets().into_iter().find(|set| set.0 == "cauchy").unwrap().1;
    let values = Array3::from_shape_fn((4, 500, 9), |(chain, draw, j)| cauchy[(chain, (draw + 37 * j) % 500)]);
    let parts = || vec![Part::new("scale", &[]), Part::new("slopes", &[2]), Part::new("weights", &[2, 3])];
    for (group, values) in [
        ("posterior", Values::F64(values.clone())),
        ("prior", Values::F32(values.mapv(|x| x as f32))),
        ("sample_stats", Values::I32(values.mapv(|x| (4.0 * x) as i32))),
    ] {
        groups.push(Samples { group: group.into(), kind: SampleKind::Chains, parts: parts(), values });
    }
    let row = |table: &str, step, agent, values: &[(&str, f64)]| Row {
        table: table.into(),
        step,
        agent,
        values: values.iter().map(|&(name, value)| (name.into(), value)).collect(),
    };
    let rows = [
        row("history", 1, None, &[("seconds", 0.1)]),
        row("history", 2, Some(3), &[("seconds", 0.2), ("bandwidth", 1e-300)]),
        row("metrics", 2, None, &[("accuracy", f64::NAN), ("ece", 0.1)]),
    ];
    let path = cli.path("made-up.h5");
    write_run(&path, &RunInfo::new("chains", "none", u64::MAX, "", "seed = 1 # ä\n"), &groups, &rows).unwrap();
    path
}

/// A variable, for the script.
fn variable(dims: Vec<String>, dtype: &str, values: Value) -> Value {
    json!({"dims": dims, "dtype": dtype, "values": values})
}

/// The variables of a group of draws, read back by this library.
fn samples(file: &ResultFile, group: &str) -> Value {
    let Samples { parts, values, .. } = file.samples(group).unwrap();
    let dtype = match &values {
        Values::F32(_) => "float32",
        Values::F64(_) => "float64",
        Values::I32(_) => "int32",
    };
    let (matrix, mut start, mut variables) = (values.matrix(), 0, Map::new());
    for part in parts {
        let own = (0..part.shape.len()).map(|axis| format!("{}_dim_{axis}", part.name));
        let dims = ["chain", "draw"].map(str::to_owned).into_iter().chain(own).collect();
        let numbers: Vec<f64> = matrix.slice(ndarray::s![.., start..start + part.size()]).iter().copied().collect();
        start += part.size();
        variables.insert(part.name, variable(dims, dtype, json!(numbers)));
    }
    variables.into()
}

fn table(file: &ResultFile, name: &str) -> Value {
    let table = file.table(name).unwrap();
    let dims = || vec!["row".to_owned()];
    let agents: Vec<i64> = table.agent.iter().map(|agent| agent.map_or(-1, i64::from)).collect();
    let mut variables = Map::new();
    variables.insert("step".into(), variable(dims(), "uint64", json!(table.step)));
    variables.insert("agent".into(), variable(dims(), "int64", json!(agents)));
    for (name, values) in table.columns {
        variables.insert(name, variable(dims(), "float64", json!(values)));
    }
    variables.into()
}

/// The estimates of `summary --json`: by group and variable, with the index of each parameter.
fn estimates(cli: &Cli, path: &Path) -> Value {
    let summary: Value = cli.json(&format!("summary {} --all --json", path.display()));
    let mut groups = Map::new();
    for draws in summary["draws"].as_array().unwrap() {
        let mut parts: Map<String, Value> = Map::new();
        for estimate in draws["estimates"].as_array().unwrap() {
            let mut estimate = estimate.as_object().unwrap().clone();
            let Some(Value::String(name)) = estimate.remove("name") else { panic!("a parameter without a name") };
            let (part, index) = name.strip_suffix(']').and_then(|name| name.split_once('[')).unwrap_or((&name, ""));
            let index: Vec<usize> = index.split(',').filter(|side| !side.is_empty()).map(|side| side.parse().unwrap()).collect();
            estimate.insert("index".into(), json!(index));
            parts.entry(part).or_insert_with(|| json!([])).as_array_mut().unwrap().push(estimate.into());
        }
        groups.insert(draws["group"].as_str().unwrap().to_owned(), parts.into());
    }
    groups.into()
}

/// The expected content of a file, for the script.
fn expected(cli: &Cli, path: &Path) -> Value {
    let file = ResultFile::open(path).unwrap();
    let (mut groups, mut attributes) = (Map::new(), Map::new());
    for name in file.sample_groups().unwrap() {
        let kind = file.kind(&name).unwrap().name();
        attributes.insert(name.clone(), json!({"inference_library": "mpibayes", "draws": kind}));
        let variables = samples(&file, &name);
        groups.insert(name, variables);
    }
    for name in file.tables().unwrap() {
        attributes.insert(name.clone(), json!({"inference_library": "mpibayes"}));
        let variables = table(&file, &name);
        groups.insert(name, variables);
    }
    let info = file.info();
    let root = json!({"method": info.method, "model": info.model, "seed": info.seed, "config": info.config});
    attributes.insert(String::new(), root);
    json!({"path": path, "groups": groups, "attributes": attributes, "estimates": estimates(cli, path)})
}

fn script(python: &OsString, cli: &Cli, files: &[Value]) -> Ended {
    cli.write("expected.json", json!({"files": files}).to_string());
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/interop/check.py")).arg(cli.path("expected.json"));
    watched(command).unwrap_or_else(|error| panic!("MPIBAYES_PYTHON={}: {error}", python.display()))
}

/// The Python of these tests; without it, they say that they are skipped.
fn python() -> Option<OsString> {
    let python = std::env::var_os("MPIBAYES_PYTHON").filter(|python| !python.is_empty());
    if python.is_none() {
        // A passing test hides the output of `eprintln!`.
        let says =
            "SKIPPED: result files were not opened with ArviZ and xarray: MPIBAYES_PYTHON is not set (jobs/test.sh sets it)\n";
        std::io::stderr().write_all(says.as_bytes()).unwrap();
    }
    python
}

/// ArviZ shows the names of columns and groups, and its cross-validation has the numbers of `mpibayes compare`.
#[test]
fn arviz_names_parameters_and_compares_models_alike() {
    let Some(python) = python() else { return };
    let cli = Cli::new();
    let row = |i: usize| {
        let (age, site, noise) = (20 + i * 13 % 50, i % 4, (i * 7919 % 101) as f64 / 101.0 - 0.5);
        format!(
            "{age},s{site},{}\n",
            0.1 * age as f64 + [0.0, 2.0, -1.0, 1.0][site] + 2.0 * noise + if i == 7 { 9.0 } else { 0.0 }
        )
    };
    cli.write("a.csv", format!("age,site,score\n{}", (0..80).map(row).collect::<String>()));
    cli.succeed("import a.csv --task regression --group site -o a.h5");
    cli.succeed("init hmc --model linear --data a.h5 -o a.toml");
    let common = "run a.toml --set method.draws=400 --set evaluate.pointwise=true";
    cli.succeed(&format!("{common} --output groups"));
    cli.succeed(&format!("{common} --set model.group_effects=false --output pooled"));
    cli.write("compared.json", cli.stdout("compare groups pooled --json"));
    let compare = |file: &str, name: &str| {
        let mut command = Command::new(&python);
        command.current_dir(cli.folder());
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/interop/models.py")).args([file, name]);
        watched(command).unwrap_or_else(|error| panic!("MPIBAYES_PYTHON={}: {error}", python.display()))
    };
    let output = compare("compared.json", "standardized_group_effects[s3]");
    assert!(output.code == 0, "{}", output.written());
    // The controls: a wrong number, and a name that does not exist.
    let mut wrong: Value = serde_json::from_str(&cli.read("compared.json")).unwrap();
    let place = wrong.pointer_mut("/predictive_scores/1/difference/standard_error").unwrap();
    *place = json!(place.as_f64().unwrap() * 1.001);
    cli.write("wrong.json", wrong.to_string());
    assert!(compare("wrong.json", "weights[age]").code != 0);
    assert!(compare("compared.json", "weights[0]").written().contains("no {'weights[0]'}"));
}

#[test]
fn other_readers_find_the_same_values_and_diagnostics() {
    let Some(python) = python() else { return };
    let cli = Cli::new();
    let mut paths = runs(&cli);
    paths.push(synthetic_results(&cli));
    let files: Vec<Value> = paths.iter().map(|path| expected(&cli, path)).collect();
    let output = script(&python, &cli, &files);
    assert!(output.code == 0, "{}", output.written());
    // The controls: a wrong value, dimension, type or diagnostic is detected.
    let made_up = files.last().unwrap();
    for (place, value, says) in [
        ("/groups/posterior/weights/values/100", json!(0.5), "posterior/weights"),
        ("/groups/posterior/slopes/dims/2", json!("slopes_dim_1"), "posterior/slopes"),
        ("/groups/history/seconds/dtype", json!("float32"), "history/seconds"),
        ("/estimates/posterior/weights/4/r_hat", json!(1.5), "posterior/weights[1, 1]: r_hat"),
        ("/attributes/posterior/draws", json!("particles"), "draws"),
    ] {
        let mut wrong = made_up.clone();
        *wrong.pointer_mut(place).expect(place) = value;
        let output = script(&python, &cli, &[wrong]);
        assert!(output.code != 0 && output.written().contains(says), "{place}: {}", output.written());
    }
}
