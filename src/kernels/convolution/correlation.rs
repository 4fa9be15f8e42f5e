//! The kernel of forward passes and of gradients of inputs: weighted sums of the pixels around each pixel.

use super::lanes::{LANES, Lanes};
use crate::number::Real;
use crate::vector::{SimdKernel, SimdLevel, dispatch};

/// A grid of pixels in an image: every pixel, or every other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// The position of the first pixel.
    pub first: usize,
    /// From a pixel to the next of its row.
    pub step: usize,
    /// From a row to the next.
    pub row_step: usize,
}

/// For each pixel of the output grid, sums of products of filters with numbers of the input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Correlation {
    /// Rows of both grids.
    pub rows: usize,
    /// Pixels of a row of both grids.
    pub columns: usize,
    pub input: Grid,
    pub output: Grid,
    /// An output pixel reads runs of adjacent input numbers. These are the offsets of the runs, relative to its position in the input grid.
    pub runs: Vec<usize>,
    /// The length of each run.
    pub run_len: usize,
    /// The number of sixteens of output channels.
    pub blocks: usize,
}

impl Correlation {
    /// The number of input numbers that an output pixel reads.
    pub fn window_len(&self) -> usize {
        self.runs.len() * self.run_len
    }

    /// Computes the sums for images of these lengths. `filters` has sixteen weights for each input of a pixel, block by block. With `add`,
    /// the sums are added to the output. Other pixels of the output are left as they are.
    pub fn run<F: Real>(
        &self,
        (input, input_len): (&[F], usize),
        filters: &[[F; LANES]],
        (output, output_len): (&mut [F], usize),
        add: bool,
    ) {
        dispatch(self.call((input, input_len), filters, (output, output_len), add));
    }

    pub(super) fn call<'a, F: Real>(
        &'a self,
        (input, input_len): (&'a [F], usize),
        filters: &'a [[F; LANES]],
        (output, output_len): (&'a mut [F], usize),
        add: bool,
    ) -> Call<'a, F> {
        assert_eq!(filters.len(), self.blocks * self.window_len(), "the filters of another layer");
        assert_same_number((input.len(), input_len), (output.len(), output_len));
        Call { plan: self, input, input_len, filters, output, output_len, add }
    }
}

/// Checks that two lists of images, of which each image has such a length, have the same number of whole images.
pub(super) fn assert_same_number((inputs, input_len): (usize, usize), (outputs, output_len): (usize, usize)) {
    assert!(inputs % input_len == 0 && outputs == inputs / input_len * output_len, "different numbers of images");
}

/// The arguments of [`Correlation::run`].
pub(super) struct Call<'a, F> {
    plan: &'a Correlation,
    input: &'a [F],
    input_len: usize,
    filters: &'a [[F; LANES]],
    output: &'a mut [F],
    output_len: usize,
    add: bool,
}

impl<F: Real> SimdKernel for Call<'_, F> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(mut self) {
        let mut block = 0;
        while block < self.plan.blocks {
            // With AVX-512, each input number that is loaded serves two blocks.
            if U::WIDE && block + 2 <= self.plan.blocks {
                self.blocks::<U, 2>(block);
                block += 2;
            } else {
                self.blocks::<U, 1>(block);
                block += 1;
            }
        }
    }
}

impl<F: Real> Call<'_, F> {
    /// Computes `V` blocks of channels of all images.
    #[inline(always)]
    fn blocks<U: SimdLevel, const V: usize>(&mut self, block: usize) {
        let plan = self.plan;
        let inputs = plan.window_len();
        let filters: [&[[F; LANES]]; V] = std::array::from_fn(|v| &self.filters[(block + v) * inputs..][..inputs]);
        let images = self.input.chunks_exact(self.input_len).zip(self.output.chunks_exact_mut(self.output_len));
        for (input, output) in images {
            for row in 0..plan.rows {
                let input = &input[plan.input.first + row * plan.input.row_step..];
                let output = &mut output[plan.output.first + row * plan.output.row_step + block * LANES..];
                Row { plan, input, filters, output, add: self.add }.compute::<U>();
            }
        }
    }
}

/// `V` blocks of channels of one row of pixels.
struct Row<'a, F, const V: usize> {
    plan: &'a Correlation,
    input: &'a [F],
    filters: [&'a [[F; LANES]]; V],
    output: &'a mut [F],
    add: bool,
}

impl<F: Real, const V: usize> Row<'_, F, V> {
    /// Computes the row in tiles of pixels, as many as there are registers for their sums.
    #[inline(always)]
    fn compute<U: SimdLevel>(mut self) {
        let mut column = 0;
        while column < self.plan.columns {
            let left = self.plan.columns - column;
            column += if U::WIDE && V == 1 && left >= 16 && self.plan.input.step == LANES {
                // With a constant step, all pixels are addressed from one pointer.
                self.tile::<U, 16, LANES>(column)
            } else if U::WIDE && left >= 8 {
                self.tile::<U, 8, 0>(column)
            // 8 is 4 + 4 rather than 6 + 2.
            } else if !U::WIDE && U::FMA && left >= 6 && left != 8 {
                self.tile::<U, 6, 0>(column)
            } else if U::FMA && left >= 4 {
                self.tile::<U, 4, 0>(column)
            } else if left >= 2 {
                self.tile::<U, 2, 0>(column)
            } else {
                self.tile::<U, 1, 0>(column)
            };
        }
    }

    /// Computes `P` pixels from a column on, and returns their number. `STEP` is the step of the input grid if it is above 0.
    #[inline(always)]
    fn tile<U: SimdLevel, const P: usize, const STEP: usize>(&mut self, column: usize) -> usize {
        let plan = self.plan;
        let step = if STEP > 0 { STEP } else { plan.input.step };
        let output_step = plan.output.step;
        let output = &mut self.output[column * output_step..][..(P - 1) * output_step + V * LANES];
        let mut sums = [[Lanes::zero(F::zero()); V]; P];
        if self.add {
            for (pixel, sums) in sums.iter_mut().enumerate() {
                for (v, sums) in sums.iter_mut().enumerate() {
                    sums.0.copy_from_slice(&output[pixel * output_step + v * LANES..][..LANES]);
                }
            }
        }
        let input = &self.input[column * step..];
        for (number, run) in plan.runs.iter().enumerate() {
            let inputs: [&[F]; P] = std::array::from_fn(|pixel| &input[run + pixel * step..][..plan.run_len]);
            let filters: [&[[F; LANES]]; V] = std::array::from_fn(|v| &self.filters[v][number * plan.run_len..][..plan.run_len]);
            for place in 0..plan.run_len {
                for pixel in 0..P {
                    for v in 0..V {
                        sums[pixel][v].add_product::<U>(inputs[pixel][place], &filters[v][place]);
                    }
                }
            }
        }
        for (pixel, sums) in sums.iter().enumerate() {
            for (v, sums) in sums.iter().enumerate() {
                output[pixel * output_step + v * LANES..][..LANES].copy_from_slice(&sums.0);
            }
        }
        P
    }
}
