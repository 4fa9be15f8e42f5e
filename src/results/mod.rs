//! The result file of a run: HDF5 that is also netCDF-4 and follows the InferenceData schema of ArviZ.
//!
//! # The file
//!
//! Root attributes: `format` = `mpibayes-run`, `format_version`, `created_at` (ISO 8601, UTC), `inference_library` = `mpibayes`,
//! `inference_library_version`, `method`, `model`, `seed`, `data_digest`, `config` (the resolved configuration as TOML), `finished`
//! (0 during the run), `progress_done` and `progress_total` (rounds), `sampling_time` (seconds, without evaluation).
//!
//! A group of draws, such as `posterior`, has a variable for each part of the parameters, with dimensions `chain`, `draw`, `NAME_dim_0`, ...
//! Its attributes: `parts`, the names of the variables in the order of the parameter vector; `draws_per_chain`, the length of each chain
//! (shorter chains are padded with NaN); and `draws`, their kind: `chains`, `particles`, `paths` of particles, `topics` or `expectation`.
//!
//! A table, such as `history` or `metrics`, has one-dimensional columns over `row`: `step`, `agent` (−1 for none), then the named values,
//! with NaN for missing ones. Its attribute `columns` has their names in order.
//!
//! Other arrays: `test_predictions` has `target` (row), `density` (row: the averaged probability or density of the target)
//! and `probability` (row × class) or `mean` (row), over the test rows in the dataset's order and units; `preprocessing` has scale and
//! offset of each feature. Both are written at the end of the run.
//!
//! Particles are the draws of chain 0. They have no order, so that autocorrelation, ESS and R-hat are not defined for them.
//! As netCDF-4 requires, every dimension has a coordinate variable, and every variable names its dimensions.
//!
//! # During the run
//!
//! The file exists from the first checkpoint on and is replaced as a whole each time. It can be read at any time, also after the job was
//! killed, and a reader that has it open keeps its version. Each replacement copies the file. Therefore checkpoints become rarer the longer
//! copying takes, and draws are only written between checkpoints if they exceed 64 MiB and a sixteenth of the file. With `draws = "files"`,
//! the folder `draws.parts` beside the file holds the draws of each rank since the last checkpoint.

mod curves;
mod draws;
mod error;
mod folder;
mod grid;
mod netcdf;
mod part;
mod read;
mod samples;
mod spool;
mod stop;
mod table;
mod write;

pub use crate::cluster::record::{HISTORY, METRICS};
pub use curves::{Points, SECONDS, XAxis};
pub use error::{Result, ResultsError};
pub use folder::{ExistingRun, PHASES, RunFolder, TRAFFIC, checkpoint_file, config_file, is_finished, result_file};
pub use grid::{Grid, GridFile};
pub use read::RunFile;
pub use samples::{SampleGroup, SampleKind, Samples, Values};
pub use spool::Spool;
pub use stop::{asked as asked_to_stop, listen};
pub use table::Table;
pub use write::{RunWriter, write_run};

/// The group of the posterior draws or particles.
pub const POSTERIOR: &str = "posterior";
/// The root attribute `format`.
const FORMAT: &str = "mpibayes-run";
/// The version of the layout.
const VERSION: u32 = 2;
/// The root attribute `inference_library`.
const LIBRARY: &str = "mpibayes";

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunState {
    /// Whether it is finished.
    pub finished: bool,
    /// Completed rounds.
    pub done: u64,
    /// All rounds.
    pub total: u64,
    /// Seconds since it began, without evaluation.
    pub seconds: f64,
}

impl RunState {
    /// The state of a finished run with unknown rounds and seconds.
    pub fn over() -> Self {
        Self { finished: true, done: 0, total: 0, seconds: 0.0 }
    }
}

/// The description of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// When the file was created: ISO 8601, UTC.
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
    /// Its progress.
    pub state: RunState,
}

impl RunInfo {
    /// The description of a finished run by this version of the program, created now.
    pub fn new(method: &str, model: &str, seed: u64, data_digest: &str, config: &str) -> Self {
        Self {
            created_at: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            method: method.to_owned(),
            model: model.to_owned(),
            seed,
            data_digest: data_digest.to_owned(),
            config: config.to_owned(),
            state: RunState::over(),
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
    // A clock before 1970 must not prevent writing results.
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
