//! Tests of the gradient against central differences, of the posterior against quadrature, and of import, run and summary.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use clap::Parser;
use mpibayes::cli::{Cli, Command, import};
use mpibayes::config::{Override, Registry, RunFile};
use mpibayes::job::{Ranks, check, start};
use mpibayes::random::{Purpose, Seed, Who};
use mpibayes::report::RunResults;
use mpibayes::report::summary::Summary;
use mpibayes::results::{ResultFile, RunFolder, result_file};
use ndarray::{Array1, Array2};
use ndarray_linalg::{Cholesky, SolveC, UPLO};
use std::path::Path;
use std::time::Duration;

const MODEL: VaryingIntercepts = VaryingIntercepts { groups: 3, slopes: 2 };

fn normals(rows: usize, columns: usize, step: u64) -> Array2<f64> {
    let mut numbers = vec![0.0; rows * columns];
    Seed(1).stream(Who::Run, step, Purpose::Synthetic).normals(&mut numbers);
    Array2::from_shape_vec((rows, columns), numbers).unwrap()
}

/// Central differences of a function with one value per particle.
fn numeric(theta: &Array2<f64>, value: impl Fn(ArrayView2<f64>) -> Vec<f64>) -> Array2<f64> {
    let mut gradient = Array2::zeros(theta.raw_dim());
    for j in 0..theta.ncols() {
        let moved = |by: f64| {
            let mut theta = theta.clone();
            theta.column_mut(j).mapv_inplace(|t| t + by);
            value(theta.view())
        };
        let (above, below) = (moved(1e-5), moved(-1e-5));
        gradient.column_mut(j).iter_mut().zip(above.iter().zip(below)).for_each(|(g, (a, b))| *g = (a - b) / 2e-5);
    }
    gradient
}

#[test]
fn gradients_agree_with_central_differences() {
    let theta = normals(4, 8, 0);
    let mut x = normals(10, 3, 1);
    x.column_mut(0).iter_mut().enumerate().for_each(|(i, group)| *group = (i % 3) as f64);
    let y: Array1<f64> = normals(1, 10, 2).row(0).to_owned();
    let batch = Batch { x: x.view(), y: y.view() };
    let mut score = Array2::from_elem((4, 8), f64::NAN);
    MODEL.prior_score(theta.view(), score.view_mut());
    let prior = numeric(&theta, |theta| {
        let mut out = vec![0.0; 4];
        MODEL.log_prior(theta, &mut out);
        out
    });
    // A central difference of step h is off by h² f'''/6 and by the rounding of f over h: both below 1e-6 of these gradients.
    let equal = |a: &Array2<f64>, b: &Array2<f64>| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6 * (1.0 + b.abs()));
    assert!(equal(&score, &prior), "{score}\n{prior}");
    let before = score.clone();
    MODEL.add_score(theta.view(), batch, 2.0, score.view_mut(), &mut Scratch::new());
    let loss = numeric(&theta, |theta| {
        let mut out = vec![0.0; 4];
        MODEL.loss(theta, batch, &mut out, &mut Scratch::new());
        out
    });
    let found = (before - &score) / 2.0;
    assert!(equal(&found, &loss), "{found}\n{loss}");
    // Negative control: a wrong sign in any coordinate is detected.
    assert!((0..8).all(|j| {
        let mut wrong = found.clone();
        wrong.column_mut(j).mapv_inplace(|g| -g);
        !equal(&wrong, &loss)
    }));
}

#[test]
fn a_density_integrates_to_one() {
    let theta = normals(3, 8, 3);
    let grid = 4001;
    let (x, y) = (Array2::zeros((grid, 3)), Array1::from_shape_fn(grid, |i| -40.0 + 0.02 * i as f64));
    let (mut mean, mut density) = (Array2::zeros((grid, 1)), vec![0.0; grid]);
    MODEL.predict(theta.view(), Batch { x: x.view(), y: y.view() }, mean.view_mut(), &mut density, &mut Scratch::new());
    let (mass, first) = density.iter().zip(&y).fold((0.0, 0.0), |(mass, first), (p, y)| (mass + 0.02 * p, first + 0.02 * p * y));
    assert!((mass - 1.0).abs() < 1e-6 && (first - mean[(0, 0)]).abs() < 1e-6, "{mass} {first}");
}

