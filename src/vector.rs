//! Vectorized elementary functions, and run-time dispatch of loops to the SIMD instructions of the processor.

use crate::number::Real;
use std::any::TypeId;
use std::marker::PhantomData;

/// A level of SIMD instructions.
pub trait SimdLevel {
    /// Whether fused multiply-add is available.
    const FMA: bool;
    /// Whether there are 32 registers of 512 bits (AVX-512). Kernels for the other levels use no more than 16 registers of 256 bits.
    const WIDE: bool;
    /// Whether there is AVX2: on x86-64, on every level but the baseline.
    const AVX2: bool = Self::FMA && cfg!(target_arch = "x86_64");
}

/// AVX-512.
#[cfg(target_arch = "x86_64")]
struct Wide;

/// AVX2 with FMA, or the vector instructions of AArch64.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
struct Fused;

/// No fused multiply-add.
pub(crate) struct Baseline;

#[cfg(target_arch = "x86_64")]
impl SimdLevel for Wide {
    const FMA: bool = true;
    const WIDE: bool = true;
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl SimdLevel for Fused {
    const FMA: bool = true;
    const WIDE: bool = false;
}

impl SimdLevel for Baseline {
    const FMA: bool = false;
    const WIDE: bool = false;
}

/// A computation that [`dispatch`] compiles once for each SIMD level.
///
/// `compute` must be `#[inline(always)]`, and so must everything in its inner loops: only then is it compiled with the vector instructions.
pub trait SimdKernel {
    /// The result.
    type Output;

    /// Runs the computation on the SIMD level `U`.
    fn compute<U: SimdLevel>(self) -> Self::Output;
}

/// The SIMD levels of this architecture, of which a machine may lack some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    #[cfg(target_arch = "x86_64")]
    Wide,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Fused,
    #[cfg(not(target_arch = "aarch64"))]
    Baseline,
}

impl Level {
    #[cfg(target_arch = "x86_64")]
    const ALL: &[Self] = &[Self::Wide, Self::Fused, Self::Baseline];
    // Every AArch64 processor has fused multiply-add.
    #[cfg(target_arch = "aarch64")]
    const ALL: &[Self] = &[Self::Fused];
    // Without hardware support, fused multiply-add is a slow library call.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    const ALL: &[Self] = &[Self::Baseline];

    /// Whether this machine has it.
    fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = || is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = || {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
            };
            match self {
                Self::Wide => avx2() && avx512(),
                Self::Fused => avx2(),
                Self::Baseline => true,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        true
    }

    /// Runs a kernel on this level, which the machine must have.
    fn run<K: SimdKernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            fn avx512<K: SimdKernel>(kernel: K) -> K::Output {
                kernel.compute::<Wide>()
            }

            #[target_feature(enable = "avx2,fma")]
            fn avx2<K: SimdKernel>(kernel: K) -> K::Output {
                kernel.compute::<Fused>()
            }

            match self {
                // SAFETY: only levels of this machine are run, so it has every feature that the function enables.
                Self::Wide => unsafe { avx512(kernel) },
                // SAFETY: as above.
                Self::Fused => unsafe { avx2(kernel) },
                Self::Baseline => kernel.compute::<Baseline>(),
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            kernel.compute::<Fused>()
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            kernel.compute::<Baseline>()
        }
    }
}

/// Runs a kernel with the widest SIMD instructions of this machine (x86-64: AVX-512, AVX2 with FMA, or the baseline).
///
/// AVX2 and AVX-512 give the same bits for elementwise work; the x86 baseline has no fused multiply-add and rounds differently.
pub fn dispatch<K: SimdKernel>(kernel: K) -> K::Output {
    let widest = Level::ALL.iter().find(|level| level.is_here());
    // Every machine has the last level, so that one is always found.
    widest.unwrap_or(&Level::ALL[Level::ALL.len() - 1]).run(kernel)
}

/// How many levels this machine has, for tests.
#[cfg(test)]
pub(crate) fn level_count() -> usize {
    Level::ALL.iter().filter(|level| level.is_here()).count()
}

