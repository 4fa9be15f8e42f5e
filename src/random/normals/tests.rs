//! Standard normal numbers: distribution, tails, independence, and the arithmetic of the transform.

use super::super::philox::{Address, InstructionSet, fill};
use super::super::{Purpose, Seed, Stream, Who};
use super::*;

// Seeds are fixed, so a test either holds or does not; the false-alarm rates are those of a new seed.

unsafe extern "C" {
    /// The complementary error function of the C library.
    safe fn erfc(x: f64) -> f64;
}

fn cdf(x: f64) -> f64 {
    0.5 * erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn stream(step: u64) -> Stream {
    Seed(20_090_641).stream(Who::Chain(3), step, Purpose::Noise)
}

fn normals<F: Real>(stream: &mut Stream, n: usize) -> Vec<F> {
    let mut out = vec![F::default(); n];
    stream.normals(&mut out);
    out
}

/// √n times the Kolmogorov-Smirnov distance to the normal distribution.
fn kolmogorov_smirnov(mut sample: Vec<f64>) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(i, &x): (usize, &f64)| {
        let p = cdf(x);
        (p - i as f64 / n).max((i + 1) as f64 / n - p)
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

/// Exceeded with probability 2 exp(−2 · 1.95²) = 0.001 under the hypothesis.
const KS_LIMIT: f64 = 1.95;
const KS_SAMPLE: usize = 4_000_000;
/// Standard errors; exceeded with probability 7e-6.
const Z_LIMIT: f64 = 4.5;

fn follows_the_normal_law<F: Real>() {
    let sample: Vec<f64> = normals::<F>(&mut stream(1), KS_SAMPLE).iter().map(|z| z.f64()).collect();
    let statistic = kolmogorov_smirnov(sample);
    assert!(statistic < KS_LIMIT, "{} {statistic}", F::NAME);
}

#[test]
fn f32_follows_the_normal_law() {
    follows_the_normal_law::<f32>();
}

#[test]
fn f64_follows_the_normal_law() {
    follows_the_normal_law::<f64>();
}

#[test]
fn the_same_test_rejects_a_wrong_scale_and_a_sum_of_uniforms() {
    use rand::RngExt;
    let mut stream = stream(2);
    // Distances 0.0024 (1 % of max x φ(x)) and 0.0023 (excess kurtosis −0.1): 4.7 on this sample.
    let wide = normals::<f64>(&mut stream, KS_SAMPLE).iter().map(|z| 1.01 * z).collect();
    assert!(kolmogorov_smirnov(wide) > KS_LIMIT);
    let sums = (0..KS_SAMPLE).map(|_| (0..12).map(|_| stream.random::<f64>()).sum::<f64>() - 6.0).collect();
    assert!(kolmogorov_smirnov(sums) > KS_LIMIT);
}

/// Moments 1 to 4 and the two-sided tails beyond 3, 4, 5, 6 of 10^8 numbers.
fn moments_and_tails<F: Real>() {
    const PARTS: usize = 1000;
    let mut stream = stream(3);
    let mut part = vec![F::default(); 100_000];
    let n = (PARTS * part.len()) as f64;
    let (mut moments, mut tails) = ([0.0; 4], [0_u32; 4]);
    for _ in 0..PARTS {
        stream.normals(&mut part);
        for z in &part {
            let (z, square) = (z.f64(), z.f64() * z.f64());
            for (moment, power) in moments.iter_mut().zip([z, square, z * square, square * square]) {
                *moment += power;
            }
            if square > 9.0 {
                for (tail, limit) in tails.iter_mut().zip([3.0, 4.0, 5.0, 6.0]) {
                    *tail += u32::from(z.abs() > limit);
                }
            }
        }
    }
    // E z^k and Var z^k for k = 1 to 4.
    for (k, (exact, variance)) in [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)].into_iter().enumerate() {
        let z = (moments[k] / n - exact) / f64::sqrt(variance / n);
        assert!(z.abs() < Z_LIMIT, "{} moment {} is off by {z} standard errors", F::NAME, k + 1);
    }
    for (k, limit) in [3.0, 4.0, 5.0].into_iter().enumerate() {
        let expected = n * 2.0 * cdf(-limit);
        let z = (f64::from(tails[k]) - expected) / expected.sqrt();
        assert!(z.abs() < Z_LIMIT, "{} beyond {limit}: {} of {expected}", F::NAME, tails[k]);
    }
    // Expected 0.2; a Poisson number exceeds 4 with probability 2e-6.
    assert!(tails[3] <= 4, "{} beyond 6: {}", F::NAME, tails[3]);
}

#[test]
fn f32_moments_and_tails() {
    moments_and_tails::<f32>();
}

#[test]
fn f64_moments_and_tails() {
    moments_and_tails::<f64>();
}

/// Correlations of values and of squares, and a 16 × 16 table of equally likely bins.
fn independent(pairs: impl Iterator<Item = (f64, f64)>, what: &str) {
    let (mut n, mut values, mut squares) = (0.0, 0.0, 0.0);
    let mut table = vec![0.0_f64; 256];
    for (x, y) in pairs {
        n += 1.0;
        values += x * y;
        squares += (x * x - 1.0) * (y * y - 1.0);
        table[(cdf(x) * 16.0) as usize * 16 + (cdf(y) * 16.0) as usize] += 1.0;
    }
    let values = values / f64::sqrt(n);
    assert!(values.abs() < Z_LIMIT, "{what}: values correlate by {values} standard errors");
    let squares = squares / 2.0 / f64::sqrt(n);
    assert!(squares.abs() < Z_LIMIT, "{what}: squares correlate by {squares} standard errors");
    let expected = n / 256.0;
    let chi: f64 = table.iter().map(|count| (count - expected).powi(2) / expected).sum();
    let z = (chi - 255.0) / f64::sqrt(2.0 * 255.0);
    assert!(z.abs() < Z_LIMIT, "{what}: chi-square is {z} standard deviations off");
}

fn neighbors_are_independent<F: Real>() {
    const N: usize = 1 << 20;
    let z: Vec<f64> = normals::<F>(&mut stream(4), N).iter().map(|z| z.f64()).collect();
    independent(z.chunks_exact(2).map(|pair| (pair[0], pair[1])), "cosine and sine");
    for lag in [1, 2, 3, 4, 16, 32, 64, 128] {
        independent(z.iter().copied().zip(z[lag..].iter().copied()), &format!("lag {lag}"));
    }
    let next: Vec<f64> = normals::<F>(&mut stream(5), N).iter().map(|z| z.f64()).collect();
    independent(z.into_iter().zip(next), "the next step's stream");
}

#[test]
fn neighbors_are_independent_in_f32() {
    neighbors_are_independent::<f32>();
}

#[test]
fn neighbors_are_independent_in_f64() {
    neighbors_are_independent::<f64>();
}

#[test]
#[should_panic(expected = "squares correlate")]
fn the_same_test_rejects_pairs_that_share_a_radius() {
    let z: Vec<f64> = normals(&mut stream(4), 1 << 20);
    // Both are normal and uncorrelated, but have equal absolute values.
    independent(z.chunks_exact(2).map(|pair| (pair[0], pair[0].abs().copysign(pair[1]))), "mixed");
}

#[test]
fn short_streams_of_nearby_addresses_are_independent() {
    let first = |step: u64, id: u32| {
        let mut z = [0.0_f64];
        Seed(step % 3).stream(Who::Agent(id), step, Purpose::Noise).normals(&mut z);
        z[0]
    };
    independent((0..200_000).map(|i| (first(i, 1), first(i + 3, 1))), "steps");
    independent((0..200_000).map(|i| (first(i, 1), first(i, 2))), "agents");
    independent((0..200_000).map(|i| (first(i, 1), first(i ^ (1 << 63), 1))), "far steps");
}

fn same_bits_with_every_instruction_set<K: Kernel<Item: Real>>() {
    let address = Address { key: [0x1234_5678, 0x9ABC_DEF0], step: 77 };
    let part = |instructions, start, n| {
        let mut out = vec![K::Item::default(); n];
        fill::<K>(instructions, address, start, &mut out, |place, z| *place = z);
        out
    };
    let expected = part(InstructionSet::PORTABLE, 0, 300_000);
    for instructions in InstructionSet::available() {
        let bytes = bytemuck::cast_slice::<K::Item, u8>;
        assert!(bytes(&part(instructions, 0, 300_000)) == bytes(&expected), "{instructions:?}");
        for (start, n) in [(0, 0), (0, 1), (1, 1), (3, 54), (7, 500), (31, 33), (127, 1000), (9999, 129)] {
            let found = part(instructions, start as u64, n);
            assert!(bytes(&found) == bytes(&expected[start..start + n]), "{instructions:?} {start} {n}");
        }
    }
}

#[test]
fn f32_has_the_same_bits_with_every_instruction_set_and_from_any_start() {
    same_bits_with_every_instruction_set::<Normals32>();
}

#[test]
fn f64_has_the_same_bits_with_every_instruction_set_and_from_any_start() {
    same_bits_with_every_instruction_set::<Normals64>();
}

#[test]
fn pairs_are_the_box_muller_transform() {
    use rand::Rng;
    let mut stream = stream(6);
    let (mut worst32, mut worst64) = (0.0_f64, 0.0_f64);
    for i in 0..200_000 {
        // All scales of small u, and u near 1.
        let (mut radius, angle) = (stream.next_u64() >> (i % 64), stream.next_u64());
        if i % 3 == 0 {
            radius = !radius;
        }
        let exact = |u: f64, t: f64| {
            let (sin, cos) = (std::f64::consts::FRAC_PI_4 * t).sin_cos();
            let r = (-2.0 * u.ln()).sqrt() * if angle & 2 == 0 { 1.0 } else { -1.0 };
            if angle & 1 == 0 { (r * cos, r * sin, r.abs()) } else { (r * sin, r * cos, r.abs()) }
        };
        let (x, y) = pair64(radius, angle);
        let (c, s, r) = exact((radius | 1) as f64 / 2.0_f64.powi(64), (angle >> 12) as f64 / 2.0_f64.powi(51) - 1.0);
        worst64 = worst64.max((x - c).abs().max((y - s).abs()) / r.max(1e-9));

        let (radius, angle) = ((radius >> 32) as u32, angle as u32);
        let (x, y) = pair32(radius, angle);
        // The roundings of the words and of u are part of the definition.
        let u = f64::from(((f64::from(radius as f32) + 0.5) / 2.0_f64.powi(32)) as f32);
        let (c, s, r) = exact(u, f64::from(angle as i32 as f32) / 2.0_f64.powi(31));
        worst32 = worst32.max((f64::from(x) - c).abs().max((f64::from(y) - s).abs()) / r.max(1e-4));
    }
    // A few roundings each: 2^-24 = 6e-8, 2^-53 = 1.1e-16.
    assert!(worst32 < 4e-7, "{worst32}");
    assert!(worst64 < 1.5e-15, "{worst64}");
}

#[test]
fn extreme_words_give_finite_numbers() {
    // √(2 · 33 ln 2), √(2 · 64 ln 2).
    for (radius, reach32, reach64) in [(0, 6.764_f64, 9.419_f64), (u64::MAX, 0.0, 0.0)] {
        for angle in [0, 1, 2, 3, u64::MAX, 1 << 63, 1 << 31, (1 << 31) - 1] {
            let (x, y) = pair64(radius, angle);
            assert!((x.hypot(y) - reach64).abs() < 1e-3, "{x} {y}");
            let (x, y) = pair32(radius as u32, angle as u32);
            assert!((f64::from(x).hypot(f64::from(y)) - reach32).abs() < 1e-3, "{x} {y}");
        }
    }
}
