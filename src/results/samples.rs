//! Groups of draws: their kind, their variables, and their values as chains × draws × parameters.

use crate::models::Part;
use ndarray::{Array2, Array3};

/// The kind of a group of draws, which decides whether R-hat, ESS and autocorrelation are defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// Draws of Markov chains in order: all diagnostics are defined.
    #[default]
    Chains,
    /// Particles, one draw each: they have no order, so that convergence diagnostics are not defined.
    Particles,
    /// One vector: a posterior expectation, such as the mean.
    Expectation,
    /// Topics: words × topics. Topics have no fixed order, so that single values cannot be compared between chains.
    Topics,
    /// Each chain is the path of a particle, with a draw for each evaluated round: convergence diagnostics are not defined.
    Paths,
    /// What the steps to the draws of Markov chains were like, such as their energies: a value of each for every draw.
    Statistics,
}

impl SampleKind {
    /// Its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chains => "chains",
            Self::Particles => "particles",
            Self::Paths => "paths",
            Self::Topics => "topics",
            Self::Expectation => "expectation",
            Self::Statistics => "statistics",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [Self::Chains, Self::Particles, Self::Paths, Self::Expectation, Self::Topics, Self::Statistics];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// The layout of a group of draws.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup {
    /// Its name: `posterior`.
    pub name: String,
    /// The variables of a draw, in order; their sizes add up to its length.
    pub parts: Vec<Part>,
    /// The kind of its draws.
    pub kind: SampleKind,
}

impl SampleGroup {
    /// The number of values in a draw.
    pub fn size(&self) -> usize {
        self.parts.iter().map(Part::size).sum()
    }
}

/// The draws of a group, such as `posterior`.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The group.
    pub group: String,
    /// The kind of its draws.
    pub kind: SampleKind,
    /// The variables of a draw, in order; their sizes add up to its length.
    pub parts: Vec<Part>,
    /// The values, padded with NaN (integers: −2147483647) for shorter chains.
    pub values: Values,
}

/// Chains × draws × parameters, in the number type of the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Array3<f32>),
    /// Double precision.
    F64(Array3<f64>),
    /// Integers.
    I32(Array3<i32>),
}

impl Values {
    /// Chains, draws of each, parameters.
    pub fn dim(&self) -> (usize, usize, usize) {
        match self {
            Self::F32(values) => values.dim(),
            Self::F64(values) => values.dim(),
            Self::I32(values) => values.dim(),
        }
    }

    /// All draws of all chains as rows, chain after chain, in double precision.
    pub fn matrix(&self) -> Array2<f64> {
        let (chains, draws, dim) = self.dim();
        let numbers: Vec<f64> = match self {
            Self::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
            Self::F64(values) => values.iter().copied().collect(),
            Self::I32(values) => values.iter().map(|&value| f64::from(value)).collect(),
        };
        Array2::from_shape_fn((chains * draws, dim), |(row, column)| numbers[row * dim + column])
    }
}
