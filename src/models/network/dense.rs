//! Dense layers on BLAS: forward and backward passes of one particle over one block of rows.

use super::super::layout::{matrix, matrix_mut};
use crate::number::Real;
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

/// Where a layer's weights and biases lie in θ.
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

    /// How many weights and biases it has.
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

/// How many numbers a [`Pass`] over this many rows borrows.
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
    /// What each layer puts out (after its activation), layer after layer. The backward pass overwrites it from the end on by
    /// derivatives with respect to what goes into the activations.
    values: &'a mut [F],
    /// Derivatives with respect to a hidden layer's values; empty if there is no backward pass.
    errors: &'a mut [F],
}

impl<'a, F: Real> Pass<'a, F> {
    /// Runs rows of features through the layers; `memory` has at least the length that [`memory`] says.
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

    /// What the last layer puts out, rows × outputs.
    pub fn outputs(&mut self) -> &mut [F] {
        let outputs = self.layers.last().map_or(0, |layer| self.x.nrows() * layer.outputs);
        let start = self.values.len() - outputs;
        &mut self.values[start..]
    }

    /// Takes [`outputs`](Self::outputs) as the curvature h of the loss of each row in each output, and adds Σ (∂f/∂θ)² h to `curvature`.
    /// `first` gives the curvature in the values of the last hidden layer from h and that layer's weights (rows × outputs, inputs ×
    /// outputs, rows × inputs); layers below get only the diagonal of the layer above.
    pub fn curvature(self, first: impl Fn(ArrayView2<F>, ArrayView2<F>, ArrayViewMut2<F>), curvature: &mut [F]) {
        let rows = self.x.nrows();
        let mut start = self.values.len();
        for (l, layer) in self.layers.iter().enumerate().rev() {
            start -= rows * layer.outputs;
            let (before, rest) = self.values.split_at_mut(start);
            let own = &rest[..rows * layer.outputs];
            let (weights, biases) = curvature[layer.offset..][..layer.size()].split_at_mut(layer.inputs * layer.outputs);
            for row in own.chunks_exact(layer.outputs) {
                biases.iter_mut().zip(row).for_each(|(sum, &own)| *sum += own);
            }
            let own = matrix(own, rows, layer.outputs);
            let mut weights = matrix_mut(weights, layer.inputs, layer.outputs);
            if l == 0 {
                general_mat_mul(F::one(), &self.x.mapv(|x| x * x).t(), &own, F::one(), &mut weights);
                return;
            }
            let inputs = &mut before[start - rows * layer.inputs..];
            let squares = matrix(inputs, rows, layer.inputs).mapv(|value| value * value);
            general_mat_mul(F::one(), &squares.t(), &own, F::one(), &mut weights);
            let errors = &mut self.errors[..rows * layer.inputs];
            let mut below = matrix_mut(errors, rows, layer.inputs);
            if l + 1 == self.layers.len() {
                first(own, layer.weights(self.theta), below);
            } else {
                let squares = layer.weights(self.theta).mapv(|weight| weight * weight);
                general_mat_mul(F::one(), &own, &squares.t(), F::zero(), &mut below);
            }
            for (value, &below) in inputs.iter_mut().zip(errors.iter()) {
                *value = if *value > F::zero() { below } else { F::zero() };
            }
        }
    }

    /// Takes [`outputs`](Self::outputs) as derivatives with respect to them and adds those with respect to θ to `score`.
    pub fn backward(self, score: &mut [F]) {
        let rows = self.x.nrows();
        let mut start = self.values.len();
        for (l, layer) in self.layers.iter().enumerate().rev() {
            start -= rows * layer.outputs;
            let (before, rest) = self.values.split_at_mut(start);
            let derivatives = &rest[..rows * layer.outputs];
            let (weights, biases) = score[layer.offset..][..layer.size()].split_at_mut(layer.inputs * layer.outputs);
            for row in derivatives.chunks_exact(layer.outputs) {
                for (sum, &derivative) in biases.iter_mut().zip(row) {
                    *sum += derivative;
                }
            }
            let derivatives = matrix(derivatives, rows, layer.outputs);
            let mut weights = matrix_mut(weights, layer.inputs, layer.outputs);
            if l == 0 {
                general_mat_mul(F::one(), &self.x.t(), &derivatives, F::one(), &mut weights);
                return;
            }
            let inputs = &mut before[start - rows * layer.inputs..];
            let values = matrix(inputs, rows, layer.inputs);
            general_mat_mul(F::one(), &values.t(), &derivatives, F::one(), &mut weights);
            let errors = &mut self.errors[..rows * layer.inputs];
            let mut product = matrix_mut(errors, rows, layer.inputs);
            general_mat_mul(F::one(), &derivatives, &layer.weights(self.theta).t(), F::zero(), &mut product);
            for (value, &error) in inputs.iter_mut().zip(errors.iter()) {
                *value = if *value > F::zero() { error } else { F::zero() };
            }
        }
    }
}
