//! Errors in the settings of a model.

/// A model that cannot be built from its settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A setting must be a positive, finite number.
    #[error("`{setting}` must be a positive number, not {value}")]
    NotPositive {
        /// The key in the run file.
        setting: &'static str,
        /// The value in the run file.
        value: f64,
    },
    /// A setting must be finite and at least 0.
    #[error("`{setting}` must be zero or a positive number, not {value}")]
    Negative {
        /// The key in the run file.
        setting: &'static str,
        /// The value in the run file.
        value: f64,
    },
    /// A setting must be finite.
    #[error("`{setting}` must be a number, not {value}")]
    NotFinite {
        /// The key in the run file.
        setting: &'static str,
        /// The value in the run file.
        value: f64,
    },
    /// The data have no feature columns.
    #[error("the model needs at least one feature column, but the data have none")]
    NoFeatures,
    /// A hidden layer has no units.
    #[error("`hidden`: layer {layer} has width 0; every hidden layer needs at least one unit")]
    EmptyLayer {
        /// The layer, counted from 1.
        layer: usize,
    },
    /// The model does not support this number of classes.
    #[error("the model cannot predict {classes} classes{hint}")]
    Classes {
        /// The number of classes of the data.
        classes: usize,
        /// What the model supports.
        hint: &'static str,
    },
    /// The loss does not fit the targets.
    #[error("the loss `{loss}` does not fit {target}")]
    Loss {
        /// The key in the run file.
        loss: &'static str,
        /// The kind of targets, and the losses that fit them.
        target: &'static str,
    },
    /// The model cannot predict this kind of targets.
    #[error("the model needs {needed}")]
    Target {
        /// The targets that the model needs.
        needed: &'static str,
    },
    /// A vector or matrix has the wrong size.
    #[error("{what} has {found} numbers; {expected} are needed")]
    Size {
        /// The vector or matrix.
        what: &'static str,
        /// The number of values it has.
        found: usize,
        /// The number of values it needs.
        expected: usize,
    },
    /// A covariance or precision matrix is not symmetric and positive definite.
    #[error("{what} must be a symmetric, positive definite matrix")]
    NotPositiveDefinite {
        /// The matrix.
        what: &'static str,
    },
    /// A lower corner of a box is not below the upper corner.
    #[error("the box is empty: its lower corner must lie below its upper one, but {lower} is not below {upper}")]
    EmptyBox {
        /// The lower limit of the first invalid coordinate.
        lower: f64,
        /// Its upper limit.
        upper: f64,
    },
    /// A mixture has no components.
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
