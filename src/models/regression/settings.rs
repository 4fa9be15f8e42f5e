//! The settings that all regressions share, and how a regression is built from them.

use super::effects::GroupEffects;
use super::family::Family;
use super::linear_predictor::LinearPredictor;
use super::log_scale::ScalePrior;
use super::model::{Places, Regression};
use super::prior::{Prior, WeightPrior};
use crate::models::error::positive;
use crate::models::{DataSchema, ModelError, Output, Part};
use crate::settings::{KeyError, did_you_mean};

/// The units in which the scale of a prior is stated.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PriorUnits {
    /// Those of the scaled features and targets that the model sees.
    #[default]
    Standardized,
    /// Those of the data as they were imported.
    Original,
}

impl PriorUnits {
    /// Factors that turn the prior scales of weights into the model's units; none if there is nothing to convert.
    pub(in crate::models) fn of_weights(self, prior: Prior, data: &DataSchema) -> Result<Option<Vec<f64>>, KeyError> {
        match (self, prior, &data.scales) {
            (Self::Standardized, ..) => Ok(None),
            (Self::Original, Prior::SampledPrecision { .. }, _) => Err(KeyError::invalid(
                "prior_units",
                "= \"original\" does not suit `sampled_precision`, which has one scale for all weights: choose a normal or student_t prior, or standardized units",
            )),
            (Self::Original, _, None) => Err(KeyError::invalid(
                "prior_units",
                "= \"original\" does not suit sparse rows or principal components: state the prior in standardized units",
            )),
            (Self::Original, _, Some(scales)) => Ok(Some(scales.iter().map(|scale| data.target_scale / scale).collect())),
        }
    }
}

/// Defines the settings struct of a regression from its own keys plus the shared ones; the caller adds `build`.
macro_rules! regression_settings {
    ($(#[$doc:meta])* $name:ident = $model:literal, prior: $prior:expr, $($own:tt)*) => {
        $crate::models::regression::settings::define_settings! {
            $(#[$doc])* $name = $model, prior: $prior, intercept: |settings| match settings.intercept {
                true => Some(settings.intercept_scale),
                false => {
                    let default = Self::default().intercept_scale;
                    $crate::models::regression::settings::must_be_default(
                        "intercept_scale",
                        settings.intercept_scale,
                        default,
                        "needs intercept = true",
                    )?;
                    None
                }
            },
            /// Whether the linear predictor has an intercept. Without one it is 0 where all scaled features are 0.
            intercept: bool = true,
            /// Standard deviation of the normal prior of the intercept.
            intercept_scale: f64 = 10.0,
            $($own)*
        }
    };
}

/// Defines the settings of a regression, whose own keys come first; `intercept` is the scale of the intercept's prior, if it has one.
macro_rules! define_settings {
    ($(#[$doc:meta])* $name:ident = $model:literal, prior: $prior:expr, intercept: |$settings:ident| $intercept:expr,
     $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr,)*) => {
        $(#[$doc])*
        #[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq, documented::DocumentedFields)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$key_doc])* pub $key: $type,)*
            /// Prior of each weight: `{ normal = 1.0 }` with a standard deviation, `{ student_t = { degrees_of_freedom = 3.0, scale = 1.0 } }`,
            /// or `{ sampled_precision = { shape = 1.0, rate = 1.0 } }`: the scale of all weights is estimated, with a Gamma prior of its
            /// precision. Weights are then about sqrt(rate / shape) before the data are seen: 1.0 with these values, and with
            /// rate = 100.0 about 10.0, which is nearly flat.
            pub prior: $crate::models::regression::prior::Prior,
            /// Units of the scale in `prior`: `"standardized"` features and targets, or `"original"` ones as they were imported. An indicator of a
            /// rare level has a small standard deviation, so a standardized prior says little about it.
            pub prior_units: $crate::models::regression::settings::PriorUnits,
            /// Whether each group has an intercept of its own, if the data have a column of groups.
            pub group_effects: bool,
            /// Names of the features of which each group has a slope of its own.
            pub group_slopes: Vec<String>,
            /// The standard deviation of group effects has a half-t prior with 3 degrees of freedom and this scale, above 0.
            pub group_scale: f64,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $default,)*
                    prior: $prior,
                    prior_units: Default::default(),
                    group_effects: true,
                    group_slopes: Vec::new(),
                    group_scale: 1.0,
                }
            }
        }

        impl $crate::models::ModelSettings for $name {
            const NAME: &'static str = $model;

            fn keys() -> Vec<$crate::settings::Key> {
                $crate::settings::keys::<Self>()
            }

            fn build_model<F: $crate::number::Real>(
                &self,
                data: Option<&$crate::models::DataSchema>,
            ) -> Result<$crate::models::BuiltModel<F>, $crate::settings::KeyError> {
                Ok($crate::models::BuiltModel::for_data(self.build($crate::models::require_data(data)?)?))
            }
        }

        impl $name {
            fn shared(&self) -> Result<$crate::models::regression::settings::Shared<'_>, $crate::settings::KeyError> {
                let $settings = self;
                if !self.group_effects {
                    let default = Self::default().group_scale;
                    $crate::models::regression::settings::must_be_default(
                        "group_scale",
                        self.group_scale,
                        default,
                        "needs group_effects = true",
                    )?;
                }
                Ok($crate::models::regression::settings::Shared {
                    intercept: $intercept,
                    prior: self.prior,
                    prior_units: self.prior_units,
                    group_effects: self.group_effects,
                    group_slopes: &self.group_slopes,
                    group_scale: self.group_scale,
                })
            }
        }
    };
}

