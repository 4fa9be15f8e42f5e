//! How raw values become the numbers that models see: one scale and one offset per column, and at most a rotation of rows.

use crate::data::dataset::principal::{Found, PrincipalAxes};
use crate::data::error::{DataError, Place, Result};
use crate::number::Real;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Axis, s};
use std::path::Path;
use std::sync::Arc;

/// Rows are rotated so many at a time.
const ROTATED_AT_ONCE: usize = 192;

/// A rule for the scale and offset of each column: a model sees x·scale + offset, and for [`Scaling::Principal`] a rotation of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// The values as they are.
    None,
    /// Mean 0 and standard deviation 1 over the training rows; a constant column becomes 0.
    Standardize,
    /// Pixels 0..255 to 0.01..1: x·0.99/255 + 0.01, as in the experiments of Kassab & Simeone (arXiv 2009.06419).
    Pixels,
    /// 0..1 over the training rows (test rows may leave it); a constant column becomes 0.
    UnitInterval,
    /// Divided by the largest absolute value over the training rows, so that zeros stay zeros; a column of zeros stays as it is.
    MaxAbs,
    /// The principal axes of the training rows: (x − mean)·s in the orthonormal eigenvectors of their covariance, by falling
    /// eigenvalue. The factor s is the same for all: 1/255 for bytes, else what makes the mean variance of the columns 1.
    Principal,
}

impl Scaling {
    /// Its name in configuration and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Standardize => "standardize",
            Self::Pixels => "pixels",
            Self::UnitInterval => "unit-interval",
            Self::MaxAbs => "max-abs",
            Self::Principal => "principal",
        }
    }

    /// The scale of [`Scaling::MaxAbs`] for a column with this largest absolute value; `name` tells people which one.
    pub(crate) fn of_largest(largest: f64, path: &Path, name: impl Fn() -> String) -> Result<f64> {
        let scale = if largest > 0.0 { 1.0 / largest } else { 1.0 };
        if scale.is_finite() { Ok(scale) } else { Err(DataError::overflow(path, &name())) }
    }
}

/// How the raw features of a dataset become what models see.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureScaling {
    /// (x·scale + offset)·rotation: a scale and an offset for each column, and then the row as a whole.
    Dense {
        /// One for each column.
        scale: Vec<f64>,
        /// One for each column.
        offset: Vec<f64>,
        /// What models see as columns (features × features), in units of the scaled features; none if they see those themselves.
        rotation: Option<Arc<Array2<f64>>>,
    },
    /// Sparse rows: x·scale in these columns, and x in all others.
    Sparse {
        /// Columns from 0, ascending.
        column: Vec<u32>,
        /// One for each of them.
        scale: Vec<f64>,
    },
}

impl FeatureScaling {
    /// A raw value in this column in the scale of models, before rows are rotated.
    pub fn apply(&self, column: u32, raw: f64) -> f64 {
        match self {
            Self::Dense { scale, offset, .. } => raw * scale[column as usize] + offset[column as usize],
            Self::Sparse { column: columns, scale } => raw * columns.binary_search(&column).map_or(1.0, |place| scale[place]),
        }
    }

    /// Rotates dense rows that are scaled already (rows × features) into what models see; where there is no rotation, they are that.
    ///
    /// # Panics
    /// When rows do not have the features that the rotation has.
    pub fn rotate<F: Real>(&self, rows: &mut Array2<F>) {
        let Self::Dense { rotation: Some(rotation), .. } = self else { return };
        let axes = rotation.mapv(F::of);
        let mut rotated = Array2::zeros((ROTATED_AT_ONCE.min(rows.nrows()), axes.ncols()));
        for mut part in rows.axis_chunks_iter_mut(Axis(0), ROTATED_AT_ONCE) {
            let mut rotated = rotated.slice_mut(s![..part.nrows(), ..]);
            general_mat_mul(F::one(), &part, &axes, F::zero(), &mut rotated);
            part.assign(&rotated);
        }
    }
}

/// What a [`Scaling`] makes of columns.
pub(crate) struct Scales {
    /// One for each column.
    pub scale: Vec<f64>,
    /// One for each column.
    pub offset: Vec<f64>,
    /// As in [`FeatureScaling::Dense`].
    pub rotation: Option<Array2<f64>>,
}

/// Running statistics of the training columns: what a [`Scaling`] is made from.
pub(crate) struct Columns {
    scaling: Scaling,
    rows: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
    /// For [`Scaling::Principal`].
    axes: Option<PrincipalAxes>,
}

impl Columns {
    pub(crate) fn new(scaling: Scaling, features: usize) -> Self {
        Self {
            scaling,
            rows: 0.0,
            mean: vec![0.0; features],
            squares: vec![0.0; features],
            least: vec![f64::INFINITY; features],
            most: vec![f64::NEG_INFINITY; features],
            axes: (scaling == Scaling::Principal).then(|| PrincipalAxes::new(features)),
        }
    }

    /// Takes a training row into account.
    pub(crate) fn add<T: Copy + Into<f64>>(&mut self, row: &[T]) {
        match self.scaling {
            Scaling::None => {}
            Scaling::Standardize => {
                // Welford: sums of squares would cancel for columns far from zero.
                self.rows += 1.0;
                let share = 1.0 / self.rows;
                for ((&value, mean), squares) in row.iter().zip(&mut self.mean).zip(&mut self.squares) {
                    let off = value.into() - *mean;
                    *mean += off * share;
                    *squares += off * (value.into() - *mean);
                }
            }
            Scaling::Pixels | Scaling::UnitInterval | Scaling::MaxAbs => {
                for ((&value, least), most) in row.iter().zip(&mut self.least).zip(&mut self.most) {
                    *least = least.min(value.into());
                    *most = most.max(value.into());
                }
            }
            Scaling::Principal => self.axes.iter_mut().for_each(|axes| axes.add(row)),
        }
    }

