//! A model for chains of any dimension with cheap updates: θ ~ N(0, I), independent of the rows.

use mpibayes::models::{Batch, BuiltModel, DataSchema, Model, ModelSettings, Output, Part, Scratch};
use mpibayes::number::Real;
use mpibayes::random::Stream;
use mpibayes::settings::KeyError;
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The keys of `[model]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wide {
    /// d.
    dim: usize,
}

impl Default for Wide {
    fn default() -> Self {
        Self { dim: 1 }
    }
}

impl ModelSettings for Wide {
    const NAME: &'static str = "wide";

    fn build_model<F: Real>(&self, _: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        // As many rows as agents, at least.
        Ok(BuiltModel { model: Arc::new(self.clone()), own_rows: 64 })
    }
}

impl<F: Real> Model<F> for Wide {
    fn dim(&self) -> usize {
        self.dim
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("theta", &[self.dim])]
    }

    fn output(&self) -> Output {
        Output::Nothing
    }

    fn draw_initial(&self, _: &mut Stream, mut theta: ArrayViewMut1<F>) {
        theta.fill(F::zero());
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (out, theta) in out.iter_mut().zip(theta.rows()) {
            *out = -0.5 * theta.iter().map(|theta| theta.f64().powi(2)).sum::<f64>();
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) {
        score.zip_mut_with(&theta, |score, &theta| *score = -theta);
    }

    fn loss(&self, _: ArrayView2<F>, _: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
        out.fill(0.0);
    }

    fn add_score(&self, _: ArrayView2<F>, _: Batch<F>, _: F, _: ArrayViewMut2<F>, _: &mut Scratch<F>) {}

    fn predict(&self, _: ArrayView2<F>, _: Batch<F>, _: ArrayViewMut2<f64>, _: &mut [f64], _: &mut Scratch<F>) {}
}
