//! The forward and backward pass of one particle over a block of images.

use super::architecture::{Activation, Architecture, Filters, Shortcut, Unit};
use super::{elementwise, head};
use crate::kernels::convolution::{ImageLayout, LANES};
use crate::models::{Buffer, Scratch};
use crate::number::Real;
use ndarray::ArrayView2;
use std::mem::take;

/// Filter response normalization adds this to the mean square, so that it never divides by 0.
const EPSILON: f64 = 1e-6;

/// The buffers of one thread for passes over a block of images.
pub(super) struct Memory<F> {
    /// The images, then the output of each unit. Without a backward pass, a ring of [`KEPT`] buffers.
    values: Vec<Buffer<F>>,
    /// The sums of each unit's convolution. Without a backward pass, one buffer for all of them.
    sums: Vec<Buffer<F>>,
    /// For each unit, the inverse root mean square of each image's channels.
    inverses: Vec<Buffer<F>>,
    /// Gradients of a unit's output, of its input, and of the input of a residual block; empty without a backward pass.
    gradients: [Buffer<F>; 3],
    /// The filters of a layer as kernels read them.
    packed: Buffer<F>,
    /// A row of pixels.
    row: Buffer<F>,
    /// Four numbers for each channel of a unit.
    channels: [Buffer<F>; 4],
    /// The features that the dense layer sees, images × features, and their gradients.
    features: [Buffer<F>; 2],
    /// Images × outputs. A backward pass reads it as the derivatives of the outputs.
    outputs: Buffer<F>,
    /// The score of the block, of length d; empty without a backward pass.
    score: Buffer<F>,
}

/// Without a backward pass, a unit needs three buffers: its output, its input, and the block's input for the shortcut.
const KEPT: usize = 3;

/// The lengths of the buffers in [`Memory`].
struct Lengths {
    values: Vec<usize>,
    sums: Vec<usize>,
    inverses: Vec<usize>,
    gradient: usize,
    packed: usize,
    row: usize,
    channels: usize,
    features: usize,
    outputs: usize,
    score: usize,
}

impl Lengths {
    /// Those for blocks of `images` images, and for scores of this length if there is a backward pass.
    fn new(architecture: &Architecture, images: usize, score: Option<usize>) -> Self {
        let layouts = || std::iter::once(architecture.input()).chain(architecture.units.iter().map(Unit::output));
        let of_images = |layout: ImageLayout| images * layout.len();
        let largest = layouts().map(of_images).max().unwrap_or(0);
        let channels = architecture.units.iter().map(|unit| unit.output().channels).max().unwrap_or(0);
        let packed = architecture.all_filters().map(|(filters, _)| filters.convolution.packed_len()).max().unwrap_or(0);
        let keeps_all = score.is_some();
        Self {
            values: if keeps_all { layouts().map(of_images).collect() } else { vec![largest; KEPT] },
            sums: if keeps_all { layouts().skip(1).map(of_images).collect() } else { vec![largest] },
            inverses: if keeps_all {
                layouts().skip(1).map(|layout| images * layout.channels).collect()
            } else {
                vec![images * channels]
            },
            gradient: if keeps_all { largest } else { 0 },
            packed: packed * LANES,
            row: layouts().map(|layout| layout.width * layout.channels).max().unwrap_or(0),
            channels,
            features: images * architecture.features(),
            outputs: images * architecture.outputs,
            score: score.unwrap_or(0),
        }
    }

    fn sum(&self) -> usize {
        let lists = [&self.values, &self.sums, &self.inverses].into_iter().flatten().sum::<usize>();
        let repeated = 3 * self.gradient + 4 * self.channels + 2 * self.features;
        lists + repeated + self.packed + self.row + self.outputs + self.score
    }
}

/// The number of values in the memory of a thread for blocks of `images` images and a backward pass with scores of this length.
pub(super) fn buffered_values(architecture: &Architecture, images: usize, score: usize) -> usize {
    Lengths::new(architecture, images, Some(score)).sum()
}

