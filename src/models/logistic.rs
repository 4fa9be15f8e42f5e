//! Bayesian logistic regression: two classes.
//!
//! p(y = 1) = σ(η). The default prior has the form of Liu & Wang (2016, "Stein variational gradient descent", section 5), with shape a = 1 and
//! rate b = 100 as in the code of Kassab & Simeone (arXiv 2009.06419): w|ξ ~ N(0, I/ξ), ξ ~ Gamma(a, b), with v = log ξ a parameter,
//! log p0(w, v) = (m/2 + a) v − e^v (‖w‖²/2 + b), m the number of weights.

use super::error::not_negative;
use super::regression::block::Block;
use super::regression::family::Family;
use super::regression::linear_predictor::LinearPredictor;
use super::regression::logistic_function::{sigmoid, softplus};
use super::regression::model::Regression;
use super::regression::prior::Prior;
use super::regression::settings::regression_settings;
use super::{DataSchema, ModelError, Output};
use crate::layout::index;
use crate::number::Real;
use crate::random::Stream;
use crate::settings::KeyError;
use crate::vector;
use ndarray::{ArrayView1, ArrayViewMut2};
use rand::RngExt;

regression_settings! {
    /// The settings of the model `logistic`.
    LogisticSettings = "logistic", prior: Prior::SampledPrecision { shape: 1.0, rate: 100.0 },
    /// Bandwidth λ of a Gaussian kernel around each particle over which predictions are averaged, by
    /// E σ(wᵀx) ≈ σ(wₙᵀx / √(1 + π λ²‖x‖²/8)). 0 averages over the particles themselves.
    predictive_bandwidth: f64 = 0.0,
}

impl LogisticSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not two classes.
    pub fn build(&self, data: &DataSchema) -> Result<Logistic, KeyError> {
        match data.output {
            Output::Classes(2) => {}
            Output::Classes(classes) => {
                return Err(ModelError::Classes { classes, hint: ": logistic regression needs exactly two" }.into());
            }
            Output::Number | Output::Count | Output::Nothing => {
                return Err(ModelError::Target {
                    needed: "two classes as targets: import the data again with --task classification",
                }
                .into());
            }
        }
        let bandwidth = not_negative("predictive_bandwidth", self.predictive_bandwidth)?;
        self.shared()?.regression(data, Bernoulli { bandwidth })
    }
}

/// Bayesian logistic regression; targets are the class indices 0 and 1.
pub type Logistic = Regression<Bernoulli>;

/// One of two classes.
#[derive(Clone, Debug)]
pub struct Bernoulli {
    bandwidth: f64,
}

impl Family for Bernoulli {
    type Prepared = ();

    fn output(&self) -> Output {
        Output::Classes(2)
    }

    fn prepare(&self, _: &[f64]) {}

    fn loss(&self, (): &(), eta: f64, y: f64) -> f64 {
        softplus(eta) - y * eta
    }

    fn score(&self, (): &(), eta: f64, y: f64, _: &mut [f64]) -> f64 {
        y - sigmoid(eta)
    }

    fn add_information(&self, (): &(), eta: f64, _: f64, weight: f64, information: &mut [f64]) {
        information[0] += weight * sigmoid(eta) * sigmoid(-eta);
    }

    fn predict(&self, (): &(), eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        let probabilities = [sigmoid(-eta), sigmoid(eta)];
        mean.iter_mut().zip(probabilities).for_each(|(mean, probability)| *mean += weight * probability);
        probabilities[index(y, 2)]
    }

    fn draw(&self, (): &(), eta: f64, stream: &mut Stream) -> f64 {
        f64::from(u8::from(stream.random::<f64>() < sigmoid(eta)))
    }

    fn smooth<F: Real>(&self, block: &mut Block<F>, predictor: LinearPredictor) {
        if self.bandwidth == 0.0 {
            return;
        }
        let (x, intercept_square) = (block.x, if predictor.intercept { 1.0 } else { 0.0 });
        for (&row, logits) in block.rows.iter().zip(block.values.chunks_exact_mut(block.lanes)) {
            let x = &x[row * predictor.columns..][..predictor.features];
            let squared_norm: f64 = intercept_square + x.iter().map(|x| x.f64().powi(2)).sum::<f64>();
            let shrink = F::of((1.0 + std::f64::consts::PI * self.bandwidth.powi(2) * squared_norm / 8.0).powf(-0.5));
            logits.iter_mut().for_each(|z| *z *= shrink);
        }
    }

    fn scores<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, _: &[()], _: &mut [f64]) {
        vector::sigmoid(block.values);
        block.subtract_from(y);
    }

    fn add_losses<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, _: &[()], out: &mut [f64]) {
        block.for_each(|particle, row, logit| out[particle] -= (y[row] * *logit).f64());
        vector::softplus(block.values);
        block.for_each(|particle, _, softplus| out[particle] += softplus.f64());
    }

    fn add_predictions<F: Real>(
        &self,
        block: &mut Block<F>,
        y: ArrayView1<F>,
        _: &[()],
        weight: f64,
        mean: &mut ArrayViewMut2<f64>,
        density: &mut [f64],
    ) {
        // 1 − σ(z) is 0 in single precision for z > 17, but σ(−z) stays accurate: each class has a sigmoid of its own.
        let logits = block.values.to_vec();
        for (class, sign) in [(1, F::one()), (0, -F::one())] {
            block.values.iter_mut().zip(&logits).for_each(|(value, &logit)| *value = sign * logit);
            vector::sigmoid(block.values);
            block.for_each(|_, row, probability| {
                let probability = weight * probability.f64();
                mean[[row, class]] += probability;
                if index(y[row], 2) == class {
                    density[row] += probability;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
