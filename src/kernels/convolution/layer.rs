//! The three operations of a layer: forward, and the gradients of its input and its filters.

use super::correlation::{Correlation, Grid};
use super::filter_gradient::add_filter_gradient;
use super::lanes::LANES;
use super::layout::ImageLayout;
use crate::number::Real;

/// A convolution with square filters. With a stride of 1 the output has as many pixels as the input, with a stride of 2 every other one of
/// every other row. Pixels outside of the image are zeros.
///
/// Filters are size × size × inputs × outputs, row-major. Stored channels beyond the layer's own are zeros.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    inputs: usize,
    outputs: usize,
    size: usize,
    stride: usize,
    input: ImageLayout,
    output: ImageLayout,
    forward: Correlation,
    input_gradient: Vec<InputGradient>,
}

/// The part of the input gradient for the pixels that meet the same weights.
#[derive(Clone, Debug, PartialEq)]
struct InputGradient {
    correlation: Correlation,
    /// The rows of the filters that meet these pixels, in the order of the outputs that use them.
    rows: Vec<usize>,
    /// The columns of the filters, in the same order.
    columns: Vec<usize>,
}

impl Convolution {
    /// The layer from images with `inputs` channels in this layout to `outputs` channels, stored with a border.
    ///
    /// # Panics
    /// If a border is narrower than half a filter, the size is even, the stride 0, or the layout has fewer channels than the input.
    pub fn new((inputs, input): (usize, ImageLayout), outputs: usize, size: usize, stride: usize, border: usize) -> Self {
        assert!(size % 2 == 1 && stride > 0 && inputs <= input.channels, "a convolution of size {size} and stride {stride}");
        assert!(size / 2 <= input.border.min(border), "a border too narrow for filters of size {size}");
        let (height, width) = (input.height.div_ceil(stride), input.width.div_ceil(stride));
        let output = ImageLayout { height, width, channels: outputs.next_multiple_of(LANES), border };
        let reach = size / 2 * (input.row_step() + input.channels);
        let forward = Correlation {
            rows: height,
            columns: width,
            input: Grid {
                first: input.position(0, 0) - reach,
                step: stride * input.channels,
                row_step: stride * input.row_step(),
            },
            output: Grid { first: output.position(0, 0), step: output.channels, row_step: output.row_step() },
            // A row of a filter reads adjacent numbers of the input.
            runs: (0..size).map(|row| row * input.row_step()).collect(),
            run_len: size * input.channels,
            blocks: output.channels / LANES,
        };
        let input_gradient = input_gradient(size, stride, input, output);
        Self { inputs, outputs, size, stride, input, output, forward, input_gradient }
    }

    #[cfg(test)]
    pub(super) fn forward_kernel(&self) -> &Correlation {
        &self.forward
    }

    #[cfg(test)]
    pub(super) fn input_gradient_kernels(&self) -> impl Iterator<Item = &Correlation> {
        self.input_gradient.iter().map(|part| &part.correlation)
    }

    /// The layout of the input.
    pub fn input(&self) -> ImageLayout {
        self.input
    }

    /// The layout of the output.
    pub fn output(&self) -> ImageLayout {
        self.output
    }

    /// The number of channels of the output.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The shape of the filters.
    pub fn shape(&self) -> [usize; 4] {
        [self.size, self.size, self.inputs, self.outputs]
    }

    /// The number of weights.
    pub fn weights(&self) -> usize {
        self.shape().iter().product()
    }

    /// The number of sixteens of packed filters, and of their packed gradient.
    pub fn packed_len(&self) -> usize {
        self.size * self.size * self.input.channels * self.output.channels / LANES
    }

    /// The number of multiply-adds of an image's forward pass.
    pub fn products(&self) -> usize {
        self.output.height * self.output.width * self.weights()
    }

    /// Packs filters for [`forward`](Self::forward).
    pub fn pack<F: Real>(&self, filters: &[F], packed: &mut [[F; LANES]]) {
        packed.as_flattened_mut().fill(F::zero());
        let inputs = self.size * self.size * self.input.channels;
        for (place, of_place) in filters.chunks_exact(self.inputs * self.outputs).enumerate() {
            for (input, weights) in of_place.chunks_exact(self.outputs).enumerate() {
                for (block, weights) in weights.chunks(LANES).enumerate() {
                    packed[block * inputs + place * self.input.channels + input][..weights.len()].copy_from_slice(weights);
                }
            }
        }
    }

    /// Writes the convolution of the inputs of images with packed filters.
    pub fn forward<F: Real>(&self, packed: &[[F; LANES]], input: &[F], output: &mut [F]) {
        self.forward.run((input, self.input.len()), packed, (output, self.output.len()), false);
    }

