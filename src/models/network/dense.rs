//! Dense layers with BLAS: forward and backward passes of one particle over one block of rows.

use crate::layout::{matrix, matrix_mut};
use crate::number::Real;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, CowArray, Ix2};

/// The position and shape of a layer's weights and biases in θ.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    /// Position of the weights in θ; the biases follow them.
    pub offset: usize,
}

impl Layer {
    /// Layers of these widths, from the features to the outputs.
    pub fn stack(widths: &[usize]) -> Vec<Self> {
        let mut offset = 0;
        let mut layers = Vec::new();
        for pair in widths.windows(2) {
            let layer = Self { inputs: pair[0], outputs: pair[1], offset };
            offset += layer.size();
            layers.push(layer);
        }
        layers
    }

    /// The number of weights and biases.
    pub fn size(&self) -> usize {
        (self.inputs + 1) * self.outputs
    }

    fn weights<'a, F>(&self, theta: &'a [F]) -> ArrayView2<'a, F> {
        matrix(&theta[self.offset..][..self.inputs * self.outputs], self.inputs, self.outputs)
    }

    fn biases<'a, F>(&self, theta: &'a [F]) -> &'a [F] {
        &theta[self.offset + self.inputs * self.outputs..][..self.outputs]
    }
}

/// The length of the buffer that a [`Pass`] over this many rows needs.
pub fn memory(layers: &[Layer], rows: usize, backward: bool) -> usize {
    let errors = if backward { widest_hidden(layers) } else { 0 };
    rows * (layers.iter().map(|layer| layer.outputs).sum::<usize>() + errors)
}

fn widest_hidden(layers: &[Layer]) -> usize {
    layers.iter().skip(1).map(|layer| layer.inputs).max().unwrap_or(0)
}

/// The values of all layers of one particle for one block of rows, in borrowed memory.
pub struct Pass<'a, F> {
    layers: &'a [Layer],
    theta: &'a [F],
    x: ArrayView2<'a, F>,
    /// The outputs of each layer after its activation, layer after layer. The backward pass overwrites them, last layer first, by
    /// derivatives with respect to the inputs of the activations.
    values: &'a mut [F],
    /// Derivatives with respect to a hidden layer's values; empty without a backward pass.
    errors: &'a mut [F],
}

impl<'a, F: Real> Pass<'a, F> {
    /// Propagates rows of features through the layers; `memory` must have at least the length given by [`memory`].
    pub fn forward(layers: &'a [Layer], theta: &'a [F], x: ArrayView2<'a, F>, memory: &'a mut [F]) -> Self {
        let rows = x.nrows();
        let (values, errors) = memory.split_at_mut(self::memory(layers, rows, false));
        let mut start = 0;
        for (l, layer) in layers.iter().enumerate() {
            let (before, rest) = values.split_at_mut(start);
            let values = &mut rest[..rows * layer.outputs];
            let inputs = if l == 0 { x } else { matrix(&before[start - rows * layer.inputs..], rows, layer.inputs) };
            let mut product = matrix_mut(values, rows, layer.outputs);
            general_mat_mul(F::one(), &inputs, &layer.weights(theta), F::zero(), &mut product);
            let biases = layer.biases(theta);
            let last = l + 1 == layers.len();
            for row in values.chunks_exact_mut(layer.outputs) {
                for (value, &bias) in row.iter_mut().zip(biases) {
                    let sum = *value + bias;
                    *value = if last || sum > F::zero() { sum } else { F::zero() };
                }
            }
            start += rows * layer.outputs;
        }
        Self { layers, theta, x, values, errors }
    }

    /// The outputs of the last layer, rows × outputs.
    pub fn outputs(&mut self) -> &mut [F] {
        let outputs = self.layers.last().map_or(0, |layer| self.x.nrows() * layer.outputs);
        let start = self.values.len() - outputs;
        &mut self.values[start..]
    }

    /// Reads [`outputs`](Self::outputs) as the curvature h of each row's loss in each output and adds Σ (∂f/∂θ)² h to `curvature`.
    /// `last` computes the curvature in the values of the last hidden layer (rows × inputs) from h (rows × outputs) and the weights of the
    /// output layer (inputs × outputs). Lower layers use only the diagonal of the layer above.
    pub fn curvature(self, last: impl Fn(ArrayView2<F>, ArrayView2<F>, ArrayViewMut2<F>), curvature: &mut [F]) {
        let outputs = self.layers.len() - 1;
        self.propagate(curvature, squares, |layer, own, weights, mut below| {
            if layer == outputs {
                last(own, weights, below);
            } else {
                general_mat_mul(F::one(), &own, &squares(weights).t(), F::zero(), &mut below);
            }
        });
    }

    /// Reads [`outputs`](Self::outputs) as derivatives with respect to the outputs and adds those with respect to θ to `score`.
    pub fn backward(self, score: &mut [F]) {
        self.propagate(
            score,
            |values| CowArray::from(values),
            |_, own, weights, mut below| {
                general_mat_mul(F::one(), &own, &weights.t(), F::zero(), &mut below);
            },
        );
    }

    /// Propagates derivatives from the outputs to the first layer and adds derivatives with respect to θ to `sums`. `inputs` maps the
    /// inputs of a layer to the factors of its weights' derivatives; `below` computes the derivatives of a layer's inputs from the layer's
    /// index, its derivatives and its weights.
    fn propagate(
        self,
        sums: &mut [F],
        inputs: for<'v> fn(ArrayView2<'v, F>) -> CowArray<'v, F, Ix2>,
        below: impl Fn(usize, ArrayView2<F>, ArrayView2<F>, ArrayViewMut2<F>),
    ) {
        let rows = self.x.nrows();
        let mut start = self.values.len();
        for (l, layer) in self.layers.iter().enumerate().rev() {
            start -= rows * layer.outputs;
            let (before, rest) = self.values.split_at_mut(start);
            let own = &rest[..rows * layer.outputs];
            let (weights, biases) = sums[layer.offset..][..layer.size()].split_at_mut(layer.inputs * layer.outputs);
            for row in own.chunks_exact(layer.outputs) {
                biases.iter_mut().zip(row).for_each(|(sum, &own)| *sum += own);
            }
            let own = matrix(own, rows, layer.outputs);
            let mut weights = matrix_mut(weights, layer.inputs, layer.outputs);
            if l == 0 {
                general_mat_mul(F::one(), &inputs(self.x).t(), &own, F::one(), &mut weights);
                return;
            }
            let values = &mut before[start - rows * layer.inputs..];
            general_mat_mul(F::one(), &inputs(matrix(values, rows, layer.inputs)).t(), &own, F::one(), &mut weights);
            let errors = &mut self.errors[..rows * layer.inputs];
            below(l, own, layer.weights(self.theta), matrix_mut(errors, rows, layer.inputs));
            for (value, &error) in values.iter_mut().zip(errors.iter()) {
                *value = if *value > F::zero() { error } else { F::zero() };
            }
        }
    }
}

fn squares<F: Real>(values: ArrayView2<'_, F>) -> CowArray<'_, F, Ix2> {
    values.mapv(|value| value * value).into()
}
