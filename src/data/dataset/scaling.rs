//! Feature scaling: a scale and an offset for each column, optionally followed by a rotation of rows (principal axes).

use crate::data::dataset::principal::{AxesEstimator, PrincipalAxes};
use crate::data::error::{DataError, Place, Result};
use crate::number::Real;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Axis, s};
use std::path::Path;
use std::sync::Arc;

/// How many rows are rotated at a time.
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
    /// Mean 0 and standard deviation 1 of each channel over the pixels of all training images: one scale and one offset for each
    /// channel; a constant channel becomes 0. Rows are images of shape [height, width] or [height, width, channels].
    Channels,
}

impl Scaling {
    /// The name in configurations and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Standardize => "standardize",
            Self::Pixels => "pixels",
            Self::UnitInterval => "unit-interval",
            Self::MaxAbs => "max-abs",
            Self::Principal => "principal",
            Self::Channels => "channels",
        }
    }

    /// The scale of [`Scaling::MaxAbs`] for a column with this largest absolute value; errors call the column `name`.
    pub(crate) fn of_largest(largest: f64, path: &Path, name: impl Fn() -> String) -> Result<f64> {
        let scale = if largest > 0.0 { 1.0 / largest } else { 1.0 };
        if scale.is_finite() { Ok(scale) } else { Err(DataError::overflow(path, &name())) }
    }
}

/// The scaling of the features of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum FeatureScaling {
    /// (x·scale + offset)·rotation: a scale and an offset for each column, and then the row as a whole.
    Dense {
        /// One for each column.
        scale: Vec<f64>,
        /// One for each column.
        offset: Vec<f64>,
        /// The orthonormal axes as columns (features × features), if rows are rotated.
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
    /// Scales a raw value of this column, without the rotation of its row.
    pub fn apply(&self, column: u32, raw: f64) -> f64 {
        match self {
            Self::Dense { scale, offset, .. } => raw * scale[column as usize] + offset[column as usize],
            Self::Sparse { column: columns, scale } => raw * columns.binary_search(&column).map_or(1.0, |place| scale[place]),
        }
    }

    /// Rotates scaled dense rows (rows × features) in place, if there is a rotation.
    ///
    /// # Panics
    /// When rows and rotation differ in their number of features.
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

/// A [`Scaling`] fitted to training rows.
pub(crate) struct FittedScaling {
    /// One for each column.
    pub scale: Vec<f64>,
    /// One for each column.
    pub offset: Vec<f64>,
    /// As in [`FeatureScaling::Dense`].
    pub rotation: Option<Array2<f64>>,
}

/// Running statistics of the training columns, from which a [`Scaling`] is fitted.
pub(crate) struct ColumnStatistics {
    scaling: Scaling,
    rows: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
    /// For [`Scaling::Principal`].
    axes: Option<AxesEstimator>,
}

impl ColumnStatistics {
    pub(crate) fn new(scaling: Scaling, features: usize) -> Self {
        Self {
            scaling,
            rows: 0.0,
            mean: vec![0.0; features],
            squares: vec![0.0; features],
            least: vec![f64::INFINITY; features],
            most: vec![f64::NEG_INFINITY; features],
            axes: (scaling == Scaling::Principal).then(|| AxesEstimator::new(features)),
        }
    }

    /// Adds a training row.
    pub(crate) fn add<T: Copy + Into<f64>>(&mut self, row: &[T]) {
        match self.scaling {
            Scaling::None => {}
            Scaling::Standardize | Scaling::Channels => {
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

    /// Fits the scaling. `unit` is the natural scale of the type of values, for scalings with one scale for all columns; `shape` is that of
    /// a row; `name` gives the name of a column for errors.
    pub(crate) fn finish(
        mut self,
        path: &Path,
        unit: Option<f64>,
        shape: &[usize],
        name: impl Fn(usize) -> String,
    ) -> Result<FittedScaling> {
        if self.scaling == Scaling::Channels {
            self.pool(channels_of(shape)?);
        }
        let (mut shared, mut rotation) = (unit.unwrap_or(1.0), None);
        if let Some(axes) = self.axes.take() {
            let PrincipalAxes { mean, variance, axes } = axes.finish(path, &name)?;
            shared = unit.unwrap_or(if variance > 0.0 { 1.0 / variance.sqrt() } else { 1.0 });
            self.mean = mean.to_vec();
            rotation = Some(axes);
        }
        let column = |j: usize| -> Result<(f64, f64)> {
            match self.scaling {
                Scaling::None => Ok((1.0, 0.0)),
                Scaling::Standardize | Scaling::Channels => {
                    let deviation = (self.squares[j] / self.rows).sqrt();
                    // Rounding gives constant columns a deviation of this order, and dividing by it would amplify noise.
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
                Ok(FittedScaling { scale, offset, rotation })
            }
        }
    }

    /// Gives all columns of a channel the mean and the mean squares of the channel.
    fn pool(&mut self, channels: usize) {
        let pixels = self.mean.len() / channels.max(1);
        for channel in 0..channels {
            let columns = || (channel..pixels * channels).step_by(channels);
            // Below 2^53, as the pixels of an image are in memory.
            let count = pixels as f64;
            let mean = columns().map(|j| self.mean[j]).sum::<f64>() / count;
            let between = |j: usize| self.rows * (self.mean[j] - mean).powi(2);
            let squares = columns().map(|j| self.squares[j] + between(j)).sum::<f64>() / count;
            for j in columns() {
                (self.mean[j], self.squares[j]) = (mean, squares);
            }
        }
    }
}

/// The number of channels of images of this shape.
pub(crate) fn channels_of(shape: &[usize]) -> Result<usize> {
    match shape {
        [_, _] => Ok(1),
        [_, _, channels] => Ok(*channels),
        _ => Err(DataError::Request(format!(
            "the scaling channels is for images, with the shape [height, width] or [height, width, channels], but rows have the shape \
             {shape:?}: choose another scaling"
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn columns(scaling: Scaling, rows: &[[f64; 3]]) -> Result<Vec<(f64, f64)>> {
        let mut columns = ColumnStatistics::new(scaling, 3);
        rows.iter().for_each(|row| columns.add(row));
        let FittedScaling { scale, offset, rotation } =
            columns.finish(Path::new("x.csv"), None, &[3], |j| format!("feature {}", j + 1))?;
        assert!(rotation.is_none());
        Ok(scale.into_iter().zip(offset).collect())
    }

    #[test]
    fn standardized_columns_have_mean_zero_and_deviation_one() {
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