impl<F: Real> Memory<F> {
    /// Memory for blocks of `images` images, and for scores of this length if there is a backward pass.
    pub fn take(architecture: &Architecture, images: usize, score: Option<usize>, scratch: &mut Scratch<F>) -> Self {
        let lengths = Lengths::new(architecture, images, score);
        let mut all = |lengths: &[usize]| lengths.iter().map(|&len| scratch.take(len)).collect::<Vec<_>>();
        let (values, sums, inverses) = (all(&lengths.values), all(&lengths.sums), all(&lengths.inverses));
        Self {
            values,
            sums,
            inverses,
            gradients: std::array::from_fn(|_| scratch.take(lengths.gradient)),
            packed: scratch.take(lengths.packed),
            row: scratch.take(lengths.row),
            channels: std::array::from_fn(|_| scratch.take(lengths.channels)),
            features: std::array::from_fn(|_| scratch.take(lengths.features)),
            outputs: scratch.take(lengths.outputs),
            score: scratch.take(lengths.score),
        }
    }

    /// Returns the buffers.
    pub fn put(self, scratch: &mut Scratch<F>) {
        let lists = [self.values, self.sums, self.inverses].into_iter().flatten();
        let others = [self.packed, self.row, self.outputs, self.score];
        lists
            .chain(self.gradients)
            .chain(self.channels)
            .chain(self.features)
            .chain(others)
            .for_each(|buffer| scratch.put(buffer));
    }

    /// The score of the last backward pass.
    pub fn score(&self) -> &[F] {
        &self.score
    }
}

/// A pass of one particle over a block of images.
pub(super) struct Pass<'a, F> {
    architecture: &'a Architecture,
    theta: &'a [F],
    images: usize,
    memory: &'a mut Memory<F>,
}

impl<'a, F: Real> Pass<'a, F> {
    /// Computes the outputs for images, one per row.
    pub fn forward(architecture: &'a Architecture, theta: &'a [F], x: ArrayView2<F>, memory: &'a mut Memory<F>) -> Self {
        memory.score.fill(F::zero());
        let images = x.nrows();
        let layout = architecture.input();
        for (pixels, image) in x.rows().into_iter().zip(memory.values[0].chunks_exact_mut(layout.len())) {
            elementwise::clear_border(layout, image);
            let mut pixels = pixels.iter();
            for row in layout.rows_mut(image) {
                row.iter_mut().zip(&mut pixels).for_each(|(value, &pixel)| *value = pixel);
            }
        }
        let mut pass = Self { architecture, theta, images, memory };
        for number in 0..architecture.units.len() {
            pass.forward_unit(number);
        }
        pass.forward_head();
        pass
    }

    /// The outputs, images × outputs.
    pub fn outputs(&mut self) -> &mut [F] {
        self.outputs_and_score().0
    }

    /// The outputs and the score, which [`backward`](Self::backward) adds to.
    pub fn outputs_and_score(&mut self) -> (&mut [F], &mut [F]) {
        (&mut self.memory.outputs[..self.images * self.architecture.outputs], &mut self.memory.score)
    }

    /// The index in [`Memory::values`] of the input of a unit. For the number of units, the index of the last unit's output.
    fn values_index(&self, number: usize) -> usize {
        if self.memory.score.is_empty() { number % KEPT } else { number }
    }

    /// The index in [`Memory::sums`] of the sums of a unit.
    fn sums_index(&self, number: usize) -> usize {
        if self.memory.score.is_empty() { 0 } else { number }
    }

    /// The layout of the input of a unit. For the number of units, the layout of the last unit's output.
    fn layout(&self, number: usize) -> ImageLayout {
        number.checked_sub(1).map_or_else(|| self.architecture.input(), |before| self.architecture.units[before].output())
    }

