//! Losses of a network's outputs, with derivatives, curvatures and predictive densities.

use super::super::error::positive;
use super::super::log_precision::clamped_exp;
use super::super::{ModelError, Output};
use crate::layout::index;
use crate::number::Real;
use crate::vector;
use ndarray::ArrayView1;

/// The loss of a network.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Softmax cross-entropy, for classes: `"cross_entropy"`.
    CrossEntropy,
    /// Gaussian noise whose log-precision is a parameter, for numbers: `"gaussian"`.
    Gaussian,
    /// Huber's loss with this δ in standard deviations of the targets, for numbers: `{ huber = 1.0 }`. It is robust to outliers and gives
    /// a generalized posterior.
    Huber(f64),
}

impl Loss {
    fn name(self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross_entropy",
            Self::Gaussian => "gaussian",
            Self::Huber(_) => "huber",
        }
    }
}

/// The loss of a row as a function of the outputs and the target.
#[derive(Clone, Debug, PartialEq)]
pub enum Likelihood {
    /// Softmax cross-entropy over this many classes.
    CrossEntropy { classes: usize },
    /// −log N(y | f, 1/γ), g = log γ the last parameter, with a Gamma(shape, rate) prior on γ.
    Gaussian { shape: f64, rate: f64 },
    /// Huber's loss plus log Z, so that exp(−ℓ) is a density: r²/2 for |r| ≤ δ, δ(|r| − δ/2) beyond.
    Huber { delta: f64, log_normalizer: f64 },
}

impl Likelihood {
    /// The likelihood of these targets, and the number of outputs of a network for it. `gamma` is the shape and rate of the prior of the noise
    /// precision, if there is one.
    ///
    /// # Errors
    /// If a setting is out of its range, or the loss does not fit the targets.
    pub fn new(output: Output, loss: Option<Loss>, gamma: (f64, f64)) -> Result<(usize, Self), ModelError> {
        Ok(match (output, loss) {
            (Output::Classes(classes @ (0 | 1)), _) => {
                return Err(ModelError::Classes { classes, hint: ": a network needs at least two" });
            }
            (Output::Classes(classes), None | Some(Loss::CrossEntropy)) => (classes, Self::CrossEntropy { classes }),
            (Output::Number, None | Some(Loss::Gaussian)) => {
                let (shape, rate) = (positive("gamma_shape", gamma.0)?, positive("gamma_rate", gamma.1)?);
                (1, Self::Gaussian { shape, rate })
            }
            (Output::Number, Some(Loss::Huber(delta))) => (1, Self::huber(delta)?),
            (Output::Classes(_), Some(loss)) => {
                return Err(ModelError::Loss { loss: loss.name(), target: "targets that are classes; use `cross_entropy`" });
            }
            (Output::Number, Some(loss)) => {
                return Err(ModelError::Loss {
                    loss: loss.name(),
                    target: "targets that are numbers; use `gaussian` or `huber`",
                });
            }
            (Output::Count | Output::Nothing, _) => {
                return Err(ModelError::Target { needed: "classes or numbers as targets: it is a network" });
            }
        })
    }

    /// Huber's loss with this δ.
    pub fn huber(delta: f64) -> Result<Self, ModelError> {
        let delta = positive("loss.huber", delta)?;
        // Z = 2 ∫₀^δ exp(−r²/2) dr + (2/δ) exp(−δ²/2), by Simpson's rule; the integrand is negligible beyond r = 10.
        let (end, steps) = (delta.min(10.0), 2_000_u32);
        let step = end / f64::from(steps);
        let weight = |i| if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
        let bulk: f64 = (0..=steps).map(|i| weight(i) * (-0.5 * (f64::from(i) * step).powi(2)).exp()).sum::<f64>() * step / 3.0;
        let log_normalizer = (2.0 * bulk + 2.0 / delta * (-0.5 * delta * delta).exp()).ln();
        Ok(Self::Huber { delta, log_normalizer })
    }

    /// Whether the last parameter is g, the log-precision of the noise.
    pub fn has_log_precision(&self) -> bool {
        matches!(self, Self::Gaussian { .. })
    }

    pub fn output(&self) -> Output {
        match self {
            Self::CrossEntropy { classes } => Output::Classes(*classes),
            Self::Gaussian { .. } | Self::Huber { .. } => Output::Number,
        }
    }

