//! What happens to each number of an image between convolutions: normalization, shortcut and activation, and their derivatives.

use super::architecture::Activation;
use crate::kernels::convolution::{ImageLayout, LANES};
use crate::number::Real;
use crate::vector::{multiply_add, sigmoid, vectorized};

/// Sets the border of an image to 0.
pub(super) fn clear_border<F: Real>(layout: ImageLayout, image: &mut [F]) {
    let first = layout.position(0, 0);
    let (row_len, gap) = (layout.width * layout.channels, 2 * layout.border * layout.channels);
    image[..first].fill(F::zero());
    let mut rest = &mut image[first..];
    for _ in 0..layout.height {
        let end = rest.len().min(row_len + gap);
        rest[row_len..end].fill(F::zero());
        rest = &mut rest[end..];
    }
    rest.fill(F::zero());
}

/// Copies every `stride`-th pixel of an image. Channels that only the target has become 0.
pub(super) fn copy_pixels<F: Real>((from, source): (ImageLayout, &[F]), stride: usize, (to, target): (ImageLayout, &mut [F])) {
    let channels = from.channels.min(to.channels);
    for (from_row, to_row) in from.rows(source).step_by(stride).zip(to.rows_mut(target)) {
        if stride == 1 && from.channels == to.channels {
            to_row.copy_from_slice(from_row);
            continue;
        }
        let pixels = from_row.chunks_exact(from.channels).step_by(stride);
        for (from, to) in pixels.zip(to_row.chunks_exact_mut(to.channels)) {
            to[..channels].copy_from_slice(&from[..channels]);
            to[channels..].fill(F::zero());
        }
    }
}

/// The derivative of [`copy_pixels`]: overwrites the gradient of its source, given that of its target.
pub(super) fn copy_pixels_back<F: Real>(
    (from, source): (ImageLayout, &mut [F]),
    stride: usize,
    (to, target): (ImageLayout, &[F]),
) {
    if stride > 1 || from.channels != to.channels {
        from.rows_mut(source).for_each(|row| row.fill(F::zero()));
    }
    let channels = from.channels.min(to.channels);
    for (from_row, to_row) in from.rows_mut(source).step_by(stride).zip(to.rows(target)) {
        if stride == 1 && from.channels == to.channels {
            from_row.copy_from_slice(to_row);
            continue;
        }
        let pixels = from_row.chunks_exact_mut(from.channels).step_by(stride);
        for (from, to) in pixels.zip(to_row.chunks_exact(to.channels)) {
            from[..channels].copy_from_slice(&to[..channels]);
        }
    }
}

vectorized! {
    /// Overwrites `sums` (one for each stored channel) by the sums of squares over the pixels of an image.
    pub(super) fn sums_of_squares<F: Real>(layout: ImageLayout, image: &[F], sums: &mut [F]) -> () {
        for (block, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut total = [F::zero(); LANES];
            for row in layout.rows(image) {
                for pixel in row.chunks_exact(layout.channels) {
                    let pixel = &pixel.as_chunks::<LANES>().0[block];
                    for lane in 0..LANES {
                        total[lane] = multiply_add::<F, U>(pixel[lane], pixel[lane], total[lane]);
                    }
                }
            }
            *sums = total;
        }
    }
}

vectorized! {
    /// Writes scale · z + offset, with a scale and an offset for each stored channel, or adds it to the numbers of an image.
    pub(super) fn scale_and_shift<F: Real>(layout: ImageLayout, z: &[F], scales: &[F], offsets: &[F], image: &mut [F], add: bool) -> () {
        let (scales, offsets) = (scales.as_chunks::<LANES>().0, offsets.as_chunks::<LANES>().0);
        for (z, row) in layout.rows(z).zip(layout.rows_mut(image)) {
            let pixels = z.chunks_exact(layout.channels).zip(row.chunks_exact_mut(layout.channels));
            for (z, pixel) in pixels {
                let pixel = pixel.as_chunks_mut::<LANES>().0.iter_mut().zip(z.as_chunks::<LANES>().0);
                for ((pixel, z), (scales, offsets)) in pixel.zip(scales.iter().zip(offsets)) {
                    // A local array: the compiler need not assume that its stores change what is read next.
                    let mut values = if add { *pixel } else { [F::zero(); LANES] };
                    for lane in 0..LANES {
                        values[lane] += multiply_add::<F, U>(scales[lane], z[lane], offsets[lane]);
                    }
                    *pixel = values;
                }
            }
        }
    }
}

