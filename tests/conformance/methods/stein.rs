//! The Stein methods on small synthetic classifications, with and without evaluation.

use mpibayes::data::Shard;
use mpibayes::kernels::svgd::Settings;
use mpibayes::methods::dsvgd::{Dsvgd, PriorConvention};
use mpibayes::methods::svgd::Svgd;
use mpibayes::methods::{Monitored, Problem};
use mpibayes::models::Output;
use mpibayes::models::network::NetworkSettings;
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2};
use std::sync::Arc;

const FEATURES: usize = 3;
const CLASSES: usize = 2;

/// A small network, with 17 rows for each of these agents.
fn problem<F: Real>(agents: u32) -> Problem<F> {
    let settings = NetworkSettings { hidden: vec![4], ..NetworkSettings::default() };
    let model = settings.build(FEATURES, Output::Classes(CLASSES)).unwrap();
    let shard = |agent| {
        let rows = 17;
        let mut x = vec![F::zero(); rows * FEATURES];
        Seed(9).stream(Who::Agent(agent), 0, Purpose::Synthetic).normals(&mut x);
        let y = Array1::from_shape_fn(rows, |row| if x[row * FEATURES] > F::zero() { F::one() } else { F::zero() });
        Ok(Shard::new(Array2::from_shape_vec((rows, FEATURES), x)?, y))
    };
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(shard) }
}

/// SVGD over these agents.
pub fn svgd<F: Real>(agents: u32) -> Svgd<F> {
    Svgd { problem: problem(agents), particles: 4, rounds: 4, steps: 5, batch: 12, stein: Settings::default() }
}

/// DSVGD over five agents, each visited more than once, judged after every second round.
pub fn dsvgd<F: Real>(prior: PriorConvention) -> Monitored<Dsvgd<F>> {
    let problem = problem(5);
    let (model, slice) = (problem.model.clone(), problem.shard.clone());
    let inner = Dsvgd {
        problem,
        particles: 4,
        rounds: 12,
        local_steps: 5,
        distillation_steps: 5,
        batch: 8,
        prior,
        stein: Settings::default(),
    };
    Monitored { inner, model, slice, every: 2 }
}
