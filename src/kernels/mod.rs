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

/// A setting of an update rule that is out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} = {value} must be {range}")]
pub struct SettingsError {
    name: &'static str,
    value: f64,
    range: &'static str,
}

/// Checks that the setting `name` is in its range.
fn check_range(name: &'static str, value: f64, in_range: bool, range: &'static str) -> Result<(), SettingsError> {
    if in_range { Ok(()) } else { Err(SettingsError { name, value, range }) }
}