fn registry() -> Registry {
    Registry::default().with_model::<Settings>()
}

/// Imports the data in this folder with these further options.
fn imported(folder: &Path, more: &[&str]) -> String {
    let csv = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hierarchical/schools.csv");
    let data = folder.join("schools.h5").to_str().unwrap().to_owned();
    let typed = ["mpibayes", "import", csv, "--task", "regression", "-o", &data];
    let Command::Import(args) = Cli::try_parse_from(typed.iter().chain(more)).unwrap().command else { panic!("not an import") };
    import::run(&args).unwrap();
    data
}

/// Runs `run.toml` with these `--set` options.
fn run(folder: &Path, data: &str, set: &[&str]) -> Result<(), String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hierarchical/run.toml");
    let mut typed = vec!["mpibayes".to_owned(), "run".into(), file.into(), "--set".into(), format!("data.file={data}")];
    typed.extend(set.iter().flat_map(|set| ["--set".to_owned(), set.to_string()]));
    let Command::Run(args) = Cli::try_parse_from(typed).unwrap().command else { panic!("not a run") };
    let run = RunFile::read(&args.file, &args.set).unwrap().parse(&registry()).unwrap();
    let mut folder = RunFolder::new(folder, Duration::MAX, mpibayes::results::Reporting::Quiet);
    start(&run, &registry(), &Ranks::One, &mut folder).map_err(|error| error.to_string())
}

/// Posterior means and standard deviations of (β, α_1, ..., α_J), and the mean of log σ. Given τ and σ all other parameters are
/// Gaussian; τ and σ are integrated on a grid. `pooled` removes the differences between groups.
fn exact(x: ArrayView2<f64>, y: ArrayView1<f64>, groups: usize, pooled: bool) -> (Array1<f64>, Array1<f64>, f64) {
    let rows = y.len();
    let (mut weights, mut results) = (Vec::new(), Vec::new());
    for i in 0..60 {
        for j in 0..60 {
            let (log_spread, log_noise) = (-4.0 + 0.1 * i as f64, -2.0 + 0.04 * j as f64);
            let (spread, noise) = (if pooled { 1e-6 } else { log_spread.exp() }, log_noise.exp());
            // The design matrix of w = (μ, β, z), which is N(0, I) a priori.
            let design = Array2::from_shape_fn((rows, 2 + groups), |(row, column)| match column {
                0 => 1.0,
                1 => x[(row, 1)],
                _ => spread * f64::from(u8::from(x[(row, 0)] == (column - 2) as f64)),
            });
            let precision = Array2::eye(2 + groups) + design.t().dot(&design) / noise.powi(2);
            let right = design.t().dot(&y) / noise.powi(2);
            let mean = precision.solvec(&right).unwrap();
            let log_det: f64 = precision.cholesky(UPLO::Lower).unwrap().diag().iter().map(|d| 2.0 * d.ln()).sum();
            let fit = y.dot(&y) / noise.powi(2) - right.dot(&mean);
            let log_prior = log_spread - log_spread.exp().powi(2) / 2.0 + log_noise - noise.powi(2) / 2.0;
            weights.push(log_prior - rows as f64 * log_noise - (log_det + fit) / 2.0);
            // (β, α) is linear in w.
            let map = Array2::from_shape_fn((1 + groups, 2 + groups), |(row, column)| match (row, column) {
                (0, 1) => 1.0,
                (1.., 0) => 1.0,
                (1.., column) if column == row + 1 => spread,
                _ => 0.0,
            });
            let variance = (0..=groups).map(|row| map.row(row).dot(&precision.solvec(&map.row(row).to_owned()).unwrap()));
            let variance: Array1<f64> = variance.collect();
            results.push((map.dot(&mean), variance, log_noise));
        }
    }
    let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = weights.iter().map(|weight| (weight - largest).exp()).collect();
    let all: f64 = weights.iter().sum();
    let (mut first, mut second, mut log_noise) = (Array1::zeros(1 + groups), Array1::zeros(1 + groups), 0.0);
    for (weight, (mean, variance, noise)) in weights.iter().zip(&results) {
        first += &(mean * (weight / all));
        second += &((variance + &(mean * mean)) * (weight / all));
        log_noise += noise * weight / all;
    }
    let sd = (second - &first * &first).mapv(f64::sqrt);
    (first, sd, log_noise)
}

