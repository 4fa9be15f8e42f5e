//! The models that come along, as run files name them.

use super::super::registry::{Built, DataFacts, ModelKind};
use crate::models::gaussian::FactorProductSettings;
use crate::models::logistic::LogisticSettings;
use crate::models::network::NetworkSettings;
use crate::number::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `network`.
pub struct Network;

impl ModelKind for Network {
    const NAME: &'static str = "network";
    const ABOUT: &'static str = "dense network with ReLU layers, for classification and regression";
    type Settings = NetworkSettings;

    fn build<F: Real>(settings: &NetworkSettings, facts: Option<DataFacts>) -> Result<Built<F>, String> {
        let facts = needs_data(facts)?;
        let model = settings.build(facts.features, facts.output).map_err(|error| error.to_string())?;
        Ok(Built { model: Arc::new(model), own_rows: 0 })
    }
}

/// `logistic`.
pub struct Logistic;

impl ModelKind for Logistic {
    const NAME: &'static str = "logistic";
    const ABOUT: &'static str = "Bayesian logistic regression with a Gamma hyper-prior";
    type Settings = LogisticSettings;

    fn build<F: Real>(settings: &LogisticSettings, facts: Option<DataFacts>) -> Result<Built<F>, String> {
        let facts = needs_data(facts)?;
        let model = settings.build(facts.features, facts.output).map_err(|error| error.to_string())?;
        Ok(Built { model: Arc::new(model), own_rows: 0 })
    }
}

fn needs_data(facts: Option<DataFacts>) -> Result<DataFacts, String> {
    facts.ok_or_else(|| "this model needs data: add [data] with file = \"...\" (made by mpibayes import)".into())
}

/// `toy`.
pub struct Toy;

/// Which toy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// One dimension, two factors, prior N(0, 1).
    #[default]
    Mixture1d,
    /// One dimension, two factors, prior uniform on (−6, 6).
    Mixture1dUniform,
    /// Two dimensions, two factors.
    Mixture2d,
}

/// The settings of `toy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToySettings {
    /// Which toy.
    target: Target,
}

impl ModelKind for Toy {
    const NAME: &'static str = "toy";
    const ABOUT: &'static str = "the mixtures of Kassab & Simeone in one and two dimensions; needs no data";
    type Settings = ToySettings;

    fn build<F: Real>(settings: &ToySettings, facts: Option<DataFacts>) -> Result<Built<F>, String> {
        if facts.is_some() {
            return Err("a toy brings its own factors: take [data] out".into());
        }
        let product = match settings.target {
            Target::Mixture1d => FactorProductSettings::mixture_1d_normal_prior(),
            Target::Mixture1dUniform => FactorProductSettings::mixture_1d_uniform_prior(),
            Target::Mixture2d => FactorProductSettings::mixture_2d(),
        };
        let model = product.build().map_err(|error| error.to_string())?;
        let own_rows = model.data::<F>().0.nrows();
        Ok(Built { model: Arc::new(model), own_rows })
    }
}
