//! A model of one's own with the whole command line: regression with an intercept for each group, drawn from a common population.
//!
//! y_i ~ N(α_g(i) + x_iᵀβ, σ²), α_j = μ + τ z_j, z_j ~ N(0, 1); μ, β_k ~ N(0, 1) and τ, σ ~ N(0, 1) above 0, in standard deviations
//! of y, as mpibayes hands targets of regressions to models. That is the non-centred form: z is independent of τ a priori, which
//! leaves no funnel where groups have few rows. Scales are sampled as logarithms, whose Jacobian belongs to the prior.
//!
//! The first column of the data is the group: 0, 1, ... `run.toml` beside this file says how to run it on `schools.csv`, which is
//! made up. `mpibayes::guide` leads through this file.

use mpibayes::models::{Batch, BuiltModel, DataSchema, Model, ModelSettings, Output, Part, Scratch, require_data};
use mpibayes::number::Real;
use mpibayes::random::Stream;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The keys of `[model]` in a run file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    groups: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { groups: 8 }
    }
}

impl ModelSettings for Settings {
    const NAME: &'static str = "varying-intercepts";

    fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String> {
        let facts = require_data(facts)?;
        if facts.output != Output::Number {
            return Err("this model predicts a number: import with --task regression".into());
        }
        if facts.features == 0 || self.groups == 0 {
            return Err("this model needs at least one group, and its number in the first column".into());
        }
        Ok(BuiltModel::for_data(VaryingIntercepts { groups: self.groups, slopes: facts.features - 1 }))
    }
}

/// θ = (μ, log τ, log σ, β_1, ..., z_1, ...).
pub struct VaryingIntercepts {
    groups: usize,
    slopes: usize,
}

/// A particle, taken apart.
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

/// Where the parts begin.
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

    /// The group of a row; [`Model::check`] has seen that it is one.
    fn group<F: Real>(&self, row: ArrayView1<F>) -> usize {
        row[0].to_usize().unwrap_or(usize::MAX)
    }

    /// What a particle expects of a row.
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
                "{value} in the first column is no group: groups = {0} in [model] means 0 to {1}; import with --scaling none",
                self.groups,
                self.groups - 1
            )),
        }
    }

    /// A draw from the prior.
    fn draw_initial(&self, stream: &mut Stream, mut theta: ArrayViewMut1<F>) {
        let mut normals = vec![0.0; theta.len()];
        stream.normals(&mut normals);
        theta.iter_mut().zip(normals).for_each(|(place, normal)| *place = F::of(normal));
        for scale in [LOG_SPREAD, LOG_NOISE] {
            theta[scale] = theta[scale].abs().ln();
        }
    }

    /// Of a scale s = e^v: −s²/2, and + v, for a density of v is one of s times ds/dv.
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

    /// −log p(y_i | θ) = log σ + r²/2σ², up to a constant, where r is what the particle does not explain.
    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
        for (theta, out) in theta.rows().into_iter().zip(out) {
            let parameters = self.parameters(theta);
            let rows = batch.x.rows().into_iter().zip(batch.y);
            *out = rows
                .map(|(row, y)| {
                    let rest = *y - self.expected(&parameters, row);
                    (parameters.log_noise + rest * rest * parameters.precision / F::of(2.0)).f64()
                })
                .sum();
        }
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, mut score: ArrayViewMut2<F>, _: &mut Scratch<F>) {
        let z = SLOPES + self.slopes;
        for (theta, mut score) in theta.rows().into_iter().zip(score.rows_mut()) {
            let parameters = self.parameters(theta);
            for (row, y) in batch.x.rows().into_iter().zip(batch.y) {
                let rest = *y - self.expected(&parameters, row);
                // −∂ℓ/∂α_g, from which all others follow by the chain rule.
                let pull = weight * rest * parameters.precision;
                let group = self.group(row);
                score[MEAN] += pull;
                score[LOG_SPREAD] += pull * parameters.spread * parameters.z[group];
                score[LOG_NOISE] += pull * rest - weight;
                score[z + group] += pull * parameters.spread;
                for (slope, x) in row.iter().skip(1).enumerate() {
                    score[SLOPES + slope] += pull * *x;
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
        let share = 1.0 / theta.nrows() as f64;
        mean.fill(0.0);
        density.fill(0.0);
        for theta in theta.rows() {
            let parameters = self.parameters(theta);
            let precision = parameters.precision.f64();
            for (i, (row, y)) in batch.x.rows().into_iter().zip(batch.y).enumerate() {
                let expected = self.expected(&parameters, row).f64();
                mean[(i, 0)] += share * expected;
                density[i] += share * (precision / (2.0 * PI)).sqrt() * (-(y.f64() - expected).powi(2) * precision / 2.0).exp();
            }
        }
    }
}

fn main() -> std::process::ExitCode {
    mpibayes::main_with(&mpibayes::config::Registry::default().with_model::<Settings>())
}

#[cfg(test)]
mod tests;
