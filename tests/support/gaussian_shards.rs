//! Runs of distributed SGLD (D-SGLD) on Gaussian shards, with all their states, and the exact theory of their stationary moments.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here stops the test")]
#![allow(dead_code, reason = "each binary that includes this file uses a part of it")]

use super::recording::{Recording, value};
use mpibayes::cluster::JobOptions;
use mpibayes::cluster::record::Row;
use mpibayes::data::Shard;
use mpibayes::kernels::langevin::StepSize;
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings, Task};
use mpibayes::methods::{MethodSettings, Problem};
use mpibayes::models::gaussian_mean::{GaussianMeanSettings, PerFeature};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The largest allowed |z|: the distance of a mean from its exact value in standard errors.
pub const Z: f64 = 4.5;
pub const BATCHES: usize = 40;

/// Seconds of an update on each of the four agents of figure 1 of the D-SGLD paper.
pub const DELAYS: [f64; 4] = [3.0, 1.0, 2.0, 4.0];

/// Runs four chains on these agents with shards of 20 rows, each agent on a rank of its own and without latency.
pub fn delayed(settings: DsgldSettings, seed: u64) -> Recording {
    let shards = (0..4).map(|agent| rows(agent, 20, 1, 0.0)).collect();
    let settings = DsgldSettings { chains: 4, step: StepSize::Constant(1e-3), ..settings };
    let task = |agent, task: &Task| DELAYS[agent as usize] * task.updates(agent) as f64;
    Recording::simulated(Dsgld::sgld(problem(shards), settings), JobOptions::new(Seed(seed)), task).unwrap()
}

/// A visit of a chain to an agent: the round (from 1), and the updates of the chain before the visit and in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stay {
    pub round: u64,
    pub agent: u32,
    pub chain: u32,
    pub first: u64,
    pub updates: u64,
    /// The factor of the score.
    pub scale: f64,
}

impl Recording {
    pub fn stays(&self) -> Vec<Stay> {
        let stay = |row: &Row| {
            let value = |name: &str| value(row, name);
            let (round, agent) = (row.step, row.agent.unwrap());
            let [chain, first, updates] = ["chain", "first", "updates"].map(value);
            Stay { round, agent, chain: chain as u32, first: first as u64, updates: updates as u64, scale: value("scale") }
        };
        let mut stays: Vec<Stay> = self.table("visits").map(stay).collect();
        stays.sort_by_key(|stay| (stay.round, stay.chain));
        stays
    }

    /// The visits by round and chain, each with all its states. The run must have kept every state.
    pub fn visits(&self) -> Vec<(Stay, Array2<f64>)> {
        let stays = self.stays();
        let chains: BTreeSet<u32> = stays.iter().map(|stay| stay.chain).collect();
        let mut places: BTreeMap<(u32, u64), Array2<f64>> =
            chains.into_iter().flat_map(|chain| self.blocks(chain).map(move |(first, block)| ((chain, first), block))).collect();
        stays.into_iter().map(|stay| (stay, places.remove(&(stay.chain, stay.first)).unwrap())).collect()
    }
}

/// Standard normal rows around a mean of each agent.
pub fn rows(agent: u32, count: usize, dim: usize, apart: f64) -> Array2<f64> {
    drawn_rows(77, agent, count, dim) + apart * (f64::from(agent) - 1.0)
}

/// Standard normal rows.
pub fn drawn_rows(seed: u64, agent: u32, count: usize, dim: usize) -> Array2<f64> {
    let mut x = vec![0.0; count * dim];
    Seed(seed).stream(Who::Agent(agent), 0, Purpose::Synthetic).normals(&mut x);
    Array2::from_shape_vec((count, dim), x).unwrap()
}

/// The largest value; infinite if one is NaN or there are none.
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().map(|value| if value.is_nan() { f64::INFINITY } else { value }).reduce(f64::max).unwrap_or(f64::INFINITY)
}

/// A Gaussian prior with independent, identically distributed coordinates.
#[derive(Clone, Copy)]
pub struct Prior {
    pub precision: f64,
    pub mean: f64,
}

pub const FLAT: Prior = Prior { precision: 0.0, mean: 0.0 };

/// The problem of estimating the mean of Gaussian rows with variance 1, with a flat prior.
pub fn problem(shards: Vec<Array2<f64>>) -> Problem<f64> {
    problem_with(shards, FLAT)
}