    fn forward_unit(&mut self, number: usize) {
        let architecture = self.architecture;
        let unit = &architecture.units[number];
        let place = self.sums_index(number);
        let mut sums = take(&mut self.memory.sums[place]);
        let input = &self.memory.values[self.values_index(number)];
        convolve(&unit.filters, self.theta, self.images, (input, &mut sums), &mut self.memory.packed);
        let layout = unit.output();
        if unit.gains.is_some() {
            let (epsilon, pixels) = (F::of(EPSILON), F::of(1.0 / (layout.height * layout.width) as f64));
            let inverses = self.memory.inverses[place].chunks_exact_mut(layout.channels);
            for (sums, inverses) in sums.chunks_exact(layout.len()).zip(inverses).take(self.images) {
                elementwise::sums_of_squares(layout, sums, inverses);
                inverses.iter_mut().for_each(|sum| *sum = F::one() / (*sum * pixels + epsilon).sqrt());
            }
        }
        self.memory.sums[place] = sums;
        let next = self.values_index(number + 1);
        let mut values = take(&mut self.memory.values[next]);
        self.preactivations(number, &mut values);
        for image in values.chunks_exact_mut(layout.len()).take(self.images) {
            elementwise::clear_border(layout, image);
            elementwise::activate(architecture.activation, layout, image, &mut self.memory.row);
        }
        self.memory.values[next] = values;
    }

    /// Writes the arguments of a unit's activation, from the sums of its convolution.
    fn preactivations(&mut self, number: usize, values: &mut [F]) {
        let unit = &self.architecture.units[number];
        let layout = unit.output();
        if let Some(shortcut) = &unit.shortcut {
            let input = &self.memory.values[self.values_index(number - 1)];
            match shortcut {
                Shortcut::Copy { from, stride } => {
                    let images = input.chunks_exact(from.len()).zip(values.chunks_exact_mut(layout.len()));
                    for (input, values) in images.take(self.images) {
                        elementwise::copy_pixels((*from, input), *stride, (layout, values));
                    }
                }
                Shortcut::Projection(filters) => {
                    convolve(filters, self.theta, self.images, (input, values), &mut self.memory.packed);
                }
            }
        }
        let place = self.sums_index(number);
        let [scales, offsets, ..] = &mut self.memory.channels;
        copy_padded(&self.theta[unit.offsets..][..unit.channels()], &mut offsets[..layout.channels]);
        let images = self.memory.sums[place].chunks_exact(layout.len()).zip(values.chunks_exact_mut(layout.len()));
        for (image, (sums, values)) in images.take(self.images).enumerate() {
            write_scales(
                unit,
                self.theta,
                &self.memory.inverses[place][image * layout.channels..],
                &mut scales[..layout.channels],
            );
            let (scales, offsets) = (&scales[..layout.channels], &offsets[..layout.channels]);
            elementwise::scale_and_shift(layout, sums, scales, offsets, values, unit.shortcut.is_some());
        }
    }

    fn forward_head(&mut self) {
        let architecture = self.architecture;
        let layout = architecture.last_layout();
        let values = &self.memory.values[self.values_index(architecture.units.len())];
        let layer = &self.theta[architecture.head..architecture.parameters()];
        let results = self.memory.features[0].chunks_exact_mut(architecture.features());
        let results = results.zip(self.memory.outputs.chunks_exact_mut(architecture.outputs));
        for (image, (features, outputs)) in values.chunks_exact(layout.len()).zip(results).take(self.images) {
            head::average(layout, image, features);
            head::outputs(layer, features, outputs);
        }
    }

    /// Reads [`outputs`](Self::outputs) as derivatives with respect to the outputs and adds those with respect to θ to the score.
    pub fn backward(&mut self) {
        let architecture = self.architecture;
        let [mut output_gradient, mut input_gradient, mut shortcut_gradient] = take(&mut self.memory.gradients);
        self.backward_head(&mut output_gradient);
        for number in (0..architecture.units.len()).rev() {
            let unit = &architecture.units[number];
            // A unit whose output a shortcut passes on has a gradient from there.
            let feeds_shortcut = architecture.units.get(number + 1).is_some_and(|next| next.shortcut.is_some());
            self.backward_unit(number, &mut output_gradient, &mut input_gradient, &mut shortcut_gradient);
            if unit.shortcut.is_none() && feeds_shortcut {
                std::mem::swap(&mut output_gradient, &mut shortcut_gradient);
            } else {
                std::mem::swap(&mut output_gradient, &mut input_gradient);
            }
        }
        self.memory.gradients = [output_gradient, input_gradient, shortcut_gradient];
    }

