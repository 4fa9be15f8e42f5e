//! The result file of a run: HDF5 that is also netCDF-4 and follows the InferenceData schema of ArviZ.
//!
//! # The file
//!
//! Root attributes: `format` = `mpibayes-run`, `format_version`, `created_at` (ISO 8601, UTC), `inference_library` = `mpibayes`,
//! `inference_library_version`, `method`, `model`, `seed`, `data_digest`, `config` (the resolved configuration as TOML), `finished`
//! (0 during the run), `progress_done` and `progress_total` (rounds), `sampling_time` (seconds, without evaluation), `hosts`, `events` (stops,
//! resumes and the like), and `digest`.
//!
//! A group of draws, such as `posterior`, has a variable for each part of the parameters, with dimensions `chain`, `draw`, `NAME_dim_0`, ...
//! Where a model names what lies along a dimension, such as features or groups, these names are its coordinates.
//! The attributes of the group: `parts`, the names of the variables in the order of the parameter vector; `draws_per_chain`, the length of each chain
//! (shorter chains are padded with NaN); and `draws`, their kind: `chains`, `particles`, `paths` of particles, `topics`, `statistics` or
//! `expectation`.
//!
//! A table, such as `history` or `metrics`, has one-dimensional columns over `row`: `step`, `agent` (−1 for none), then the named values,
//! with NaN for missing ones. Its attribute `columns` has their names in order.
//!
//! Other arrays, written at the end of the run or by a later command: `test_predictions` has `target` (row), `density` (row: the averaged probability or density
//! of the target) and `probability` (row × class) or `mean` (row), over the test rows in the dataset's order and units; `test_convergence`
//! has the R-hat of the predictions for some of them; `preprocessing` has scale and offset of each feature; `scores` has some draws and
//! the gradients of the log posterior at them; `log_likelihood` and `posterior_predictive` have a variable `y` over chain, draw and row (`row` if these are
//! the training rows, `test_row` if they are the test rows), `observed_data` has a `y` over the rows. The result of
//! `mpibayes recalibrate` also has the map of its draws in `recalibration`.
//!
//! Particles are the draws of chain 0. They have no order, so that autocorrelation, ESS and R-hat are not defined for them.
//! As netCDF-4 requires, every dimension has a coordinate variable, and every variable names its dimensions.
//!
//! # During the run
//!
//! The file exists from the first checkpoint on, or from when draws first fill the memory, and is replaced as a whole each time. It can be read at any time, also after the job was
//! killed, and a reader that has it open keeps its version. Each replacement copies the file, while the run goes on. Checkpoints become rarer the
//! longer copying takes, and draws are only written between checkpoints if they exceed 64 MiB and a sixteenth of the file. With
//! `draw_transport = "files"`, the folder `draws.parts` beside the file holds draws that ranks have written and that are not in it yet.

mod curves;
mod delete_files;
mod display;
mod draws;
mod error;
mod events;
mod existing;
mod failed_saves;
mod folder;
mod grid;
mod info;
mod job_rows;
mod lock;
mod merged_blocks;
mod netcdf;
mod part;
mod parts;
mod read;
mod samples;
mod spool;
mod stage;
mod stop;
mod table;
mod whole;
mod write;

pub use crate::cluster::AgentBytes;
pub use crate::cluster::record::{BYTES, HISTORY, METRICS};
pub use curves::{Points, SECONDS, XAxis, is_axis};
pub use display::Reporting;
pub use error::{Result, ResultsError};
pub use events::{Event, EventKind, has_failed, note_event, why_ended};
pub use existing::{
    ExistingRun, check_writable, checkpoint_file, config_file, digest_file, existing_run, has_checkpoint, is_file_of_run,
    is_finished, result_file,
};
pub use folder::{RunFolder, SaveError};
pub use grid::{Grid, GridFile};
pub use info::{RunInfo, RunState};
pub use job_rows::{AGENT_BYTES, PHASES, RANKS, SAVES, TRAFFIC, TRAFFIC_BETWEEN_RANKS};
pub use lock::{job_using, job_with_lock};
pub use parts::CheckpointParts;
pub use read::ResultFile;
pub use samples::{SampleGroup, SampleKind, Samples, Values};
pub use spool::Spool;
pub use stage::Stage;
pub use stop::{
    ask_to_stop, asked as asked_to_stop, claim_announcement as claim_announcement_of_stop, limit_time, listen, was_terminated,
    withdraw_request,
};
pub use table::Table;
pub use write::{RunWriter, write_run};

/// The group of the posterior draws or particles.
pub const POSTERIOR: &str = "posterior";
/// The version of the HDF5 library in use.
pub fn hdf5_version() -> String {
    let (major, minor, patch) = hdf5::library_version();
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests;
