//! What integration tests share: a method run in this process, and one-dimensional models given by formulas.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here shall stop it")]

use mpibayes::cluster::record::{Record, Row};
use mpibayes::cluster::{JobOptions, Method, Recorder, Result, threads};
use mpibayes::data::Shard;
use mpibayes::methods::Problem;
use mpibayes::models::{Batch, Model, Output, Part, Scratch};
use mpibayes::random::{Seed, Stream};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use std::sync::Arc;

/// Keeps what a run writes down.
#[derive(Default)]
pub struct Notes {
    pub rows: Vec<Row>,
    pub particles: Array2<f64>,
}

impl Recorder for Notes {
    fn write(&mut self, records: Vec<Record>) -> Result<()> {
        for record in records {
            match record {
                Record::Row(row) => self.rows.push(row),
                Record::Draws(draws) => {
                    let values: Vec<f64> = bytemuck::pod_collect_to_vec(&draws.bytes);
                    let dim = usize::try_from(draws.dim).unwrap();
                    self.particles = Array2::from_shape_vec((values.len() / dim, dim), values).unwrap();
                }
            }
        }
        Ok(())
    }
}

/// Runs a method with threads to its end.
pub fn run<M: Method<Number = f64>>(method: M, seed: u64) -> Notes {
    let mut notes = Notes::default();
    let plan = JobOptions::new(Seed(seed));
    threads::run(Arc::new(method), plan, None, &mut notes).unwrap();
    notes
}

/// A one-dimensional model by formulas: the loss of a row is that of the agent whose number the row holds.
pub struct Line {
    /// The initial particle from a standard normal number.
    pub initial: fn(f64) -> f64,
    /// ∇log p0.
    pub prior_score: fn(f64) -> f64,
    /// ∇L_k.
    pub gradient: fn(usize, f64) -> f64,
}

impl Model<f64> for Line {
    fn dim(&self) -> usize {
        1
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("theta", &[])]
    }

    fn output(&self) -> Output {
        Output::Nothing
    }

    fn draw_initial(&self, stream: &mut Stream, mut theta: ArrayViewMut1<f64>) {
        let mut z = [0.0];
        stream.normals(&mut z);
        theta[0] = (self.initial)(z[0]);
    }

    fn log_prior(&self, _: ArrayView2<f64>, _: &mut [f64]) {
        unreachable!("Stein methods need scores only");
    }

    fn prior_score(&self, theta: ArrayView2<f64>, mut score: ArrayViewMut2<f64>) {
        score.zip_mut_with(&theta, |score, &x| *score = (self.prior_score)(x));
    }

    fn loss(&self, _: ArrayView2<f64>, _: Batch<f64>, _: &mut [f64], _: &mut Scratch<f64>) {
        unreachable!("Stein methods need scores only");
    }

    fn add_score(
        &self,
        theta: ArrayView2<f64>,
        batch: Batch<f64>,
        weight: f64,
        mut score: ArrayViewMut2<f64>,
        _: &mut Scratch<f64>,
    ) {
        for row in batch.x.rows() {
            score.zip_mut_with(&theta, |score, &x| *score -= weight * (self.gradient)(row[0] as usize, x));
        }
    }

    fn predict(&self, _: ArrayView2<f64>, _: Batch<f64>, _: ArrayViewMut2<f64>, _: &mut [f64], _: &mut Scratch<f64>) {
        unreachable!("a bare density predicts nothing");
    }
}

/// K agents, of which agent k has the losses `own(k)`.
pub fn share(model: impl Model<f64> + 'static, agents: u32, temperature: f64, own: fn(u32) -> Vec<f64>) -> Problem<f64> {
    let shard = move |agent: u32| {
        let rows = own(agent);
        Ok(Shard::new(Array2::from_shape_vec((rows.len(), 1), rows.clone())?, Array1::zeros(rows.len())))
    };
    Problem { model: Arc::new(model), agents, temperature, shard: Arc::new(shard) }
}
