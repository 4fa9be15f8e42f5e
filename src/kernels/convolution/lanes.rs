//! Sixteen channels of a pixel in vector registers.

use crate::number::Real;
use crate::vector::{SimdLevel, multiply_add};

/// The number of channels that a kernel computes together. Layouts round the channels of layers up to a multiple of it.
pub const LANES: usize = 16;

/// Sums for sixteen channels.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Lanes<F>(pub [F; LANES]);

impl<F: Real> Lanes<F> {
    pub const fn zero(zero: F) -> Self {
        Self([zero; LANES])
    }

    /// Adds `x` times the weights.
    #[inline(always)]
    pub fn add_product<U: SimdLevel>(&mut self, x: F, weights: &[F; LANES]) {
        // Intrinsics, because the compiler does not always keep arrays of sums in registers.
        #[cfg(target_arch = "x86_64")]
        if U::AVX2 && std::any::TypeId::of::<F>() == std::any::TypeId::of::<f32>() {
            use std::arch::x86_64::*;
            use std::mem::transmute_copy;
            let weights = weights.as_ptr().cast::<f32>();
            // SAFETY: F is f32, so sums and weights are sixteen f32, and the level has the instructions.
            unsafe {
                let x: f32 = transmute_copy(&x);
                if U::WIDE {
                    let sums: __m512 = transmute_copy(&self.0);
                    let sums = _mm512_fmadd_ps(_mm512_set1_ps(x), _mm512_loadu_ps(weights), sums);
                    self.0 = transmute_copy(&sums);
                } else {
                    let [low, high]: [__m256; 2] = transmute_copy(&self.0);
                    let x = _mm256_set1_ps(x);
                    let low = _mm256_fmadd_ps(x, _mm256_loadu_ps(weights), low);
                    let high = _mm256_fmadd_ps(x, _mm256_loadu_ps(weights.add(LANES / 2)), high);
                    self.0 = transmute_copy(&[low, high]);
                }
            }
            return;
        }
        for (sum, &weight) in self.0.iter_mut().zip(weights) {
            *sum = multiply_add::<F, U>(x, weight, *sum);
        }
    }
}
