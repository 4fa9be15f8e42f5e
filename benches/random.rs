//! Random numbers: normals, minibatches and permutations, compared with normals of `rand_distr`.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mpibayes::number::Real;
use mpibayes::random::{Minibatch, Purpose, Seed, Stream, Who};
use rand::distr::Distribution;
use rand_distr::StandardNormal;
use std::hint::black_box;

fn stream() -> Stream {
    Seed(1).stream(Who::Chain(0), 0, Purpose::Noise)
}

fn normals<F: Real>(criterion: &mut Criterion)
where
    StandardNormal: Distribution<F>,
{
    let mut group = criterion.benchmark_group(format!("normals {}", F::NAME));
    for length in [54, 4096, 1 << 20] {
        let mut out = vec![F::default(); length];
        let mut stream = stream();
        group.throughput(Throughput::Elements(length as u64));
        group.bench_function(format!("{length}"), |bencher| bencher.iter(|| stream.normals(black_box(&mut out))));
        let scale = F::of(0.1);
        group.bench_function(format!("{length}, added"), |bencher| {
            bencher.iter(|| stream.add_normals(black_box(scale), black_box(&mut out)));
        });
    }
    let mut out = vec![F::default(); 4096];
    let mut library = rand::make_rng::<rand::rngs::SmallRng>();
    group.throughput(Throughput::Elements(4096));
    group.bench_function("4096, rand_distr on SmallRng", |bencher| {
        bencher.iter(|| black_box(&mut out).iter_mut().for_each(|x| *x = StandardNormal.sample(&mut library)));
    });
    group.finish();
}

fn subsets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("subsets");
    for (rows, size) in [(20_000, 100), (581_012, 100), (20_000, 15_000)] {
        let (mut minibatch, mut stream) = (Minibatch::new(rows, size), stream());
        group.throughput(Throughput::Elements(size as u64));
        group
            .bench_function(format!("{size} of {rows}"), |bencher| bencher.iter(|| black_box(minibatch.draw(&mut stream)).len()));
    }
    group.throughput(Throughput::Elements(20_000));
    group.bench_function("permutation of 20000", |bencher| {
        bencher.iter_batched_ref(stream, |stream| stream.permutation(black_box(20_000)), BatchSize::SmallInput);
    });
    group.finish();
    criterion.bench_function("create a stream", |bencher| {
        bencher.iter(|| Seed(1).stream(Who::Chain(black_box(7)), black_box(3), Purpose::Noise));
    });
    criterion.bench_function("create a stream and draw 54 f64 normals", |bencher| {
        let mut out = [0.0_f64; 54];
        bencher.iter(|| Seed(1).stream(Who::Chain(black_box(7)), black_box(3), Purpose::Noise).normals(black_box(&mut out)));
    });
}

criterion_group!(benches, normals::<f32>, normals::<f64>, subsets);
criterion_main!(benches);
