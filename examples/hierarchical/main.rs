//! A user-defined model with the complete command line: hierarchical regression with one intercept per group.
//!
//! y_i ~ N(α_g(i) + x_iᵀβ, σ²), α_j = μ + τ z_j, z_j ~ N(0, 1); μ, β_k ~ N(0, 1) and τ, σ ~ half-normal(1). All scales are in standard
//! deviations of y, because mpibayes standardizes regression targets. This is the non-centered parameterization: z is independent of τ
//! a priori, which avoids a funnel if groups have few rows. τ and σ are sampled on the log scale; the prior includes the Jacobian.
//!
//! The first column of the data is the group index 0, 1, .... `run.toml` in this folder shows how to run the model on the synthetic data
//! of `schools.csv`. `mpibayes::guide` explains this file step by step.

use mpibayes::models::{Batch, BuiltModel, DataSchema, Model, ModelSettings, Output, Part, Scratch, require_data};
use mpibayes::number::Real;
use mpibayes::random::Stream;
use mpibayes::settings::KeyError;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The keys of `[model]` in a run file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The number of groups.
    groups: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { groups: 8 }
    }
}

impl ModelSettings for Settings {
    const NAME: &'static str = "varying-intercepts";

    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        let data = require_data(data)?;
        if data.output != Output::Number {
            return Err(KeyError::table("needs numbers as targets: import with --task regression"));
        }
        if data.features == 0 || self.groups == 0 {
            return Err(KeyError::table("needs at least one group, and the group index in the first column"));
        }
        Ok(BuiltModel::for_data(VaryingIntercepts { groups: self.groups, slopes: data.features - 1 }))
    }
}

/// The model; θ = (μ, log τ, log σ, β_1, ..., z_1, ...).
pub struct VaryingIntercepts {
    groups: usize,
    slopes: usize,
}

/// The parameters of one particle.
struct Parameters<'a, F> {
    mean: F,
    /// τ, the standard deviation of the intercepts.
    spread: F,
    log_noise: F,
    /// 1/σ².
    precision: F,
    slopes: ArrayView1<'a, F>,
    z: ArrayView1<'a, F>,
}

/// Positions in θ.
const MEAN: usize = 0;
const LOG_SPREAD: usize = 1;
const LOG_NOISE: usize = 2;
const SLOPES: usize = 3;

impl VaryingIntercepts {
    fn parameters<'a, F: Real>(&self, theta: ArrayView1<'a, F>) -> Parameters<'a, F> {
        let (slopes, z) = theta.split_at(ndarray::Axis(0), SLOPES + self.slopes);
        Parameters {
            mean: theta[MEAN],
            spread: theta[LOG_SPREAD].exp(),
            log_noise: theta[LOG_NOISE],
            precision: (F::of(-2.0) * theta[LOG_NOISE]).exp(),
            slopes: slopes.slice_move(ndarray::s![SLOPES..]),
            z,
        }
    }

    /// The group of a row, which [`Model::check`] has validated.
    fn group<F: Real>(&self, row: ArrayView1<F>) -> usize {
        row[0].to_usize().unwrap_or(usize::MAX)
    }

    /// The mean of the target of a row.
    fn expected<F: Real>(&self, parameters: &Parameters<F>, row: ArrayView1<F>) -> F {
        let slopes: F = parameters.slopes.iter().zip(row.iter().skip(1)).map(|(slope, x)| *slope * *x).sum();
        parameters.mean + parameters.spread * parameters.z[self.group(row)] + slopes
    }
}

impl<F: Real> Model<F> for VaryingIntercepts {
    fn dim(&self) -> usize {
        SLOPES + self.slopes + self.groups
    }

    fn parts(&self) -> Vec<Part> {
        let scalar = |name: &str| Part::new(name, &[]);
        let (slopes, z) = (Part::new("slopes", &[self.slopes]), Part::new("z", &[self.groups]));
        vec![scalar("mean"), scalar("log_spread"), scalar("log_noise"), slopes, z]
    }

