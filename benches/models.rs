//! Gradients of a network and of logistic regression, compared with plain matrix products of the same shapes.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::{Batch, DataSchema, Model, Output, Scratch};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2};
use std::hint::black_box;
use std::time::Duration;

const BATCH: usize = 100;

fn normals<F: Real>(rows: usize, columns: usize, seed: u64) -> Array2<F> {
    let mut matrix = Array2::zeros((rows, columns));
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(matrix.as_slice_mut().unwrap());
    matrix
}

fn particles<F: Real>(model: &dyn Model<F>, n: usize) -> Array2<F> {
    let mut stream = Seed(1).stream(Who::Run, 0, Purpose::Initial);
    let mut theta = Array2::zeros((n, model.dim()));
    theta.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
    theta
}

/// 20 particles of 784-100-10 at batch 100 in single precision, on one thread, like the products.
fn network(criterion: &mut Criterion) {
    let (particles_, features, hidden, classes) = (20, 784, 100, 10);
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let settings = NetworkSettings { hidden: vec![hidden], ..NetworkSettings::default() };
    let model = settings.build(features, Output::Classes(classes)).unwrap();
    let theta = particles::<f32>(&model, particles_);
    let x = normals::<f32>(BATCH, features, 2);
    let y = Array1::from_shape_fn(BATCH, |i| (i % classes) as f32);
    let mut score = Array2::zeros(theta.raw_dim());
    let mut scratch = Scratch::new();
    let mut group = criterion.benchmark_group("network_784_100_10");
    let flops = 2 * particles_ * BATCH * (2 * features * hidden + 3 * hidden * classes);
    group.throughput(Throughput::Elements(flops as u64));
    group.bench_function("gradient", |bencher| {
        one_thread.install(|| {
            bencher.iter(|| {
                let batch = Batch { x: x.view(), y: y.view() };
                model.add_score(black_box(theta.view()), batch, 600.0, score.view_mut(), &mut scratch);
            });
        });
    });

    let first = normals::<f32>(particles_ * features, hidden, 3);
    let second = normals::<f32>(particles_ * hidden, classes, 4);
    let (mut first_gradient, mut second_gradient) = (Array2::zeros(first.raw_dim()), Array2::zeros(second.raw_dim()));
    let (mut values, mut outputs) = (normals::<f32>(BATCH, hidden, 5), normals::<f32>(BATCH, classes, 6));
    let mut errors = values.clone();
    group.bench_function("plain_products", |bencher| {
        bencher.iter(|| {
            let shares = first.exact_chunks((features, hidden)).into_iter().zip(second.exact_chunks((hidden, classes)));
            let gradients = first_gradient.exact_chunks_mut((features, hidden)).into_iter();
            let gradients = gradients.zip(second_gradient.exact_chunks_mut((hidden, classes)));
            for ((first, second), (mut first_gradient, mut second_gradient)) in shares.zip(gradients) {
                general_mat_mul(1.0, &x, &first, 0.0, &mut values);
                general_mat_mul(1.0, &values, &second, 0.0, &mut outputs);
                general_mat_mul(1.0, &values.t(), &outputs, 1.0, &mut second_gradient);
                general_mat_mul(1.0, &outputs, &second.t(), 0.0, &mut errors);
                general_mat_mul(1.0, &x.t(), &errors, 0.0, &mut first_gradient);
            }
        });
    });
    group.finish();
}

/// 54 features (Covertype's), batch 100, double precision.
fn logistic(criterion: &mut Criterion) {
    let features = 54;
    let model = LogisticSettings { intercept: false, ..LogisticSettings::default() }
        .build(&DataSchema::new(features, Output::Classes(2)))
        .unwrap();
    let x = normals::<f64>(BATCH, features, 2) / 10.0;
    let y = Array1::from_shape_fn(BATCH, |i| (i % 2) as f64);
    let mut group = criterion.benchmark_group("logistic_54");
    for n in [6, 100, 1000] {
        let theta = particles::<f64>(&model, n);
        let mut score = Array2::zeros(theta.raw_dim());
        let mut scratch = Scratch::new();
        group.throughput(Throughput::Elements((4 * n * BATCH * features) as u64));
        group.bench_function(BenchmarkId::new("gradient", n), |bencher| {
            bencher.iter(|| {
                let batch = Batch { x: x.view(), y: y.view() };
                model.add_score(black_box(theta.view()), batch, 3.0, score.view_mut(), &mut scratch);
            });
        });
        let mut logits = Array2::<f64>::zeros((n, BATCH));
        let mut gradient = Array2::<f64>::zeros((n, features));
        let weights = normals::<f64>(n, features, 3);
        group.bench_function(BenchmarkId::new("plain_products", n), |bencher| {
            bencher.iter(|| {
                general_mat_mul(1.0, black_box(&weights), &x.t(), 0.0, &mut logits);
                general_mat_mul(1.0, &logits, &x, 0.0, &mut gradient);
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = network, logistic
}
criterion_main!(mpibayes::cli::blas::prepare, benches);