    /// Adds the packed gradient of the filters, given the inputs of images and the gradients of their outputs.
    pub fn add_filter_gradient<F: Real>(&self, input: &[F], output_gradient: &[F], packed: &mut [[F; LANES]]) {
        let (input, output_gradient) = ((input, self.input.len()), (output_gradient, self.output.len()));
        add_filter_gradient(&self.forward, input, output_gradient, packed);
    }

    /// Adds a packed gradient to a gradient in the order of the filters.
    pub fn unpack_gradient<F: Real>(&self, packed: &[[F; LANES]], gradient: &mut [F]) {
        for (place, packed) in packed.as_flattened().chunks_exact(self.output.channels).enumerate() {
            let (place, input) = (place / self.input.channels, place % self.input.channels);
            if input < self.inputs {
                let gradient = &mut gradient[(place * self.inputs + input) * self.outputs..][..self.outputs];
                gradient.iter_mut().zip(packed).for_each(|(gradient, &packed)| *gradient += packed);
            }
        }
    }

    /// Packs filters for [`input_gradient`](Self::input_gradient).
    pub fn pack_for_gradient<F: Real>(&self, filters: &[F], packed: &mut [[F; LANES]]) {
        packed.as_flattened_mut().fill(F::zero());
        let channels = self.output.channels;
        let mut first = 0;
        for part in &self.input_gradient {
            let inputs = part.correlation.window_len();
            let places = part.rows.iter().flat_map(|row| part.columns.iter().map(move |column| row * self.size + column));
            for (number, place) in places.enumerate() {
                let of_place = &filters[place * self.inputs * self.outputs..][..self.inputs * self.outputs];
                for (input, weights) in of_place.chunks_exact(self.outputs).enumerate() {
                    let block = &mut packed[first + input / LANES * inputs + number * channels..][..self.outputs];
                    block.iter_mut().zip(weights).for_each(|(lanes, &weight)| lanes[input % LANES] = weight);
                }
            }
            first += part.correlation.blocks * inputs;
        }
    }

    /// Writes the gradients of the inputs of images given those of their outputs, or adds them if `add`.
    ///
    /// # Panics
    /// If the stored channels of the input are not a multiple of [`LANES`].
    pub fn input_gradient<F: Real>(&self, packed: &[[F; LANES]], output_gradient: &[F], input_gradient: &mut [F], add: bool) {
        assert!(self.input.channels.is_multiple_of(LANES), "the channels of an input with a gradient are stored in sixteens");
        // With a stride above the size, no output reads some of the pixels.
        let is_partial = self.input_gradient.len() < self.stride * self.stride;
        if is_partial && !add {
            for image in input_gradient.chunks_exact_mut(self.input.len()) {
                self.input.rows_mut(image).for_each(|row| row.fill(F::zero()));
            }
        }
        let add = add || is_partial;
        let mut packed = packed;
        for InputGradient { correlation, .. } in &self.input_gradient {
            let filters = packed.split_off(..correlation.blocks * correlation.window_len()).unwrap_or_default();
            correlation.run((output_gradient, self.output.len()), filters, (input_gradient, self.input.len()), add);
        }
    }
}

/// Splits the input gradient into parts: every `stride`-th pixel of every `stride`-th row meets the same weights.
fn input_gradient(size: usize, stride: usize, input: ImageLayout, output: ImageLayout) -> Vec<InputGradient> {
    let reach = size / 2;
    // Output o reads pixel p = stride·o + k − reach by weight k, so that falling k belong to the outputs from the first to the last.
    let weights = |pixel: usize| {
        (0..size).rev().filter(|k| (pixel + reach + stride - k % stride).is_multiple_of(stride)).collect::<Vec<_>>()
    };
    let first_output = |pixel: usize, weight: usize| (output.border * stride + pixel + reach - weight) / stride;
    let mut parts = Vec::new();
    for (row, column) in (0..stride).flat_map(|row| (0..stride).map(move |column| (row, column))) {
        let (rows, columns) = (weights(row), weights(column));
        let (Some(&first_row), Some(&first_column)) = (rows.first(), columns.first()) else { continue };
        if row >= input.height || column >= input.width {
            continue;
        }
        let correlation = Correlation {
            rows: (input.height - row).div_ceil(stride),
            columns: (input.width - column).div_ceil(stride),
            input: Grid {
                first: first_output(row, first_row) * output.row_step() + first_output(column, first_column) * output.channels,
                step: output.channels,
                row_step: output.row_step(),
            },
            output: Grid {
                first: input.position(row, column),
                step: stride * input.channels,
                row_step: stride * input.row_step(),
            },
            runs: (0..rows.len()).map(|row| row * output.row_step()).collect(),
            run_len: columns.len() * output.channels,
            blocks: input.channels / LANES,
        };
        parts.push(InputGradient { correlation, rows, columns });
    }
    parts
}
