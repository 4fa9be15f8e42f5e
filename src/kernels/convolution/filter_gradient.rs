//! The kernel of gradients of filters: products of input numbers and output gradients, summed over pixels.

use super::correlation::{Correlation, Grid, assert_same_number};
use super::lanes::{LANES, Lanes};
use crate::number::Real;
use crate::vector::{SimdKernel, SimdLevel, dispatch};
use std::ops::Range;

/// The bytes of a strip of rows, which all tiles read in turn: most of a first-level cache of 48 KiB, which most processors with AVX-512 have, or
/// of 32 KiB. Where the cache is smaller, a strip comes from the second level.
const fn strip_bytes<U: SimdLevel>() -> usize {
    if U::WIDE { 40 << 10 } else { 24 << 10 }
}

/// The least pixels of a strip: for fewer, it takes too long to load and store the sums of a tile.
const LEAST_PIXELS: usize = 32;

/// The channels of [`Blocks::three_taps`]: as many as there are registers for three sums of each.
const CHANNELS: usize = 8;

/// Adds, for each input number of a pixel and each output channel of a forward pass, the sum over pixels of their products to `gradient`, which
/// has `blocks` sixteens for each input of a pixel. The images have these lengths.
pub(super) fn add_filter_gradient<F: Real>(
    forward: &Correlation,
    (input, input_len): (&[F], usize),
    (output, output_len): (&[F], usize),
    gradient: &mut [[F; LANES]],
) {
    dispatch(call(forward, (input, input_len), (output, output_len), gradient));
}

pub(super) fn call<'a, F: Real>(
    forward: &'a Correlation,
    (input, input_len): (&'a [F], usize),
    (output, output_len): (&'a [F], usize),
    gradient: &'a mut [[F; LANES]],
) -> Call<'a, F> {
    assert_eq!(gradient.len(), forward.window_len() * forward.blocks, "the gradient of another layer");
    assert_same_number((input.len(), input_len), (output.len(), output_len));
    Call { plan: forward, input, input_len, output, output_len, gradient }
}

/// The arguments of [`add_filter_gradient`].
pub(super) struct Call<'a, F> {
    plan: &'a Correlation,
    input: &'a [F],
    input_len: usize,
    output: &'a [F],
    output_len: usize,
    gradient: &'a mut [[F; LANES]],
}

impl<F: Real> SimdKernel for Call<'_, F> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        let plan = self.plan;
        let strip = rows_of_strip(plan, strip_bytes::<U>() / size_of::<F>());
        // Image by image and strip by strip, so that these stay in caches.
        let images = self.input.chunks_exact(self.input_len).zip(self.output.chunks_exact(self.output_len));
        for (input, output) in images {
            for first in (0..plan.rows).step_by(strip) {
                let rows = first..(first + strip).min(plan.rows);
                let mut block = 0;
                while block < plan.blocks {
                    let (output, rows) = (&output[block * LANES..], rows.clone());
                    if U::WIDE && block + 2 <= plan.blocks {
                        Blocks::<F, 2> { plan, input, output, rows, block, gradient: self.gradient }.compute::<U>();
                        block += 2;
                    } else {
                        Blocks::<F, 1> { plan, input, output, rows, block, gradient: self.gradient }.compute::<U>();
                        block += 1;
                    }
                }
            }
        }
    }
}

/// The rows of a strip of about so many numbers, but at least [`LEAST_PIXELS`] pixels. All strips of an image have about the same height.
fn rows_of_strip(plan: &Correlation, numbers: usize) -> usize {
    let row_numbers = plan.input.row_step + plan.output.row_step;
    let most = (numbers / row_numbers.max(1)).max(LEAST_PIXELS.div_ceil(plan.columns.max(1)));
    plan.rows.div_ceil(plan.rows.div_ceil(most).max(1)).max(1)
}

/// `V` blocks of channels of some rows of one image.
struct Blocks<'a, F, const V: usize> {
    plan: &'a Correlation,
    input: &'a [F],
    output: &'a [F],
    rows: Range<usize>,
    block: usize,
    gradient: &'a mut [[F; LANES]],
}

