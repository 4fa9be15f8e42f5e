//! The one file of a run: HDF5 that is also netCDF-4 and follows ArviZ's InferenceData, written whole and read back.
//!
//! # The file
//!
//! Root attributes: `format` = `mpibayes-run`, `format_version`, `created_at` (ISO 8601, UTC), `inference_library` = `mpibayes`,
//! `inference_library_version`, `method`, `model`, `seed`, `data_digest`, `config` (the resolved configuration as TOML).
//!
//! A group of draws, `posterior` for instance: a variable for each named part of the parameters, with dimensions `chain`, `draw`,
//! then `NAME_dim_0`, ...; the attribute `parts` has their names in the order of the parameter vector.
//!
//! A table, `trace` or `metrics` for instance: one-dimensional columns over `row`: `step`, `agent` (−1 for none), then the named
//! values, NaN where a row lacks one; the attribute `columns` has their names in order.
//!
//! Particles are chain 0 with one draw each: their order means nothing, nor do autocorrelation, ESS or R-hat of them.
//! Every dimension has a coordinate variable and every variable names its dimensions, as netCDF-4 wants it.

mod error;
mod folder;
mod netcdf;
mod read;
mod samples;
mod stop;
mod table;
mod write;

pub use error::{Result, ResultsError};
pub use folder::{Kept, RunFolder, checkpoint_file, config_file, is_finished, result_file};
pub use read::RunFile;
pub use samples::{Samples, Values};
pub use stop::{asked as asked_to_stop, listen};
pub use table::Table;
pub use write::write_run;

/// The root attribute `format`.
const FORMAT: &str = "mpibayes-run";
/// The version of the layout.
const VERSION: u32 = 1;
/// The root attribute `inference_library`.
const LIBRARY: &str = "mpibayes";

/// What a run says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// When the file was made: ISO 8601, UTC.
    pub created_at: String,
    /// The version of this program.
    pub version: String,
    /// The method, by its name in the configuration.
    pub method: String,
    /// The model, by its name in the configuration.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// The digest of the dataset; empty if the run had none.
    pub data_digest: String,
    /// The resolved configuration as TOML.
    pub config: String,
}

impl RunInfo {
    /// A description of a run by this version of the program, made now.
    pub fn new(method: &str, model: &str, seed: u64, data_digest: &str, config: &str) -> Self {
        Self {
            created_at: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            method: method.to_owned(),
            model: model.to_owned(),
            seed,
            data_digest: data_digest.to_owned(),
            config: config.to_owned(),
        }
    }
}

/// The version of the HDF5 library in use.
pub fn hdf5_version() -> String {
    let (major, minor, patch) = hdf5::library_version();
    format!("{major}.{minor}.{patch}")
}

/// The time now: ISO 8601, UTC, to the second.
fn now() -> String {
    // A clock before 1970 is no reason to lose a run's results.
    iso(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// ISO 8601 of seconds since 1970, by the calendar of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn iso(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests;
