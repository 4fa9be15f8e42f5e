//! The forward and backward pass of one particle over a block of images.

use super::architecture::{Activation, Architecture, Filters, Shortcut, Unit};
use super::{elementwise, head};
use crate::kernels::convolution::{ImageLayout, LANES};
use crate::models::Scratch;
use crate::number::Real;
use ndarray::ArrayView2;
use std::mem::take;

/// The square of the root mean square that filter response normalization adds, so that it never divides by 0.
const EPSILON: f64 = 1e-6;

/// The buffers of one thread for passes over a block of images.
pub(super) struct Memory<F> {
    /// The input of each unit and the output of the last one; without a backward pass, of the last three.
    values: Vec<Vec<F>>,
    /// The sums of each unit's convolution; without a backward pass, of the last one.
    sums: Vec<Vec<F>>,
    /// For each unit, the inverse root mean square of each image's channels.
    inverses: Vec<Vec<F>>,
    /// Gradients of the values before and after a unit and of its shortcut; none without a backward pass.
    gradients: [Vec<F>; 3],
    /// The filters of a layer as kernels read them.
    packed: Vec<F>,
    /// A row of pixels.
    row: Vec<F>,
    /// Four numbers for each channel of a unit.
    channels: [Vec<F>; 4],
    /// The features that the dense layer sees, images × features, and their gradients.
    features: [Vec<F>; 2],
    /// Images × outputs. A backward pass reads it as the derivatives of the outputs.
    outputs: Vec<F>,
    /// The score of the block, of length d; empty without a backward pass.
    score: Vec<F>,
}

/// The values that are kept without a backward pass: a unit's output, its input, and that of the unit before.
const KEPT: usize = 3;