#[test]
fn svgd_agrees_with_quadrature() {
    let folder = tempfile::tempdir().unwrap();
    let data = imported(folder.path(), &["--scaling", "none"]);
    let output = folder.path().join("run");
    // One agent, all rows in every step, and small steps until particles converge. The remaining error is due to the few particles.
    let optimizer = "method.optimizer={ adagrad = { step = 0.002 } }";
    run(&output, &data, &["agents=1", "method.batch=1000", "method.rounds=100", optimizer, "evaluate.every=0"]).unwrap();
    let dataset = mpibayes::data::Dataset::open(data.as_ref()).unwrap();
    let rows: Vec<usize> = (0..).take(dataset.rows(mpibayes::data::Split::Train)).collect();
    let shard = dataset.read_rows::<f64>(mpibayes::data::Split::Train, &rows).unwrap();
    let (mean, sd, log_noise) = exact(shard.x().view(), shard.y(), 8, false);
    let particles = ResultFile::open(&result_file(&output)).unwrap().samples("posterior").unwrap().values.matrix();
    let found = Array1::from_shape_fn(9, |place| match place {
        0 => particles.column(SLOPES).mean().unwrap(),
        group => particles.rows().into_iter().map(|p| p[MEAN] + p[LOG_SPREAD].exp() * p[SLOPES + group]).sum::<f64>() / 50.0,
    });
    // 50 independent draws would miss the mean by sd/√50 = 0.14 sd, and half a sd is three and a half of these.
    let misses = |mean: &Array1<f64>| ((&found - mean) / &sd).mapv(f64::abs);
    assert!(misses(&mean).iter().all(|miss| *miss < 0.5), "in sd: {}", misses(&mean));
    assert!((particles.column(LOG_NOISE).mean().unwrap() - log_noise).abs() < 0.1);
    // Negative control: the posterior without differences between schools is detected as wrong.
    let (pooled, ..) = exact(shard.x().view(), shard.y(), 8, true);
    assert!(misses(&pooled).iter().any(|miss| *miss > 3.0), "in sd: {}", misses(&pooled));
}

#[test]
fn import_run_and_summary_work_with_several_methods() {
    let folder = tempfile::tempdir().unwrap();
    let data = imported(folder.path(), &["--scaling", "none", "--test-fraction", "0.2"]);
    for method in ["svgd", "dsvgd"] {
        let output = folder.path().join(method);
        run(&output, &data, &[&format!("method.name={method}"), "method.rounds=6"]).unwrap();
        let summary = Summary::of(&RunResults::open(&output).unwrap(), false).unwrap();
        let rmse: f64 = summary.metric("rmse").unwrap().parse().unwrap();
        // The standard deviation of the noise of the synthetic scores is 6, that of the scores about 12.
        assert!(rmse > 3.0 && rmse < 9.0, "{method}: {rmse}");
        assert_eq!(summary.draws[0].estimates.len(), 12);
        assert!(summary.to_string().contains("  z[7] "), "{summary}");
    }
}

#[test]
fn invalid_groups_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = imported(folder.path(), &["--scaling", "none"]);
    let file = folder.path().join("checked.toml");
    let text = format!("[data]\nfile = {data:?}\n[model]\nname = \"varying-intercepts\"\n[method]\nname = \"svgd\"\n");
    std::fs::write(&file, text).unwrap();
    let set = Override::parse("model.groups=7").unwrap();
    let problems = check(&RunFile::read(&file, &[set]).unwrap(), &registry()).err().unwrap();
    assert!(problems.len() == 1 && problems[0].to_string().contains("7 in the first column is not a group"), "{problems:?}");
    let message = run(&folder.path().join("few"), &data, &["model.groups=7"]).unwrap_err();
    assert!(message.contains("7 in the first column is not a group") && message.contains("agent"), "{message}");
    let other = tempfile::tempdir().unwrap();
    let data = imported(other.path(), &[]);
    let message = run(&other.path().join("scaled"), &data, &[]).unwrap_err();
    assert!(message.contains("--scaling none"), "{message}");
    assert!(run(&folder.path().join("none"), &data, &["model.groups=0"]).unwrap_err().contains("at least one group"));
}