impl<F: Real, const V: usize> Blocks<'_, F, V> {
    /// Computes each run in tiles of input numbers, as many as there are registers for their sums.
    #[inline(always)]
    fn compute<U: SimdLevel>(mut self) {
        let Correlation { run_len, columns, input: Grid { step, .. }, .. } = *self.plan;
        // Adjacent output pixels read runs that overlap by two thirds.
        let shares_inputs = run_len == 3 * step && columns > 1 && step.is_multiple_of(CHANNELS);
        for number in 0..self.plan.runs.len() {
            if U::WIDE && V == 1 && size_of::<F>() == 4 && shares_inputs {
                for channel in (0..step).step_by(CHANNELS) {
                    self.three_taps::<U>(number, channel);
                }
                continue;
            }
            let mut place = 0;
            while place < self.plan.run_len {
                let left = self.plan.run_len - place;
                // 32 is 16 + 16 rather than 24 + 8.
                place += if U::WIDE && V == 1 && size_of::<F>() == 4 && left >= 24 && left != 32 {
                    self.tile::<U, 24>(number, place)
                } else if U::WIDE && V == 1 && left >= 16 {
                    self.tile::<U, 16>(number, place)
                } else if U::WIDE && left >= 8 {
                    self.tile::<U, 8>(number, place)
                } else if !U::WIDE && U::FMA && left >= 6 {
                    self.tile::<U, 6>(number, place)
                } else if U::FMA && left >= 4 {
                    self.tile::<U, 4>(number, place)
                } else if left >= 2 {
                    self.tile::<U, 2>(number, place)
                } else {
                    self.tile::<U, 1>(number, place)
                };
            }
        }
    }

    /// Adds the products of `J` input numbers from a place of a run on, and returns their number.
    #[inline(always)]
    fn tile<U: SimdLevel, const J: usize>(&mut self, number: usize, place: usize) -> usize {
        let plan = self.plan;
        let first = (number * plan.run_len + place) * plan.blocks + self.block;
        let gradient = &mut self.gradient[first..][..(J - 1) * plan.blocks + V];
        let mut sums: [[Lanes<F>; V]; J] =
            std::array::from_fn(|input| std::array::from_fn(|v| Lanes(gradient[input * plan.blocks + v])));
        for row in self.rows.clone() {
            let input = &self.input[plan.input.first + row * plan.input.row_step + plan.runs[number] + place..];
            let output = self.output[plan.output.first + row * plan.output.row_step..].as_chunks::<LANES>().0;
            let (step, output_step) = (plan.input.step, plan.output.step / LANES);
            // Cut to what the columns read, so that their ranges need no checks.
            let input = &input[..(plan.columns - 1) * step + J];
            let output = &output[..(plan.columns - 1) * output_step + V];
            for column in 0..plan.columns {
                // SAFETY: the ranges of the last column end with the slices.
                let (input, output) = unsafe {
                    (
                        input.get_unchecked(column * step..column * step + J),
                        output.get_unchecked(column * output_step..column * output_step + V),
                    )
                };
                for (sums, &input) in sums.iter_mut().zip(input) {
                    for (sums, output) in sums.iter_mut().zip(output) {
                        sums.add_product::<U>(input, output);
                    }
                }
            }
        }
        for (input, sums) in sums.iter().enumerate() {
            for (v, sums) in sums.iter().enumerate() {
                gradient[input * plan.blocks + v] = sums.0;
            }
        }
        J
    }

    /// Adds the products of [`CHANNELS`] channels at each of the three pixels that a run covers. An input pixel is the last of these for one output
    /// pixel, the middle one for the next, and the first one for the one after, so that each input number that is loaded serves three sums.
    #[inline(always)]
    fn three_taps<U: SimdLevel>(&mut self, number: usize, channel: usize) {
        let plan = self.plan;
        let (step, columns) = (plan.input.step, plan.columns);
        let place = |tap: usize| (number * plan.run_len + tap * step + channel) * plan.blocks + self.block;
        let mut sums: [[Lanes<F>; CHANNELS]; 3] = std::array::from_fn(|tap| {
            let gradient = &self.gradient[place(tap)..][..(CHANNELS - 1) * plan.blocks + 1];
            std::array::from_fn(|input| Lanes(gradient[input * plan.blocks]))
        });
        for row in self.rows.clone() {
            let input = &self.input[plan.input.first + row * plan.input.row_step + plan.runs[number] + channel..];
            let output = self.output[plan.output.first + row * plan.output.row_step..].as_chunks::<LANES>().0;
            let output_at = |column: usize| Lanes(output[column * (plan.output.step / LANES)]);
            let input_at = |column: usize| &input[column * step..][..CHANNELS];
            // The output pixels for which the input pixel is the first, middle and last one.
            let mut outputs = [output_at(0); 3];
            add_products::<U, F, 0, 1>(&mut sums, input_at(0), &outputs);
            outputs = [output_at(1), outputs[0], outputs[1]];
            add_products::<U, F, 0, 2>(&mut sums, input_at(1), &outputs);
            for column in 2..columns {
                outputs = [output_at(column), outputs[0], outputs[1]];
                add_products::<U, F, 0, 3>(&mut sums, input_at(column), &outputs);
            }
            outputs = [outputs[0], outputs[0], outputs[1]];
            add_products::<U, F, 1, 3>(&mut sums, input_at(columns), &outputs);
            outputs = [outputs[0], outputs[0], outputs[1]];
            add_products::<U, F, 2, 3>(&mut sums, input_at(columns + 1), &outputs);
        }
        for (tap, sums) in sums.iter().enumerate() {
            let gradient = &mut self.gradient[place(tap)..][..(CHANNELS - 1) * plan.blocks + 1];
            for (input, sums) in sums.iter().enumerate() {
                gradient[input * plan.blocks] = sums.0;
            }
        }
    }
}

/// Adds the products of the input numbers with the output pixels from `FIRST` on and before `END`.
#[inline(always)]
fn add_products<U: SimdLevel, F: Real, const FIRST: usize, const END: usize>(
    sums: &mut [[Lanes<F>; CHANNELS]; 3],
    input: &[F],
    outputs: &[Lanes<F>; 3],
) {
    for number in 0..CHANNELS {
        for tap in FIRST..END {
            sums[tap][number].add_product::<U>(input[number], &outputs[tap].0);
        }
    }
}
