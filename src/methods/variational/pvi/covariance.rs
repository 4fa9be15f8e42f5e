//! The structure of a Gaussian approximation: a full covariance matrix, or a diagonal one.

use serde::{Deserialize, Serialize};

/// Structure of the covariance matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covariance {
    /// The whole matrix.
    #[default]
    Full,
    /// The diagonal: independent coordinates.
    Diagonal,
}
