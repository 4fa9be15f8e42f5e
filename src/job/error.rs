//! What ends a job early.

use super::extend::ExtensionError;
use crate::cluster::{CheckpointError, Fault};
use crate::config::ConfigError;
use crate::data::DataError;
use crate::results::ResultsError;
use std::path::PathBuf;

/// What ends a job early.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The run file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data cannot be read, or do not suit the run.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Ranks see different files under one name.
    #[error(
        "{}: this rank sees another dataset (digest {here:.12}) than rank 0 (digest {root:.12}). Give every rank the same file",
        file.display()
    )]
    DifferentData {
        /// The file.
        file: PathBuf,
        /// Its digest on this rank.
        here: String,
        /// Its digest on rank 0.
        root: String,
    },
    /// The result file or run folder.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The run cannot be resumed or made longer.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// The checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Rows cannot be predicted.
    #[error("cannot predict: {0}")]
    Prediction(String),
    /// The topics of a run cannot be read.
    #[error("{0}")]
    Topics(String),
    /// Steps could not be found automatically.
    #[error("{0}")]
    Tuning(String),
    /// The method failed.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Something failed on a rank before the method started. All ranks know it; rank 0 reports it.
    #[error("{0}")]
    OnSomeRank(String),
}