    /// The part of log p0(θ) beside the prior of the weights.
    pub fn log_prior<F: Real>(&self, theta: &[F]) -> f64 {
        match self {
            Self::Gaussian { shape, rate } => {
                let (g, precision) = log_precision(theta);
                shape * g - rate * precision
            }
            Self::CrossEntropy { .. } | Self::Huber { .. } => 0.0,
        }
    }

    /// Overwrites the part of ∇log p0(θ) beside the prior of the weights.
    pub fn prior_score<F: Real>(&self, theta: &[F], score: &mut [F]) {
        if let Self::Gaussian { shape, rate } = self {
            let (_, precision) = log_precision(theta);
            score[theta.len() - 1] = F::of(shape - rate * precision);
        }
    }

    /// Σ ℓ over rows of outputs, which are overwritten.
    pub fn loss<F: Real>(&self, theta: &[F], outputs: &mut [F], y: ArrayView1<F>) -> f64 {
        if let Self::CrossEntropy { classes } = *self {
            subtract_maxima(outputs, classes);
            let rows = outputs.chunks_exact(classes).zip(y);
            let targets: f64 = rows.map(|(row, &y)| row[index(y, classes)].f64()).sum();
            vector::exp(outputs);
            let sums = outputs.chunks_exact(classes).map(|row| row.iter().map(|p| p.f64()).sum::<f64>().ln());
            return sums.sum::<f64>() - targets;
        }
        let loss = self.residual_loss(theta);
        outputs.iter().zip(y).map(|(f, &y)| loss((*f - y).f64())).sum()
    }

    /// ℓ as a function of the residual f − y.
    fn residual_loss<F: Real>(&self, theta: &[F]) -> impl Fn(f64) -> f64 {
        // An offset plus a quadratic with this curvature up to `delta`, linear beyond.
        let (offset, curvature, delta) = match *self {
            Self::Gaussian { .. } => {
                let (g, precision) = log_precision(theta);
                (0.5 * (2.0 * std::f64::consts::PI).ln() - 0.5 * g, precision, f64::INFINITY)
            }
            Self::Huber { delta, log_normalizer } => (log_normalizer, 1.0, delta),
            Self::CrossEntropy { .. } => (0.0, 0.0, f64::INFINITY),
        };
        move |r| {
            let r = r.abs();
            offset + if r <= delta { 0.5 * curvature * r * r } else { delta * (r - 0.5 * delta) }
        }
    }

    /// Overwrites outputs by −weight · ∂ℓ/∂output and adds −weight · Σ ∂ℓ/∂g to the score of g.
    pub fn outputs_to_score<F: Real>(&self, theta: &[F], outputs: &mut [F], y: ArrayView1<F>, weight: F, score: &mut [F]) {
        match *self {
            Self::CrossEntropy { classes } => {
                softmax(outputs, classes);
                for (row, &y) in outputs.chunks_exact_mut(classes).zip(y) {
                    for p in row.iter_mut() {
                        *p *= -weight;
                    }
                    row[index(y, classes)] += weight;
                }
            }
            Self::Gaussian { .. } => {
                let (_, precision) = log_precision(theta);
                let mut squares = 0.0;
                let factor = -weight * F::of(precision);
                for (output, &y) in outputs.iter_mut().zip(y) {
                    let residual = *output - y;
                    squares += residual.f64() * residual.f64();
                    *output = factor * residual;
                }
                let rows = outputs.len() as f64;
                score[theta.len() - 1] += weight * F::of(0.5 * rows - 0.5 * precision * squares);
            }
            Self::Huber { delta, .. } => {
                let delta = F::of(delta);
                for (output, &y) in outputs.iter_mut().zip(y) {
                    *output = -weight * (*output - y).max(-delta).min(delta);
                }
            }
        }
    }

