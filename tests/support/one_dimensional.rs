//! One-dimensional models given by formulas for their gradients, and problems that assign them to agents.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here stops the test")]

use mpibayes::data::Shard;
use mpibayes::methods::Problem;
use mpibayes::models::{Batch, Model, Output, Part, Scratch};
use mpibayes::random::Stream;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use std::sync::Arc;

/// A model with one parameter: a row holds the number of an agent and has the loss of that agent.
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

/// A problem of K agents, of which agent k has the rows `own(k)`.
pub fn share(model: impl Model<f64> + 'static, agents: u32, temperature: f64, own: fn(u32) -> Vec<f64>) -> Problem<f64> {
    let shard = move |agent: u32| {
        let rows = own(agent);
        Ok(Shard::new(Array2::from_shape_vec((rows.len(), 1), rows.clone())?, Array1::zeros(rows.len())))
    };
    Problem { model: Arc::new(model), agents, temperature, shard: Arc::new(shard) }
}