    /// Scale and offset of each column, and the rotation; `unit` is the scale that values of their type have where all columns share
    /// one, `name` tells people which column is meant.
    pub(crate) fn finish(mut self, path: &Path, unit: Option<f64>, name: impl Fn(usize) -> String) -> Result<Scales> {
        let (mut shared, mut rotation) = (unit.unwrap_or(1.0), None);
        if let Some(axes) = self.axes.take() {
            let Found { mean, variance, axes } = axes.finish(path, &name)?;
            shared = unit.unwrap_or(if variance > 0.0 { 1.0 / variance.sqrt() } else { 1.0 });
            self.mean = mean.to_vec();
            rotation = Some(axes);
        }
        let column = |j: usize| -> Result<(f64, f64)> {
            match self.scaling {
                Scaling::None => Ok((1.0, 0.0)),
                Scaling::Standardize => {
                    let deviation = (self.squares[j] / self.rows).sqrt();
                    // Rounding leaves a constant column a deviation of this order; dividing by it would make noise of it.
                    let constant = deviation <= 1e-13 * self.mean[j].abs();
                    let scale = if constant { 1.0 } else { 1.0 / deviation };
                    Ok((scale, -self.mean[j] * scale))
                }
                Scaling::Pixels if self.least[j] < 0.0 || self.most[j] > 255.0 => Err(DataError::content(
                    path,
                    Place::File,
                    format!(
                        "{} runs from {} to {}: pixels lie in 0..255, choose another scaling",
                        name(j),
                        self.least[j],
                        self.most[j]
                    ),
                )),
                Scaling::Pixels => Ok((0.99 / 255.0, 0.01)),
                Scaling::UnitInterval => {
                    let range = self.most[j] - self.least[j];
                    let scale = if range > 0.0 { 1.0 / range } else { 1.0 };
                    Ok((scale, -self.least[j] * scale))
                }
                Scaling::MaxAbs => Ok((Scaling::of_largest(self.least[j].abs().max(self.most[j].abs()), path, || name(j))?, 0.0)),
                Scaling::Principal => Ok((shared, -self.mean[j] * shared)),
            }
        };
        let columns = (0..self.mean.len()).map(column).collect::<Result<Vec<_>>>()?;
        match columns.iter().position(|(scale, offset)| !scale.is_finite() || !offset.is_finite()) {
            Some(j) => Err(DataError::overflow(path, &name(j))),
            None => {
                let (scale, offset) = columns.into_iter().unzip();
                Ok(Scales { scale, offset, rotation })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn columns(scaling: Scaling, rows: &[[f64; 3]]) -> Result<Vec<(f64, f64)>> {
        let mut columns = Columns::new(scaling, 3);
        rows.iter().for_each(|row| columns.add(row));
        let Scales { scale, offset, rotation } = columns.finish(Path::new("x.csv"), None, |j| format!("feature {}", j + 1))?;
        assert!(rotation.is_none());
        Ok(scale.into_iter().zip(offset).collect())
    }

    #[test]
    fn standardised_columns_have_mean_zero_and_deviation_one() {
        let rows = [[1.0, 1e9 + 1.0, 7.1], [2.0, 1e9 + 2.0, 7.1], [6.0, 1e9 + 6.0, 7.1]];
        for (j, (scale, offset)) in columns(Scaling::Standardize, &rows).unwrap().into_iter().enumerate() {
            let scaled: Vec<f64> = rows.iter().map(|row| row[j] * scale + offset).collect();
            let mean = scaled.iter().sum::<f64>() / 3.0;
            let variance = scaled.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3.0;
            // Around 1e9 the values themselves have steps of 1.2e-7.
            assert!(mean.abs() < 1e-6, "{j}: {mean}");
            assert!((variance - if j == 2 { 0.0 } else { 1.0 }).abs() < 1e-6, "{j}: {variance}");
        }
    }

    #[test]
    fn the_unit_interval_is_reached_at_both_ends() {
        let unit = columns(Scaling::UnitInterval, &[[-2.0, 5.0, 3.0], [2.0, 10.0, 3.0]]).unwrap();
        assert_eq!(unit, [(0.25, 0.5), (0.2, -1.0), (1.0, -3.0)]);
    }

    #[test]
    fn the_largest_becomes_one_and_zeros_stay() {
        let scaled = columns(Scaling::MaxAbs, &[[-2.0, 0.0, 3.0], [1.0, 0.0, 8.0]]).unwrap();
        assert_eq!(scaled, [(0.5, 0.0), (1.0, 0.0), (0.125, 0.0)]);
        let message = columns(Scaling::MaxAbs, &[[1.0, 1e-310, 1.0]]).unwrap_err().to_string();
        assert!(message.contains("feature 2 spans"), "{message}");
    }

    #[test]
    fn pixels_outside_their_range_are_refused() {
        assert_eq!(columns(Scaling::Pixels, &[[0.0, 255.0, 3.0]]).unwrap()[0], (0.99 / 255.0, 0.01));
        assert!(columns(Scaling::Pixels, &[[0.0, 256.0, 3.0]]).unwrap_err().to_string().contains("feature 2"));
        assert_eq!(columns(Scaling::None, &[[0.0, 256.0, 3.0]]).unwrap()[1], (1.0, 0.0));
    }
}
