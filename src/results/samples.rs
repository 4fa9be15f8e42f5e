//! Draws of a run: what a group of them is called and made of, and their numbers as chains × draws × parameters.

use crate::models::Part;
use ndarray::{Array2, Array3};

/// What the draws of a chain are to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// One after another: R-hat, effective sample sizes and autocorrelation mean what they say.
    #[default]
    Chains,
    /// Particles, one draw each: their order means nothing, and so do convergence diagnostics of them.
    Particles,
    /// One vector, an expectation over the posterior, such as its mean.
    Expectation,
    /// Topics: words × topics. The order of topics means nothing, and so does what becomes of a single number.
    Topics,
    /// Each chain is the path of a particle, with a draw for each evaluated round: again nothing for convergence diagnostics.
    Paths,
}

impl SampleKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chains => "chains",
            Self::Particles => "particles",
            Self::Paths => "paths",
            Self::Topics => "topics",
            Self::Expectation => "expectation",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Chains, Self::Particles, Self::Paths, Self::Expectation, Self::Topics].into_iter().find(|kind| kind.name() == name)
    }
}

/// A group of draws, before there are any.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup {
    /// Its name: `posterior`.
    pub name: String,
    /// The named parts of a draw, in order; their sizes add up to its length.
    pub parts: Vec<Part>,
    /// What its draws are.
    pub kind: SampleKind,
}

impl SampleGroup {
    /// Numbers in a draw.
    pub fn size(&self) -> usize {
        self.parts.iter().map(Part::size).sum()
    }
}

/// The draws of one group, `posterior` for instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The group.
    pub group: String,
    /// What its draws are.
    pub kind: SampleKind,
    /// The named parts of a draw, in order; their sizes add up to its length.
    pub parts: Vec<Part>,
    /// The numbers; those that a shorter chain lacks are NaN, or −2147483647.
    pub values: Values,
}

/// Chains × draws × parameters in the precision of the run.
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
