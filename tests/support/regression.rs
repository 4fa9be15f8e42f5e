//! An ill-conditioned regression whose posterior is known, and a classification of the same rows.

#![allow(clippy::unwrap_used)]

use crate::harness::Cli;
use mpibayes::data::{Dataset, Split};
use mpibayes::models::linear::LinearSettings;
use mpibayes::models::{DataSchema, Output};
use ndarray::{Array1, Array2};

/// The number of rows.
const ROWS: usize = 600;

/// A folder with a regression, whose columns have correlations up to 0.9998, and a classification of the same rows.
/// Targets depend on the features, so that agents whose rows are chosen by label have different features.
pub fn folder() -> Cli {
    let cli = Cli::new();
    let uniform = |i: usize, k: usize| ((i * (2 * k + 3) * 7919 + 104_729 * k) % 1009) as f64 / 1009.0 - 0.5;
    let rows = |target: &dyn Fn(f64) -> String| -> String {
        let row = |i: usize| {
            let (a, b, c) = (uniform(i, 1), uniform(i, 2), i as f64 / ROWS as f64);
            let signal = 2.0 * a - c + 3.0 * uniform(i, 3);
            format!("{a},{},{c},{}\n", a + 0.02 * b, target(signal))
        };
        (0..ROWS).map(row).collect()
    };
    cli.write("numbers.csv", rows(&|signal| signal.to_string()));
    cli.write("classes.csv", rows(&|signal| ["no", "yes"][usize::from(signal > -0.5)].to_owned()));
    cli.succeed("import numbers.csv --task regression -o numbers.h5");
    cli.succeed("import classes.csv -o classes.h5");
    cli
}

/// A run file with nothing but what must be chosen, and with the known noise of [`exact`] for the linear model.
pub fn file(method: &str, model: &str, data: &str) -> String {
    let noise = if model == "linear" { "noise_variance = 1.0\n" } else { "" };
    format!("agents = 3\n[data]\nfile = \"{data}\"\n[model]\nname = \"{model}\"\n{noise}[method]\nname = \"{method}\"\n")
}

/// Mean and covariance of the exact posterior of the regression.
pub fn exact(cli: &Cli, temperature: f64) -> (Array1<f64>, Array2<f64>) {
    let dataset = Dataset::open(&cli.path("numbers.h5")).unwrap();
    let shard = dataset.read_rows::<f64>(Split::Train, &(0..ROWS).collect::<Vec<_>>()).unwrap();
    let model = LinearSettings { noise_variance: Some(1.0), ..LinearSettings::default() }
        .build(&DataSchema::new(dataset.features(), Output::Number))
        .unwrap();
    model.posterior(shard.dense().unwrap(), temperature).unwrap()
}
