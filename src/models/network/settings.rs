//! What may be set of a network, and the network that it makes.

use super::super::error::positive;
use super::super::{BuiltModel, DataSchema, ModelError, ModelSettings, Output, require_data};
use super::Network;
use super::dense::Layer;
use super::losses::Likelihood;
use crate::number::Real;

/// What a network is trained on.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Softmax cross-entropy, for classes: `"cross_entropy"`.
    CrossEntropy,
    /// Gaussian noise whose log-precision is sampled along, for numbers: `"gaussian"`.
    Gaussian,
    /// Huber's loss with this δ (in standard deviations, as targets are standardised), for numbers: `{ huber = 1.0 }`. No likelihood but robust to outliers: a
    /// generalized Bayesian posterior.
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

/// What may be set in a configuration.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Widths of the hidden layers, from the features on; empty for a linear model. Default: one of 50.
    pub hidden: Vec<usize>,
    /// Precision λ of the prior N(0, 1/λ) of each weight and bias. Default e, that of the DSVGD experiments (log λ = 1).
    pub prior_precision: f64,
    /// What it is trained on. Default: what suits the targets, cross-entropy for classes and Gaussian noise for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// Shape of the Gamma prior of the noise's precision (Gaussian loss only). Default 1.
    pub gamma_shape: f64,
    /// Rate (not scale) of that prior. Default 0.1.
    pub gamma_rate: f64,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self { hidden: vec![50], prior_precision: std::f64::consts::E, loss: None, gamma_shape: 1.0, gamma_rate: 0.1 }
    }
}

impl NetworkSettings {
    /// The network for data with this many features and these targets.
    ///
    /// # Errors
    /// If a setting is out of its range, there is nothing to learn from or to predict, or the loss does not suit the targets.
    pub fn build(&self, features: usize, output: Output) -> Result<Network, ModelError> {
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        if let Some(empty) = self.hidden.iter().position(|&width| width == 0) {
            return Err(ModelError::EmptyLayer { layer: empty + 1 });
        }
        let prior_precision = positive("prior_precision", self.prior_precision)?;
        let (outputs, likelihood) = match (output, self.loss) {
            (Output::Classes(classes @ (0 | 1)), _) => {
                return Err(ModelError::Classes { classes, hint: ": it takes two to tell apart" });
            }
            (Output::Classes(classes), None | Some(Loss::CrossEntropy)) => (classes, Likelihood::CrossEntropy { classes }),
            (Output::Number, None | Some(Loss::Gaussian)) => {
                let shape = positive("gamma_shape", self.gamma_shape)?;
                (1, Likelihood::Gaussian { shape, rate: positive("gamma_rate", self.gamma_rate)? })
            }
            (Output::Number, Some(Loss::Huber(delta))) => (1, Likelihood::huber(delta)?),
            (Output::Classes(_), Some(loss)) => {
                return Err(ModelError::Loss { loss: loss.name(), target: "targets that are classes; use `cross_entropy`" });
            }
            (Output::Number, Some(loss)) => {
                return Err(ModelError::Loss {
                    loss: loss.name(),
                    target: "targets that are numbers; use `gaussian` or `huber`",
                });
            }
            (Output::Nothing, _) => return Err(ModelError::Target { needed: "targets to predict: this is a network" }),
        };
        let mut widths = vec![features];
        widths.extend(&self.hidden);
        widths.push(outputs);
        Ok(Network { layers: Layer::stack(&widths), likelihood, prior_precision })
    }
}

impl ModelSettings for NetworkSettings {
    const NAME: &'static str = "network";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("hidden", "widths of the hidden layers; [] for a linear model"),
        ("prior_precision", "λ in the prior N(0, 1/λ) of each weight and bias"),
        (
            "loss",
            "\"cross_entropy\", \"gaussian\" or { huber = 1.0 } (δ in standard deviations of the targets); without it, what suits the targets",
        ),
        ("gamma_shape", "shape of the Gamma prior of the noise's precision (gaussian loss only)"),
        ("gamma_rate", "rate (not scale) of that prior"),
    ];

    const ADVICE: &'static [(&'static str, &'static str)] =
        &[("precision", "\"f32\""), ("method.optimizer", "{ adagrad = { step = 1e-3, decay = 0.9, fudge = 1e-6 } }")];

    fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String> {
        let facts = require_data(facts)?;
        let model = self.build(facts.features, facts.output).map_err(|error| error.to_string())?;
        Ok(BuiltModel::for_data(model))
    }
}
