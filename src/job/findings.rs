//! What was found before a run: coordinates in which its posterior is easier to sample, and the noise in them.

use super::error::JobError;
use crate::cluster::Raw;
use crate::cluster::codec::{seal, unseal};
use crate::layout::matrix;
use crate::methods::Problem;
use crate::methods::tuning::{Found, Measurement, NoMode};
use crate::models::{Scaling, Whitened, Whitening};
use crate::number::Real;
use crate::results::RunFolder;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, ShapeError, s};
use ndarray_linalg::{Cholesky, Diag, SolveTriangular, UPLO};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8] = b"mpibayes-tuning-3";
const NAME: &str = "a file of findings";

/// What was found before a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Findings {
    /// The coordinates.
    pub space: Space,
    /// The noise of scores in these coordinates, if the method needs it.
    pub noise: Option<Measurement>,
}

/// The coordinates in which a run computes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Space {
    /// The coordinates of the model, and why no mode of the posterior could be used.
    Original(NoMode),
    /// Coordinates around the mode, in which the posterior is close to a standard normal distribution.
    Whitened(Coordinates),
    /// Scaled coordinates.
    Scaled(ScaledSpace),
}

impl Space {
    /// The number of parameters, if it is known.
    fn dim(&self) -> Option<usize> {
        match self {
            Self::Original(_) => None,
            Self::Whitened(coordinates) => Some(coordinates.mode.len()),
            Self::Scaled(scaled) => Some(scaled.scale.0.len()),
        }
    }

    /// Whether every starting point has as many numbers as there are parameters.
    fn has_whole_points(&self) -> bool {
        match self {
            Self::Original(_) | Self::Whitened(_) => true,
            Self::Scaled(scaled) => scaled.starts.0.len().is_multiple_of(scaled.scale.0.len()),
        }
    }

    /// A problem in these coordinates.
    pub fn apply<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        match self {
            Self::Original(_) => problem,
            Self::Whitened(coordinates) => coordinates.whitened(problem),
            Self::Scaled(scaled) => scaled.apply(problem),
        }
    }
}

impl Findings {
    /// The findings, for the method.
    pub fn for_method(&self) -> Found<'_> {
        match (&self.space, &self.noise) {
            (Space::Original(_), _) => Found::Nothing,
            (_, None) => Found::Coordinates,
            (_, Some(noise)) => Found::Noise(noise),
        }
    }

    /// As bytes with a checksum.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        seal(MAGIC, NAME, self).map_err(|error| error.to_string())
    }

    /// From these bytes, for a model with `dim` parameters if that is known.
    pub fn from_bytes(bytes: &[u8], dim: Option<usize>) -> Result<Self, String> {
        let findings: Self = unseal(MAGIC, NAME, bytes)?;
        match (findings.space.dim(), dim) {
            (Some(found), Some(dim)) if found != dim => Err("it is for another number of parameters".into()),
            _ if !findings.space.has_whole_points() => Err("its starting points are incomplete".into()),
            _ => Ok(findings),
        }
    }

    /// What was found when the run in a folder began, also as bytes, from the file or its copy.
    ///
    /// # Errors
    /// If neither can be used, although one is there.
    pub fn kept(folder: &RunFolder, dim: Option<usize>) -> Result<Option<(Vec<u8>, Self)>, JobError> {
        let mut damaged: Option<(PathBuf, String)> = None;
        for (path, bytes) in folder.kept_tuning()? {
            match Self::from_bytes(&bytes, dim) {
                Ok(findings) => {
                    if let Some((damaged, what)) = damaged {
                        folder.warn(&format!("{}: {what}. Its copy {} is used", damaged.display(), path.display()));
                    }
                    return Ok(Some((bytes, findings)));
                }
                Err(what) => drop(damaged.get_or_insert((path, what))),
            }
        }
        damaged.map_or(Ok(None), |(path, what)| Err(unusable(&path, &what)))
    }
}

/// Why a run cannot be resumed.
pub(super) fn unusable(path: &Path, what: &str) -> JobError {
    let path = path.display();
    JobError::Tuning(format!(
        "{path}: {what}, and the run cannot be resumed without this file: restore it, or run again with another --output"
    ))
}

/// Coordinates z with θ = θ* + L z.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub(super) struct Coordinates {
    /// θ*, the mode.
    pub mode: Array1<f64>,
    /// The score of the likelihood at the mode, −∇ Σ_k L_k/α with the losses L_k of agents and the temperature α.
    score: Array1<f64>,
    /// L = C⁻ᵀ with the lower Cholesky factor C of the curvature at the mode: upper triangular, L Lᵀ is the inverse of the curvature.
    pub factor: Array2<f64>,
}

/// Coordinates as they are kept in a file.
#[derive(Serialize, Deserialize)]
struct Stored {
    mode: Raw<f64>,
    score: Raw<f64>,
    factor: Raw<f64>,
}

