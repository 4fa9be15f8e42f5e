//! Every regression on real data: what users get by default, on one agent and on four, beside long Hamiltonian chains.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The rows of a table of `MPIBAYES_DATA` as fields; none without it.
fn table(name: &str) -> Option<Vec<Vec<String>>> {
    let file = std::fs::File::open(Path::new(&std::env::var_os("MPIBAYES_DATA")?).join(name)).ok()?;
    let fields = |line: &str| line.split([',', ' ', '\t']).filter(|field| !field.is_empty()).map(str::to_owned).collect();
    Some(BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines().map(|line| fields(&line.unwrap())).collect())
}

/// Numbers between 0 and 1 without a pattern.
fn uniform(row: usize, salt: usize) -> f64 {
    let mixed = (row as u64 * 31 + salt as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Three features, a group of five, and a target; used where there are no real data.
fn simulated(rows: usize, target: impl Fn(f64, usize) -> String) -> Vec<Vec<String>> {
    let row = |row: usize| {
        let x = [0, 1, 2].map(|salt| 2.0 * uniform(row, salt) - 1.0);
        let group = row % 5;
        let eta = 0.5 * x[0] - 0.4 * x[1] + 0.2 * x[2] + 0.4 * (group as f64 - 2.0) / 2.0;
        let features = x.iter().map(|x| format!("{x:.4}"));
        features.chain([format!("g{group}"), target(eta, row)]).collect()
    };
    (0..rows).map(row).collect()
}

/// A number around η with noise in 1 of 20 rows that is ten times as large.
fn number(eta: f64, row: usize) -> String {
    let noise = uniform(row, 7) + uniform(row, 8) + uniform(row, 9) - 1.5;
    format!("{:.4}", eta + if row.is_multiple_of(20) { 10.0 } else { 1.0 } * noise)
}

/// A count with mean e^η, by inversion of Poisson's distribution, mixed over e^±spread.
fn count(eta: f64, row: usize, spread: f64) -> String {
    let mean = (eta + if uniform(row, 10) < 0.5 { -spread } else { spread }).exp();
    let (mut count, mut probability, mut left) = (0, (-mean).exp(), uniform(row, 11));
    while left > probability && count < 200 {
        left -= probability;
        count += 1;
        probability *= mean / f64::from(count);
    }
    count.to_string()
}

/// The draws of `mpibayes init`'s file for `dsgld`, on one agent and on four, are compared with those of `hmc` on four agents, whose chains must
/// have mixed (R-hat below 1.005). A mean may be off by .1 sd, and an sd by 10 %. Effective sample sizes of 3,000 or more leave
/// standard errors of .02 sds and 1.3 %: a fifth of the limits, so that chance alone fails one of about a thousand numbers less than once in
/// a thousand seeds. The rest is for the bias of finite steps. Where groups are few, the posterior of their scale is so skewed that `dsgld`
/// may miss these limits, which it must say: then it does not call itself right.
fn agree(rows: Vec<Vec<String>>, import: &str, model: &str) {
    let cli = Cli::new();
    let has_groups = import.contains("--group");
    let draws = if has_groups { 5000 } else { 2500 };
    cli.write("rows.csv", rows.into_iter().map(|row| row.join(",") + "\n").collect::<String>());
    cli.succeed(&format!("import table rows.csv --header no --label last {import} -o rows.h5"));
    for method in ["hmc", "dsgld"] {
        cli.succeed(&format!("init {method} --data rows.h5 --model {model} -o {method}.toml"));
    }
    cli.succeed(&format!("run hmc.toml --set agents=4 --set method.draws={draws} --output reference"));
    let summary: serde_json::Value = serde_json::from_str(&cli.stdout("summary reference --json")).unwrap();
    let estimates = summary["draws"][0]["estimates"].as_array().unwrap();
    let worst = estimates.iter().map(|estimate| estimate["r_hat"].as_f64().unwrap()).fold(1.0, f64::max);
    assert!(!estimates.is_empty() && worst < 1.005, "{model}: R-hat {worst}");
    // Where `dsgld` may miss the limits, `hmc` on one agent must meet them.
    let other = if has_groups {
        ("hmc", "one-hmc", format!("--set agents=1 --set method.draws={draws} --set seed=5"))
    } else {
        ("dsgld", "four", "--set agents=4 --set method.ess=3000".to_owned())
    };
    for (method, name, more) in [("dsgld", "one", "--set agents=1 --set method.ess=3000".to_owned()), other] {
        cli.succeed(&format!("run {method}.toml {more} --output {name}"));
        let text = cli.stdout(&format!("compare {name} --reference reference --csv"));
        let mut lines = csv::Reader::from_reader(text.as_bytes());
        let line: Comparison = lines.deserialize().next().unwrap().unwrap();
        println!("{model} {name}: {line:?}");
        let Comparison { shift, smallest_sd_ratio, largest_sd_ratio, judgment } = line;
        let agrees = shift.abs() < 0.1 && smallest_sd_ratio > 0.9 && largest_sd_ratio < 1.1;
        let is_said = has_groups && method == "dsgld" && judgment != "right";
        assert!(agrees || is_said, "{model} {name}: {text}");
    }
}

/// What `mpibayes compare --reference` says of a run.
#[derive(Debug, serde::Deserialize)]
struct Comparison {
    shift: f64,
    smallest_sd_ratio: f64,
    largest_sd_ratio: f64,
    judgment: String,
}

/// Strengths of concrete, whose ages are groups: the age of a sample is one of fourteen.
#[test]
fn regressions_of_numbers_agree() {
    let rows = || table("uci_regression/concrete/data.txt.gz").unwrap_or_else(|| simulated(600, number));
    let age = rows()[0].len() - 1;
    agree(rows(), &format!("--task regression --drop {age}"), "linear");
    agree(rows(), &format!("--task regression --drop {age}"), "student_t");
    // With all rows, the effects of ages are so certain that chains would have to be far longer.
    agree(rows().into_iter().step_by(5).collect(), &format!("--task regression --group {age}"), "linear");
}

/// Heart disease, by the kind of chest pain.
#[test]
fn logistic_regressions_agree() {
    let two = |eta: f64, row: usize| if uniform(row, 12) < 1.0 / (1.0 + (-eta).exp()) { "yes" } else { "no" }.to_owned();
    let real = table("binary/heart.csv.gz");
    let group = if real.is_some() { 3 } else { 4 };
    let rows = || real.clone().unwrap_or_else(|| simulated(600, two));
    agree(rows(), &format!("--categorical {group}"), "logistic");
    agree(rows(), &format!("--group {group}"), "logistic");
}

/// Grades of red wine, of which the rare ones are put together.
#[test]
fn regressions_of_several_classes_agree() {
    let three = |eta: f64, row: usize| {
        let latent = eta + uniform(row, 13) + uniform(row, 14) - 1.0;
        ["5", "6", "7"][usize::from(latent > -0.3) + usize::from(latent > 0.4)].to_owned()
    };
    let grades = |mut row: Vec<String>| {
        let grade = row.pop().unwrap();
        row.push(grade.parse::<u8>().unwrap().clamp(5, 7).to_string());
        row
    };
    let real = || table("uci_regression/wine-quality-red/data.txt.gz").map(|rows| rows.into_iter().map(grades).collect());
    let (rows, import) =
        (|| real().unwrap_or_else(|| simulated(600, three)), if real().is_some() { "" } else { "--categorical 4" });
    agree(rows(), import, "ordinal");
    agree(rows(), import, "multinomial");
}

/// Counts are made up: none of the data sets has any.
#[test]
fn regressions_of_counts_agree() {
    let counts = |spread: f64| simulated(600, move |eta, row| count(eta, row, spread));
    agree(counts(0.0), "--task counts --categorical 4", "poisson");
    agree(counts(0.0), "--task counts --group 4", "poisson");
    agree(counts(0.8), "--task counts --categorical 4", "negative_binomial");
}
