//! The toy targets of Kassab & Simeone (arXiv 2009.06419): products of Gaussian mixtures, which need no data.

use super::gaussian::FactorProductSettings;
use super::settings::{BuiltModel, DataSchema, ModelSettings};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A toy target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// One dimension, two factors, prior N(0, 1).
    #[default]
    Mixture1d,
    /// One dimension, two factors, prior uniform on (−6, 6).
    Mixture1dUniform,
    /// Two dimensions, two factors.
    Mixture2d,
}

/// The settings of the model `toy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct ToySettings {
    /// The target: `"mixture1d"`, `"mixture1d_uniform"` or `"mixture2d"`. It generates its own factors and needs no `[data]`.
    target: Target,
}

impl ModelSettings for ToySettings {
    const NAME: &'static str = "toy";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        if data.is_some() {
            return Err(KeyError::table("generates its own factors and takes no data: remove [data]"));
        }
        let product = match self.target {
            Target::Mixture1d => FactorProductSettings::mixture_1d_normal_prior(),
            Target::Mixture1dUniform => FactorProductSettings::mixture_1d_uniform_prior(),
            Target::Mixture2d => FactorProductSettings::mixture_2d(),
        };
        let model = product.build()?;
        let own_rows = model.data::<F>().0.nrows();
        Ok(BuiltModel { model: Arc::new(model), own_rows })
    }
}