    /// Overwrites outputs by weight times the diagonal of the loss's Hessian in the outputs, and adds the expected curvature in g to that
    /// of g. For classes, the outputs must be [probabilities](Self::probabilities).
    pub fn outputs_to_curvature<F: Real>(
        &self,
        theta: &[F],
        outputs: &mut [F],
        y: ArrayView1<F>,
        weight: F,
        curvature: &mut [F],
    ) {
        match *self {
            Self::CrossEntropy { .. } => outputs.iter_mut().for_each(|p| *p = weight * *p * (F::one() - *p)),
            Self::Gaussian { .. } => {
                let (_, precision) = log_precision(theta);
                let of_row = self.curvature_of_log_precision().unwrap_or(0.0);
                curvature[theta.len() - 1] += weight * F::of(of_row * outputs.len() as f64);
                outputs.fill(weight * F::of(precision));
            }
            Self::Huber { delta, .. } => {
                let delta = F::of(delta);
                for (output, &y) in outputs.iter_mut().zip(y) {
                    *output = if (*output - y).abs() <= delta { weight } else { F::zero() };
                }
            }
        }
    }

    /// Calls `each` with vectors whose squares add up to the curvature of a row's loss in its outputs: the Hessian is the sum of their outer
    /// products. The outputs are overwritten.
    pub fn curvature_roots<F: Real>(&self, theta: &[F], outputs: &mut [F], y: F, mut each: impl FnMut(&[F])) {
        match *self {
            // diag(p) − p pᵀ = Σ_c p_c (e_c − p)(e_c − p)ᵀ.
            Self::CrossEntropy { classes } => {
                softmax(outputs, classes);
                for class in 0..classes {
                    let root = outputs[class].sqrt();
                    let indicator = |other: usize| if other == class { F::one() } else { F::zero() };
                    each(&(0..classes).map(|other| root * (indicator(other) - outputs[other])).collect::<Vec<F>>());
                }
            }
            Self::Gaussian { .. } => each(&[F::of(log_precision(theta).1.sqrt())]),
            Self::Huber { delta, .. } if (outputs[0] - y).abs() <= F::of(delta) => each(&[F::one()]),
            Self::Huber { .. } => {}
        }
    }

    /// The expected curvature of a row's loss in the log-precision g, if there is one.
    pub fn curvature_of_log_precision(&self) -> Option<f64> {
        self.has_log_precision().then_some(0.5)
    }

    /// Replaces the outputs of a classifier by class probabilities; other outputs are unchanged.
    pub fn probabilities<F: Real>(&self, outputs: &mut [F]) {
        if let Self::CrossEntropy { classes } = *self {
            softmax(outputs, classes);
        }
    }

    /// Adds `particle_weight` times this particle's predictive mean (rows × outputs) and density at the targets; outputs are overwritten.
    pub fn add_prediction<F: Real>(
        &self,
        theta: &[F],
        outputs: &mut [F],
        y: ArrayView1<F>,
        particle_weight: f64,
        mean: &mut [f64],
        density: &mut [f64],
    ) {
        if let Self::CrossEntropy { classes } = *self {
            softmax(outputs, classes);
            for ((row, &y), density) in outputs.chunks_exact(classes).zip(y).zip(density) {
                *density += particle_weight * row[index(y, classes)].f64();
            }
            for (mean, p) in mean.iter_mut().zip(outputs.iter()) {
                *mean += particle_weight * p.f64();
            }
            return;
        }
        let loss = self.residual_loss(theta);
        for (((f, &y), mean), density) in outputs.iter().zip(y).zip(mean).zip(density) {
            *mean += particle_weight * f.f64();
            *density += particle_weight * (-loss((*f - y).f64())).exp();
        }
    }
}

/// g and the precision, its clamped exponential.
fn log_precision<F: Real>(theta: &[F]) -> (f64, f64) {
    let g = theta[theta.len() - 1].f64();
    (g, clamped_exp(g))
}

fn subtract_maxima<F: Real>(logits: &mut [F], classes: usize) {
    for row in logits.chunks_exact_mut(classes) {
        let highest = row.iter().fold(F::neg_infinity(), |highest, &z| if z > highest { z } else { highest });
        for z in row {
            *z -= highest;
        }
    }
}

/// Replaces logits by probabilities, row by row.
fn softmax<F: Real>(logits: &mut [F], classes: usize) {
    subtract_maxima(logits, classes);
    vector::exp(logits);
    for row in logits.chunks_exact_mut(classes) {
        let scale = F::one() / row.iter().copied().sum::<F>();
        for p in row {
            *p *= scale;
        }
    }
}
