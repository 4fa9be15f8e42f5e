//! Logistic regression with as many rows as the Covertype data, sampled by D-SGLD and by Hamiltonian Monte Carlo on all rows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here stops the test")]
#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]

use super::recording::Recording;
use mpibayes::cluster::JobOptions;
use mpibayes::data::Shard;
use mpibayes::kernels::langevin::StepSize;
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings, Trajectory};
use mpibayes::methods::common::scores::Estimator;
use mpibayes::methods::{MethodSettings, Problem};
use mpibayes::metrics::convergence::estimates;
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::regression::prior::Prior;
use mpibayes::models::{DataSchema, Output};
use mpibayes::random::{Purpose, Seed, Stream, Who};
use ndarray::{Array1, Array2, Array3, ArrayView1, ArrayView2, Axis, s};
use ndarray_linalg::{Cholesky, Inverse, UPLO};
use rand::RngExt;
use rayon::prelude::*;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Rows of the Covertype data.
pub const ROWS: usize = 581_012;
/// Numeric columns of the Covertype data.
const FEATURES: usize = 10;
/// Features and the intercept.
pub const DIM: usize = FEATURES + 1;
pub const AGENTS: u32 = 8;

/// Rows with labels from a known weight vector.
pub struct Rows {
    /// Whitened features.
    pub x: Array2<f64>,
    pub y: Array1<f64>,
    /// Where the features come from.
    pub source: &'static str,
}

fn stream(step: u64) -> Stream {
    Seed(581_012).stream(Who::Run, step, Purpose::Synthetic)
}

/// The ten numeric columns of a sample of the Covertype data in `MPIBAYES_DATA`. Without it, synthetic ones.
fn sample() -> (Array2<f64>, &'static str) {
    let file = std::env::var_os("MPIBAYES_DATA").map(|data| Path::new(&data).join("covertype/covtype_20k.csv.gz"));
    if let Some(file) = file.and_then(|file| std::fs::File::open(file).ok()) {
        let lines = BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines();
        let numbers: Vec<f64> = lines
            .flat_map(|line| line.unwrap().split(',').take(FEATURES).map(|x| x.parse().unwrap()).collect::<Vec<f64>>())
            .collect();
        return (Array2::from_shape_vec((numbers.len() / FEATURES, FEATURES), numbers).unwrap(), "covtype_20k");
    }
    let mut stream = stream(0);
    let mut x = vec![0.0; 20_000 * FEATURES];
    stream.normals(&mut x);
    let x = Array2::from_shape_vec((20_000, FEATURES), x).unwrap();
    let skewed = |(row, column): (usize, usize)| f64::exp(0.5 * x[[row, column]]) + f64::from(u8::from(row % 3 == 0));
    (Array2::from_shape_fn(x.dim(), skewed), "made up")
}

/// Rows drawn from the sample with noise, whitened, and labels from weights that are drawn once.
pub fn rows(count: usize) -> Rows {
    let (sample, source) = sample();
    let deviations = sample.std_axis(Axis(0), 0.0);
    let mut stream = stream(1);
    let mut noise = vec![0.0; count * FEATURES];
    stream.normals(&mut noise);
    let mut x = Array2::from_shape_vec((count, FEATURES), noise).unwrap();
    for mut row in x.rows_mut() {
        let from = sample.row(stream.random_range(0..sample.nrows()));
        ndarray::Zip::from(&mut row).and(from).and(&deviations).for_each(|x, from, deviation| *x = from + 0.1 * deviation * *x);
    }
    x -= &x.mean_axis(Axis(0)).unwrap();
    let covariance = x.t().dot(&x) / count as f64;
    let x = x.dot(&covariance.cholesky(UPLO::Lower).unwrap().inv().unwrap().t()).as_standard_layout().to_owned();
    let mut weights = [0.0; DIM];
    stream.normals(&mut weights);
    let logit = |row: ArrayView1<f64>| 0.7 * (row.iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>() + weights[FEATURES]);
    let y = x.rows().into_iter().map(|row| f64::from(u8::from(stream.random::<f64>() < sigmoid(logit(row))))).collect();
    Rows { x, y, source }
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

/// Posterior means and standard deviations with their Monte Carlo errors.
pub struct Reference {
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
    /// The largest Monte Carlo error of a mean, in standard deviations, and of a standard deviation, relative to it.
    pub error: f64,
    pub error_of_sd: f64,
}

/// −log p(θ|x, y) with prior N(0, I), and its gradient, without the code of the library.
fn energy(rows: &Rows, theta: ArrayView1<f64>) -> (f64, Array1<f64>) {
    let (weights, intercept) = (theta.slice(s![..FEATURES]), theta[FEATURES]);
    let blocks = (0..rows.x.nrows()).step_by(8192).collect::<Vec<_>>();
    let parts: Vec<(f64, Array1<f64>)> = blocks
        .into_par_iter()
        .map(|start| {
            let block = s![start..(start + 8192).min(rows.x.nrows()), ..];
            let (x, y) = (rows.x.slice(block), rows.y.slice(s![start..(start + 8192).min(rows.x.nrows())]));
            let mut z = x.dot(&weights) + intercept;
            let mut energy = 0.0;
            z.zip_mut_with(&y, |z, y| {
                let small = (-z.abs()).exp();
                energy += z.max(0.0) + small.ln_1p() - y * *z;
                *z = if *z >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) } - y;
            });
            let mut gradient = Array1::zeros(DIM);
            gradient.slice_mut(s![..FEATURES]).assign(&x.t().dot(&z));
            gradient[FEATURES] = z.sum();
            (energy, gradient)
        })
        .collect();
    // In the order of the blocks: the same bits whoever was faster.
    let start = (0.5 * theta.dot(&theta), theta.to_owned());
    parts.into_iter().fold(start, |(energy, gradient), (more, slope)| (energy + more, gradient + slope))
}