    fn backward_head(&mut self, output_gradient: &mut [F]) {
        let architecture = self.architecture;
        let layout = architecture.last_layout();
        let range = architecture.head..architecture.parameters();
        let (layer, sums) = (&self.theta[range.clone()], &mut self.memory.score[range]);
        let [features, gradients] = &mut self.memory.features;
        let features = features.chunks_exact(architecture.features()).zip(gradients.chunks_exact_mut(architecture.features()));
        let outputs = self.memory.outputs.chunks_exact(architecture.outputs);
        let images = output_gradient.chunks_exact_mut(layout.len());
        for (((features, gradients), outputs), image) in features.zip(outputs).zip(images).take(self.images) {
            head::outputs_back(layer, features, outputs, (gradients, sums));
            head::average_back(layout, gradients, image);
        }
    }

    /// Turns the gradient of a unit's output into the gradients of its parameters and its input. In the second unit of a residual block, writes
    /// the gradient of the block's input to `shortcut_gradient`, through the shortcut only, and the gradient of the unit's own input to
    /// `input_gradient`. In the first unit of a block, adds the gradient of its input to `shortcut_gradient`. Elsewhere writes it to
    /// `input_gradient`.
    fn backward_unit(&mut self, number: usize, output_gradient: &mut [F], input_gradient: &mut [F], shortcut_gradient: &mut [F]) {
        let architecture = self.architecture;
        let unit = &architecture.units[number];
        let layout = unit.output();
        let images = self.images;
        let values = match architecture.activation {
            Activation::Relu => &self.memory.values[number + 1],
            Activation::Swish => {
                self.preactivations(number, input_gradient);
                &*input_gradient
            }
        };
        for (gradient, values) in
            output_gradient.chunks_exact_mut(layout.len()).zip(values.chunks_exact(layout.len())).take(images)
        {
            elementwise::clear_border(layout, gradient);
            elementwise::activate_back(architecture.activation, layout, values, gradient, &mut self.memory.row);
        }
        match &unit.shortcut {
            None => {}
            Some(Shortcut::Copy { from, stride }) => {
                let gradients = shortcut_gradient.chunks_exact_mut(from.len()).zip(output_gradient.chunks_exact(layout.len()));
                for (shortcut_gradient, output_gradient) in gradients.take(images) {
                    elementwise::copy_pixels_back((*from, shortcut_gradient), *stride, (layout, output_gradient));
                }
            }
            Some(Shortcut::Projection(filters)) => {
                let from = self.layout(number - 1);
                for image in shortcut_gradient.chunks_exact_mut(from.len()).take(images) {
                    from.rows_mut(image).for_each(|row| row.fill(F::zero()));
                }
                self.filter_gradient(filters, number - 1, output_gradient);
                self.input_gradient(filters, output_gradient, shortcut_gradient, true);
            }
        }
        self.normalization_back(number, output_gradient);
        self.filter_gradient(&unit.filters, number, output_gradient);
        if number > 0 {
            let feeds_shortcut = architecture.units.get(number + 1).is_some_and(|next| next.shortcut.is_some());
            if unit.shortcut.is_none() && feeds_shortcut {
                self.input_gradient(&unit.filters, output_gradient, shortcut_gradient, true);
            } else {
                self.input_gradient(&unit.filters, output_gradient, input_gradient, false);
            }
        }
    }

