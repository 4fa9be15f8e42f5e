//! Sampling from discrete distributions with sixteen SIMD lanes.
//!
//! All SIMD levels give the same bits, because they add the same numbers in the same order.

use crate::random::Stream;
use crate::vector::SimdLevel;
use rand::Rng;
use std::ops::AddAssign;

/// The number of lanes: values that fit into a vector register or cache line.
pub(super) const LANES: usize = 16;

/// A uniform random number in [0, 1) with 32 bits.
#[inline(always)]
pub(super) fn uniform(stream: &mut Stream) -> f64 {
    f64::from(stream.next_u32()) / 4_294_967_296.0
}

/// β and W β in single precision, with β clamped so that no quotient overflows or underflows.
pub(super) fn smoothing(beta: f64, vocabulary: usize) -> (f32, f32) {
    let beta = beta.clamp(1e-20, 1e20);
    (beta as f32, (beta * vocabulary as f64) as f32)
}

/// The products of each lane.
#[inline(always)]
pub(super) fn product(one: &[f32; LANES], other: &[f32; LANES]) -> [f32; LANES] {
    std::array::from_fn(|lane| one[lane] * other[lane])
}

/// The sum of all lanes, added pairwise.
#[inline(always)]
pub(super) fn lane_sum<T: Copy + AddAssign>(mut lanes: [T; LANES]) -> T {
    for step in [8, 4, 2, 1] {
        for lane in 0..step {
            let other = lanes[lane + step];
            lanes[lane] += other;
        }
    }
    lanes[0]
}

/// Cumulative sums over the lanes in the order 0, 4, 8, 12, 1, 5, ..., each stored at its own lane. They do not decrease in this order,
/// and a lane of 0 has the same sum as the lane before it.
#[inline(always)]
pub(super) fn scan<U: SimdLevel>(lanes: &[f32; LANES]) -> [f32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: `WIDE` levels have AVX-512.
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
    #[cfg(target_arch = "x86_64")]
    if U::AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: these levels have AVX2.
        return unsafe {
            let (low, high) = (_mm256_loadu_ps(lanes.as_ptr()), _mm256_loadu_ps(lanes.as_ptr().add(8)));
            let first = _mm256_castps256_ps128(low);
            let second = _mm_add_ps(first, _mm256_extractf128_ps::<1>(low));
            let third = _mm_add_ps(second, _mm256_castps256_ps128(high));
            let fourth = _mm_add_ps(third, _mm256_extractf128_ps::<1>(high));
            let columns: [f32; 4] = std::mem::transmute(fourth);
            let two = columns[0] + columns[1];
            let before = _mm_setr_ps(0.0, columns[0], two, two + columns[2]);
            let running = [first, second, third, fourth].map(|column| _mm_add_ps(column, before));
            std::mem::transmute::<[__m128; 4], [f32; LANES]>(running)
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

/// The number of cumulative sums that are at most `point`.
#[inline(always)]
pub(super) fn below<U: SimdLevel>(running: &[f32; LANES], point: f32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if U::WIDE {
        use std::arch::x86_64::*;
        // SAFETY: `WIDE` levels have AVX-512.
        return unsafe {
            let below = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(_mm512_loadu_ps(running.as_ptr()), _mm512_set1_ps(point));
            u32::from(below).count_ones()
        };
    }
    #[cfg(target_arch = "x86_64")]
    if U::AVX2 {
        use std::arch::x86_64::*;
        // SAFETY: these levels have AVX2.
        return unsafe {
            let point = _mm256_set1_ps(point);
            let half = |at: usize| {
                let below = _mm256_cmp_ps::<_CMP_LE_OQ>(_mm256_loadu_ps(running.as_ptr().add(at)), point);
                _mm256_movemask_ps(below).count_ones()
            };
            half(0) + half(8)
        };
    }
    running.iter().map(|&running| u32::from(running <= point)).sum()
}

/// The lane with `below` lanes before it in the order of [`scan`]. Numbers of 16 and more continue in the next sixteen lanes.
#[inline(always)]
pub(super) fn place_of(below: u32) -> usize {
    (below / 16 * 16 + below % 4 * 4 + below % 16 / 4) as usize
}

/// Draws an index with probability proportional to its weight. `weights` returns those of a block of sixteen, `sums` the sums of a group of
/// sixteen blocks, with 0 for missing blocks, `all` is the total, and `uniform` returns uniform random numbers. Weights must be at least 0,
/// and one must be positive.
#[inline(always)]
pub(super) fn draw<U: SimdLevel>(
    weights: impl Fn(usize) -> [f32; LANES],
    groups: usize,
    sums: impl Fn(usize) -> [f32; LANES],
    all: f64,
    mut uniform: impl FnMut() -> f64,
) -> usize {
    let block = 'again: loop {
        let mut point = uniform() * all;
        for group in 0..groups {
            let running = scan::<U>(&sums(group));
            if (point as f32) < running[LANES - 1] {
                break 'again group * LANES + place_of(below::<U>(&running, point as f32));
            }
            point -= f64::from(running[LANES - 1]);
        }
        // Rounding may leave a remainder after the last block.
    };
    let running = scan::<U>(&weights(block));
    loop {
        let point = (uniform() * f64::from(running[LANES - 1])) as f32;
        if point < running[LANES - 1] {
            return block * LANES + place_of(below::<U>(&running, point));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};
    use crate::vector::{self, Baseline, SimdKernel};

    /// Cumulative sums, and the number of them that are at most a point.
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
    fn cumulative_sums_do_not_decrease_and_have_the_same_bits_on_every_level() {
        let mut stream = stream();
        for _ in 0..10_000 {
            let mut lanes = [0.0; LANES];
            for lane in &mut lanes {
                if uniform(&mut stream) < 0.6 {
                    *lane = uniform(&mut stream).powi(8) as f32;
                }
            }
            let point = (uniform(&mut stream) * 2.0) as f32;
            let (running, below) = Both(lanes, point).compute::<Baseline>();
            let on_levels: Vec<_> = (0..vector::level_count()).map(|level| vector::on_level(level, Both(lanes, point))).collect();
            assert!(on_levels.iter().all(|found| *found == (running, below)), "{on_levels:?}");
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
    fn indices_are_drawn_in_proportion_to_weights() {
        // More than one group of blocks; one weight in seven is 0.
        let weight = |at: usize| (at % 7) as f32 * if at < 30 { 1.0 } else { 0.01 };
        let weights: Vec<[f32; LANES]> = (0..20).map(|block| std::array::from_fn(|lane| weight(block * LANES + lane))).collect();
        let sums = |group: usize| {
            std::array::from_fn(|lane| weights.get(group * LANES + lane).map_or(0.0, |block| block.iter().sum::<f32>()))
        };
        let all: f64 = weights.as_flattened().iter().map(|&weight| f64::from(weight)).sum();
        let mut stream = stream();
        let (mut counts, draws) = (vec![0_u32; 20 * LANES], 400_000.0);
        for _ in 0..draws as u32 {
            counts[draw::<Baseline>(|block| weights[block], 2, sums, all, || uniform(&mut stream))] += 1;
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