/// Hamiltonian Monte Carlo on all rows, in coordinates z in which the posterior is nearly N(0, I), by its mode and curvature. Two leapfrog
/// steps of 0.75 rotate such a Gaussian by about a quarter.
///
/// With ∇ that of −log p in these coordinates, E ∇ = 0 and E z_j ∇_k = δ_jk: z − ∇ has the mean of z, and z_j (z_k − ∇_k) + δ_jk that of
/// z_j z_k, without the noise that a Gaussian would have (Mira, Solgi & Imparato 2013, "Zero variance Markov chain Monte Carlo").
pub fn reference(rows: &Rows, draws: usize) -> Reference {
    let mut mode = Array1::<f64>::zeros(DIM);
    let mut covariance = Array2::<f64>::eye(DIM);
    let ones = |x: ArrayView2<f64>| ndarray::concatenate(Axis(1), &[x, Array2::ones((x.nrows(), 1)).view()]).unwrap();
    for _ in 0..8 {
        let (_, gradient) = energy(rows, mode.view());
        let mut curvature = Array2::<f64>::eye(DIM);
        for x in rows.x.axis_chunks_iter(Axis(0), 8192) {
            let x = ones(x);
            let weights = x.dot(&mode).mapv(|z| sigmoid(z) * (1.0 - sigmoid(z)));
            let weighted = &x * &weights.insert_axis(Axis(1));
            curvature += &x.t().dot(&weighted);
        }
        covariance = curvature.inv().unwrap();
        mode -= &covariance.dot(&gradient);
    }
    let root = covariance.cholesky(UPLO::Lower).unwrap();
    let at = |z: &Array1<f64>| {
        let (energy, gradient) = energy(rows, (&mode + &root.dot(z)).view());
        (energy, root.t().dot(&gradient))
    };
    let (leap, chains) = (0.75, 2);
    // Means of the coordinates, and the matrix of their second moments.
    let mut kept = Array3::zeros((chains, draws / chains, DIM + DIM * DIM));
    for chain in 0..chains {
        let mut stream = stream(10 + chain as u64);
        let mut z = Array1::zeros(DIM);
        stream.normals(z.as_slice_mut().unwrap());
        let (mut potential, mut slope) = at(&z);
        for draw in 0..draws / chains {
            let mut momentum = Array1::zeros(DIM);
            stream.normals(momentum.as_slice_mut().unwrap());
            let before = potential + 0.5 * momentum.dot(&momentum);
            let (mut to, mut there) = (z.clone(), (potential, slope.clone()));
            for _ in 0..2 {
                momentum.scaled_add(-0.5 * leap, &there.1);
                to.scaled_add(leap, &momentum);
                there = at(&to);
                momentum.scaled_add(-0.5 * leap, &there.1);
            }
            if stream.random::<f64>().ln() < before - there.0 - 0.5 * momentum.dot(&momentum) {
                (z, (potential, slope)) = (to, there);
            }
            let less = &z - &slope;
            let second = Array2::from_shape_fn((DIM, DIM), |(j, k)| z[j] * less[k] + f64::from(u8::from(j == k)));
            kept.slice_mut(s![chain, draw, ..DIM]).assign(&root.dot(&less));
            let second = root.dot(&((&second + &second.t()) / 2.0)).dot(&root.t());
            kept.slice_mut(s![chain, draw, DIM..]).assign(&second.flatten());
        }
    }
    let estimates = estimates(kept.view());
    assert!(estimates.iter().all(|one| one.convergence.unwrap().r_hat < 1.02), "the reference has not converged");
    let second = |j: usize| &estimates[DIM + j * DIM + j];
    let sd: Vec<f64> = (0..DIM).map(|j| (second(j).mean - estimates[j].mean.powi(2)).sqrt()).collect();
    let error = |j: usize| estimates[j].convergence.unwrap().mcse_mean / sd[j];
    // d sd / sd = d var / (2 var).
    let error_of_sd = |j: usize| second(j).convergence.unwrap().mcse_mean / (2.0 * sd[j].powi(2));
    Reference {
        mean: (0..DIM).map(|j| mode[j] + estimates[j].mean).collect(),
        error: largest((0..DIM).map(error)),
        error_of_sd: largest((0..DIM).map(error_of_sd)),
        sd,
    }
}

