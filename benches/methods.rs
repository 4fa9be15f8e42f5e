//! Complete methods in one process: SVGD and SGLD for logistic regression, and the loops of DSVGD compared with the matrix products that
//! they contain.
//!
//! Run with `OPENBLAS_NUM_THREADS=1 cargo bench --bench methods`; a loop and its products are measured in the same run,
//! so their ratio is meaningful on a noisy machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure should stop the benchmark")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mpibayes::cluster::mpi::tune_allocator;
use mpibayes::cluster::{JobOptions, Method, threads};
use mpibayes::data::Shard;
use mpibayes::kernels::langevin::StepSize;
use mpibayes::kernels::optimizer::Optimizer;
use mpibayes::kernels::svgd::Settings;
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings, Trajectory};
use mpibayes::methods::common::participation::Participation;
use mpibayes::methods::common::problem::Problem;
use mpibayes::methods::common::scores::Estimator;
use mpibayes::methods::particles::dsvgd::{Dsvgd, Factors, PriorConvention};
use mpibayes::methods::particles::svgd::Svgd;
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::{DataSchema, Model, Output};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Stream, Who};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Restricts all work to one core.
fn on_one_core() {
    assert!(std::env::var("OPENBLAS_NUM_THREADS").is_ok_and(|threads| threads == "1"), "set OPENBLAS_NUM_THREADS=1");
    // Fails if an earlier call has built the pool already.
    drop(rayon::ThreadPoolBuilder::new().num_threads(1).build_global());
    tune_allocator();
}

fn run<M: Method>(method: M) {
    on_one_core();
    let plan = JobOptions::new(Seed(1));
    threads::run(Arc::new(method), plan, None, &mut ()).expect("the run ends");
}

fn normals<F: Real>(rows: usize, columns: usize, step: u64) -> Array2<F> {
    let mut stream: Stream = Seed(7).stream(Who::Run, step, Purpose::Synthetic);
    let mut values = vec![F::zero(); rows * columns];
    stream.normals(&mut values);
    Array2::from_shape_vec((rows, columns), values).expect("the shape fits")
}

fn problem<F: Real>(model: Arc<dyn Model<F>>, rows: usize, features: usize, classes: usize) -> Problem<F> {
    let x = normals(rows, features, 0);
    let y = Array1::from_shape_fn(rows, |row| F::of((row % classes) as f64));
    Problem { model, agents: 1, temperature: 1.0, shard: Arc::new(move |_| Ok(Shard::new(x.clone(), y.clone()))) }
}

/// Steps of SVGD for logistic regression, d = 54, a fresh minibatch of 100 of 20,000 rows and the exact median in each, f64.
fn svgd_logistic(c: &mut Criterion) {
    let model = Arc::new(
        LogisticSettings { intercept: false, ..LogisticSettings::default() }
            .build(&DataSchema::new(54, Output::Classes(2)))
            .expect("valid"),
    );
    let problem = problem::<f64>(model, 20_000, 54, 2);
    let mut group = c.benchmark_group("svgd_logistic_d54_batch100");
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    for (particles, steps) in [(6, 50_000), (100, 3_000), (1000, 50)] {
        group.throughput(Throughput::Elements(steps));
        group.bench_function(BenchmarkId::from_parameter(particles), |b| {
            b.iter(|| {
                let problem = problem.clone();
                run(Svgd { problem, particles, rounds: 1, steps, batch: 100, stein: Settings::default() });
            });
        });
    }
    group.finish();
}

/// Steps of SGLD for logistic regression, d = 54, a fresh minibatch of 100 rows in each, of a shard in the cache and of one beyond it.
fn sgld_logistic(c: &mut Criterion) {
    let model = Arc::new(
        LogisticSettings { intercept: false, ..LogisticSettings::default() }
            .build(&DataSchema::new(54, Output::Classes(2)))
            .expect("valid"),
    );
    let mut group = c.benchmark_group("sgld_logistic_d54_batch100");
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    for rows in [20_000, 581_012] {
        let problem = problem::<f64>(model.clone(), rows, 54, 2);
        let shard = (problem.shard)(0).expect("rows");
        let problem = Problem { shard: Arc::new(move |_| Ok(shard.clone())), ..problem };
        let visit = 10_000;
        group.throughput(Throughput::Elements(10 * visit));
        for (name, gradient) in [("plain", Estimator::Plain), ("control_variate", Estimator::ControlVariate(0))] {
            group.bench_function(BenchmarkId::new(name, rows), |b| {
                b.iter(|| {
                    let settings = DsgldSettings {
                        chains: 1,
                        rounds: Some(10),
                        trajectory: Trajectory::Same(visit as f64),
                        step: StepSize::Constant(1e-6),
                        gradient,
                        thin: Some(100),
                        ..DsgldSettings::default()
                    };
                    run(Dsgld::sgld(problem.clone(), settings));
                });
            });
        }
    }
    group.finish();
}

