//! Bayesian logistic regression with a Gamma hyperprior on the precision of the weights, or a fixed precision.
//!
//! θ = (w, v), v = log ξ: p(y = 1|x, w) = σ(wᵀx), w|ξ ~ N(0, I/ξ), ξ ~ Gamma(shape a, rate b); with the Jacobian of v,
//! log p0(w, v) = (m/2 + a) v − e^v (‖w‖²/2 + b), m the length of w (Liu & Wang 2016, section 5; Kassab & Simeone, arXiv 2009.06419).
//! With a fixed precision, v is not a parameter: θ = w ~ N(0, I/ξ).

use super::error::{not_negative, positive};
use super::layout::{flat, flat_mut, index};
use super::linear_predictor::{LinearPredictor, generalized_linear_model};
use super::log_precision::{MAX_LOG_PRECISION, precision};
use super::{
    Batch, BuiltModel, CurvatureSupport, DataSchema, Model, ModelError, ModelSettings, Output, Part, Scratch, require_data,
};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::{Key, KeyError, keys};
use crate::vector::{self, vectorized};
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rand_distr::{Distribution, Gamma};

/// The settings of the model `logistic`.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct LogisticSettings {
    /// Shape a of the Gamma prior of the weights' precision ξ.
    pub gamma_shape: f64,
    /// Rate b (not scale) of the Gamma prior of the weights' precision. The default is that of the DSVGD experiments; the gradient in
    /// the original SVGD code uses 0.01.
    pub gamma_rate: f64,
    /// A fixed precision ξ of the weights, in place of the Gamma prior. Without it, log ξ is a parameter of the model.
    pub prior_precision: Option<f64>,
    /// Whether the model has an intercept: a column of ones beside the features.
    pub intercept: bool,
    /// Bandwidth λ of a Gaussian kernel around each particle over which predictions are averaged, by
    /// E σ(wᵀx) ≈ σ(wₙᵀx / √(1 + π λ²‖x‖²/8)). 0 averages over the particles themselves.
    pub predictive_bandwidth: f64,
}

impl Default for LogisticSettings {
    fn default() -> Self {
        Self { gamma_shape: 1.0, gamma_rate: 100.0, prior_precision: None, intercept: true, predictive_bandwidth: 0.0 }
    }
}

impl LogisticSettings {
    /// The model for data with this many features.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not two classes.
    pub fn build(&self, features: usize, output: Output) -> Result<Logistic, ModelError> {
        match output {
            Output::Classes(2) => {}
            Output::Classes(classes) => {
                return Err(ModelError::Classes { classes, hint: ": logistic regression needs exactly two" });
            }
            Output::Number | Output::Nothing => {
                return Err(ModelError::Target { needed: "two classes as targets: it is a logistic regression" });
            }
        }
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        let shape = positive("gamma_shape", self.gamma_shape)?;
        let rate = positive("gamma_rate", self.gamma_rate)?;
        let bandwidth = not_negative("predictive_bandwidth", self.predictive_bandwidth)?;
        let precision = Gamma::new(shape, 1.0 / rate).map_err(|_| ModelError::OutOfRange {
            setting: "gamma_rate",
            value: rate,
            range: "a positive number",
        })?;
        let prior = match self.prior_precision {
            Some(precision) => Prior::Fixed(positive("prior_precision", precision)?),
            None => Prior::Gamma { shape, rate, precision },
        };
        let further = usize::from(self.prior_precision.is_none());
        Ok(Logistic { predictor: LinearPredictor { features, intercept: self.intercept, further }, prior, bandwidth })
    }
}

impl ModelSettings for LogisticSettings {
    const NAME: &'static str = "logistic";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn build_model<F: Real>(&self, data: Option<DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        let DataSchema { features, output } = require_data(data)?;
        Ok(BuiltModel::for_data(self.build(features, output)?))
    }
}

/// Bayesian logistic regression; targets are the class indices 0 and 1.
#[derive(Clone, Debug)]
pub struct Logistic {
    predictor: LinearPredictor,
    prior: Prior,
    bandwidth: f64,
}

/// The prior of the weights' precision ξ.
#[derive(Clone, Copy, Debug)]
enum Prior {
    Fixed(f64),
    Gamma { shape: f64, rate: f64, precision: Gamma<f64> },
}

impl Logistic {
    fn score_weight<F>(&self, weight: F) -> F {
        weight
    }

    fn predictors_to_means<F: Real>(logits: &mut [F]) {
        vector::sigmoid(logits);
    }

    /// σ'(z) of logits z, in place.
    fn predictors_to_curvatures<F: Real>(&self, logits: &mut [F]) {
        vector::sigmoid(logits);
        logits.iter_mut().for_each(|p| *p = *p * (F::one() - *p));
    }
}

impl<F: Real> Model<F> for Logistic {
    generalized_linear_model!(F);

    fn parts(&self) -> Vec<Part> {
        let mut parts = self.predictor.parts();
        if let Prior::Gamma { .. } = self.prior {
            parts.push(Part::new("log_precision", &[]));
        }
        parts
    }

