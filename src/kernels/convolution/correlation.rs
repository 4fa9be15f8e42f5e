//! The kernel of forward passes and of gradients of inputs: weighted sums of the pixels around each pixel.

use super::lanes::{LANES, Lanes};
use crate::number::Real;
use crate::vector::{SimdKernel, SimdLevel, dispatch};
use std::ops::Range;

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

    /// Whether a row of outputs reads a run in each of three adjacent rows of the input grid, so that three rows share each of these.
    fn shares_rows(&self) -> bool {
        self.runs == [0, self.input.row_step, 2 * self.input.row_step]
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
            let (input, output) = (&input[plan.input.first..], &mut output[plan.output.first + block * LANES..]);
            let image = Image { plan, input, filters, output, add: self.add };
            // With AVX-512, each input number that is loaded serves two blocks, or three rows of one block in single precision.
            if U::WIDE && V == 1 && size_of::<F>() == 4 && plan.shares_rows() && plan.rows > 2 {
                image.compute_three_rows_at_once::<U>();
            } else {
                image.compute_row_by_row::<U>();
            }
        }
    }
}

/// `V` blocks of channels of an image.
struct Image<'a, F, const V: usize> {
    plan: &'a Correlation,
    /// From the first pixel of the grid on.
    input: &'a [F],
    filters: [&'a [[F; LANES]]; V],
    /// From the first pixel of the grid on.
    output: &'a mut [F],
    add: bool,
}

impl<F: Real, const V: usize> Image<'_, F, V> {
    #[inline(always)]
    fn compute_row_by_row<U: SimdLevel>(mut self) {
        for row in 0..self.plan.rows {
            self.row::<U>(row, 0..self.plan.runs.len());
        }
    }

    /// Computes the sums of these runs of a row; those that do not begin with the first run continue the sums of the output.
    ///
    /// The row is computed in tiles of pixels, as many as there are registers for their sums.
    #[inline(always)]
    fn row<U: SimdLevel>(&mut self, row: usize, runs: Range<usize>) {
        let mut column = 0;
        while column < self.plan.columns {
            let left = self.plan.columns - column;
            column += if U::WIDE && V == 1 && left >= 16 && self.plan.input.step == LANES {
                // With a constant step, all pixels are addressed from one pointer.
                self.tile::<U, 16, LANES>(row, column, &runs)
            } else if U::WIDE && left >= 8 {
                self.tile::<U, 8, 0>(row, column, &runs)
            // 8 is 4 + 4 rather than 6 + 2.
            } else if !U::WIDE && U::FMA && left >= 6 && left != 8 {
                self.tile::<U, 6, 0>(row, column, &runs)
            } else if U::FMA && left >= 4 {
                self.tile::<U, 4, 0>(row, column, &runs)
            } else if left >= 2 {
                self.tile::<U, 2, 0>(row, column, &runs)
            } else {
                self.tile::<U, 1, 0>(row, column, &runs)
            };
        }
    }

    /// Computes `P` pixels from a column on, and returns their number. `STEP` is the step of the input grid if it is above 0.
    #[inline(always)]
    fn tile<U: SimdLevel, const P: usize, const STEP: usize>(&mut self, row: usize, column: usize, runs: &Range<usize>) -> usize {
        let plan = self.plan;
        let step = if STEP > 0 { STEP } else { plan.input.step };
        let output_step = plan.output.step;
        let output = &mut self.output[row * plan.output.row_step + column * output_step..][..(P - 1) * output_step + V * LANES];
        let mut sums = [[Lanes::zero(F::zero()); V]; P];
        if self.add || runs.start > 0 {
            for (pixel, sums) in sums.iter_mut().enumerate() {
                for (v, sums) in sums.iter_mut().enumerate() {
                    sums.0.copy_from_slice(&output[pixel * output_step + v * LANES..][..LANES]);
                }
            }
        }
        let input = &self.input[row * plan.input.row_step + column * step..];
        for number in runs.clone() {
            let run = plan.runs[number];
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

    /// Passes over the rows of the input, each of which is the last run of a row of outputs, the middle run of the next, and the first run of
    /// the one after. All sums are made in the same order as row by row.
    #[inline(always)]
    fn compute_three_rows_at_once<U: SimdLevel>(mut self) {
        let plan = self.plan;
        let last = plan.rows - 1;
        // Fewer than three rows share the first two rows of the input, and the last two.
        self.row::<U>(0, 0..2);
        self.row::<U>(1, 0..1);
        let mut column = 0;
        while column < plan.columns {
            column += match plan.columns - column {
                8.. => self.tile_of_three_rows::<U, 8>(column),
                4.. => self.tile_of_three_rows::<U, 4>(column),
                2.. => self.tile_of_three_rows::<U, 2>(column),
                _ => self.tile_of_three_rows::<U, 1>(column),
            };
        }
        self.row::<U>(last - 1, 2..3);
        self.row::<U>(last, 1..3);
    }

    /// Adds all runs that three rows share at `P` columns, and returns their number.
    #[inline(always)]
    fn tile_of_three_rows<U: SimdLevel, const P: usize>(&mut self, column: usize) -> usize {
        let plan = self.plan;
        let filters: [&[[F; LANES]]; 3] = std::array::from_fn(|row| &self.filters[0][(2 - row) * plan.run_len..][..plan.run_len]);
        let mut sums = [self.load::<P>(0, column), self.load(1, column), [Lanes::zero(F::zero()); P]];
        for last in 2..plan.rows {
            if self.add {
                sums[2] = self.load(last, column);
            }
            let input = &self.input[last * plan.input.row_step + column * plan.input.step..];
            let inputs: [&[F]; P] = std::array::from_fn(|pixel| &input[pixel * plan.input.step..][..plan.run_len]);
            for place in 0..plan.run_len {
                for pixel in 0..P {
                    for row in 0..3 {
                        sums[row][pixel].add_product::<U>(inputs[pixel][place], &filters[row][place]);
                    }
                }
            }
            self.store(last - 2, column, &sums[0]);
            sums = [sums[1], sums[2], [Lanes::zero(F::zero()); P]];
        }
        self.store(plan.rows - 2, column, &sums[0]);
        self.store(plan.rows - 1, column, &sums[1]);
        P
    }

    /// The outputs of `P` pixels from here on.
    #[inline(always)]
    fn load<const P: usize>(&self, row: usize, column: usize) -> [Lanes<F>; P] {
        let Grid { step, row_step, .. } = self.plan.output;
        let output = &self.output[row * row_step + column * step..];
        let mut sums = [Lanes::zero(F::zero()); P];
        for (pixel, sums) in sums.iter_mut().enumerate() {
            sums.0.copy_from_slice(&output[pixel * step..][..LANES]);
        }
        sums
    }

    #[inline(always)]
    fn store<const P: usize>(&mut self, row: usize, column: usize, sums: &[Lanes<F>; P]) {
        let Grid { step, row_step, .. } = self.plan.output;
        let output = &mut self.output[row * row_step + column * step..];
        for (pixel, sums) in sums.iter().enumerate() {
            output[pixel * step..][..LANES].copy_from_slice(&sums.0);
        }
    }
}
