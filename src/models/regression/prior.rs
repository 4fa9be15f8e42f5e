//! Priors of the weights of a regression.

use crate::models::ModelError;
use crate::models::error::positive;
use crate::models::log_precision::{MAX_LOG_PRECISION, clamped_exp};
use crate::number::Real;
use crate::random::Stream;
use crate::vector::vectorized;
use rand_distr::{Distribution, Gamma};

/// The prior of the weights, as a run file has it.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Prior {
    /// N(0, s²) with this standard deviation s.
    Normal(f64),
    /// Student's t distribution around 0.
    StudentT {
        /// ν.
        degrees_of_freedom: f64,
        /// Its scale s.
        scale: f64,
    },
    /// N(0, 1/ξ) with a common precision ξ ~ Gamma(shape, rate), whose logarithm is a parameter of the model.
    SampledPrecision {
        /// Shape a.
        shape: f64,
        /// Rate b (not scale).
        rate: f64,
    },
}

/// The prior of the weights, of their common precision if that is sampled, and of the intercept.
#[derive(Clone, Debug)]
pub struct WeightPrior {
    form: Form,
    /// The standard deviation of the intercept's normal prior, if there is an intercept.
    intercept_scale: Option<f64>,
}

#[derive(Clone, Debug)]
enum Form {
    Normal(Scales),
    StudentT(f64, Scales),
    SampledPrecision { shape: f64, rate: f64, gamma: Gamma<f64> },
}

/// The scale of each weight's prior.
#[derive(Clone, Debug)]
struct Scales {
    scale: f64,
    /// What the scale is multiplied by, for each weight; 1 if there are none.
    units: Option<Vec<f64>>,
}

impl Scales {
    fn iter(&self) -> impl Iterator<Item = f64> {
        (0..).map(|weight: usize| self.scale * self.units.as_ref().map_or(1.0, |units| units[weight]))
    }
}

impl WeightPrior {
    /// The prior of weights whose scales are multiples of these units, or of 1.
    ///
    /// # Errors
    /// If a number is not positive.
    pub fn new(prior: Prior, intercept_scale: Option<f64>, units: Option<Vec<f64>>) -> Result<Self, ModelError> {
        let scales = |scale: f64| Scales { scale, units };
        let form = match prior {
            Prior::Normal(scale) => Form::Normal(scales(positive("prior.normal", scale)?)),
            Prior::StudentT { degrees_of_freedom, scale } => {
                let scale = positive("prior.student_t.scale", scale)?;
                Form::StudentT(positive("prior.student_t.degrees_of_freedom", degrees_of_freedom)?, scales(scale))
            }
            Prior::SampledPrecision { shape, rate } => {
                let shape = positive("prior.sampled_precision.shape", shape)?;
                let rate = positive("prior.sampled_precision.rate", rate)?;
                let out_of_range =
                    ModelError::OutOfRange { setting: "prior.sampled_precision.rate", value: rate, range: "a positive number" };
                let gamma = Gamma::new(shape, 1.0 / rate).map_err(|_| out_of_range)?;
                Form::SampledPrecision { shape, rate, gamma }
            }
        };
        Ok(Self { form, intercept_scale: intercept_scale.map(|scale| positive("intercept_scale", scale)).transpose()? })
    }

    /// The scale of each intercept's prior, of which there may be many.
    fn intercept_scales(&self) -> impl Iterator<Item = f64> {
        self.intercept_scale.into_iter().cycle()
    }

    /// Whether the logarithm of the weights' precision is a parameter.
    pub fn has_log_precision(&self) -> bool {
        matches!(self.form, Form::SampledPrecision { .. })
    }

    /// The precision of each weight, and of the intercept, if these are normal.
    pub fn normal_precisions(&self, weights: usize) -> Option<Vec<f64>> {
        let Form::Normal(scales) = &self.form else { return None };
        Some(scales.iter().take(weights).chain(self.intercept_scale).map(|scale| scale.powi(-2)).collect())
    }

