//! The digest of a dataset or a corpus: BLAKE3 over its description, then over each split.

use crate::data::dataset::layout::{Split, Task};

/// What the digest of a dataset calls sparse rows; dense ones have the name of their type.
pub(crate) const SPARSE_ROWS: &str = "csr";

/// Everything but the rows.
pub(crate) struct DigestedDescription<'a> {
    pub task: Task,
    /// The type of stored values, or [`SPARSE_ROWS`].
    pub stored: &'a str,
    /// The shape of a row.
    pub shape: &'a [usize],
    /// Lists of scales, offsets and the like.
    pub scaling: &'a [&'a [u8]],
    /// Names of the features; none for pixels.
    pub features: &'a [String],
    /// Names of the classes.
    pub classes: &'a [String],
    /// The recipe as the file stores it.
    pub recipe: Option<&'a str>,
    /// Scale and offset of the targets.
    pub target: Option<(f64, f64)>,
}

/// The digest of the content: each field is hashed after its length, so that different datasets never hash the same bytes.
#[derive(Default)]
pub(crate) struct ContentDigest(blake3::Hasher);

impl ContentDigest {
    /// Starts with the description of a dataset.
    pub(crate) fn begin(about: &DigestedDescription<'_>) -> Self {
        let mut digest = Self::default();
        digest.field(about.task.name().as_bytes());
        digest.field(about.stored.as_bytes());
        digest.field(bytemuck::cast_slice(&about.shape.iter().map(|&size| size as u64).collect::<Vec<_>>()));
        about.scaling.iter().for_each(|list| digest.field(list));
        digest.field(about.features.join("\0").as_bytes());
        digest.field(about.classes.join("\0").as_bytes());
        if let Some(recipe) = about.recipe {
            digest.field(recipe.as_bytes());
        }
        if let Some((scale, offset)) = about.target {
            digest.field(bytemuck::cast_slice(&[scale, offset]));
        }
        digest
    }

    /// Adds a split.
    pub(crate) fn split(&mut self, split: Split, rows: &blake3::Hash, targets: &[u8]) {
        self.field(split.name().as_bytes());
        self.field(rows.as_bytes());
        self.field(targets);
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, bytes: &[u8]) {
        self.begin_field(bytes.len() as u64);
        self.piece(bytes);
    }

    /// Begins a field of this length, which [`Self::piece`] adds piece by piece.
    pub(crate) fn begin_field(&mut self, bytes: u64) {
        self.0.update(&bytes.to_le_bytes());
    }

    /// Adds a piece of a field.
    pub(crate) fn piece(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest in hexadecimal.
    pub(crate) fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}
