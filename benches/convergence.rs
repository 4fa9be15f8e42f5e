//! Convergence diagnostics of 1,000 parameters with 4 chains of 1,000 draws.

use criterion::{Criterion, criterion_group, criterion_main};
use mpibayes::metrics::convergence::estimates;
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::Array3;
use std::hint::black_box;

fn diagnostics(criterion: &mut Criterion) {
    let mut draws = vec![0.0_f64; 4 * 1000 * 1000];
    Seed(1).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut draws);
    let draws = Array3::from_shape_fn((4, 1000, 1000), |(chain, draw, j)| draws[(1000 * chain + draw) * 1000 + j]);
    let mut group = criterion.benchmark_group("convergence");
    group.sample_size(10);
    group.bench_function("1000 parameters, 4 chains, 1000 draws", |bencher| bencher.iter(|| estimates(black_box(draws.view()))));
    group.finish();
}

criterion_group!(benches, diagnostics);
criterion_main!(benches);
