//! Errors in the settings of a model.

/// A model that cannot be built from its settings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A setting is out of its range.
    #[error("`{setting}` must be {range}, not {value}")]
    OutOfRange {
        /// The key in the run file.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// The valid values.
        range: &'static str,
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
    /// A network is too large.
    #[error("`hidden` gives more than {most} weights: take fewer or smaller layers")]
    TooManyWeights {
        /// The largest number of weights.
        most: u128,
    },
    /// The model does not support this number of classes.
    #[error("the model cannot predict {classes} classes{hint}")]
    Classes {
        /// The number of classes of the data.
        classes: usize,
        /// What to do, after a colon or another mark.
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
    /// The posterior has no closed form.
    #[error(
        "the posterior has no closed form: that needs normal priors, a given noise variance, and no offset, weights or groups"
    )]
    NoClosedForm,
    /// A mixture has no components.
    #[error("a mixture needs at least one component")]
    NoComponents,
}

fn checked(setting: &'static str, value: f64, in_range: bool, range: &'static str) -> Result<f64, ModelError> {
    if in_range && value.is_finite() { Ok(value) } else { Err(ModelError::OutOfRange { setting, value, range }) }
}

/// `value` if it is positive and finite.
pub(super) fn positive(setting: &'static str, value: f64) -> Result<f64, ModelError> {
    checked(setting, value, value > 0.0, "a positive number")
}

/// `value` if it is at least 0 and finite.
pub(super) fn not_negative(setting: &'static str, value: f64) -> Result<f64, ModelError> {
    checked(setting, value, value >= 0.0, "zero or a positive number")
}

/// `value` if it is finite.
pub(super) fn finite(setting: &'static str, value: f64) -> Result<f64, ModelError> {
    checked(setting, value, true, "a number")
}
