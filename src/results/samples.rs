//! Draws of a whole run: chains × draws × parameters, assembled from the blocks that servers and agents wrote down.

use super::error::{Result, ResultsError};
use crate::cluster::record::Draws;
use crate::models::Part;
use crate::number::Number;
use ndarray::{Array2, Array3};
use std::collections::BTreeMap;

/// What the draws of a chain are to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleKind {
    /// One after another: R-hat, effective sample sizes and autocorrelation mean what they say.
    #[default]
    Chains,
    /// Particles, one draw each: their order means nothing, and so do convergence diagnostics of them.
    Particles,
}

impl SampleKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chains => "chains",
            Self::Particles => "particles",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Chains, Self::Particles].into_iter().find(|kind| kind.name() == name)
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
    /// The numbers.
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

impl Samples {
    /// Assembles the blocks of `group`, in any order; every chain must have the same number of draws, without gaps.
    ///
    /// # Errors
    /// When there are none, or blocks are missing, overlap, differ in kind or length, or do not have the length of the parts.
    pub fn assemble(group: &str, parts: &[Part], blocks: &[Draws]) -> Result<Self> {
        let wrong = |what: String| ResultsError::Shape(format!("the draws of {group:?}: {what}"));
        let mut chains: BTreeMap<u32, Vec<&Draws>> = BTreeMap::new();
        for block in blocks.iter().filter(|block| block.group == group) {
            chains.entry(block.chain).or_default().push(block);
        }
        let dim: usize = parts.iter().map(Part::size).sum();
        let Some(kind) = chains.values().next().and_then(|chain| chain.first()).map(|block| block.kind.as_str()) else {
            return Err(wrong("there are none".into()));
        };
        let size = match kind {
            f32::NAME | i32::NAME => 4,
            f64::NAME => 8,
            other => return Err(wrong(format!("numbers of kind {other:?} are unknown"))),
        };
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for (chain, blocks) in &mut chains {
            blocks.sort_by_key(|block| block.first);
            let mut rows = 0;
            for block in blocks {
                if block.kind != kind || usize::try_from(block.dim) != Ok(dim) {
                    return Err(wrong(format!(
                        "{} numbers of kind {} in a row, not {dim} of kind {kind}",
                        block.dim, block.kind
                    )));
                }
                if usize::try_from(block.first) != Ok(rows) || block.bytes.len() % (dim * size).max(1) != 0 {
                    return Err(wrong(format!("chain {chain} has a gap, an overlap or half a draw at draw {}", block.first)));
                }
                rows += block.bytes.len() / (dim * size).max(1);
                bytes.extend_from_slice(&block.bytes);
            }
            lengths.push(rows);
        }
        if lengths.iter().any(|&rows| rows != lengths[0]) {
            return Err(wrong(format!("chains of different lengths {lengths:?} do not make one array")));
        }
        let shape = (lengths.len(), lengths[0], dim);
        let values = match kind {
            f32::NAME => array(shape, &bytes).map(Values::F32),
            f64::NAME => array(shape, &bytes).map(Values::F64),
            _ => array(shape, &bytes).map(Values::I32),
        }
        .map_err(|error| wrong(error.to_string()))?;
        Ok(Self { group: group.to_owned(), kind: SampleKind::default(), parts: parts.to_vec(), values })
    }
}

/// Raw little-endian numbers, which need not be aligned, as an array.
fn array<T: Number>(shape: (usize, usize, usize), bytes: &[u8]) -> std::result::Result<Array3<T>, ndarray::ShapeError> {
    Array3::from_shape_vec(shape, bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
}
