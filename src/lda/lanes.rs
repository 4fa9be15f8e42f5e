//! Draws in proportion to weights, sixteen at a time.
//!
//! Every vector unit gives the same bits: sums are of the same numbers in the same order.

use crate::random::Stream;
use crate::vector::SimdLevel;
use rand::Rng;

/// Numbers that are computed together: a vector, or a line of memory.
pub(super) const LANES: usize = 16;

/// A number below 1, of 32 bits.
#[inline(always)]
pub(super) fn uniform(stream: &mut Stream) -> f64 {
    f64::from(stream.next_u32()) / 4_294_967_296.0
}

/// β and W β in single precision. Below and above all that is of use β is held where no quotient leaves the range.
pub(super) fn smoothing(beta: f64, vocabulary: usize) -> (f32, f32) {
    let beta = beta.clamp(1e-20, 1e20);
    (beta as f32, (beta * vocabulary as f64) as f32)
}

/// Running sums over the lanes 0, 4, 8, 12, 1, 5, ... in this order, each in the place of its lane. None is below the one before it,
/// and that of a lane with 0 is the one before it.
#[inline(always)]
pub(super) fn scan<U: SimdLevel>(lanes: &[f32; LANES]) -> [f32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: the unit has AVX-512.
        return unsafe {
            let lanes = _mm512_loadu_ps(lanes.as_ptr());
            let first = _mm512_castps512_ps128(lanes);
            let second = _mm_add_ps(first, _mm512_extractf32x4_ps::<1>(lanes));
            let third = _mm_add_ps(second, _mm512_extractf32x4_ps::<2>(lanes));
            let fourth = _mm_add_ps(third, _mm512_extractf32x4_ps::<3>(lanes));
            let columns: [f32; 4] = std::mem::transmute(fourth);
            let two = columns[0] + columns[1];
            let before = _mm512_broadcast_f32x4(_mm_setr_ps(0.0, columns[0], two, two + columns[2]));
            let low = _mm512_castps256_ps512(_mm256_set_m128(second, first));
            let running = _mm512_insertf32x8::<1>(low, _mm256_set_m128(fourth, third));
            std::mem::transmute::<__m512, [f32; LANES]>(_mm512_add_ps(running, before))
        };
    }
    let mut running = *lanes;
    for lane in 4..LANES {
        running[lane] += running[lane - 4];
    }
    let two = running[12] + running[13];
    let before = [0.0, running[12], two, two + running[14]];
    for lane in 0..LANES {
        running[lane] += before[lane % 4];
    }
    running
}

/// How many running sums are not above `point`.
#[inline(always)]
pub(super) fn below<U: SimdLevel>(running: &[f32; LANES], point: f32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: the unit has AVX-512.
        return unsafe {
            let below = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(_mm512_loadu_ps(running.as_ptr()), _mm512_set1_ps(point));
            u32::from(below).count_ones()
        };
    }
    running.iter().map(|&running| u32::from(running <= point)).sum()
}

/// The lane with so many running sums before its own; of several sixteens one behind the other, its place among all.
#[inline(always)]
pub(super) fn place_of(below: u32) -> usize {
    (below / 16 * 16 + below % 4 * 4 + below % 16 / 4) as usize
}

/// Draws a place in proportion to the weights in blocks of sixteen, given the sums of the blocks in groups of sixteen; 0 where there is
/// no block. No weight is below 0, and one is above.
#[inline(always)]
pub(super) fn draw<U: SimdLevel>(
    weights: &[[f32; LANES]],
    groups: usize,
    sums: impl Fn(usize) -> [f32; LANES],
    all: f64,
    stream: &mut Stream,
) -> usize {
    let block = 'again: loop {
        let mut point = uniform(stream) * all;
        for group in 0..groups {
            let running = scan::<U>(&sums(group));
            if (point as f32) < running[LANES - 1] {
                break 'again group * LANES + place_of(below::<U>(&running, point as f32));
            }
            point -= f64::from(running[LANES - 1]);
        }
        // Rounding may lead past the end.
    };
    let running = scan::<U>(&weights[block]);
    loop {
        let point = (uniform(stream) * f64::from(running[LANES - 1])) as f32;
        if point < running[LANES - 1] {
            return block * LANES + place_of(below::<U>(&running, point));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use crate::vector::{self, SimdKernel};

    /// A unit without wide vectors.
    struct Narrow;

    impl SimdLevel for Narrow {
        const FMA: bool = false;
        const WIDE: bool = false;
    }

    /// Running sums, and how many of them are not above a point.
    struct Both([f32; LANES], f32);

    impl SimdKernel for Both {
        type Output = ([f32; LANES], u32);

        #[inline(always)]
        fn compute<U: SimdLevel>(self) -> ([f32; LANES], u32) {
            let running = scan::<U>(&self.0);
            (running, below::<U>(&running, self.1))
        }
    }

    fn stream() -> Stream {
        Seed(3).stream(Who::Run, 0, Purpose::Topics)
    }

    #[test]
    fn running_sums_never_fall_and_have_the_same_bits_on_every_unit() {
        let mut stream = stream();
        for _ in 0..10_000 {
            let mut lanes = [0.0; LANES];
            for lane in &mut lanes {
                if uniform(&mut stream) < 0.6 {
                    *lane = uniform(&mut stream).powi(8) as f32;
                }
            }
            let point = (uniform(&mut stream) * 2.0) as f32;
            let (running, below) = vector::dispatch(Both(lanes, point));
            assert_eq!((running, below), Both(lanes, point).compute::<Narrow>());
            let mut before = 0.0;
            for number in 0..LANES as u32 {
                let lane = place_of(number);
                assert!(running[lane] >= before && (lanes[lane] > 0.0 || running[lane] == before), "{lanes:?}");
                before = running[lane];
            }
            assert!((f64::from(before) - lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>()).abs() < 1e-5);
        }
        assert_eq!((0..48).map(place_of).collect::<std::collections::BTreeSet<_>>().len(), 48);
    }

    #[test]
    fn places_are_drawn_in_proportion_to_their_weights() {
        // More than a group of blocks; of 1/7 of the weights none are above 0.
        let weight = |at: usize| (at % 7) as f32 * if at < 30 { 1.0 } else { 0.01 };
        let weights: Vec<[f32; LANES]> = (0..20).map(|block| std::array::from_fn(|lane| weight(block * LANES + lane))).collect();
        let sums = |group: usize| {
            std::array::from_fn(|lane| weights.get(group * LANES + lane).map_or(0.0, |block| block.iter().sum::<f32>()))
        };
        let all: f64 = weights.as_flattened().iter().map(|&weight| f64::from(weight)).sum();
        let mut stream = stream();
        let (mut counts, draws) = (vec![0_u32; 20 * LANES], 400_000.0);
        for _ in 0..draws as u32 {
            counts[draw::<Narrow>(&weights, 2, sums, all, &mut stream)] += 1;
        }
        let (mut chi, mut free) = (0.0, -1.0);
        for (at, &count) in counts.iter().enumerate() {
            let expected = f64::from(weight(at)) / all * draws;
            if expected == 0.0 {
                assert_eq!(count, 0);
            } else {
                chi += (f64::from(count) - expected).powi(2) / expected;
                free += 1.0;
            }
        }
        let z = (chi - free) / f64::sqrt(2.0 * free);
        assert!(z.abs() < 4.5, "{z}");
    }
}
