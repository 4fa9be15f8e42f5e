//! Update rules on arrays: SVGD, kernel density estimates, AdaGrad, Langevin and Hamiltonian steps.

pub mod adagrad;
pub mod hamiltonian;
pub mod kde;
pub mod ksd;
pub mod langevin;
pub mod rbf;
pub mod reduce;
mod select;
pub mod svgd;
mod symmetric;
pub mod triangle;

/// An invalid setting of an update rule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// A number is out of its range.
    #[error("{name} = {value} must be {range}")]
    Range {
        /// The key.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The valid values.
        range: &'static str,
    },
}

/// Checks that the setting `name` is in its range, which `in_range` says.
fn check_range(name: &'static str, value: f64, in_range: bool, range: &'static str) -> Result<(), SettingsError> {
    if in_range { Ok(()) } else { Err(SettingsError::Range { name, value, range }) }
}
