//! The curvature of a prior, from differences of its score.

use crate::models::Model;
use ndarray::{Array2, ArrayView1, Axis};

/// The distance over which differences are taken, times the parameter where it is larger than 1.
const DISTANCE: f64 = 1e-4;

/// −∇∇ log p0 at a point, by central differences: exact for Gaussian priors.
///
/// # Panics
/// If the point has another length than the parameter vector.
pub(super) fn prior_curvature(model: &dyn Model<f64>, point: &[f64]) -> Array2<f64> {
    let dim = model.dim();
    let distances = ArrayView1::from(point).mapv(|value| DISTANCE * value.abs().max(1.0));
    let scores = |sign: f64| {
        let mut points = Array2::zeros((dim, dim)) + ArrayView1::from(point);
        points.diag_mut().scaled_add(sign, &distances);
        let mut scores = Array2::zeros((dim, dim));
        model.prior_score(points.view(), scores.view_mut());
        scores
    };
    let curvature = (scores(-1.0) - scores(1.0)) / (2.0 * &distances.insert_axis(Axis(1)));
    0.5 * (&curvature + &curvature.t())
}
