//! Update rules on arrays: Stein directions, kernel density estimates, optimisers; knows no server and no file.

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

/// A setting of a kernel that no run can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// A number outside its range.
    #[error("{name} = {value} is not {range}")]
    Range {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// What it may be, in words.
        range: &'static str,
    },
}

/// The setting `name`, if `ok` holds for its value.
fn ranged(name: &'static str, value: f64, ok: bool, range: &'static str) -> Result<(), SettingsError> {
    if ok { Ok(()) } else { Err(SettingsError::Range { name, value, range }) }
}