const PARTICLES: usize = 20;
const STEPS: u64 = 40;
const FEATURES: usize = 784;
const HIDDEN: usize = 100;
const CLASSES: usize = 10;
const BATCH: usize = 100;
const DIM: usize = FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES;

fn visit(distillation_steps: u64, local_steps: u64) {
    let model = NetworkSettings { hidden: vec![HIDDEN], ..NetworkSettings::default() };
    let model = Arc::new(model.build(FEATURES, Output::Classes(CLASSES)).expect("valid"));
    let optimizer = Optimizer::Adagrad { step: 1e-3, decay: 0.9, fudge: 1e-6 };
    run(Dsvgd::<f32> {
        problem: Problem { agents: 2, ..problem(model, 2_000, FEATURES, CLASSES) },
        // The second agent's visit is the first with a cavity distribution: the frozen sets of the first visit are equal and cancel.
        rounds: 2,
        schedule: Participation::RoundRobin,
        particles: PARTICLES,
        local_steps,
        factors: Factors::Distilled { steps: distillation_steps, prior: PriorConvention::Absorbed },
        batch: BATCH,
        stein: Settings { optimizer, ..Settings::default() },
        server_steps: None,
    });
}

/// The products of one step's Stein part: all distances, and the direction, with two frozen sets.
struct SteinProducts {
    rows: Array2<f32>,
    gram: Array2<f32>,
    direction: Array2<f32>,
}

impl SteinProducts {
    fn new(sets: usize) -> Self {
        let rows = (sets + 1) * PARTICLES;
        Self { rows: normals(rows, DIM, 1), gram: Array2::zeros((PARTICLES, rows)), direction: Array2::zeros((PARTICLES, DIM)) }
    }

    fn multiply(&mut self) {
        let theta = self.rows.slice(ndarray::s![..PARTICLES, ..]);
        general_mat_mul(1.0, &theta, &self.rows.t(), 0.0, &mut self.gram);
        general_mat_mul(1.0, &self.gram, &self.rows, 0.0, &mut self.direction);
        black_box(&mut self.direction);
    }
}

/// The products of the gradient of 20 networks 784-100-10 at batch 100.
fn network_products() -> impl FnMut() {
    let (x, weights, out) =
        (normals::<f32>(BATCH, FEATURES, 2), normals::<f32>(PARTICLES * FEATURES, HIDDEN, 3), normals(HIDDEN, CLASSES, 4));
    let (mut h, mut z) = (Array2::zeros((BATCH, HIDDEN)), Array2::zeros((BATCH, CLASSES)));
    let (mut g1, mut g2) = (Array2::zeros((PARTICLES * FEATURES, HIDDEN)), Array2::zeros((HIDDEN, CLASSES)));
    move || {
        for n in 0..PARTICLES {
            let range = n * FEATURES..(n + 1) * FEATURES;
            general_mat_mul(1.0, &x, &weights.slice(ndarray::s![range.clone(), ..]), 0.0, &mut h);
            general_mat_mul(1.0, &h, &out, 0.0, &mut z);
            general_mat_mul(1.0, &h.t(), &z, 0.0, &mut g2);
            general_mat_mul(1.0, &z, &out.t(), 0.0, &mut h);
            general_mat_mul(1.0, &x.t(), &h, 0.0, &mut g1.slice_mut(ndarray::s![range, ..]));
            // Reset, so that values do not grow from call to call.
            h.fill(0.5);
            z.fill(0.5);
        }
        black_box((&mut g1, &mut g2));
    }
}

/// Two visits with 40 local steps, and two with one local step and 40 distillation steps, beside the products of the same steps.
fn dsvgd_loops(c: &mut Criterion) {
    let mut group = c.benchmark_group("dsvgd_784_100_10_n20_batch100");
    group.sample_size(10).measurement_time(Duration::from_secs(8));
    // The cost of two visits without their loops: shards, first evaluations, transfers.
    group.bench_function("visits_with_one_step", |b| b.iter(|| visit(0, 1)));
    group.bench_function("local_loops", |b| b.iter(|| visit(0, STEPS)));
    on_one_core();
    let mut network = network_products();
    let (mut plain, mut cavity) = (SteinProducts::new(0), SteinProducts::new(2));
    group.bench_function("local_products", |b| {
        b.iter(|| {
            for _ in 0..STEPS {
                network();
                plain.multiply();
                network();
                cavity.multiply();
            }
        });
    });
    group.bench_function("distillation_loops", |b| b.iter(|| visit(STEPS, 1)));
    let (mut first, mut second) = (SteinProducts::new(1), SteinProducts::new(3));
    group.bench_function("distillation_products", |b| {
        b.iter(|| {
            for _ in 0..STEPS {
                // In the first visit two of the three sets are equal and drop out.
                first.multiply();
                second.multiply();
            }
        });
    });
    group.finish();
}

criterion_group!(benches, svgd_logistic, sgld_logistic, dsvgd_loops);
criterion_main!(mpibayes::cli::blas::prepare, benches);