/// The largest value; infinite if one is NaN or there are none.
fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(|value| if value.is_nan() { f64::INFINITY } else { value }).reduce(f64::max).unwrap_or(f64::INFINITY)
}

/// The smallest value; −infinite if one is NaN or there are none.
fn smallest(values: impl IntoIterator<Item = f64>) -> f64 {
    -largest(values.into_iter().map(|value| -value))
}

/// Settings of a D-SGLD run.
#[derive(Clone, Copy)]
pub struct Sampler {
    pub agents: u32,
    pub chains: u32,
    pub batch: usize,
    pub gradient: Estimator,
    pub step: f64,
    pub trajectory: u64,
    pub rounds: u64,
    pub thin: u64,
}

/// Diagnostics of a D-SGLD run, and comparison with the reference.
pub struct Sampled {
    pub r_hat: f64,
    pub ess: f64,
    pub seconds: f64,
    /// The largest distance of a mean from the reference, in standard deviations.
    pub off: f64,
    /// The smallest and largest ratio of a standard deviation to the reference, and to the theory of these steps and visits.
    pub ratio: (f64, f64),
    pub of_theory: (f64, f64),
}

impl Sampler {
    /// The variance of a coordinate, for small steps: minibatches add εN/(4n) to the posterior's (the score's variance per row is the
    /// posterior's precision per row), and visits to random shards a τ (S − 1)/2 of it, with a = ε/2 of its precision: on average over
    /// data, of which the latter part is off by about half.
    pub fn variance(&self, sd: f64, rows: usize) -> f64 {
        let a = 0.5 * self.step / sd.powi(2);
        let minibatch = match self.gradient {
            Estimator::Plain => 0.25 * self.step * rows as f64 / self.batch as f64,
            Estimator::ControlVariate(_) => 0.0,
        };
        sd.powi(2) * (1.0 + 0.5 * a + 0.5 * a * self.trajectory as f64 * f64::from(self.agents - 1)) + minibatch
    }

    /// Runs the sampler. Chains start at draws from the prior, and a tenth of the run is burn-in.
    pub fn run(self, rows: &Rows, reference: &Reference) -> Sampled {
        let model = LogisticSettings { prior: Prior::Normal(1.0), intercept_scale: 1.0, ..LogisticSettings::default() };
        let model = model.build(&DataSchema::new(FEATURES, Output::Classes(2))).unwrap();
        let agents = self.agents as usize;
        let shards: Vec<Shard<f64>> = (0..agents)
            .map(|agent| {
                // Rows are exchangeable as they are.
                let mine = agent * rows.x.nrows() / agents..(agent + 1) * rows.x.nrows() / agents;
                Shard::new(rows.x.slice(s![mine.clone(), ..]).to_owned(), rows.y.slice(s![mine]).to_owned())
            })
            .collect();
        let shard = Arc::new(move |agent: u32| Ok(shards[agent as usize].clone()));
        let problem = Problem { model: Arc::new(model), agents: self.agents, temperature: 1.0, shard };
        let settings = DsgldSettings {
            chains: self.chains,
            rounds: Some(self.rounds),
            trajectory: Trajectory::Same(self.trajectory as f64),
            batch: self.batch,
            step: StepSize::Constant(self.step),
            gradient: self.gradient,
            burn_in: Some(self.rounds * self.trajectory / 10),
            thin: Some(self.thin),
            ..DsgldSettings::default()
        };
        settings.check().unwrap();
        let since = Instant::now();
        let recording =
            Recording::of(Dsgld::sgld(problem, settings), JobOptions { threads: 2, ..JobOptions::new(Seed(4)) }).unwrap();
        let seconds = since.elapsed().as_secs_f64();
        let chains: Vec<Array2<f64>> = (0..self.chains).map(|chain| recording.chain(chain)).collect();
        let length = chains.iter().map(Array2::nrows).min().unwrap();
        let chains: Vec<_> = chains.iter().map(|draws| draws.slice(s![..length, ..])).collect();
        let draws = ndarray::stack(Axis(0), &chains).unwrap();
        let estimates = estimates(draws.view());
        let each = || estimates.iter().zip(reference.mean.iter().zip(&reference.sd));
        let range = |of: &dyn Fn(f64, f64) -> f64| {
            let ratios: Vec<f64> = each().map(|(one, (_, sd))| of(one.sd, *sd)).collect();
            (smallest(ratios.iter().copied()), largest(ratios))
        };
        let convergence = || estimates.iter().map(|one| one.convergence.unwrap());
        Sampled {
            r_hat: largest(convergence().map(|one| one.r_hat)),
            ess: smallest(convergence().map(|one| one.ess_bulk)),
            seconds,
            off: largest(each().map(|(one, (mean, sd))| (one.mean - mean).abs() / sd)),
            ratio: range(&|found, sd| found / sd),
            of_theory: range(&|found, sd| found / self.variance(sd, rows.x.nrows()).sqrt()),
        }
    }
}