impl From<Coordinates> for Stored {
    fn from(Coordinates { mode, score, factor }: Coordinates) -> Self {
        Self { mode: Raw(mode.to_vec()), score: Raw(score.to_vec()), factor: Raw(factor.iter().copied().collect()) }
    }
}

impl TryFrom<Stored> for Coordinates {
    type Error = ShapeError;

    fn try_from(Stored { mode, score, factor }: Stored) -> Result<Self, ShapeError> {
        let dim = mode.0.len();
        let factor = Array2::from_shape_vec((dim, dim), factor.0)?;
        let score = Array1::from(score.0).into_shape_with_order(dim)?;
        Ok(Self { mode: Array1::from(mode.0), score, factor })
    }
}

impl Coordinates {
    /// The coordinates from the records of a search for the mode, or why there is no mode; none if the records are not complete.
    pub fn read(records: &[f64], dim: usize) -> Option<Result<Self, NoMode>> {
        if let [code] = records {
            return NoMode::with_code(*code).map(Err);
        }
        let records = ArrayView2::from_shape((dim + 2, dim), records).ok()?;
        let (ends, curvature) = records.split_at(Axis(0), 2);
        // The search ends only where this factor exists.
        let lower = curvature.to_owned().cholesky(UPLO::Lower).ok()?;
        let inverse = lower.solve_triangular(UPLO::Lower, Diag::NonUnit, &Array2::eye(dim)).ok()?;
        Some(Ok(Self { mode: ends.row(0).to_owned(), score: ends.row(1).to_owned(), factor: inverse.t().to_owned() }))
    }

    /// A problem in these coordinates.
    pub fn whitened<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        let whitening = Whitening::new(self.mode.view(), self.factor.view(), self.score.view());
        Problem { model: Arc::new(Whitened::new(problem.model.clone(), whitening)), ..problem }
    }
}

/// The scale of each parameter, and the points at which chains start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ScaledSpace {
    /// The scale of each parameter.
    pub scale: Raw<f64>,
    /// The starting points, one after the other.
    starts: Raw<f64>,
}

impl ScaledSpace {
    /// The scale and the noise from the records of a search for starting points; none if they are not complete. The records are the starting
    /// points, and then the scale of each parameter, the noise of minibatches and of shards in each, the curvature of the loss, and by what
    /// factor the step was shortened. Each of the last two is a number that fills its record.
    pub fn read(records: &[f64], dim: usize, points: usize, largest_shard: usize) -> Option<(Self, Measurement)> {
        let records = ArrayView2::from_shape((points + 5, dim), records).ok()?;
        let row = |row: usize| records.row(points + row).to_vec();
        let starts = Raw(records.slice(s![..points, ..]).iter().copied().collect());
        let [curvature, shortened] = [3, 4].map(|number| row(number).first().copied().unwrap_or(0.0));
        let (minibatches, shards, rows) = (row(1), row(2), largest_shard as f64);
        let noise = Measurement { minibatches, shards, curvature, rows, knows_only_scale: true, shortened };
        Some((Self { scale: Raw(row(0)), starts }, noise))
    }

    /// A problem with scaled parameters.
    fn apply<F: Real>(&self, problem: Problem<F>) -> Problem<F> {
        let (scale, dim) = (ArrayView1::from(&self.scale.0), self.scale.0.len());
        let points = self.starts.0.len() / dim.max(1);
        // `Findings::from_bytes` has checked the length.
        let starts = matrix(&self.starts.0, points, dim);
        let scaling = Scaling::new(scale, starts);
        Problem { model: Arc::new(Whitened::scaled(problem.model.clone(), scaling)), ..problem }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_kept_and_damage_is_noticed() {
        let coordinates = Coordinates { mode: Array1::ones(2), score: Array1::zeros(2), factor: Array2::eye(2) };
        let bytes = Findings { space: Space::Whitened(coordinates), noise: None }.to_bytes().unwrap();
        let read = |bytes: &[u8], dim| Findings::from_bytes(bytes, Some(dim)).map(|findings| findings.space);
        assert!(matches!(read(&bytes, 2), Ok(Space::Whitened(coordinates)) if coordinates.mode == Array1::<f64>::ones(2)));
        assert!(read(&bytes, 3).unwrap_err().contains("another number of parameters"));
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(read(&damaged, 2).is_err(), "{place}");
            assert!(read(&bytes[..place], 2).is_err(), "{place}");
        }
        let scaled = |starts: usize| {
            let space = Space::Scaled(ScaledSpace { scale: Raw(vec![1.0; 2]), starts: Raw(vec![0.5; starts]) });
            read(&Findings { space, noise: None }.to_bytes().unwrap(), 2)
        };
        assert!(matches!(scaled(6), Ok(Space::Scaled(_))));
        assert!(scaled(5).unwrap_err().contains("are incomplete"));
    }
}