    /// Draws the log-precision, if it is sampled, from its prior; weights from a normal distribution with the scale of their
    /// prior, even if the prior is Student's t distribution; and the intercept, if there is one, from a normal distribution whose
    /// standard deviation is that of its prior, but at most 1.
    pub fn draw_initial<F: Real>(&self, stream: &mut Stream, weights: &mut [F], intercept: &mut [F], log_precision: &mut [F]) {
        let drawn = match &self.form {
            Form::SampledPrecision { gamma, .. } => gamma.sample(stream).ln().clamp(-MAX_LOG_PRECISION, MAX_LOG_PRECISION),
            Form::Normal(_) | Form::StudentT(..) => 0.0,
        };
        let common = (-0.5 * drawn).exp();
        let mut normals = vec![0.0; weights.len() + intercept.len()];
        stream.normals(&mut normals);
        let (first, last) = normals.split_at(weights.len());
        match &self.form {
            Form::SampledPrecision { .. } => {
                weights.iter_mut().zip(first).for_each(|(weight, normal)| *weight = F::of(common * normal));
            }
            Form::Normal(scales) | Form::StudentT(_, scales) => {
                weights
                    .iter_mut()
                    .zip(first)
                    .zip(scales.iter())
                    .for_each(|((weight, normal), scale)| *weight = F::of(scale * normal));
            }
        }
        for ((intercept, normal), scale) in intercept.iter_mut().zip(last).zip(self.intercept_scales()) {
            *intercept = F::of(scale.min(1.0) * normal);
        }
        log_precision.iter_mut().take(1).for_each(|log_precision| *log_precision = F::of(drawn));
    }

    /// The log-density, up to a constant. `log_precision` is empty unless it is sampled.
    pub fn log_density<F: Real>(&self, weights: &[F], intercept: &[F], log_precision: &[F]) -> f64 {
        let of_weights = match (&self.form, log_precision) {
            (Form::Normal(scales), _) => {
                weights.iter().zip(scales.iter()).map(|(weight, scale)| -0.5 * (weight.f64() / scale).powi(2)).sum::<f64>()
            }
            (Form::StudentT(df, scales), _) => {
                let log = |(weight, scale): (&F, f64)| -0.5 * (df + 1.0) * ((weight.f64() / scale).powi(2) / df).ln_1p();
                weights.iter().zip(scales.iter()).map(log).sum()
            }
            (Form::SampledPrecision { shape, rate, .. }, [v, ..]) => {
                let square: f64 = weights.iter().map(|weight| weight.f64().powi(2)).sum();
                // Not clamped: the density must fall where the precision is huge.
                (0.5 * weights.len() as f64 + shape) * v.f64() - v.f64().exp() * (0.5 * square + rate)
            }
            (Form::SampledPrecision { .. }, []) => f64::NAN,
        };
        let of_intercept = |(intercept, scale): (&F, f64)| -0.5 * (intercept.f64() / scale).powi(2);
        of_weights + intercept.iter().zip(self.intercept_scales()).map(of_intercept).sum::<f64>()
    }

    /// Overwrites the gradient of the log-density. `score` has the weights, the intercept, and the log-precision if it is sampled.
    pub fn score<F: Real>(&self, weights: &[F], intercept: &[F], log_precision: &[F], score: &mut [F]) {
        let (by_weight, rest) = score.split_at_mut(weights.len());
        let (by_intercept, by_log_precision) = rest.split_at_mut(intercept.len());
        for ((score, intercept), scale) in by_intercept.iter_mut().zip(intercept).zip(self.intercept_scales()) {
            *score = F::of(-intercept.f64() / (scale * scale));
        }
        match &self.form {
            Form::Normal(scales) => {
                for ((score, weight), scale) in by_weight.iter_mut().zip(weights).zip(scales.iter()) {
                    *score = F::of(-weight.f64() / (scale * scale));
                }
            }
            Form::StudentT(df, scales) => {
                for ((score, weight), scale) in by_weight.iter_mut().zip(weights).zip(scales.iter()) {
                    let weight = weight.f64();
                    *score = F::of(-(df + 1.0) * weight / (df * scale * scale + weight * weight));
                }
            }
            Form::SampledPrecision { shape, rate, .. } => {
                for (score, v) in by_log_precision.iter_mut().zip(log_precision).take(1) {
                    let precision = clamped_exp(v.f64());
                    let square = scale_and_square(weights, by_weight, -F::of(precision)).f64();
                    *score = F::of(0.5 * weights.len() as f64 + shape - precision * (0.5 * square + rate));
                }
            }
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
