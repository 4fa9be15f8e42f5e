//! Standard normal numbers from Philox blocks by the Box-Muller transform, in arithmetic that vectorizes.
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
    const QUARTER: u64 = 1;
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
    const QUARTER: u64 = 2;
    const ITEMS_PER_BLOCK: usize = 2;

    #[inline(always)]
    fn convert(halves: &Halves, chunk: &mut Self::Chunk) {
        for (pair, half) in chunk.chunks_exact_mut(2).zip(halves.chunks_exact(2)) {
            (pair[0], pair[1]) = pair64(half[0], half[1]);
        }
    }
}

/// The polynomial coefficients[0] + coefficients[1] x + ..., with one rounding per step.
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
mod tests;
