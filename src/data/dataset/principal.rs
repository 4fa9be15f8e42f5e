//! Principal component analysis of training rows: mean and covariance in one pass, then the eigenvectors of the covariance.

use crate::data::error::{DataError, Place, Result};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis, s};
use ndarray_linalg::{EighInto, UPLO};
use std::path::Path;

/// The most features that can be rotated: the axes then take 128 MiB in every process, and finding them takes many minutes.
const MAX_FEATURES: usize = 4096;
/// Rows are added in blocks of about this size, one matrix product each,
const BLOCK_BYTES: usize = 1 << 22;
/// of at least this many rows, for the product to be worth it,
const MIN_ROWS: usize = 64;
/// and at most this many.
const MAX_ROWS: usize = 4096;

/// Refuses rows with too many features for a rotation.
pub(crate) fn check_width(features: usize) -> Result<()> {
    if features <= MAX_FEATURES {
        return Ok(());
    }
    Err(DataError::Request(format!(
        "rows of {features} features are too long for the scaling principal, which takes at most {MAX_FEATURES}: every process holds a matrix \
         of features × features, and the time to compute it grows with the third power: choose another scaling"
    )))
}

/// Mean and covariance of training rows, merged block by block (Chan, Golub & LeVeque 1983, "Algorithms for computing the sample
/// variance", eq. 2.1): sums of plain products would cancel for columns far from zero.
pub(crate) struct AxesEstimator {
    /// Rows that are not merged yet, and room for one more.
    block: Array2<f64>,
    filled: usize,
    rows: f64,
    mean: Array1<f64>,
    /// The sums of products of deviations from the means, features × features.
    products: Array2<f64>,
}

/// The principal axes of rows.
pub(crate) struct PrincipalAxes {
    /// The mean of each column.
    pub mean: Array1<f64>,
    /// The mean of the variances of the columns; 0 where all of them are constant.
    pub variance: f64,
    /// Orthonormal axes as columns (features × features), by falling variance along them; the largest component of each is positive.
    pub axes: Array2<f64>,
}

impl AxesEstimator {
    pub(crate) fn new(features: usize) -> Self {
        let rows = (BLOCK_BYTES / (size_of::<f64>() * features.max(1))).clamp(MIN_ROWS, MAX_ROWS);
        Self {
            block: Array2::zeros((rows + 1, features)),
            filled: 0,
            rows: 0.0,
            mean: Array1::zeros(features),
            products: Array2::zeros((features, features)),
        }
    }

    /// Adds a row.
    pub(crate) fn add<T: Copy + Into<f64>>(&mut self, row: &[T]) {
        self.block.row_mut(self.filled).iter_mut().zip(row).for_each(|(kept, &value)| *kept = value.into());
        self.filled += 1;
        if self.filled + 1 == self.block.nrows() {
            self.merge();
        }
    }

    fn merge(&mut self) {
        if self.filled == 0 {
            return;
        }
        let (before, here) = (self.rows, self.filled as f64);
        let total = before + here;
        let first = self.block.row(0).to_owned();
        let mut centered = self.block.slice_mut(s![..self.filled, ..]);
        // Subtract the first row: sums of large numbers round, and constant columns would not stay constant.
        centered -= &first;
        let middle = centered.sum_axis(Axis(0)) / here;
        centered -= &middle;
        // The difference of the two means enters as one more row of the product.
        let off = first - &self.mean + middle;
        self.block.row_mut(self.filled).assign(&(&off * (before * here / total).sqrt()));
        let rows = self.block.slice(s![..=self.filled, ..]);
        general_mat_mul(1.0, &rows.t(), &rows, 1.0, &mut self.products);
        self.mean.scaled_add(here / total, &off);
        self.rows = total;
        self.filled = 0;
    }