/// The problem of estimating the mean of Gaussian rows with variance 1.
pub fn problem_with(shards: Vec<Array2<f64>>, prior: Prior) -> Problem<f64> {
    let (prior_mean, prior_precision) = (PerFeature::Same(prior.mean), prior.precision);
    let model = GaussianMeanSettings { prior_mean, prior_precision, ..GaussianMeanSettings::default() };
    let model = model.build(shards[0].ncols()).unwrap();
    let agents = u32::try_from(shards.len()).unwrap();
    let shard = move |agent: u32| {
        let x = shards[agent as usize].clone();
        let y = Array1::zeros(x.nrows());
        Ok(Shard::new(x, y))
    };
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(shard) }
}

pub fn run(problem: Problem<f64>, settings: DsgldSettings, seed: u64) -> Recording {
    settings.check().unwrap();
    Recording::of(Dsgld::sgld(problem, settings), JobOptions { threads: 2, ..JobOptions::new(Seed(seed)) }).unwrap()
}

pub fn settings() -> DsgldSettings {
    DsgldSettings { chains: 1, burn_in: Some(0), thin: Some(1), log_visits: true, ..DsgldSettings::default() }
}

/// The z-score of the mean of a series, with a standard error from batch means.
pub fn z(series: &[f64], exact: f64) -> f64 {
    let length = series.len() / BATCHES;
    let means: Vec<f64> = series.chunks_exact(length).map(|batch| batch.iter().sum::<f64>() / length as f64).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean - exact) / (variance / count).sqrt()
}

/// The update of one coordinate at a shard: θ ← m + (1 − a)(θ − m) + N(0, v).
#[derive(Clone, Copy)]
pub struct Affine {
    pub a: f64,
    pub m: f64,
    pub v: f64,
}

impl Affine {
    /// The update at a shard whose score is scaled by a factor. The drift depends on x̄ and N_s only; the variance of the rows gives the
    /// noise of minibatches, which are drawn without replacement.
    pub fn new(x: ndarray::ArrayView1<f64>, scale: f64, step: f64, batch: usize) -> Self {
        Self::with_prior(x, scale, step, batch, FLAT)
    }

    /// The update with a prior, whose score is not scaled.
    pub fn with_prior(x: ndarray::ArrayView1<f64>, scale: f64, step: f64, batch: usize, prior: Prior) -> Self {
        let count = x.len() as f64;
        let mean = x.mean().unwrap();
        let spread = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let of_mean = spread / batch as f64 * (1.0 - batch as f64 / count);
        let strength = 0.5 * step * scale * count;
        let a = strength + 0.5 * step * prior.precision;
        let m = (scale * count * mean + prior.precision * prior.mean) / (scale * count + prior.precision);
        Self { a, m, v: step + strength.powi(2) * of_mean }
    }

    pub fn r(self) -> f64 {
        1.0 - self.a
    }

    /// The stationary variance of these updates without any other shard.
    pub fn variance(self) -> f64 {
        self.v / (1.0 - self.r().powi(2))
    }

    /// The factor by which `updates` updates shrink a deviation from m.
    pub fn rho(self, updates: f64) -> f64 {
        self.r().powf(updates)
    }
}

/// The stationary mean and variance of one coordinate at the ends of visits to random shards, and the pooled moments of all states: their
/// mean, and their second moment about the mean at the ends of visits.
pub struct Moments {
    pub mean: f64,
    pub variance: f64,
    pub pooled_mean: f64,
    pub pooled_second: f64,
}

pub fn moments(shards: &[Affine], updates: &[f64]) -> Moments {
    let both = || shards.iter().zip(updates);
    let count = shards.len() as f64;
    let weight: f64 = both().map(|(s, &tau)| 1.0 - s.rho(tau)).sum();
    let mean = both().map(|(s, &tau)| (1.0 - s.rho(tau)) * s.m).sum::<f64>() / weight;
    let pushed = both().map(|(s, &tau)| ((1.0 - s.rho(tau)) * (s.m - mean)).powi(2)).sum::<f64>() / count;
    let noise = both().map(|(s, &tau)| s.variance() * (1.0 - s.rho(tau).powi(2))).sum::<f64>() / count;
    let kept = both().map(|(s, &tau)| s.rho(tau).powi(2)).sum::<f64>() / count;
    let variance = (pushed + noise) / (1.0 - kept);
    let total: f64 = updates.iter().sum();
    let (mut first, mut second) = (0.0, 0.0);
    for (s, &tau) in both() {
        for t in 0..tau as u32 {
            let rho = s.rho(f64::from(t));
            first += (1.0 - rho) * (s.m - mean);
            second += rho.powi(2) * variance + s.variance() * (1.0 - rho.powi(2)) + ((1.0 - rho) * (s.m - mean)).powi(2);
        }
    }
    Moments { mean, variance, pooled_mean: mean + first / total, pooled_second: second / total }
}
