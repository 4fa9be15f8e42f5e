//! Standard normal numbers from Philox blocks by the Box-Muller transform, in arithmetic that vectorises.
//!
//! A pair is r (cos a, sin a) with r² = −2 ln u (Box & Muller 1958). The angle is uniform on [−π/4, π/4] by most bits of a
//! word; its last two bits swap cosine and sine and turn the sign of r, which spreads it over the circle. The polynomials
//! are minimax fits (Remez, relative error stated); every operation is correctly rounded, so all machines agree in all bits.

use super::philox::{BLOCKS, Halves, Kernel};
use crate::number::Real;

/// Normals 4b to 4b+3 come from block b; |z| ≤ 6.77 (a 32-bit uniform for the radius).
pub(super) struct Normals32;
/// Normals 2b, 2b+1 come from block b; |z| ≤ 9.42 (a 64-bit uniform for the radius).
pub(super) struct Normals64;

impl Kernel for Normals32 {
    type Item = f32;
    type Chunk = [f32; 4 * BLOCKS];
    const EMPTY: Self::Chunk = [0.0; 4 * BLOCKS];
    const SEQUENCE: u64 = 1;
    const ITEMS_PER_BLOCK: usize = 4;

    #[inline(always)]
    fn convert(halves: &Halves, chunk: &mut Self::Chunk) {
        let words: [u32; 4 * BLOCKS] = bytemuck::cast(*halves);
        for (pair, word) in chunk.chunks_exact_mut(2).zip(words.chunks_exact(2)) {
            (pair[0], pair[1]) = pair32(word[0], word[1]);
        }
    }
}

impl Kernel for Normals64 {
    type Item = f64;
    type Chunk = [f64; 2 * BLOCKS];
    const EMPTY: Self::Chunk = [0.0; 2 * BLOCKS];
    const SEQUENCE: u64 = 2;
    const ITEMS_PER_BLOCK: usize = 2;

    #[inline(always)]
    fn convert(halves: &Halves, chunk: &mut Self::Chunk) {
        for (pair, half) in chunk.chunks_exact_mut(2).zip(halves.chunks_exact(2)) {
            (pair[0], pair[1]) = pair64(half[0], half[1]);
        }
    }
}

/// coefficients[0] + coefficients[1] x + ..., each step with one rounding.
#[inline(always)]
fn horner<F: Real, const N: usize>(x: F, coefficients: [F; N]) -> F {
    let mut value = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        value = value.mul_add(x, coefficients[i]);
    }
    value
}

#[inline(always)]
fn pair32(radius: u32, angle: u32) -> (f32, f32) {
    const SQRT_HALF: u32 = 0x3F35_04F3;
    const TWO_POW_M32: f32 = 1.0 / 4_294_967_296.0;
    // Half a step up: never 0, and rounded to 1 at most.
    let u = (radius as f32).mul_add(TWO_POW_M32, 0.5 * TWO_POW_M32).to_bits();
    // u = 2^exponent (1 + f), 1 + f in [√½, √2).
    let exponent = (u.wrapping_sub(SQRT_HALF) as i32) >> 23;
    let f = f32::from_bits(u.wrapping_sub((exponent << 23) as u32)) - 1.0;
    // −2 ln(1 + f) / f, relative error 2.6e-8.
    let log = horner(
        f,
        [-2.0, 0.999_999_76, -0.666_683_73, 0.500_041_5, -0.399_136_7, 0.331_247_72, -0.299_045_12, 0.287_337_87, -0.174_449_01],
    );
    let r = (exponent as f32).mul_add(-2.0 * std::f32::consts::LN_2, f * log).sqrt();
    let r = f32::from_bits(r.to_bits() ^ ((angle & 2) << 30));

    let t = (angle as i32) as f32 * (2.0 * TWO_POW_M32);
    let z = t * t;
    // cos(πt/4), relative error 5.6e-11, and sin(πt/4) / t, 3.2e-9.
    let cos = r * horner(z, [1.0, -0.308_425_13, 0.015_854_323, -0.000_325_936_5, 3.528_762e-6]);
    let sin = r * (t * horner(z, [std::f32::consts::FRAC_PI_4, -0.080_745_436, 0.002_490_001, -3.595_045_2e-5]));
    if angle & 1 == 0 { (cos, sin) } else { (sin, cos) }
}

