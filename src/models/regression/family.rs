//! The distribution of a target given its linear predictor: what distinguishes one regression from another.

use super::block::Block;
use super::linear_predictor::LinearPredictor;
use super::log_scale::ScalePrior;
use crate::models::{Output, Part};
use crate::number::Real;
use crate::random::Stream;
use ndarray::{ArrayView1, ArrayViewMut2};

/// The distribution of a target y given its linear predictor η and parameters ψ of the family's own, such as the log of the noise.
///
/// A family implements the functions of one row; those of a block of rows call them, and a family may replace them by vectorized ones.
pub trait Family: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// What the functions of a row need of ψ, computed once for many rows.
    type Prepared;

    /// What is predicted.
    fn output(&self) -> Output;

    /// The named parts of ψ.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }

    /// Checks a target.
    ///
    /// # Errors
    /// Which targets are allowed.
    fn check(&self, _y: f64) -> Result<(), String> {
        Ok(())
    }

    /// The prior of ψ if it is the logarithm of a scale. Otherwise the next three functions are the family's own.
    fn scale_prior(&self) -> Option<ScalePrior> {
        None
    }

    /// Writes an initial ψ.
    fn draw_initial(&self, stream: &mut Stream, psi: &mut [f64]) {
        if let Some(prior) = self.scale_prior() {
            prior.draw_initial(stream, psi);
        }
    }

    /// log p0(ψ), up to a constant.
    fn log_prior(&self, psi: &[f64]) -> f64 {
        self.scale_prior().map_or(0.0, |prior| psi.iter().map(|&log| prior.log_density(log)).sum())
    }

    /// Overwrites `score` with ∇log p0(ψ).
    fn prior_score(&self, psi: &[f64], score: &mut [f64]) {
        if let Some(prior) = self.scale_prior() {
            score.iter_mut().zip(psi).for_each(|(score, &log)| *score = prior.score(log));
        }
    }

    /// What the functions below need of ψ.
    fn prepare(&self, psi: &[f64]) -> Self::Prepared;

    /// −log p(y | η, ψ).
    fn loss(&self, prepared: &Self::Prepared, eta: f64, y: f64) -> f64;

    /// ∂ log p(y | η, ψ)/∂η. Adds ∂ log p(y | η, ψ)/∂ψ to `psi`.
    fn score(&self, prepared: &Self::Prepared, eta: f64, y: f64, psi: &mut [f64]) -> f64;

    /// Adds `weight` times the information about (η, ψ) in a target to `information`, a row-major symmetric matrix: the expected products of
    /// two scores, or those of this target where no formula is known.
    fn add_information(&self, prepared: &Self::Prepared, eta: f64, y: f64, weight: f64, information: &mut [f64]);

    /// Adds `weight` times the mean of the target, or the probability of each class, to `mean`. Returns the density or
    /// probability of y, which is not multiplied by `weight`.
    fn predict(&self, prepared: &Self::Prepared, eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64;

    /// Draws a target.
    fn draw(&self, prepared: &Self::Prepared, eta: f64, stream: &mut Stream) -> f64;

    /// Changes the predictors of a block before predictions are made from them.
    fn smooth<F: Real>(&self, _block: &mut Block<F>, _predictor: LinearPredictor) {}

    /// Replaces predictors by ∂ log p/∂η, and adds ∂ log p/∂ψ to `psi` (particles × length of ψ).
    fn scores<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, prepared: &[Self::Prepared], psi: &mut [f64]) {
        let own = psi.len() / prepared.len();
        block.for_each(|particle, row, value| {
            let psi = &mut psi[particle * own..][..own];
            *value = F::of(self.score(&prepared[particle], value.f64(), y[row].f64(), psi));
        });
    }

    /// Adds −log p of each row to the particle's number in `out`.
    fn add_losses<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, prepared: &[Self::Prepared], out: &mut [f64]) {
        block.for_each(|particle, row, value| out[particle] += self.loss(&prepared[particle], value.f64(), y[row].f64()));
    }

    /// Adds `weight` times the predictions of a block to `mean` (rows × outputs) and `density` (rows).
    fn add_predictions<F: Real>(
        &self,
        block: &mut Block<F>,
        y: ArrayView1<F>,
        prepared: &[Self::Prepared],
        weight: f64,
        mean: &mut ArrayViewMut2<f64>,
        density: &mut [f64],
    ) {
        let mut outputs = vec![0.0; mean.ncols()];
        block.for_each(|particle, row, value| {
            outputs.fill(0.0);
            density[row] += weight * self.predict(&prepared[particle], value.f64(), y[row].f64(), weight, &mut outputs);
            mean.row_mut(row).iter_mut().zip(&outputs).for_each(|(mean, output)| *mean += output);
        });
    }
}