/// Runs a kernel on one of the levels of this machine, of which the widest is the first, for tests.
#[cfg(test)]
pub(crate) fn on_level<K: SimdKernel>(number: usize, kernel: K) -> K::Output {
    let mut here = Level::ALL.iter().filter(|level| level.is_here());
    here.nth(number).unwrap_or(&Level::ALL[Level::ALL.len() - 1]).run(kernel)
}

/// Defines a function whose body [`dispatch`] compiles once for each SIMD level.
macro_rules! vectorized {
    ($(#[$doc:meta])* $vis:vis fn $name:ident<$F:ident: $bound:path>($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $crate::vector::vectorized! { $(#[$doc])* $vis fn $name<$F: $bound>($($arg: $ty),*) -> () $body }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident<$F:ident: $bound:path>($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        $(#[$doc])*
        $vis fn $name<$F: $bound>($($arg: $ty),*) -> $ret {
            struct Call<Arguments>(Arguments);

            impl<$F: $bound> $crate::vector::SimdKernel for Call<($($ty,)*)> {
                type Output = $ret;

                #[inline(always)]
                fn compute<U: $crate::vector::SimdLevel>(self) -> $ret {
                    let ($($arg,)*) = self.0;
                    $body
                }
            }

            $crate::vector::dispatch(Call(($($arg,)*)))
        }
    };
}

pub(crate) use vectorized;

/// Prefetches the first cache lines of `len` elements from `start` on; the hardware prefetcher continues.
#[inline]
pub(crate) fn prefetch<F>(data: &[F], start: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        const MAX_LINES: usize = 8;
        let bytes = (len * size_of::<F>()).min(LINE * MAX_LINES);
        let first = data.as_ptr().wrapping_add(start).cast::<i8>();
        for offset in (0..bytes).step_by(LINE) {
            // SAFETY: a prefetch never faults and changes no values, so any address is valid.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, start, len);
}

/// a·b + c, rounded once with fused multiply-add and twice without.
#[inline(always)]
pub fn multiply_add<F: Real, U: SimdLevel>(a: F, b: F, c: F) -> F {
    if U::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// exp(x) in place. Relative error below 1e-15 (f64) and 2e-7 (f32).
///
/// exp(−∞) = 0, and results near and below the smallest normal number (x < −708, or −86.5 in f32) are 0; exp(∞) = ∞; NaN stays NaN.
pub fn exp<F: Real>(values: &mut [F]) {
    map::<Exp, F>(values);
}

/// log(1 + exp(x)) in place, without overflow or cancellation: relative error below 1e-15 (f64) and 4e-7 (f32); 0 for x < −708, or −86.5
/// in f32.
pub fn softplus<F: Real>(values: &mut [F]) {
    map::<Softplus, F>(values);
}

/// The logistic function 1/(1 + exp(−x)) in place, with relative error below 1e-15 (f64) and 4e-7 (f32); 0 where exp(−x) is infinite (x < −709.8, or
/// −88.7 in f32).
pub fn sigmoid<F: Real>(values: &mut [F]) {
    map::<Sigmoid, F>(values);
}

/// A scalar function that is compiled into loops over slices.
trait Function {
    fn apply<L: Lane, U: SimdLevel>(x: L) -> L;
}

struct Exp;
struct Softplus;
struct Sigmoid;

impl Function for Exp {
    #[inline(always)]
    fn apply<L: Lane, U: SimdLevel>(x: L) -> L {
        x.exponential::<U>()
    }
}

impl Function for Softplus {
    #[inline(always)]
    fn apply<L: Lane, U: SimdLevel>(x: L) -> L {
        let positive = if x < L::zero() { L::zero() } else { x };
        positive + (-x.abs()).exponential::<U>().log_one_plus::<U>()
    }
}

impl Function for Sigmoid {
    #[inline(always)]
    fn apply<L: Lane, U: SimdLevel>(x: L) -> L {
        L::one() / (L::one() + (-x).exponential::<U>())
    }
}

struct Map<'a, L, G>(&'a mut [L], PhantomData<G>);

impl<L: Lane, G: Function> SimdKernel for Map<'_, L, G> {
    type Output = ();

    #[inline(always)]
    fn compute<U: SimdLevel>(self) {
        for value in self.0 {
            *value = G::apply::<L, U>(*value);
        }
    }
}

fn map<G: Function, F: Real>(values: &mut [F]) {
    if TypeId::of::<F>() == TypeId::of::<f64>() {
        dispatch(Map::<f64, G>(bytemuck::cast_slice_mut(values), PhantomData));
    } else if TypeId::of::<F>() == TypeId::of::<f32>() {
        dispatch(Map::<f32, G>(bytemuck::cast_slice_mut(values), PhantomData));
    } else {
        for value in values {
            *value = F::of(G::apply::<f64, Baseline>(value.f64()));
        }
    }
}

/// A number type with elementary functions free of branches and calls, so that loops over them become vector loops.
trait Lane: Real {
    /// exp(x).
    fn exponential<U: SimdLevel>(self) -> Self;
    /// log(1 + x) for 0 ≤ x ≤ 1.
    fn log_one_plus<U: SimdLevel>(self) -> Self;
}

/// `c[0] + x (c[1] + x (c[2] + ...))`.
#[inline(always)]
fn polynomial<L: Real, U: SimdLevel, const N: usize>(x: L, coefficients: &[L; N]) -> L {
    let mut sum = coefficients[N - 1];
    for &coefficient in coefficients[..N - 1].iter().rev() {
        sum = multiply_add::<L, U>(sum, x, coefficient);
    }
    sum
}

macro_rules! lane {
    ($float:ident, $bits:ident, $mantissa:literal, $bias:literal, $lowest:literal, $highest:literal, $ln2_high:literal, $ln2_low:literal,
     $exp_terms:literal, $log_terms:literal) => {
        impl Lane for $float {
            // exp(x) = 2^n exp(r) with r = x − n ln 2, |r| ≤ ln(2)/2, and exp(r) by its Taylor series.
            #[inline(always)]
            fn exponential<U: SimdLevel>(self) -> Self {
                // 1/k!
                const TAYLOR: [$float; $exp_terms] = {
                    let mut terms = [1.0; $exp_terms];
                    let (mut k, mut factorial) = (1, 1.0);
                    while k < $exp_terms {
                        factorial *= k as f64;
                        terms[k] = (1.0 / factorial) as $float;
                        k += 1;
                    }
                    terms
                };
                // Adding 1.5·2^mantissa rounds to an integer in the low bits.
                const ROUNDER: $float = 1.5 * (1_u64 << $mantissa) as $float;
                let x = if self > $highest { $highest } else { self };
                let shifted = multiply_add::<$float, U>(x, std::$float::consts::LOG2_E, ROUNDER);
                let n = shifted - ROUNDER;
                let r = multiply_add::<$float, U>(n, -$ln2_low, multiply_add::<$float, U>(n, -$ln2_high, x));
                // 2^(n−1), multiplied by 2 below, because 2^n overflows slightly earlier than the result.
                let scale = $float::from_bits(shifted.to_bits().wrapping_add($bias - 1) << $mantissa);
                let y = 2.0 * polynomial::<$float, U, $exp_terms>(r, &TAYLOR) * scale;
                if self < $lowest { 0.0 } else { y }
            }

            // log(1 + x) = 2 artanh(s), s = x/(2 + x) ≤ 1/3, by the Taylor series of artanh in s².
            #[inline(always)]
            fn log_one_plus<U: SimdLevel>(self) -> Self {
                // 2/(2k + 3)
                const TAYLOR: [$float; $log_terms] = {
                    let mut terms = [0.0; $log_terms];
                    let mut k = 0;
                    while k < $log_terms {
                        terms[k] = (2.0 / (2 * k + 3) as f64) as $float;
                        k += 1;
                    }
                    terms
                };
                let s = self / (2.0 + self);
                let square = s * s;
                2.0 * s + s * square * polynomial::<$float, U, $log_terms>(square, &TAYLOR)
            }
        }
    };
}

lane!(f64, u64, 52, 1023, -708.0, 710.0, 0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10, 14, 16);
lane!(f32, u32, 23, 127, -86.5, 89.0, 0.693_359_4, -2.121_944_4e-4, 8, 7);

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(low: f64, high: f64) -> Vec<f64> {
        (0..=200_000).map(|i| low + (high - low) * f64::from(i) / 200_000.0).collect()
    }

    /// Largest relative difference of the mapped grid from the standard library's function.
    fn error<F: Real>(low: f64, high: f64, map: fn(&mut [F]), exact: fn(f64) -> f64) -> f64 {
        let mut values: Vec<F> = grid(low, high).into_iter().map(F::of).collect();
        let inputs: Vec<f64> = values.iter().map(|x| x.f64()).collect();
        map(&mut values);
        inputs.iter().zip(&values).map(|(&x, y)| ((y.f64() - exact(x)) / exact(x)).abs()).fold(0.0, f64::max)
    }

    fn exact_softplus(x: f64) -> f64 {
        x.max(0.0) + (-x.abs()).exp().ln_1p()
    }

    fn exact_sigmoid(x: f64) -> f64 {
        if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
    }

    #[test]
    fn double_precision_agrees_with_the_standard_library() {
        for (low, high) in [(-708.0, 709.7), (-1.0, 1.0), (-30.0, 30.0)] {
            assert!(error::<f64>(low, high, exp, f64::exp) < 1e-15);
        }
        for (low, high) in [(-700.0, 700.0), (-5.0, 5.0)] {
            assert!(error::<f64>(low, high, softplus, exact_softplus) < 1e-15);
            assert!(error::<f64>(low, high, sigmoid, exact_sigmoid) < 1e-15);
        }
    }

    #[test]
    fn single_precision_agrees_with_the_standard_library() {
        for (low, high) in [(-86.5, 88.7), (-1.0, 1.0)] {
            assert!(error::<f32>(low, high, exp, f64::exp) < 2e-7);
        }
        for (low, high) in [(-86.0, 86.0), (-5.0, 5.0)] {
            assert!(error::<f32>(low, high, softplus, exact_softplus) < 4e-7);
            assert!(error::<f32>(low, high, sigmoid, exact_sigmoid) < 4e-7);
        }
    }

    #[test]
    fn limits_are_exact() {
        fn check<F: Real>() {
            let infinity = F::infinity();
            let mut values = [F::zero(), -infinity, infinity, F::nan(), F::of(-1e30), F::of(1e30), F::of(-1000.0), F::of(1000.0)];
            exp(&mut values);
            assert_eq!(values[..3], [F::one(), F::zero(), infinity]);
            assert!(values[3].is_nan());
            assert_eq!(values[4..], [F::zero(), infinity, F::zero(), infinity]);
            let mut values = [-infinity, infinity, F::of(-1e30), F::of(1e30)];
            softplus(&mut values);
            assert_eq!(values, [F::zero(), infinity, F::zero(), F::of(1e30)]);
            let mut values = [-infinity, infinity];
            sigmoid(&mut values);
            assert_eq!(values, [F::zero(), F::one()]);
        }
        check::<f32>();
        check::<f64>();
    }

    /// Vector bodies and scalar tails of a loop agree.
    #[test]
    fn results_do_not_depend_on_the_position_in_the_slice() {
        for len in [1, 2, 7, 8, 9, 16, 37, 64, 1000] {
            let values: Vec<f64> = grid(-20.0, 20.0).into_iter().step_by(97).take(len).collect();
            assert_eq!(values.len(), len);
            let mut together = values.clone();
            exp(&mut together);
            for (value, expected) in values.into_iter().zip(together) {
                let mut alone = [value];
                exp(&mut alone);
                assert_eq!(alone[0].to_bits(), expected.to_bits());
            }
        }
    }
}
