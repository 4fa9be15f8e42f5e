//! Convolutions against direct sums, on every SIMD level of this machine.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::number::Real;
use crate::random::{Purpose, Seed, Who};
use crate::vector::{level_count, on_level};

const IMAGES: usize = 2;

/// Shapes with every tile size and remainder: inputs, outputs, height, width, size, stride.
const SHAPES: [[usize; 6]; 20] = [
    [3, 16, 32, 32, 3, 1],
    [16, 16, 32, 32, 3, 1],
    [16, 32, 32, 32, 3, 2],
    [32, 64, 16, 16, 1, 2],
    [64, 64, 8, 8, 3, 1],
    [1, 8, 9, 29, 3, 1],
    [20, 40, 7, 5, 3, 2],
    [16, 48, 5, 7, 3, 1],
    [33, 7, 3, 11, 3, 2],
    [16, 16, 1, 1, 3, 1],
    [16, 16, 2, 2, 3, 1],
    [16, 16, 3, 1, 3, 1],
    [16, 16, 4, 15, 3, 1],
    [16, 16, 1, 1, 3, 2],
    [5, 21, 4, 6, 1, 1],
    [17, 17, 6, 3, 1, 2],
    [4, 4, 2, 2, 3, 2],
    [16, 16, 5, 5, 1, 1],
    [32, 16, 5, 5, 1, 1],
    [64, 16, 5, 5, 1, 1],
];

fn normals<F: Real>(len: usize, seed: u64) -> Vec<F> {
    let mut numbers = vec![F::zero(); len];
    Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut numbers);
    numbers
}

fn layer([inputs, outputs, height, width, size, stride]: [usize; 6]) -> Convolution {
    // Like the first layer of a model, the smallest inputs are stored as they are.
    let channels = if inputs < 5 { inputs } else { inputs.next_multiple_of(LANES) };
    Convolution::new((inputs, ImageLayout { height, width, channels, border: 1 }), outputs, size, stride, 1)
}

/// Random images whose other channels and borders are zeros.
fn images<F: Real>(layout: ImageLayout, channels: usize, seed: u64) -> Vec<F> {
    let mut images = vec![F::zero(); IMAGES * layout.len()];
    let random = normals(IMAGES * layout.height * layout.width * channels, seed);
    let mut random = random.chunks_exact(channels);
    for image in images.chunks_exact_mut(layout.len()) {
        for pixel in layout.rows_mut(image).flat_map(|row| row.chunks_exact_mut(layout.channels)) {
            pixel[..channels].copy_from_slice(random.next().unwrap_or_default());
        }
    }
    images
}

/// Calls `each` with the positions in the input, filters and output of every product of an image.
fn products(
    layer: &Convolution,
    [inputs, outputs, height, width, size, stride]: [usize; 6],
    mut each: impl FnMut(usize, usize, usize),
) {
    let (from, to) = (layer.input(), layer.output());
    for (row, column) in (0..to.height).flat_map(|row| (0..to.width).map(move |column| (row, column))) {
        for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
            let (y, x) = (stride * row + i, stride * column + j);
            let reach = size / 2;
            if y < reach || x < reach || y - reach >= height || x - reach >= width {
                continue;
            }
            for (input, output) in (0..inputs).flat_map(|input| (0..outputs).map(move |output| (input, output))) {
                let weight = ((i * size + j) * inputs + input) * outputs + output;
                each(from.position(y - reach, x - reach) + input, weight, to.position(row, column) + output);
            }
        }
    }
}

fn assert_near<F: Real>(found: &[F], exact: &[f64], what: &str) {
    let scale = exact.iter().fold(1.0, |scale: f64, value| scale.max(value.abs()));
    let worst = found.iter().zip(exact).map(|(found, exact)| (found.f64() - exact).abs()).fold(0.0, f64::max);
    let bound = if F::NAME == "f32" { 3e-6 } else { 1e-14 } * scale;
    assert!(found.len() == exact.len() && worst <= bound, "{what}: {worst} of {scale}");
}

