//! SVGD steps without a model's gradient, compared with plain matrix products of the same shapes.

use criterion::{Criterion, criterion_group, criterion_main};
use mpibayes::kernels::kde::KdeFactor;
use mpibayes::kernels::svgd::{Settings, SvgdLoop};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, s};
use std::hint::black_box;

fn particles<F: Real>(n: usize, d: usize, seed: u64, spread: f64) -> Array2<F> {
    let mut values = vec![0.0; n * d];
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut values);
    Array2::from_shape_fn((n, d), |(i, j)| F::of(values[i * d + j] * spread))
}

fn small(c: &mut Criterion) {
    let mut group = c.benchmark_group("stein_f64_d55");
    for n in [6, 100, 1000] {
        let mut theta = particles::<f64>(n, 55, 1, 1.0);
        let score = particles::<f64>(n, 55, 2, 1.0);
        let mut stein = SvgdLoop::new(n, 55, Settings::default());
        stein.begin(theta.view(), &[]);
        let kernel = particles::<f64>(n, n, 3, 1.0);
        let (mut gram, mut out) = (Array2::zeros((n, n)), Array2::zeros((n, 55)));
        group.bench_function(format!("{n}_products"), |b| {
            b.iter(|| {
                general_mat_mul(1.0, &score, &score.t(), 0.0, &mut gram);
                general_mat_mul(1.0, &kernel, &score, 0.0, &mut out);
                black_box((&gram, &out));
            });
        });
        group.bench_function(n.to_string(), |b| b.iter(|| black_box(stein.step(Some(score.view()), Some(theta.view_mut())))));
    }
}

/// Twenty networks of 79,510 weights (784-100-10).
fn wide(c: &mut Criterion) {
    let (n, d) = (20, 79_510);
    let sets: Vec<Array2<f32>> = (0..4).map(|seed| particles(n, d, seed, 0.03)).collect();
    let mut theta = sets[0].clone();
    let mut group = c.benchmark_group("wide_f32_n20");
    group.sample_size(30);
    for (name, count) in [("local", 2), ("distillation", 3)] {
        let rows = n * (count + 1);
        let stack = particles::<f32>(rows, d, 9, 0.03);
        let coefficients = particles::<f32>(n, rows, 10, 0.1);
        let (mut gram, mut out) = (Array2::zeros((n, rows)), Array2::zeros((n, d)));
        group.bench_function(format!("{name}_products"), |b| {
            b.iter(|| {
                general_mat_mul(1.0, &stack.slice(s![..n, ..]), &stack.t(), 0.0, &mut gram);
                general_mat_mul(1.0, &coefficients, &stack, 0.0, &mut out);
                black_box((&gram, &out));
            });
        });
        let frozen: Vec<_> = sets[1..=count].iter().map(|set| KdeFactor::plus(set.view())).collect();
        let mut stein = SvgdLoop::new(n, d, Settings::default());
        stein.begin(theta.view(), &frozen);
        let score = particles::<f32>(n, d, 11, 1.0);
        group.bench_function(format!("{name}_step"), |b| {
            b.iter(|| if count == 2 { stein.step(Some(score.view()), Some(theta.view_mut())) } else { stein.step(None, None) });
        });
    }
}

criterion_group!(benches, small, wide);
criterion_main!(benches);
