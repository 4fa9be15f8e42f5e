//! The parts of a step of coupled SGHMC chains of a network 784-800-800-10, on two ranks: `cargo bench --bench elastic`.
//!
//! Both ranks measure the same part at the same time, as in a run. The matrix products of a gradient are measured for comparison.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure should stop the benchmark")]

mod two_ranks;

use mpibayes::cluster::mpi::{World, run, tune_allocator};
use mpibayes::cluster::{Collectives, Context, JobOptions};
use mpibayes::data::Shard;
use mpibayes::kernels::hamiltonian::{ChainState, ElasticForce};
use mpibayes::methods::chains::coupled::{CoupledChains, CouplingSchedule};
use mpibayes::methods::chains::ec_sghmc::EcSghmcSettings;
use mpibayes::methods::common::scores::{Estimator, Scores};
use mpibayes::methods::tuning::Step;
use mpibayes::methods::{Problem, Transition};
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::{Output, Scratch};
use mpibayes::random::{Purpose, Seed, Stream, Who};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2};
use std::sync::Arc;
use std::time::Instant;

const WIDTHS: [usize; 4] = [784, 800, 800, 10];
const BATCH: usize = 100;
const ROWS: usize = 20_000;
const PERIOD: u64 = 8;
const STEPS: u64 = 400;

fn stream(step: u64) -> Stream {
    Seed(7).stream(Who::Run, step, Purpose::Synthetic)
}

fn normals(rows: usize, columns: usize, step: u64) -> Array2<f32> {
    let mut matrix = Array2::zeros((rows, columns));
    stream(step).normals(matrix.as_slice_mut().unwrap());
    matrix
}

fn problem() -> Problem<f32> {
    let settings = NetworkSettings { hidden: vec![WIDTHS[1], WIDTHS[2]], ..NetworkSettings::default() };
    let model = settings.build(WIDTHS[0], Output::Classes(WIDTHS[3])).unwrap();
    let shard = Shard::new(normals(ROWS, WIDTHS[0], 0), Array1::from_shape_fn(ROWS, |row| (row % WIDTHS[3]) as f32));
    Problem { model: Arc::new(model), agents: 2, temperature: 1.0, shard: Arc::new(move |_| Ok(shard.clone())) }
}

fn settings() -> EcSghmcSettings {
    EcSghmcSettings {
        steps: Some(STEPS),
        period: PERIOD,
        batch: BATCH,
        step: Step::Size(1e-5),
        friction: Some(1.0),
        coupling_schedule: Some(CouplingSchedule::Constant),
        burn_in: Some(0),
        thin: Some(STEPS),
        ..EcSghmcSettings::default()
    }
}