impl<F: Real> Memory<F> {
    /// Memory for blocks of so many images, and for scores of this length if there is a backward pass.
    pub fn take(architecture: &Architecture, images: usize, score: Option<usize>, scratch: &mut Scratch<F>) -> Self {
        let layouts = || std::iter::once(architecture.input()).chain(architecture.units.iter().map(Unit::output));
        let of_images = |layout: ImageLayout| images * layout.len();
        let largest = layouts().map(of_images).max().unwrap_or(0);
        let channels = architecture.units.iter().map(|unit| unit.output().channels).max().unwrap_or(0);
        let packed = architecture.all_filters().map(|(filters, _)| filters.convolution.packed_len()).max().unwrap_or(0);
        let row = layouts().map(|layout| layout.width * layout.channels).max().unwrap_or(0);
        let keeps_all = score.is_some();
        Self {
            values: if keeps_all {
                layouts().map(|layout| scratch.take(of_images(layout))).collect()
            } else {
                (0..KEPT).map(|_| scratch.take(largest)).collect()
            },
            sums: if keeps_all {
                layouts().skip(1).map(|layout| scratch.take(of_images(layout))).collect()
            } else {
                vec![scratch.take(largest)]
            },
            inverses: if keeps_all {
                layouts().skip(1).map(|layout| scratch.take(images * layout.channels)).collect()
            } else {
                vec![scratch.take(images * channels)]
            },
            gradients: std::array::from_fn(|_| scratch.take(if keeps_all { largest } else { 0 })),
            packed: scratch.take(packed * LANES),
            row: scratch.take(row),
            channels: std::array::from_fn(|_| scratch.take(channels)),
            features: std::array::from_fn(|_| scratch.take(images * architecture.features())),
            outputs: scratch.take(images * architecture.outputs),
            score: scratch.take(score.unwrap_or(0)),
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

    /// The number of values in memory for blocks of so many images.
    pub fn size(architecture: &Architecture, images: usize, score: Option<usize>) -> usize {
        let mut scratch = Scratch::new();
        let memory = Self::take(architecture, images, score, &mut scratch);
        let lists = [&memory.values, &memory.sums, &memory.inverses].into_iter().flatten();
        let others = [&memory.packed, &memory.row, &memory.outputs, &memory.score];
        lists.chain(&memory.gradients).chain(&memory.channels).chain(&memory.features).chain(others).map(Vec::len).sum()
    }
}

/// A pass of one particle over a block of images.
pub(super) struct Pass<'a, F> {
    architecture: &'a Architecture,
    theta: &'a [F],
    /// The number of images.
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

    /// Where the input of a unit is, or with the number of units the output of the last.
    fn values_of(&self, number: usize) -> usize {
        if self.memory.score.is_empty() { number % KEPT } else { number }
    }

    /// Where the sums of a unit are.
    fn sums_of(&self, number: usize) -> usize {
        if self.memory.score.is_empty() { 0 } else { number }
    }

    /// The layout of the input of a unit, or with the number of units the output of the last.
    fn layout(&self, number: usize) -> ImageLayout {
        number.checked_sub(1).map_or_else(|| self.architecture.input(), |before| self.architecture.units[before].output())
    }

    fn forward_unit(&mut self, number: usize) {
        let architecture = self.architecture;
        let unit = &architecture.units[number];
        let place = self.sums_of(number);
        let mut sums = take(&mut self.memory.sums[place]);
        let input = &self.memory.values[self.values_of(number)];
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
        let next = self.values_of(number + 1);
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
            let input = &self.memory.values[self.values_of(number - 1)];
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
        let place = self.sums_of(number);
        let [scales, offsets, ..] = &mut self.memory.channels;
        copy_padded(&self.theta[unit.offsets..][..unit.channels()], &mut offsets[..layout.channels]);
        let images = self.memory.sums[place].chunks_exact(layout.len()).zip(values.chunks_exact_mut(layout.len()));
        for (image, (sums, values)) in images.take(self.images).enumerate() {
            scales_of(unit, self.theta, &self.memory.inverses[place][image * layout.channels..], &mut scales[..layout.channels]);
            let (scales, offsets) = (&scales[..layout.channels], &offsets[..layout.channels]);
            elementwise::scale(layout, sums, scales, offsets, values, unit.shortcut.is_some());
        }
    }

    fn forward_head(&mut self) {
        let architecture = self.architecture;
        let layout = architecture.last_layout();
        let values = &self.memory.values[self.values_of(architecture.units.len())];
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
        let [mut after, mut before, mut around] = take(&mut self.memory.gradients);
        self.backward_head(&mut after);
        for number in (0..architecture.units.len()).rev() {
            let unit = &architecture.units[number];
            // A unit whose output a shortcut passes on has a gradient from there.
            let has_more = architecture.units.get(number + 1).is_some_and(|next| next.shortcut.is_some());
            self.backward_unit(number, &mut after, &mut before, &mut around);
            if unit.shortcut.is_none() && has_more {
                std::mem::swap(&mut after, &mut around);
            } else {
                std::mem::swap(&mut after, &mut before);
            }
        }
        self.memory.gradients = [after, before, around];
    }

    fn backward_head(&mut self, after: &mut [F]) {
        let architecture = self.architecture;
        let layout = architecture.last_layout();
        let range = architecture.head..architecture.parameters();
        let (layer, sums) = (&self.theta[range.clone()], &mut self.memory.score[range]);
        let [features, gradients] = &mut self.memory.features;
        let features = features.chunks_exact(architecture.features()).zip(gradients.chunks_exact_mut(architecture.features()));
        let outputs = self.memory.outputs.chunks_exact(architecture.outputs);
        let images = after.chunks_exact_mut(layout.len());
        for (((features, gradients), outputs), image) in features.zip(outputs).zip(images).take(self.images) {
            head::outputs_back(layer, features, outputs, (gradients, sums));
            head::average_back(layout, gradients, image);
        }
    }

    /// From the gradient of a unit's output to those of its parameters and its input. `around` is the gradient of the input of the unit
    /// before if this unit has a shortcut; if the next unit has one, it is added to that of this unit's input, which is then in `around`.
    fn backward_unit(&mut self, number: usize, after: &mut [F], before: &mut [F], around: &mut [F]) {
        let architecture = self.architecture;
        let unit = &architecture.units[number];
        let layout = unit.output();
        let images = self.images;
        // The activation.
        let values = match architecture.activation {
            Activation::Relu => &self.memory.values[number + 1],
            Activation::Swish => {
                self.preactivations(number, before);
                &*before
            }
        };
        for (gradient, values) in after.chunks_exact_mut(layout.len()).zip(values.chunks_exact(layout.len())).take(images) {
            elementwise::clear_border(layout, gradient);
            elementwise::activate_back(architecture.activation, layout, values, gradient, &mut self.memory.row);
        }
        match &unit.shortcut {
            None => {}
            Some(Shortcut::Copy { from, stride }) => {
                let gradients = around.chunks_exact_mut(from.len()).zip(after.chunks_exact(layout.len()));
                for (around, after) in gradients.take(images) {
                    elementwise::copy_pixels_back((*from, around), *stride, (layout, after));
                }
            }
            Some(Shortcut::Projection(filters)) => {
                let from = self.layout(number - 1);
                for image in around.chunks_exact_mut(from.len()).take(images) {
                    from.rows_mut(image).for_each(|row| row.fill(F::zero()));
                }
                self.filter_gradient(filters, number - 1, after);
                self.input_gradient(filters, after, around, true);
            }
        }
        self.normalization_back(number, after);
        self.filter_gradient(&unit.filters, number, after);
        if number > 0 {
            let has_more = architecture.units.get(number + 1).is_some_and(|next| next.shortcut.is_some());
            if unit.shortcut.is_none() && has_more {
                self.input_gradient(&unit.filters, after, around, true);
            } else {
                self.input_gradient(&unit.filters, after, before, false);
            }
        }
    }

    /// Adds the gradients of a unit's gains and offsets, and turns the gradient of its normalized sums into that of the sums.
    fn normalization_back(&mut self, number: usize, after: &mut [F]) {
        let unit = &self.architecture.units[number];
        let layout = unit.output();
        let pixels = F::of(1.0 / (layout.height * layout.width) as f64);
        let [scales, shrinks, totals, products] = &mut self.memory.channels;
        let (scales, shrinks) = (&mut scales[..layout.channels], &mut shrinks[..layout.channels]);
        let (totals, products) = (&mut totals[..layout.channels], &mut products[..layout.channels]);
        let images = after.chunks_exact_mut(layout.len()).zip(self.memory.sums[number].chunks_exact(layout.len()));
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
            scales_of(unit, self.theta, inverses, scales);
            for (((shrink, &scale), &product), &inverse) in shrinks.iter_mut().zip(&*scales).zip(&*products).zip(inverses) {
                *shrink = scale * inverse * inverse * product * pixels;
            }
            elementwise::scale_gradient(layout, gradient, sums, scales, shrinks);
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
fn scales_of<F: Real>(unit: &Unit, theta: &[F], inverses: &[F], scales: &mut [F]) {
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