    /// Computes the axes; `name` gives the name of a column for errors.
    pub(crate) fn finish(mut self, path: &Path, name: impl Fn(usize) -> String) -> Result<PrincipalAxes> {
        self.merge();
        let covariance = self.products / self.rows.max(1.0);
        if let Some(j) = covariance.diag().iter().position(|variance| !variance.is_finite()) {
            return Err(DataError::overflow(path, &name(j)));
        }
        let variance = covariance.diag().mean().unwrap_or(0.0);
        // Rounding leaves constant columns a variance of this order.
        let constant = variance.sqrt() <= 1e-13 * (self.mean.dot(&self.mean) / self.mean.len() as f64).sqrt();
        let (_, vectors) = covariance.eigh_into(UPLO::Lower).map_err(|error| {
            let what = format!("the principal axes of the training rows cannot be computed ({error}): choose another scaling");
            DataError::content(path, Place::File, what)
        })?;
        let mut axes = Array2::zeros(vectors.dim());
        // LAPACK returns eigenvectors by rising eigenvalue, with arbitrary sign.
        for (mut axis, vector) in axes.axis_iter_mut(Axis(1)).zip(vectors.axis_iter(Axis(1)).rev()) {
            let largest = vector.iter().fold(0.0_f64, |largest, &part| if part.abs() > largest.abs() { part } else { largest });
            axis.assign(&vector);
            if largest < 0.0 {
                axis *= -1.0;
            }
        }
        Ok(PrincipalAxes { mean: self.mean, variance: if constant { 0.0 } else { variance }, axes })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ndarray::array;

    fn found(rows: &[[f64; 2]]) -> Result<PrincipalAxes> {
        let mut axes = AxesEstimator::new(2);
        rows.iter().for_each(|row| axes.add(row));
        axes.finish(Path::new("x.csv"), |j| format!("feature {}", j + 1))
    }

    /// Rows at ±3 along (1, 1)/√2 and ±1 along (1, −1)/√2 around a mean, in many blocks: variances 4.5 and 0.5 along known axes.
    #[test]
    fn known_axes_are_found_far_from_zero() {
        let (long, short) = (3.0 / 2.0_f64.sqrt(), 1.0 / 2.0_f64.sqrt());
        // Sums over 16,388 rows round to 4e-12 of themselves at most, values around 2e6 to 1.2e-10, some times the deviations.
        for (mean, tolerance) in [([0.0, 0.0], 2e-11), ([1e6, -2e6], 1e-9)] {
            let around = [[long, long], [-long, -long], [short, -short], [-short, short]];
            let rows: Vec<[f64; 2]> =
                (0..4 * MAX_ROWS + 4).map(|row| [around[row % 4][0] + mean[0], around[row % 4][1] + mean[1]]).collect();
            let PrincipalAxes { mean: middle, variance, axes } = found(&rows).unwrap();
            let half = 0.5_f64.sqrt();
            let exact = array![[half, half], [half, -half]];
            // The sign of the second axis hangs on which of two equal components is larger.
            let apart = |column: usize| {
                let apart = |sign: f64| (&axes.column(column) * sign - exact.column(column)).mapv(f64::abs).sum();
                apart(1.0).min(if column == 1 { apart(-1.0) } else { f64::INFINITY })
            };
            assert!(apart(0) < tolerance && apart(1) < tolerance, "{axes}");
            assert!((variance - 2.5).abs() < tolerance, "{variance}");
            assert!(middle.iter().zip(mean).all(|(found, mean)| (found - mean).abs() < tolerance), "{middle}");
        }
    }

    #[test]
    fn the_largest_component_is_positive_and_constant_columns_have_no_variance() {
        for sign in [1.0, -1.0] {
            let axes = found(&[[0.0, 0.0], [sign, -2.0 * sign], [3.0 * sign, -6.0 * sign]]).unwrap().axes;
            let exact = array![[-1.0, 2.0], [2.0, 1.0]] / 5.0_f64.sqrt();
            assert!((&axes - &exact).mapv(f64::abs).sum() < 1e-13, "{axes}");
        }
        assert_eq!(found(&[[7.1, 1e9 + 0.1]; 1000]).unwrap().variance, 0.0);
        let message = found(&[[1.0, 1e300], [2.0, -1e300]]).map(drop).unwrap_err().to_string();
        assert!(message.contains("x.csv: feature 2 spans more"), "{message}");
    }

    #[test]
    fn rows_that_are_too_long_are_refused() {
        check_width(MAX_FEATURES).unwrap();
        let message = check_width(MAX_FEATURES + 1).unwrap_err().to_string();
        assert!(
            message.contains("4097 features") && message.contains("at most 4096") && message.contains("every process"),
            "{message}"
        );
    }
}