vectorized! {
    /// Overwrites `sums` and `products` (one for each stored channel) by the sums of the gradient and of its products with z, over the pixels.
    pub(super) fn gradient_sums<F: Real>(layout: ImageLayout, gradient: &[F], z: &[F], sums: &mut [F], products: &mut [F]) -> () {
        let both = sums.as_chunks_mut::<LANES>().0.iter_mut().zip(products.as_chunks_mut::<LANES>().0);
        for (block, (sums, products)) in both.enumerate() {
            let (mut total, mut total_product) = ([F::zero(); LANES], [F::zero(); LANES]);
            for (gradient, z) in layout.rows(gradient).zip(layout.rows(z)) {
                for (gradient, z) in gradient.chunks_exact(layout.channels).zip(z.chunks_exact(layout.channels)) {
                    let (gradient, z) = (&gradient.as_chunks::<LANES>().0[block], &z.as_chunks::<LANES>().0[block]);
                    for lane in 0..LANES {
                        total[lane] += gradient[lane];
                        total_product[lane] = multiply_add::<F, U>(gradient[lane], z[lane], total_product[lane]);
                    }
                }
            }
            *sums = total;
            *products = total_product;
        }
    }
}

vectorized! {
    /// Replaces the gradient g of an image by scale · g − factor · z, with a scale and a factor for each stored channel.
    pub(super) fn scale_gradient<F: Real>(layout: ImageLayout, gradient: &mut [F], z: &[F], scales: &[F], factors: &[F]) -> () {
        let (scales, factors) = (scales.as_chunks::<LANES>().0, factors.as_chunks::<LANES>().0);
        for (gradient, z) in layout.rows_mut(gradient).zip(layout.rows(z)) {
            let pixels = gradient.chunks_exact_mut(layout.channels).zip(z.chunks_exact(layout.channels));
            for (gradient, z) in pixels {
                let pixel = gradient.as_chunks_mut::<LANES>().0.iter_mut().zip(z.as_chunks::<LANES>().0);
                for ((gradient, z), (scales, factors)) in pixel.zip(scales.iter().zip(factors)) {
                    let mut values = *gradient;
                    for lane in 0..LANES {
                        values[lane] = multiply_add::<F, U>(-factors[lane], z[lane], scales[lane] * values[lane]);
                    }
                    *gradient = values;
                }
            }
        }
    }
}

/// Applies the activation to all pixels of an image; `row` is a buffer for a row.
pub(super) fn activate<F: Real>(activation: Activation, layout: ImageLayout, image: &mut [F], row: &mut [F]) {
    for values in layout.rows_mut(image) {
        match activation {
            Activation::Relu => rectify(values),
            Activation::Swish => {
                let sigmoids = &mut row[..values.len()];
                sigmoids.copy_from_slice(values);
                sigmoid(sigmoids);
                multiply(values, sigmoids);
            }
        }
    }
}

/// Multiplies the gradient of an image by the derivative of the activation. `values` are its arguments, or for [`Activation::Relu`] its
/// arguments or its values; `row` is a buffer for a row.
pub(super) fn activate_back<F: Real>(
    activation: Activation,
    layout: ImageLayout,
    values: &[F],
    gradient: &mut [F],
    row: &mut [F],
) {
    for (gradient, values) in layout.rows_mut(gradient).zip(layout.rows(values)) {
        match activation {
            Activation::Relu => rectify_back(values, gradient),
            Activation::Swish => {
                let sigmoids = &mut row[..values.len()];
                sigmoids.copy_from_slice(values);
                sigmoid(sigmoids);
                swish_back(values, sigmoids, gradient);
            }
        }
    }
}

vectorized! {
    fn rectify<F: Real>(values: &mut [F]) -> () {
        for value in values {
            *value = if *value > F::zero() { *value } else { F::zero() };
        }
    }
}

vectorized! {
    fn rectify_back<F: Real>(values: &[F], gradient: &mut [F]) -> () {
        for (gradient, &value) in gradient.iter_mut().zip(values) {
            *gradient = if value > F::zero() { *gradient } else { F::zero() };
        }
    }
}

vectorized! {
    fn multiply<F: Real>(values: &mut [F], factors: &[F]) -> () {
        for (value, &factor) in values.iter_mut().zip(factors) {
            *value *= factor;
        }
    }
}

vectorized! {
    /// The derivative of x σ(x) is σ(x) + x σ(x) (1 − σ(x)).
    fn swish_back<F: Real>(values: &[F], sigmoids: &[F], gradient: &mut [F]) -> () {
        for ((gradient, &value), &sigmoid_of_value) in gradient.iter_mut().zip(values).zip(sigmoids) {
            *gradient *= multiply_add::<F, U>(value * sigmoid_of_value, F::one() - sigmoid_of_value, sigmoid_of_value);
        }
    }
}
