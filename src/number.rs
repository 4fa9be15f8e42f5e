//! The number types that arrays are made of: [`Number`] for what travels, [`Real`] for what is computed with.

use std::fmt::{Debug, Display};

#[cfg(target_endian = "big")]
compile_error!("messages and checkpoints are raw little-endian arrays; this machine is big-endian");

/// Plain old data that can be added: what message bodies are made of.
pub trait Number:
    bytemuck::Pod + Debug + Display + Default + PartialEq + std::ops::Add<Output = Self> + std::ops::AddAssign + Send + Sync + 'static
{
    /// The name of the type in configuration and files: `f32`, `f64` or `i32`.
    const NAME: &'static str;
    /// Whether a sum is the same in any order.
    const EXACT: bool;

    /// The value in double precision.
    fn f64(self) -> f64;

    /// Says which type this is, of something that there is for each: what takes a [`ByNumber`] is compiled once, not by its callers.
    fn by_number<T: PerNumber>(of: T::Of<Self>) -> ByNumber<T>;
}

/// Something that there is for each type of number.
pub trait PerNumber {
    /// That for this type.
    type Of<N: Number>;
}

/// One of a [`PerNumber`].
pub enum ByNumber<T: PerNumber> {
    /// That for `f32`.
    F32(T::Of<f32>),
    /// That for `f64`.
    F64(T::Of<f64>),
    /// That for `i32`.
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

/// A floating-point type that models and kernels compute in.
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
