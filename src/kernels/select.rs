//! Exact order statistics of large arrays in every step, by selection within a bracket around the result of the step before.

use crate::number::Real;
use crate::vector::vectorized;

/// Up to this length, plain selection is fastest.
const PLAIN: usize = 256;

/// Finds order statistics. It remembers the last result as a guess for the next; results do not depend on the guess,
/// unless values are NaN.
#[derive(Clone, Debug)]
pub(super) struct Selector<F> {
    buffer: Vec<F>,
    guess: F,
    width: F,
}

impl<F: Real> Selector<F> {
    /// A selector for up to `len` values.
    pub(super) fn new(len: usize) -> Self {
        Self { buffer: vec![F::zero(); len], guess: F::zero(), width: F::zero() }
    }

    /// The `low`-th and the `high`-th smallest value, counted from 0; `high` is `low` or `low` + 1. Values must be at least 0.
    pub(super) fn pair(&mut self, values: &[F], low: usize, high: usize) -> (F, F) {
        if values.len() > PLAIN {
            let near = (self.guess * (F::one() - self.width), self.guess * (F::one() + self.width));
            let found = self.within(values, low, high, near);
            let found = found.or_else(|| {
                let bracket = self.bracket(values, low);
                self.within(values, low, high, bracket)
            });
            if let Some(pair) = found {
                let moved = (pair.0 - self.guess).abs() / pair.0.max(F::min_positive_value());
                // Twice the largest recent change: a bracket without the result costs far more than one that is too wide.
                self.width = (moved * F::of(2.0)).max(self.width * F::of(0.9)).max(F::of(0.002)).min(F::of(0.2));
                self.guess = pair.0;
                return pair;
            }
        }
        self.buffer[..values.len()].copy_from_slice(values);
        select(&mut self.buffer[..values.len()], low, high)
    }

    /// The order statistics, if they lie in the bracket.
    fn within(&mut self, values: &[F], low: usize, high: usize, (from, to): (F, F)) -> Option<(F, F)> {
        let (below, inside) = collect(values, &mut self.buffer, from, to);
        (below <= low && high < below + inside).then(|| select(&mut self.buffer[..inside], low - below, high - below))
    }

    /// A bracket that very likely contains the `low`-th value, from an evenly spaced sample.
    fn bracket(&mut self, values: &[F], low: usize) -> (F, F) {
        let stride = (values.len() / 1024).max(2);
        let count = values.len().div_ceil(stride);
        for (slot, &value) in self.buffer.iter_mut().zip(values.iter().step_by(stride)) {
            *slot = value;
        }
        let sample = &mut self.buffer[..count];
        sample.sort_unstable_by(order);
        // The rank of a sample quantile has a standard deviation of at most √count / 2; this is four of them.
        let slack = 2 * count.isqrt();
        let center = low / stride;
        (sample[center.saturating_sub(slack)], sample[(center + slack).min(count - 1)])
    }
}

fn order<F: Real>(a: &F, b: &F) -> std::cmp::Ordering {
    // A total order, because the distances of a diverged run may be NaN.
    a.f64().total_cmp(&b.f64())
}

fn select<F: Real>(values: &mut [F], low: usize, high: usize) -> (F, F) {
    let (_, &mut lower, above) = values.select_nth_unstable_by(low, order);
    let upper = if high == low { lower } else { above.iter().copied().min_by(order).unwrap_or(lower) };
    (lower, upper)
}

vectorized! {
    /// Copies the values in [from, to] to the front of the buffer. Returns the numbers of smaller values and of copied values.
    fn collect<F: Real>(values: &[F], buffer: &mut [F], from: F, to: F) -> (usize, usize) {
        let (mut below, mut inside) = (0, 0);
        for group in values.chunks(16) {
            // With a narrow bracket most groups have no value inside. Counting compiles to vector code, copying does not.
            let (mut under, mut upto) = (0_u32, 0_u32);
            for &value in group {
                under += u32::from(value < from);
                upto += u32::from(value <= to);
            }
            below += under as usize;
            if upto != under {
                for &value in group {
                    buffer[inside] = value;
                    inside += usize::from(value >= from && value <= to);
                }
            }
        }
        (below, inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    #[test]
    fn agrees_with_sorting() {
        let mut stream = Seed(3).stream(Who::Run, 0, Purpose::Synthetic);
        for len in [1, 2, 3, 15, 255, 256, 257, 300, 4950, 20_000] {
            let mut selector = Selector::<f64>::new(len);
            for round in 0..12 {
                let mut values = vec![0.0_f64; len];
                stream.normals(&mut values);
                for value in &mut values {
                    *value *= *value;
                    if round % 4 == 1 {
                        *value = (*value * 3.0).floor();
                    }
                    if round % 4 == 2 {
                        *value = 2.5;
                    }
                    if round % 4 == 3 {
                        *value = 0.0;
                    }
                }
                let mut sorted = values.clone();
                sorted.sort_unstable_by(f64::total_cmp);
                for low in [0, len / 4, len / 2, len - 1] {
                    let high = (low + round % 2).min(len - 1);
                    assert_eq!(selector.pair(&values, low, high), (sorted[low], sorted[high]), "{len} {round} {low}");
                }
            }
        }
    }

    #[test]
    fn survives_nan() {
        let mut values = vec![f64::NAN; 1000];
        values[..300].fill(1.0);
        let _ = Selector::new(1000).pair(&values, 500, 501);
    }
}
