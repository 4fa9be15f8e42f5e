//! What can be wrong with the settings of a model.

/// A model that cannot be built from its settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A setting that has to be a positive, finite number is not.
    #[error("`{setting}` must be a positive number, not {value}")]
    NotPositive {
        /// Its name in the configuration.
        setting: &'static str,
        /// What was given.
        value: f64,
    },
    /// A setting that must not be negative is negative or no number.
    #[error("`{setting}` must be zero or a positive number, not {value}")]
    Negative {
        /// Its name in the configuration.
        setting: &'static str,
        /// What was given.
        value: f64,
    },
    /// A setting that has to be a number is infinite or none.
    #[error("`{setting}` must be a number, not {value}")]
    NotFinite {
        /// Its name in the configuration.
        setting: &'static str,
        /// What was given.
        value: f64,
    },
    /// The data have no feature columns.
    #[error("the model needs at least one feature column, but the data have none")]
    NoFeatures,
    /// A hidden layer without units.
    #[error("`hidden`: layer {layer} has width 0; every hidden layer needs at least one unit")]
    EmptyLayer {
        /// Which one, counted from 1.
        layer: usize,
    },
    /// Fewer classes than can be told apart, or another number than the model is made for.
    #[error("the model cannot predict {classes} classes{hint}")]
    Classes {
        /// How many.
        classes: usize,
        /// What it can do instead.
        hint: &'static str,
    },
    /// A loss that does not suit what is to be predicted.
    #[error("the loss `{loss}` does not suit {target}")]
    Loss {
        /// Its name in the configuration.
        loss: &'static str,
        /// What the data hold.
        target: &'static str,
    },
    /// The data hold something else than the model predicts.
    #[error("the model needs {needed}")]
    Target {
        /// What it can predict.
        needed: &'static str,
    },
    /// Vectors and matrices of a density do not fit together.
    #[error("{what} has {found} numbers where {expected} are needed")]
    Size {
        /// Which one.
        what: &'static str,
        /// How many numbers it has.
        found: usize,
        /// How many it should have.
        expected: usize,
    },
    /// A covariance or precision that is no symmetric, positive definite matrix.
    #[error("{what} must be a symmetric, positive definite matrix")]
    NotPositiveDefinite {
        /// Which one.
        what: &'static str,
    },
    /// A box whose sides are not in order.
    #[error("the box is empty: its lower corner must lie below its upper one, but {lower} is not below {upper}")]
    EmptyBox {
        /// Lower limit of the first coordinate at fault.
        lower: f64,
        /// Its upper limit.
        upper: f64,
    },
    /// A mixture without components.
    #[error("a mixture needs at least one component")]
    NoComponents,
}

/// `value` if it is positive and finite.
pub(super) fn positive(setting: &'static str, value: f64) -> Result<f64, ModelError> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(ModelError::NotPositive { setting, value }) }
}

/// `value` if it is 0 or above, and finite.
pub(super) fn not_negative(setting: &'static str, value: f64) -> Result<f64, ModelError> {
    if value >= 0.0 && value.is_finite() { Ok(value) } else { Err(ModelError::Negative { setting, value }) }
}

/// `value` if it is finite.
pub(super) fn finite(setting: &'static str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() { Ok(value) } else { Err(ModelError::NotFinite { setting, value }) }
}
