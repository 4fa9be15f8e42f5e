//! The settings of a network, and the network built from them.

use super::super::error::positive;
use super::super::{BuiltModel, DataSchema, ModelError, ModelSettings, Output, require_data};
use super::dense::Layer;
use super::losses::{Likelihood, Loss};
use super::model::Network;
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};

/// The settings of the model `network`.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq, documented::DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Widths of the hidden layers, from the features to the outputs; `[]` is a linear model.
    pub hidden: Vec<usize>,
    /// Precision λ of the prior N(0, 1/λ) of each weight and bias. The default e is that of the DSVGD experiments (log λ = 1).
    pub prior_precision: f64,
    /// Loss: `"cross_entropy"` for classes; `"gaussian"` or `{ huber = 1.0 }` for numbers, with δ in standard deviations of the targets.
    /// Without it, cross-entropy for classes and Gaussian noise for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Shape of the Gamma prior of the noise precision; only for the Gaussian loss.
    pub gamma_shape: f64,
    /// Rate (not scale) of the Gamma prior of the noise precision; only for the Gaussian loss.
    pub gamma_rate: f64,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self { hidden: vec![50], prior_precision: std::f64::consts::E, loss: None, gamma_shape: 1.0, gamma_rate: 0.1 }
    }
}

/// Larger networks are a typing mistake: their weights fill the memory of a node.
const MAX_WEIGHTS: u128 = 1 << 36;

impl NetworkSettings {
    /// The network for data with this many features and these targets.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features or targets, or the loss does not fit the targets.
    pub fn build(&self, features: usize, output: Output) -> Result<Network, ModelError> {
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        if let Some(empty) = self.hidden.iter().position(|&width| width == 0) {
            return Err(ModelError::EmptyLayer { layer: empty + 1 });
        }
        let widths = self.hidden.iter().map(|&width| width as u128);
        let weights: u128 = widths
            .clone()
            .chain([1])
            .zip(std::iter::once(features as u128).chain(widths))
            .map(|(to, from)| to * (from + 1))
            .sum();
        if weights > MAX_WEIGHTS {
            return Err(ModelError::TooManyWeights { most: MAX_WEIGHTS });
        }
        let prior_precision = positive("prior_precision", self.prior_precision)?;
        let (outputs, likelihood) = Likelihood::new(output, self.loss, (self.gamma_shape, self.gamma_rate))?;
        let mut widths = vec![features];
        widths.extend(&self.hidden);
        widths.push(outputs);
        Ok(Network { layers: Layer::stack(&widths), likelihood, prior_precision })
    }
}

impl ModelSettings for NetworkSettings {
    const NAME: &'static str = "network";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn other_defaults() -> toml::Table {
        toml::toml! {
            dtype = "float32"
            [method]
            optimizer = { adagrad = { step = 1e-3, decay = 0.9, fudge = 1e-6 } }
            covariance = "diagonal"
        }
    }

    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        let data = require_data(data)?;
        data.refuse_extra_columns("a network")?;
        Ok(BuiltModel::for_data(self.build(data.features, data.output)?))
    }
}