    fn output(&self) -> Output {
        Output::Number
    }

    fn check(&self, batch: Batch<F>) -> Result<(), String> {
        let is_group = |value: F| (0..self.groups).any(|group| value == F::of(group as f64));
        match batch.x.column(0).iter().find(|value| !is_group(**value)) {
            None => Ok(()),
            Some(value) => Err(format!(
                "{value} in the first column is not a group: with groups = {0} in [model], groups are 0 to {1}; import with --scaling none",
                self.groups,
                self.groups - 1
            )),
        }
    }

    /// Draws θ from the prior.
    fn draw_initial(&self, stream: &mut Stream, mut theta: ArrayViewMut1<F>) {
        let mut normals = vec![0.0; theta.len()];
        stream.normals(&mut normals);
        theta.iter_mut().zip(normals).for_each(|(place, normal)| *place = F::of(normal));
        for scale in [LOG_SPREAD, LOG_NOISE] {
            theta[scale] = theta[scale].abs().ln();
        }
    }

    /// A scale s = e^v contributes −s²/2 + v; the term v is the logarithm of the Jacobian ds/dv.
    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in theta.rows().into_iter().zip(out) {
            let term = |(place, value): (usize, &F)| match place {
                LOG_SPREAD | LOG_NOISE => value.f64() - (2.0 * value.f64()).exp() / 2.0,
                _ => -value.f64().powi(2) / 2.0,
            };
            *out = theta.iter().enumerate().map(term).sum();
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) {
        for ((_, place), (score, value)) in theta.indexed_iter().map(|(place, _)| place).zip(score.iter_mut().zip(theta)) {
            *score = match place {
                LOG_SPREAD | LOG_NOISE => F::one() - (F::of(2.0) * *value).exp(),
                _ => -*value,
            };
        }
    }

    /// −log p(y_i | θ) = log σ + r²/2σ² up to a constant, with the residual r.
    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
        for (theta, out) in theta.rows().into_iter().zip(out) {
            let parameters = self.parameters(theta);
            let rows = batch.x.rows().into_iter().zip(batch.y);
            *out = rows
                .map(|(row, y)| {
                    let residual = *y - self.expected(&parameters, row);
                    (parameters.log_noise + residual * residual * parameters.precision / F::of(2.0)).f64()
                })
                .sum();
        }
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, mut score: ArrayViewMut2<F>, _: &mut Scratch<F>) {
        let z = SLOPES + self.slopes;
        for (theta, mut score) in theta.rows().into_iter().zip(score.rows_mut()) {
            let parameters = self.parameters(theta);
            for (row, y) in batch.x.rows().into_iter().zip(batch.y) {
                let residual = *y - self.expected(&parameters, row);
                // −∂ℓ/∂α_g times the weight; the other derivatives follow by the chain rule.
                let slope = weight * residual * parameters.precision;
                let group = self.group(row);
                score[MEAN] += slope;
                score[LOG_SPREAD] += slope * parameters.spread * parameters.z[group];
                score[LOG_NOISE] += slope * residual - weight;
                score[z + group] += slope * parameters.spread;
                for (k, x) in row.iter().skip(1).enumerate() {
                    score[SLOPES + k] += slope * *x;
                }
            }
        }
    }

    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mut mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        _: &mut Scratch<F>,
    ) {
        let weight = 1.0 / theta.nrows() as f64;
        mean.fill(0.0);
        density.fill(0.0);
        for theta in theta.rows() {
            let parameters = self.parameters(theta);
            let precision = parameters.precision.f64();
            for (i, (row, y)) in batch.x.rows().into_iter().zip(batch.y).enumerate() {
                let expected = self.expected(&parameters, row).f64();
                mean[(i, 0)] += weight * expected;
                density[i] += weight * (precision / (2.0 * PI)).sqrt() * (-(y.f64() - expected).powi(2) * precision / 2.0).exp();
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    mpibayes::main_with(&mpibayes::config::Registry::default().with_model::<Settings>())
}

#[cfg(test)]
mod tests;
