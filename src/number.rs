//! The number types of arrays: [`Number`] for messages, [`Real`] for computation.

use std::fmt::{Debug, Display};

#[cfg(target_endian = "big")]
compile_error!("messages and checkpoints are raw little-endian arrays: big-endian machines are not supported");

/// The element type of message bodies: plain old data with addition.
pub trait Number:
    bytemuck::Pod + Debug + Display + Default + PartialEq + std::ops::Add<Output = Self> + std::ops::AddAssign + Send + Sync + 'static
{
    /// The name of the type: `f32`, `f64` or `i32`.
    const NAME: &'static str;
    /// Whether sums are exact, and so do not depend on the order.
    const EXACT: bool;

    /// The value as `f64`.
    fn f64(self) -> f64;

    /// Wraps a value in the variant of this type. A function that takes a [`ByNumber`] is not generic, so that it is
    /// compiled once here, and not in every crate that calls it.
    fn by_number<T: PerNumber>(of: T::Of<Self>) -> ByNumber<T>;
}

/// A type constructor over number types.
pub trait PerNumber {
    /// The type for this number type.
    type Of<N: Number>;
}

/// A value of a type that depends on the number type.
pub enum ByNumber<T: PerNumber> {
    /// For `f32`.
    F32(T::Of<f32>),
    /// For `f64`.
    F64(T::Of<f64>),
    /// For `i32`.
    I32(T::Of<i32>),
}

impl Number for f32 {
    const NAME: &'static str = "f32";
    const EXACT: bool = false;

    fn f64(self) -> f64 {
        f64::from(self)
    }

    fn by_number<T: PerNumber>(of: T::Of<Self>) -> ByNumber<T> {
        ByNumber::F32(of)
    }
}

impl Number for f64 {
    const NAME: &'static str = "f64";
    const EXACT: bool = false;

    fn f64(self) -> f64 {
        self
    }

    fn by_number<T: PerNumber>(of: T::Of<Self>) -> ByNumber<T> {
        ByNumber::F64(of)
    }
}

impl Number for i32 {
    const NAME: &'static str = "i32";
    const EXACT: bool = true;

    fn f64(self) -> f64 {
        f64::from(self)
    }

    fn by_number<T: PerNumber>(of: T::Of<Self>) -> ByNumber<T> {
        ByNumber::I32(of)
    }
}

/// The floating-point type in which models and kernels compute.
pub trait Real: Number + ndarray::NdFloat + num_traits::FloatConst + std::iter::Sum {
    /// The nearest value of this type.
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

/// log Σ exp(value): −∞ without values, NaN if any value is NaN.
pub fn log_sum_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = values.clone().fold(f64::NEG_INFINITY, f64::max);
    match top.is_finite() {
        true => top + values.map(|value| (value - top).exp()).sum::<f64>().ln(),
        // Infinities, and NaN, which `max` leaves out.
        false => values.fold(top, |sum, value| if value.is_nan() { value } else { sum }),
    }
}
