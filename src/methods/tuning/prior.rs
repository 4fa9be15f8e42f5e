//! The curvature of a prior, from differences of its score.

use crate::models::Model;
use crate::number::Real;
use ndarray::{Array2, ArrayView1, Axis};

/// −∇∇ log p0 at a point, by central differences: exact for Gaussian priors.
///
/// # Panics
/// If the point has another length than the parameter vector.
pub fn prior_curvature<F: Real>(model: &dyn Model<F>, point: &[f64]) -> Array2<f64> {
    let dim = model.dim();
    // 1e-4 in double precision, times the parameter where it is larger than 1.
    let distance = F::epsilon().f64().powf(0.25);
    let distances = ArrayView1::from(point).mapv(|value| distance * value.abs().max(1.0));
    let scores = |sign: f64| {
        let mut points = Array2::zeros((dim, dim)) + ArrayView1::from(point);
        points.diag_mut().scaled_add(sign, &distances);
        let mut scores = Array2::zeros((dim, dim));
        model.prior_score(points.mapv(F::of).view(), scores.view_mut());
        scores.mapv(F::f64)
    };
    let curvature = (scores(-1.0) - scores(1.0)) / (2.0 * &distances.insert_axis(Axis(1)));
    0.5 * (&curvature + &curvature.t())
}