#[inline(always)]
fn pair64(radius: u64, angle: u64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    const ONE: u64 = 0x3FF0_0000_0000_0000;
    const TWO_POW_52: f64 = 4_503_599_627_370_496.0;
    // 2^64 u: never 0.
    let u = ((radius | 1) as f64).to_bits();
    // 2^64 u = 2^exponent (1 + f), 1 + f in [√½, √2).
    let exponent = (u - SQRT_HALF) >> 52;
    let f = f64::from_bits(u - (exponent << 52)) - 1.0;
    let exponent = f64::from_bits(exponent | TWO_POW_52.to_bits()) - (TWO_POW_52 + 64.0);
    // (−2 ln(1 + f) / s + 4) / s² with s = f / (2 + f), ln(1 + f) = 2 artanh s; relative error 4.6e-16.
    let s = f / (2.0 + f);
    let z = s * s;
    let log = horner(
        z,
        [
            -4.0,
            -1.333_333_333_333_334,
            -0.799_999_999_997_983_5,
            -0.571_428_572_522_121_8,
            -0.444_444_222_316_709_55,
            -0.363_657_807_378_369_34,
            -0.306_633_680_202_417_5,
            -0.292_337_513_670_946_3,
        ],
    );
    let r = exponent.mul_add(-2.0 * std::f64::consts::LN_2, s * log).sqrt();
    let r = f64::from_bits(r.to_bits() ^ ((angle & 2) << 62));

    let t = f64::from_bits((angle >> 12) | ONE).mul_add(2.0, -3.0);
    let z = t * t;
    // cos(πt/4), relative error 5.6e-17, and sin(πt/4) / t, 3.4e-18.
    let cos = r * horner(
        z,
        [
            0.999_999_999_999_999_9,
            -0.308_425_137_534_037_2,
            0.015_854_344_243_734_57,
            -0.000_325_991_886_454_039_6,
            3.590_859_123_356_295_8e-6,
            -2.460_945_716_071_511e-8,
            1.136_381_247_269_750_2e-10,
        ],
    );
    let sin = r
        * (t * horner(
            z,
            [
                std::f64::consts::FRAC_PI_4,
                -0.080_745_512_188_280_54,
                0.002_490_394_570_188_736_4,
                -3.657_620_415_845_707e-5,
                3.133_616_216_641_699e-7,
                -1.757_149_294_530_204e-9,
                6.877_100_876_749_392e-12,
            ],
        ));
    if angle & 1 == 0 { (cos, sin) } else { (sin, cos) }
}

#[cfg(test)]
mod tests {
    use super::super::philox::{Address, Path, fill};
    use super::super::{Purpose, Seed, Stream, Who};
    use super::*;

    // Seeds are fixed, so a test either holds or does not; the false-alarm rates are what a fresh seed would see.

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

    /// √n times the Kolmogorov-Smirnov distance to the normal law.
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

    fn neighbours_are_independent<F: Real>() {
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
    fn neighbours_are_independent_in_f32() {
        neighbours_are_independent::<f32>();
    }

    #[test]
    fn neighbours_are_independent_in_f64() {
        neighbours_are_independent::<f64>();
    }

    #[test]
    #[should_panic(expected = "squares correlate")]
    fn the_same_test_rejects_pairs_that_share_a_radius() {
        let z: Vec<f64> = normals(&mut stream(4), 1 << 20);
        // Normal both, uncorrelated, and one's size is the other's.
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

    fn same_bits_on_every_path<K: Kernel<Item: Real>>() {
        let address = Address { key: [0x1234_5678, 0x9ABC_DEF0], step: 77 };
        let part = |path, start, n| {
            let mut out = vec![K::Item::default(); n];
            fill::<K>(path, address, start, &mut out, |place, z| *place = z);
            out
        };
        let expected = part(Path::Portable, 0, 300_000);
        for path in Path::available() {
            let bytes = bytemuck::cast_slice::<K::Item, u8>;
            assert!(bytes(&part(path, 0, 300_000)) == bytes(&expected), "{path:?}");
            for (start, n) in [(0, 0), (0, 1), (1, 1), (3, 54), (7, 500), (31, 33), (127, 1000), (9999, 129)] {
                assert!(bytes(&part(path, start as u64, n)) == bytes(&expected[start..start + n]), "{path:?} {start} {n}");
            }
        }
    }

    #[test]
    fn f32_has_the_same_bits_on_every_path_and_from_any_start() {
        same_bits_on_every_path::<Normals32>();
    }

    #[test]
    fn f64_has_the_same_bits_on_every_path_and_from_any_start() {
        same_bits_on_every_path::<Normals64>();
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
}