pub(in crate::models) use {define_settings, regression_settings};

/// Checks that a key that has no effect here was not set.
///
/// # Errors
/// If its value is not the default; the error names the key and gives the reason.
pub(in crate::models) fn must_be_default(key: &str, value: f64, default: f64, reason: &str) -> Result<(), KeyError> {
    if value == default { Ok(()) } else { Err(KeyError::invalid(key, reason)) }
}

/// The values of the keys that all regressions share.
pub(in crate::models) struct Shared<'a> {
    /// The standard deviation of the intercept's prior; none without an intercept.
    pub intercept: Option<f64>,
    pub prior: Prior,
    pub prior_units: PriorUnits,
    pub group_effects: bool,
    pub group_slopes: &'a [String],
    pub group_scale: f64,
}

impl Shared<'_> {
    /// The regression of a family on these data.
    ///
    /// # Errors
    /// If a value does not suit the data, or there are no features.
    pub fn regression<D: Family>(self, data: &DataSchema, family: D) -> Result<Regression<D>, KeyError> {
        let DataSchema { features, .. } = *data;
        if features == 0 {
            return Err(ModelError::NoFeatures.into());
        }
        let (offset_column, weight_column) = (data.offset_column(), data.weight_column());
        let effects = self.effects(data)?;
        let prior = WeightPrior::new(self.prior, self.intercept, self.prior_units.of_weights(self.prior, data)?)?;
        let (has_intercept, log_precisions) = (self.intercept.is_some(), usize::from(prior.has_log_precision()));
        let family_parameters = family.parts().iter().map(Part::size).sum::<usize>();
        let group_parameters = effects.as_ref().map_or(0, GroupEffects::dim);
        let places = Places::new([features, usize::from(has_intercept), log_precisions, family_parameters, group_parameters]);
        let further = log_precisions + family_parameters + group_parameters;
        let predictor = LinearPredictor { features, columns: data.columns(), intercept: has_intercept, further };
        let names = data.names.iter().take(features).cloned().collect();
        Ok(Regression { predictor, prior, offset_column, weight_column, effects, family, names, places })
    }

    fn effects(&self, data: &DataSchema) -> Result<Option<GroupEffects>, KeyError> {
        let Some(column) = data.group_column().filter(|_| self.group_effects) else {
            return match self.group_slopes {
                [] => Ok(None),
                _ if data.groups.is_empty() => Err(KeyError::invalid(
                    "group_slopes",
                    "needs a column of groups, and the data have none: import them again with --group COLUMN",
                )),
                _ => Err(KeyError::invalid("group_slopes", "needs group_effects = true")),
            };
        };
        let slope = |name: &String| {
            let features = &data.names[..data.features.min(data.names.len())];
            let unknown = || {
                let sentence = if features.is_empty() {
                    "needs names of features, and the data have none: import a table with a header".to_owned()
                } else {
                    let (meant, known) = (did_you_mean(name, features), features.join(", "));
                    format!("names \"{name}\", which is no feature. {meant}Choose one of: {known}")
                };
                KeyError::invalid("group_slopes", sentence)
            };
            features.iter().position(|known| known == name).ok_or_else(unknown)
        };
        if let Some(name) = self
            .group_slopes
            .iter()
            .enumerate()
            .find_map(|(place, name)| self.group_slopes[..place].contains(name).then_some(name))
        {
            return Err(KeyError::invalid("group_slopes", format!("names \"{name}\" twice")));
        }
        Ok(Some(GroupEffects {
            groups: data.groups.clone(),
            slopes: self.group_slopes.iter().map(slope).collect::<Result<_, _>>()?,
            column,
            scale_prior: ScalePrior { typical: positive("group_scale", self.group_scale)? },
        }))
    }
}

/// Checks that targets are numbers.
///
/// # Errors
/// If they are not; the error names the task to import with.
pub fn needs_numbers(data: &DataSchema) -> Result<(), ModelError> {
    match data.output {
        Output::Number => Ok(()),
        _ => Err(ModelError::Target { needed: "numbers as targets: import the data again with --task regression" }),
    }
}

/// Checks that targets are counts.
///
/// # Errors
/// If they are not; the error names the task to import with.
pub fn needs_counts(data: &DataSchema) -> Result<(), ModelError> {
    match data.output {
        Output::Count => Ok(()),
        _ => Err(ModelError::Target { needed: "counts 0, 1, 2, ... as targets: import the data again with --task counts" }),
    }
}

/// Checks a count.
///
/// # Errors
/// If it is not 0, 1, 2, ...
pub fn check_count(y: f64) -> Result<(), String> {
    let counts = y >= 0.0 && y.fract() == 0.0 && y.is_finite();
    counts.then_some(()).ok_or_else(|| format!("a target is {y}; counts are 0, 1, 2, ..."))
}
