//! Convolutions of ResNet-32 on one core, beside the core's peak and plain matrix products of the same sizes, and the gradient of the whole
//! network: `cargo bench --bench convolution`.
#![allow(missing_docs, clippy::unwrap_used)]

use mpibayes::kernels::convolution::{Convolution, ImageLayout, LANES};
use mpibayes::models::convolutional::{Activation, Normalization, ResnetSettings};
use mpibayes::models::{Batch, Buffer, DataSchema, Model, Output, Scratch};
use mpibayes::random::{Purpose, Seed, Who};
use mpibayes::vector::{SimdKernel, SimdLevel, dispatch, multiply_add};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2};
use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCH: usize = 128;

/// Independent chains of fused multiply-adds: what the arithmetic of a core can reach.
struct Peak {
    repeats: usize,
}

impl SimdKernel for Peak {
    /// The number of multiply-adds of a repeat, and a sum, so that the compiler keeps the work.
    type Output = (usize, f32);

    #[inline(always)]
    fn compute<U: SimdLevel>(self) -> (usize, f32) {
        // Enough independent chains to hide the latency of a multiply-add.
        #[cfg(target_arch = "x86_64")]
        if U::AVX2 && !U::WIDE {
            // SAFETY: the level has the instructions.
            return unsafe { avx2_chains(self.repeats) };
        }
        if U::WIDE { chains::<U, 10>(self.repeats) } else { chains::<U, 5>(self.repeats) }
    }
}

/// By intrinsics, because the compiler does not keep these arrays in registers of 256 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2_chains(repeats: usize) -> (usize, f32) {
    use std::arch::x86_64::*;
    const CHAINS: usize = 12;
    let (factor, term) = (_mm256_set1_ps(black_box(0.999)), _mm256_set1_ps(black_box(0.001)));
    let mut sums = [_mm256_set1_ps(1.0); CHAINS];
    for _ in 0..repeats {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, factor, term);
        }
    }
    let sum = sums.into_iter().map(|sum| _mm256_cvtss_f32(sum)).sum();
    (CHAINS * 8, sum)
}

#[allow(clippy::needless_range_loop, reason = "by an iterator, the sums do not stay in registers")]
#[inline(always)]
fn chains<U: SimdLevel, const N: usize>(repeats: usize) -> (usize, f32) {
    let (factor, term) = (black_box([0.999_f32; LANES]), black_box([0.001_f32; LANES]));
    let mut sums = [[1.0_f32; LANES]; N];
    for _ in 0..repeats {
        for chain in 0..N {
            for lane in 0..LANES {
                sums[chain][lane] = multiply_add::<f32, U>(sums[chain][lane], factor[lane], term[lane]);
            }
        }
    }
    (N * LANES, sums.as_flattened().iter().sum())
}

/// The seconds of the fastest of many calls.
fn fastest(mut call: impl FnMut()) -> f64 {
    let since = Instant::now();
    let mut least = f64::INFINITY;
    while since.elapsed() < Duration::from_secs(1) {
        let before = Instant::now();
        call();
        least = least.min(before.elapsed().as_secs_f64());
    }
    least
}

/// The median of the seconds of many calls.
fn median(mut call: impl FnMut()) -> f64 {
    let since = Instant::now();
    let mut seconds = Vec::new();
    while since.elapsed() < Duration::from_secs(3) {
        let before = Instant::now();
        call();
        seconds.push(before.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Random numbers in memory as models have it.
fn normals(len: usize) -> Buffer<f32> {
    let mut numbers = Scratch::new().take(len);
    Seed(1).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut numbers);
    numbers
}

fn main() {
    mpibayes::cli::blas::prepare();
    let repeats = 1_000_000;
    let mut width = 0;
    let seconds = fastest(|| width = black_box(dispatch(Peak { repeats })).0);
    let peak = 2e-9 * (repeats * width) as f64 / seconds;
    println!("peak of a core: {peak:.1} GFLOP/s of multiply-adds in single precision\n");
    println!("GFLOP/s at batch {BATCH}        forward  input gradient filter gradient   matrix product");
    for (channels, side) in [(16, 32), (32, 16), (64, 8)] {
        let image = ImageLayout { height: side, width: side, channels, border: 1 };
        let layer = Convolution::new((channels, image), channels, 3, 1, 1);
        let (input, mut output) = (normals(BATCH * image.len()), normals(BATCH * layer.output().len()));
        let (filters, mut input_gradient) = (normals(layer.weights()), normals(BATCH * image.len()));
        let (mut packed, mut gradient) = (normals(LANES * layer.packed_len()), normals(LANES * layer.packed_len()));
        let (packed, gradient) = (packed.as_chunks_mut().0, gradient.as_chunks_mut().0);
        let flops = 2e-9 * (BATCH * layer.products()) as f64;
        layer.pack(&filters, packed);
        let forward = fastest(|| layer.forward(packed, &input, black_box(&mut output)));
        let of_filters = fastest(|| layer.add_filter_gradient(&input, &output, black_box(&mut *gradient)));
        layer.pack_for_gradient(&filters, packed);
        let of_input = fastest(|| layer.input_gradient(packed, &output, black_box(&mut input_gradient), false));
        let rows =
            Array2::from_shape_vec((BATCH * side * side, 9 * channels), normals(BATCH * side * side * 9 * channels).to_vec())
                .unwrap();
        let weights = Array2::from_shape_vec((9 * channels, channels), filters.to_vec()).unwrap();
        let mut sums = Array2::zeros((BATCH * side * side, channels));
        let product = fastest(|| general_mat_mul(1.0, &rows, &weights, 0.0, black_box(&mut sums)));
        let rate = |seconds: f64| format!("{:.0} ({:.0} %)", flops / seconds, 100.0 * flops / seconds / peak);
        println!(
            "{channels} channels, {side} × {side}\t{:>14} {:>14} {:>14} {:>14}",
            rate(forward),
            rate(of_input),
            rate(of_filters),
            rate(product)
        );
    }

    let schema = DataSchema { shape: vec![32, 32, 3], ..DataSchema::new(3072, Output::Classes(10)) };
    let x = Array2::from_shape_vec((BATCH, 3072), normals(BATCH * 3072).to_vec()).unwrap();
    let y = Array1::from_shape_fn(BATCH, |image| (image % 10) as f32);
    for (normalization, activation) in
        [(Normalization::None, Activation::Relu), (Normalization::FilterResponse, Activation::Swish)]
    {
        let model = ResnetSettings { normalization, activation, ..ResnetSettings::default() }.build(&schema).unwrap();
        let dim = Model::<f32>::dim(&model);
        let mut theta = Array2::<f32>::zeros((1, dim));
        model.draw_initial(&mut Seed(1).stream(Who::Run, 0, Purpose::Initial), theta.row_mut(0));
        let flops = 6e-9 * (BATCH * model.products()) as f64;
        let memory = 4e-6 * Model::<f32>::buffered_values(&model) as f64;
        println!("\nResNet-32, {normalization:?}, {activation:?}: {flops:.0} GFLOP per gradient, {memory:.0} MB per thread");
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut score = Array2::zeros(theta.raw_dim());
            let mut scratch = Scratch::new();
            let seconds = pool.install(|| {
                median(|| {
                    let batch = Batch { x: x.view(), y: y.view() };
                    model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut scratch);
                })
            });
            println!("  {threads} threads: {:.0} ms, {:.0} GFLOP/s", 1e3 * seconds, flops / seconds);
        }
    }
}
