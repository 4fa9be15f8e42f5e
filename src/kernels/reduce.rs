//! Reductions over long arrays in SIMD lanes, which run at the speed of memory.

use crate::number::Real;

/// The number of partial sums.
const LANES: usize = 16;
/// The number of values between two tests of the result.
const BLOCK: usize = 1024;

/// ‖x‖² in double precision, with the same bits on every processor.
pub fn squared_norm<F: Real>(x: &[F]) -> f64 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x.f64() * x.f64());
    }
    sums.iter().sum::<f64>() + rest.iter().map(|x| x.f64() * x.f64()).sum::<f64>()
}

/// Whether all values are finite.
pub fn all_finite<F: Real>(x: &[F]) -> bool {
    x.chunks(BLOCK).all(|block| block.iter().fold(true, |all, x| all & x.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_included() {
        for len in [0, 1, 15, 16, 17, 1023, 1024, 2049] {
            let x: Vec<f32> = (0..len).map(|place| place as f32).collect();
            let exact: f64 = (0..len).map(|place| (place * place) as f64).sum();
            assert!(all_finite(&x) && (squared_norm(&x) - exact).abs() <= 1e-15 * exact, "{len}");
            for place in 0..len {
                let mut wrong = x.clone();
                wrong[place] = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY][place % 3];
                assert!(!all_finite(&wrong), "{place} of {len}");
            }
        }
    }
}