    fn output(&self) -> Output {
        Output::Classes(2)
    }

    /// Draws ξ from its Gamma prior and w from N(0, I/ξ).
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let v = match &self.prior {
            Prior::Fixed(precision) => precision.ln(),
            Prior::Gamma { precision, .. } => precision.sample(stream).ln().clamp(-MAX_LOG_PRECISION, MAX_LOG_PRECISION),
        };
        let deviation = (-0.5 * v).exp();
        let theta = flat_mut(theta);
        let mut normals = vec![0.0; self.predictor.weights()];
        stream.normals(&mut normals);
        theta.iter_mut().zip(normals).for_each(|(weight, normal)| *weight = F::of(deviation * normal));
        if let Some(last) = theta.get_mut(self.predictor.weights()) {
            *last = F::of(v);
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.predictor.dim()).zip(out) {
            let (weights, further) = theta.split_at(self.predictor.weights());
            let square: f64 = weights.iter().map(|w| w.f64().powi(2)).sum();
            *out = match (self.prior, further) {
                (Prior::Gamma { shape, rate, .. }, [v]) => {
                    (0.5 * weights.len() as f64 + shape) * v.f64() - precision(v.f64()) * (0.5 * square + rate)
                }
                (Prior::Fixed(precision), _) => -0.5 * precision * square,
                (Prior::Gamma { .. }, _) => f64::NAN,
            };
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let d = self.predictor.dim();
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            match self.prior {
                Prior::Fixed(precision) => {
                    scale_and_square(theta, score, -F::of(precision));
                }
                Prior::Gamma { shape, rate, .. } => {
                    let precision = precision(theta[d - 1].f64());
                    let square = scale_and_square(&theta[..d - 1], &mut score[..d - 1], -F::of(precision)).f64();
                    let coefficient = 0.5 * self.predictor.weights() as f64 + shape;
                    score[d - 1] = F::of(coefficient - precision * (0.5 * square + rate));
                }
            }
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        let mut softplus = scratch.take(self.predictor.block_len::<F>());
        self.predictor.predict(theta, batch, scratch, |block| {
            let softplus = &mut softplus[..block.values.len()];
            softplus.copy_from_slice(block.values);
            vector::softplus(softplus);
            let rows = softplus.chunks_exact(block.lanes).zip(block.values.chunks_exact(block.lanes));
            for ((softplus, logits), &row) in rows.zip(block.rows) {
                let y = batch.y[row];
                for (out, (s, z)) in out[block.particles.clone()].iter_mut().zip(softplus.iter().zip(logits)) {
                    *out += (*s - y * *z).f64();
                }
            }
        });
        scratch.put(softplus);
    }

    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mut mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    ) {
        mean.fill(0.0);
        let weight = 1.0 / theta.nrows() as f64;
        let features = self.predictor.features;
        let mut negated = scratch.take(self.predictor.block_len::<F>());
        self.predictor.predict(theta, batch, scratch, |block| {
            let (logits, lanes) = (block.values, block.lanes);
            if self.bandwidth > 0.0 {
                for (&row, logits) in block.rows.iter().zip(logits.chunks_exact_mut(lanes)) {
                    let x = &block.x[row * features..][..features];
                    let ones = if self.predictor.intercept { 1.0 } else { 0.0 };
                    let squared_norm: f64 = ones + x.iter().map(|x| x.f64().powi(2)).sum::<f64>();
                    let shrink = F::of((1.0 + std::f64::consts::PI * self.bandwidth.powi(2) * squared_norm / 8.0).powf(-0.5));
                    logits.iter_mut().for_each(|z| *z *= shrink);
                }
            }
            // 1 − σ(z) is 0 in single precision for z > 17, but σ(−z) stays accurate.
            let negated = &mut negated[..logits.len()];
            negated.iter_mut().zip(logits.iter()).for_each(|(negated, z)| *negated = -*z);
            for (class, probabilities) in [negated, logits].into_iter().enumerate() {
                vector::sigmoid(probabilities);
                for (i, row) in probabilities.chunks_exact(lanes).enumerate() {
                    mean[[block.first + i, class]] += weight * row[..block.particles.len()].iter().map(|p| p.f64()).sum::<f64>();
                }
            }
        });
        scratch.put(negated);
        for ((density, mean), &y) in density.iter_mut().zip(mean.rows()).zip(batch.y) {
            *density = mean[index(y, 2)];
        }
    }
}

vectorized! {
    /// Writes `factor` · weights to `score` and returns ‖weights‖².
    fn scale_and_square<F: Real>(weights: &[F], score: &mut [F], factor: F) -> F {
        let mut squares = [F::zero(); 16];
        let (groups, rest) = weights.as_chunks::<16>();
        for group in groups {
            for lane in 0..16 {
                squares[lane] += group[lane] * group[lane];
            }
        }
        score.iter_mut().zip(weights).for_each(|(score, &weight)| *score = factor * weight);
        let rest: F = rest.iter().map(|&weight| weight * weight).sum();
        squares.iter().copied().sum::<F>() + rest
    }
}

#[cfg(test)]
mod tests;