/// All three operations of a layer.
fn check<F: Real>(shape: [usize; 6]) {
    let layer = layer(shape);
    let what = format!("{shape:?} {}", F::NAME);
    let (from, to) = (layer.input().len(), layer.output().len());
    let input = images::<F>(layer.input(), shape[0], 1);
    let output = images::<F>(layer.output(), shape[1], 2);
    let filters = normals::<F>(layer.weights(), 3);
    let start = normals::<F>(layer.weights(), 4);
    let (mut sums, mut input_sums) = (vec![0.0; IMAGES * to], vec![0.0; IMAGES * from]);
    let mut filter_sums: Vec<f64> = start.iter().map(|value| value.f64()).collect();
    products(&layer, shape, |i, w, o| {
        for image in 0..IMAGES {
            let (i, o) = (image * from + i, image * to + o);
            sums[o] += input[i].f64() * filters[w].f64();
            input_sums[i] += output[o].f64() * filters[w].f64();
            filter_sums[w] += output[o].f64() * input[i].f64();
        }
    });

    let mut packed = vec![[F::zero(); LANES]; layer.packed_len()];
    layer.pack(&filters, &mut packed);
    let mut found = vec![F::zero(); IMAGES * to];
    // What was there before is overwritten.
    for image in found.chunks_exact_mut(to) {
        layer.output().rows_mut(image).for_each(|row| row.fill(F::of(7.0)));
    }
    layer.forward(&packed, &input, &mut found);
    assert_near(&found, &sums, &what);

    let mut gradient = vec![[F::zero(); LANES]; layer.packed_len()];
    layer.add_filter_gradient(&input, &output, &mut gradient);
    let mut found = start;
    layer.unpack_gradient(&gradient, &mut found);
    assert_near(&found, &filter_sums, &what);

    if layer.input().channels.is_multiple_of(LANES) {
        layer.pack_for_gradient(&filters, &mut packed);
        let mut found = images::<F>(layer.input(), layer.input().channels, 5);
        layer.input_gradient(&packed, &output, &mut found, false);
        assert_near(&found, &input_sums, &what);
        layer.input_gradient(&packed, &output, &mut found, true);
        let twice: Vec<f64> = input_sums.iter().map(|sum| 2.0 * sum).collect();
        assert_near(&found, &twice, &what);
    }
}

#[test]
fn convolutions_agree_with_direct_sums() {
    for shape in SHAPES {
        check::<f64>(shape);
        check::<f32>(shape);
    }
}

/// Every level with fused multiply-add gives the same bits, and the baseline the same but for rounding.
#[test]
fn levels_agree() {
    fn agree<F: Real>(found: &[Vec<F>], what: &str) {
        let fused = found.len() - usize::from(cfg!(not(target_arch = "aarch64")));
        for other in &found[..fused] {
            assert!(found[0] == *other, "the bits of {what} depend on the level");
        }
        let exact: Vec<f64> = found[0].iter().map(|value| value.f64()).collect();
        assert_near(&found[found.len() - 1], &exact, what);
    }
    fn check<F: Real>(shape: [usize; 6]) {
        let layer = layer(shape);
        let what = format!("{shape:?} {}", F::NAME);
        let (from, to) = (layer.input().len(), layer.output().len());
        let (input, output) = (images::<F>(layer.input(), shape[0], 1), images::<F>(layer.output(), shape[1], 2));
        let mut packed = vec![[F::zero(); LANES]; layer.packed_len()];
        layer.pack(&normals(layer.weights(), 3), &mut packed);
        let on_levels = |run: &mut dyn FnMut(usize) -> Vec<F>| (0..level_count()).map(run).collect::<Vec<_>>();
        agree(
            &on_levels(&mut |level| {
                let mut found = vec![F::zero(); IMAGES * to];
                on_level(level, layer.forward_kernel().call((&input, from), &packed, (&mut found, to), false));
                found
            }),
            &what,
        );
        if layer.input().channels.is_multiple_of(LANES) {
            let mut turned = packed.clone();
            layer.pack_for_gradient(&normals(layer.weights(), 3), &mut turned);
            agree(
                &on_levels(&mut |level| {
                    let (mut found, mut rest) = (input.clone(), &turned[..]);
                    for kernel in layer.input_gradient_kernels() {
                        let filters = rest.split_off(..kernel.blocks * kernel.window_len()).unwrap();
                        on_level(level, kernel.call((&output, to), filters, (&mut found, from), true));
                    }
                    found
                }),
                &what,
            );
        }
        agree(
            &on_levels(&mut |level| {
                let mut gradient = vec![[F::zero(); LANES]; layer.packed_len()];
                on_level(level, filter_gradient::call(layer.forward_kernel(), (&input, from), (&output, to), &mut gradient));
                gradient.into_flattened()
            }),
            &what,
        );
    }
    for shape in SHAPES {
        check::<f32>(shape);
        check::<f64>(shape);
    }
}

/// A negative control of the comparison above: a filter that is turned by half a circle gives other sums.
#[test]
fn turned_filters_differ() {
    let shape = [16, 16, 8, 8, 3, 1];
    let layer = layer(shape);
    let input = images::<f64>(layer.input(), 16, 1);
    let filters = normals::<f64>(layer.weights(), 3);
    let turned: Vec<f64> = filters.chunks_exact(16 * 16).rev().flatten().copied().collect();
    let sums = |filters: &[f64]| {
        let mut packed = vec![[0.0; LANES]; layer.packed_len()];
        layer.pack(filters, &mut packed);
        let mut sums = vec![0.0; IMAGES * layer.output().len()];
        layer.forward(&packed, &input, &mut sums);
        sums
    };
    let difference = sums(&filters).iter().zip(sums(&turned)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(difference > 1.0, "{difference}");
}

#[test]
fn the_first_layer_of_a_network_needs_no_padding_of_its_input() {
    let layer = layer([3, 16, 32, 32, 3, 1]);
    assert_eq!((layer.input().channels, layer.shape(), layer.weights()), (3, [3, 3, 3, 16], 432));
    assert_eq!(layer.products(), 1024 * 432);
}
