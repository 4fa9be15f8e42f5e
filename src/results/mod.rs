//! The one file of a run: HDF5 that is also netCDF-4 and follows ArviZ's InferenceData, written while the run goes on.
//!
//! # The file
//!
//! Root attributes: `format` = `mpibayes-run`, `format_version`, `created_at` (ISO 8601, UTC), `inference_library` = `mpibayes`,
//! `inference_library_version`, `method`, `model`, `seed`, `data_digest`, `config` (the resolved configuration as TOML), `finished`
//! (0 while the run goes on), `progress_done` and `progress_total` (rounds), `sampling_time` (seconds, evaluation left out).
//!
//! A group of draws, `posterior` for instance: a variable for each named part of the parameters, with dimensions `chain`, `draw`,
//! then `NAME_dim_0`, ...; the attribute `parts` has their names in the order of the parameter vector, `draws_per_chain` the length of
//! each chain (the rest of a shorter one is NaN), and `draws` says what they are: `chains`, `particles`, `paths` of particles, `topics`,
//! or an `expectation`.
//!
//! A table, `history` or `metrics` for instance: one-dimensional columns over `row`: `step`, `agent` (−1 for none), then the named
//! values, NaN where a row lacks one; the attribute `columns` has their names in order.
//!
//! Arrays that are no draws: `test_predictions` has `target` (row), `density` (row: the averaged probability or density of the target)
//! and `probability` (row × class) or `mean` (row), over the test rows in the dataset's order and units; `preprocessing` has scale and
//! offset of each feature. Both are written when the run is over.
//!
//! Particles are chain 0 with one draw each: their order means nothing, nor do autocorrelation, ESS or R-hat of them.
//! Every dimension has a coordinate variable and every variable names its dimensions, as netCDF-4 wants it.
//!
//! # While the run goes on
//!
//! The file is there from the first checkpoint on, and is replaced as a whole each time: it can be read at any moment, also after a
//! kill, and a reader that has it open keeps what was there when it opened it. Replacing copies the file, so that a job writes no
//! more than some times its size; draws beyond a sixteenth of the file (at least 64 MiB) are written between checkpoints too, and
//! checkpoints come the less often the longer copying takes. Where `draws = "files"`, the folder `draws.parts` beside it holds what ranks
//! have drawn since then.

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
pub use folder::{Kept, PHASES, RunFolder, TRAFFIC, checkpoint_file, config_file, is_finished, result_file};
pub use grid::{Grid, GridFile};
pub use read::RunFile;
pub use samples::{SampleGroup, SampleKind, Samples, Values};
pub use spool::Spool;
pub use stop::{asked as asked_to_stop, listen};
pub use table::Table;
pub use write::{RunWriter, write_run};

/// The group of the draws or particles that a run is for.
pub const POSTERIOR: &str = "posterior";
/// The root attribute `format`.
const FORMAT: &str = "mpibayes-run";
/// The version of the layout.
const VERSION: u32 = 2;
/// The root attribute `inference_library`.
const LIBRARY: &str = "mpibayes";

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunState {
    /// Whether it is over.
    pub finished: bool,
    /// Rounds done.
    pub done: u64,
    /// Rounds in all.
    pub total: u64,
    /// Seconds since it began, those for evaluation left out.
    pub seconds: f64,
}

impl RunState {
    /// Of a run that is over, of which nothing else is known.
    pub fn over() -> Self {
        Self { finished: true, done: 0, total: 0, seconds: 0.0 }
    }
}

/// What a run says about itself.
#[derive(Clone, Debug, PartialEq)]
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
    /// How far it is.
    pub state: RunState,
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
