//! The end of the network: the average over the pixels of each channel, and a dense layer.

use crate::kernels::convolution::ImageLayout;
use crate::number::Real;

/// The means of the first channels of an image over its pixels.
pub(super) fn average<F: Real>(layout: ImageLayout, image: &[F], means: &mut [F]) {
    means.fill(F::zero());
    for pixel in layout.rows(image).flat_map(|row| row.chunks_exact(layout.channels)) {
        means.iter_mut().zip(pixel).for_each(|(mean, &value)| *mean += value);
    }
    let factor = F::of(1.0 / (layout.height * layout.width) as f64);
    means.iter_mut().for_each(|mean| *mean *= factor);
}

/// The derivative of [`average`]: overwrites the gradient of the pixels.
pub(super) fn average_back<F: Real>(layout: ImageLayout, means: &[F], image: &mut [F]) {
    let factor = F::of(1.0 / (layout.height * layout.width) as f64);
    for pixel in layout.rows_mut(image).flat_map(|row| row.chunks_exact_mut(layout.channels)) {
        pixel[means.len()..].fill(F::zero());
        pixel.iter_mut().zip(means).for_each(|(value, &mean)| *value = factor * mean);
    }
}

/// Writes the outputs of the dense layer. `layer` holds its weights (features × outputs), then its biases.
pub(super) fn outputs<F: Real>(layer: &[F], features: &[F], outputs: &mut [F]) {
    let (weights, biases) = layer.split_at(features.len() * outputs.len());
    outputs.copy_from_slice(biases);
    for (weights, &feature) in weights.chunks_exact(outputs.len()).zip(features) {
        outputs.iter_mut().zip(weights).for_each(|(output, &weight)| *output += feature * weight);
    }
}

/// The derivative of [`outputs`]: overwrites the gradients of the features, and adds that of the layer to `sums`.
pub(super) fn outputs_back<F: Real>(layer: &[F], features: &[F], outputs: &[F], (gradients, sums): (&mut [F], &mut [F])) {
    let (weights, _) = layer.split_at(features.len() * outputs.len());
    let (weight_sums, bias_sums) = sums.split_at_mut(features.len() * outputs.len());
    bias_sums.iter_mut().zip(outputs).for_each(|(sum, &output)| *sum += output);
    let rows = weights.chunks_exact(outputs.len()).zip(weight_sums.chunks_exact_mut(outputs.len()));
    for (((weights, sums), &feature), of_feature) in rows.zip(features).zip(gradients) {
        let mut gradient = F::zero();
        for ((sum, &weight), &output) in sums.iter_mut().zip(weights).zip(outputs) {
            *sum += feature * output;
            gradient += weight * output;
        }
        *of_feature = gradient;
    }
}