/// The median time of a part in milliseconds, measured on both ranks at the same time.
fn milliseconds(world: &World, mut part: impl FnMut()) -> f64 {
    world.broadcast_bytes((world.rank() == 0).then(Vec::new));
    let mut times: Vec<f64> = (0..100)
        .map(|_| {
            let since = Instant::now();
            part();
            since.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The matrix products of a gradient: forward pass, errors, weights.
fn products(world: &World) -> f64 {
    let mut layers: Vec<_> = WIDTHS
        .windows(2)
        .map(|pair| {
            (normals(BATCH, pair[0], 1), normals(pair[0], pair[1], 2), normals(BATCH, pair[1], 3), normals(pair[0], pair[1], 4))
        })
        .collect();
    milliseconds(world, || {
        for (layer, (inputs, weights, outputs, gradient)) in layers.iter_mut().enumerate() {
            general_mat_mul(1.0, &*inputs, &*weights, 0.0, outputs);
            general_mat_mul(1.0, &inputs.t(), &*outputs, 1.0, gradient);
            if layer > 0 {
                general_mat_mul(1.0, &*outputs, &weights.t(), 0.0, inputs);
            }
        }
    })
}

fn main() {
    mpibayes::cli::blas::prepare();
    two_ranks::start();
    tune_allocator();
    drop(rayon::ThreadPoolBuilder::new().num_threads(1).build_global());
    let world = World::start().unwrap();
    let (problem, settings) = (problem(), settings());
    let transition = settings.transition(problem.clone());
    let cx = Context::detached(Seed(1));
    let dim = transition.dim();
    let mut chain = vec![0.0_f32; transition.state_len()];
    transition.draw_initial(0, &mut cx.stream(Who::Run, 0, Purpose::Initial), &mut chain);
    let (theta, velocity) = chain.split_at_mut(dim);
    let mut scores = Scores::open(&problem, 0, BATCH, Estimator::Plain).unwrap();
    let control = Default::default();

    let plain = products(&world);
    let mut update = 0;
    let gradient = milliseconds(&world, || {
        update += 1;
        scores.at(&control, theta, 0, update, 1.0, &cx).unwrap();
    });
    let (shard, mut scratch, mut minibatch) = ((problem.shard)(0).unwrap(), Scratch::new(), 0);
    let gathering = milliseconds(&world, || {
        minibatch += 1;
        let rows: Vec<usize> = (0..BATCH).map(|row| (minibatch * 7919 + row * 104_729) % ROWS).collect();
        shard.blocks_of(&rows, &mut scratch, |_, batch, _| assert_eq!(batch.x.nrows(), BATCH));
    });
    let mut buffer = vec![0.0_f32; dim];
    let noise = milliseconds(&world, || stream(9).normals(&mut buffer));
    let score = scores.at(&control, theta, 0, 0, 1.0, &cx).unwrap().to_vec();
    let center = theta.to_vec();
    let dynamics = transition.dynamics;
    let updating = milliseconds(&world, || {
        dynamics.first_half(ChainState { theta: &mut *theta, velocity: &mut *velocity, inverse_mass: None }, &mut stream(9));
        let pull = ElasticForce { strength: 1.0, center: &center };
        dynamics.second_half(ChainState { theta: &mut *theta, velocity: &mut *velocity, inverse_mass: None }, &score, Some(pull));
    });
    let mut whole = [0.0; 2];
    for (period, whole) in [PERIOD, STEPS].into_iter().zip(&mut whole) {
        let mut settings = settings.clone();
        settings.period = period;
        let method = CoupledChains {
            agents: 2,
            transition: settings.transition(problem.clone()),
            plan: settings.plan(),
            asynchronous: false,
        };
        let plan = JobOptions { collectives: Collectives::default(), ..JobOptions::new(Seed(1)) };
        let since = Instant::now();
        run(&world, Arc::new(method), plan, None, &mut ());
        *whole = since.elapsed().as_secs_f64() * 1e3 / STEPS as f64;
    }
    if world.rank() != 0 {
        return;
    }
    let flops: usize =
        2 * BATCH * WIDTHS.windows(2).enumerate().map(|(l, pair)| pair[0] * pair[1] * if l == 0 { 2 } else { 3 }).sum::<usize>();
    println!(
        "784-800-800-10, {dim} parameters, batch {BATCH}, {} ranks at once; {:.0} MFLOP of matrix products per gradient",
        world.size(),
        flops as f64 / 1e6
    );
    println!("{:<44} {:>8} {:>9} {:>12}", "", "ms", "GFLOP/s", "of products");
    let line = |part: &str, ms: f64, counts: bool| {
        let rate = if counts { format!("{:.0}", flops as f64 / ms / 1e6) } else { String::new() };
        let fraction = if counts { format!("{:.0} %", 100.0 * plain / ms) } else { String::new() };
        println!("{part:<44} {ms:>8.2} {rate:>9} {fraction:>12}");
    };
    line("matrix products alone (sgemm)", plain, true);
    line("gradient", gradient, true);
    line("of which: copying the minibatch", gathering, false);
    line("noise", noise, false);
    line("update including noise", updating, false);
    line("step in a run, no exchange", whole[1], true);
    line("step in a run, exchange every 8", whole[0], true);
    line("exchange per step", whole[0] - whole[1], false);
}