    /// Adds the gradients of a unit's gains and offsets, and turns the gradient of its normalized sums into that of the sums.
    fn normalization_back(&mut self, number: usize, output_gradient: &mut [F]) {
        let unit = &self.architecture.units[number];
        let layout = unit.output();
        let pixels = F::of(1.0 / (layout.height * layout.width) as f64);
        let [scales, factors, totals, products] = &mut self.memory.channels;
        let (scales, factors) = (&mut scales[..layout.channels], &mut factors[..layout.channels]);
        let (totals, products) = (&mut totals[..layout.channels], &mut products[..layout.channels]);
        let images = output_gradient.chunks_exact_mut(layout.len()).zip(self.memory.sums[number].chunks_exact(layout.len()));
        for (image, (gradient, sums)) in images.take(self.images).enumerate() {
            elementwise::gradient_sums(layout, gradient, sums, totals, products);
            let offsets = &mut self.memory.score[unit.offsets..][..unit.channels()];
            offsets.iter_mut().zip(&*totals).for_each(|(sum, &total)| *sum += total);
            let Some(gains) = unit.gains else { continue };
            let inverses = &self.memory.inverses[number][image * layout.channels..][..layout.channels];
            let gain_sums = &mut self.memory.score[gains..][..unit.channels()];
            for ((sum, &product), &inverse) in gain_sums.iter_mut().zip(&*products).zip(inverses) {
                *sum += inverse * product;
            }
            write_scales(unit, self.theta, inverses, scales);
            for (((factor, &scale), &product), &inverse) in factors.iter_mut().zip(&*scales).zip(&*products).zip(inverses) {
                *factor = scale * inverse * inverse * product * pixels;
            }
            elementwise::scale_gradient(layout, gradient, sums, scales, factors);
        }
    }

    /// Adds the gradient of filters that read the input of a unit to the score.
    fn filter_gradient(&mut self, filters: &Filters, input: usize, gradient: &[F]) {
        let Filters { convolution, offset } = filters;
        let packed = &mut self.memory.packed.as_chunks_mut::<LANES>().0[..convolution.packed_len()];
        packed.as_flattened_mut().fill(F::zero());
        let input = &self.memory.values[input][..self.images * convolution.input().len()];
        let gradient = &gradient[..self.images * convolution.output().len()];
        convolution.add_filter_gradient(input, gradient, packed);
        convolution.unpack_gradient(packed, &mut self.memory.score[*offset..][..convolution.weights()]);
    }

    /// Writes or adds the gradient of the input of filters, given that of their output.
    fn input_gradient(&mut self, filters: &Filters, output: &[F], input: &mut [F], add: bool) {
        let Filters { convolution, offset } = filters;
        let packed = &mut self.memory.packed.as_chunks_mut::<LANES>().0[..convolution.packed_len()];
        convolution.pack_for_gradient(&self.theta[*offset..][..convolution.weights()], packed);
        let output = &output[..self.images * convolution.output().len()];
        convolution.input_gradient(packed, output, &mut input[..self.images * convolution.input().len()], add);
    }
}

/// Computes the sums of filters over the pixels of images.
fn convolve<F: Real>(filters: &Filters, theta: &[F], images: usize, (input, sums): (&[F], &mut [F]), packed: &mut [F]) {
    let Filters { convolution, offset } = filters;
    let packed = &mut packed.as_chunks_mut::<LANES>().0[..convolution.packed_len()];
    convolution.pack(&theta[*offset..][..convolution.weights()], packed);
    let input = &input[..images * convolution.input().len()];
    convolution.forward(packed, input, &mut sums[..images * convolution.output().len()]);
}

/// Writes the factor of each stored channel's sums: gain times inverse root mean square, or 1 without normalization.
fn write_scales<F: Real>(unit: &Unit, theta: &[F], inverses: &[F], scales: &mut [F]) {
    match unit.gains {
        None => scales.fill(F::one()),
        Some(gains) => {
            copy_padded(&theta[gains..][..unit.channels()], scales);
            scales.iter_mut().zip(inverses).for_each(|(scale, &inverse)| *scale *= inverse);
        }
    }
}

/// Copies numbers, and fills what is left by zeros.
fn copy_padded<F: Real>(from: &[F], to: &mut [F]) {
    let (copies, rest) = to.split_at_mut(from.len());
    copies.copy_from_slice(from);
    rest.fill(F::zero());
}
